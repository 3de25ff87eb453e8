"""Join edges with target nodes stored as a bitset over a dense range of ids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    CHECK_BOUNDS,
    STOP_CHECK_MASK,
    IntLike,
    copy_at,
    inlined,
    is_set,
    kernel,
    prefetch_at,
    register,
    view_at,
)
from asterism_graphkit.compile.simd import LANES, USE_SIMD
from asterism_graphkit.relabel.bitset import ONE
from storaged.kernels.adjacency_rows import NARROW, NBR, PAIRS, SLOTS, WEIGHTS, RowSpan, RowSpans
from storaged.kernels.induced.bitset import (
    TargetBitset,
    build_ranks,
    clear_target_bits,
    order_by_rank,
    place_of_rank,
    rank_words,
    scan_narrow,
    scan_pairs,
    scan_wide,
    sort_touched_words,
    target_of_rank,
)
from storaged.kernels.induced.emit import (
    EID_STRIDE,
    ScanBuffers,
    eid_address,
    emit,
    emit_gathered,
    emit_places,
    read_eid,
    read_eids,
)
from storaged.kernels.induced.hash_join import (
    ROW,
    TOTAL,
    EdgeOutputs,
    TargetNodes,
    bisection_steps,
    lower_bound,
)

_FLUSH_EDGES, _SCAN_NEIGHBORS = 512, 1024
"""Edges listed before their ids are read, and neighbors scanned per block.

All of their buffers fit in a cache.
"""
_MAX_LISTED = _FLUSH_EDGES + _SCAN_NEIGHBORS
"""Maximum number of listed edges: the last block may exceed `_FLUSH_EDGES`."""
_SHORT = 256
"""Maximum degree of rows that are scanned together."""
_DENSE = 8
"""If one edge in this many leads to a target, neighbors are read in pairs with edge ids.

