"""Walks, all their steps in one pass: some dozens are under way at a time, each at a step of its own.

What `storaged.kernel.neighbors` draws of one neighbor a hop, with the same words and so the same steps. Reads at random wait for memory
one behind another within a walk (row, column, neighbor), so walks take turns, a group at a time: while one group asks for its
columns, another one that asked some turns ago reads them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, i64_at, inlined, kernel
from graphkit.rng import tagged
from storaged.kernel.bias import ask, fate_of
from storaged.kernel.lanes import (
    ASKED,
    ATTEMPT,
    ATTEMPTS,
    BACK,
    BEFORE,
    BEFORE_KIND,
    BEFORE_KINDS,
    BEFORE_PART,
    BEFORE_ROW,
    BEFORES,
    DEGREE,
    DONE,
    EDGE,
    FAR,
    FATE,
    FOUND,
    FRESH,
    GROUP,
    HANGING,
    IDS,
    KIND,
    KINDS,
    LANES,
    LAST_TURN,
    NEAR,
    NODE,
    OPEN,
    OPEN_ATTEMPT,
    OPEN_EID,
    OPEN_ID,
    OPEN_TYPE,
    OPENING,
    PART,
    POSITIONS,
    REFUSED,
    ROW,
    SLOT,
    START_KINDS,
    STARTS,
    STEP,
    TAG,
    TAKEN,
    TURN,
    WALK,
    Way,
)
from storaged.kernel.stride import arrive, choose, lead, seek
from storaged.kernel.table import EID, NBR, part_at, row_at

_GROUPS = LANES // GROUP
_GAP = 2
"""Turns between what a group asks for and what it reads."""


@inlined
def _group(turn: Whole) -> tuple[Whole, Whole]:
    """The lanes whose turn it is."""
    first = (turn % _GROUPS) * GROUP
    return first, first + GROUP


@inlined
def _load(
    lanes: NDArray[np.int64],
    lane: Whole,
    cursor: NDArray[np.int64],
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    held: NDArray[np.bool_],
    turns: Whole,
    way: Way,
) -> bool:
    """Put the next walk that has somewhere to go under way; gives whether there is one."""
    walk, m = cursor[0], walkers.shape[1]
    while walk < m and (walkers[IDS, walk] < 0 or walkers[DONE, walk] >= way.length):
        walk += 1
    cursor[0] = walk + 1
    if walk >= m:
        lanes[lane, WALK] = -1
        return False
    step = walkers[DONE, walk]
    lanes[lane, WALK], lanes[lane, STEP], lanes[lane, TURN], lanes[lane, LAST_TURN] = walk, step, step % turns, (step + turns - 1) % turns
    lanes[lane, NODE], lanes[lane, KIND] = walkers[IDS, walk], walkers[KINDS, walk]
    lanes[lane, TAG], lanes[lane, ATTEMPT] = np.int64(tagged(np.uint64(walkers[POSITIONS, walk]))), walkers[ATTEMPTS, walk]
    lanes[lane, BEFORE] = -1
    if way.biased and walkers[BEFORES, walk] >= 0:
        node, kind = walkers[BEFORES, walk], walkers[BEFORE_KINDS, walk]
        part = part_at(node, way.parts, way.shift, way.mod)
        lanes[lane, BEFORE], lanes[lane, BEFORE_KIND] = node, kind
        lanes[lane, BEFORE_PART], lanes[lane, BEFORE_ROW] = part if held[part] else -1, -1
        for edge in range(ends.shape[1]):
            if held[part] and ends[NEAR, edge] == kind:
                lanes[lane, BEFORE_ROW] = row_at(node, way.parts, way.shift, table, edge * way.parts + part)
                break
    return True


@inlined
def _go(
    lanes: NDArray[np.int64],
    lane: Whole,
    back: bool,
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    held: NDArray[np.bool_],
    turns: Whole,
    way: Way,
    done: NDArray[np.int64],
    ids: NDArray[np.int64],
    types: NDArray[np.int32],
    eids: NDArray[np.int64],
) -> bool:
    """Take a step that counts, ``back`` to the start or on; gives whether the walk goes on here."""
    walk, step = lanes[lane, WALK], lanes[lane, STEP]
    at = step - walkers[DONE, walk]
    found, edge = np.int64(-1), np.int64(-1)
    if back:
        found = walkers[STARTS, walk]
    elif lanes[lane, SLOT] >= 0:
        found, edge = lanes[lane, FOUND], lanes[lane, EDGE]
    ids[walk, at] = found
    if types.shape[0] > 0:
        types[walk, at] = edge
    if eids.shape[0] > 0:
        eids[walk, at] = -1
        if edge >= 0:
            eids[walk, at] = i64_at(np.uint64(table[edge * way.parts + lanes[lane, PART], EID]), lanes[lane, SLOT])
    if way.biased:
        lanes[lane, BEFORE], lanes[lane, BEFORE_KIND] = np.int64(-1) if back else lanes[lane, NODE], lanes[lane, KIND]
        lanes[lane, BEFORE_PART], lanes[lane, BEFORE_ROW] = lanes[lane, PART], lanes[lane, ROW]
        lanes[lane, TAG] = np.int64(tagged(np.uint64(walkers[POSITIONS, walk])))  # after a restart it is the walk's again
    turn = lanes[lane, TURN]
    lanes[lane, LAST_TURN], lanes[lane, TURN] = turn, turn + 1 if turn + 1 < turns else 0
    lanes[lane, NODE], lanes[lane, STEP], lanes[lane, ATTEMPT] = found, step + 1, 0
    if back:
        lanes[lane, KIND] = walkers[START_KINDS, walk]
    elif edge >= 0:
        lanes[lane, KIND] = ends[FAR, edge]
    done[walk] = step + 1
    return bool(found >= 0 and step + 1 < way.length and held[part_at(found, way.parts, way.shift, way.mod)])


@inlined
def _hold(lanes: NDArray[np.int64], lane: Whole, table: NDArray[np.int64], way: Way, want_eids: bool, hanging: NDArray[np.int64]) -> None:
    """A step that hangs on an edge elsewhere is for somebody else to judge."""
    walk, edge = lanes[lane, WALK], lanes[lane, EDGE]
    hanging[OPEN, walk], hanging[OPEN_ID, walk], hanging[OPEN_TYPE, walk] = 1, lanes[lane, FOUND], edge
    hanging[OPEN_ATTEMPT, walk] = lanes[lane, ATTEMPT]
    if want_eids:
        hanging[OPEN_EID, walk] = i64_at(np.uint64(table[edge * way.parts + lanes[lane, PART], EID]), lanes[lane, SLOT])


@inlined
def _settle(
    lanes: NDArray[np.int64],
    lane: Whole,
    cursor: NDArray[np.int64],
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    held: NDArray[np.bool_],
    steps: NDArray[np.int64],
    way: Way,
    done: NDArray[np.int64],
    ids: NDArray[np.int64],
    types: NDArray[np.int32],
    eids: NDArray[np.int64],
    hanging: NDArray[np.int64],
) -> None:
    """Do what the fate of a walk's draw says; where the walk is through here, another one takes its lane."""
    turns, fate = steps.shape[0], lanes[lane, FATE]
    lanes[lane, FATE] = OPENING
    if fate == REFUSED:
        lanes[lane, ATTEMPT] += 1
        return
    if fate == HANGING:
        _hold(lanes, lane, table, way, eids.shape[0] > 0, hanging)
        goes = _load(lanes, lane, cursor, walkers, table, ends, held, turns, way)
    else:
        goes = _go(lanes, lane, fate == BACK, walkers, table, ends, held, turns, way, done, ids, types, eids)
        if not goes:
            goes = _load(lanes, lane, cursor, walkers, table, ends, held, turns, way)
    if not goes:
        cursor[1] -= 1
    elif way.scattered:
        lanes[lane, DEGREE] = FRESH
        seek(lanes, lane, table, ends, steps, way)
    else:
        arrive(lanes, lane, table, ends, steps, way)


