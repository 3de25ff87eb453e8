"""The strides of a round of walks: to the rows of nodes, to columns of these, and to the slots that they lead to.

Each asks for what the next one reads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.acceptance import accepted
from graphkit.jit import Whole, i64_at, inlined, prefetch_at, u32_at, u64_at
from graphkit.rng import below as scaled
from graphkit.rng import mix64, salted, tagged, unit, word
from storaged.kernel.bias import go_back, share_back, weight_of
from storaged.kernel.lanes import (
    ATTEMPT,
    BACK,
    BEFORE,
    COIN,
    DEGREE,
    EDGE,
    FATE,
    HALVES,
    KIND,
    NEAR,
    NODE,
    PART,
    POSITIONS,
    RESTART_KEY,
    RETURN_KEY,
    ROW,
    SLOT,
    SLOT_KEY,
    START,
    STEP,
    TAG,
    TAKEN,
    TOSS,
    TURN,
    TYPE_KEY,
    WALK,
    Way,
)
from storaged.kernel.sieve import SHARES
from storaged.kernel.table import COLD, EID, HOT, INDEX_BITS, INDEX_IDS, INDEX_ROWS, INDPTR, LIVE, NBR, ROWS, SUMS, ask_ends, part_at, row_at

_EIGHTS, _FOURS, _ZERO = np.uint64(3), np.uint64(2), np.uint64(0)


@inlined
def seek(lanes: NDArray[np.int64], lane: Whole, table: NDArray[np.int64], ends: NDArray[np.int64], steps: NDArray[np.int64], way: Way) -> None:
    """Ask for the places in indexes where a new node begins to be looked for, or for whether it is a hole."""
    node, part = lanes[lane, NODE], part_at(lanes[lane, NODE], way.parts, way.shift, way.mod)
    for t in range(steps.shape[1]):
        edge = steps[lanes[lane, TURN], t]
        if edge < 0 or ends[NEAR, edge] != lanes[lane, KIND]:
            continue
        line = edge * way.parts + part
        if table[line, INDEX_IDS] != 0:
            home = mix64(np.uint64(node)) >> np.uint64(np.int64(64) - table[line, INDEX_BITS])
            prefetch_at(np.uint64(table[line, INDEX_IDS]) + (home << _EIGHTS))
            prefetch_at(np.uint64(table[line, INDEX_ROWS]) + (home << _FOURS))
        elif table[line, LIVE] != 0 and table[line, ROWS] > node // way.parts:
            prefetch_at(np.uint64(table[line, LIVE] + node // way.parts))
        break


@inlined
def arrive(lanes: NDArray[np.int64], lane: Whole, table: NDArray[np.int64], ends: NDArray[np.int64], steps: NDArray[np.int64], way: Way) -> None:
    """Look up the row of a new node, and ask for where its edges begin."""
    node, kind, turn = lanes[lane, NODE], lanes[lane, KIND], lanes[lane, TURN]
    part = part_at(node, way.parts, way.shift, way.mod)
    row: Whole = np.int64(-1)
    looked = False
    for t in range(steps.shape[1]):
        edge = steps[turn, t]
        if edge < 0 or ends[NEAR, edge] != kind:
            continue
        line = edge * way.parts + part
        if not looked:
            row, looked = row_at(node, way.parts, way.shift, table, line), True
        if row >= 0:
            ask_ends(np.uint64(table[line, INDPTR] + 8 * row))
            if way.fold > 0.0:
                prefetch_at(np.uint64(table[line, SHARES] + 4 * row))
            if steps.shape[1] > 1 and not way.uniform and table[line, SUMS] != 0:
                prefetch_at(np.uint64(table[line, SUMS] + 8 * row))
    lanes[lane, PART], lanes[lane, ROW] = part, row
    lanes[lane, DEGREE] = -1  # not read yet


@inlined
def _edge_type(
    lanes: NDArray[np.int64], lane: Whole, table: NDArray[np.int64], ends: NDArray[np.int64], steps: NDArray[np.int64], way: Way, key: np.uint64
) -> Whole:
    """The edge type of a draw from a row, in proportion to what each weighs there; -1 where all of them weigh nothing."""
    turn, kind, part, row = lanes[lane, TURN], lanes[lane, KIND], lanes[lane, PART], lanes[lane, ROW]
    total, last = 0.0, np.int64(-1)
    for t in range(steps.shape[1]):
        edge = steps[turn, t]
        if edge >= 0 and ends[NEAR, edge] == kind:
            heavy = weight_of(table, edge * way.parts + part, row, way.uniform)
            total += heavy
            if heavy > 0.0:
                last = edge
    if last < 0:
        return last
    point, reached = unit(word(key, _ZERO)) * total, 0.0
    for t in range(steps.shape[1]):
        edge = steps[turn, t]
        if edge >= 0 and ends[NEAR, edge] == kind:
            reached += weight_of(table, edge * way.parts + part, row, way.uniform)
            if edge == last or point < reached:
                return edge  # type: ignore[no-any-return]
    return last


@inlined
def choose(
    lanes: NDArray[np.int64],
    lane: Whole,
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    steps: NDArray[np.int64],
    keys: NDArray[np.uint64],
    way: Way,
) -> None:
    """Let a walk's draw fall on a column of its row, and ask for that."""
    step, tag, edge = lanes[lane, STEP], np.uint64(lanes[lane, TAG]), steps[lanes[lane, TURN], 0]
    lanes[lane, SLOT], lanes[lane, FATE] = -1, TAKEN
    if way.restart > 0.0:
        whole = tagged(np.uint64(walkers[POSITIONS, lanes[lane, WALK]]))
        if unit(word(mix64(keys[RESTART_KEY, step] + whole), _ZERO)) < way.restart:
            lanes[lane, FATE] = BACK
            return
    if lanes[lane, ROW] < 0:
        return
    if way.biased and lanes[lane, BEFORE] >= 0:
        # An attempt has a position of its own, under the walk's.
        position = mix64(np.uint64(walkers[POSITIONS, lanes[lane, WALK]]))
        tag = tagged(mix64(salted(position) + tagged(np.uint64(lanes[lane, ATTEMPT]))))
        lanes[lane, TAG] = np.int64(tag)
        toss = unit(word(mix64(keys[RETURN_KEY, step] + tag), _ZERO))
        if way.fold > 0.0:
            # What steps back are above others has a box of its own behind theirs: most draws fall beside it, and look for no edge back.
            toss *= 1.0 + way.fold * share_back(lanes, lane, table, ends, steps, way)
            if toss >= 1.0:
                go_back(lanes, lane, (toss - 1.0) / way.fold, table, ends, steps, way)
                return
        lanes[lane, TOSS] = np.int64(toss / HALVES)
    if steps.shape[1] > 1:
        chosen = _edge_type(lanes, lane, table, ends, steps, way, mix64(keys[TYPE_KEY, step] + tag))
        if chosen < 0:
            return
        edge = np.int64(chosen)
    line = edge * way.parts + lanes[lane, PART]
    if steps.shape[1] > 1 or lanes[lane, DEGREE] < 0:
        indptr, row = np.uint64(table[line, INDPTR]), lanes[lane, ROW]
        start = i64_at(indptr, row)
        lanes[lane, EDGE], lanes[lane, START], lanes[lane, DEGREE] = edge, start, i64_at(indptr, row + 1) - start
    degree = np.uint64(lanes[lane, DEGREE])
    if degree > _ZERO:
        w = word(mix64(keys[SLOT_KEY, step] + tag), _ZERO)
        slot = lanes[lane, START] + np.int64(scaled(w, degree))
        lanes[lane, SLOT], lanes[lane, COIN] = slot, np.int64(w * degree)
        tabled = not way.uniform and table[line, HOT] != 0
        prefetch_at(np.uint64((table[line, HOT] if tabled else table[line, NBR]) + 8 * slot))


@inlined
def lead(lanes: NDArray[np.int64], lane: Whole, table: NDArray[np.int64], way: Way, want_eids: bool) -> None:
    """Lead a draw from its column to the slot that it takes, and ask for the neighbor."""
    line, slot = lanes[lane, EDGE] * way.parts + lanes[lane, PART], lanes[lane, SLOT]
    if not way.uniform and table[line, HOT] != 0:
        start = lanes[lane, START]
        hot, cold, column = np.uint64(table[line, HOT] + 8 * start), np.uint64(table[line, COLD] + 4 * start), np.uint64(slot - start)
        taken = accepted(hot, cold, column, np.uint64(lanes[lane, COIN]))
        # Only columns of a row of sum 0 are never kept and lead to themselves: no need to read its sum.
        if taken == column and u64_at(hot, taken) == taken and u32_at(cold, taken) == 0:
            lanes[lane, SLOT] = -1
            return
        slot = start + np.int64(taken)
        lanes[lane, SLOT] = slot
        prefetch_at(np.uint64(table[line, NBR] + 8 * slot))
    if want_eids:
        prefetch_at(np.uint64(table[line, EID] + 8 * slot))
