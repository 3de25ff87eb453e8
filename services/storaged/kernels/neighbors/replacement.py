"""Neighbors with replacement: the edge type of each draw, its slot, and gathering by slots.

Draws are numbered flat: draw k of the i-th node of a call is number i * count + k. A *slot* is a
position in the adjacency of one edge type at the node's part, -1 for no neighbor. Loops go over
blocks of draws, across nodes and parts: one pass hashes and prefetches, the next reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    STOP_CHECK_MASK,
    IntLike,
    f32_at,
    i64_at,
    inlined,
    is_set,
    kernel,
    prefetch_at,
    u32_at,
    u64_at,
)
from asterism_graphkit.random.alias_draw import resolve_column
from asterism_graphkit.random.rng import bounded, derive, unit_float, word
from storaged.kernels.adjacency import prefetch_row_bounds

BLOCK = 128
NODES_AHEAD = 32
AHEAD = 32
_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)
_SIZE, _PART, _START, _PLACE, _FLAT = range(5)
"""Of a run, which is the draws of one node within a block: how many, whose part, the row's first
slot, places of the first one.
"""
_OTHER_TYPE = np.int64(-2)
"""In place of a column: a draw of another edge type."""


@kernel
def choose_types(
    keys: NDArray[np.uint64],
    measures: NDArray[np.float64],
    count: np.int64,
    type_indices: NDArray[np.int32],
    stop: NDArray[np.int64],
) -> None:
    """Choose the edge type of every draw, in proportion to what each type weighs at the node.

    Parameters
    ----------
    keys : uint64[m]
        Of the nodes' positions, under ``key_of(seed, rng.NEIGHBOR_TYPE, direction, hop)``.
    measures : float64[types, m]
    count : int64
    type_indices : int32[m * count], out
        Index into the types; -1 where all of them weigh nothing.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.
    """
    types = measures.shape[0]
    for i in range(keys.shape[0]):
        total = 0.0
        last = -1
        for t in range(types):
            total += measures[t, i]
            if measures[t, i] > 0.0:
                last = t
        for k in range(count):
            if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                return
            chosen = last
            if last >= 0:
                point = unit_float(word(keys[i], np.uint64(k))) * total
                cumulative = 0.0
                for t in range(last):
                    cumulative += measures[t, i]
                    if point < cumulative:
                        chosen = t
                        break
            type_indices[i * count + k] = chosen


@inlined
def _resolve_columns(
    columns: NDArray[np.int64],
    coins: NDArray[np.uint64],
    runs: NDArray[np.int64],
    run_count: IntLike,
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint64],
    nbr: NDArray[np.uint64],
) -> None:
    """Lead the draws of a block from the columns on which they fell to those that they take, and
    ask for their neighbors.
    """
    d = 0
    for r in range(run_count):
        part, start = runs[r, _PART], np.uint64(runs[r, _START])
        row_thresholds, row_fractions, row_nbr = (
            alias_threshold[part] + (start << _EIGHTS),
            alias_fraction[part] + (start << _FOURS),
            nbr[part] + (start << _EIGHTS),
        )
        end = d + runs[r, _SIZE]
        if alias_threshold[part] == 0:
            d = end
        while d < end:
            if columns[d] >= 0:
                column = np.uint64(columns[d])
                row_offset = resolve_column(row_thresholds, row_fractions, column, coins[d])
                # Only columns of a row of sum 0 are never kept and lead to themselves: no need to
                # read its sum.
                if (
                    row_offset == column
                    and u64_at(row_thresholds, row_offset) == row_offset
                    and u32_at(row_fractions, row_offset) == 0
                ):
                    columns[d] = -1
                else:
                    columns[d] = np.int64(row_offset)
                    prefetch_at(row_nbr + (row_offset << _EIGHTS))
            d += 1


@inlined
def _write_neighbors(
    columns: NDArray[np.int64],
    runs: NDArray[np.int64],
    run_count: IntLike,
    nbr: NDArray[np.uint64],
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """Put the neighbors that a block's draws took in place."""
    want_slots = slots.shape[0] > 0
    d = 0
    for r in range(run_count):
        out_pos, flat, start = runs[r, _PLACE], runs[r, _FLAT], runs[r, _START]
        row_nbr = nbr[runs[r, _PART]] + (np.uint64(start) << _EIGHTS)
        for j in range(runs[r, _SIZE]):
            row_offset = columns[d + j]
            if row_offset >= 0:
                out[out_pos + j] = i64_at(row_nbr, row_offset)
                if want_slots:
                    slots[flat + j] = start + row_offset
            elif row_offset == -1:
                out[out_pos + j] = -1
                if want_slots:
                    slots[flat + j] = -1
        d += runs[r, _SIZE]


