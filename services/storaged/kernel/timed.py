"""Neighbors that are seen until a time: a beginning of each row's order by time, found by bisection, and draws from it.

The edges that a node sees along several edge types are numbered one type's after another's, each type's from the earliest to the latest: a
*seen edge* is such a number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import CHECK_MASK, Whole, f32_at, f64_at, i64_at, inlined, is_set, kernel, u32_at
from graphkit.rng import below, derive, unit, word
from storaged.kernel.distinct import REJECTIONS
from storaged.kernel.race import arrival, finish, offer
from storaged.kernel.shuffle import spot
from storaged.kernel.table import ask_ends

UNIFORM, WEIGHTED, LAST = 0, 1, 2
"""How edges are drawn from those seen: alike, by weight, or the latest of them."""
_EIGHTS = np.uint64(3)
_NODES_AHEAD = 16


@inlined
def seen_of(start: Whole, stop: Whole, limit: np.int64, when: np.uint64, order: np.uint64) -> Whole:
    """How many edges of a row have a time of at most ``limit``; ``when`` and ``order`` are addresses of int64 and uint32[slots]."""
    low, high = np.int64(start), np.int64(stop)
    while low < high:
        middle = (low + high) >> 1
        if i64_at(when, u32_at(order, middle)) <= limit:
            low = middle + 1
        else:
            high = middle
    return low - start


@inlined
def _reached(sums: np.uint64, start: Whole, size: Whole, point: float) -> Whole:
    """The first of ``size`` places whose running sum is beyond ``point``; of a point that none is beyond the first that has the whole sum."""
    whole = f64_at(sums, start + size - 1)
    low, high = np.int64(0), np.int64(size) - 1
    while low < high:
        middle = (low + high) >> 1
        here = f64_at(sums, start + middle)
        if here > point or here == whole:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _heavy(
    at: Whole, starts: NDArray[np.int64], sizes: NDArray[np.int64], part: Whole, order: NDArray[np.uint64], weights: NDArray[np.uint64]
) -> float:
    """The weight of a seen edge."""
    t, place = np.int64(0), np.int64(at)
    while place >= sizes[t]:
        place -= sizes[t]
        t += 1
    if weights[t, part] == 0:
        return 1.0
    return np.float64(f32_at(weights[t, part], u32_at(order[t, part], starts[t] + place)))


@inlined
def _by_weight(
    point: float, starts: NDArray[np.int64], sizes: NDArray[np.int64], masses: NDArray[np.float64], part: Whole, sums: NDArray[np.uint64]
) -> Whole:
    """The seen edge that a point of 0 .. the sum of all masses falls on."""
    base, chosen, before = np.int64(0), np.int64(-1), np.int64(0)
    rest, left = point, 0.0
    for t in range(sizes.shape[0]):
        if masses[t] > 0.0:
            chosen, before, left = np.int64(t), base, rest
            if rest < masses[t]:
                break
            rest -= masses[t]
        base += sizes[t]
    if sums[chosen, part] == 0:
        return np.int64(before + min(np.int64(left), sizes[chosen] - 1))
    return np.int64(before + _reached(sums[chosen, part], starts[chosen], sizes[chosen], left))


@inlined
def _latest(
    count: Whole,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    part: Whole,
    when: NDArray[np.uint64],
    order: NDArray[np.uint64],
    drawn: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> Whole:
    """The latest ``count`` seen edges, the latest first; of equal times those of a later edge type, then of a later slot, come first.

    ``sizes`` are used up.
    """
    found = np.int64(0)
    while found < count:
        if found & CHECK_MASK == CHECK_MASK and is_set(stop):
            break
        first, newest = np.int64(-1), np.int64(0)
        for t in range(sizes.shape[0]):
            if sizes[t] > 0:
                here = i64_at(when[t, part], u32_at(order[t, part], starts[t] + sizes[t] - 1))
                if first < 0 or here >= newest:
                    first, newest = np.int64(t), here
        if first < 0:
            break
        sizes[first] -= 1
        # Numbered by place alone: whose it is goes into the high half, for sizes change.
        drawn[found] = first << np.int64(32) | sizes[first]
        found += 1
    return found


@inlined
def shuffled(
    key: np.uint64,
    seen: Whole,
    count: Whole,
    shift: np.uint64,
    marks: NDArray[np.int64],
    values: NDArray[np.int64],
    used: NDArray[np.int64],
    drawn: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """The first ``count`` of a Fisher-Yates shuffle of the seen edges, whose array is kept only where it was touched."""
    for k in range(count):
        if k & CHECK_MASK == CHECK_MASK and is_set(stop):
            return
        chosen = k + np.int64(below(word(key, np.uint64(k)), np.uint64(seen - k)))
        here = np.int64(spot(marks, np.int64(k), shift))
        moved = values[here] if marks[here] >= 0 else np.int64(k)
        there = np.int64(spot(marks, np.int64(chosen), shift))
        drawn[k] = values[there] if marks[there] >= 0 else np.int64(chosen)
        marks[there], values[there] = chosen, moved
        used[k] = there
    for k in range(count):
        marks[used[k]] = -1


@inlined
def _successive(
    key: np.uint64,
    race_key: np.uint64,
    seen: Whole,
    total: float,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    masses: NDArray[np.float64],
    part: Whole,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    sums: NDArray[np.uint64],
    shift: np.uint64,
    marks: NDArray[np.int64],
    used: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    drawn: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> Whole:
    """Different seen edges by weight: draws, repeats rejected, and after too many in a row a race among the rest; gives how many there are."""
    count = drawn.shape[0]
    found, refused, attempt = np.int64(0), 0, np.int64(0)
    while found < count and refused < REJECTIONS:
        chosen = np.int64(_by_weight(unit(word(key, np.uint64(attempt))) * total, starts, sizes, masses, part, sums))
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
        keys, tags, rest = heap_keys[: count - kept], heap_tags[: count - kept], drawn[kept:]
        size = np.int64(0)
        for at in range(seen):
            if at & CHECK_MASK == CHECK_MASK and is_set(stop):
                return kept
            weight = _heavy(np.int64(at), starts, sizes, part, order, weights)
            if weight > 0.0 and marks[spot(marks, np.int64(at), shift)] < 0:
                arrives = arrival(word(race_key, np.uint64(at)), weight)
                if size == keys.shape[0] and arrives > keys[0]:
                    continue
                size = np.int64(offer(keys, tags, rest, rest, size, arrives, np.int32(0), np.int64(at), np.int64(at)))
        finish(keys, tags, rest, rest, size, stop)
        found = np.int64(kept + size)
    for k in range(kept):
        marks[used[k]] = -1
    return found


@kernel
def draw_timed(
    key: np.uint64,
    race_key: np.uint64,
    positions: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    limits: NDArray[np.int64],
    count: np.int64,
    replace: bool,
    how: np.int64,
    indptr: NDArray[np.uint64],
    when: NDArray[np.uint64],
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    sums: NDArray[np.uint64],
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw from the edges that each node sees.

    Parameters
    ----------
    key, race_key : uint64
        ``key_of(seed, rng.SEEN, direction, hop, 0)``, and the same with 1; draw k of a node takes word k of its position's key under the first.
    positions : int64[m]
    parts, rows : int32[m], int64[m]
        As of `storaged.kernel.rows.locate`; a node of row -1 sees nothing.
    limits : int64[types, m]
        The last time that each node sees along each edge type, as `graphkit.times.limits_of` has it.
    count : int64
        At least 1.
    replace : bool
        With replacement; ``LAST`` is without.
    how : int64
        ``UNIFORM``, ``WEIGHTED`` or ``LAST``.
    indptr, when, order : uint64[types, P]
        Addresses of int64[rows + 1], int64[slots] and uint32[slots].
    weights, sums : uint64[types, P]
        Addresses of float32[slots] and of the running sums, float64[slots]; 0: every edge weighs 1. Read where ``WEIGHTED``.
    which : int32[m * count], out
        Edge types, as places in the union; -1 for none. Empty where there is one type.
    slots : int64[m * count], out
        -1 for none.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    Without replacement nodes that see at most ``count`` edges have all of them (by weight: the positive ones) by (edge type, time). By weight a draw
    is the inverse of the running sums, and repeats are rejected; after ``REJECTIONS`` in a row the rest is drawn by exponential keys among what
    was not drawn yet. Beyond that the first m of n draws are the draws of m.
    """
    types = indptr.shape[0]
    bits = np.uint64(4)
    while np.int64(1) << np.int64(bits) < 4 * count:
        bits += np.uint64(1)
    shift = np.uint64(64) - bits
    marks = np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64)
    values, used = np.empty(marks.shape[0], np.int64), np.empty(count, np.int64)
    heap_keys, heap_tags = np.empty(count, np.float64), np.zeros(count, np.int32)
    starts, sizes, masses = np.empty(types, np.int64), np.empty(types, np.int64), np.empty(types, np.float64)
    drawn = np.empty(count, np.int64)
    for i in range(rows.shape[0]):
        ahead = i + _NODES_AHEAD
        if ahead < rows.shape[0] and rows[ahead] >= 0:
            for t in range(types):
                ask_ends(indptr[t, parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
        part, seen, total, found = parts[i], np.int64(0), 0.0, np.int64(0)
        if rows[i] >= 0:
            for t in range(types):
                starts[t] = i64_at(indptr[t, part], rows[i])
                sizes[t] = seen_of(starts[t], i64_at(indptr[t, part], rows[i] + 1), limits[t, i], when[t, part], order[t, part])
                masses[t] = np.float64(sizes[t])
                if how == WEIGHTED and sizes[t] > 0 and sums[t, part] > 0:
                    masses[t] = f64_at(sums[t, part], starts[t] + sizes[t] - 1)
                seen += sizes[t]
                total += masses[t]
        if seen > 0 and total > 0.0:
            own = derive(key, np.uint64(positions[i]))
            if how == LAST:
                found = np.int64(_latest(count, starts, sizes, part, when, order, drawn, stop))
            elif replace:
                found = np.int64(count)
                for k in range(count):
                    if k & CHECK_MASK == CHECK_MASK and is_set(stop):
                        return
                    w = word(own, np.uint64(k))
                    if how == WEIGHTED:
                        drawn[k] = _by_weight(unit(w) * total, starts, sizes, masses, part, sums)
                    else:
                        drawn[k] = np.int64(below(w, np.uint64(seen)))
            elif seen <= count:
                for at in range(seen):
                    if at & CHECK_MASK == CHECK_MASK and is_set(stop):
                        return
                    if how == UNIFORM or _heavy(np.int64(at), starts, sizes, part, order, weights) > 0.0:
                        drawn[found] = at
                        found += 1
            elif how == UNIFORM:
                shuffled(own, seen, count, shift, marks, values, used, drawn, stop)
                found = np.int64(count)
            else:
                race = derive(race_key, np.uint64(positions[i]))
                found = np.int64(_successive(
                    own, race, seen, total, starts, sizes, masses, part, order, weights, sums, shift, marks, used, heap_keys, heap_tags, drawn,
                    stop,
                ))  # fmt: skip
        if is_set(stop):
            return
        for k in range(count):
            kind, place = np.int64(-1), np.int64(-1)
            if k < found:
                kind, place = np.int64(0), np.int64(drawn[k])
                if how == LAST:
                    kind, place = np.int64(place >> np.int64(32)), np.int64(place & np.int64(0xFFFFFFFF))
                else:
                    while place >= sizes[kind]:
                        place -= sizes[kind]
                        kind += 1
                place = np.int64(u32_at(order[kind, part], starts[kind] + place))
            slots[i * count + k] = place
            if which.shape[0] > 0:
                which[i * count + k] = kind


@kernel
def count_seen(
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    limits: NDArray[np.int64],
    indptr: NDArray[np.uint64],
    when: NDArray[np.uint64],
    order: NDArray[np.uint64],
    sizes: NDArray[np.int32],
) -> int:
    """How many edges of one type each node sees; gives the sum. Arrays as of `draw_timed`, of one type: addresses uint64[P]."""
    total = np.int64(0)
    for i in range(rows.shape[0]):
        sizes[i] = 0
        if rows[i] >= 0:
            part = parts[i]
            start, stop = i64_at(indptr[part], rows[i]), i64_at(indptr[part], rows[i] + 1)
            sizes[i] = seen_of(start, stop, limits[i], when[part], order[part])
        total += np.int64(sizes[i])
    return total  # type: ignore[return-value]  # compiled, it is an int


@kernel
def list_seen(
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    indptr: NDArray[np.uint64],
    order: NDArray[np.uint64],
    sizes: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> None:
    """The slots of all edges that each node sees, the earliest first, one node's after another's: ``sizes`` of each, as `count_seen` gives them."""
    to = 0
    for i in range(rows.shape[0]):
        if sizes[i] > 0:
            start = i64_at(indptr[parts[i]], rows[i])
            for at in range(sizes[i]):
                slots[to] = np.int64(u32_at(order[parts[i]], start + at))
                to += 1


@kernel
def close_up(drawn: NDArray[np.int64], count: np.int64, sizes: NDArray[np.int32], slots: NDArray[np.int64]) -> int:
    """Put drawn slots, ``count`` of each node and -1 for none, one behind another; gives how many there are.

    Parameters
    ----------
    drawn : int64[m * count]
    count : int64
    sizes : int32[m], out
        How many each node has.
    slots : int64[m * count], out
    """
    to = np.int64(0)
    for i in range(sizes.shape[0]):
        sizes[i] = 0
        for k in range(count):
            if drawn[i * count + k] >= 0:
                slots[to] = drawn[i * count + k]
                to += 1
                sizes[i] += 1
    return to  # type: ignore[return-value]


@kernel
def fetch_ids(
    parts: NDArray[np.int32], sizes: NDArray[np.int32], slots: NDArray[np.int64], columns: NDArray[np.uint64], out: NDArray[np.int64]
) -> None:
    """The number that belongs to each slot: ``sizes`` slots of each node, ``columns`` are addresses of each part's int64[slots]."""
    at = 0
    for i in range(sizes.shape[0]):
        for _ in range(sizes[i]):
            out[at] = i64_at(columns[parts[i]], slots[at])
            at += 1


@kernel
def fetch_weights(
    parts: NDArray[np.int32], sizes: NDArray[np.int32], slots: NDArray[np.int64], columns: NDArray[np.uint64], out: NDArray[np.float32]
) -> None:
    """The weight of each slot, likewise; an address of 0 is weights of 1."""
    at = 0
    for i in range(sizes.shape[0]):
        for _ in range(sizes[i]):
            out[at] = f32_at(columns[parts[i]], slots[at]) if columns[parts[i]] > 0 else np.float32(1.0)
            at += 1
