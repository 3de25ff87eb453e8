"""Node2vec walks along one edge type, from packed rows.

The walks have the same bits as those of `storaged.kernels.walks.generic`. Only nodes are returned.
All walks in flight make an attempt together, in stages that prefetch the reads of the next stage.
An attempt hashes, reads a record, and often tests whether two nodes are joined; what a walk needs
is unpredictable. So a stage loops over the walks that need it, which the previous stage lists.
Hashing is the same for all walks, and is done in vectorized loops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    IntLike,
    f32_at,
    f64_at,
    inlined,
    kernel,
    prefetch_at,
    u32_at,
    u64_at,
)
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
from storaged.kernels.adjacency_rows import NARROW, PACKED, ROWS, SUMS, WEIGHTS, part_of_node
from storaged.kernels.neighbors.packed import read_neighbor, record_address, record_base
from storaged.kernels.walks.bloom_filter import ROW_HEADS, bloom_word_address, pair_hash, pair_mask
from storaged.kernels.walks.state import (
    ACCEPTED,
    ATTEMPTS,
    IDS,
    IS_PENDING,
    KINDS,
    LOCAL,
    PENDING,
    PENDING_ATTEMPT,
    PENDING_ID,
    PENDING_TYPE,
    POSITIONS,
    PREVIOUS_IDS,
    PREVIOUS_KINDS,
    REJECTED,
    RETURN_KEY,
    SLOT_KEY,
    STEPS_DONE,
    WalkParams,
    WalkTables,
)

ACTIVE_WALKS = 64
"""Number of walks in flight."""
(
    WALK,
    PLACE,
    STEP,
    NODE,
    TABLE_ROW,
    ROW,
    HEAD,
    PREVIOUS,
    PREVIOUS_TABLE_ROW,
    PREVIOUS_ROW,
    PREVIOUS_HEAD,
    PLAIN,
    SALT,
    ATTEMPT,
) = range(14)
FIELDS = 14
"""Number of rows of ``lanes``, int64[FIELDS, ACTIVE_WALKS].

