"""Expand nodes of all partitions of a host: sample or read their neighbors in one pass.

The output is ragged. `neighbors.with_replacement` and `neighbors.distinct_edge_sampling` draw the
same neighbors, with the same random words, into padded arrays.
"""

from __future__ import annotations

from typing import NamedTuple

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
from storaged.kernels.adjacency_rows import (
    ALIAS_FRACTION,
    ALIAS_THRESHOLD,
    EID,
    INDPTR,
    NARROW,
    NBR,
    PAIRS,
    ROWS,
    SLOTS,
    SUMS,
    WEIGHTS,
    RowSpan,
    find_row,
    parts_shift,
    prefetch_row_bounds,
    unpack_pair,
)
from storaged.kernels.neighbors.distinct_edge_sampling import choose_distinct_edges
from storaged.kernels.neighbors.fisher_yates import MAX_DIRECT_DEGREE, DistinctScratch, RowDraw

_ROWS_AHEAD, _COLUMNS_AHEAD, _WRITE_DELAY = 24, 8, 4
"""Prefetch distances of rows and of alias table columns, and delay of writes, in nodes."""
_RING = 32
"""Nodes in flight, at least ``_ROWS_AHEAD + _WRITE_DELAY``."""
_PART, _ROW, _START, _DEGREE = range(4)
"""Rows of `ExpansionScratch.ring`."""
_SHORT = 1024
"""Maximum draws per node with several nodes in flight; more draws keep the memory busy."""
_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)
_I64, _U64, _U32 = np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint32)
_F32, _F64 = np.zeros(0, np.float32), np.zeros(0, np.float64)
_KNOWN = np.zeros(0, np.uint64)
"""Marker that no draw was hashed in advance."""


class ExpansionParams(NamedTuple):
    """Parameters of an expansion along one edge type."""

    key: np.uint64
    """Key of the draws: ``key_of(seed, rng.NEIGHBOR, direction, hop)``."""
    selection_key: np.uint64
    """Key of exponential-key selection among edges of this type."""
    parts: np.int64
    mod: bool
    """True if the partition of a node is its id modulo ``parts``; else it follows from a hash."""
    fanout: np.int64
    """Number of neighbors to draw for each node."""
    replace: bool
    uniform: bool
    """True if every edge counts with weight 1."""


class NeighborOutputs(NamedTuple):
    """Output arrays of k neighbors, grouped by node."""

    ids: NDArray[np.int64]
    """Neighbor ids, int64[k]."""
    eids: NDArray[np.int64]
    """Edge ids, int64[k], or int64[0] if not wanted."""
    weights: NDArray[np.float32]
    """Edge weights, float32[k], or float32[0] if not wanted."""


class ExpansionScratch(NamedTuple):
    """Scratch arrays of `draw_expansion`; d is ``fanout``."""

    ring: NDArray[np.int64]
    """Partition, row, first slot and degree of the nodes in flight, int64[4, _RING]."""
    keys: NDArray[np.uint64]
    """Key of each node in flight, uint64[_RING]."""
    slot_ring: NDArray[np.int64]
    """Slots drawn for each node in flight, int64[_RING or 1, d]."""
    direct_table: NDArray[np.int16]
    hash_keys: NDArray[np.int64]
    values: NDArray[np.int64]
    used_buckets: NDArray[np.int64]
    heap_keys: NDArray[np.float64]
    heap_tags: NDArray[np.int32]
    """Last of six fields of `storaged.kernels.neighbors.fisher_yates.DistinctScratch`."""


