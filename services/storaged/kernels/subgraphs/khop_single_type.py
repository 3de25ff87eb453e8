"""Sample a k-hop subgraph of one node type along one edge type, all hops in one call.

For dense ids. The result is that of `asterism_graphkit.operators.khop` with
`storaged.kernels.subgraphs.expand` and `asterism_graphkit.relabel.bitset_relabel` for each hop.
With one call instead of several per hop, other threads of the process can take the interpreter
lock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import is_set, kernel
from asterism_graphkit.relabel.bitset_relabel import assign
from asterism_graphkit.relabel.relabel import write_repeated_indices
from storaged.kernels.subgraphs.expand import ExpansionParams, NeighborOutputs, draw_expansion

ID_OUT_OF_RANGE, TOO_MANY_BYTES, STOPPED = -1, -2, -3
"""Error results of `sample_khop_single_type`.

An id has no bit, the result exceeds ``max_bytes``, or the call was stopped.
"""


class SingleTypeParams(NamedTuple):
    """Parameters of `sample_khop_single_type`."""

    parts: np.int64
    mod: bool
    """True if the partition of a node is its id modulo ``parts``; else it follows from a hash."""
    replace: bool
    uniform: bool
    """True if every edge counts with weight 1."""
    expand_all: bool
    """True to expand a visited node in all later hops; false for the next hop only."""
    max_bytes: np.int64
    """Maximum bytes of the nodes and the columns of edges."""


class SubgraphOutputs(NamedTuple):
    """Output arrays of a subgraph with m seeds, h hops and up to c edges; k = m + c."""

    seed_indices: NDArray[np.int32]
    """Local id of each seed, int32[m]."""
    nodes: NDArray[np.int64]
    """Node ids by local id, int64[k + 1]."""
    local_ends: NDArray[np.int32]
    """Expanded node of each edge, by local id, int32[k + 2]."""
    remote_ends: NDArray[np.int32]
    """Neighbor of each edge, by local id, int32[k]."""
    eids: NDArray[np.int64]
    """Edge ids, int64[k] or [0]."""
    weights: NDArray[np.float32]
    """Edge weights, float32[k] or [0]."""
    node_counts: NDArray[np.int64]
    """Number of distinct seeds, and of nodes first visited in each hop, int64[h + 1]."""
    edge_counts: NDArray[np.int64]
    """Number of edges of each hop, int64[h]."""


@kernel
def sample_khop_single_type(
    table: NDArray[np.int64],
    params: SingleTypeParams,
    seeds: NDArray[np.int64],
    counts: NDArray[np.int64],
    keys: NDArray[np.uint64],
    selection_keys: NDArray[np.uint64],
    words: NDArray[np.uint64],
    out: SubgraphOutputs,
    stop: NDArray[np.int64],
) -> int:
    """Sample a k-hop subgraph.

    Parameters
    ----------
    table : int64[parts, COLUMNS]
        Address table. All partitions are held.
    params : SingleTypeParams
    seeds : int64[m]
        Node ids below 64 * (w - 1), or -1 for no node.
    counts, keys, selection_keys : int64[h], uint64[h], uint64[h]
        Fanout >= 0 and keys of each hop, as in `storaged.kernels.subgraphs.expand.ExpansionParams`.
    words : uint64[w]
        Scratch array, all zero.
    out : SubgraphOutputs
    stop : int64[1]
        As in `draw_expansion`.

    Returns
    -------
    int
        Number of edges, or `ID_OUT_OF_RANGE`, `TOO_MANY_BYTES` or `STOPPED`.
    """
    seed_indices, nodes, local_ends, remote_ends, eids, weights, node_counts, edge_counts = out
    word_ranks, by_rank = np.empty(words.shape[0], np.int32), np.empty(nodes.shape[0], np.int32)
    count, first, total = np.zeros(1, np.int64), np.int64(0), np.int64(0)
    id_limit = np.int64(64) * (words.shape[0] - 1)
    width = 8 + 8 * np.int64(eids.shape[0] > 0) + 4 * np.int64(weights.shape[0] > 0)
    assign(seeds, words, word_ranks, by_rank, nodes, count, seed_indices)
    node_counts[0] = count[0]
    for hop in range(counts.shape[0]):
        visited_count, fanout = count[0], counts[hop]
        first = np.int64(0) if params.expand_all else first
        frontier = nodes[first:visited_count].copy()
        m = frontier.shape[0]
        if fanout > 0 and m > 0:
            capacity = m * fanout
            sizes, neighbors = np.empty(m, np.int32), np.empty(capacity, np.int64)
            hop_params = ExpansionParams(
                keys[hop],
                selection_keys[hop],
                params.parts,
                params.mod,
                fanout,
                params.replace,
                params.uniform,
            )
            hop_out = NeighborOutputs(
                neighbors,
                eids[total : total + capacity] if eids.shape[0] > 0 else eids,
                weights[total : total + capacity] if weights.shape[0] > 0 else weights,
            )
            edge_count = np.int64(
                draw_expansion(table, hop_params, frontier, frontier, sizes, hop_out, stop)
            )
            if is_set(stop):
                return STOPPED
            max_id = np.int64(-1)
            for i in range(edge_count):
                max_id = max(max_id, neighbors[i])
            if max_id >= id_limit:
                return ID_OUT_OF_RANGE
            write_repeated_indices(sizes, first, local_ends[total:])
            assign(
                neighbors[:edge_count],
                words,
                word_ranks,
                by_rank,
                nodes,
                count,
                remote_ends[total : total + edge_count],
            )
            total += edge_count
            edge_counts[hop] = edge_count
            if width * total + 12 * count[0] > params.max_bytes:
                return TOO_MANY_BYTES
        node_counts[hop + 1] = count[0] - visited_count
        first = visited_count
    return total  # type: ignore[return-value]  # an int64 here and an int to the caller
