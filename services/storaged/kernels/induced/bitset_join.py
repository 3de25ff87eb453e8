"""Edges between rows and a list of nodes whose ids lie near each other: a bit for each id says at
once whether an edge leads to one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    CHECK_BOUNDS,
    IntLike,
    copy_at,
    inlined,
    kernel,
    prefetch_at,
    register,
    view_at,
)
from asterism_graphkit.compile.simd import LANES, USE_SIMD
from asterism_graphkit.relabel.bitset import ONE
from storaged.kernels.adjacency import NARROW, NBR, PAIRS, SLOTS, WEIGHTS
from storaged.kernels.induced.bitset import (
    build_ranks,
    order_by_rank,
    place_of_rank,
    rank_words,
    target_of_rank,
)
from storaged.kernels.induced.emit import (
    EID_STRIDE,
    eid_address,
    emit,
    emit_gathered,
    emit_places,
    read_eid,
    read_eids,
)
from storaged.kernels.induced.hash_join import ROW, TOTAL, bisection_steps, lower_bound
from storaged.kernels.induced.scan import scan_narrow, scan_pairs, scan_wide

_FLUSH_EDGES, _SCAN_NEIGHBORS = 512, 1024
"""Edges that are listed before anything is told of them, and neighbors that are looked at in one
go: all of it stays near.
"""
SLOT_CAPACITY = _FLUSH_EDGES + _SCAN_NEIGHBORS
"""Slots that there is room for: those of one piece more."""
_SHORT = 256
"""Neighbors of a row that is looked at together with others, a piece in all."""
_DENSE = 8
"""Where one edge in so many leads to a target, neighbors are read with the ids of their edges
beside them: most lines of ids are needed then.
"""
_AHEAD, _LINES = 12, 16
"""Rows, and cache lines of each, that are asked for before their turn."""
_LOOKS = 4
"""Neighbors that are looked at in the time that a step of a search takes."""
_I64, _U32, _U64, _F32 = (
    np.zeros(0, dtype) for dtype in (np.int64, np.uint32, np.uint64, np.float32)
)


@inlined
def _prefetch_row(
    table: NDArray[np.int64], part: np.int64, start: np.int64, degree: np.int64, dense: bool
) -> None:
    """Ask for the beginning of a row."""
    narrow = table[part, NARROW]
    width = np.int64(8) if narrow == 0 or dense else np.int64(4)
    address = (
        table[part, NBR] if narrow == 0 else table[part, PAIRS] if dense else narrow
    ) + width * start
    size = min(degree * width, np.int64(64 * _LINES))
    prefetch_at(
        np.uint64(address)
    )  # most rows have no more lines than these two: nothing to foretell
    prefetch_at(np.uint64(address + size - 1))
    for line in range(1, size >> 6):
        prefetch_at(np.uint64(address + 64 * line))


@inlined
def _gather_short_rows(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    row_groups: NDArray[np.int32],
    group: np.int64,
    max_degree: np.int64,
    queue: NDArray[np.int32],
    queue_index: np.int64,
    queue_size: np.int64,
    buffer: NDArray[np.uint32],
    owners: NDArray[np.int32],
    row_offsets: NDArray[np.int64],
) -> tuple[np.int64, np.int64]:
    """Put short rows that follow each other side by side, and say of each neighbor in which of them
    it is; how many rows, and neighbors.

    They are narrow, of the group, and have ``max_degree`` neighbors at most. How many they have is
    hard to foretell: so many at a time are copied that most are done at once, where there are that
    many behind them."""
    if CHECK_BOUNDS:
        register(buffer)
    count, filled, buffer_address = np.int64(0), np.int64(0), np.uint64(buffer.ctypes.data)
    while queue_index + count < queue_size:
        i = np.int64(queue[queue_index + count])
        degree, start, part = degrees[i], starts[i], partitions[i]
        if degree > max_degree or filled + degree > _SCAN_NEIGHBORS or table[part, NARROW] == 0:
            break
        if row_groups.shape[0] > 0 and np.int64(row_groups[i]) != group:
            break
        if queue_index + count + _AHEAD < queue_size:
            row_ahead = queue[queue_index + count + _AHEAD]
            _prefetch_row(
                table, partitions[row_ahead], starts[row_ahead], degrees[row_ahead], False
            )
        row_offsets[count] = filled
        source, is_near_end = (
            np.uint64(table[part, NARROW] + 4 * start),
            start + degree + LANES > table[part, SLOTS],
        )
        if is_near_end:
            copy_at(buffer_address + np.uint64(4 * filled), source, 4 * degree)
        for edge in range(0, degree, LANES):
            if not is_near_end:
                copy_at(
                    buffer_address + np.uint64(4 * (filled + edge)),
                    source + np.uint64(4 * edge),
                    np.int64(4 * LANES),
                )
            for lane in range(LANES):
                owners[np.uint64(filled + edge + lane)] = count
        filled, count = filled + degree, count + 1
    return count, filled


@inlined
def _bisect_targets(
    nbr: NDArray[Any],
    ids: NDArray[np.int64],
    rank_order: NDArray[np.int32],
    begin: IntLike,
    end: IntLike,
    places: NDArray[np.int32],
    weights: NDArray[np.float32],
    eids: np.uint64,
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
    out_pos: np.uint64,
) -> np.uint64:
    """For few targets, ascending by rank: each is searched for in the row. What there is no room
    for is counted only.
    """
    slot, degree, capacity = np.int64(0), np.int64(nbr.shape[0]), np.uint64(out_places.shape[0])
    for rank in range(begin, end):
        target = ids[target_of_rank(np.uint64(rank), rank_order)]
        slot = np.int64(lower_bound(nbr, slot, degree, target))
        while slot < degree and np.int64(nbr[slot]) == target:
            if out_pos < capacity:
                out_places[out_pos] = place_of_rank(np.uint64(rank), rank_order, places)
                if out_weights.shape[0] > 0:
                    out_weights[out_pos] = (
                        weights[slot] if weights.shape[0] > 0 else np.float32(1.0)
                    )
                if out_eids.shape[0] > 0:
                    out_eids[out_pos] = read_eid(eids + EID_STRIDE * np.uint64(slot))
            out_pos += ONE
            slot += 1
    return out_pos


@inlined
def _bisect_row(
    table: NDArray[np.int64],
    part: np.int64,
    start: np.int64,
    degree: np.int64,
    ids: NDArray[np.int64],
    rank_order: NDArray[np.int32],
    begin: IntLike,
    end: IntLike,
    places: NDArray[np.int32],
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
    out_pos: np.uint64,
) -> np.uint64:
    """`_bisect_targets` in a row, whatever it is made of."""
    narrow, eids = table[part, NARROW], eid_address(table, part, start)
    weights = view_at(
        table[part, WEIGHTS] + 4 * start, np.int64(0) if table[part, WEIGHTS] == 0 else degree, _F32
    )
    narrow_nbr, wide_nbr = (
        view_at(narrow + 4 * start, degree, _U32),
        view_at(table[part, NBR] + 8 * start, degree, _I64),
    )
    common_args = (
        ids,
        rank_order,
        begin,
        end,
        places,
        weights,
        eids,
        out_places,
        out_weights,
        out_eids,
        out_pos,
    )
    return (
        _bisect_targets(narrow_nbr, *common_args)
        if narrow != 0
        else _bisect_targets(wide_nbr, *common_args)
    )


@inlined
def _scan_dense_row(
    pairs: NDArray[np.uint64],
    base_id: np.uint64,
    words: NDArray[np.uint64],
    word_ranks: NDArray[np.int32],
    rank_order: NDArray[np.int32],
    places: NDArray[np.int32],
    eids: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
    ranks: NDArray[np.uint32],
    out_places: NDArray[np.int32],
    out_eids: NDArray[np.int64],
    out_pos: np.uint64,
) -> np.uint64:
    """As `_scan_row`, where many edges lead to targets, of which the ids are wanted and no weights.
    Where there is no room for a piece, more is said to be told than there is room for."""
    offset, capacity, degree = np.int64(0), np.uint64(out_places.shape[0]), np.int64(pairs.shape[0])
    while offset < degree:
        size = min(degree - offset, np.int64(_SCAN_NEIGHBORS))
        count = scan_pairs(pairs[offset : offset + size], base_id, words, eids, bit_positions)
        if capacity - out_pos < count:
            return capacity + ONE
        emit_places(
            bit_positions, count, words, word_ranks, ranks, rank_order, places, out_places, out_pos
        )
        for j in range(count):
            out_eids[out_pos + j] = np.int64(eids[j])
        offset, out_pos = offset + size, out_pos + count
    return out_pos


@inlined
def _scan_row(
    table: NDArray[np.int64],
    part: np.int64,
    start: np.int64,
    degree: np.int64,
    base_id: np.uint64,
    words: NDArray[np.uint64],
    word_ranks: NDArray[np.int32],
    rank_order: NDArray[np.int32],
    places: NDArray[np.int32],
    edges: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
    ranks: NDArray[np.uint32],
    slots: NDArray[np.uint64],
    num_listed: np.uint64,
    want_eids: bool,
    dense: bool,
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
    out_pos: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """Look at all neighbors of a long row, piece after piece; the edges that all is told of then,
    and those whose ids are yet to be read.

    Where there is no room for these any more, nothing is told of the last piece, and it ends there.
    """
    if dense and table[part, PAIRS] != 0:
        read_eids(slots, num_listed, out_eids, out_pos)
        pairs = view_at(table[part, PAIRS] + 8 * start, degree, _U64)
        return _scan_dense_row(
            pairs,
            base_id,
            words,
            word_ranks,
            rank_order,
            places,
            edges,
            bit_positions,
            ranks,
            out_places,
            out_eids,
            out_pos + num_listed,
        ), np.uint64(0)
    narrow, offset, capacity = table[part, NARROW], np.int64(0), np.uint64(out_places.shape[0])
    while offset < degree:
        slot, size = start + offset, min(degree - offset, np.int64(_SCAN_NEIGHBORS))
        if narrow != 0:
            count = scan_narrow(
                view_at(narrow + 4 * slot, size, _U32), base_id, words, edges, bit_positions
            )
        else:
            count = scan_wide(
                view_at(table[part, NBR] + 8 * slot, size, _I64),
                base_id,
                words,
                edges,
                bit_positions,
            )
        if capacity - out_pos < num_listed + count:
            return out_pos, num_listed + count
        emit_places(
            bit_positions,
            count,
            words,
            word_ranks,
            ranks,
            rank_order,
            places,
            out_places,
            out_pos + num_listed,
        )
        weights = view_at(
            table[part, WEIGHTS] + 4 * slot,
            np.int64(0) if table[part, WEIGHTS] == 0 else size,
            _F32,
        )
        emit(
            edges,
            count,
            weights,
            eid_address(table, part, slot),
            slots,
            num_listed,
            want_eids,
            out_weights,
            out_pos + num_listed,
        )
        offset, num_listed = offset + size, num_listed + count
        if num_listed > _FLUSH_EDGES:
            read_eids(slots, num_listed, out_eids, out_pos)
            out_pos, num_listed = out_pos + num_listed, np.uint64(0)
    return out_pos, num_listed


@inlined
def _list_nonempty_rows(
    degrees: NDArray[np.int64], first: IntLike, sizes: NDArray[np.int32], queue: NDArray[np.int32]
) -> IntLike:
    """List the rows from ``first`` on that have edges; how many these are. As to edges that lead to
    targets, all have none so far.

    Whether a row has any is hard to foretell, so that each is written, and counts or does not.
    """
    count = np.uint64(0)
    for i in range(first, degrees.shape[0]):
        queue[count], sizes[i] = i, 0
        count += np.uint64(degrees[i] > 0)
    return np.int64(count)


@kernel
def groups_ascend(row_groups: NDArray[np.int32], degrees: NDArray[np.int64]) -> bool:
    """Whether nodes that have edges come group after group; int32[m] and int64[m]."""
    last = np.int64(-1)
    for i in range(row_groups.shape[0]):
        if degrees[i] > 0:
            if row_groups[i] < last:
                return False
            last = np.int64(row_groups[i])
    return True


@kernel
def join_by_bitset(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    ids: NDArray[np.int64],
    places: NDArray[np.int32],
    row_groups: NDArray[np.int32],
    target_groups: NDArray[np.int64],
    min_id: np.int64,
    words: NDArray[np.uint64],
    word_ranks: NDArray[np.int32],
    touched_words: NDArray[np.int32],
    rank_order: NDArray[np.int32],
    slots: NDArray[np.uint64],
    queue: NDArray[np.int32],
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
) -> bool:
    """As `storaged.kernels.induced.hash_join.join_by_hash`, for targets that are there once each
    and whose ids lie near each other.

    Parameters
    ----------
    table, partitions, starts, degrees, state, sizes, out_places, out_weights, out_eids
        As there.
    ids, places : int64[t], int32[t]
        Targets, by group, in any order within one, and what is to be told of each; no places: its
        own among them.
    row_groups, target_groups : int32[m], int64[t]
        As there; nodes that have edges come group after group as well (`groups_ascend`).
    min_id : int64
        The least of ``ids``.
    words : uint64[words], inout
        A bit for each id from ``min_id`` on, and at least one more than the targets' ids need; all
        0, and so they are left.
    word_ranks, touched_words, rank_order : int32[words], int32[t], int32[t]
        Room to work in.
    slots, queue : uint64[HELD], int32[m]
        Likewise.

    Returns
    -------
    bool
        False where a target is there twice in a group: nothing of what was found is of use then.

    Notes
    -----
    Words that hold a bit know the rank of their first target, so that no search and no sorting is
    needed (Jacobson 1989, Space-efficient static trees and graphs, section 2: rank by a directory
    and a count within the word)."""
    base_id, capacity, grouped = (
        np.uint64(min_id),
        np.uint64(out_places.shape[0]),
        row_groups.shape[0] > 0,
    )
    begin, end, touched_count, group, ascending, ids_ascend = (
        np.int64(0),
        np.int64(0),
        np.int64(0),
        np.int64(-1),
        False,
        False,
    )
    # Behind ``out_pos`` edges of which all is told there are ``num_listed`` that are listed; a
    # row's own begin at ``row_begin``.
    queue_index, out_pos, num_listed, row_begin, is_unique = (
        np.int64(0),
        np.uint64(state[TOTAL]),
        np.uint64(0),
        np.uint64(state[TOTAL]),
        True,
    )
    queue_size, want_eids = (
        np.int64(_list_nonempty_rows(degrees, np.int64(state[ROW]), sizes, queue)),
        out_eids.shape[0] > 0,
    )
    if not grouped:
        end = np.int64(ids.shape[0])
        touched_count, ids_ascend, is_unique = build_ranks(
            ids, begin, end, base_id, words, touched_words, word_ranks, rank_order
        )
        ascending = ids_ascend
    order = rank_order[:0] if ids_ascend else rank_order
    buffer, edges, ranks, bit_positions = np.zeros((4, _SCAN_NEIGHBORS + LANES), np.uint32)
    owners, row_offsets = (
        np.empty(_SCAN_NEIGHBORS + LANES, np.int32),
        np.empty(_SCAN_NEIGHBORS, np.int64),
    )
    allow_dense, num_scanned, first = (
        USE_SIMD and want_eids and out_weights.shape[0] == 0,
        np.uint64(0),
        out_pos,
    )
    while is_unique and queue_index < queue_size:
        i = np.int64(queue[queue_index])
        degree, part, row_begin = degrees[i], partitions[i], out_pos + num_listed
        if grouped and np.int64(row_groups[i]) != group:
            for k in range(touched_count):
                words[touched_words[k]] = 0
            group = np.int64(row_groups[i])
            begin = np.int64(
                lower_bound(target_groups, end, np.int64(target_groups.shape[0]), group)
            )
            end = np.int64(
                lower_bound(target_groups, begin, np.int64(target_groups.shape[0]), group + 1)
            )
            touched_count, ids_ascend, is_unique = build_ranks(
                ids, begin, end, base_id, words, touched_words, word_ranks, rank_order
            )
            ascending = ids_ascend
            order = rank_order[:0] if ids_ascend else rank_order
        scan_limit = _LOOKS * (end - begin) if is_unique else np.int64(0)
        count, filled = _gather_short_rows(
            table,
            partitions,
            starts,
            degrees,
            row_groups,
            group,
            min(scan_limit, np.int64(_SHORT)),
            queue,
            queue_index,
            queue_size,
            buffer,
            owners,
            row_offsets,
        )
        if count > 0:
            match_count = scan_narrow(buffer[:filled], base_id, words, edges, bit_positions)
            if capacity - out_pos < num_listed + match_count:
                break
            emit_places(
                bit_positions,
                match_count,
                words,
                word_ranks,
                ranks,
                order,
                places,
                out_places,
                row_begin,
            )
            emit_gathered(
                table,
                partitions,
                starts,
                queue,
                queue_index,
                owners,
                row_offsets,
                edges,
                match_count,
                slots,
                num_listed,
                want_eids,
                sizes,
                out_weights,
                row_begin,
            )
            num_listed += match_count
            queue_index, row_begin, num_scanned = (
                queue_index + count,
                out_pos + num_listed,
                num_scanned + np.uint64(filled),
            )
            if num_listed > _FLUSH_EDGES:
                read_eids(slots, num_listed, out_eids, out_pos)
                out_pos, num_listed = row_begin, np.uint64(0)
            continue
        dense = bool(allow_dense and _DENSE * (row_begin - first) > num_scanned)
        if queue_index + _AHEAD < queue_size:
            row_ahead = queue[queue_index + _AHEAD]
            _prefetch_row(
                table,
                partitions[row_ahead],
                starts[row_ahead],
                degrees[row_ahead],
                dense and table[partitions[row_ahead], PAIRS] != 0,
            )
        if (
            scan_limit > 0
            and degree > scan_limit
            and degree > scan_limit * np.int64(bisection_steps(degree))
        ):
            read_eids(slots, num_listed, out_eids, out_pos)
            out_pos, num_listed = row_begin, np.uint64(0)
            if not ascending:
                touched_words[:touched_count].sort()
                rank_words(words, touched_words, touched_count, word_ranks, begin)
                order_by_rank(ids, begin, end, base_id, words, word_ranks, rank_order)
                ascending = True
            out_pos = _bisect_row(
                table,
                part,
                starts[i],
                degree,
                ids,
                order,
                begin,
                end,
                places,
                out_places,
                out_weights,
                out_eids,
                out_pos,
            )
        elif scan_limit > 0:
            out_pos, num_listed = _scan_row(
                table,
                part,
                starts[i],
                degree,
                base_id,
                words,
                word_ranks,
                order,
                places,
                edges,
                bit_positions,
                ranks,
                slots,
                num_listed,
                want_eids,
                dense,
                out_places,
                out_weights,
                out_eids,
                out_pos,
            )
        if out_pos > capacity or capacity - out_pos < num_listed:
            break
        sizes[i], queue_index, row_begin, num_scanned = (
            np.int32(out_pos + num_listed - row_begin),
            queue_index + 1,
            out_pos + num_listed,
            num_scanned + np.uint64(degree),
        )
    num_listed = row_begin - min(out_pos, row_begin)
    read_eids(slots, num_listed, out_eids, min(out_pos, row_begin))
    for k in range(touched_count):
        words[touched_words[k]] = 0
    state[ROW], state[TOTAL] = (
        queue[queue_index] if queue_index < queue_size else degrees.shape[0],
        np.int64(row_begin),
    )
    return is_unique