Most cache lines of the ids are needed then.
"""
_AHEAD, _LINES = 12, 16
"""Prefetch distance in rows, and the most cache lines prefetched of each row."""
_SCANS_PER_STEP = 4
"""Neighbors that are scanned in the time of one bisection step."""
_I64, _U32, _U64, _F32 = (
    np.zeros(0, dtype) for dtype in (np.int64, np.uint32, np.uint64, np.float32)
)


@inlined
def _prefetch_row(rows: RowSpans, i: IntLike, with_eids: bool) -> None:
    """Prefetch the beginning of row i: its pairs if ``with_eids`` and available."""
    table, part, start, degree = rows.table, rows.partitions[i], rows.starts[i], rows.degrees[i]
    narrow = table[part, NARROW]
    paired = with_eids and table[part, PAIRS] != 0
    width = np.int64(8) if narrow == 0 or paired else np.int64(4)
    address = (
        table[part, NBR] if narrow == 0 else table[part, PAIRS] if paired else narrow
    ) + width * start
    size = min(degree * width, np.int64(64 * _LINES))
    prefetch_at(
        np.uint64(address)
    )  # most rows have at most these two lines: no branch to mispredict
    prefetch_at(np.uint64(address + size - 1))
    for line in range(1, size >> 6):
        prefetch_at(np.uint64(address + 64 * line))


@inlined
def _gather_short_rows(
    rows: RowSpans,
    row_groups: NDArray[np.int32],
    group: np.int64,
    max_degree: np.int64,
    queue: NDArray[np.int32],
    queue_index: np.int64,
    queue_size: np.int64,
    buffers: ScanBuffers,
) -> tuple[np.int64, np.int64]:
    """Copy consecutive short rows into one buffer, and note the row of each neighbor.

    Returns the number of rows and the number of neighbors. The rows have 32-bit neighbors, belong
    to the given group, and have at most ``max_degree`` neighbors. A branch on the degree would be
    mispredicted. So `LANES` neighbors are copied at a time, and one copy suffices for most rows,
    provided that the partition has that many neighbors after them.
    """
    neighbors, owners = buffers.neighbors, buffers.owners
    if CHECK_BOUNDS:
        register(neighbors)
    count, filled, buffer_address = np.int64(0), np.int64(0), np.uint64(neighbors.ctypes.data)
    while queue_index + count < queue_size:
        i = np.int64(queue[queue_index + count])
        degree, start, part = rows.degrees[i], rows.starts[i], rows.partitions[i]
        if (
            degree > max_degree
            or filled + degree > _SCAN_NEIGHBORS
            or rows.table[part, NARROW] == 0
        ):
            break
        if row_groups.shape[0] > 0 and np.int64(row_groups[i]) != group:
            break
        if queue_index + count + _AHEAD < queue_size:
            _prefetch_row(rows, queue[queue_index + count + _AHEAD], False)
        buffers.row_offsets[count] = filled
        source, is_near_end = (
            np.uint64(rows.table[part, NARROW] + 4 * start),
            start + degree + LANES > rows.table[part, SLOTS],
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
    weights: NDArray[np.float32],
    eids: np.uint64,
    targets: TargetNodes,
    order: NDArray[np.int32],
    begin: IntLike,
    end: IntLike,
    out: EdgeOutputs,
    out_pos: np.uint64,
    stop: NDArray[np.int64],
) -> np.uint64:
    """Search a row for targets ``begin`` to ``end`` by rank; cheap if they are few.

    Parameters
    ----------
    nbr, weights : int64[degree] or uint32[degree], float32[degree] or [0]
        The row; without weights all are 1.
    eids : uint64
        The `eid_address` of its first edge.
    order : int32[t] or [0]
        As in `storaged.kernels.induced.emit.emit_places`.

    Returns
    -------
    uint64
        Position after the last edge; past the end of ``out`` if the edges do not fit.
    """
    slot, degree, capacity = np.int64(0), np.int64(nbr.shape[0]), np.uint64(out.places.shape[0])
    for rank in range(begin, end):
        if rank & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            break
        target = targets.ids[target_of_rank(np.uint64(rank), order)]
        slot = np.int64(lower_bound(nbr, slot, degree, target))
        while slot < degree and np.int64(nbr[slot]) == target:
            if out_pos < capacity:
                out.places[out_pos] = place_of_rank(np.uint64(rank), order, targets.places)
                if out.weights.shape[0] > 0:
                    out.weights[out_pos] = (
                        weights[slot] if weights.shape[0] > 0 else np.float32(1.0)
                    )
                if out.eids.shape[0] > 0:
                    out.eids[out_pos] = read_eid(eids + EID_STRIDE * np.uint64(slot))
            out_pos += ONE
            slot += 1
    return out_pos


@inlined
def _bisect_row(
    table: NDArray[np.int64],
    row: RowSpan,
    targets: TargetNodes,
    order: NDArray[np.int32],
    begin: IntLike,
    end: IntLike,
    out: EdgeOutputs,
    out_pos: np.uint64,
    stop: NDArray[np.int64],
) -> np.uint64:
    """Run `_bisect_targets` on a row of 32-bit or 64-bit neighbors."""
    part, start, degree = row
    narrow, eids = table[part, NARROW], eid_address(table, part, start)
    weights = view_at(
        table[part, WEIGHTS] + 4 * start, np.int64(0) if table[part, WEIGHTS] == 0 else degree, _F32
    )
    narrow_nbr, wide_nbr = (
        view_at(narrow + 4 * start, np.int64(0) if narrow == 0 else degree, _U32),
        view_at(table[part, NBR] + 8 * start, degree, _I64),
    )
    common_args = (weights, eids, targets, order, begin, end, out, out_pos, stop)
    return (
        _bisect_targets(narrow_nbr, *common_args)
        if narrow != 0
        else _bisect_targets(wide_nbr, *common_args)
    )


@inlined
def _scan_dense_row(
    pairs: NDArray[np.uint64],
    bitset: TargetBitset,
    order: NDArray[np.int32],
    places: NDArray[np.int32],
    buffers: ScanBuffers,
    out: EdgeOutputs,
    out_pos: np.uint64,
) -> np.uint64:
    """Scan a row where many edges lead to targets, and ids but no weights are wanted.

    Like `_scan_row`. Returns the position after the last edge. It is past the end of ``out`` if a
    block does not fit or the call was stopped.
    """
    offset, capacity, degree = np.int64(0), np.uint64(out.places.shape[0]), np.int64(pairs.shape[0])
    eids = buffers.edges
    while offset < degree:
        size = min(degree - offset, np.int64(_SCAN_NEIGHBORS))
        count = scan_pairs(pairs[offset : offset + size], bitset, eids, buffers.bit_positions)
        if capacity - out_pos < count or is_set(buffers.stop):
            return capacity + ONE
        emit_places(buffers, count, bitset, order, places, out, out_pos)
        for j in range(count):
            out.eids[out_pos + j] = np.int64(eids[j])
        offset, out_pos = offset + size, out_pos + count
    return out_pos


@inlined
def _scan_row(
    table: NDArray[np.int64],
    row: RowSpan,
    bitset: TargetBitset,
    order: NDArray[np.int32],
    places: NDArray[np.int32],
    num_listed: np.uint64,
    dense: bool,
    buffers: ScanBuffers,
    out: EdgeOutputs,
    out_pos: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """Scan all neighbors of a long row in blocks.

    Parameters
    ----------
    order, places : int32[t] or [0]
        As in `storaged.kernels.induced.emit.emit_places`.
    num_listed : uint64
        Number of listed edges after ``out_pos``: their ids are not read yet.
    dense : bool
        Whether to read pairs if the partition has them.

    Returns
    -------
    out_pos, num_listed : uint64
        Position of the first edge with an unread id, and the number of such edges. Their sum is
        past the end of ``out`` if the edges do not fit or the call was stopped. The scan then ends
        before the last block, of which no edge is written.
    """
    part, start, degree = row
    if dense and table[part, PAIRS] != 0:
        read_eids(buffers, num_listed, out, out_pos)
        pairs = view_at(table[part, PAIRS] + 8 * start, degree, _U64)
        return _scan_dense_row(
            pairs, bitset, order, places, buffers, out, out_pos + num_listed
        ), np.uint64(0)
    narrow, offset, capacity = table[part, NARROW], np.int64(0), np.uint64(out.places.shape[0])
    edges, bit_positions = buffers.edges, buffers.bit_positions
    while offset < degree:
        slot, size = start + offset, min(degree - offset, np.int64(_SCAN_NEIGHBORS))
        if narrow != 0:
            count = scan_narrow(
                view_at(narrow + 4 * slot, size, _U32), bitset, edges, bit_positions
            )
        else:
            count = scan_wide(
                view_at(table[part, NBR] + 8 * slot, size, _I64), bitset, edges, bit_positions
            )
        if capacity - out_pos < num_listed + count:
            return out_pos, num_listed + count
        if is_set(buffers.stop):
            return out_pos, capacity + ONE
        emit_places(buffers, count, bitset, order, places, out, out_pos + num_listed)
        weights = view_at(
            table[part, WEIGHTS] + 4 * slot,
            np.int64(0) if table[part, WEIGHTS] == 0 else size,
            _F32,
        )
        eids = eid_address(table, part, slot)
        emit(buffers, count, num_listed, weights, eids, out, out_pos + num_listed)
        offset, num_listed = offset + size, num_listed + count
        if num_listed > _FLUSH_EDGES:
            read_eids(buffers, num_listed, out, out_pos)
            out_pos, num_listed = out_pos + num_listed, np.uint64(0)
    return out_pos, num_listed


@inlined
def _list_nonempty_rows(
    degrees: NDArray[np.int64], first: IntLike, sizes: NDArray[np.int32], queue: NDArray[np.int32]
) -> IntLike:
    """List the rows from ``first`` on that have edges, and return their number.

    Also sets all sizes from there on to 0. A branch on the degree would be mispredicted, so each
    row is written, and the count advances only for rows with edges.
    """
    count = np.uint64(0)
    for i in range(first, degrees.shape[0]):
        queue[count], sizes[i] = i, 0
        count += np.uint64(degrees[i] > 0)
    return np.int64(count)


@kernel
def groups_ascend(row_groups: NDArray[np.int32], degrees: NDArray[np.int64]) -> bool:
    """Return whether the groups of the rows that have edges ascend.

    ``row_groups`` is int32[m], ``degrees`` is int64[m].
    """
    last = np.int64(-1)
    for i in range(row_groups.shape[0]):
        if degrees[i] > 0:
            if row_groups[i] < last:
                return False
            last = np.int64(row_groups[i])
    return True


@inlined
def _join(
    rows: RowSpans,
    targets: TargetNodes,
    row_groups: NDArray[np.int32],
    bitset: TargetBitset,
    queue: NDArray[np.int32],
    buffers: ScanBuffers,
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: EdgeOutputs,
) -> bool:
    """Run `join_by_bitset` with existing buffers.

    Arrays created in this function would be reference-counted at every use. The first ``out_pos``
    edges are complete. ``num_listed`` edges with unread ids follow. The edges of the current row
    start at ``row_begin``.
    """
    capacity, grouped = np.uint64(out.places.shape[0]), row_groups.shape[0] > 0
    target_groups, rank_order = targets.groups, bitset.rank_order
    begin, end, touched_count, group, ascending, ids_ascend = (
        np.int64(0),
        np.int64(0),
        np.int64(0),
        np.int64(-1),
        False,
        False,
    )
    queue_index, out_pos, num_listed, row_begin, is_unique = (
        np.int64(0),
        np.uint64(state[TOTAL]),
        np.uint64(0),
        np.uint64(state[TOTAL]),
        True,
    )
    queue_size = np.int64(_list_nonempty_rows(rows.degrees, np.int64(state[ROW]), sizes, queue))
    if not grouped:
        end = np.int64(targets.ids.shape[0])
        touched_count, ids_ascend, is_unique = build_ranks(bitset, targets.ids, begin, end)
        ascending = ids_ascend
    order = rank_order[:0] if ids_ascend else rank_order
    allow_dense, num_scanned, first = (
        USE_SIMD and out.eids.shape[0] > 0 and out.weights.shape[0] == 0,
        np.uint64(0),
        out_pos,
    )
    while is_unique and queue_index < queue_size and not is_set(buffers.stop):
        i = np.int64(queue[queue_index])
        row = RowSpan(rows.partitions[i], rows.starts[i], rows.degrees[i])
        row_begin = out_pos + num_listed
        if grouped and np.int64(row_groups[i]) != group:
            clear_target_bits(bitset, touched_count)
            group = np.int64(row_groups[i])
            begin = np.int64(
                lower_bound(target_groups, end, np.int64(target_groups.shape[0]), group)
            )
            end = np.int64(
                lower_bound(target_groups, begin, np.int64(target_groups.shape[0]), group + 1)
            )
            touched_count, ids_ascend, is_unique = build_ranks(bitset, targets.ids, begin, end)
            ascending = ids_ascend
            order = rank_order[:0] if ids_ascend else rank_order
        scan_limit = _SCANS_PER_STEP * (end - begin) if is_unique else np.int64(0)
        count, filled = _gather_short_rows(
            rows,
            row_groups,
            group,
            min(scan_limit, np.int64(_SHORT)),
            queue,
            queue_index,
            queue_size,
            buffers,
        )
        if count > 0:
            match_count = scan_narrow(
                buffers.neighbors[:filled], bitset, buffers.edges, buffers.bit_positions
            )
            if capacity - out_pos < num_listed + match_count:
                break
            emit_places(buffers, match_count, bitset, order, targets.places, out, row_begin)
            emit_gathered(
                rows, queue[queue_index:], buffers, match_count, num_listed, sizes, out, row_begin
            )
            num_listed += match_count
            queue_index, row_begin, num_scanned = (
                queue_index + count,
                out_pos + num_listed,
                num_scanned + np.uint64(filled),
            )
            if num_listed > _FLUSH_EDGES:
                read_eids(buffers, num_listed, out, out_pos)
                out_pos, num_listed = row_begin, np.uint64(0)
            continue
        dense = bool(allow_dense and _DENSE * (row_begin - first) > num_scanned)
        if queue_index + _AHEAD < queue_size:
            _prefetch_row(rows, queue[queue_index + _AHEAD], dense)
        if (
            scan_limit > 0
            and row.degree > scan_limit
            and row.degree > scan_limit * np.int64(bisection_steps(row.degree))
        ):
            read_eids(buffers, num_listed, out, out_pos)
            out_pos, num_listed = row_begin, np.uint64(0)
            if not ascending:
                sort_touched_words(bitset, touched_count)
                rank_words(bitset, touched_count, begin)
                order_by_rank(bitset, targets.ids, begin, end)
                ascending = True
            out_pos = _bisect_row(
                rows.table, row, targets, order, begin, end, out, out_pos, buffers.stop
            )
        elif scan_limit > 0:
            out_pos, num_listed = _scan_row(
                rows.table,
                row,
                bitset,
                order,
                targets.places,
                num_listed,
                dense,
                buffers,
                out,
                out_pos,
            )
        if out_pos > capacity or capacity - out_pos < num_listed:
            break
        sizes[i], queue_index, row_begin, num_scanned = (
            np.int32(out_pos + num_listed - row_begin),
            queue_index + 1,
            out_pos + num_listed,
            num_scanned + np.uint64(row.degree),
        )
    num_listed = row_begin - min(out_pos, row_begin)
    read_eids(buffers, num_listed, out, min(out_pos, row_begin))
    clear_target_bits(bitset, touched_count)
    state[ROW], state[TOTAL] = (
        queue[queue_index] if queue_index < queue_size else rows.degrees.shape[0],
        np.int64(row_begin),
    )
    return is_unique


@kernel
def join_by_bitset(
    rows: RowSpans,
    targets: TargetNodes,
    row_groups: NDArray[np.int32],
    bitset: TargetBitset,
    queue: NDArray[np.int32],
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: EdgeOutputs,
    stop: NDArray[np.int64],
) -> bool:
    """Find edges to targets that occur once each and have ids in a dense range.

    The result is that of `storaged.kernels.induced.hash_join.join_by_hash`.

    Parameters
    ----------
    rows, state, sizes, out, stop
        As in `storaged.kernels.induced.hash_join.join_by_hash`.
    targets : TargetNodes
        In any order within a group.
    row_groups : int32[m] or [0]
        Group of each row, as in `storaged.kernels.induced.hash_join.join_by_hash`. The groups of
        rows with edges ascend (`groups_ascend`).
    bitset : TargetBitset
        Its first bit is the smallest of ``targets.ids``. Its words are 0 before and after the call.
    queue : int32[m]
        Scratch array.

    Returns
    -------
    bool
        False if a target occurs twice in a group; the outputs are then meaningless.

    Notes
    -----
    Each word that holds a bit stores the rank of its first target, so neither searching nor sorting
    is needed (Jacobson 1989, Space-efficient static trees and graphs, section 2: rank by a
    directory and a count within the word).
    """
    neighbors, edges, ranks, bit_positions = np.zeros((4, _SCAN_NEIGHBORS + LANES), np.uint32)
    buffers = ScanBuffers(
        neighbors,
        np.empty(_SCAN_NEIGHBORS + LANES, np.int32),
        np.empty(_SCAN_NEIGHBORS, np.int64),
        edges,
        bit_positions,
        ranks,
        np.empty(_MAX_LISTED, np.uint64),
        stop,
    )
    return _join(rows, targets, row_groups, bitset, queue, buffers, state, sizes, out)
