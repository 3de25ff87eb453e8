"""Neighbors without replacement: sparse Fisher-Yates, rejection with an exact finish, and the race over a union."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, inlined, kernel, prefetch
from graphkit.rng import GOLDEN, below, word
from storaged.kernel.race import arrival, finish, offer

REJECTIONS = 16
"""Rejections in a row after which a node's draws go on as a race. Part of the law: it never depends on the count."""
NODES_AHEAD, NODES_NEAR, DRAWS_NEAR = 16, 4, 16
_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)


@inlined
def spot(marks: NDArray[np.int64], wanted: Whole, shift: np.uint64) -> Whole:
    """Where ``wanted`` stands in an open-addressing table of keys, or the free place where it would."""
    mask = marks.shape[0] - 1
    at = np.int64((np.uint64(wanted) * GOLDEN) >> shift)
    while marks[at] >= 0 and marks[at] != wanted:
        at = (at + 1) & mask
    return at


@inlined
def _shuffle(
    key: np.uint64,
    start: Whole,
    degree: Whole,
    marks: NDArray[np.int64],
    values: NDArray[np.int64],
    used: NDArray[np.int64],
    shift: np.uint64,
    slots: NDArray[np.int64],
) -> None:
    """The first len(slots) of a Fisher-Yates shuffle of a row, whose array is kept only where it was touched."""
    count = slots.shape[0]
    for k in range(count):
        chosen = k + np.int64(below(word(key, np.uint64(k)), np.uint64(degree - k)))
        there = spot(marks, chosen, shift)
        slots[k] = start + (values[there] if marks[there] >= 0 else chosen)
        here = spot(marks, k, shift)
        moved = values[here] if marks[here] >= 0 else np.int64(k)
        # Position k is never looked at again: what stood there goes to where the chosen one was.
        marks[there] = chosen
        values[there] = moved
        used[k] = there
    for k in range(count):
        marks[used[k]] = -1


@inlined
def _reject(
    key: np.uint64,
    start: Whole,
    degree: Whole,
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    marks: NDArray[np.int64],
    used: NDArray[np.int64],
    shift: np.uint64,
    slots: NDArray[np.int64],
) -> Whole:
    """Successive draws from the row's table, repeats rejected; gives how many were found before too many in a row."""
    count = slots.shape[0]
    found = 0
    refused = 0
    attempt = np.uint64(0)
    n = np.uint64(degree)
    while found < count and refused < REJECTIONS:
        w = word(key, attempt)
        attempt += np.uint64(1)
        column = below(w, n)
        coin = w * n
        entry = hot[start + np.int64(column)]
        high, threshold = np.int64(coin >> _S32), np.int64(entry >> _S32)
        led = entry & _LOW
        kept = np.uint64((high - threshold) >> _SIGN)  # all ones where high < threshold
        taken = led ^ ((column ^ led) & kept)
        if high == threshold and (coin & _LOW) < np.uint64(cold[start + np.int64(column)]):
            taken = column
        at = spot(marks, np.int64(taken), shift)
        if marks[at] >= 0:
            refused += 1
        else:
            marks[at] = np.int64(taken)
            used[found] = at
            slots[found] = start + np.int64(taken)
            found += 1
            refused = 0
    return found


@inlined
def choose_distinct(
    key: np.uint64,
    race_key: np.uint64,
    start: Whole,
    degree: Whole,
    count: Whole,
    weights: NDArray[np.float32],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    marks: NDArray[np.int64],
    values: NDArray[np.int64],
    used: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    mine: NDArray[np.int64],
) -> Whole:
    """Different neighbors of one row that weighs something, or of at most ``count`` edges; gives how many there are.

    Parameters
    ----------
    key, race_key : uint64
        Of the node's position.
    start, degree : int64
        The row.
    count : int64
    weights, hot, cold : float32[slots], uint64[slots], uint32[slots]
        As of `draw_distinct`.
    marks, values : int64[2^k]
        Scratch, at least 4 * count and 16; ``marks`` is -1 everywhere, before and after.
    used, heap_keys, heap_tags : int64[count], float64[count], int32[count]
        Scratch; ``heap_tags`` is 0.
    mine : int64[count], out
        The slots.
    """
    shift = np.uint64(64)
    left = marks.shape[0]
    while left > 1:
        left //= 2
        shift -= np.uint64(1)
    found = np.int64(0)
    if degree <= count:
        for j in range(degree):
            if weights.shape[0] == 0 or weights[start + j] > np.float32(0.0):
                mine[found] = start + j
                found += 1
        return found
    if weights.shape[0] == 0 or hot.shape[0] == 0:
        _shuffle(key, start, degree, marks, values, used, shift, mine)
        return np.int64(count)
    drawn = np.int64(_reject(key, start, degree, hot, cold, marks, used, shift, mine))
    found = drawn
    if drawn < count:
        rest = mine[drawn:]
        rest_keys, rest_tags = heap_keys[: count - drawn], heap_tags[: count - drawn]
        size = np.int64(0)
        for j in range(degree):
            weight = np.float64(weights[start + j])
            if weight > 0.0 and marks[spot(marks, np.int64(j), shift)] < 0:
                at = arrival(word(race_key, np.uint64(j)), weight)
                if size == rest.shape[0] and at > rest_keys[0]:
                    continue
                size = np.int64(offer(rest_keys, rest_tags, rest, rest, size, at, np.int32(0), start + j, start + j))
        finish(rest_keys, rest_tags, rest, rest, size)
        found = drawn + size
    for k in range(drawn):
        marks[used[k]] = -1
    return found


