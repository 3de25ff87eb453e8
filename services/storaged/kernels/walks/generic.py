"""Walks of any kind, all steps in one pass, with several dozen walks in flight.

Each walk is at its own step. A step goes to the row of a node, to a column of the row, and to the
slot that the column leads to. It draws the same neighbor as
`storaged.kernels.neighbors.with_replacement` with one neighbor per hop under the seed of the step's
edge types, from the same words. The random reads of a walk (row, column, neighbor) depend on each
other, so walks take turns in groups. While one group prefetches its columns, another group reads
those that it prefetched some turns ago.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    IntLike,
    i64_at,
    inlined,
    kernel,
    prefetch_at,
    u32_at,
    u64_at,
)
from asterism_graphkit.random.alias_draw import resolve_column
from asterism_graphkit.random.rng import (
    GOLDEN,
    bounded,
    mix64,
    mix_key,
    mix_tag,
    node_offset,
    unit_float,
    word,
)
from storaged.kernels.adjacency_rows import (
    ALIAS_FRACTION,
    ALIAS_THRESHOLD,
    EID,
    INDEX_BITS,
    INDEX_IDS,
    INDEX_ROWS,
    INDPTR,
    LIVE,
    NBR,
    ROWS,
    SUMS,
    part_of_node,
    prefetch_row_bounds,
    row_of_node,
)
from storaged.kernels.walks.bloom_filter import MAX_SHARES
from storaged.kernels.walks.node2vec import (
    decide_outcome,
    max_return_share,
    resolve_pending,
    row_weight,
    try_return,
)
from storaged.kernels.walks.state import (
    ACCEPTED,
    ACTIVE_WALKS,
    ATTEMPT,
    ATTEMPTS,
    CHECKING,
    COIN,
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
    REJECTED_COUNT,
    REJECTED_SLOTS,
    REMOTE,
    RESTART_KEY,
    RESTARTED,
    RETURN_KEY,
    ROW,
    SLOT,
    SLOT_KEY,
    START,
    START_KINDS,
    STARTS,
    STEP,
    STEP_ROW,
    STEPS_DONE,
    TAG,
    TOSS,
    TOSS_UNIT,
    TYPE_KEY,
    UNDRAWN,
    WALK,
    WalkParams,
    WalkTables,
)

_GROUPS = ACTIVE_WALKS // GROUP
_GAP = 2
"""Turns between a group's prefetch and its read."""
_EIGHTS, _FOURS, _ZERO = np.uint64(3), np.uint64(2), np.uint64(0)


class _Output(NamedTuple):
    """Outputs of a call; see `advance_walks`."""

    steps_done: NDArray[np.int64]
    ids: NDArray[np.int64]
    types: NDArray[np.int32]
    eids: NDArray[np.int64]
    pending: NDArray[np.int64]


@inlined
def _find_row(
    table: NDArray[np.int64], params: WalkParams, edge: IntLike, node: np.int64
) -> tuple[IntLike, IntLike]:
    """Return the partition of a node and its row along an edge type; an overlay is preferred."""
    first_row = edge * params.table_parts
    if params.table_parts > params.parts:
        overlay_row = row_of_node(node, params.parts, params.shift, table, first_row + params.parts)
        if overlay_row >= 0:
            return params.parts, overlay_row
    part = part_of_node(node, params.parts, params.shift, params.mod)
    return part, row_of_node(node, params.parts, params.shift, table, first_row + part)


