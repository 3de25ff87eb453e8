"""Unbiased walks along one edge type per step, from packed rows.

A step takes two random reads. The walks have the same bits as those of
`storaged.kernels.walks.generic`. Only nodes are returned. Several hundred walks are in flight, and
all of them take a step before any takes the next one, so that the edge type and the key are the
same for all. Chunks of a few walks advance by one read in loops with no other work, while the
prefetched memory of the chunks before arrives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    CHECK_BOUNDS,
    inlined,
    kernel,
    prefetch_at,
    register_at,
    u64_at,
)
from asterism_graphkit.random.rng import (
    GOLDEN,
    bounded_short,
    mix64,
    mix_tag,
    node_offset,
    word,
)
from storaged.kernels.adjacency_rows import INDPTR, NARROW, PACKED, ROWS, prefetch_row_bounds
from storaged.kernels.neighbors.packed import read_neighbor, record_address, record_base
from storaged.kernels.walks.state import (
    IDS,
    KINDS,
    LOCAL,
    POSITIONS,
    REMOTE,
    SLOT_KEY,
    STEPS_DONE,
    WalkParams,
    WalkTables,
)

ACTIVE_WALKS, CHUNK = 512, 8
"""Maximum number of walks in flight, and the number of walks per chunk."""
_DRAW_LAG, _READ_LAG = np.uint64(4 * CHUNK), np.uint64(9 * CHUNK)
"""Walks between prefetch and read: of row bounds, and of row bounds plus records."""
NEXT_WALK, LIVE, STEP, KIND = range(4)
"""Elements of ``cursor``.

Position of the next walk to load; for the walks in flight their number, the steps taken, and the
type of their nodes.
"""
FIELDS = 4
"""Number of state columns that are kept from step to step: the first ones below."""
_NODES, _WALKS, _PLACES, _TAGS, _EDGES, _BASES, _RECORDS, _COINS, _STARTS, _DEGREES = (
    np.uint64(ACTIVE_WALKS * i) for i in range(10)
)
"""Start of each column of the state of the walks in flight.