@kernel
def draw_distinct(
    keys: NDArray[np.uint64],
    race_keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    count: np.int64,
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    sums: NDArray[np.float64],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    slots: NDArray[np.int64],
) -> None:
    """Draw different neighbors of one edge type, in the order of successive draws.

    Parameters
    ----------
    keys : uint64[m]
        Of the nodes' positions, under ``key_of(seed, rng.NEIGHBOR, direction, hop)``.
    race_keys : uint64[m]
        The same under the race's key of this edge type; an edge's word is that of its place in the row.
    rows : int64[m]
        -1: no row.
    count : int64
    indptr : int64[rows + 1]
    weights : float32[slots]
        Draw by these; empty: uniformly.
    sums : float64[rows]
        Of the weights; read where there is a table.
    hot, cold : uint64[slots], uint32[slots]
        Per-row tables; empty: all weights are equal and positive.
    slots : int64[m * count], out
        Padded with -1. A row of at most ``count`` edges comes whole, in its own order (by weight: its positive ones).

    Notes
    -----
    By weight, repeats are rejected; after ``REJECTIONS`` in a row the rest is drawn by exponential keys among what was
    not drawn yet. What came before is kept: beginning anew would favour sets that are reached quickly. So the first m
    of n draws are the draws of m.
    """
    m = rows.shape[0]
    bits = np.uint64(4)
    while np.int64(1) << np.int64(bits) < 4 * count:
        bits += np.uint64(1)
    marks = np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64)
    values = np.empty(marks.shape[0], np.int64)
    used = np.empty(count, np.int64)
    heap_keys = np.empty(count, np.float64)
    heap_tags = np.zeros(count, np.int32)
    for i in range(m):
        ahead = i + NODES_AHEAD
        if ahead < m and rows[ahead] >= 0:
            prefetch(indptr, rows[ahead])
        near = i + NODES_NEAR
        if near < m and rows[near] >= 0 and hot.shape[0] > 0:
            near_start = indptr[rows[near]]
            near_degree = indptr[rows[near] + 1] - near_start
            if near_degree > count:
                for k in range(min(int(count), DRAWS_NEAR)):
                    prefetch(hot, near_start + np.int64(below(word(keys[near], np.uint64(k)), np.uint64(near_degree))))
        mine = slots[i * count : (i + 1) * count]
        start = np.int64(0)
        degree = np.int64(0)
        if rows[i] >= 0:
            start = indptr[rows[i]]
            degree = indptr[rows[i] + 1] - start
        found = np.int64(0)
        # Where weights are all alike and positive there is no table, and what a row weighs is not asked.
        if degree <= count or weights.shape[0] == 0 or hot.shape[0] == 0 or sums[rows[i]] > 0.0:
            found = np.int64(
                choose_distinct(keys[i], race_keys[i], start, degree, count, weights, hot, cold, marks, values, used, heap_keys, heap_tags, mine)
            )
        for k in range(found, count):
            mine[k] = -1


@kernel
def race_union(
    race_keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    degrees: NDArray[np.float64],
    count: np.int64,
    mine: np.int32,
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    sizes: NDArray[np.int64],
    keys: NDArray[np.float64],
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> None:
    """Run one edge type's neighbors through the nodes' races over a union of edge types.

    Parameters
    ----------
    race_keys : uint64[m]
        Of the nodes' positions, under the race's key of this edge type.
    rows : int64[m]
        -1: no row.
    degrees : float64[m]
        Over all types of the union: nodes of at most ``count`` edges take them all, in order.
    count : int64
    mine : int32
        Index of this edge type in the union.
    indptr : int64[rows + 1]
    weights : float32[slots]
        Empty: all 1.
    sizes : int64[m], in and out
        Neighbors kept so far.
    keys, which, slots : float64[m * count], int32[m * count], int64[m * count], in and out
        A heap per node, its elements (key, type, slot).
    """
    for i in range(rows.shape[0]):
        if rows[i] < 0:
            continue
        start = indptr[rows[i]]
        own = slice(i * count, (i + 1) * count)
        own_keys, own_which, own_slots = keys[own], which[own], slots[own]
        size = sizes[i]
        for slot in range(start, indptr[rows[i] + 1]):
            weight = 1.0 if weights.shape[0] == 0 else np.float64(weights[slot])
            if not weight > 0.0:
                continue
            if degrees[i] <= count:
                own_which[size] = mine
                own_slots[size] = slot
                size += 1
            else:
                at = arrival(word(race_keys[i], np.uint64(slot - start)), weight)
                if size == count and at > own_keys[0]:
                    continue
                size = np.int64(offer(own_keys, own_which, own_slots, own_slots, size, at, mine, slot, slot))
        sizes[i] = size


@kernel
def finish_union(
    degrees: NDArray[np.float64],
    count: np.int64,
    sizes: NDArray[np.int64],
    keys: NDArray[np.float64],
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> None:
    """Order the nodes' races and pad them with -1; arrays as in `race_union`."""
    for i in range(sizes.shape[0]):
        own = slice(i * count, (i + 1) * count)
        if degrees[i] > count:
            finish(keys[own], which[own], slots[own], slots[own], sizes[i])
        for k in range(sizes[i], count):
            slots[i * count + k] = -1
            which[i * count + k] = -1
