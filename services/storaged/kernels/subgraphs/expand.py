"""Expansions: the neighbors of nodes of any of a host's parts, drawn and fetched in one pass, as
many as each node has.

What `neighbors.replacement` and `neighbors.distinct_edges` do into a padded answer, with the same
words and so the same draws.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    STOP_CHECK_MASK,
    IntLike,
    inlined,
    is_set,
    kernel,
    prefetch,
    view_at,
)
from asterism_graphkit.random.rng import bounded, derive, word
from storaged.kernels.adjacency import (
    COLD,
    EID,
    HOT,
    INDPTR,
    NARROW,
    NBR,
    PAIRS,
    ROWS,
    SLOTS,
    SUMS,
    WEIGHTS,
    find_row,
    parts_shift,
    prefetch_row_bounds,
    unpack_pair,
)
from storaged.kernels.neighbors.distinct_edges import choose_distinct_edges
from storaged.kernels.neighbors.fisher_yates import MAX_DIRECT_DEGREE, DistinctScratch, RowDraw

_ROWS_AHEAD, _COLUMNS_AHEAD, _WRITE_DELAY = 24, 8, 4
_RING = 32
_PART, _ROW, _START, _DEGREE = range(4)
"""Rows of ``ring``."""
_SHORT = 1024
"""Draws of one node up to which several nodes are under way; more keep the memory busy by
themselves.
"""
_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)
_I64, _U64, _U32 = np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint32)
_F32, _F64 = np.zeros(0, np.float32), np.zeros(0, np.float64)
_KNOWN = np.zeros(0, np.uint64)
"""No draw is known before."""


@inlined
def _draw_slot(
    key: np.uint64,
    k: IntLike,
    start: np.int64,
    degree: np.int64,
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
) -> IntLike:
    """Draw k of a row with replacement; -1 where its weights are all zero."""
    n = np.uint64(degree)
    w = word(key, np.uint64(k))
    slot = start + np.int64(bounded(w, n))
    if alias_threshold.shape[0] == 0:
        return slot
    coin = w * n
    entry = alias_threshold[slot]
    high, threshold = np.int64(coin >> _S32), np.int64(entry >> _S32)
    alias = start + np.int64(entry & _LOW)
    keep_mask = (high - threshold) >> _SIGN  # all ones where high < threshold
    chosen = alias ^ ((slot ^ alias) & keep_mask)
    if high == threshold and (coin & _LOW) < np.uint64(alias_fraction[slot]):
        chosen = slot
    if threshold == 0 and alias == slot and alias_fraction[slot] == 0:
        return np.int64(-1)
    return chosen


@inlined
def _draw_distinct(
    table: NDArray[np.int64],
    part: IntLike,
    row: IntLike,
    key: np.uint64,
    selection_key: np.uint64,
    start: np.int64,
    degree: np.int64,
    count: np.int64,
    weighted: bool,
    direct_table: NDArray[np.int16],
    hash_keys: NDArray[np.int64],
    values: NDArray[np.int64],
    used_buckets: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    row_slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Draw a row's neighbors without replacement; scratch as of `choose_distinct_edges`."""
    has_alias_table = weighted and table[part, HOT] != 0
    # Where weights are all alike and positive there is no table, and what a row weighs is not
    # asked.
    if (
        degree > count
        and has_alias_table
        and not view_at(table[part, SUMS], table[part, ROWS], _F64)[row] > 0.0
    ):
        return np.int64(0)
    row_weights = np.uint64(table[part, WEIGHTS] + 4 * start if weighted else 0)
    row_thresholds, row_fractions = (
        np.uint64(table[part, HOT] + 8 * start if has_alias_table else 0),
        np.uint64(table[part, COLD] + 4 * start),
    )
    first, no_address = np.int64(0), np.uint64(0)
    row_draw = RowDraw(
        key,
        selection_key,
        start,
        degree,
        count,
        first,
        row_weights,
        row_thresholds,
        row_fractions,
        no_address,
    )
    scratch = DistinctScratch(direct_table, hash_keys, values, used_buckets, heap_keys, heap_tags)
    return choose_distinct_edges(row_draw, _KNOWN, _KNOWN, scratch, row_slots, stop)


