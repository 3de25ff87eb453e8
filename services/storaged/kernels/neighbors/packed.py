"""Sampling from packed rows: one random read gives the neighbor.

A separate alias table and neighbor list take two. The draws have the same bits as those of
`storaged.kernels.neighbors.with_replacement` and `storaged.kernels.walks.generic`. A record is
identified by its address. Bit 0 of the address is set if the record is only a neighbor, as for
uniform draws. 0 is no record.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    IntLike,
    i64_at,
    inlined,
    is_set,
    kernel,
    prefetch_at,
    u32_at,
    u64_at,
)
from asterism_graphkit.random.rng import bounded_short, derive_mixed, word
from storaged.kernels.adjacency_rows import (
    ALIAS_FRACTION,
    INDPTR,
    NARROW,
    PACKED,
    prefetch_row_bounds,
)
from storaged.kernels.neighbors.with_replacement import NODES_AHEAD, DrawParams
from storaged.store.image import NO_NEIGHBOR

STEP, DRAWS = 64, 320
"""Draws of one node, and of several nodes together, hashed before earlier ones are read."""
_EIGHTS, _FOURS, _SIXTEENTHS = np.uint64(3), np.uint64(2), np.uint64(4)
_NONE, _ALONE = np.uint64(0), np.uint64(1)
_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)
_NO_NEIGHBOR = np.uint64(NO_NEIGHBOR)


@inlined
def record_base(narrow: np.uint64, packed: np.uint64) -> np.uint64:
    """Return the address of the record of slot 0."""
    return packed if packed > 0 else narrow + _ALONE


@inlined
def record_address(base: np.uint64, slot: np.uint64) -> np.uint64:
    """Return the address of the record of a slot."""
    return base + (slot << (_FOURS if base & _ALONE else _SIXTEENTHS))


@inlined
def _keeps_column(
    table: NDArray[np.int64], record: np.uint64, alias_entry: np.uint64, coin: np.uint64
) -> np.uint64:
    """Return all ones if a draw keeps its column, else 0.

    Decides as `asterism_graphkit.random.alias_draw.resolve_column` does.
    """
    high, threshold = np.int64(coin >> _S32), np.int64(alias_entry >> _S32)
    keep_mask = np.uint64((high - threshold) >> _SIGN)
    if high == threshold:  # once in 2^32 draws: find the partition of this record
        start, part = _NONE, np.int64(0)
        for p in range(table.shape[0]):
            packed = np.uint64(table[p, PACKED])
            if start < packed and packed <= record:
                start, part = packed, np.int64(p)
        alias_fraction = np.uint64(table[part, ALIAS_FRACTION])
        if (coin & _LOW) < np.uint64(u32_at(alias_fraction, (record - start) >> _SIXTEENTHS)):
            keep_mask = ~_NONE
    return keep_mask


@inlined
def read_neighbor(table: NDArray[np.int64], record: np.uint64, coin: np.uint64) -> IntLike:
    """Return the neighbor that a draw leads to, or -1 for none.

    Parameters
    ----------
    table : ndarray of int64, shape (lines, COLUMNS)
        Address table; one of its rows is the partition of the record.
    record, coin : uint64
    """
    if record == _NONE:
        return np.int64(-1)
    if record & _ALONE:
        return np.int64(u32_at(record - _ALONE, _NONE))
    second_word = u64_at(record, _ALONE)
    keep_mask = _keeps_column(table, record, u64_at(record, _NONE), coin)
    neighbor = ((second_word & keep_mask) | ((second_word >> _S32) & ~keep_mask)) & _LOW
    return np.int64(neighbor) if neighbor != _NO_NEIGHBOR else np.int64(-1)


@inlined
def _hash_and_prefetch(
    node_key: np.uint64,
    begin: IntLike,
    start: np.uint64,
    degree: np.uint64,
    base: np.uint64,
    buffer_pos: np.uint64,
    size: IntLike,
    records: NDArray[np.uint64],
    coins: NDArray[np.uint64],
) -> None:
    """Hash draws of a row from ``begin`` on, and prefetch their records.

    The hash loops do no other work, so that they are vectorized.
    """
    if degree == _NONE:
        for k in range(size):
            records[buffer_pos + np.uint64(k)] = _NONE
        return
    if base & _ALONE:
        for k in range(size):
            records[buffer_pos + np.uint64(k)] = base + (
                start + bounded_short(word(node_key, np.uint64(begin + k)), degree) << _FOURS
            )
    else:
        for k in range(size):
            w = word(node_key, np.uint64(begin + k))
            records[buffer_pos + np.uint64(k)] = base + (
                start + bounded_short(w, degree) << _SIXTEENTHS
            )
            coins[buffer_pos + np.uint64(k)] = w * degree
    for k in range(size):
        prefetch_at(records[buffer_pos + np.uint64(k)])


@inlined
def _write_neighbors(
    table: NDArray[np.int64],
    buffer_pos: np.uint64,
    size: IntLike,
    out_pos: np.uint64,
    records: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """Write the neighbors of ``size`` draws: from ``buffer_pos`` on to ``out_pos`` on."""
    for i in range(size):
        out[out_pos + np.uint64(i)] = read_neighbor(
            table,
            np.uint64(records[buffer_pos + np.uint64(i)]),
            np.uint64(coins[buffer_pos + np.uint64(i)]),
        )


@inlined
def _write_slots(
    table: NDArray[np.int64],
    buffer_pos: np.uint64,
    size: IntLike,
    out_pos: np.uint64,
    records: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    starts: NDArray[np.uint64],
    slots: NDArray[np.int64],
) -> None:
    """Replace the slots of the drawn columns by the slots of the draws."""
    for i in range(size):
        record, coin = (
            np.uint64(records[buffer_pos + np.uint64(i)]),
            np.uint64(coins[buffer_pos + np.uint64(i)]),
        )
        if record == _NONE:
            slots[out_pos + np.uint64(i)] = -1
        elif record & _ALONE == _NONE:
            alias_entry = u64_at(record, _NONE)
            if u64_at(record, _ALONE) & _LOW == _NO_NEIGHBOR:
                slots[out_pos + np.uint64(i)] = -1
            elif _keeps_column(table, record, alias_entry, coin) == _NONE:
                slots[out_pos + np.uint64(i)] = np.int64(
                    starts[buffer_pos + np.uint64(i)] + (alias_entry & _LOW)
                )


@kernel
def draw_packed(
    table: NDArray[np.int64],
    params: DrawParams,
    tags: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Sample neighbors with replacement along one edge type, and write their ids.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows`. ``NARROW`` and ``PACKED`` are the
        addresses of uint32[slots] and uint64[2 * slots] of `storaged.store.image.AdjacencyImage`.
        Without ``PACKED`` every column is certain.
    params : DrawParams
        ``type_index`` is ignored: there is one edge type.
    tags, out_rows, parts, rows, out, slots, stop
        As in `storaged.kernels.neighbors.with_replacement.draw_slots`.

    Notes
    -----
    Several nodes are hashed together. Their prefetched records are read after the next nodes have
    been hashed, in one loop if the output is contiguous: the end of a loop over the few draws of
    one node would be mispredicted.
    """
    key, count = params.key, params.num_draws
    m, has_out_rows, want_slots = rows.shape[0], out_rows.shape[0] > 0, slots.shape[0] > 0
    width = max(min(count, np.int64(STEP)), np.int64(1))
    tile = max(np.int64(DRAWS) // width, np.int64(1))
    record_buffers, coin_buffers, start_buffers = (
        np.empty((2, tile * width), np.uint64),
        np.empty((2, tile * width), np.uint64),
        np.empty((2, tile * width), np.uint64),
    )
    buffer_index, prev_nodes, prev_first, prev_size, prev_begin = (
        np.int64(0),
        np.int64(0),
        np.int64(0),
        np.int64(0),
        np.int64(0),
    )
    for first in range(0, m + tile, tile):
        nodes = max(min(tile, m - first), np.int64(0))
        # The last iteration has no nodes: it reads the records of the previous one.
        for begin in range(0, count if nodes > 0 else min(count, np.int64(1)), width):
            if is_set(stop):
                return
            records, coins, starts, block_size = (
                record_buffers[buffer_index],
                coin_buffers[buffer_index],
                start_buffers[buffer_index],
                min(width, count - begin),
            )
            for t in range(nodes):
                node, buffer_pos = first + t, np.uint64(t * block_size)
                part, start, degree = np.int64(parts[node]), _NONE, _NONE
                ahead = node + NODES_AHEAD
                if ahead < m and rows[ahead] >= 0:
                    prefetch_row_bounds(
                        np.uint64(table[parts[ahead], INDPTR]) + (np.uint64(rows[ahead]) << _EIGHTS)
                    )
                if rows[node] >= 0:
                    indptr = np.uint64(table[part, INDPTR])
                    start = np.uint64(i64_at(indptr, rows[node]))
                    degree = np.uint64(i64_at(indptr, rows[node] + 1)) - start
                base = record_base(np.uint64(table[part, NARROW]), np.uint64(table[part, PACKED]))
                _hash_and_prefetch(
                    derive_mixed(key, np.uint64(tags[node])),
                    begin,
                    start,
                    degree,
                    base,
                    buffer_pos,
                    block_size,
                    records,
                    coins,
                )
                if want_slots:
                    shift, flat = (
                        _FOURS if base & _ALONE else _SIXTEENTHS,
                        np.uint64(node * count + begin),
                    )
                    for k in range(block_size):
                        k_th = np.uint64(k)
                        slots[flat + k_th], starts[buffer_pos + k_th] = (
                            np.int64(records[buffer_pos + k_th] - base >> shift),
                            start,
                        )
            buffer_index = np.int64(1) - buffer_index
            records, coins, starts = (
                record_buffers[buffer_index],
                coin_buffers[buffer_index],
                start_buffers[buffer_index],
            )
            # If each node's draws are complete, the draws of all nodes are contiguous.
            contiguous = prev_size == count
            for t in range(min(prev_nodes, np.int64(1)) if contiguous else prev_nodes):
                prev_pos, out_pos, length = (
                    np.uint64(t * prev_size),
                    np.uint64((prev_first + t) * count + prev_begin),
                    prev_nodes * prev_size if contiguous else prev_size,
                )
                if want_slots:
                    _write_slots(table, prev_pos, length, out_pos, records, coins, starts, slots)
                if not has_out_rows:
                    _write_neighbors(table, prev_pos, length, out_pos, records, coins, out)
            if has_out_rows:
                for t in range(prev_nodes):
                    _write_neighbors(
                        table,
                        np.uint64(t * prev_size),
                        prev_size,
                        np.uint64(out_rows[prev_first + t] * count + prev_begin),
                        records,
                        coins,
                        out,
                    )
            prev_nodes, prev_first, prev_size, prev_begin = (
                nodes,
                np.int64(first),
                np.int64(block_size),
                np.int64(begin),
            )