@kernel
def take_walks(
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    held: NDArray[np.bool_],
    steps: NDArray[np.int64],
    keys: NDArray[np.uint64],
    way: Way,
    done: NDArray[np.int64],
    ids: NDArray[np.int64],
    types: NDArray[np.int32],
    eids: NDArray[np.int64],
    hanging: NDArray[np.int64],
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    rounds: np.int64,
) -> None:
    """Take walks on, each until it ends, leaves the parts held here, or hangs on an edge that is elsewhere.

    Parameters
    ----------
    walkers, ends, keys
        As `storaged.kernel.lanes` says.
    table : int64[E * P, columns]
        Line e * P + p is that of edge type e at part p, as `storaged.kernel.table` and, behind that, `storaged.kernel.sieve` lay it out.
    held : bool[P]
    steps : int64[s, w]
        The edge types of each step, -1 behind the last; step t follows line t % s.
    way : Way
    done : int64[m], inout
        Steps behind each walk.
    ids : int64[m, w], out
        Row i is walk i's from the step on with which it came; -1 for a dead end.
    types, eids : int32[m, w], int64[m, w], out
        Edge types and ids, -1 for a restart and a dead end; [0, 0] where not wanted.
    hanging : int64[5, m], out
        Empty where steps are not biased.
    lanes : int64[LANES, FIELDS], inout
        Walks under way.
    cursor : int64[2], inout
        The walk to put under way next, and how many are. At the beginning 0, 0; when all is done the second is 0 again.
    rounds : int64
        How often each walk gets its turn at most, so that somebody may look at the clock between calls.
    """
    turns, want_eids = steps.shape[0], eids.shape[0] > 0
    asking, asked = np.empty(LANES, np.int64), 0
    if cursor[0] == 0:
        for lane in range(LANES):
            if _load(lanes, lane, cursor, walkers, table, ends, held, turns, way):
                cursor[1] += 1
                arrive(lanes, lane, table, ends, steps, way)
            lanes[lane, FATE] = OPENING
    for tick in range(rounds * _GROUPS):
        if cursor[1] == 0:
            break
        for lane in range(*_group(tick)):
            if lanes[lane, WALK] >= 0 and lanes[lane, DEGREE] != FRESH and lanes[lane, FATE] == OPENING:
                choose(lanes, lane, walkers, table, ends, steps, keys, way)
        if want_eids or not way.uniform:
            for lane in range(*_group(tick - _GAP)):
                if lanes[lane, FATE] == TAKEN and lanes[lane, SLOT] >= 0:
                    lead(lanes, lane, table, way, want_eids)
        for lane in range(*_group(tick - 2 * _GAP)):
            if lanes[lane, FATE] >= ASKED:
                continue
            if lanes[lane, SLOT] >= 0:
                lanes[lane, FOUND] = i64_at(np.uint64(table[lanes[lane, EDGE] * way.parts + lanes[lane, PART], NBR]), lanes[lane, SLOT])
                if way.biased and lanes[lane, BEFORE] >= 0 and lanes[lane, FATE] == TAKEN:
                    lanes[lane, FATE] = fate_of(lanes, lane, ends, way)
            if lanes[lane, FATE] == ASKED:
                asking[asked] = lane
                asked += 1
            else:
                _settle(lanes, lane, cursor, walkers, table, ends, held, steps, way, done, ids, types, eids, hanging)
        if way.scattered:
            for lane in range(*_group(tick - 3 * _GAP)):
                if lanes[lane, WALK] >= 0 and lanes[lane, DEGREE] == FRESH:
                    arrive(lanes, lane, table, ends, steps, way)
        if asked > 0 and tick % _GROUPS == _GROUPS - 1:  # searches are worth it side by side only
            ask(lanes, asked, table, ends, steps, way, asking)
            for i in range(asked):
                _settle(lanes, asking[i], cursor, walkers, table, ends, held, steps, way, done, ids, types, eids, hanging)
            asked = 0
