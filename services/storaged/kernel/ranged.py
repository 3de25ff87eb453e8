"""Neighbors under a condition on a column that each node's edges are kept in order of: runs of that order, found by bisection, and draws from them.

What satisfies the condition along several edge types, each in several runs of the order, is numbered one run after another, types in the order of
the union: a *near edge* is such a number. By weight a run is cut into places of its row's tree of sums; a draw takes a place by what it weighs, then
goes down from there to an edge. No sum is a difference of others, so a light run beside heavy ones keeps its law.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, f32_at, f64_at, i64_at, inlined, kernel, prefetch_at, u32_at
from graphkit.rng import below, derive, unit, word
from graphkit.successive import plus
from storaged.kernel.distinct import REJECTIONS, spot
from storaged.kernel.race import arrival, finish, offer
from storaged.kernel.timed import shuffled

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
def _fetch(
    part: Whole, row: Whole, indptr: NDArray[np.uint64], order: NDArray[np.uint64], keys: NDArray[np.uint64], weights: NDArray[np.uint64],
    trees: NDArray[np.uint64],
) -> None:  # fmt: skip
    """Ask for the edges of a row."""
    start = np.uint64(i64_at(indptr[part], row))
    prefetch_at(keys[part] + (start << _EIGHTS))
    prefetch_at(order[part] + (start << _FOURS))
    if weights[part] > 0:
        prefetch_at(weights[part] + (start << _FOURS))
        prefetch_at(trees[part] + (start << _EIGHTS))


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
def _heavy(
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
def _by_weight(
    point: float,
    pieces: Whole,
    piece_of: NDArray[np.int64],
    piece_places: NDArray[np.int64],
    masses: NDArray[np.float64],
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
    """The near edge that a point of 0 .. the sum of all masses falls on."""
    chosen, rest, left = np.int64(-1), point, 0.0
    for p in range(pieces):
        if masses[p] > 0.0:
            chosen, left = np.int64(p), rest
            if rest < masses[p]:
                break
            rest -= masses[p]
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
def _runs_of(
    part: Whole, row: Whole, types: NDArray[np.int64], lows: NDArray[np.int64], highs: NDArray[np.int64], indptr: NDArray[np.uint64],
    order: NDArray[np.uint64], keys: NDArray[np.uint64], weights: NDArray[np.uint64], trees: NDArray[np.uint64], starts: NDArray[np.int64],
    degrees: NDArray[np.int64], firsts: NDArray[np.int64], sizes: NDArray[np.int64], before: NDArray[np.int64], piece_of: NDArray[np.int64],
    piece_places: NDArray[np.int64], masses: NDArray[np.float64],
) -> tuple[int, int, float, bool]:  # fmt: skip
    """Find the near edges of a row: how many there are, in how many pieces, what they weigh, and whether each weighs 1 by its type."""
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
            piece_of[pieces], piece_places[pieces], masses[pieces] = np.int64(s), np.int64(-1), np.float64(sizes[s])
            total += masses[pieces]
            pieces += 1
            continue
        even = False
        end = np.int64(_cut(firsts[s] - starts[s], sizes[s], degrees[s], piece_places, pieces) if sizes[s] > FEW else pieces + sizes[s])
        if sizes[s] <= FEW:
            for at in range(sizes[s]):
                piece_places[pieces + at] = degrees[s] + firsts[s] - starts[s] + at
        while pieces < end:
            piece_of[pieces] = s
            masses[pieces] = _mass(piece_places[pieces], starts[s], degrees[s], order[t, part], weights[t, part], trees[t, part])
            total += masses[pieces]
            pieces += 1
    return near, pieces, total, even  # type: ignore[return-value]  # compiled, they are ints


@inlined
def _successive(
    key: np.uint64,
    race_key: np.uint64,
    near: Whole,
    pieces: Whole,
    total: float,
    piece_of: NDArray[np.int64],
    piece_places: NDArray[np.int64],
    masses: NDArray[np.float64],
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
    shift: np.uint64,
    marks: NDArray[np.int64],
    used: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    drawn: NDArray[np.int64],
) -> Whole:
    """Different near edges by weight: draws, repeats rejected, and after too many in a row a race among the rest; gives how many there are."""
    count = drawn.shape[0]
    found, refused, attempt = np.int64(0), 0, np.int64(0)
    while found < count and refused < REJECTIONS:
        point = unit(word(key, np.uint64(attempt))) * total
        chosen = np.int64(
            _by_weight(
                point, pieces, piece_of, piece_places, masses, starts, degrees, firsts, sizes, before, types, part, order, weights, trees
            )
        )  # fmt: skip
        attempt += 1
        there = np.int64(spot(marks, chosen, shift))
        if marks[there] >= 0:
            refused += 1
        else:
            marks[there] = chosen
            used[found] = there
            drawn[found] = chosen
            found += 1
            refused = 0
    kept = found
    if kept < count:
        heap, tags, rest = heap_keys[: count - kept], heap_tags[: count - kept], drawn[kept:]
        size = np.int64(0)
        for at in range(near):
            weight = _heavy(np.int64(at), firsts, sizes, types, part, order, weights)
            if weight > 0.0 and marks[spot(marks, np.int64(at), shift)] < 0:
                arrives = arrival(word(race_key, np.uint64(at)), weight)
                if size == heap.shape[0] and arrives > heap[0]:
                    continue
                size = np.int64(offer(heap, tags, rest, rest, size, arrives, np.int32(0), np.int64(at), np.int64(at)))
        finish(heap, tags, rest, rest, size)
        found = np.int64(kept + size)
    for k in range(kept):
        marks[used[k]] = -1
    return found


@kernel
def _left(drawn: NDArray[np.int64], found: Whole, near: Whole, firsts: NDArray[np.int64], sizes: NDArray[np.int64], types: NDArray[np.int64],
          part: Whole, order: NDArray[np.uint64], weights: NDArray[np.uint64]) -> float:  # fmt: skip
    """What the near edges weigh that were not drawn."""
    taken = np.sort(drawn[:found])
    met, high, low = np.int64(0), 0.0, 0.0
    for at in range(near):
        if met < found and taken[met] == at:
            met += 1
        else:
            high, low = plus(high, low, _heavy(np.int64(at), firsts, sizes, types, part, order, weights))
    return high + low


@kernel
def draw_ranged(
    key: np.uint64,
    race_key: np.uint64,
    positions: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    count: np.int64,
    replace: bool,
    want_rests: bool,
    types: NDArray[np.int64],
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
    indptr: NDArray[np.uint64],
    order: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    trees: NDArray[np.uint64],
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
    totals: NDArray[np.float64],
    counts: NDArray[np.float64],
    rests: NDArray[np.float64],
) -> None:
    """Draw from the edges of each node whose keys are in some runs.

    Parameters
    ----------
    key, race_key : uint64
        ``key_of(seed, rng.RANGE, direction, hop, 0)``, and the same with 1; draw k of a node takes word k of its position's key under the first.
    positions : int64[m]
    parts, rows : int32[m], int64[m]
        As of `storaged.kernel.rows.locate`; a node of row -1 has no edges.
    count : int64
        At least 1.
    replace : bool
    want_rests : bool
        Without replacement: whether ``rests`` are asked for.
    types, lows, highs : int64[runs]
        The edge type of each run, as a place in the union, ascending; its least and its largest key. Runs of a type ascend and are apart.
    indptr, order, keys : uint64[types, P]
        Addresses of int64[rows + 1], uint32[slots] and int64[slots].
    weights, trees : uint64[types, P]
        Addresses of float32[slots] and float64[slots], as `storaged.store.ordered.Near` has the latter; 0: every edge weighs 1.
    which : int32[m * count], out
        Edge types, as places in the union; -1 for none. Empty where there is one type.
    slots : int64[m * count], out
        -1 for none.
    totals, counts : float64[m], out
        What the near edges of each node weigh, and how many there are.
    rests : float64[m], out
        What those of them weigh that were not drawn; 0 where there are at most ``count``.

    Notes
    -----
    Without replacement nodes with at most ``count`` near edges have all of them (by weight: the positive ones) by (edge type, value). Repeats are
    rejected; after ``REJECTIONS`` in a row the rest is drawn by exponential keys among what was not drawn yet. Beyond that the first m of n draws
    are the draws of m.
    """
    runs = types.shape[0]
    bits = np.uint64(4)
    while np.int64(1) << np.int64(bits) < 4 * count:
        bits += np.uint64(1)
    shift = np.uint64(64) - bits
    marks = np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64)
    values, used = np.empty(marks.shape[0], np.int64), np.empty(count, np.int64)
    heap_keys, heap_tags = np.empty(count, np.float64), np.zeros(count, np.int32)
    starts, degrees, firsts = np.empty(runs, np.int64), np.empty(runs, np.int64), np.empty(runs, np.int64)
    sizes, before = np.empty(runs, np.int64), np.empty(runs, np.int64)
    piece_of, piece_places = np.empty(runs * PLACES, np.int64), np.empty(runs * PLACES, np.int64)
    masses = np.empty(runs * PLACES, np.float64)
    drawn = np.empty(count, np.int64)
    for i in range(rows.shape[0]):
        ahead = i + _NODES_AHEAD
        if ahead < rows.shape[0] and rows[ahead] >= 0:
            for t in range(indptr.shape[0]):
                prefetch_at(indptr[t, parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
        ahead = i + _EDGES_AHEAD
        if ahead < rows.shape[0] and rows[ahead] >= 0:
            for t in range(indptr.shape[0]):
                _fetch(parts[ahead], rows[ahead], indptr[t], order[t], keys[t], weights[t], trees[t])
        part, near, pieces, total, even, found = parts[i], 0, 0, 0.0, True, np.int64(0)
        if rows[i] >= 0:
            near, pieces, total, even = _runs_of(
                part, rows[i], types, lows, highs, indptr, order, keys, weights, trees, starts, degrees, firsts, sizes, before,
                piece_of, piece_places, masses,
            )  # fmt: skip
        totals[i], counts[i], rests[i] = total, np.float64(near), 0.0
        if near > 0 and total > 0.0:
            own = derive(key, np.uint64(positions[i]))
            if replace:
                found = np.int64(count)
                for k in range(count):
                    w = word(own, np.uint64(k))
                    if even:
                        drawn[k] = np.int64(below(w, np.uint64(near)))
                    else:
                        drawn[k] = _by_weight(
                            unit(w) * total, pieces, piece_of, piece_places, masses, starts, degrees, firsts, sizes, before, types, part,
                            order, weights, trees,
                        )  # fmt: skip
            elif near <= count:
                for at in range(near):
                    if even or _heavy(np.int64(at), firsts, sizes, types, part, order, weights) > 0.0:
                        drawn[found] = at
                        found += 1
            elif even:
                shuffled(own, near, count, shift, marks, values, used, drawn)
                found = np.int64(count)
            else:
                found = np.int64(_successive(
                    own, derive(race_key, np.uint64(positions[i])), near, pieces, total, piece_of, piece_places, masses, starts, degrees, firsts,
                    sizes, before, types, part, order, weights, trees, shift, marks, used, heap_keys, heap_tags, drawn,
                ))  # fmt: skip
            if want_rests and not replace and near > count:
                rests[i] = _left(drawn, found, near, firsts, sizes, types, part, order, weights)
        for k in range(count):
            kind, place = np.int64(-1), np.int64(-1)
            if k < found:
                run, place = np.int64(0), np.int64(drawn[k])
                while place >= sizes[run]:
                    place -= sizes[run]
                    run += 1
                kind, place = types[run], np.int64(u32_at(order[types[run], part], firsts[run] + place))
            slots[i * count + k] = place
            if which.shape[0] > 0:
                which[i * count + k] = kind