@inlined
def _prefetch_slots(
    table: NDArray[np.int64], part: IntLike, row_slots: NDArray[np.int64], want_eids: bool
) -> None:
    """Have what is known of slots brought from memory: both ids in one line, or neighbors the
    narrow way, where these are there.
    """
    if want_eids and table[part, PAIRS] != 0:
        pairs = view_at(table[part, PAIRS], table[part, SLOTS], _U64)
        for k in range(row_slots.shape[0]):
            prefetch(pairs, row_slots[k])
        return
    if table[part, NARROW] != 0:
        narrow = view_at(table[part, NARROW], table[part, SLOTS], _U32)
        for k in range(row_slots.shape[0]):
            prefetch(narrow, row_slots[k])
    else:
        nbr = view_at(table[part, NBR], table[part, SLOTS], _I64)
        for k in range(row_slots.shape[0]):
            prefetch(nbr, row_slots[k])
    if want_eids:
        eid_column = view_at(table[part, EID], table[part, SLOTS], _I64)
        for k in range(row_slots.shape[0]):
            prefetch(eid_column, row_slots[k])


@inlined
def _write_edges(
    table: NDArray[np.int64],
    part: IntLike,
    row_slots: NDArray[np.int64],
    out_pos: IntLike,
    out: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> None:
    """Put what is wanted of slots in place, from ``out_pos`` on."""
    slots, paired = table[part, SLOTS], eids.shape[0] > 0 and table[part, PAIRS] != 0
    if paired:
        pairs = view_at(table[part, PAIRS], slots, _U64)
        for k in range(row_slots.shape[0]):
            eids[out_pos + k], out[out_pos + k] = unpack_pair(pairs[row_slots[k]])
    elif table[part, NARROW] != 0:
        narrow = view_at(table[part, NARROW], slots, _U32)
        for k in range(row_slots.shape[0]):
            out[out_pos + k] = np.int64(narrow[row_slots[k]])
    else:
        nbr = view_at(table[part, NBR], slots, _I64)
        for k in range(row_slots.shape[0]):
            out[out_pos + k] = nbr[row_slots[k]]
    if eids.shape[0] > 0 and not paired:
        eid_column = view_at(table[part, EID], slots, _I64)
        for k in range(row_slots.shape[0]):
            eids[out_pos + k] = eid_column[row_slots[k]]
    if weights.shape[0] > 0:
        weight_column = view_at(
            table[part, WEIGHTS], np.int64(0) if table[part, WEIGHTS] == 0 else slots, _F32
        )
        for k in range(row_slots.shape[0]):
            weights[out_pos + k] = (
                weight_column[row_slots[k]] if weight_column.shape[0] > 0 else np.float32(1.0)
            )


@inlined
def _expand(
    ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    key: np.uint64,
    selection_key: np.uint64,
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
    slot_ring: NDArray[np.int64],
    direct_table: NDArray[np.int16],
    hash_keys: NDArray[np.int64],
    values: NDArray[np.int64],
    used_buckets: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    stop: NDArray[np.int64],
) -> IntLike:
    """`draw_expansion`, in arrays that are there: what is made here would be counted at every
    use.
    """
    want_eids = eids.shape[0] > 0
    shift, ring_size = parts_shift(parts), np.int64(slot_ring.shape[0])
    write_delay = np.int64(_WRITE_DELAY if ring_size > 1 else 0)
    m, total = ids.shape[0], np.int64(0)
    for step in range(m + _ROWS_AHEAD + write_delay):
        if step < m:
            ring_slot = step % _RING
            part, row = find_row(ids[step], parts, shift, mod, table)
            if part < 0:
                return -1 - step
            ring[_PART, ring_slot], ring[_ROW, ring_slot] = part, row
            if row >= 0:
                prefetch_row_bounds(np.uint64(table[part, INDPTR] + 8 * row))
        hash_index = step - (_ROWS_AHEAD - _COLUMNS_AHEAD)
        if 0 <= hash_index < m:
            ring_slot = hash_index % _RING
            part, row = ring[_PART, ring_slot], ring[_ROW, ring_slot]
            keys[ring_slot] = derive(key, np.uint64(positions[hash_index]))
            ring[_START, ring_slot], ring[_DEGREE, ring_slot] = np.int64(0), np.int64(0)
            if row >= 0:
                indptr = view_at(table[part, INDPTR], table[part, ROWS] + 1, _I64)
                start, degree = indptr[row], indptr[row + 1] - indptr[row]
                ring[_START, ring_slot], ring[_DEGREE, ring_slot] = start, degree
                if (
                    not uniform
                    and table[part, HOT] != 0
                    and degree > 0
                    and (replace or degree > count)
                ):
                    alias_threshold = view_at(table[part, HOT], table[part, SLOTS], _U64)
                    for k in range(count):
                        prefetch(
                            alias_threshold,
                            start
                            + np.int64(
                                bounded(word(keys[ring_slot], np.uint64(k)), np.uint64(degree))
                            ),
                        )
                    if not replace:
                        prefetch(view_at(table[part, SUMS], table[part, ROWS], _F64), row)
        i = step - _ROWS_AHEAD
        if 0 <= i < m:
            ring_slot = i % _RING
            part, start, degree = (
                ring[_PART, ring_slot],
                ring[_START, ring_slot],
                ring[_DEGREE, ring_slot],
            )
            slots = table[part, SLOTS]
            row_slots = slot_ring[i % ring_size]
            num_drawn: IntLike = np.int64(0)
            if degree > 0:
                alias_threshold = view_at(
                    table[part, HOT],
                    np.int64(0) if uniform or table[part, HOT] == 0 else slots,
                    _U64,
                )
                alias_fraction = view_at(
                    table[part, COLD],
                    np.int64(0) if uniform or table[part, HOT] == 0 else slots,
                    _U32,
                )
                if replace:
                    for k in range(count):
                        if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                            return total
                        row_slots[k] = _draw_slot(
                            keys[ring_slot], k, start, degree, alias_threshold, alias_fraction
                        )
                    num_drawn = count if count > 0 and row_slots[0] >= 0 else np.int64(0)
                else:
                    node_selection_key = derive(selection_key, np.uint64(positions[i]))
                    weighted = not uniform and table[part, WEIGHTS] != 0
                    row = ring[_ROW, ring_slot]
                    num_drawn = _draw_distinct(
                        table,
                        part,
                        row,
                        keys[ring_slot],
                        node_selection_key,
                        start,
                        degree,
                        count,
                        weighted,
                        direct_table,
                        hash_keys,
                        values,
                        used_buckets,
                        heap_keys,
                        heap_tags,
                        row_slots,
                        stop,
                    )
                if is_set(stop):
                    return total
            sizes[i] = num_drawn
            _prefetch_slots(table, part, row_slots[:num_drawn], want_eids)
        write_index = step - _ROWS_AHEAD - int(write_delay)
        if 0 <= write_index < m:
            ring_slot = write_index % _RING
            size = np.int64(sizes[write_index])
            _write_edges(
                table,
                ring[_PART, ring_slot],
                slot_ring[write_index % ring_size, :size],
                total,
                out,
                eids,
                weights,
            )
            total += size
    return total


@kernel
def draw_expansion(
    ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    key: np.uint64,
    selection_key: np.uint64,
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
    key, selection_key : uint64
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
    hash_keys = np.full(np.int64(1) << bits, np.int64(-1), np.int64)
    values, used_buckets = np.empty(hash_keys.shape[0], np.int64), np.empty(count, np.int64)
    direct_table = np.zeros(MAX_DIRECT_DEGREE, np.int16)
    heap_keys, heap_tags = np.empty(count, np.float64), np.zeros(count, np.int32)
    ring, keys = np.zeros((4, _RING), np.int64), np.zeros(_RING, np.uint64)
    slot_ring = np.empty((np.int64(_RING if count <= _SHORT else 1), count), np.int64)
    return _expand(  # type: ignore[return-value]  # an int64 here and an int to the caller
        ids,
        positions,
        key,
        selection_key,
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
        slot_ring,
        direct_table,
        hash_keys,
        values,
        used_buckets,
        heap_keys,
        heap_tags,
        stop,
    )


@kernel
def count_expansion(
    ids: NDArray[np.int64],
    parts: np.int64,
    mod: bool,
    table: NDArray[np.int64],
    sizes: NDArray[np.int32],
) -> int:
    """How many neighbors each node has; arrays and answer as of `draw_expansion`."""
    shift = parts_shift(parts)
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
    """All neighbors of each node in the order in which they are stored; arrays and ``stop`` as of
    `draw_expansion`.
    """
    shift = parts_shift(parts)
    out_pos = np.int64(0)
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
            out[out_pos + slot - start] = nbr[slot]
        if eids.shape[0] > 0:
            eid_column = view_at(table[part, EID], slots, _I64)
            for slot in range(start, end):
                eids[out_pos + slot - start] = eid_column[slot]
        if weights.shape[0] > 0:
            weight_column = view_at(
                table[part, WEIGHTS], np.int64(0) if table[part, WEIGHTS] == 0 else slots, _F32
            )
            for slot in range(start, end):
                weights[out_pos + slot - start] = (
                    weight_column[slot] if weight_column.shape[0] > 0 else np.float32(1.0)
                )
        out_pos += end - start
