"""Expansions: the neighbors of nodes of any of a host's parts, drawn and fetched in one pass, as many as each node has.

What `neighbors` and `distinct` do into a padded answer, with the same words and so the same draws.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import CHECK_MASK, Whole, inlined, is_set, kernel, prefetch, view_at
from graphkit.rng import below, derive, word
from storaged.kernel.distinct import choose_distinct
from storaged.kernel.shuffle import DIRECT
from storaged.kernel.table import COLD, EID, HOT, INDPTR, NARROW, NBR, PAIRS, ROWS, SLOTS, SUMS, WEIGHTS, ask_ends, both_of, find_row, shift_of_parts

_FAR, _NEAR, _LATE = 24, 8, 4
_RING = 32
_PART, _ROW, _START, _DEGREE = range(4)
"""Rows of ``ring``."""
_SHORT = 1024
"""Draws of one node up to which several nodes are under way; more keep the memory busy by themselves."""
_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)
_I64, _U64, _U32 = np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint32)
_F32, _F64 = np.zeros(0, np.float32), np.zeros(0, np.float64)
_KNOWN = np.zeros((1, 0), np.uint64)
"""No draw is known before."""


@inlined
def _draw_one(key: np.uint64, k: Whole, start: np.int64, degree: np.int64, hot: NDArray[np.uint64], cold: NDArray[np.uint32]) -> Whole:
    """Draw k of a row with replacement; -1 where its weights are all zero."""
    n = np.uint64(degree)
    w = word(key, np.uint64(k))
    slot = start + np.int64(below(w, n))
    if hot.shape[0] == 0:
        return slot
    coin = w * n
    entry = hot[slot]
    high, threshold = np.int64(coin >> _S32), np.int64(entry >> _S32)
    led = start + np.int64(entry & _LOW)
    kept = (high - threshold) >> _SIGN  # all ones where high < threshold
    taken = led ^ ((slot ^ led) & kept)
    if high == threshold and (coin & _LOW) < np.uint64(cold[slot]):
        taken = slot
    if threshold == 0 and led == slot and cold[slot] == 0:
        return np.int64(-1)
    return taken


@inlined
def _distinct(
    table: NDArray[np.int64],
    part: Whole,
    row: Whole,
    key: np.uint64,
    race_key: np.uint64,
    start: np.int64,
    degree: np.int64,
    count: np.int64,
    weighted: bool,
    touched: NDArray[np.int16],
    marks: NDArray[np.int64],
    values: NDArray[np.int64],
    used: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    own: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> Whole:
    """Draw a row's neighbors without replacement; scratch as of `choose_distinct`."""
    tabled = weighted and table[part, HOT] != 0
    # Where weights are all alike and positive there is no table, and what a row weighs is not asked.
    if degree > count and tabled and not view_at(table[part, SUMS], table[part, ROWS], _F64)[row] > 0.0:
        return np.int64(0)
    heavy = np.uint64(table[part, WEIGHTS] + 4 * start if weighted else 0)
    row_hot, row_cold = np.uint64(table[part, HOT] + 8 * start if tabled else 0), np.uint64(table[part, COLD] + 4 * start)
    first, unasked = np.int64(0), np.uint64(0)
    return choose_distinct(
        key,
        race_key,
        start,
        degree,
        count,
        first,
        heavy,
        row_hot,
        row_cold,
        unasked,
        _KNOWN,
        _KNOWN,
        first,
        touched,
        marks,
        values,
        used,
        heap_keys,
        heap_tags,
        own,
        stop,
    )


@inlined
def _ask_for(table: NDArray[np.int64], part: Whole, own: NDArray[np.int64], want_eids: bool) -> None:
    """Have what is known of slots brought from memory: both ids in one line, or neighbors the narrow way, where these are there."""
    if want_eids and table[part, PAIRS] != 0:
        pairs = view_at(table[part, PAIRS], table[part, SLOTS], _U64)
        for k in range(own.shape[0]):
            prefetch(pairs, own[k])
        return
    if table[part, NARROW] != 0:
        narrow = view_at(table[part, NARROW], table[part, SLOTS], _U32)
        for k in range(own.shape[0]):
            prefetch(narrow, own[k])
    else:
        nbr = view_at(table[part, NBR], table[part, SLOTS], _I64)
        for k in range(own.shape[0]):
            prefetch(nbr, own[k])
    if want_eids:
        far = view_at(table[part, EID], table[part, SLOTS], _I64)
        for k in range(own.shape[0]):
            prefetch(far, own[k])


