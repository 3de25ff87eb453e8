"""Walks whose steps follow one edge type each, whatever came before, from packed rows: two reads at random a step.

What `storaged.kernel.walk` takes, to the bit, where nothing but the nodes is wanted of it. Some dozens are under way at a time and take
turns, a group at a time: while one asks for its records, another one that asked some turns ago reads them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, i64_at, inlined, kernel, prefetch_at
from graphkit.rng import below, mix64, tagged, word
from storaged.kernel.lanes import DONE, FAR, IDS, KINDS, LANES, NEAR, POSITIONS, SLOT_KEY, Way
from storaged.kernel.packed import base_of, neighbor_of, record_of
from storaged.kernel.table import INDPTR, NARROW, PACKED, ROWS, ask_ends, part_at

GROUP, GAP = 8, 3
"""Walks that go a read further together, and turns between what a group asks for and what it reads."""
_GROUPS = LANES // GROUP
WALK, PLACE, STEP, TURN, EDGE, TAG, EDGES, BASE, RECORD, COIN = range(10)
FIELDS = 10
"""Rows of ``lanes``, int64[FIELDS, LANES]: of each walk under way which it is (-1: none), where its next node is put, steps behind it,
the line of ``steps`` that the next one follows and its edge type, the tag of its position; where the first of the node's edges is told
(0: nowhere) and the record of slot 0; then the record and the coin of its draw."""
_UNDRAWN = -1
"""As a record."""
_EIGHTS, _ZERO, _ONE = np.uint64(3), np.uint64(0), np.uint64(1)


@inlined
def _arrive(
    node: Whole,
    kind: Whole,
    lane: Whole,
    lanes: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    steps: NDArray[np.int64],
    way: Way,
) -> None:
    """Find the row of a node that lives in a part held here, and ask for where its edges begin."""
    edge = steps[lanes[TURN, lane], 0]
    line = edge * way.parts + part_at(np.int64(node), way.parts, way.shift, way.mod)
    row = node >> way.shift if way.shift >= 0 else node // way.parts
    at = np.int64(0)
    if row < table[line, ROWS] and ends[NEAR, edge] == kind:
        at = table[line, INDPTR] + (row << np.int64(3))
        ask_ends(np.uint64(at))
    packed = _ZERO if way.uniform else np.uint64(table[line, PACKED])
    lanes[EDGE, lane], lanes[EDGES, lane], lanes[RECORD, lane] = edge, at, _UNDRAWN
    lanes[BASE, lane] = np.int64(base_of(np.uint64(table[line, NARROW]), packed))


@inlined
def _load(
    lane: Whole,
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    steps: NDArray[np.int64],
    way: Way,
    room: Whole,
) -> bool:
    """Put the next walk that has somewhere to go under way; gives whether there is one."""
    walk, m = cursor[0], walkers.shape[1]
    while walk < m and (walkers[IDS, walk] < 0 or walkers[DONE, walk] >= way.length):
        walk += 1
    cursor[0] = walk + 1
    lanes[WALK, lane] = walk if walk < m else -1
    if walk >= m:
        return False
    step = walkers[DONE, walk]
    lanes[STEP, lane], lanes[TURN, lane], lanes[PLACE, lane] = step, step % steps.shape[0], walk * room
    lanes[TAG, lane] = np.int64(tagged(np.uint64(walkers[POSITIONS, walk])))
    _arrive(walkers[IDS, walk], walkers[KINDS, walk], lane, lanes, table, ends, steps, way)
    return True


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
    ids: NDArray[np.int64],
    room: np.int64,
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    rounds: np.int64,
) -> None:
    """Take walks on, each until it ends or leaves the parts held here; where rows follow from ids.

    Parameters
    ----------
    walkers, table, ends, held, steps, keys, way, done, cursor, rounds
        As of `storaged.kernel.walk.take_walks`; every line of ``table`` that has edges has them packed.
    ids : int64[k], out
        As there, but flat: walk i's from place i * ``room`` on.
    room : int64
    packed, cold : uint64[E * P]
        Those columns of ``table``.
    lanes : int64[FIELDS, LANES], inout
    """
    turns, slot_keys = steps.shape[0], keys[SLOT_KEY]
    if cursor[0] == 0:
        for lane in range(LANES):
            if _load(lane, lanes, cursor, walkers, table, ends, steps, way, room):
                cursor[1] += 1
    for tick in range(rounds * _GROUPS):
        if cursor[1] == 0:
            break
        first = (tick % _GROUPS) * GROUP
        for lane in range(first, first + GROUP):
            if lanes[WALK, lane] < 0 or lanes[RECORD, lane] != _UNDRAWN:
                continue
            record, at = _ZERO, np.uint64(lanes[EDGES, lane])
            if at > _ZERO:
                start = np.uint64(i64_at(at, _ZERO))
                degree = np.uint64(i64_at(at, _ONE)) - start
                if degree > _ZERO:
                    w = word(mix64(slot_keys[lanes[STEP, lane]] + np.uint64(lanes[TAG, lane])), _ZERO)
                    record = record_of(np.uint64(lanes[BASE, lane]), start + below(w, degree))
                    lanes[COIN, lane] = np.int64(w * degree)
                    prefetch_at(record)
            lanes[RECORD, lane] = np.int64(record)
        first = ((tick + _GROUPS - GAP) % _GROUPS) * GROUP
        for lane in range(first, first + GROUP):
            walk, record = lanes[WALK, lane], lanes[RECORD, lane]
            if walk < 0 or record == _UNDRAWN:
                continue
            found = np.int64(neighbor_of(np.uint64(record), np.uint64(lanes[COIN, lane]), packed, cold))
            step = lanes[STEP, lane] + 1
            ids[lanes[PLACE, lane]] = found
            if found >= 0 and step < way.length and held[part_at(found, way.parts, way.shift, way.mod)]:
                lanes[STEP, lane] = step
                lanes[PLACE, lane] += 1
                turn = lanes[TURN, lane] + 1
                lanes[TURN, lane] = turn if turn < turns else 0
                _arrive(found, ends[FAR, lanes[EDGE, lane]], lane, lanes, table, ends, steps, way)
            else:
                done[walk] = step
                if not _load(lane, lanes, cursor, walkers, table, ends, steps, way, room):
                    cursor[1] -= 1
