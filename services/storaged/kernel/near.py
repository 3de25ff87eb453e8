"""Edges of a node that satisfy a condition on a column that they are kept in order of: runs of that order, found by bisection, and what runs weigh.

What satisfies the condition along several edge types, each in several runs of the order, is numbered one run after another, types in the order of
the union: a *near edge* is such a number. By weight a run is cut into *pieces*, places of its row's tree of sums; a point of what all pieces weigh
falls on one of them, then goes down from there to an edge. No sum is a difference of others, so a light run beside heavy ones keeps its law.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, f32_at, f64_at, i64_at, inlined, prefetch_at, u32_at
from storaged.kernel.table import ask_ends

_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)
_NODES_AHEAD, _EDGES_AHEAD = 24, 12
FEW = 16
"""Edges of a run that are looked at one by one, instead of down a tree. Part of the law of draws."""
PLACES = 64
"""Of a tree, at most: two of each of the levels that 2^32 edges have."""


@inlined
def _first(keys: np.uint64, start: Whole, stop: Whole, bound: np.int64, beyond: bool) -> Whole:
    """The first of some places, whose keys ascend, with a key of at least ``bound``, or more than it; ``keys``: address of int64[slots]."""
    low, high = np.int64(start), np.int64(stop)
    if low < high:  # runs often reach to an end of the row, and a guess of that is cheaper than a bisection's
        key = i64_at(keys, low)
        if key > bound or (key == bound and not beyond):
            return low
        key = i64_at(keys, high - 1)
        if key < bound or (beyond and key == bound):
            return high
    while low < high:
        middle = (low + high) >> 1
        key = i64_at(keys, middle)
        if key < bound or (beyond and key == bound):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def fetch(
    node: Whole, parts: NDArray[np.int32], rows: NDArray[np.int64], indptr: NDArray[np.uint64], order: NDArray[np.uint64], keys: NDArray[np.uint64],
    weights: NDArray[np.uint64], trees: NDArray[np.uint64],
) -> None:  # fmt: skip
    """Ask for the edges of a node that is some places behind ``node``, and for where those of one further behind begin."""
    ahead = node + _NODES_AHEAD
    if ahead < rows.shape[0] and rows[ahead] >= 0:
        for t in range(indptr.shape[0]):
            ask_ends(indptr[t, parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
    ahead = node + _EDGES_AHEAD
    if ahead < rows.shape[0] and rows[ahead] >= 0:
        part = parts[ahead]
        for t in range(indptr.shape[0]):
            start = np.uint64(i64_at(indptr[t, part], rows[ahead]))
            prefetch_at(keys[t, part] + (start << _EIGHTS))
            prefetch_at(order[t, part] + (start << _FOURS))
            if weights[t, part] > 0:
                prefetch_at(weights[t, part] + (start << _FOURS))
                prefetch_at(trees[t, part] + (start << _EIGHTS))


@inlined
def _mass(place: Whole, start: Whole, size: Whole, order: np.uint64, weights: np.uint64, tree: np.uint64) -> float:
    """What a place of a row's tree weighs: an edge from ``size`` on, the sum of two further places before."""
    if place >= size:
        return np.float64(f32_at(weights, u32_at(order, start + place - size)))
    return np.float64(f64_at(tree, start + place))


@inlined
def _down(place: Whole, point: float, start: Whole, size: Whole, order: np.uint64, weights: np.uint64, tree: np.uint64) -> Whole:
    """The edge, by its place in its row's order, that a point of a place of the tree falls on; never one of weight 0."""
    at, rest = np.int64(place), point
    while at < size:
        left = _mass(2 * at, start, size, order, weights, tree)
        at = 2 * at
        if rest >= left and _mass(at + 1, start, size, order, weights, tree) > 0.0:
            rest -= left
            at += 1
    return np.int64(at - size)


@inlined
def heavy(
    at: Whole,
    firsts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    types: NDArray[np.int64],
    part: Whole,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
) -> float:
    """The weight of a near edge."""
    s, place = np.int64(0), np.int64(at)
    while place >= sizes[s]:
        place -= sizes[s]
        s += 1
    if weights[types[s], part] == 0:
        return 1.0
    return np.float64(f32_at(weights[types[s], part], u32_at(order[types[s], part], firsts[s] + place)))


