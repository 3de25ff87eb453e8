"""Neighbor sampling with replacement: edge types, slots, and gathers by slot.

Draws have flat numbers: draw k of node i of a call is number i * count + k. A *slot* is a position
in the adjacency of one edge type in the node's partition, -1 for no neighbor. Loops process blocks
of draws across nodes and partitions: one loop hashes and prefetches, the next one reads.
"""

from __future__ import annotations

from typing import NamedTuple

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
from asterism_graphkit.compile.named_tuple_arguments import kernel_record
from asterism_graphkit.random.alias_draw import resolve_column
from asterism_graphkit.random.rng import bounded, derive_mixed, unit_float, word
from storaged.kernels.adjacency_rows import (
    ALIAS_FRACTION,
    ALIAS_THRESHOLD,
    INDPTR,
    NBR,
    prefetch_row_bounds,
)

BLOCK = 128
NODES_AHEAD = 32
AHEAD = 32
_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)
_SIZE, _PART, _START, _PLACE, _FLAT = range(5)
"""Columns of a run, which is the draws of one node within a block.

Number of draws, the node's partition, the row's first slot, and the positions of the first draw in
the result and among all draws.
"""
_OTHER_TYPE = np.int64(-2)
"""Column of a draw of another edge type."""


@kernel_record
class DrawParams(NamedTuple):
    """Parameters of draws with replacement along one edge type.

    Attributes
    ----------
    key : uint64
        ``key_of(seed, rng.NEIGHBOR, direction, hop)``. Draw k of a node uses word k of the key
        derived from it by the node's tag, `rng.node_tag`.
    num_draws : int64
        Draws per node.
    type_index : int32
        Index of the edge type in the union.
    """

    key: np.uint64
    num_draws: np.int64
    type_index: np.int32


class _Nodes(NamedTuple):
    """Nodes of a call; see `draw_slots`."""

    tags: NDArray[np.int64]
    out_rows: NDArray[np.int64]
    parts: NDArray[np.int32]
    rows: NDArray[np.int64]
    type_indices: NDArray[np.int32]


class _Blocks(NamedTuple):
    """Three blocks of draws in flight.

    Attributes
    ----------
    columns : ndarray of int64, shape (3, BLOCK)
        Column that each draw fell on, -1 for none, or `_OTHER_TYPE`; later the resolved column.
    coins : ndarray of uint64, shape (3, BLOCK)
    runs : ndarray of int64, shape (3, BLOCK, 5)
    run_counts : ndarray of int64, shape (3,)
    """

    columns: NDArray[np.int64]
    coins: NDArray[np.uint64]
    runs: NDArray[np.int64]
    run_counts: NDArray[np.int64]


@kernel
def choose_types(
    keys: NDArray[np.uint64],
    measures: NDArray[np.float64],
    count: np.int64,
    type_indices: NDArray[np.int32],
    stop: NDArray[np.int64],
) -> None:
    """Choose the edge type of each draw, in proportion to the weight of each type at the node.

    Parameters
    ----------
    keys : ndarray of uint64, shape (m,)
        Keys of the nodes' tags, derived from ``key_of(seed, rng.NEIGHBOR_TYPE, direction,
        hop)``.
    measures : ndarray of float64, shape (types, m)
        Weight or number of edges of each type at each node.
    count : int64
    type_indices : ndarray of int32, shape (m * count,), out
        Index into the types; -1 if the measures of all types are 0.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.
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
    table: NDArray[np.int64],
    columns: NDArray[np.int64],
    coins: NDArray[np.uint64],
    runs: NDArray[np.int64],
    run_count: IntLike,
) -> None:
    """Resolve the columns of a block's draws with the alias table, and prefetch neighbors."""
    d = 0
    for r in range(run_count):
        part, start = runs[r, _PART], np.uint64(runs[r, _START])
        row_thresholds, row_fractions, row_nbr = (
            np.uint64(table[part, ALIAS_THRESHOLD]) + (start << _EIGHTS),
            np.uint64(table[part, ALIAS_FRACTION]) + (start << _FOURS),
            np.uint64(table[part, NBR]) + (start << _EIGHTS),
        )
        end = d + runs[r, _SIZE]
        if table[part, ALIAS_THRESHOLD] == 0:
            d = end
        while d < end:
            if columns[d] >= 0:
                column = np.uint64(columns[d])
                row_offset = resolve_column(row_thresholds, row_fractions, column, coins[d])
                # Only the columns of a row with sum 0 have threshold 0 and themselves as alias. So
                # the sum need not be read.
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
    table: NDArray[np.int64],
    columns: NDArray[np.int64],
    runs: NDArray[np.int64],
    run_count: IntLike,
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """Write the neighbors of a block's draws."""
    want_slots = slots.shape[0] > 0
    d = 0
    for r in range(run_count):
        out_pos, flat, start = runs[r, _PLACE], runs[r, _FLAT], runs[r, _START]
        row_nbr = np.uint64(table[runs[r, _PART], NBR]) + (np.uint64(start) << _EIGHTS)
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


