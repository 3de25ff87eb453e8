"""Walks whose steps follow one edge type each, whatever came before, from packed rows: two reads at random a step.

What `storaged.kernel.walk` takes, to the bit, where nothing but the nodes is wanted of it. Some hundreds are under way at a time, and all of
them take a step before any takes the next one, so that what it depends on is the same for all. A few at a time go a read further together, in
loops that do nothing else, while what those before them have asked for is on its way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import CHECKED, inlined, kernel, prefetch_at, register_at, u64_at
from graphkit.rng import below_short, mix64, tagged, word
from storaged.kernel.lanes import DONE, FAR, IDS, KINDS, NEAR, POSITIONS, SLOT_KEY, Way
from storaged.kernel.packed import base_of, neighbor_of, record_of
from storaged.kernel.table import INDPTR, NARROW, PACKED, ROWS, ask_ends

LANES, CHUNK = 512, 8
"""Walks under way at most, and which go a read further together."""
_DRAWN, _FOUND = np.uint64(4 * CHUNK), np.uint64(9 * CHUNK)
"""Walks between what is asked for and what is read: of where edges begin, and of both that and the record of a draw."""
NEXT, LIVE, STEP, KIND = range(4)
"""Of ``cursor``: the place of the walk that is put under way next; of those that are how many these are, the steps behind them, and the type of
the nodes where they are."""
FIELDS = 4
"""Columns that are kept from step to step, the first of those that follow."""
_NODES, _WALKS, _PLACES, _TAGS, _EDGES, _BASES, _RECORDS, _COINS, _STARTS, _DEGREES = (np.uint64(LANES * i) for i in range(10))
"""Where in what is known of walks under way each column begins: where each is, which it is, where its next node is put, and the tag of its
position; then where its node's edges are told, the record of slot 0 there, the record and the coin of its draw,
and what is read there."""
_ZERO, _ONE, _EIGHTS, _CHUNK = (np.uint64(value) for value in (0, 1, 3, CHUNK))
_NOTHING = np.zeros(2, np.uint64)
"""What is told of a row that has no edges."""


@inlined
def _load(
    walkers: NDArray[np.int64],
    order: NDArray[np.int64],
    ends: NDArray[np.int64],
    steps: NDArray[np.int64],
    way: Way,
    done: NDArray[np.int64],
    ids: NDArray[np.int64],
    room: np.int64,
    first: np.int64,
    cursor: NDArray[np.int64],
    own: NDArray[np.uint64],
) -> None:
    """Put walks under way that have equally many steps behind them, and somewhere to go."""
    m, live, at = walkers.shape[1], _ZERO, cursor[NEXT]
    while at < m and live < np.uint64(LANES):
        walk = order[at] if order.shape[0] > 0 else at
        node, step, place = walkers[IDS, walk], walkers[DONE, walk], walk * room + first
        if live > _ZERO and step != cursor[STEP]:
            break
        at += 1
        if first > 0:
            ids[place - 1] = node
        if node < 0 or step >= way.length:
            continue
        cursor[STEP], cursor[KIND] = step, ends[NEAR, steps[step % steps.shape[0], 0]]
        if walkers[KINDS, walk] == cursor[KIND]:
            own[_NODES + live], own[_WALKS + live], own[_PLACES + live] = node, walk, place
            own[_TAGS + live] = tagged(np.uint64(walkers[POSITIONS, walk]))
            live += _ONE
        else:  # no edge of this type begins there
            ids[place], done[walk] = -1, step + 1
    cursor[NEXT], cursor[LIVE] = at, np.int64(live)


@inlined
def _follow(
    table: NDArray[np.int64], edge: np.int64, there: bool, way: Way, indptr: NDArray[np.uint64], rows: NDArray[np.uint64], bases: NDArray[np.uint64]
) -> None:
    """List what a step along an edge type reads, by the part; of no rows unless it begins ``there``."""
    for part in range(way.parts):
        line = edge * way.parts + part
        indptr[part], rows[part] = table[line, INDPTR], max(table[line, ROWS], np.int64(0)) if there else np.int64(0)
        bases[part] = base_of(np.uint64(table[line, NARROW]), _ZERO if way.uniform else np.uint64(table[line, PACKED]))


@inlined
def _arrive(
    begin: np.uint64,
    end: np.uint64,
    way: Way,
    indptr: NDArray[np.uint64],
    rows: NDArray[np.uint64],
    bases: NDArray[np.uint64],
    nothing: np.uint64,
    own: NDArray[np.uint64],
) -> None:
    """Find the rows of nodes, which live in parts held here, and ask for where their edges begin and end."""
    parts, shift = np.uint64(way.parts), np.uint64(way.shift)
    for lane in range(begin, end):
        node = own[_NODES + lane]
        part, row = (node & (parts - _ONE), node >> shift) if way.shift >= 0 else (node % parts, node // parts)
        at = indptr[part] + (row << _EIGHTS)
        own[_EDGES + lane], own[_BASES + lane] = at if row < rows[part] else nothing, bases[part]
    for lane in range(begin, end):
        ask_ends(own[_EDGES + lane])


@inlined
def _draw(begin: np.uint64, end: np.uint64, key: np.uint64, own: NDArray[np.uint64]) -> None:
    """Draw a slot of each row, and ask for its record."""
    for lane in range(begin, end):
        start = u64_at(own[_EDGES + lane], _ZERO)
        own[_STARTS + lane], own[_DEGREES + lane] = start, u64_at(own[_EDGES + lane], _ONE) - start
    for lane in range(begin, end):
        w, degree = word(mix64(key + own[_TAGS + lane]), _ZERO), own[_DEGREES + lane]
        record = record_of(own[_BASES + lane], own[_STARTS + lane] + below_short(w, degree))
        own[_RECORDS + lane], own[_COINS + lane] = record if degree > _ZERO else _ZERO, w * degree
    for lane in range(begin, end):
        prefetch_at(own[_RECORDS + lane])


@inlined
def _go(
    begin: np.uint64,
    end: np.uint64,
    step: np.int64,
    held: NDArray[np.bool_],
    way: Way,
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    done: NDArray[np.int64],
    ids: NDArray[np.int64],
    own: NDArray[np.uint64],
    live: np.uint64,
) -> np.uint64:
    """Tell where walks have come to, and close up those that go on behind ``live`` others; how many there are then."""
    parts, goes = np.uint64(way.parts), np.uint64(step + 1 < way.length)
    for lane in range(begin, end):
        walk, place, tag = own[_WALKS + lane], own[_PLACES + lane], own[_TAGS + lane]
        node = np.int64(neighbor_of(own[_RECORDS + lane], own[_COINS + lane], packed, cold))
        ids[place], done[walk] = node, step + 1
        own[_NODES + live], own[_WALKS + live], own[_PLACES + live], own[_TAGS + live] = node, walk, place + _ONE, tag
        part = np.uint64(node) & (parts - _ONE) if way.shift >= 0 else np.uint64(node) % parts
        live += np.uint64((node >= 0) & held[part]) & goes
    return live


@kernel
def take_packed_walks(
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    held: NDArray[np.bool_],
    steps: NDArray[np.int64],
    keys: NDArray[np.uint64],
    way: Way,
    done: NDArray[np.int64],
    order: NDArray[np.int64],
    ids: NDArray[np.int64],
    room: np.int64,
    first: np.int64,
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    lanes: NDArray[np.uint64],
    cursor: NDArray[np.int64],
    rounds: np.int64,
) -> None:
    """Take walks on, each until it ends or leaves the parts held here; where rows follow from ids.

    Parameters
    ----------
    walkers, table, ends, held, steps, keys, way, done
        As of `storaged.kernel.walk.take_walks`; every line of ``table`` that has edges has them packed.
    order : int64[m]
        Walks by the steps behind them, the fewest first; none where all have as many.
    ids : int64[k], out
        As there, but flat: walk i's next nodes from place i * ``room`` + ``first`` on, its start before them unless ``first`` is 0.
    room, first : int64
    packed, cold : uint64[E * P]
        Those columns of ``table``.
    lanes : uint64[FIELDS * LANES], inout
        The walks under way.
    cursor : int64[4], inout
        All 0 at first; nothing is left to do when `LIVE` is.
    rounds : int64
        Steps that those under way take in one call.
    """
    nothing, own = np.uint64(_NOTHING.ctypes.data), np.empty(10 * LANES, np.uint64)
    if CHECKED:
        register_at(nothing, 8 * _NOTHING.size)
    indptr, rows, bases = np.empty(way.parts, np.uint64), np.empty(way.parts, np.uint64), np.empty(way.parts, np.uint64)
    own[: FIELDS * LANES] = lanes
    if cursor[LIVE] == 0:
        _load(walkers, order, ends, steps, way, done, ids, room, first, cursor, own)
    for _ in range(rounds):
        if cursor[LIVE] == 0:
            break
        step, count, live = cursor[STEP], np.uint64(cursor[LIVE]), _ZERO
        edge, key = steps[step % steps.shape[0], 0], keys[SLOT_KEY, step]
        _follow(table, edge, bool(ends[NEAR, edge] == cursor[KIND]), way, indptr, rows, bases)
        for turn in range(_ZERO, count + _FOUND, _CHUNK):
            at = np.uint64(turn)
            if at < count:
                _arrive(at, min(at + _CHUNK, count), way, indptr, rows, bases, nothing, own)
            if at >= _DRAWN and at - _DRAWN < count:
                _draw(at - _DRAWN, min(at - _DRAWN + _CHUNK, count), key, own)
            if at >= _FOUND:
                live = _go(at - _FOUND, min(at - _FOUND + _CHUNK, count), step, held, way, packed, cold, done, ids, own, live)
        cursor[LIVE], cursor[STEP], cursor[KIND] = np.int64(live), step + 1, ends[FAR, edge]
        if live == _ZERO:
            _load(walkers, order, ends, steps, way, done, ids, room, first, cursor, own)
    lanes[:] = own[: FIELDS * LANES]