@inlined
def by_weight(
    point: float,
    pieces: Whole,
    piece_of: NDArray[np.int64],
    piece_places: NDArray[np.int64],
    sums: NDArray[np.float64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    firsts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    before: NDArray[np.int64],
    types: NDArray[np.int64],
    part: Whole,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    trees: NDArray[np.uint64],
) -> Whole:
    """The near edge that a point of 0 .. what all pieces weigh falls on."""
    chosen = np.int64(0)
    for p in range(pieces - 1):  # all of them: where to stop would be guessed wrongly every other time, at the price of several comparisons
        chosen += np.int64(point >= sums[p])
    left = point - sums[chosen - 1] if chosen > 0 else point
    s, place = piece_of[chosen], piece_places[chosen]
    t = types[s]
    if place < 0:  # every edge alike
        return np.int64(before[s] + min(np.int64(left), sizes[s] - 1))
    found = _down(place, left, starts[s], degrees[s], order[t, part], weights[t, part], trees[t, part])
    return np.int64(before[s] + starts[s] + found - firsts[s])


@inlined
def _cut(first: Whole, size: Whole, degree: Whole, places: NDArray[np.int64], to: Whole) -> Whole:
    """The places of a tree that a run of its row's order consists of, put behind ``to`` others; gives how many there are then."""
    count = np.int64(to)
    low, high = np.int64(first + degree), np.int64(first + size + degree)
    while low < high:
        if low & 1:
            places[count] = low
            count += 1
            low += 1
        if high & 1:
            high -= 1
            places[count] = high
            count += 1
        low >>= 1
        high >>= 1
    return count


@inlined
def runs_of(
    part: Whole, row: Whole, types: NDArray[np.int64], lows: NDArray[np.int64], highs: NDArray[np.int64], indptr: NDArray[np.uint64],
    order: NDArray[np.uint64], keys: NDArray[np.uint64], weights: NDArray[np.uint64], trees: NDArray[np.uint64], starts: NDArray[np.int64],
    degrees: NDArray[np.int64], firsts: NDArray[np.int64], sizes: NDArray[np.int64], before: NDArray[np.int64], piece_of: NDArray[np.int64],
    piece_places: NDArray[np.int64], sums: NDArray[np.float64],
) -> tuple[int, int, float, bool]:  # fmt: skip
    """Find the near edges of a row: how many there are, in how many pieces that weigh something, what they weigh, and whether each weighs 1 by its
    type. ``sums``: what the pieces up to each weigh."""
    near, pieces, total, even = np.int64(0), np.int64(0), 0.0, True
    for s in range(types.shape[0]):
        t = types[s]
        starts[s] = i64_at(indptr[t, part], row)
        stop = i64_at(indptr[t, part], row + 1)
        degrees[s] = stop - starts[s]
        firsts[s] = _first(keys[t, part], starts[s], stop, lows[s], False)
        sizes[s] = _first(keys[t, part], firsts[s], stop, highs[s], True) - firsts[s]
        before[s] = near
        near += sizes[s]
        if sizes[s] == 0:
            continue
        if weights[t, part] == 0:
            total += np.float64(sizes[s])
            piece_of[pieces], piece_places[pieces], sums[pieces] = np.int64(s), np.int64(-1), total
            pieces += 1
            continue
        even = False
        end = np.int64(_cut(firsts[s] - starts[s], sizes[s], degrees[s], piece_places, pieces) if sizes[s] > FEW else pieces + sizes[s])
        if sizes[s] <= FEW:
            for at in range(sizes[s]):
                piece_places[pieces + at] = degrees[s] + firsts[s] - starts[s] + at
        for at in range(pieces, end):
            place = piece_places[at]
            mass = _mass(place, starts[s], degrees[s], order[t, part], weights[t, part], trees[t, part])
            total += mass
            piece_of[pieces], piece_places[pieces], sums[pieces] = np.int64(s), place, total
            pieces += np.int64(mass > 0.0)
    return near, pieces, total, even  # type: ignore[return-value]  # compiled, they are ints