@inlined
def _draw_slot(
    key: np.uint64,
    k: IntLike,
    start: np.int64,
    degree: np.int64,
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
) -> IntLike:
    """Return the slot of draw k of a row with replacement, or -1 if all weights are 0."""
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
    params: ExpansionParams,
    span: RowSpan,
    row: IntLike,
    key: np.uint64,
    selection_key: np.uint64,
    scratch: ExpansionScratch,
    row_slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Sample a row's neighbors without replacement; keys as in `choose_distinct_edges`."""
    part, start, degree = span
    weighted = not params.uniform and table[part, WEIGHTS] != 0
    has_alias_table = weighted and table[part, ALIAS_THRESHOLD] != 0
    # Equal positive weights have no alias table, and the row's sum is irrelevant.
    if (
        degree > params.fanout
        and has_alias_table
        and not view_at(table[part, SUMS], table[part, ROWS], _F64)[row] > 0.0
    ):
        return np.int64(0)
    row_weights = np.uint64(table[part, WEIGHTS] + 4 * start if weighted else 0)
    row_thresholds, row_fractions = (
        np.uint64(table[part, ALIAS_THRESHOLD] + 8 * start if has_alias_table else 0),
        np.uint64(table[part, ALIAS_FRACTION] + 4 * start),
    )
    first, no_address = np.int64(0), np.uint64(0)
    row_draw = RowDraw(
        key,
        selection_key,
        start,
        degree,
        params.fanout,
        first,
        row_weights,
        row_thresholds,
        row_fractions,
        no_address,
    )
    distinct_scratch = DistinctScratch(
        scratch.direct_table,
        scratch.hash_keys,
        scratch.values,
        scratch.used_buckets,
        scratch.heap_keys,
        scratch.heap_tags,
    )
    return choose_distinct_edges(row_draw, _KNOWN, _KNOWN, distinct_scratch, row_slots, stop)