The node of each walk, its index, the output position of its next node, and the tag of its position;
then the address of its row bounds, the record of slot 0, the record and the coin of its draw, and
the first slot and degree.
"""
_ZERO, _ONE, _EIGHTS, _CHUNK = (np.uint64(value) for value in (0, 1, 3, CHUNK))
_NOTHING = np.zeros(2, np.uint64)
"""Bounds of a row without edges."""


class _PartAddresses(NamedTuple):
    """Addresses that a step along one edge type reads, by partition.

    Attributes
    ----------
    indptr, rows, bases : ndarray of uint64, shape (P,)
        Address of the row bounds, number of rows, and record of slot 0.
    """

    indptr: NDArray[np.uint64]
    rows: NDArray[np.uint64]
    bases: NDArray[np.uint64]


@inlined
def _load(
    tables: WalkTables,
    params: WalkParams,
    order: NDArray[np.int64],
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    cursor: NDArray[np.int64],
    state: NDArray[np.uint64],
) -> None:
    """Load walks that have taken equally many steps, and have steps left."""
    walkers, end_types, steps = tables.walkers, tables.end_types, tables.steps
    m, live, next_index = walkers.shape[1], _ZERO, cursor[NEXT_WALK]
    while next_index < m and live < np.uint64(ACTIVE_WALKS):
        walk = order[next_index] if order.shape[0] > 0 else next_index
        node, step, out_pos = (
            walkers[IDS, walk],
            walkers[STEPS_DONE, walk],
            walk * params.row_stride + params.first_column,
        )
        if live > _ZERO and step != cursor[STEP]:
            break
        next_index += 1
        if params.first_column > 0:
            ids[out_pos - 1] = node
        if node < 0 or step >= params.length:
            continue
        cursor[STEP], cursor[KIND] = step, end_types[LOCAL, steps[step % steps.shape[0], 0]]
        if walkers[KINDS, walk] == cursor[KIND]:
            state[_NODES + live], state[_WALKS + live], state[_PLACES + live] = node, walk, out_pos
            state[_TAGS + live] = mix_tag(np.uint64(walkers[POSITIONS, walk]))
            live += _ONE
        else:  # no edge of this type starts at the node
            ids[out_pos], steps_done[walk] = -1, step + 1
    cursor[NEXT_WALK], cursor[LIVE] = next_index, np.int64(live)


@inlined
def _list_addresses(
    table: NDArray[np.int64],
    edge: np.int64,
    type_matches: bool,
    params: WalkParams,
    addresses: _PartAddresses,
) -> None:
    """List the addresses for a step along an edge type, by partition.

    Without ``type_matches`` all partitions have 0 rows.
    """
    indptr, rows, bases = addresses
    for part in range(params.parts):
        table_row = edge * params.parts + part
        indptr[part], rows[part] = (
            table[table_row, INDPTR],
            max(table[table_row, ROWS], np.int64(0)) if type_matches else np.int64(0),
        )
        bases[part] = record_base(
            np.uint64(table[table_row, NARROW]),
            _ZERO if params.uniform else np.uint64(table[table_row, PACKED]),
        )


@inlined
def _locate_rows(
    begin: np.uint64,
    end: np.uint64,
    params: WalkParams,
    addresses: _PartAddresses,
    empty_row: np.uint64,
    state: NDArray[np.uint64],
) -> None:
    """Find the rows of nodes in partitions held by this host, and prefetch their bounds."""
    indptr, rows, bases = addresses
    parts, shift = np.uint64(params.parts), np.uint64(params.shift)
    for lane in range(begin, end):
        node = state[_NODES + lane]
        part, row = (
            (node & (parts - _ONE), node >> shift)
            if params.shift >= 0
            else (node % parts, node // parts)
        )
        row_address = indptr[part] + (row << _EIGHTS)
        state[_EDGES + lane], state[_BASES + lane] = (
            row_address if row < rows[part] else empty_row,
            bases[part],
        )
    for lane in range(begin, end):
        prefetch_row_bounds(state[_EDGES + lane])


@inlined
def _draw_slots(
    begin: np.uint64, end: np.uint64, key: np.uint64, state: NDArray[np.uint64]
) -> None:
    """Draw a slot of each row, and prefetch its record; ``key`` includes the nodes' type."""
    for lane in range(begin, end):
        start = u64_at(state[_EDGES + lane], _ZERO)
        state[_STARTS + lane], state[_DEGREES + lane] = (
            start,
            u64_at(state[_EDGES + lane], _ONE) - start,
        )
    for lane in range(begin, end):
        tag = state[_TAGS + lane] + state[_NODES + lane] * GOLDEN
        w, degree = word(mix64(key + tag), _ZERO), state[_DEGREES + lane]
        record = record_address(
            state[_BASES + lane], state[_STARTS + lane] + bounded_short(w, degree)
        )
        state[_RECORDS + lane], state[_COINS + lane] = (
            record if degree > _ZERO else _ZERO,
            w * degree,
        )
    for lane in range(begin, end):
        prefetch_at(state[_RECORDS + lane])


@inlined
def _advance(
    tables: WalkTables,
    params: WalkParams,
    begin: np.uint64,
    end: np.uint64,
    step: np.int64,
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    state: NDArray[np.uint64],
    live: np.uint64,
) -> np.uint64:
    """Write the next nodes of walks, and append the walks that continue to ``live`` others.

    Returns the new number of live walks.
    """
    table, local_parts = tables.table, tables.local_parts
    parts, continues = np.uint64(params.parts), np.uint64(step + 1 < params.length)
    for lane in range(begin, end):
        walk, out_pos, tag = state[_WALKS + lane], state[_PLACES + lane], state[_TAGS + lane]
        node = np.int64(read_neighbor(table, state[_RECORDS + lane], state[_COINS + lane]))
        ids[out_pos], steps_done[walk] = node, step + 1
        state[_NODES + live], state[_WALKS + live], state[_PLACES + live], state[_TAGS + live] = (
            node,
            walk,
            out_pos + _ONE,
            tag,
        )
        part = np.uint64(node) & (parts - _ONE) if params.shift >= 0 else np.uint64(node) % parts
        live += np.uint64((node >= 0) & local_parts[part]) & continues
    return live


