"""The strides of a round of walks: to the rows of nodes, to columns of these, and to the slots that
they lead to.

Each asks for what the next one reads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, i64_at, inlined, prefetch_at, u32_at, u64_at
from asterism_graphkit.random.alias_draw import resolve_column
from asterism_graphkit.random.rng import bounded as scaled
from asterism_graphkit.random.rng import mix64, mix_key, mix_tag, unit_float, word
from storaged.kernels.adjacency import (
    COLD,
    EID,
    HOT,
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
from storaged.kernels.walks.node2vec import max_return_share, row_weight, try_return
from storaged.kernels.walks.state import (
    ACCEPTED,
    ATTEMPT,
    COIN,
    DEGREE,
    EDGE,
    KIND,
    LOCAL,
    NODE,
    OUTCOME,
    PART,
    POSITIONS,
    PREVIOUS,
    RESTART_KEY,
    RESTARTED,
    RETURN_KEY,
    ROW,
    SLOT,
    SLOT_KEY,
    START,
    STEP,
    STEP_ROW,
    TAG,
    TOSS,
    TOSS_UNIT,
    TYPE_KEY,
    WALK,
    WalkParams,
)

_EIGHTS, _FOURS, _ZERO = np.uint64(3), np.uint64(2), np.uint64(0)


@inlined
def prefetch_lookup(
    lanes: NDArray[np.int64],
    lane: IntLike,
    table: NDArray[np.int64],
    end_types: NDArray[np.int64],
    steps: NDArray[np.int64],
    params: WalkParams,
) -> None:
    """Ask for the places in indexes where a new node begins to be looked for, or for whether it is
    a hole.
    """
    node, part = (
        lanes[lane, NODE],
        part_of_node(lanes[lane, NODE], params.parts, params.shift, params.mod),
    )
    for t in range(steps.shape[1]):
        edge = steps[lanes[lane, STEP_ROW], t]
        if edge < 0 or end_types[LOCAL, edge] != lanes[lane, KIND]:
            continue
        table_row = edge * params.parts + part
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
def locate_row(
    lanes: NDArray[np.int64],
    lane: IntLike,
    table: NDArray[np.int64],
    end_types: NDArray[np.int64],
    steps: NDArray[np.int64],
    params: WalkParams,
) -> None:
    """Look up the row of a new node, and ask for where its edges begin."""
    node, kind, step_row = lanes[lane, NODE], lanes[lane, KIND], lanes[lane, STEP_ROW]
    part = part_of_node(node, params.parts, params.shift, params.mod)
    row: IntLike = np.int64(-1)
    is_located = False
    for t in range(steps.shape[1]):
        edge = steps[step_row, t]
        if edge < 0 or end_types[LOCAL, edge] != kind:
            continue
        table_row = edge * params.parts + part
        if not is_located:
            row, is_located = row_of_node(node, params.parts, params.shift, table, table_row), True
        if row >= 0:
            prefetch_row_bounds(np.uint64(table[table_row, INDPTR] + 8 * row))
            if params.excess_return > 0.0:
                prefetch_at(np.uint64(table[table_row, MAX_SHARES] + 4 * row))
            if steps.shape[1] > 1 and not params.uniform and table[table_row, SUMS] != 0:
                prefetch_at(np.uint64(table[table_row, SUMS] + 8 * row))
    lanes[lane, PART], lanes[lane, ROW] = part, row
    lanes[lane, DEGREE] = -1  # not read yet


@inlined
def _choose_edge_type(
    lanes: NDArray[np.int64],
    lane: IntLike,
    table: NDArray[np.int64],
    end_types: NDArray[np.int64],
    steps: NDArray[np.int64],
    params: WalkParams,
    key: np.uint64,
) -> IntLike:
    """The edge type of a draw from a row, in proportion to what each weighs there; -1 where all of
    them weigh nothing.
    """
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
            weight = row_weight(table, edge * params.parts + part, row, params.uniform)
            total += weight
            if weight > 0.0:
                last = edge
    if last < 0:
        return last
    point, cumulative = unit_float(word(key, _ZERO)) * total, 0.0
    for t in range(steps.shape[1]):
        edge = steps[step_row, t]
        if edge >= 0 and end_types[LOCAL, edge] == kind:
            cumulative += row_weight(table, edge * params.parts + part, row, params.uniform)
            if edge == last or point < cumulative:
                return edge  # type: ignore[no-any-return]
    return last


@inlined
def draw_column(
    lanes: NDArray[np.int64],
    lane: IntLike,
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    end_types: NDArray[np.int64],
    steps: NDArray[np.int64],
    keys: NDArray[np.uint64],
    params: WalkParams,
) -> None:
    """Let a walk's draw fall on a column of its row, and ask for that."""
    step, tag, edge = (
        lanes[lane, STEP],
        np.uint64(lanes[lane, TAG]),
        steps[lanes[lane, STEP_ROW], 0],
    )
    lanes[lane, SLOT], lanes[lane, OUTCOME] = -1, ACCEPTED
    if params.restart > 0.0:
        walk_tag = mix_tag(np.uint64(walkers[POSITIONS, lanes[lane, WALK]]))
        if unit_float(word(mix64(keys[RESTART_KEY, step] + walk_tag), _ZERO)) < params.restart:
            lanes[lane, OUTCOME] = RESTARTED
            return
    if lanes[lane, ROW] < 0:
        return
    if params.biased and lanes[lane, PREVIOUS] >= 0:
        # An attempt has a position of its own, under the walk's.
        position = mix64(np.uint64(walkers[POSITIONS, lanes[lane, WALK]]))
        tag = mix_tag(mix64(mix_key(position) + mix_tag(np.uint64(lanes[lane, ATTEMPT]))))
        lanes[lane, TAG] = np.int64(tag)
        toss = unit_float(word(mix64(keys[RETURN_KEY, step] + tag), _ZERO))
        if params.excess_return > 0.0:
            # What steps back are above others has a box of its own behind theirs: most draws fall
            # beside it, and look for no edge back.
            toss *= 1.0 + params.excess_return * max_return_share(
                lanes, lane, table, end_types, steps, params
            )
            if toss >= 1.0:
                try_return(
                    lanes,
                    lane,
                    (toss - 1.0) / params.excess_return,
                    table,
                    end_types,
                    steps,
                    params,
                )
                return
        lanes[lane, TOSS] = np.int64(toss / TOSS_UNIT)
    if steps.shape[1] > 1:
        chosen = _choose_edge_type(
            lanes, lane, table, end_types, steps, params, mix64(keys[TYPE_KEY, step] + tag)
        )
        if chosen < 0:
            return
        edge = np.int64(chosen)
    table_row = edge * params.parts + lanes[lane, PART]
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
        slot = lanes[lane, START] + np.int64(scaled(w, degree))
        lanes[lane, SLOT], lanes[lane, COIN] = slot, np.int64(w * degree)
        has_alias_table = not params.uniform and table[table_row, HOT] != 0
        prefetch_at(
            np.uint64(
                (table[table_row, HOT] if has_alias_table else table[table_row, NBR]) + 8 * slot
            )
        )


@inlined
def resolve_slot(
    lanes: NDArray[np.int64],
    lane: IntLike,
    table: NDArray[np.int64],
    params: WalkParams,
    want_eids: bool,
) -> None:
    """Lead a draw from its column to the slot that it takes, and ask for the neighbor."""
    table_row, slot = lanes[lane, EDGE] * params.parts + lanes[lane, PART], lanes[lane, SLOT]
    if not params.uniform and table[table_row, HOT] != 0:
        start = lanes[lane, START]
        row_thresholds, row_fractions, column = (
            np.uint64(table[table_row, HOT] + 8 * start),
            np.uint64(table[table_row, COLD] + 4 * start),
            np.uint64(slot - start),
        )
        row_offset = resolve_column(
            row_thresholds, row_fractions, column, np.uint64(lanes[lane, COIN])
        )
        # Only columns of a row of sum 0 are never kept and lead to themselves: no need to read its
        # sum.
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