@inlined
def _prefetch_lookup(
    tables: WalkTables, params: WalkParams, lanes: NDArray[np.int64], lane: IntLike
) -> None:
    """Prefetch the index slots where the lookup of a new node starts, or its live flag."""
    table, end_types, steps = tables.table, tables.end_types, tables.steps
    node, part = (
        lanes[lane, NODE],
        part_of_node(lanes[lane, NODE], params.parts, params.shift, params.mod),
    )
    for t in range(steps.shape[1]):
        edge = steps[lanes[lane, STEP_ROW], t]
        if edge < 0 or end_types[LOCAL, edge] != lanes[lane, KIND]:
            continue
        table_row = edge * params.table_parts + part
        if table[table_row, INDEX_IDS] != 0:
            bucket = mix64(np.uint64(node)) >> np.uint64(
                np.int64(64) - table[table_row, INDEX_BITS]
            )
            prefetch_at(np.uint64(table[table_row, INDEX_IDS]) + (bucket << _EIGHTS))
            prefetch_at(np.uint64(table[table_row, INDEX_ROWS]) + (bucket << _FOURS))
        elif table[table_row, LIVE] != 0 and table[table_row, ROWS] > node // params.parts:
            prefetch_at(np.uint64(table[table_row, LIVE] + node // params.parts))
        break


@inlined
def _locate_row(
    tables: WalkTables, params: WalkParams, lanes: NDArray[np.int64], lane: IntLike
) -> None:
    """Look up the row of a new node, and prefetch its bounds."""
    table, end_types, steps = tables.table, tables.end_types, tables.steps
    node, kind, step_row = lanes[lane, NODE], lanes[lane, KIND], lanes[lane, STEP_ROW]
    part: IntLike = np.int64(0)
    row: IntLike = np.int64(-1)
    is_located = False
    for t in range(steps.shape[1]):
        edge = steps[step_row, t]
        if edge < 0 or end_types[LOCAL, edge] != kind:
            continue
        if not is_located:
            part, row = _find_row(table, params, edge, node)
            is_located = True
        if row >= 0:
            table_row = edge * params.table_parts + part
            prefetch_row_bounds(np.uint64(table[table_row, INDPTR] + 8 * row))
            if params.excess_return > 0.0:
                prefetch_at(np.uint64(table[table_row, MAX_SHARES] + 4 * row))
            if steps.shape[1] > 1 and not params.uniform and table[table_row, SUMS] != 0:
                prefetch_at(np.uint64(table[table_row, SUMS] + 8 * row))
    lanes[lane, PART], lanes[lane, ROW] = part, row
    lanes[lane, DEGREE] = -1


@inlined
def _choose_edge_type(
    tables: WalkTables, params: WalkParams, key: np.uint64, lanes: NDArray[np.int64], lane: IntLike
) -> IntLike:
    """Choose the edge type of a draw from a row, in proportion to the weight of each type.

    Returns -1 if the weights of all types are 0.
    """
    table, end_types, steps = tables.table, tables.end_types, tables.steps
    step_row, kind, part, row = (
        lanes[lane, STEP_ROW],
        lanes[lane, KIND],
        lanes[lane, PART],
        lanes[lane, ROW],
    )
    total, last = 0.0, np.int64(-1)
    for t in range(steps.shape[1]):
        edge = steps[step_row, t]
        if edge >= 0 and end_types[LOCAL, edge] == kind:
            weight = row_weight(table, edge * params.table_parts + part, row, params.uniform)
            total += weight
            if weight > 0.0:
                last = edge
    if last < 0:
        return last
    point, cumulative = unit_float(word(key, _ZERO)) * total, 0.0
    for t in range(steps.shape[1]):
        edge = steps[step_row, t]
        if edge >= 0 and end_types[LOCAL, edge] == kind:
            cumulative += row_weight(table, edge * params.table_parts + part, row, params.uniform)
            if edge == last or point < cumulative:
                return edge  # type: ignore[no-any-return]
    return last


@inlined
def _draw_column(
    tables: WalkTables, params: WalkParams, lanes: NDArray[np.int64], lane: IntLike
) -> None:
    """Draw a column of a walk's row, and prefetch it."""
    table, walkers, steps, keys = tables.table, tables.walkers, tables.steps, tables.keys
    step, edge = lanes[lane, STEP], steps[lanes[lane, STEP_ROW], 0]
    offset = node_offset(lanes[lane, NODE], lanes[lane, KIND])
    tag = np.uint64(lanes[lane, TAG]) + offset
    lanes[lane, SLOT], lanes[lane, OUTCOME] = -1, ACCEPTED
    if params.restart > 0.0:
        # Without the type: that of an unknown node depends on the host.
        walk_tag = (
            mix_tag(np.uint64(walkers[POSITIONS, lanes[lane, WALK]]))
            + np.uint64(lanes[lane, NODE]) * GOLDEN
        )
        if unit_float(word(mix64(keys[RESTART_KEY, step] + walk_tag), _ZERO)) < params.restart:
            lanes[lane, OUTCOME] = RESTARTED
            return
    if lanes[lane, ROW] < 0:
        return
    if params.biased and lanes[lane, PREVIOUS] >= 0:
        # Each attempt has a separate position, derived from that of the walk.
        position = mix64(np.uint64(walkers[POSITIONS, lanes[lane, WALK]]))
        attempt_tag = mix_tag(mix64(mix_key(position) + mix_tag(np.uint64(lanes[lane, ATTEMPT]))))
        lanes[lane, TAG] = np.int64(attempt_tag)
        tag = attempt_tag + offset
        toss = unit_float(word(mix64(keys[RETURN_KEY, step] + tag), _ZERO))
        if params.excess_return > 0.0:
            # The excess probability of steps back is a separate interval after that of all steps.
            # Most draws fall outside of it and do not search for an edge back.
            share = max_return_share(tables, params, lanes, lane)
            toss *= 1.0 + params.excess_return * share
            if toss >= 1.0:
                try_return(tables, params, (toss - 1.0) / params.excess_return, lanes, lane)
                return
        lanes[lane, TOSS] = np.int64(toss / TOSS_UNIT)
    elif params.rejects and lanes[lane, ATTEMPT] > 0:
        # The draw before fell on an excluded edge.
        position = mix64(np.uint64(walkers[POSITIONS, lanes[lane, WALK]]))
        tag = mix_tag(mix64(mix_key(position) + mix_tag(np.uint64(lanes[lane, ATTEMPT])))) + offset
    if steps.shape[1] > 1:
        chosen = _choose_edge_type(tables, params, mix64(keys[TYPE_KEY, step] + tag), lanes, lane)
        if chosen < 0:
            return
        edge = np.int64(chosen)
    table_row = edge * params.table_parts + lanes[lane, PART]
    if steps.shape[1] > 1 or lanes[lane, DEGREE] < 0:
        indptr, row = np.uint64(table[table_row, INDPTR]), lanes[lane, ROW]
        start = i64_at(indptr, row)
        lanes[lane, EDGE], lanes[lane, START], lanes[lane, DEGREE] = (
            edge,
            start,
            i64_at(indptr, row + 1) - start,
        )
    degree = np.uint64(lanes[lane, DEGREE])
    if degree > _ZERO:
        w = word(mix64(keys[SLOT_KEY, step] + tag), _ZERO)
        slot = lanes[lane, START] + np.int64(bounded(w, degree))
        lanes[lane, SLOT], lanes[lane, COIN] = slot, np.int64(w * degree)
        has_alias_table = not params.uniform and table[table_row, ALIAS_THRESHOLD] != 0
        prefetch_at(
            np.uint64(table[table_row, ALIAS_THRESHOLD if has_alias_table else NBR] + 8 * slot)
        )


@inlined
def _resolve_slot(
    table: NDArray[np.int64],
    params: WalkParams,
    want_eids: bool,
    lanes: NDArray[np.int64],
    lane: IntLike,
) -> None:
    """Resolve a draw from its column to its slot, and prefetch the neighbor."""
    table_row, slot = lanes[lane, EDGE] * params.table_parts + lanes[lane, PART], lanes[lane, SLOT]
    if not params.uniform and table[table_row, ALIAS_THRESHOLD] != 0:
        start = lanes[lane, START]
        row_thresholds, row_fractions, column = (
            np.uint64(table[table_row, ALIAS_THRESHOLD] + 8 * start),
            np.uint64(table[table_row, ALIAS_FRACTION] + 4 * start),
            np.uint64(slot - start),
        )
        row_offset = resolve_column(
            row_thresholds, row_fractions, column, np.uint64(lanes[lane, COIN])
        )
        # Only the columns of a row with sum 0 have threshold 0 and themselves as alias. So the sum
        # need not be read.
        if (
            row_offset == column
            and u64_at(row_thresholds, row_offset) == row_offset
            and u32_at(row_fractions, row_offset) == 0
        ):
            lanes[lane, SLOT] = -1
            return
        slot = start + np.int64(row_offset)
        lanes[lane, SLOT] = slot
        prefetch_at(np.uint64(table[table_row, NBR] + 8 * slot))
    if want_eids:
        prefetch_at(np.uint64(table[table_row, EID] + 8 * slot))


@inlined
def _is_rejected(table: NDArray[np.int64], table_row: IntLike, slot: np.int64) -> bool:
    """Return whether a slot is one of those that draws reject."""
    slots = np.uint64(table[table_row, REJECTED_SLOTS])
    low, high = np.int64(0), table[table_row, REJECTED_COUNT]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if i64_at(slots, middle) < slot:
            low = middle + 1
        else:
            high = middle
    return bool(low < end and i64_at(slots, low) == slot)


@inlined
def _group(tick: IntLike) -> tuple[IntLike, IntLike]:
    """Return the range of lanes that take this turn."""
    first = (tick % _GROUPS) * GROUP
    return first, first + GROUP


@inlined
def _load(
    tables: WalkTables,
    params: WalkParams,
    lanes: NDArray[np.int64],
    lane: IntLike,
    cursor: NDArray[np.int64],
) -> bool:
    """Load the next walk that has steps left into a lane; return whether there is one."""
    table, end_types, local_parts = tables.table, tables.end_types, tables.local_parts
    walkers, step_rows = tables.walkers, tables.steps.shape[0]
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
                lanes[lane, PREVIOUS_PART], lanes[lane, PREVIOUS_ROW] = _find_row(
                    table, params, edge, node
                )
                break
    return True


@inlined
def _advance(
    tables: WalkTables,
    params: WalkParams,
    restarts: bool,
    lanes: NDArray[np.int64],
    lane: IntLike,
    output: _Output,
) -> bool:
    """Take an accepted step, or a restart; return whether the walk continues on this host."""
    walkers, step_rows = tables.walkers, tables.steps.shape[0]
    types, eids = output.types, output.eids
    walk, step = lanes[lane, WALK], lanes[lane, STEP]
    column = step - walkers[STEPS_DONE, walk]
    next_node, edge = np.int64(-1), np.int64(-1)
    if restarts:
        next_node = walkers[STARTS, walk]
    elif lanes[lane, SLOT] >= 0:
        next_node, edge = lanes[lane, FOUND], lanes[lane, EDGE]
    output.ids[walk, column] = next_node
    if types.shape[0] > 0:
        types[walk, column] = edge
    if eids.shape[0] > 0:
        eids[walk, column] = -1
        if edge >= 0:
            eids[walk, column] = i64_at(
                np.uint64(tables.table[edge * params.table_parts + lanes[lane, PART], EID]),
                lanes[lane, SLOT],
            )
    if params.biased:
        lanes[lane, PREVIOUS], lanes[lane, PREVIOUS_KIND] = (
            np.int64(-1) if restarts else lanes[lane, NODE],
            lanes[lane, KIND],
        )
        lanes[lane, PREVIOUS_PART], lanes[lane, PREVIOUS_ROW] = lanes[lane, PART], lanes[lane, ROW]
        lanes[lane, TAG] = np.int64(
            mix_tag(np.uint64(walkers[POSITIONS, walk]))
        )  # after a restart the tag is the walk's again
    step_row = lanes[lane, STEP_ROW]
    lanes[lane, LAST_STEP_ROW], lanes[lane, STEP_ROW] = (
        step_row,
        step_row + 1 if step_row + 1 < step_rows else 0,
    )
    lanes[lane, NODE], lanes[lane, STEP], lanes[lane, ATTEMPT] = next_node, step + 1, 0
    if restarts:
        lanes[lane, KIND] = walkers[START_KINDS, walk]
    elif edge >= 0:
        lanes[lane, KIND] = tables.end_types[REMOTE, edge]
    output.steps_done[walk] = step + 1
    return bool(
        next_node >= 0
        and step + 1 < params.length
        and tables.local_parts[part_of_node(next_node, params.parts, params.shift, params.mod)]
    )


@inlined
def _set_pending(
    tables: WalkTables,
    params: WalkParams,
    lanes: NDArray[np.int64],
    lane: IntLike,
    output: _Output,
) -> None:
    """Write a step that depends on an edge held by another host."""
    pending = output.pending
    walk, edge = lanes[lane, WALK], lanes[lane, EDGE]
    pending[IS_PENDING, walk], pending[PENDING_ID, walk], pending[PENDING_TYPE, walk] = (
        1,
        lanes[lane, FOUND],
        edge,
    )
    pending[PENDING_ATTEMPT, walk] = lanes[lane, ATTEMPT]
    if output.eids.shape[0] > 0:
        pending[PENDING_EID, walk] = i64_at(
            np.uint64(tables.table[edge * params.table_parts + lanes[lane, PART], EID]),
            lanes[lane, SLOT],
        )


@inlined
def _apply_outcome(
    tables: WalkTables,
    params: WalkParams,
    lanes: NDArray[np.int64],
    lane: IntLike,
    cursor: NDArray[np.int64],
    output: _Output,
) -> None:
    """Apply the outcome of a walk's draw.

    If the walk is finished on this host, the next walk takes its lane.
    """
    outcome = lanes[lane, OUTCOME]
    lanes[lane, OUTCOME] = UNDRAWN
    if outcome == REJECTED:
        lanes[lane, ATTEMPT] += 1
        return
    if outcome == PENDING:
        _set_pending(tables, params, lanes, lane, output)
        continues = _load(tables, params, lanes, lane, cursor)
    else:
        continues = _advance(tables, params, outcome == RESTARTED, lanes, lane, output)
        if not continues:
            continues = _load(tables, params, lanes, lane, cursor)
    if not continues:
        cursor[1] -= 1
    elif params.needs_lookup:
        lanes[lane, DEGREE] = NOT_LOOKED_UP
        _prefetch_lookup(tables, params, lanes, lane)
    else:
        _locate_row(tables, params, lanes, lane)


@inlined
def _run(
    tables: WalkTables,
    params: WalkParams,
    output: _Output,
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    check_lanes: NDArray[np.int64],
) -> None:
    """Run `advance_walks` with existing scratch arrays."""
    table, want_eids, check_count = tables.table, output.eids.shape[0] > 0, 0
    if cursor[0] == 0:
        for lane in range(ACTIVE_WALKS):
            if _load(tables, params, lanes, lane, cursor):
                cursor[1] += 1
                _locate_row(tables, params, lanes, lane)
            lanes[lane, OUTCOME] = UNDRAWN
    for tick in range(params.rounds * _GROUPS):
        if cursor[1] == 0:
            break
        for lane in range(*_group(tick)):
            if (
                lanes[lane, WALK] >= 0
                and lanes[lane, DEGREE] != NOT_LOOKED_UP
                and lanes[lane, OUTCOME] == UNDRAWN
            ):
                _draw_column(tables, params, lanes, lane)
        if want_eids or not params.uniform:
            for lane in range(*_group(tick - _GAP)):
                if lanes[lane, OUTCOME] == ACCEPTED and lanes[lane, SLOT] >= 0:
                    _resolve_slot(table, params, want_eids, lanes, lane)
        for lane in range(*_group(tick - 2 * _GAP)):
            if lanes[lane, OUTCOME] >= CHECKING:
                continue
            if lanes[lane, SLOT] >= 0:
                table_row = lanes[lane, EDGE] * params.table_parts + lanes[lane, PART]
                lanes[lane, FOUND] = i64_at(np.uint64(table[table_row, NBR]), lanes[lane, SLOT])
                if params.rejects and _is_rejected(table, table_row, lanes[lane, SLOT]):
                    lanes[lane, OUTCOME] = REJECTED
                elif (
                    params.biased
                    and lanes[lane, PREVIOUS] >= 0
                    and lanes[lane, OUTCOME] == ACCEPTED
                ):
                    lanes[lane, OUTCOME] = decide_outcome(tables, params, lanes, lane)
            if lanes[lane, OUTCOME] == CHECKING:
                check_lanes[check_count] = lane
                check_count += 1
            else:
                _apply_outcome(tables, params, lanes, lane, cursor, output)
        if params.needs_lookup:
            for lane in range(*_group(tick - 3 * _GAP)):
                if lanes[lane, WALK] >= 0 and lanes[lane, DEGREE] == NOT_LOOKED_UP:
                    _locate_row(tables, params, lanes, lane)
        if (
            check_count > 0 and tick % _GROUPS == _GROUPS - 1
        ):  # searches are efficient only if interleaved
            resolve_pending(tables, params, check_count, check_lanes, lanes)
            for i in range(check_count):
                _apply_outcome(tables, params, lanes, check_lanes[i], cursor, output)
            check_count = 0


@kernel
def advance_walks(
    tables: WalkTables,
    params: WalkParams,
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    types: NDArray[np.int32],
    eids: NDArray[np.int64],
    pending: NDArray[np.int64],
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
) -> None:
    """Advance walks until they end, leave this host, or depend on an edge held elsewhere.

    Parameters
    ----------
    tables : WalkTables
    params : WalkParams
        ``row_stride`` and ``first_column`` are ignored.
    steps_done : ndarray of int64, shape (m,), inout
        Steps that each walk has taken.
    ids : ndarray of int64, shape (m, w), out
        Row i has the nodes of walk i, starting with the first step of this call; -1 for a dead end.
    types, eids : ndarray of int32 and of int64, shape (m, w) or (0, 0), out
        Edge types and ids; -1 for a restart and a dead end. (0, 0) if not wanted.
    pending : ndarray of int64, shape (5, m) or (5, 0), out
        Pending steps; (5, 0) if steps are not biased.
    lanes : ndarray of int64, shape (ACTIVE_WALKS, FIELDS), inout
        Walks in flight.
    cursor : ndarray of int64, shape (2,), inout
        Next walk to load, and number of walks in flight. Start with (0, 0). The call is complete
        when the second number is 0 again.
    """
    output = _Output(steps_done, ids, types, eids, pending)
    _run(tables, params, output, lanes, cursor, np.empty(ACTIVE_WALKS, np.int64))