@inlined
def _run(
    tables: WalkTables,
    params: WalkParams,
    order: NDArray[np.int64],
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    cursor: NDArray[np.int64],
    addresses: _PartAddresses,
    empty_row: np.uint64,
    state: NDArray[np.uint64],
) -> None:
    """Run `advance_packed_walks` with existing scratch arrays."""
    table, end_types, steps, keys = tables.table, tables.end_types, tables.steps, tables.keys
    if cursor[LIVE] == 0:
        _load(tables, params, order, steps_done, ids, cursor, state)
    for _ in range(params.rounds):
        if cursor[LIVE] == 0:
            break
        step, count, live = cursor[STEP], np.uint64(cursor[LIVE]), _ZERO
        edge = steps[step % steps.shape[0], 0]
        key = keys[SLOT_KEY, step] + node_offset(np.int64(0), end_types[LOCAL, edge])
        _list_addresses(
            table, edge, bool(end_types[LOCAL, edge] == cursor[KIND]), params, addresses
        )
        for tick in range(_ZERO, count + _READ_LAG, _CHUNK):
            begin = np.uint64(tick)
            if begin < count:
                _locate_rows(begin, min(begin + _CHUNK, count), params, addresses, empty_row, state)
            if begin >= _DRAW_LAG and begin - _DRAW_LAG < count:
                _draw_slots(begin - _DRAW_LAG, min(begin - _DRAW_LAG + _CHUNK, count), key, state)
            if begin >= _READ_LAG:
                live = _advance(
                    tables,
                    params,
                    begin - _READ_LAG,
                    min(begin - _READ_LAG + _CHUNK, count),
                    step,
                    steps_done,
                    ids,
                    state,
                    live,
                )
        cursor[LIVE], cursor[STEP], cursor[KIND] = np.int64(live), step + 1, end_types[REMOTE, edge]
        if live == _ZERO:
            _load(tables, params, order, steps_done, ids, cursor, state)


@kernel
def advance_packed_walks(
    tables: WalkTables,
    params: WalkParams,
    order: NDArray[np.int64],
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    lanes: NDArray[np.uint64],
    cursor: NDArray[np.int64],
) -> None:
    """Advance walks until they end or leave this host.

    Rows must follow from ids, without an index.

    Parameters
    ----------
    tables : WalkTables
        All rows of ``table`` that have edges have packed rows.
    params : WalkParams
        ``rounds`` is the number of steps of the walks in flight per call.
    order : ndarray of int64, shape (m,) or (0,)
        Walks by steps taken, ascending. If empty, all have taken the same number.
    steps_done : ndarray of int64, shape (m,), inout
        Steps that each walk has taken.
    ids : ndarray of int64, flat, out
        Next nodes of the walks; -1 for a dead end. Each walk's start is written before them unless
        ``params.first_column`` is 0.
    lanes : ndarray of uint64, shape (FIELDS * ACTIVE_WALKS,), inout
        Walks in flight.
    cursor : ndarray of int64, shape (4,), inout
        All 0 for the first call. The walks are complete when `LIVE` is 0 after a call.
    """
    empty_row, state = np.uint64(_NOTHING.ctypes.data), np.empty(10 * ACTIVE_WALKS, np.uint64)
    if CHECK_BOUNDS:
        register_at(empty_row, 8 * _NOTHING.size)
    addresses = _PartAddresses(
        np.empty(params.parts, np.uint64),
        np.empty(params.parts, np.uint64),
        np.empty(params.parts, np.uint64),
    )
    state[: FIELDS * ACTIVE_WALKS] = lanes
    _run(tables, params, order, steps_done, ids, cursor, addresses, empty_row, state)
    lanes[:] = state[: FIELDS * ACTIVE_WALKS]