The rows hold, for each walk in flight: its index (-1: none), the output position of its next node,
and the steps taken; the id, table row, row (-1: none) and address of the row head (0: none) of its
node; the same for the previous node (id -1: none, table row -1: held by another host); the tag of
its position, the salt of that position, and the attempt.
"""
OTHER_TYPE = np.int64(np.iinfo(np.int64).max)
"""Value of ``PREVIOUS`` for a node of another type, to which no edge leads."""
_STARTS, _DEGREES, _STEP_KEYS, _BACK_KEYS, _TAGS, _WORDS, _RECORDS, _COINS, _PAIRS = range(9)
_LOWS, _SIZES, _ENDS, _NBRS, _TARGETS, _FOUND, _OUTCOMES = range(7)
_TOSSES, _SHARES = range(2)
_READING, _CHECKING, _RETURNING, _SEARCHING = range(4)
"""Rows of the scratch arrays: unsigned, signed, float, and lists of lanes."""
_ZERO, _S32, _ONE = np.uint64(0), np.uint64(32), np.uint64(1)
_UNDECIDED = -1


class _Scratch(NamedTuple):
    """Scratch arrays of one attempt of all walks in flight, with a column for each walk.

    Attributes
    ----------
    uints : ndarray of uint64, shape (9, ACTIVE_WALKS)
    ints : ndarray of int64, shape (7, ACTIVE_WALKS)
    floats : ndarray of float64, shape (2, ACTIVE_WALKS)
    lane_lists : ndarray of int64, shape (4, ACTIVE_WALKS)
    """

    uints: NDArray[np.uint64]
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]
    lane_lists: NDArray[np.int64]


class _Output(NamedTuple):
    """Outputs of a call; see `advance_node2vec_walks`."""

    steps_done: NDArray[np.int64]
    ids: NDArray[np.int64]
    pending: NDArray[np.int64]


@inlined
def _locate_row(
    lane: IntLike,
    node: IntLike,
    edge: IntLike,
    lanes: NDArray[np.int64],
    table: NDArray[np.int64],
    params: WalkParams,
) -> None:
    """Find the row of a node in a partition held by this host, and prefetch its head."""
    table_row = edge * params.parts + part_of_node(
        np.int64(node), params.parts, params.shift, params.mod
    )
    row = node >> params.shift if params.shift >= 0 else node // params.parts
    lanes[NODE, lane], lanes[TABLE_ROW, lane], lanes[ROW, lane], lanes[HEAD, lane] = (
        node,
        table_row,
        -1,
        0,
    )
    if row < table[table_row, ROWS]:
        head = table[table_row, ROW_HEADS] + 16 * row
        lanes[ROW, lane], lanes[HEAD, lane] = row, head
        prefetch_at(np.uint64(head))


@inlined
def _load(
    tables: WalkTables,
    params: WalkParams,
    edge: IntLike,
    lane: IntLike,
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
) -> bool:
    """Load the next walk that has steps left into a lane; return whether there is one."""
    table, end_types, local_parts = tables.table, tables.end_types, tables.local_parts
    walkers = tables.walkers
    walk, m = cursor[0], walkers.shape[1]
    while walk < m and (walkers[IDS, walk] < 0 or walkers[STEPS_DONE, walk] >= params.length):
        walk += 1
    cursor[0] = walk + 1
    lanes[WALK, lane] = walk if walk < m else -1
    if walk >= m:
        lanes[HEAD, lane] = 0
        return False
    lanes[STEP, lane], lanes[PLACE, lane], lanes[ATTEMPT, lane] = (
        walkers[STEPS_DONE, walk],
        walk * params.row_stride + params.first_column,
        walkers[ATTEMPTS, walk],
    )
    position = np.uint64(walkers[POSITIONS, walk])
    lanes[PLAIN, lane], lanes[SALT, lane] = (
        np.int64(mix_tag(position)),
        np.int64(mix_key(mix64(position))),
    )
    lanes[PREVIOUS, lane] = -1
    previous, kind = walkers[PREVIOUS_IDS, walk], walkers[PREVIOUS_KINDS, walk]
    if previous >= 0:
        is_local = local_parts[part_of_node(previous, params.parts, params.shift, params.mod)]
        _locate_row(lane, previous, edge, lanes, table, params)
        lanes[PREVIOUS_TABLE_ROW, lane], lanes[PREVIOUS_ROW, lane], lanes[PREVIOUS_HEAD, lane] = (
            lanes[TABLE_ROW, lane],
            lanes[ROW, lane],
            lanes[HEAD, lane],
        )
        lanes[PREVIOUS, lane] = previous
        if not is_local:
            lanes[PREVIOUS_TABLE_ROW, lane] = -1
        if kind >= 0 and kind != end_types[LOCAL, edge]:
            lanes[PREVIOUS, lane], lanes[PREVIOUS_ROW, lane], lanes[PREVIOUS_HEAD, lane] = (
                OTHER_TYPE,
                -1,
                0,
            )
    _locate_row(lane, walkers[IDS, walk], edge, lanes, table, params)
    if walkers[KINDS, walk] != end_types[LOCAL, edge]:
        lanes[ROW, lane], lanes[HEAD, lane] = -1, 0
    return True


@inlined
def _hash_attempts(params: WalkParams, lanes: NDArray[np.int64], scratch: _Scratch) -> None:
    """Hash the word and the toss of each walk's draw.

    Each attempt has a separate position, derived from that of the walk.
    """
    uints, _, floats, _ = scratch
    plain, salt, attempt, previous = lanes[PLAIN], lanes[SALT], lanes[ATTEMPT], lanes[PREVIOUS]
    nodes = lanes[NODE]
    step_keys, back_keys, tags, words = (
        uints[_STEP_KEYS],
        uints[_BACK_KEYS],
        uints[_TAGS],
        uints[_WORDS],
    )
    return_shares, tosses, excess_return = floats[_SHARES], floats[_TOSSES], params.excess_return
    for i in range(ACTIVE_WALKS):
        attempt_tag = mix_tag(mix64(np.uint64(salt[i]) + mix_tag(np.uint64(attempt[i]))))
        position_tag = attempt_tag if previous[i] >= 0 else np.uint64(plain[i])
        tags[i] = position_tag + np.uint64(nodes[i]) * GOLDEN
    for i in range(ACTIVE_WALKS):
        words[i] = word(mix64(step_keys[i] + tags[i]), _ZERO)
    for i in range(ACTIVE_WALKS):
        toss = unit_float(word(mix64(back_keys[i] + tags[i]), _ZERO)) * (
            1.0 + excess_return * return_shares[i]
        )
        tosses[i] = toss if previous[i] >= 0 else 0.0


@inlined
def _draw(
    tables: WalkTables, params: WalkParams, lanes: NDArray[np.int64], scratch: _Scratch
) -> tuple[IntLike, IntLike]:
    """Draw a record or a step back for each walk, and prefetch it; return both counts."""
    table, keys = tables.table, tables.keys
    uints, ints, floats, lane_lists = scratch
    # All nodes with edges are of one type.
    type_offset = node_offset(np.int64(0), tables.end_types[LOCAL, tables.steps[0, 0]])
    for i in range(ACTIVE_WALKS):
        head = np.uint64(lanes[HEAD, i])
        uints[_STARTS, i], uints[_DEGREES, i], floats[_SHARES, i] = _ZERO, _ZERO, 0.0
        if head > _ZERO:
            uints[_STARTS, i], uints[_DEGREES, i] = u64_at(head, _ZERO), u64_at(head, _ONE) >> _S32
            floats[_SHARES, i] = np.float64(f32_at(head, np.int64(2)))
        uints[_STEP_KEYS, i], uints[_BACK_KEYS, i] = (
            keys[SLOT_KEY, lanes[STEP, i]] + type_offset,
            keys[RETURN_KEY, lanes[STEP, i]] + type_offset,
        )
    _hash_attempts(params, lanes, scratch)
    read_count, return_count = np.int64(0), np.int64(0)
    for i in range(ACTIVE_WALKS):
        degree, table_row = uints[_DEGREES, i], lanes[TABLE_ROW, i]
        ints[_FOUND, i], ints[_OUTCOMES, i] = -1, ACCEPTED
        if degree == _ZERO:
            continue
        if floats[_TOSSES, i] >= 1.0:
            # The excess probability of steps back is a separate interval after that of all steps.
            # Most draws fall outside of it and do not search for an edge back.
            lane_lists[_RETURNING, return_count] = i
            return_count += 1
            uints[_PAIRS, i] = pair_hash(lanes[ROW, i], lanes[PREVIOUS, i])
            prefetch_at(bloom_word_address(uints[_PAIRS, i], table, table_row))
            continue
        w = uints[_WORDS, i]
        base = record_base(
            np.uint64(table[table_row, NARROW]),
            _ZERO if params.uniform else np.uint64(table[table_row, PACKED]),
        )
        record = record_address(base, uints[_STARTS, i] + bounded(w, degree))
        prefetch_at(record)
        uints[_RECORDS, i], uints[_COINS, i] = record, w * degree
        lane_lists[_READING, read_count] = i
        read_count += 1
    return read_count, return_count


@inlined
def _read_records(
    table: NDArray[np.int64],
    params: WalkParams,
    read_count: IntLike,
    lanes: NDArray[np.int64],
    scratch: _Scratch,
) -> IntLike:
    """Read the neighbors of draws and decide them.

    Returns the number of draws that depend on an edge held by this host, and prefetches their Bloom
    filter words.
    """
    uints, ints, floats, lane_lists = scratch
    check_count = np.int64(0)
    for j in range(read_count):
        i = lane_lists[_READING, j]
        neighbor = np.int64(read_neighbor(table, uints[_RECORDS, i], uints[_COINS, i]))
        previous, toss, previous_table_row = (
            lanes[PREVIOUS, i],
            floats[_TOSSES, i],
            lanes[PREVIOUS_TABLE_ROW, i],
        )
        ints[_FOUND, i] = neighbor
        unbiased = (neighbor < 0) | (previous < 0)
        limit = params.return_limit if neighbor == previous else params.accept_limit
        outcome = (
            ACCEPTED
            if unbiased | (toss < limit)
            else REJECTED
            if neighbor == previous
            else PENDING
            if previous_table_row < 0
            else _UNDECIDED
        )
        ints[_OUTCOMES, i] = outcome
        if outcome == _UNDECIDED:
            pair = pair_hash(lanes[PREVIOUS_ROW, i], neighbor)
            uints[_PAIRS, i] = pair
            prefetch_at(bloom_word_address(pair, table, previous_table_row))
            lane_lists[_CHECKING, check_count] = i
            check_count += 1
    return check_count


@inlined
def _check_bloom(
    table: NDArray[np.int64],
    params: WalkParams,
    check_count: IntLike,
    return_count: IntLike,
    lanes: NDArray[np.int64],
    scratch: _Scratch,
) -> IntLike:
    """Test Bloom filters; return the number of rows to search, and prefetch their middles."""
    uints, ints, _, lane_lists = scratch
    search_count, unjoined_outcome = np.int64(0), REJECTED if params.accept_joined else ACCEPTED
    for j in range(check_count + return_count):
        returns = j >= check_count
        i = lane_lists[_RETURNING, j - check_count] if returns else lane_lists[_CHECKING, j]
        table_row = lanes[TABLE_ROW, i] if returns else lanes[PREVIOUS_TABLE_ROW, i]
        head = np.uint64(lanes[HEAD, i] if returns else lanes[PREVIOUS_HEAD, i])
        ints[_OUTCOMES, i] = REJECTED if returns else unjoined_outcome
        mask, pair = pair_mask(uints[_PAIRS, i]), uints[_PAIRS, i]
        if (
            head == _ZERO
            or u64_at(bloom_word_address(pair, table, table_row), _ZERO) & mask != mask
        ):
            continue
        low, size = np.int64(u64_at(head, _ZERO)), np.int64(u64_at(head, _ONE) >> _S32)
        ints[_LOWS, i], ints[_SIZES, i], ints[_ENDS, i], ints[_NBRS, i] = (
            low,
            size,
            low + size,
            table[table_row, NARROW],
        )
        ints[_TARGETS, i] = lanes[PREVIOUS, i] if returns else ints[_FOUND, i]
        lane_lists[_SEARCHING, search_count] = i
        search_count += 1
        prefetch_at(np.uint64(table[table_row, NARROW] + 4 * (low + (size >> 1))))
    return search_count


@inlined
def _bisect_rows(
    search_count: IntLike, ints: NDArray[np.int64], lane_lists: NDArray[np.int64]
) -> None:
    """Find the positions of the targets in their rows by interleaved bisection."""
    active_count = search_count
    while active_count > 0:
        active_count = np.int64(0)
        for j in range(search_count):
            i = lane_lists[_SEARCHING, j]
            size, low, nbr = ints[_SIZES, i], ints[_LOWS, i], np.uint64(ints[_NBRS, i])
            if size > 0:
                half = size >> 1
                # All ones if the target is in the right half: a branch would be unpredictable.
                right_mask = -np.int64(np.int64(u32_at(nbr, low + half)) < ints[_TARGETS, i])
                low += (half + 1) & right_mask
                size = half + ((size - half - 1 - half) & right_mask)
                ints[_SIZES, i], ints[_LOWS, i] = size, low
                if size > 0:
                    prefetch_at(nbr + np.uint64(4 * (low + (size >> 1))))
                    active_count += 1


@inlined
def _decide(
    table: NDArray[np.int64],
    params: WalkParams,
    search_count: IntLike,
    lanes: NDArray[np.int64],
    scratch: _Scratch,
) -> None:
    """Set the outcome of draws after their rows were searched."""
    _, ints, floats, lane_lists = scratch
    for j in range(search_count):
        i = lane_lists[_SEARCHING, j]
        slot, end, nbr, target = (
            ints[_LOWS, i],
            ints[_ENDS, i],
            np.uint64(ints[_NBRS, i]),
            ints[_TARGETS, i],
        )
        if slot >= end or np.int64(u32_at(nbr, slot)) != target:
            continue
        if floats[_TOSSES, i] < 1.0:
            ints[_OUTCOMES, i] = ACCEPTED if params.accept_joined else REJECTED
            continue
        # The share of the row's weight falls on an edge back, or past the last of these.
        table_row = lanes[TABLE_ROW, i]
        weights_address, sums_address = (
            np.uint64(table[table_row, WEIGHTS]),
            np.uint64(table[table_row, SUMS]),
        )
        uniform = params.uniform or weights_address == _ZERO
        row_weight = (
            f64_at(sums_address, lanes[ROW, i])
            if not params.uniform and sums_address != _ZERO
            else np.float64(u64_at(np.uint64(lanes[HEAD, i]), _ONE) >> _S32)
        )
        remaining = (floats[_TOSSES, i] - 1.0) / params.excess_return * row_weight
        while slot < end and np.int64(u32_at(nbr, slot)) == target:
            remaining -= 1.0 if uniform else np.float64(f32_at(weights_address, slot))
            if remaining < 0.0:
                ints[_OUTCOMES, i], ints[_FOUND, i] = ACCEPTED, target
                break
            slot += 1


@inlined
def _apply_outcomes(
    tables: WalkTables,
    params: WalkParams,
    edge: IntLike,
    outcomes: NDArray[np.int64],
    found: NDArray[np.int64],
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    output: _Output,
) -> None:
    """Apply the outcomes of draws.

    If a walk is finished on this host, the next walk takes its lane.
    """
    steps_done, ids, pending = output
    for i in range(ACTIVE_WALKS):
        walk, outcome = lanes[WALK, i], outcomes[i]
        if walk < 0:
            continue
        if outcome == REJECTED:
            lanes[ATTEMPT, i] += 1
            continue
        neighbor, continues = found[i], False
        if outcome == PENDING:
            pending[IS_PENDING, walk], pending[PENDING_ID, walk], pending[PENDING_TYPE, walk] = (
                1,
                neighbor,
                edge,
            )
            pending[PENDING_ATTEMPT, walk] = lanes[ATTEMPT, i]
        else:
            step = lanes[STEP, i] + 1
            ids[lanes[PLACE, i]], steps_done[walk] = neighbor, step
            continues = bool(
                neighbor >= 0
                and step < params.length
                and tables.local_parts[
                    part_of_node(neighbor, params.parts, params.shift, params.mod)
                ]
            )
            if continues:
                lanes[STEP, i], lanes[ATTEMPT, i] = step, 0
                lanes[PLACE, i] += 1
                lanes[PREVIOUS, i], lanes[PREVIOUS_TABLE_ROW, i] = (
                    lanes[NODE, i],
                    lanes[TABLE_ROW, i],
                )
                lanes[PREVIOUS_ROW, i], lanes[PREVIOUS_HEAD, i] = lanes[ROW, i], lanes[HEAD, i]
                _locate_row(i, neighbor, edge, lanes, tables.table, params)
        if not continues and not _load(tables, params, edge, i, lanes, cursor):
            cursor[1] -= 1


@inlined
def _run(
    tables: WalkTables,
    params: WalkParams,
    output: _Output,
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    scratch: _Scratch,
) -> None:
    """Run `advance_node2vec_walks` with existing scratch arrays."""
    table, edge = tables.table, tables.steps[0, 0]
    outcomes, found = scratch.ints[_OUTCOMES], scratch.ints[_FOUND]
    if cursor[0] == 0:
        for i in range(ACTIVE_WALKS):
            if _load(tables, params, edge, i, lanes, cursor):
                cursor[1] += 1
    for _ in range(params.rounds):
        if cursor[1] == 0:
            break
        read_count, return_count = _draw(tables, params, lanes, scratch)
        check_count = _read_records(table, params, read_count, lanes, scratch)
        search_count = _check_bloom(table, params, check_count, return_count, lanes, scratch)
        _bisect_rows(search_count, scratch.ints, scratch.lane_lists)
        _decide(table, params, search_count, lanes, scratch)
        _apply_outcomes(tables, params, edge, outcomes, found, lanes, cursor, output)


@kernel
def advance_node2vec_walks(
    tables: WalkTables,
    params: WalkParams,
    steps_done: NDArray[np.int64],
    ids: NDArray[np.int64],
    pending: NDArray[np.int64],
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
) -> None:
    """Advance walks until they end, leave this host, or depend on an edge held elsewhere.

    Rows must follow from ids, without an index.

    Parameters
    ----------
    tables : WalkTables
        All rows of ``table`` that have edges have packed rows and row heads. ``steps`` has a single
        edge type, which joins nodes of one type.
    params : WalkParams
    steps_done, pending, cursor
        As in `storaged.kernels.walks.generic.advance_walks`.
    ids : ndarray of int64, flat, out
        Next nodes of the walks; -1 for a dead end.
    lanes : ndarray of int64, shape (FIELDS, ACTIVE_WALKS), inout
    """
    scratch = _Scratch(
        np.zeros((9, ACTIVE_WALKS), np.uint64),
        np.zeros((7, ACTIVE_WALKS), np.int64),
        np.zeros((2, ACTIVE_WALKS), np.float64),
        np.zeros((4, ACTIVE_WALKS), np.int64),
    )
    _run(tables, params, _Output(steps_done, ids, pending), lanes, cursor, scratch)
