"""Walks whose steps follow one edge type each, whatever came before, from packed rows: two reads at
random a step.

What `storaged.kernels.walks.generic` takes, to the bit, where nothing but the nodes is wanted of
it. Some hundreds are under way at a time, and all of them take a step before any takes the next
one, so that what it depends on is the same for all. A few at a time go a read further together, in
loops that do nothing else, while what those before them have asked for is on its way."""

from __future__ import annotations

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
)

ACTIVE_WALKS, CHUNK = 512, 8
"""Walks under way at most, and which go a read further together."""
_DRAW_LAG, _READ_LAG = np.uint64(4 * CHUNK), np.uint64(9 * CHUNK)
"""Walks between what is asked for and what is read: of where edges begin, and of both that and the
record of a draw.
"""
NEXT_WALK, LIVE, STEP, KIND = range(4)
"""Of ``cursor``: the place of the walk that is put under way next; of those that are how many these
are, the steps behind them, and the type of the nodes where they are."""
FIELDS = 4
"""Columns that are kept from step to step, the first of those that follow."""
_NODES, _WALKS, _PLACES, _TAGS, _EDGES, _BASES, _RECORDS, _COINS, _STARTS, _DEGREES = (
    np.uint64(ACTIVE_WALKS * i) for i in range(10)
)
"""Where in what is known of walks under way each column begins: where each is, which it is, where
its next node is put, and the tag of its position; then where its node's edges are told, the record
of slot 0 there, the record and the coin of its draw, and what is read there."""
_ZERO, _ONE, _EIGHTS, _CHUNK = (np.uint64(value) for value in (0, 1, 3, CHUNK))
_NOTHING = np.zeros(2, np.uint64)
"""What is told of a row that has no edges."""


@inlined
def _load(
    walkers: NDArray[np.int64],
    order: NDArray[np.int64],
    end_types: NDArray[np.int64],
    steps: NDArray[np.int64],
    params: WalkParams,
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    row_stride: np.int64,
    first: np.int64,
    cursor: NDArray[np.int64],
    state: NDArray[np.uint64],
) -> None:
    """Put walks under way that have equally many steps behind them, and somewhere to go."""
    m, live, next_index = walkers.shape[1], _ZERO, cursor[NEXT_WALK]
    while next_index < m and live < np.uint64(ACTIVE_WALKS):
        walk = order[next_index] if order.shape[0] > 0 else next_index
        node, step, out_pos = (
            walkers[IDS, walk],
            walkers[STEPS_DONE, walk],
            walk * row_stride + first,
        )
        if live > _ZERO and step != cursor[STEP]:
            break
        next_index += 1
        if first > 0:
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
    indptr: NDArray[np.uint64],
    rows: NDArray[np.uint64],
    bases: NDArray[np.uint64],
) -> None:
    """List what a step along an edge type reads, by the part; of no rows unless it begins
    ``type_matches``.
    """
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
    indptr: NDArray[np.uint64],
    rows: NDArray[np.uint64],
    bases: NDArray[np.uint64],
    empty_row: np.uint64,
    state: NDArray[np.uint64],
) -> None:
    """Find the rows of nodes, which live in parts held here, and ask for where their edges begin
    and end.
    """
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
    """Draw a slot of each row, and ask for its record."""
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
    begin: np.uint64,
    end: np.uint64,
    step: np.int64,
    local_parts: NDArray[np.bool_],
    params: WalkParams,
    packed: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint64],
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    state: NDArray[np.uint64],
    live: np.uint64,
) -> np.uint64:
    """Tell where walks have come to, and close up those that go on behind ``live`` others; how many
    there are then.
    """
    parts, continues = np.uint64(params.parts), np.uint64(step + 1 < params.length)
    for lane in range(begin, end):
        walk, out_pos, tag = state[_WALKS + lane], state[_PLACES + lane], state[_TAGS + lane]
        node = np.int64(
            read_neighbor(state[_RECORDS + lane], state[_COINS + lane], packed, alias_fraction)
        )
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


@kernel
def advance_packed_walks(
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    end_types: NDArray[np.int64],
    local_parts: NDArray[np.bool_],
    steps: NDArray[np.int64],
    keys: NDArray[np.uint64],
    params: WalkParams,
    steps_done: NDArray[np.int64],
    order: NDArray[np.int64],
    ids: NDArray[np.int64],
    row_stride: np.int64,
    first: np.int64,
    packed: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint64],
    lanes: NDArray[np.uint64],
    cursor: NDArray[np.int64],
    rounds: np.int64,
) -> None:
    """Take walks on, each until it ends or leaves the parts held here; where rows follow from ids.

    Parameters
    ----------
    walkers, table, end_types, local_parts, steps, keys, params, steps_done
        As of `storaged.kernels.walks.generic.advance_walks`; every line of ``table`` that has edges
        has them packed.
    order : int64[m]
        Walks by the steps behind them, the fewest first; none where all have as many.
    ids : int64[k], out
        As there, but flat: walk i's next nodes from place i * ``row_stride`` + ``first`` on, its
        start before them unless ``first`` is 0.
    row_stride, first : int64
    packed, alias_fraction : uint64[E * P]
        Those columns of ``table``.
    lanes : uint64[FIELDS * LANES], inout
        The walks under way.
    cursor : int64[4], inout
        All 0 at first; nothing is left to do when `LIVE` is.
    rounds : int64
        Steps that those under way take in one call.
    """
    empty_row, state = np.uint64(_NOTHING.ctypes.data), np.empty(10 * ACTIVE_WALKS, np.uint64)
    if CHECK_BOUNDS:
        register_at(empty_row, 8 * _NOTHING.size)
    indptr, rows, bases = (
        np.empty(params.parts, np.uint64),
        np.empty(params.parts, np.uint64),
        np.empty(params.parts, np.uint64),
    )
    state[: FIELDS * ACTIVE_WALKS] = lanes
    if cursor[LIVE] == 0:
        _load(
            walkers,
            order,
            end_types,
            steps,
            params,
            steps_done,
            ids,
            row_stride,
            first,
            cursor,
            state,
        )
    for _ in range(rounds):
        if cursor[LIVE] == 0:
            break
        step, count, live = cursor[STEP], np.uint64(cursor[LIVE]), _ZERO
        edge, key = steps[step % steps.shape[0], 0], keys[SLOT_KEY, step]
        _list_addresses(
            table, edge, bool(end_types[LOCAL, edge] == cursor[KIND]), params, indptr, rows, bases
        )
        for tick in range(_ZERO, count + _READ_LAG, _CHUNK):
            begin = np.uint64(tick)
            if begin < count:
                _locate_rows(
                    begin, min(begin + _CHUNK, count), params, indptr, rows, bases, empty_row, state
                )
            if begin >= _DRAW_LAG and begin - _DRAW_LAG < count:
                _draw_slots(begin - _DRAW_LAG, min(begin - _DRAW_LAG + _CHUNK, count), key, state)
            if begin >= _READ_LAG:
                live = _advance(
                    begin - _READ_LAG,
                    min(begin - _READ_LAG + _CHUNK, count),
                    step,
                    local_parts,
                    params,
                    packed,
                    alias_fraction,
                    steps_done,
                    ids,
                    state,
                    live,
                )
        cursor[LIVE], cursor[STEP], cursor[KIND] = np.int64(live), step + 1, end_types[REMOTE, edge]
        if live == _ZERO:
            _load(
                walkers,
                order,
                end_types,
                steps,
                params,
                steps_done,
                ids,
                row_stride,
                first,
                cursor,
                state,
            )
    lanes[:] = state[: FIELDS * ACTIVE_WALKS]