@kernel
def draw_slots(
    key: np.uint64,
    positions: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    count: np.int64,
    type_indices: NDArray[np.int32],
    type_index: np.int32,
    indptr: NDArray[np.uint64],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint64],
    nbr: NDArray[np.uint64],
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw neighbors with replacement, and put their ids in place.

    Parameters
    ----------
    key : uint64
        ``key_of(seed, rng.NEIGHBOR, direction, hop)``; draw k of a node takes word k of its
        position's key under it.
    positions : int64[m]
    out_rows : int64[m]
        Row of each node in the answer; empty: node i has row i.
    parts, rows : int32[m], int64[m]
        As of `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no neighbors.
    count : int64
    type_indices : int32[m * count]
        Draw only where this is ``type_index``; empty: draw all.
    type_index : int32
    indptr : uint64[P]
        Addresses of each part's int64[rows + 1].
    alias_threshold, alias_fraction : uint64[P], uint64[P]
        Addresses of per-row tables, uint64[slots] and uint32[slots]; 0: every column is certain. A
        row of sum 0 has no neighbors.
    nbr : uint64[P]
        Addresses of int64[slots].
    out : int64[n * count], out
        ``out[at[i] * count + k]``: -1 for no neighbor; what is not drawn here is left as it is.
    slots : int64[m * count], out
        The slots, for `gather_ids` and `gather_weights`; likewise. Empty: not wanted.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    Three blocks are under way: one is hashed while the table rows of the one before it and the
    neighbors of the one before that come from memory."""
    m = rows.shape[0]
    columns = np.empty((3, BLOCK), np.int64)
    coins = np.empty((3, BLOCK), np.uint64)
    runs = np.empty((3, BLOCK, 5), np.int64)
    run_counts = np.zeros(3, np.int64)
    has_types, has_out_rows = type_indices.shape[0] > 0, out_rows.shape[0] > 0
    has_alias_table = False
    for p in range(alias_threshold.shape[0]):
        has_alias_table |= alias_threshold[p] > 0
    node, k = np.int64(-1), count
    node_key, degree, start = np.uint64(0), np.uint64(0), np.uint64(0)
    part, out_base = np.int64(0), np.int64(0)
    buffer_index = 0
    idle = 0
    while idle < 2:
        if is_set(stop):
            return
        size = np.int64(0)
        run_count = 0
        while size < BLOCK:
            if k == count:
                if node + 1 == m:
                    break
                k = np.int64(0)
                node += 1
                ahead = node + NODES_AHEAD
                if ahead < m and rows[ahead] >= 0:
                    prefetch_row_bounds(indptr[parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
                part = np.int64(parts[node])
                out_base = (out_rows[node] if has_out_rows else node) * count
                degree = np.uint64(0)
                if rows[node] >= 0:
                    node_key = derive(key, np.uint64(positions[node]))
                    start = np.uint64(i64_at(indptr[part], rows[node]))
                    degree = np.uint64(i64_at(indptr[part], rows[node] + 1)) - start
            draws = min(count - k, BLOCK - size)
            column_base = (alias_threshold[part] if alias_threshold[part] > 0 else nbr[part]) + (
                start << _EIGHTS
            )
            for j in range(draws):
                w = word(node_key, np.uint64(k + j))
                column = bounded(w, degree)
                columns[buffer_index, size + j] = np.int64(column)
                coins[buffer_index, size + j] = w * degree
                prefetch_at(column_base + (column << _EIGHTS))
            if degree == np.uint64(0):
                columns[buffer_index, size : size + draws] = -1
            if has_types:
                for j in range(draws):
                    if type_indices[node * count + k + j] != type_index:
                        columns[buffer_index, size + j] = _OTHER_TYPE
            (
                runs[buffer_index, run_count, _SIZE],
                runs[buffer_index, run_count, _PART],
                runs[buffer_index, run_count, _START],
            ) = draws, part, np.int64(start)
            runs[buffer_index, run_count, _PLACE], runs[buffer_index, run_count, _FLAT] = (
                out_base + k,
                node * count + k,
            )
            run_count += 1
            size += draws
            k += draws
        run_counts[buffer_index] = run_count
        idle = 0 if run_count > 0 else idle + 1
        buffer_index = (buffer_index + 2) % 3  # the block before this one
        if has_alias_table:
            _resolve_columns(
                columns[buffer_index],
                coins[buffer_index],
                runs[buffer_index],
                run_counts[buffer_index],
                alias_threshold,
                alias_fraction,
                nbr,
            )
        buffer_index = (buffer_index + 2) % 3  # and the one before that
        _write_neighbors(
            columns[buffer_index], runs[buffer_index], run_counts[buffer_index], nbr, out, slots
        )
        run_counts[buffer_index] = 0


@kernel
def gather_ids(
    slots: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    parts: NDArray[np.int32],
    count: np.int64,
    type_indices: NDArray[np.int32],
    type_index: np.int32,
    columns: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """Put the number that belongs to each slot in its place.

    Parameters
    ----------
    slots : int64[m * count]
    out_rows, parts : int64[m], int32[m]
        As in `draw_slots`.
    count : int64
    type_indices, type_index : int32[m * count], int32
        Take only draws where ``type_indices`` is ``type_index``; empty: all.
    columns : uint64[P]
        Addresses of int64[slots].
    out : int64[n * count], out
        ``out[at[i] * count + k]``; what has no slot is left as it is.
    """
    m, lookahead = parts.shape[0], AHEAD // count + 1
    for i in range(m):
        if i + lookahead < m:
            column_ahead = columns[parts[i + lookahead]]
            for slot in slots[(i + lookahead) * count : (i + lookahead + 1) * count]:
                if slot >= 0:
                    prefetch_at(column_ahead + (np.uint64(slot) << _EIGHTS))
        out_pos = (out_rows[i] if out_rows.shape[0] > 0 else i) * count
        for k in range(count):
            flat = i * count + k
            if slots[flat] >= 0 and (
                type_indices.shape[0] == 0 or type_indices[flat] == type_index
            ):
                out[out_pos + k] = i64_at(columns[parts[i]], slots[flat])


@kernel
def gather_weights(
    slots: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    parts: NDArray[np.int32],
    count: np.int64,
    type_indices: NDArray[np.int32],
    type_index: np.int32,
    columns: NDArray[np.uint64],
    out: NDArray[np.float32],
) -> None:
    """Put the weight of each slot in its place; arrays as in `gather_ids`, ``columns`` are of
    float32[slots], and 0 is weights of 1.
    """
    m, lookahead = parts.shape[0], AHEAD // count + 1
    for i in range(m):
        if i + lookahead < m:
            column_ahead = columns[parts[i + lookahead]]
            for slot in slots[(i + lookahead) * count : (i + lookahead + 1) * count]:
                if slot >= 0:
                    prefetch_at(column_ahead + (np.uint64(slot) << _FOURS))
        out_pos = (out_rows[i] if out_rows.shape[0] > 0 else i) * count
        for k in range(count):
            flat = i * count + k
            if slots[flat] >= 0 and (
                type_indices.shape[0] == 0 or type_indices[flat] == type_index
            ):
                out[out_pos + k] = (
                    f32_at(columns[parts[i]], slots[flat])
                    if columns[parts[i]] > 0
                    else np.float32(1.0)
                )


@kernel
def write_types(
    slots: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    count: np.int64,
    type_indices: NDArray[np.int32],
    types: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Put the edge type of each draw in its place: ``out[at[i] * count + k] = types[which[...]]``.

    Parameters
    ----------
    slots, out_rows, count : int64[m * count], int64[m], int64
        As in `gather_ids`; what has no slot is left as it is.
    type_indices : int32[m * count]
        Empty: all are of the first type.
    types : int32[types]
    out : int32[n * count], out
    """
    flat = 0
    for i in range(slots.shape[0] // count):
        out_pos = (out_rows[i] if out_rows.shape[0] > 0 else i) * count
        for k in range(count):
            if slots[flat] >= 0:
                out[out_pos + k] = (
                    types[type_indices[flat]] if type_indices.shape[0] > 0 else types[0]
                )
            flat += 1