@inlined
def _put(
    table: NDArray[np.int64],
    part: Whole,
    own: NDArray[np.int64],
    at: Whole,
    out: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> None:
    """Put what is wanted of slots in place, from ``at`` on."""
    slots, joined = table[part, SLOTS], eids.shape[0] > 0 and table[part, PAIRS] != 0
    if joined:
        pairs = view_at(table[part, PAIRS], slots, _U64)
        for k in range(own.shape[0]):
            eids[at + k], out[at + k] = both_of(pairs[own[k]])
    elif table[part, NARROW] != 0:
        narrow = view_at(table[part, NARROW], slots, _U32)
        for k in range(own.shape[0]):
            out[at + k] = np.int64(narrow[own[k]])
    else:
        nbr = view_at(table[part, NBR], slots, _I64)
        for k in range(own.shape[0]):
            out[at + k] = nbr[own[k]]
    if eids.shape[0] > 0 and not joined:
        far = view_at(table[part, EID], slots, _I64)
        for k in range(own.shape[0]):
            eids[at + k] = far[own[k]]
    if weights.shape[0] > 0:
        heavy = view_at(table[part, WEIGHTS], np.int64(0) if table[part, WEIGHTS] == 0 else slots, _F32)
        for k in range(own.shape[0]):
            weights[at + k] = heavy[own[k]] if heavy.shape[0] > 0 else np.float32(1.0)


@inlined
def _expand(
    ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    key: np.uint64,
    race_key: np.uint64,
    parts: np.int64,
    mod: bool,
    table: NDArray[np.int64],
    count: np.int64,
    replace: bool,
    uniform: bool,
    sizes: NDArray[np.int32],
    out: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32],
    ring: NDArray[np.int64],
    keys: NDArray[np.uint64],
    drawn: NDArray[np.int64],
    scratch: NDArray[np.int16],
    marks: NDArray[np.int64],
    values: NDArray[np.int64],
    used: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    stop: NDArray[np.int64],
) -> Whole:
    """`draw_expansion`, in arrays that are there: what is made here would be counted at every use."""
    want_eids = eids.shape[0] > 0
    shift, lines = shift_of_parts(parts), np.int64(drawn.shape[0])
    late_by = np.int64(_LATE if lines > 1 else 0)
    m, total = ids.shape[0], np.int64(0)
    for step in range(m + _FAR + late_by):
        if step < m:
            at = step % _RING
            part, row = find_row(ids[step], parts, shift, mod, table)
            if part < 0:
                return -1 - step
            ring[_PART, at], ring[_ROW, at] = part, row
            if row >= 0:
                ask_ends(np.uint64(table[part, INDPTR] + 8 * row))
        near = step - (_FAR - _NEAR)
        if 0 <= near < m:
            at = near % _RING
            part, row = ring[_PART, at], ring[_ROW, at]
            keys[at] = derive(key, np.uint64(positions[near]))
            ring[_START, at], ring[_DEGREE, at] = np.int64(0), np.int64(0)
            if row >= 0:
                indptr = view_at(table[part, INDPTR], table[part, ROWS] + 1, _I64)
                start, degree = indptr[row], indptr[row + 1] - indptr[row]
                ring[_START, at], ring[_DEGREE, at] = start, degree
                if not uniform and table[part, HOT] != 0 and degree > 0 and (replace or degree > count):
                    hot = view_at(table[part, HOT], table[part, SLOTS], _U64)
                    for k in range(count):
                        prefetch(hot, start + np.int64(below(word(keys[at], np.uint64(k)), np.uint64(degree))))
                    if not replace:
                        prefetch(view_at(table[part, SUMS], table[part, ROWS], _F64), row)
        i = step - _FAR
        if 0 <= i < m:
            at = i % _RING
            part, start, degree = ring[_PART, at], ring[_START, at], ring[_DEGREE, at]
            slots = table[part, SLOTS]
            own = drawn[i % lines]
            found: Whole = np.int64(0)
            if degree > 0:
                hot = view_at(table[part, HOT], np.int64(0) if uniform or table[part, HOT] == 0 else slots, _U64)
                cold = view_at(table[part, COLD], np.int64(0) if uniform or table[part, HOT] == 0 else slots, _U32)
                if replace:
                    for k in range(count):
                        if k & CHECK_MASK == CHECK_MASK and is_set(stop):
                            return total
                        own[k] = _draw_one(keys[at], k, start, degree, hot, cold)
                    found = count if count > 0 and own[0] >= 0 else np.int64(0)
                else:
                    race = derive(race_key, np.uint64(positions[i]))
                    weighted = not uniform and table[part, WEIGHTS] != 0
                    row = ring[_ROW, at]
                    found = _distinct(
                        table, part, row, keys[at], race, start, degree, count, weighted, scratch, marks, values, used, heap_keys, heap_tags,
                        own, stop,
                    )  # fmt: skip
                if is_set(stop):
                    return total
            sizes[i] = found
            _ask_for(table, part, own[:found], want_eids)
        late = step - _FAR - int(late_by)
        if 0 <= late < m:
            at = late % _RING
            ready = np.int64(sizes[late])
            _put(table, ring[_PART, at], drawn[late % lines, :ready], total, out, eids, weights)
            total += ready
    return total


