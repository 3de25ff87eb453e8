"""Subgraphs along one edge type between nodes of one type, all hops in one call, where ids lie near each other.

What `graphkit.growth` makes of `storaged.kernel.expand` and `graphkit.ranks` hop by hop: a call less for each of these leaves more of a
batch to others of its process, who wait for the interpreter's lock.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import is_set, kernel
from graphkit.numbering import put_near_ends
from graphkit.ranks import assign
from storaged.kernel.expand import draw_expansion

FAR_ID, TOO_MANY, STOPPED = -1, -2, -3
"""Why there is no answer: an id has no bit, there are more bytes than are asked for at most, or the call is to end."""


@kernel
def grow_alone(
    seeds: NDArray[np.int64],
    counts: NDArray[np.int64],
    keys: NDArray[np.uint64],
    race_keys: NDArray[np.uint64],
    every: bool,
    most_bytes: np.int64,
    parts: np.int64,
    mod: bool,
    table: NDArray[np.int64],
    replace: bool,
    uniform: bool,
    words: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    nodes: NDArray[np.int64],
    near: NDArray[np.int32],
    far: NDArray[np.int32],
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
    counts, keys, race_keys : int64[h], uint64[h], uint64[h]
        Of each hop, as `draw_expansion` takes them; counts of 0 or more.
    every : bool
        Whether a node expands in every hop from the one on that met it, instead of in the next one only.
    most_bytes : int64
        Of nodes and columns of edges.
    parts, mod, table, replace, uniform
        As of `draw_expansion`; all parts are held.
    words : uint64[w]
        Zeros.
    numbers : int32[m], out
        Of the seeds.
    nodes : int64[room + 1], out
        By number; room is m and as many as may be drawn.
    near, far : int32[room + 2], int32[room], out
        The ends of edges: the node that was expanded, and its neighbor.
    eids, weights : int64[room] or [0], float32[room] or [0], out
    node_counts, edge_counts : int64[h + 1], int64[h], out
    stop : int64[1]
        As of `draw_expansion`.

    Returns
    -------
    int
        How many edges there are, or `FAR_ID`, `TOO_MANY` or `STOPPED`.
    """
    firsts, by_rank = np.empty(words.shape[0], np.int32), np.empty(nodes.shape[0], np.int32)
    count, first, total = np.zeros(1, np.int64), np.int64(0), np.int64(0)
    limit = np.int64(64) * (words.shape[0] - 1)
    width = 8 + 8 * np.int64(eids.shape[0] > 0) + 4 * np.int64(weights.shape[0] > 0)
    assign(seeds, words, firsts, by_rank, nodes, count, numbers)
    node_counts[0] = count[0]
    for hop in range(counts.shape[0]):
        known, each = count[0], counts[hop]
        first = np.int64(0) if every else first
        front = nodes[first:known].copy()
        m = front.shape[0]
        if each > 0 and m > 0:
            most = m * each
            sizes, found = np.empty(m, np.int32), np.empty(most, np.int64)
            own_eids = eids[total : total + most] if eids.shape[0] > 0 else eids
            own_weights = weights[total : total + most] if weights.shape[0] > 0 else weights
            own = sizes, found, own_eids, own_weights
            drawn = np.int64(draw_expansion(front, front, keys[hop], race_keys[hop], parts, mod, table, each, replace, uniform, *own, stop))
            if is_set(stop):
                return STOPPED
            highest = np.int64(-1)
            for i in range(drawn):
                highest = max(highest, found[i])
            if highest >= limit:
                return FAR_ID
            put_near_ends(sizes, first, near[total:])
            assign(found[:drawn], words, firsts, by_rank, nodes, count, far[total : total + drawn])
            total += drawn
            edge_counts[hop] = drawn
            if width * total + 12 * count[0] > most_bytes:
                return TOO_MANY
        node_counts[hop + 1] = count[0] - known
        first = known
    return total  # type: ignore[return-value]  # an int64 here and an int to the caller
