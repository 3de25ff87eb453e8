"""Sample a k-hop subgraph along one edge type between nodes of one type, all hops in one call,
where ids lie close together.

The result is that of `asterism_graphkit.operators.khop` over `storaged.kernels.subgraphs.expand`
and `asterism_graphkit.relabel.bitset_ranks` hop by hop. One call instead of several a hop leaves
the interpreter's lock to the other threads of the process."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import is_set, kernel
from asterism_graphkit.relabel.bitset_ranks import assign
from asterism_graphkit.relabel.relabel import write_repeated_indices
from storaged.kernels.subgraphs.expand import ExpansionParams, NeighborOutputs, draw_expansion

ID_OUT_OF_RANGE, TOO_MANY_BYTES, STOPPED = -1, -2, -3
"""Why there is no result: an id has no bit, there are more bytes than ``max_bytes``, or the call is
to end.
"""


class SingleTypeParams(NamedTuple):
    """How a subgraph of one node type is sampled."""

    parts: np.int64
    mod: bool
    """Whether a node finds its part by remainder, or by hash."""
    replace: bool
    uniform: bool
    """Whether every edge weighs 1."""
    expand_all: bool
    """Whether a node expands in every hop from the one that visited it, or in the next one only."""
    max_bytes: np.int64
    """Of nodes and columns of edges."""


class SubgraphOutputs(NamedTuple):
    """Output arrays of a subgraph of m seeds, h hops and up to c edges; k = m + c."""

    seed_indices: NDArray[np.int32]
    """int32[m]: the number of each seed."""
    nodes: NDArray[np.int64]
    """int64[k + 1]: node ids by number."""
    local_ends: NDArray[np.int32]
    """int32[k + 2]: the node that was expanded, of each edge."""
    remote_ends: NDArray[np.int32]
    """int32[k]: its neighbor."""
    eids: NDArray[np.int64]
    """int64[k] or [0]."""
    weights: NDArray[np.float32]
    """float32[k] or [0]."""
    node_counts: NDArray[np.int64]
    """int64[h + 1]: of seeds, and of nodes first visited in each hop."""
    edge_counts: NDArray[np.int64]
    """int64[h]."""


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
    """Sample a subgraph.

    Parameters
    ----------
    table : int64[parts, COLUMNS]
        All parts are held.
    params : SingleTypeParams
    seeds : int64[m]
        -1: no node. All others are below 64 * (w - 1).
    counts, keys, selection_keys : int64[h], uint64[h], uint64[h]
        Of each hop, as of `storaged.kernels.subgraphs.expand.ExpansionParams`; counts of 0 or
        more.
    words : uint64[w]
        Zeros; scratch.
    out : SubgraphOutputs
    stop : int64[1]
        As of `draw_expansion`.

    Returns
    -------
    int
        How many edges there are, or `ID_OUT_OF_RANGE`, `TOO_MANY_BYTES` or `STOPPED`.
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