@kernel
def draw_expansion(
    ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    key: np.uint64,
    race_key: np.uint64,
    parts: np.int64,
    mod: bool,
    table: NDArray[np.int64],
    count: np.int64,
    replace: bool,
    uniform: bool,
    sizes: NDArray[np.int32],
    out: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32],
    stop: NDArray[np.int64],
) -> int:
    """Draw neighbors of one edge type, and put them one node's after another's.

    Parameters
    ----------
    ids, positions : int64[m]
        Nodes, -1 for none, and what each one's draws are keyed by.
    key, race_key : uint64
        ``key_of(seed, rng.NEIGHBOR, direction, hop)``, and that of races among this type's edges.
    parts : int64
    mod : bool
        How a node finds its part: by remainder, or by hash.
    table : int64[parts, COLUMNS]
    count : int64
        Of each node.
    replace, uniform : bool
    sizes : int32[m], out
        How many each node got.
    out, eids, weights : int64[m * count], int64[m * count] or [0], float32[m * count] or [0], out
        Neighbor ids, and what is wanted of their edges.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Returns
    -------
    int
        How many there are in all; -1 - i where the part of ``ids[i]`` is not held here.
    """
    bits = np.int64(4)
    while np.int64(1) << bits < 4 * count:
        bits += np.int64(1)
    marks = np.full(np.int64(1) << bits, np.int64(-1), np.int64)
    values, used = np.empty(marks.shape[0], np.int64), np.empty(count, np.int64)
    scratch = np.zeros(DIRECT, np.int16)
    heap_keys, heap_tags = np.empty(count, np.float64), np.zeros(count, np.int32)
    ring, keys = np.zeros((4, _RING), np.int64), np.zeros(_RING, np.uint64)
    drawn = np.empty((np.int64(_RING if count <= _SHORT else 1), count), np.int64)
    return _expand(  # type: ignore[return-value]  # an int64 here and an int to the caller
        ids,
        positions,
        key,
        race_key,
        parts,
        mod,
        table,
        count,
        replace,
        uniform,
        sizes,
        out,
        eids,
        weights,
        ring,
        keys,
        drawn,
        scratch,
        marks,
        values,
        used,
        heap_keys,
        heap_tags,
        stop,
    )


@kernel
def count_expansion(ids: NDArray[np.int64], parts: np.int64, mod: bool, table: NDArray[np.int64], sizes: NDArray[np.int32]) -> int:
    """How many neighbors each node has; arrays and answer as of `draw_expansion`."""
    shift = shift_of_parts(parts)
    total = np.int64(0)
    for i in range(ids.shape[0]):
        part, row = find_row(ids[i], parts, shift, mod, table)
        if part < 0:
            return -1 - i
        sizes[i] = 0
        if row >= 0:
            indptr = view_at(table[part, INDPTR], table[part, ROWS] + 1, _I64)
            sizes[i] = indptr[row + 1] - indptr[row]
        total += np.int64(sizes[i])
    return total  # type: ignore[return-value]


@kernel
def copy_expansion(
    ids: NDArray[np.int64],
    parts: np.int64,
    mod: bool,
    table: NDArray[np.int64],
    out: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32],
    stop: NDArray[np.int64],
) -> None:
    """All neighbors of each node in the order in which they are stored; arrays and ``stop`` as of `draw_expansion`."""
    shift = shift_of_parts(parts)
    at = np.int64(0)
    for i in range(ids.shape[0]):
        part, row = find_row(ids[i], parts, shift, mod, table)
        if row < 0:
            continue
        if is_set(stop):
            return
        slots = table[part, SLOTS]
        indptr = view_at(table[part, INDPTR], table[part, ROWS] + 1, _I64)
        start, end = indptr[row], indptr[row + 1]
        nbr = view_at(table[part, NBR], slots, _I64)
        for slot in range(start, end):
            out[at + slot - start] = nbr[slot]
        if eids.shape[0] > 0:
            far = view_at(table[part, EID], slots, _I64)
            for slot in range(start, end):
                eids[at + slot - start] = far[slot]
        if weights.shape[0] > 0:
            heavy = view_at(table[part, WEIGHTS], np.int64(0) if table[part, WEIGHTS] == 0 else slots, _F32)
            for slot in range(start, end):
                weights[at + slot - start] = heavy[slot] if heavy.shape[0] > 0 else np.float32(1.0)
        at += end - start