@inlined
def _draw_blocks(
    table: NDArray[np.int64],
    params: DrawParams,
    nodes: _Nodes,
    blocks: _Blocks,
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Run `draw_slots` with existing scratch arrays."""
    tags, out_rows, parts, rows, type_indices = nodes
    columns, coins, runs, run_counts = blocks
    key, count, type_index = params
    m = rows.shape[0]
    has_types, has_out_rows = type_indices.shape[0] > 0, out_rows.shape[0] > 0
    has_alias_table = False
    for p in range(table.shape[0]):
        has_alias_table |= table[p, ALIAS_THRESHOLD] > 0
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
                    prefetch_row_bounds(
                        np.uint64(table[parts[ahead], INDPTR]) + (np.uint64(rows[ahead]) << _EIGHTS)
                    )
                part = np.int64(parts[node])
                out_base = (out_rows[node] if has_out_rows else node) * count
                degree = np.uint64(0)
                if rows[node] >= 0:
                    node_key = derive_mixed(key, np.uint64(tags[node]))
                    indptr = np.uint64(table[part, INDPTR])
                    start = np.uint64(i64_at(indptr, rows[node]))
                    degree = np.uint64(i64_at(indptr, rows[node] + 1)) - start
            draws = min(count - k, BLOCK - size)
            column_base = np.uint64(
                table[part, ALIAS_THRESHOLD]
                if table[part, ALIAS_THRESHOLD] > 0
                else table[part, NBR]
            ) + (start << _EIGHTS)
            for j in range(draws):
                w = word(node_key, np.uint64(k + j))
                column = bounded(w, degree)
                columns[buffer_index, size + j] = np.int64(column)
                coins[buffer_index, size + j] = w * degree
                prefetch_at(column_base + (column << _EIGHTS))
            if degree == np.uint64(0):
                for j in range(draws):
                    columns[buffer_index, size + j] = -1
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
        buffer_index = (buffer_index + 2) % 3  # the previous block
        if has_alias_table:
            _resolve_columns(
                table,
                columns[buffer_index],
                coins[buffer_index],
                runs[buffer_index],
                run_counts[buffer_index],
            )
        buffer_index = (buffer_index + 2) % 3  # the block before the previous one
        _write_neighbors(
            table, columns[buffer_index], runs[buffer_index], run_counts[buffer_index], out, slots
        )
        run_counts[buffer_index] = 0


@kernel
def draw_slots(
    table: NDArray[np.int64],
    params: DrawParams,
    tags: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    type_indices: NDArray[np.int32],
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Sample neighbors with replacement, and write their ids.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows`. Without ``ALIAS_THRESHOLD`` every column
        is certain. A row with sum 0 has no neighbors.
    params : DrawParams
    tags : ndarray of int64, shape (m,)
        Tags that key the nodes' draws, from `storaged.kernels.node_rows.node_tags`.
    out_rows : ndarray of int64, shape (m,) or (0,)
        Row of each node in the result. If empty, node i has row i.
    parts : ndarray of int32, shape (m,)
    rows : ndarray of int64, shape (m,)
        As in `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no neighbors.
    type_indices : ndarray of int32, shape (m * count,) or (0,)
        Only draws with this equal to ``params.type_index`` are made; if empty, all are.
    out : ndarray of int64, shape (n * count,), out
        ``out[out_rows[i] * count + k]``: -1 for no neighbor. Elements of draws that are not made
        are unchanged.
    slots : ndarray of int64, shape (m * count,) or (0,), out
        Slots for `gather_ids` and `gather_weights`; -1 for no neighbor. If empty, they are not
        written.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.

    Notes
    -----
    Three blocks are in flight: one is hashed while the alias table rows of the previous block and
    the neighbors of the block before that are loaded from memory.
    """
    blocks = _Blocks(
        np.empty((3, BLOCK), np.int64),
        np.empty((3, BLOCK), np.uint64),
        np.empty((3, BLOCK, 5), np.int64),
        np.zeros(3, np.int64),
    )
    nodes = _Nodes(tags, out_rows, parts, rows, type_indices)
    _draw_blocks(table, params, nodes, blocks, out, slots, stop)


@kernel_record
class GatherParams(NamedTuple):
    """Parameters of a gather from the slots of draws.

    Attributes
    ----------
    num_draws : int64
        Draws per node.
    type_index : int32
        Index of the edge type in the union.
    column : int64
        Column of the address table that is read.
    """

    num_draws: np.int64
    type_index: np.int32
    column: np.int64


def gather_params(count: int, type_index: int, column: int) -> GatherParams:
    """Return `GatherParams` with the types that kernels are compiled for."""
    return GatherParams(np.int64(count), np.int32(type_index), np.int64(column))


@kernel
def gather_ids(
    table: NDArray[np.int64],
    params: GatherParams,
    slots: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    parts: NDArray[np.int32],
    type_indices: NDArray[np.int32],
    out: NDArray[np.int64],
) -> None:
    """Gather an int64 value of each drawn slot.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table; ``params.column`` has addresses of int64[slots].
    params : GatherParams
    slots : ndarray of int64, shape (m * count,)
        -1 for no draw.
    out_rows, parts : ndarray of int64 and of int32, shape (m,)
        As in `draw_slots`.
    type_indices : ndarray of int32, shape (m * count,) or (0,)
        Only draws with this equal to ``params.type_index`` are gathered; if empty, all are.
    out : ndarray of int64, shape (n * count,), out
        ``out[out_rows[i] * count + k]``. Elements without a slot are unchanged.
    """
    count, type_index, column = params
    m, lookahead = parts.shape[0], AHEAD // count + 1
    for i in range(m):
        if i + lookahead < m:
            column_ahead = np.uint64(table[parts[i + lookahead], column])
            for slot in slots[(i + lookahead) * count : (i + lookahead + 1) * count]:
                if slot >= 0:
                    prefetch_at(column_ahead + (np.uint64(slot) << _EIGHTS))
        out_pos = (out_rows[i] if out_rows.shape[0] > 0 else i) * count
        values = np.uint64(table[parts[i], column])
        for k in range(count):
            flat = i * count + k
            if slots[flat] >= 0 and (
                type_indices.shape[0] == 0 or type_indices[flat] == type_index
            ):
                out[out_pos + k] = i64_at(values, slots[flat])


@kernel
def gather_weights(
    table: NDArray[np.int64],
    params: GatherParams,
    slots: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    parts: NDArray[np.int32],
    type_indices: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    """Gather the weight of each drawn slot.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table; ``params.column`` has addresses of float32[slots], and 0 means that all
        weights are 1.
    params, slots, out_rows, parts, type_indices
        As in `gather_ids`.
    out : ndarray of float32, shape (n * count,), out
        As in `gather_ids`.
    """
    count, type_index, column = params
    m, lookahead = parts.shape[0], AHEAD // count + 1
    for i in range(m):
        if i + lookahead < m:
            column_ahead = np.uint64(table[parts[i + lookahead], column])
            for slot in slots[(i + lookahead) * count : (i + lookahead + 1) * count]:
                if slot >= 0:
                    prefetch_at(column_ahead + (np.uint64(slot) << _FOURS))
        out_pos = (out_rows[i] if out_rows.shape[0] > 0 else i) * count
        weights = np.uint64(table[parts[i], column])
        for k in range(count):
            flat = i * count + k
            if slots[flat] >= 0 and (
                type_indices.shape[0] == 0 or type_indices[flat] == type_index
            ):
                out[out_pos + k] = f32_at(weights, slots[flat]) if weights > 0 else np.float32(1.0)


@kernel
def write_types(
    slots: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    count: np.int64,
    type_indices: NDArray[np.int32],
    types: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Write the edge type of each draw.

    Parameters
    ----------
    slots, out_rows : ndarray of int64, shape (m * count,) and (m,)
        As in `gather_ids`. Elements of ``out`` without a slot are unchanged.
    count : int64
    type_indices : ndarray of int32, shape (m * count,) or (0,)
        If empty, all draws are of the first type.
    types : ndarray of int32, shape (types,)
    out : ndarray of int32, shape (n * count,), out
        ``out[out_rows[i] * count + k] = types[type_indices[i * count + k]]``.
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
