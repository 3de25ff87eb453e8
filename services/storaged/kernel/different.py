"""Different neighbors: successive draws of nodes, each by all edges to it together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import CHECK_MASK, Whole, inlined, is_set, kernel
from graphkit.rng import below, word
from storaged.kernel.distinct import REJECTIONS
from storaged.kernel.race import arrival, finish, offer
from storaged.kernel.shuffle import spot

_S32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@inlined
def _reject(
    key: np.uint64,
    start: Whole,
    degree: Whole,
    nbr: NDArray[np.int64],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    marks: NDArray[np.int64],
    used: NDArray[np.int64],
    shift: np.uint64,
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> Whole:
    """Successive edges, those to a neighbor that there is already rejected; gives how many were found before too many in a row."""
    found = 0
    refused = 0
    attempt = np.uint64(0)
    n = np.uint64(degree)
    while found < slots.shape[0] and refused < REJECTIONS:
        w = word(key, attempt)
        attempt += np.uint64(1)
        if attempt & np.uint64(CHECK_MASK) == np.uint64(0) and is_set(stop):
            break
        column = start + np.int64(below(w, n))
        slot: Whole = column
        if hot.shape[0] > 0:
            coin = w * n
            entry = hot[column]
            high, threshold = coin >> _S32, entry >> _S32
            if high > threshold or (high == threshold and (coin & _LOW) >= np.uint64(cold[column])):
                slot = start + np.int64(entry & _LOW)
        at = spot(marks, np.int64(nbr[slot]), shift)
        if marks[at] >= 0:
            refused += 1
        else:
            marks[at] = nbr[slot]
            used[found] = at
            slots[found] = slot
            found += 1
            refused = 0
    return found


@inlined
def _race(
    race_key: np.uint64,
    start: Whole,
    end: Whole,
    nbr: NDArray[np.int64],
    weights: NDArray[np.float32],
    marks: NDArray[np.int64],
    shift: np.uint64,
    keys: NDArray[np.float64],
    tags: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> Whole:
    """A race of all edges to neighbors that are not marked, where the first edge to each counts; gives how many came in."""
    size = np.int64(0)
    slot, turn = start, 0
    while slot < end:
        turn += 1
        if turn & CHECK_MASK == 0 and is_set(stop):
            return size
        node = nbr[slot]
        first = np.inf
        chosen = slot
        while slot < end and nbr[slot] == node:  # the edges to a neighbor lie side by side
            weight = 1.0 if weights.shape[0] == 0 else np.float64(weights[slot])
            if weight > 0.0:
                at = arrival(word(race_key, np.uint64(slot - start)), weight)
                if at < first:
                    first = at
                    chosen = slot
            slot += 1
        if first < np.inf and not (size == slots.shape[0] and first > keys[0]) and marks[spot(marks, node, shift)] < 0:
            size = np.int64(offer(keys, tags, slots, slots, size, first, np.int32(0), chosen, chosen))
    finish(keys, tags, slots, slots, size, stop)
    return size


@kernel
def draw_different(
    keys: NDArray[np.uint64],
    race_keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    count: np.int64,
    indptr: NDArray[np.int64],
    nbr: NDArray[np.int64],
    weights: NDArray[np.float32],
    sums: NDArray[np.float64],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw edges of one edge type to different neighbors, in the order of successive draws.

    Parameters
    ----------
    keys : uint64[m]
        Of the nodes' positions, under ``key_of(seed, rng.NEIGHBOR, direction, hop)``.
    race_keys : uint64[m]
        The same under the race's key of this edge type; an edge's word is that of its place in the row.
    rows : int64[m]
        -1: no row.
    count : int64
    indptr, nbr : int64[rows + 1], int64[slots]
        Neighbors ascend within a row.
    weights : float32[slots]
        Draw by these; empty: uniformly over edges.
    sums : float64[rows]
        Of the weights; read where there is a table.
    hot, cold : uint64[slots], uint32[slots]
        Per-row tables; empty: all edges are alike.
    slots : int64[m * count], out
        Padded with -1, where a row has fewer neighbors (by weight: of positive weight).
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    An edge is drawn by weight among those to neighbors that were not drawn: so a neighbor is drawn by the weight of all edges
    to it, and the edge by its own among them. Edges to neighbors that were drawn are rejected; after ``REJECTIONS`` in a row
    the rest follows by exponential keys, the earliest of which counts for each neighbor: it is an exponential variable of
    the neighbor's weight. What came before is kept. Neither depends on ``count``, so the first m of n are the draws of m.
    """
    bits = np.uint64(4)
    while np.int64(1) << np.int64(bits) < 4 * count:
        bits += np.uint64(1)
    shift = np.uint64(64) - bits
    marks = np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64)
    used = np.empty(count, np.int64)
    heap_keys = np.empty(count, np.float64)
    heap_tags = np.zeros(count, np.int32)
    for i in range(rows.shape[0]):
        mine = slots[i * count : (i + 1) * count]
        found = np.int64(0)
        if rows[i] >= 0:
            start, end = indptr[rows[i]], indptr[rows[i] + 1]
            if end > start and (hot.shape[0] == 0 or sums[rows[i]] > 0.0):
                drawn = np.int64(_reject(keys[i], start, end - start, nbr, hot, cold, marks, used, shift, mine, stop))
                found = drawn
                if drawn < count:
                    left = count - drawn
                    own = heap_keys[:left], heap_tags[:left], mine[drawn:]
                    found += np.int64(_race(race_keys[i], start, end, nbr, weights, marks, shift, *own, stop))
                if is_set(stop):
                    return
                for k in range(drawn):
                    marks[used[k]] = -1
        for k in range(found, count):
            mine[k] = -1
