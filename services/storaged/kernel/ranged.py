"""Neighbors under a condition on a column that each node's edges are kept in order of: draws from runs of that order, as `near` finds them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import CHECK_MASK, Whole, inlined, is_set, kernel, u32_at
from graphkit.rng import below, derive, unit, word
from graphkit.successive import plus
from storaged.kernel.distinct import REJECTIONS
from storaged.kernel.near import FEW, PLACES, by_weight, fetch, heavy, runs_of
from storaged.kernel.race import arrival, finish, offer
from storaged.kernel.shuffle import spot
from storaged.kernel.timed import shuffled

_NONE, _ONE = np.uint64(0), np.uint64(1)


@inlined
def _eliminated(
    key: np.uint64,
    near: Whole,
    firsts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    types: NDArray[np.int64],
    part: Whole,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    sums: NDArray[np.float64],
    masses: NDArray[np.float64],
    drawn: NDArray[np.int64],
) -> None:
    """Different near edges by weight, of few that all weigh something: what was drawn weighs nothing any more, and the rest is summed anew."""
    for at in range(near):
        masses[at] = heavy(np.int64(at), firsts, sizes, types, part, order, weights)
    for k in range(drawn.shape[0]):
        total = 0.0
        for at in range(near):
            total += masses[at]
            sums[at] = total
        point = unit(word(key, np.uint64(k))) * total
        chosen = np.int64(0)
        for at in range(near):
            chosen += np.int64(point >= sums[at])
        drawn[k] = chosen
        masses[chosen] = 0.0


@inlined
def _successive(
    key: np.uint64,
    race_key: np.uint64,
    near: Whole,
    pieces: Whole,
    total: float,
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
    shift: np.uint64,
    marks: NDArray[np.int64],
    used: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    drawn: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> Whole:
    """Different near edges by weight: draws, repeats rejected, and after too many in a row a race among the rest; gives how many there are."""
    count = drawn.shape[0]
    found, refused, attempt = np.int64(0), 0, np.int64(0)
    while found < count and refused < REJECTIONS:
        point = unit(word(key, np.uint64(attempt))) * total
        chosen = np.int64(
            by_weight(
                point, pieces, piece_of, piece_places, sums, starts, degrees, firsts, sizes, before, types, part, order, weights, trees
            )
        )  # fmt: skip
        attempt += 1
        if attempt & CHECK_MASK == 0 and is_set(stop):
            return found
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
            if at & CHECK_MASK == CHECK_MASK and is_set(stop):
                return kept
            weight = heavy(np.int64(at), firsts, sizes, types, part, order, weights)
            if weight > 0.0 and marks[spot(marks, np.int64(at), shift)] < 0:
                arrives = arrival(word(race_key, np.uint64(at)), weight)
                if size == heap.shape[0] and arrives > heap[0]:
                    continue
                size = np.int64(offer(heap, tags, rest, rest, size, arrives, np.int32(0), np.int64(at), np.int64(at)))
        finish(heap, tags, rest, rest, size, stop)
        found = np.int64(kept + size)
    for k in range(kept):
        marks[used[k]] = -1
    return found


@kernel
def _left(drawn: NDArray[np.int64], found: Whole, near: Whole, firsts: NDArray[np.int64], sizes: NDArray[np.int64], types: NDArray[np.int64],
          part: Whole, order: NDArray[np.uint64], weights: NDArray[np.uint64], stop: NDArray[np.int64]) -> float:  # fmt: skip
    """What the near edges weigh that were not drawn."""
    taken = np.zeros((near >> 6) + 1, np.uint64)
    for k in range(found):
        taken[drawn[k] >> 6] |= _ONE << np.uint64(drawn[k] & 63)
    high, low = 0.0, 0.0
    for at in range(near):
        if at & CHECK_MASK == CHECK_MASK and is_set(stop):
            break
        if taken[at >> 6] >> np.uint64(at & 63) & _ONE == _NONE:
            high, low = plus(high, low, heavy(np.int64(at), firsts, sizes, types, part, order, weights))
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
    stop: NDArray[np.int64],
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
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    Without replacement nodes with at most ``count`` near edges have all of them (by weight: the positive ones) by (edge type, value). Of at most
    ``FEW``, all of them positive, each draw is among those that are left. Of others repeats are rejected; after ``REJECTIONS`` in a row the rest is
    drawn by exponential keys among what was not drawn yet. Beyond that the first m of n draws are the draws of m.
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
    sums, masses, drawn = np.empty(runs * PLACES, np.float64), np.empty(FEW, np.float64), np.empty(count, np.int64)
    for i in range(rows.shape[0]):
        fetch(i, parts, rows, indptr, order, keys, weights, trees)
        part, near, pieces, total, even, found = parts[i], 0, 0, 0.0, True, np.int64(0)
        if rows[i] >= 0:
            near, pieces, total, even = runs_of(
                part, rows[i], types, lows, highs, indptr, order, keys, weights, trees, starts, degrees, firsts, sizes, before,
                piece_of, piece_places, sums,
            )  # fmt: skip
        totals[i], counts[i], rests[i] = total, np.float64(near), 0.0
        if near > 0 and total > 0.0:
            own = derive(key, np.uint64(positions[i]))
            if replace:
                found = np.int64(count)
                for k in range(count):
                    if k & CHECK_MASK == CHECK_MASK and is_set(stop):
                        return
                    w = word(own, np.uint64(k))
                    if even:
                        drawn[k] = np.int64(below(w, np.uint64(near)))
                    else:
                        drawn[k] = by_weight(
                            unit(w) * total, pieces, piece_of, piece_places, sums, starts, degrees, firsts, sizes, before, types, part,
                            order, weights, trees,
                        )  # fmt: skip
            elif near <= count:
                for at in range(near):
                    if even or heavy(np.int64(at), firsts, sizes, types, part, order, weights) > 0.0:
                        drawn[found] = at
                        found += 1
            elif even:
                shuffled(own, near, count, shift, marks, values, used, drawn, stop)
                found = np.int64(count)
            elif near <= FEW and pieces == near:  # each piece is an edge, and none weighs nothing
                _eliminated(own, near, firsts, sizes, types, part, order, weights, sums, masses, drawn)
                found = np.int64(count)
            else:
                found = np.int64(_successive(
                    own, derive(race_key, np.uint64(positions[i])), near, pieces, total, piece_of, piece_places, sums, starts, degrees, firsts,
                    sizes, before, types, part, order, weights, trees, shift, marks, used, heap_keys, heap_tags, drawn, stop,
                ))  # fmt: skip
            if is_set(stop):
                return
            if want_rests and not replace and near > count:
                rests[i] = _left(drawn, found, near, firsts, sizes, types, part, order, weights, stop)
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