@inlined
def _prefetch_slots(
    table: NDArray[np.int64], part: IntLike, row_slots: NDArray[np.int64], want_eids: bool
) -> None:
    """Prefetch the edges in slots.

    These are pairs of ids if edge ids are wanted, else 32-bit neighbors, if the partition has them.
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
    out: NeighborOutputs,
    out_pos: IntLike,
) -> None:
    """Write the edges in slots from ``out_pos`` on."""
    ids, eids, weights = out
    slots, paired = table[part, SLOTS], eids.shape[0] > 0 and table[part, PAIRS] != 0
    if paired:
        pairs = view_at(table[part, PAIRS], slots, _U64)
        for k in range(row_slots.shape[0]):
            eids[out_pos + k], ids[out_pos + k] = unpack_pair(pairs[row_slots[k]])
    elif table[part, NARROW] != 0:
        narrow = view_at(table[part, NARROW], slots, _U32)
        for k in range(row_slots.shape[0]):
            ids[out_pos + k] = np.int64(narrow[row_slots[k]])
    else:
        nbr = view_at(table[part, NBR], slots, _I64)
        for k in range(row_slots.shape[0]):
            ids[out_pos + k] = nbr[row_slots[k]]
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
    table: NDArray[np.int64],
    params: ExpansionParams,
    ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: NeighborOutputs,
    scratch: ExpansionScratch,
    stop: NDArray[np.int64],
) -> IntLike:
    """Run `draw_expansion` with existing arrays.

    Arrays created in this function would be reference-counted at every use.
    """
    ring, keys, slot_ring = scratch.ring, scratch.keys, scratch.slot_ring
    count, replace, uniform = params.fanout, params.replace, params.uniform
    want_eids = out.eids.shape[0] > 0
    shift, ring_size = parts_shift(params.parts), np.int64(slot_ring.shape[0])
    write_delay = np.int64(_WRITE_DELAY if ring_size > 1 else 0)
    m, total = ids.shape[0], np.int64(0)
    for step in range(m + _ROWS_AHEAD + write_delay):
        if step < m:
            ring_slot = step % _RING
            part, row = find_row(ids[step], params.parts, shift, params.mod, table)
            if part < 0:
                return -1 - step
            ring[_PART, ring_slot], ring[_ROW, ring_slot] = part, row
            if row >= 0:
                prefetch_row_bounds(np.uint64(table[part, INDPTR] + 8 * row))
        hash_index = step - (_ROWS_AHEAD - _COLUMNS_AHEAD)
        if 0 <= hash_index < m:
            ring_slot = hash_index % _RING
            part, row = ring[_PART, ring_slot], ring[_ROW, ring_slot]
            keys[ring_slot] = derive(params.key, np.uint64(positions[hash_index]))
            ring[_START, ring_slot], ring[_DEGREE, ring_slot] = np.int64(0), np.int64(0)
            if row >= 0:
                indptr = view_at(table[part, INDPTR], table[part, ROWS] + 1, _I64)
                start, degree = indptr[row], indptr[row + 1] - indptr[row]
                ring[_START, ring_slot], ring[_DEGREE, ring_slot] = start, degree
                if (
                    not uniform
                    and table[part, ALIAS_THRESHOLD] != 0
                    and degree > 0
                    and (replace or degree > count)
                ):
                    alias_threshold = view_at(
                        table[part, ALIAS_THRESHOLD], table[part, SLOTS], _U64
                    )
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
                    table[part, ALIAS_THRESHOLD],
                    np.int64(0) if uniform or table[part, ALIAS_THRESHOLD] == 0 else slots,
                    _U64,
                )
                alias_fraction = view_at(
                    table[part, ALIAS_FRACTION],
                    np.int64(0) if uniform or table[part, ALIAS_THRESHOLD] == 0 else slots,
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
                    node_selection_key = derive(params.selection_key, np.uint64(positions[i]))
                    num_drawn = _draw_distinct(
                        table,
                        params,
                        RowSpan(part, start, degree),
                        ring[_ROW, ring_slot],
                        keys[ring_slot],
                        node_selection_key,
                        scratch,
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
                out,
                total,
            )
            total += size
    return total


@kernel
def draw_expansion(
    table: NDArray[np.int64],
    params: ExpansionParams,
    ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: NeighborOutputs,
    stop: NDArray[np.int64],
) -> int:
    """Sample neighbors along one edge type into a ragged output, node by node.

    Parameters
    ----------
    table : int64[parts, COLUMNS]
    params : ExpansionParams
    ids, positions : int64[m]
        Node ids, -1 for none, and the positions that key their draws.
    sizes : int32[m], out
        Number of neighbors drawn for each node.
    out : NeighborOutputs
        Sized for m * fanout neighbors.
    stop : int64[1]
        A nonzero value stops the call; its outputs are then incomplete.

    Returns
    -------
    int
        Total number of neighbors, or -1 - i if this host does not hold the partition of ``ids[i]``.
    """
    count = params.fanout
    bits = np.int64(4)
    while np.int64(1) << bits < 4 * count:
        bits += np.int64(1)
    hash_keys = np.full(np.int64(1) << bits, np.int64(-1), np.int64)
    scratch = ExpansionScratch(
        np.zeros((4, _RING), np.int64),
        np.zeros(_RING, np.uint64),
        np.empty((np.int64(_RING if count <= _SHORT else 1), count), np.int64),
        np.zeros(MAX_DIRECT_DEGREE, np.int16),
        hash_keys,
        np.empty(hash_keys.shape[0], np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.float64),
        np.zeros(count, np.int32),
    )
    # An int64 in compiled code, an int for the caller.
    return _expand(table, params, ids, positions, sizes, out, scratch, stop)  # type: ignore[return-value]


@kernel
def count_expansion(
    table: NDArray[np.int64],
    parts: np.int64,
    mod: bool,
    ids: NDArray[np.int64],
    sizes: NDArray[np.int32],
) -> int:
    """Count the neighbors of each node: ``sizes`` is int32[m], out.

    Other parameters and the result are as in `draw_expansion`.
    """
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
    table: NDArray[np.int64],
    parts: np.int64,
    mod: bool,
    ids: NDArray[np.int64],
    out: NeighborOutputs,
    stop: NDArray[np.int64],
) -> None:
    """Copy all neighbors of each node in stored order.

    Parameters are as in `draw_expansion`. ``out`` is sized for the sum of `count_expansion`.
    """
    neighbors, eids, weights = out
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
            neighbors[out_pos + slot - start] = nbr[slot]
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
