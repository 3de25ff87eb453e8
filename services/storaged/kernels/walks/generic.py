"""Walks, all their steps in one pass: some dozens are under way at a time, each at a step of its
own.

What `storaged.kernels.neighbors.replacement` draws of one neighbor a hop, with the same words and
so the same steps. Reads at random wait for memory one behind another within a walk (row, column,
neighbor), so walks take turns, a group at a time: while one group asks for its columns, another one
that asked some turns ago reads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, i64_at, inlined, kernel
from asterism_graphkit.random.rng import mix_tag
from storaged.kernels.adjacency import EID, NBR, part_of_node, row_of_node
from storaged.kernels.walks.node2vec import decide_outcome, resolve_pending
from storaged.kernels.walks.state import (
    ACCEPTED,
    ACTIVE_WALKS,
    ATTEMPT,
    ATTEMPTS,
    CHECKING,
    DEGREE,
    EDGE,
    FOUND,
    GROUP,
    IDS,
    IS_PENDING,
    KIND,
    KINDS,
    LAST_STEP_ROW,
    LOCAL,
    NODE,
    NOT_LOOKED_UP,
    OUTCOME,
    PART,
    PENDING,
    PENDING_ATTEMPT,
    PENDING_EID,
    PENDING_ID,
    PENDING_TYPE,
    POSITIONS,
    PREVIOUS,
    PREVIOUS_IDS,
    PREVIOUS_KIND,
    PREVIOUS_KINDS,
    PREVIOUS_PART,
    PREVIOUS_ROW,
    REJECTED,
    REMOTE,
    RESTARTED,
    ROW,
    SLOT,
    START_KINDS,
    STARTS,
    STEP,
    STEP_ROW,
    STEPS_DONE,
    TAG,
    UNDRAWN,
    WALK,
    WalkParams,
)
from storaged.kernels.walks.step import draw_column, locate_row, prefetch_lookup, resolve_slot

_GROUPS = ACTIVE_WALKS // GROUP
_GAP = 2
"""Turns between what a group asks for and what it reads."""


@inlined
def _group(tick: IntLike) -> tuple[IntLike, IntLike]:
    """The lanes whose turn it is."""
    first = (tick % _GROUPS) * GROUP
    return first, first + GROUP


@inlined
def _load(
    lanes: NDArray[np.int64],
    lane: IntLike,
    cursor: NDArray[np.int64],
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    end_types: NDArray[np.int64],
    local_parts: NDArray[np.bool_],
    step_rows: IntLike,
    params: WalkParams,
) -> bool:
    """Put the next walk that has somewhere to go under way; gives whether there is one."""
    walk, m = cursor[0], walkers.shape[1]
    while walk < m and (walkers[IDS, walk] < 0 or walkers[STEPS_DONE, walk] >= params.length):
        walk += 1
    cursor[0] = walk + 1
    if walk >= m:
        lanes[lane, WALK] = -1
        return False
    step = walkers[STEPS_DONE, walk]
    lanes[lane, WALK], lanes[lane, STEP], lanes[lane, STEP_ROW], lanes[lane, LAST_STEP_ROW] = (
        walk,
        step,
        step % step_rows,
        (step + step_rows - 1) % step_rows,
    )
    lanes[lane, NODE], lanes[lane, KIND] = walkers[IDS, walk], walkers[KINDS, walk]
    lanes[lane, TAG], lanes[lane, ATTEMPT] = (
        np.int64(mix_tag(np.uint64(walkers[POSITIONS, walk]))),
        walkers[ATTEMPTS, walk],
    )
    lanes[lane, PREVIOUS] = -1
    if params.biased and walkers[PREVIOUS_IDS, walk] >= 0:
        node, kind = walkers[PREVIOUS_IDS, walk], walkers[PREVIOUS_KINDS, walk]
        part = part_of_node(node, params.parts, params.shift, params.mod)
        lanes[lane, PREVIOUS], lanes[lane, PREVIOUS_KIND] = node, kind
        lanes[lane, PREVIOUS_PART], lanes[lane, PREVIOUS_ROW] = (
            part if local_parts[part] else -1,
            -1,
        )
        for edge in range(end_types.shape[1]):
            if local_parts[part] and end_types[LOCAL, edge] == kind:
                lanes[lane, PREVIOUS_ROW] = row_of_node(
                    node, params.parts, params.shift, table, edge * params.parts + part
                )
                break
    return True


@inlined
def _advance(
    lanes: NDArray[np.int64],
    lane: IntLike,
    restarts: bool,
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    end_types: NDArray[np.int64],
    local_parts: NDArray[np.bool_],
    step_rows: IntLike,
    params: WalkParams,
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    types: NDArray[np.int32],
    eids: NDArray[np.int64],
) -> bool:
    """Take a step that counts, ``restarts`` to the start or on; gives whether the walk goes on
    here.
    """
    walk, step = lanes[lane, WALK], lanes[lane, STEP]
    column = step - walkers[STEPS_DONE, walk]
    next_node, edge = np.int64(-1), np.int64(-1)
    if restarts:
        next_node = walkers[STARTS, walk]
    elif lanes[lane, SLOT] >= 0:
        next_node, edge = lanes[lane, FOUND], lanes[lane, EDGE]
    ids[walk, column] = next_node
    if types.shape[0] > 0:
        types[walk, column] = edge
    if eids.shape[0] > 0:
        eids[walk, column] = -1
        if edge >= 0:
            eids[walk, column] = i64_at(
                np.uint64(table[edge * params.parts + lanes[lane, PART], EID]), lanes[lane, SLOT]
            )
    if params.biased:
        lanes[lane, PREVIOUS], lanes[lane, PREVIOUS_KIND] = (
            np.int64(-1) if restarts else lanes[lane, NODE],
            lanes[lane, KIND],
        )
        lanes[lane, PREVIOUS_PART], lanes[lane, PREVIOUS_ROW] = lanes[lane, PART], lanes[lane, ROW]
        lanes[lane, TAG] = np.int64(
            mix_tag(np.uint64(walkers[POSITIONS, walk]))
        )  # after a restart it is the walk's again
    step_row = lanes[lane, STEP_ROW]
    lanes[lane, LAST_STEP_ROW], lanes[lane, STEP_ROW] = (
        step_row,
        step_row + 1 if step_row + 1 < step_rows else 0,
    )
    lanes[lane, NODE], lanes[lane, STEP], lanes[lane, ATTEMPT] = next_node, step + 1, 0
    if restarts:
        lanes[lane, KIND] = walkers[START_KINDS, walk]
    elif edge >= 0:
        lanes[lane, KIND] = end_types[REMOTE, edge]
    steps_done[walk] = step + 1
    return bool(
        next_node >= 0
        and step + 1 < params.length
        and local_parts[part_of_node(next_node, params.parts, params.shift, params.mod)]
    )


@inlined
def _set_pending(
    lanes: NDArray[np.int64],
    lane: IntLike,
    table: NDArray[np.int64],
    params: WalkParams,
    want_eids: bool,
    pending: NDArray[np.int64],
) -> None:
    """A step that hangs on an edge elsewhere is for somebody else to judge."""
    walk, edge = lanes[lane, WALK], lanes[lane, EDGE]
    pending[IS_PENDING, walk], pending[PENDING_ID, walk], pending[PENDING_TYPE, walk] = (
        1,
        lanes[lane, FOUND],
        edge,
    )
    pending[PENDING_ATTEMPT, walk] = lanes[lane, ATTEMPT]
    if want_eids:
        pending[PENDING_EID, walk] = i64_at(
            np.uint64(table[edge * params.parts + lanes[lane, PART], EID]), lanes[lane, SLOT]
        )


@inlined
def _apply_outcome(
    lanes: NDArray[np.int64],
    lane: IntLike,
    cursor: NDArray[np.int64],
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    end_types: NDArray[np.int64],
    local_parts: NDArray[np.bool_],
    steps: NDArray[np.int64],
    params: WalkParams,
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    types: NDArray[np.int32],
    eids: NDArray[np.int64],
    pending: NDArray[np.int64],
) -> None:
    """Do what the fate of a walk's draw says; where the walk is through here, another one takes its
    lane.
    """
    step_rows, outcome = steps.shape[0], lanes[lane, OUTCOME]
    lanes[lane, OUTCOME] = UNDRAWN
    if outcome == REJECTED:
        lanes[lane, ATTEMPT] += 1
        return
    if outcome == PENDING:
        _set_pending(lanes, lane, table, params, eids.shape[0] > 0, pending)
        continues = _load(
            lanes, lane, cursor, walkers, table, end_types, local_parts, step_rows, params
        )
    else:
        continues = _advance(
            lanes,
            lane,
            outcome == RESTARTED,
            walkers,
            table,
            end_types,
            local_parts,
            step_rows,
            params,
            steps_done,
            ids,
            types,
            eids,
        )
        if not continues:
            continues = _load(
                lanes, lane, cursor, walkers, table, end_types, local_parts, step_rows, params
            )
    if not continues:
        cursor[1] -= 1
    elif params.needs_lookup:
        lanes[lane, DEGREE] = NOT_LOOKED_UP
        prefetch_lookup(lanes, lane, table, end_types, steps, params)
    else:
        locate_row(lanes, lane, table, end_types, steps, params)


@kernel
def advance_walks(
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    end_types: NDArray[np.int64],
    local_parts: NDArray[np.bool_],
    steps: NDArray[np.int64],
    keys: NDArray[np.uint64],
    params: WalkParams,
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    types: NDArray[np.int32],
    eids: NDArray[np.int64],
    pending: NDArray[np.int64],
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    rounds: np.int64,
) -> None:
    """Take walks on, each until it ends, leaves the parts held here, or hangs on an edge that is
    elsewhere.

    Parameters
    ----------
    walkers, end_types, keys
        As `storaged.kernels.walks.state` says.
    table : int64[E * P, columns]
        Line e * P + p is that of edge type e at part p, as `storaged.kernels.adjacency` and, behind
        that, `storaged.kernels.walks.bloom_filter` lay it out.
    local_parts : bool[P]
    steps : int64[s, w]
        The edge types of each step, -1 behind the last; step t follows line t % s.
    params : WalkParams
    steps_done : int64[m], inout
        Steps behind each walk.
    ids : int64[m, w], out
        Row i is walk i's from the step on with which it came; -1 for a dead end.
    types, eids : int32[m, w], int64[m, w], out
        Edge types and ids, -1 for a restart and a dead end; [0, 0] where not wanted.
    pending : int64[5, m], out
        Empty where steps are not biased.
    lanes : int64[LANES, FIELDS], inout
        Walks under way.
    cursor : int64[2], inout
        The walk to put under way next, and how many are. At the beginning 0, 0; when all is done
        the second is 0 again.
    rounds : int64
        How often each walk gets its turn at most, so that somebody may look at the clock between
        calls.
    """
    step_rows, want_eids = steps.shape[0], eids.shape[0] > 0
    check_lanes, check_count = np.empty(ACTIVE_WALKS, np.int64), 0
    if cursor[0] == 0:
        for lane in range(ACTIVE_WALKS):
            if _load(
                lanes, lane, cursor, walkers, table, end_types, local_parts, step_rows, params
            ):
                cursor[1] += 1
                locate_row(lanes, lane, table, end_types, steps, params)
            lanes[lane, OUTCOME] = UNDRAWN
    for tick in range(rounds * _GROUPS):
        if cursor[1] == 0:
            break
        for lane in range(*_group(tick)):
            if (
                lanes[lane, WALK] >= 0
                and lanes[lane, DEGREE] != NOT_LOOKED_UP
                and lanes[lane, OUTCOME] == UNDRAWN
            ):
                draw_column(lanes, lane, walkers, table, end_types, steps, keys, params)
        if want_eids or not params.uniform:
            for lane in range(*_group(tick - _GAP)):
                if lanes[lane, OUTCOME] == ACCEPTED and lanes[lane, SLOT] >= 0:
                    resolve_slot(lanes, lane, table, params, want_eids)
        for lane in range(*_group(tick - 2 * _GAP)):
            if lanes[lane, OUTCOME] >= CHECKING:
                continue
            if lanes[lane, SLOT] >= 0:
                lanes[lane, FOUND] = i64_at(
                    np.uint64(table[lanes[lane, EDGE] * params.parts + lanes[lane, PART], NBR]),
                    lanes[lane, SLOT],
                )
                if (
                    params.biased
                    and lanes[lane, PREVIOUS] >= 0
                    and lanes[lane, OUTCOME] == ACCEPTED
                ):
                    lanes[lane, OUTCOME] = decide_outcome(lanes, lane, end_types, params)
            if lanes[lane, OUTCOME] == CHECKING:
                check_lanes[check_count] = lane
                check_count += 1
            else:
                _apply_outcome(
                    lanes,
                    lane,
                    cursor,
                    walkers,
                    table,
                    end_types,
                    local_parts,
                    steps,
                    params,
                    steps_done,
                    ids,
                    types,
                    eids,
                    pending,
                )
        if params.needs_lookup:
            for lane in range(*_group(tick - 3 * _GAP)):
                if lanes[lane, WALK] >= 0 and lanes[lane, DEGREE] == NOT_LOOKED_UP:
                    locate_row(lanes, lane, table, end_types, steps, params)
        if (
            check_count > 0 and tick % _GROUPS == _GROUPS - 1
        ):  # searches are worth it side by side only
            resolve_pending(lanes, check_count, table, end_types, steps, params, check_lanes)
            for i in range(check_count):
                _apply_outcome(
                    lanes,
                    check_lanes[i],
                    cursor,
                    walkers,
                    table,
                    end_types,
                    local_parts,
                    steps,
                    params,
                    steps_done,
                    ids,
                    types,
                    eids,
                    pending,
                )
            check_count = 0
