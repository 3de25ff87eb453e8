"""Unbiased walks along one edge type a step, from packed rows: two reads at random a step.

The walks are those of `storaged.kernels.walks.generic`, to the bit, where nothing but the nodes is
wanted. Some hundreds are under way at a time, and all of them take a step before any takes the next
one, so that what it depends on is the same for all. A few at a time go a read further together, in
loops that do nothing else, while what those before them have prefetched is on its way."""

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
from asterism_graphkit.random.rng import bounded_short, mix64, mix_tag, word
from storaged.kernels.adjacency import INDPTR, NARROW, PACKED, ROWS, prefetch_row_bounds
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
"""Walks under way at most, and which go a read further together."""
_DRAW_LAG, _READ_LAG = np.uint64(4 * CHUNK), np.uint64(9 * CHUNK)
"""Walks between what is asked for and what is read: of where edges begin, and of both that and the
record of a draw.
"""
NEXT_WALK, LIVE, STEP, KIND = range(4)
"""Elements of ``cursor``: the place of the walk that is loaded next; of those under way their
number, the steps they have taken, and the type of the nodes where they are."""
FIELDS = 4
"""Columns that are kept from step to step, the first of those that follow."""
_NODES, _WALKS, _PLACES, _TAGS, _EDGES, _BASES, _RECORDS, _COINS, _STARTS, _DEGREES = (
    np.uint64(ACTIVE_WALKS * i) for i in range(10)
)
"""Where each column of the state of walks under way begins: the node of each, its number, where its
next node is written, and the tag of its position; then the address of its row bounds, the record of
slot 0 there, the record and the coin of its draw, and what is read there."""
_ZERO, _ONE, _EIGHTS, _CHUNK = (np.uint64(value) for value in (0, 1, 3, CHUNK))
_NOTHING = np.zeros(2, np.uint64)
"""The bounds of a row that has no edges."""


class _PartAddresses(NamedTuple):
    """What a step along one edge type reads, by part.

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
    """Load walks that have taken equally many steps, and have some left."""
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
        else:  # no edge of this type begins there
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
    """List what a step along an edge type reads, by the part; of no rows unless it begins
    ``type_matches``.
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
    """Find the rows of nodes, which live in parts held here, and prefetch their bounds."""
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
    """Draw a slot of each row, and prefetch its record."""
    for lane in range(begin, end):
        start = u64_at(state[_EDGES + lane], _ZERO)
        state[_STARTS + lane], state[_DEGREES + lane] = (
            start,
            u64_at(state[_EDGES + lane], _ONE) - start,
        )
    for lane in range(begin, end):
        w, degree = word(mix64(key + state[_TAGS + lane]), _ZERO), state[_DEGREES + lane]
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
    """Write where walks have come to, and move those that go on together, after ``live`` others;
    return how many there are then.
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
    """`advance_packed_walks`, in scratch that is there."""
    table, end_types, steps, keys = tables.table, tables.end_types, tables.steps, tables.keys
    if cursor[LIVE] == 0:
        _load(tables, params, order, steps_done, ids, cursor, state)
    for _ in range(params.rounds):
        if cursor[LIVE] == 0:
            break
        step, count, live = cursor[STEP], np.uint64(cursor[LIVE]), _ZERO
        edge, key = steps[step % steps.shape[0], 0], keys[SLOT_KEY, step]
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
    """Advance walks, each until it ends or leaves the parts held here; where rows follow from ids.

    Parameters
    ----------
    tables : WalkTables
        Every line of its ``table`` that has edges has them packed.
    params : WalkParams
        Its ``rounds`` are steps that the walks under way take in one call.
    order : ndarray of int64, shape (m,) or (0,)
        Walks by the steps they have taken, the fewest first; empty where all have taken as many.
    steps_done : ndarray of int64, shape (m,), in and out
        Steps that each walk has taken.
    ids : ndarray of int64, flat, out
        The next nodes of walks, -1 for a dead end; the start of each before them unless
        ``params.first_column`` is 0.
    lanes : ndarray of uint64, shape (FIELDS * ACTIVE_WALKS,), in and out
        The walks under way.
    cursor : ndarray of int64, shape (4,), in and out
        All 0 at first; nothing is left to do when `LIVE` is.
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
