"""Subgraphs along one edge type between nodes of one type, all hops in one call, where ids lie near
each other.

What `asterism_graphkit.operators.khop` makes of `storaged.kernels.subgraphs.expand` and
`asterism_graphkit.relabel.bitset_ranks` hop by hop: a call less for each of these leaves more of a
batch to others of its process, who wait for the interpreter's lock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import is_set, kernel
from asterism_graphkit.relabel.bitset_ranks import assign
from asterism_graphkit.relabel.relabel import write_repeated_indices
from storaged.kernels.subgraphs.expand import draw_expansion

ID_OUT_OF_RANGE, TOO_MANY_BYTES, STOPPED = -1, -2, -3
"""Why there is no answer: an id has no bit, there are more bytes than are asked for at most, or the
call is to end.
"""


@kernel
def sample_khop_single_type(
    seeds: NDArray[np.int64],
    counts: NDArray[np.int64],
    keys: NDArray[np.uint64],
    selection_keys: NDArray[np.uint64],
    expand_all: bool,
    max_bytes: np.int64,
    parts: np.int64,
    mod: bool,
    table: NDArray[np.int64],
    replace: bool,
    uniform: bool,
    words: NDArray[np.uint64],
    seed_indices: NDArray[np.int32],
    nodes: NDArray[np.int64],
    local_ends: NDArray[np.int32],
    remote_ends: NDArray[np.int32],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32],
    node_counts: NDArray[np.int64],
    edge_counts: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> int:
    """Grow a subgraph.

    Parameters
    ----------
    seeds : int64[m]
        -1: no node. All others are below 64 * (w - 1).
    counts, keys, selection_keys : int64[h], uint64[h], uint64[h]
        Of each hop, as `draw_expansion` takes them; counts of 0 or more.
    expand_all : bool
        Whether a node expands in every hop from the one on that met it, instead of in the next one
        only.
    max_bytes : int64
        Of nodes and columns of edges.
    parts, mod, table, replace, uniform
        As of `draw_expansion`; all parts are held.
    words : uint64[w]
        Zeros.
    seed_indices : int32[m], out
        Of the seeds.
    nodes : int64[room + 1], out
        By number; room is m and as many as may be drawn.
    local_ends, remote_ends : int32[room + 2], int32[room], out
        The ends of edges: the node that was expanded, and its neighbor.
    eids, weights : int64[room] or [0], float32[room] or [0], out
    node_counts, edge_counts : int64[h + 1], int64[h], out
    stop : int64[1]
        As of `draw_expansion`.

    Returns
    -------
    int
        How many edges there are, or `ID_OUT_OF_RANGE`, `TOO_MANY_BYTES` or `STOPPED`.
    """
    word_ranks, by_rank = np.empty(words.shape[0], np.int32), np.empty(nodes.shape[0], np.int32)
    count, first, total = np.zeros(1, np.int64), np.int64(0), np.int64(0)
    id_limit = np.int64(64) * (words.shape[0] - 1)
    width = 8 + 8 * np.int64(eids.shape[0] > 0) + 4 * np.int64(weights.shape[0] > 0)
    assign(seeds, words, word_ranks, by_rank, nodes, count, seed_indices)
    node_counts[0] = count[0]
    for hop in range(counts.shape[0]):
        visited_count, fanout = count[0], counts[hop]
        first = np.int64(0) if expand_all else first
        frontier = nodes[first:visited_count].copy()
        m = frontier.shape[0]
        if fanout > 0 and m > 0:
            capacity = m * fanout
            sizes, neighbors = np.empty(m, np.int32), np.empty(capacity, np.int64)
            hop_eids = eids[total : total + capacity] if eids.shape[0] > 0 else eids
            hop_weights = weights[total : total + capacity] if weights.shape[0] > 0 else weights
            hop_outputs = sizes, neighbors, hop_eids, hop_weights
            edge_count = np.int64(
                draw_expansion(
                    frontier,
                    frontier,
                    keys[hop],
                    selection_keys[hop],
                    parts,
                    mod,
                    table,
                    fanout,
                    replace,
                    uniform,
                    *hop_outputs,
                    stop,
                )
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
            if width * total + 12 * count[0] > max_bytes:
                return TOO_MANY_BYTES
        node_counts[hop + 1] = count[0] - visited_count
        first = visited_count
    return total  # type: ignore[return-value]  # an int64 here and an int to the caller
