"""LABOR sampling at nodes of all partitions of a host.

Edges are read in place, and only the kept ones are written. `asterism_graphkit.operators.labor`
describes the method and its source. Importance steps relabel the neighbors of a hop, and raise the
importance of each to the largest value that a node gives it. Rows ascend by neighbor, so arrays
indexed by id are read in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    STOP_CHECK_MASK,
    STOP_CHECK_STEPS,
    IntLike,
    i64_at,
    inlined,
    is_set,
    kernel,
    prefetch_at,
    u32_at,
    u64_at,
    view_at,
)
from asterism_graphkit.operators.labor import (
    F64,
    level_from_weights,
    solve_level,
    stretch_end,
)
from asterism_graphkit.random.rng import unit_float, unit_threshold, word
from asterism_graphkit.relabel.bitset import BIT_MASK, ONE, WORD_SHIFT, bit_rank
from storaged.kernels.adjacency_rows import (
    EID,
    NARROW,
    NBR,
    PAIRS,
    WEIGHTS,
    RowSpan,
    RowSpans,
    unpack_pair,
)
from storaged.kernels.subgraphs.expand import NeighborOutputs

ROW, TOTAL = range(2)
"""Elements of the state of `keep_edges`: the next node, and the edges kept before it."""
BLOCK = 4096
"""Edges that are read between two checks of the output's capacity."""
_AHEAD = 4
"""Prefetch distance in rows."""
_FLAGS_PER_WORD = 8
_ROUNDING_MARGIN = 1.0 + 1e-12
"""Factor that exceeds the rounding errors of the two sides of an inequality."""
_S12 = np.uint64(12)
_I64, _U32, _F32 = np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32)


class KeepParams(NamedTuple):
    """Parameters of `keep_edges`."""

    key: np.uint64
    """Key of the variates: that of node t is word t."""
    fanout: np.int64
    """Expected number of neighbors of each node; -1: all of positive weight."""
    uniform: bool
    """True if every edge counts with weight 1."""
    max_edges: np.int64
    """Edges to read in one call, rounded up to the edges of a node."""


class ImportanceState(NamedTuple):
    """State of importance steps for m nodes with e edges to n neighbors.

    All arrays are empty if no steps are taken; the weights are then the importances.
    """

    offsets: NDArray[np.int64]
    """First edge of each node among all edges, int64[m + 1]."""
    neighbor_indices: NDArray[np.int32]
    """Local id of the neighbor of each edge, int32[e]."""
    importances: F64
    """Importance of each neighbor by local id, float64[n]."""
    levels: F64
    """Level of each node in the previous step, float64[m]."""


class LaborScratch(NamedTuple):
    """Scratch arrays of `keep_edges`; d is the largest degree."""

    neighbors: NDArray[np.int64]
    """Neighbors of a block, int64[BLOCK]."""
    flags: NDArray[np.uint8]
    """Flags of the kept edges of a block, uint8[BLOCK]."""
    flag_words: NDArray[np.uint64]
    """View of the flags, eight at a time, uint64[BLOCK / 8]."""
    importances: F64
    squares: F64
    ratios: F64
    """Scratch of the level solver; the last three are float64[d], or float64[0] without steps."""


@inlined
def _prefetch_row(table: NDArray[np.int64], part: IntLike, start: IntLike, weighted: bool) -> None:
    """Prefetch the first edges of a row."""
    narrow = table[part, NARROW]
    prefetch_at(
        np.uint64(narrow + 4 * start) if narrow != 0 else np.uint64(table[part, NBR] + 8 * start)
    )
    if weighted and table[part, WEIGHTS] != 0:
        prefetch_at(np.uint64(table[part, WEIGHTS] + 4 * start))


@inlined
def _weighted_degree(
    table: NDArray[np.int64], part: IntLike, degree: IntLike, uniform: bool
) -> np.int64:
    """Return the number of a row's weights to read: 0 if every edge counts with weight 1."""
    return np.int64(0) if uniform or table[part, WEIGHTS] == 0 else np.int64(degree)


@inlined
def _copy_neighbors(
    table: NDArray[np.int64], part: IntLike, start: IntLike, size: IntLike, out: NDArray[np.int64]
) -> None:
    """Copy the neighbors of ``size`` edges from slot ``start`` on."""
    if table[part, NARROW] != 0:
        narrow = view_at(table[part, NARROW] + 4 * start, size, _U32)
        for e in range(size):
            out[e] = np.int64(narrow[e])
        return
    wide = view_at(table[part, NBR] + 8 * start, size, _I64)
    for e in range(size):
        out[e] = wide[e]


@inlined
def _flag_equal(
    key: np.uint64,
    probability: float,
    neighbors: NDArray[np.int64],
    size: IntLike,
    flags: NDArray[np.uint8],
) -> None:
    """Flag the edges that are kept if all have the same probability.

    This is a separate loop, so that it is vectorized.
    """
    threshold = unit_threshold(probability)
    for e in range(size):
        flags[e] = np.uint8(np.int64(word(key, np.uint64(neighbors[e])) >> _S12) <= threshold)


@inlined
def _flag_candidates(
    key: np.uint64,
    level: float,
    neighbors: NDArray[np.int64],
    importances: NDArray[Any],
    size: IntLike,
    flags: NDArray[np.uint8],
) -> None:
    """Flag a superset of the edges that are kept by importances.

    Most edges are rejected without a division.
    """
    for e in range(size):
        flags[e] = np.uint8(
            unit_float(word(key, np.uint64(neighbors[e]))) * level
            <= np.float64(importances[e]) * _ROUNDING_MARGIN
        )


@inlined
def _list_flagged(
    scratch: LaborScratch,
    size: IntLike,
    first: IntLike,
    out_pos: IntLike,
    edges: NDArray[np.int64],
) -> IntLike:
    """List the flagged edges of a block; return the position after the last one.

    Edges are numbered from ``first`` on and written from ``out_pos`` on.
    """
    flags, flag_words = scratch.flags, scratch.flag_words
    count = out_pos
    for w in range((size + _FLAGS_PER_WORD - 1) // _FLAGS_PER_WORD):
        if flag_words[w] == 0:
            continue
        for e in range(_FLAGS_PER_WORD * w, min(_FLAGS_PER_WORD * w + _FLAGS_PER_WORD, size)):
            edges[count] = first + e
            count += np.int64(flags[e])
    return count


@inlined
def _confirm(
    key: np.uint64,
    level: float,
    neighbors: NDArray[np.int64],
    weights: NDArray[np.float32],
    importances: NDArray[Any],
    first: IntLike,
    begin: IntLike,
    end: IntLike,
    edges: NDArray[np.int64],
) -> IntLike:
    """Keep only the exactly accepted edges of those at begin .. end - 1; return the new end."""
    count = begin
    for i in range(begin, end):
        e = edges[i]
        edges[count] = e
        is_kept = (
            unit_float(word(key, np.uint64(neighbors[e - first])))
            <= np.float64(importances[e]) / level
        )
        count += np.int64(is_kept and (weights.shape[0] == 0 or weights[e] > 0.0))
    return count


@inlined
def _keep_all(
    weights: NDArray[np.float32],
    begin: IntLike,
    end: IntLike,
    out_pos: IntLike,
    edges: NDArray[np.int64],
) -> IntLike:
    """List all edges of positive weight from ``out_pos`` on; return the new end."""
    count = out_pos
    for e in range(begin, end):
        edges[count] = e
        count += np.int64(weights.shape[0] == 0 or weights[e] > 0.0)
    return count


@inlined
def _inverse(weights: NDArray[np.float32], e: IntLike, importance: float, level: float) -> float:
    """Return an edge's weight divided by its probability."""
    weight = np.float64(weights[e]) if weights.shape[0] > 0 else 1.0
    return weight / (1.0 if importance >= level else importance / level)


@inlined
def _weigh(
    weights: NDArray[np.float32],
    importances: NDArray[Any],
    level: float,
    edges: NDArray[np.int64],
    out: NDArray[np.float32],
    stop: NDArray[np.int64],
) -> None:
    """Write the weights of a node's kept edges in a mean; they sum to the number of edges.

    Without importances all importances are 1.
    """
    total, count, no_importances = 0.0, np.float64(edges.shape[0]), importances.shape[0] == 0
    for i in range(edges.shape[0]):
        if i & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            return
        total += _inverse(
            weights, edges[i], 1.0 if no_importances else np.float64(importances[edges[i]]), level
        )
    for i in range(edges.shape[0]):
        if i & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            return
        out[i] = np.float32(
            _inverse(
                weights,
                edges[i],
                1.0 if no_importances else np.float64(importances[edges[i]]),
                level,
            )
            * (count / total)
        )


@inlined
def _write_edges(
    table: NDArray[np.int64],
    part: IntLike,
    start: IntLike,
    edges: NDArray[np.int64],
    eids: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Write the ids of a node's kept edges if wanted, and replace the edges by neighbors."""
    pairs, narrow = np.uint64(table[part, PAIRS]), np.uint64(table[part, NARROW])
    if pairs != 0 and eids.shape[0] > 0:
        for i in range(edges.shape[0]):
            if i & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                return
            eids[i], edges[i] = unpack_pair(u64_at(pairs, start + edges[i]))
        return
    for i in range(eids.shape[0]):
        if i & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            return
        eids[i] = i64_at(np.uint64(table[part, EID]), start + edges[i])
    for i in range(edges.shape[0]):
        if i & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            return
        slot = start + edges[i]
        edges[i] = (
            np.int64(u32_at(narrow, slot))
            if narrow != 0
            else i64_at(np.uint64(table[part, NBR]), slot)
        )


@inlined
def _gather_importances(
    importances: F64, neighbor_indices: NDArray[np.int32], out: F64, stop: NDArray[np.int64]
) -> None:
    """Gather the importances of a row's neighbors for repeated use.

    They are read at random, but only once.
    """
    degree = neighbor_indices.shape[0]
    for begin in range(0, degree, STOP_CHECK_STEPS):
        if is_set(stop):
            return
        for e in range(np.uint64(begin), stretch_end(begin, degree)):
            out[e] = importances[neighbor_indices[e]]


@inlined
def _keep_row(
    table: NDArray[np.int64],
    params: KeepParams,
    row: RowSpan,
    level: float,
    weights: NDArray[np.float32],
    importances: NDArray[Any],
    scratch: LaborScratch,
    first: IntLike,
    out: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """List the kept edges of a node by their offsets in its row, from ``first`` on.

    Parameters
    ----------
    weights : float32[degree] or [0]
        If empty, every edge counts with weight 1.
    importances : float64[degree] or float32[degree], or [0]
        Importance of each edge's neighbor; if empty, all are 1.

    Returns
    -------
    int
        Position after the last one, or -1 if the edges may not fit or the call was stopped.
    """
    key, fanout, degree = params.key, params.fanout, row.degree
    keep_all = bool(fanout < 0 or degree <= fanout)
    out_pos = first
    for begin in range(0, row.degree, BLOCK):
        size = np.int64(min(np.int64(BLOCK), np.int64(row.degree - begin)))
        end = begin + size
        if out.shape[0] - out_pos < size or is_set(stop):
            return np.int64(-1)
        if keep_all:
            out_pos = _keep_all(weights, begin, end, out_pos, out)
            continue
        _copy_neighbors(table, row.part, row.start + begin, size, scratch.neighbors)
        if importances.shape[0] == 0:
            _flag_equal(key, 1.0 / level, scratch.neighbors, size, scratch.flags)
            out_pos = _list_flagged(scratch, size, begin, out_pos, out)
            continue
        _flag_candidates(key, level, scratch.neighbors, importances[begin:end], size, scratch.flags)
        candidates_end = _list_flagged(scratch, size, begin, out_pos, out)
        out_pos = _confirm(
            key,
            level,
            scratch.neighbors,
            weights,
            importances,
            begin,
            out_pos,
            candidates_end,
            out,
        )
    return out_pos


@inlined
def _keep_node(
    table: NDArray[np.int64],
    params: KeepParams,
    row: RowSpan,
    level: float,
    weights: NDArray[np.float32],
    importances: NDArray[Any],
    scratch: LaborScratch,
    first: IntLike,
    out: NeighborOutputs,
    stop: NDArray[np.int64],
) -> IntLike:
    """Write the kept edges of a node from ``first`` on.

    Parameters and result as in `_keep_row`.
    """
    end = _keep_row(table, params, row, level, weights, importances, scratch, first, out.ids, stop)
    if end < 0:
        return end
    edges = out.ids[first:end]
    if out.weights.shape[0] > 0:
        _weigh(weights, importances, level, edges, out.weights[first:end], stop)
    eids = out.eids[first:end] if out.eids.shape[0] > 0 else out.eids
    _write_edges(table, row.part, row.start, edges, eids, stop)
    return end


@inlined
def _keep_edges(
    rows: RowSpans,
    params: KeepParams,
    steps: ImportanceState,
    scratch: LaborScratch,
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: NeighborOutputs,
    stop: NDArray[np.int64],
) -> None:
    """Run `keep_edges` with existing scratch arrays.

    Arrays created in this function would be reference-counted at every use.
    """
    table, partitions, starts, degrees = rows
    fanout, uniform, levels = params.fanout, params.uniform, steps.levels
    squares, ratios = scratch.squares, scratch.ratios
    m, num_scanned, has_importances = (
        partitions.shape[0],
        np.int64(0),
        steps.offsets.shape[0] > 0,
    )
    for i in range(state[ROW], m):
        if num_scanned >= params.max_edges:
            return
        ahead = min(i + _AHEAD, m - 1)
        _prefetch_row(table, partitions[ahead], starts[ahead], not uniform)
        row, first = RowSpan(partitions[i], starts[i], degrees[i]), state[TOTAL]
        row_weights = view_at(
            table[row.part, WEIGHTS] + 4 * row.start,
            _weighted_degree(table, row.part, row.degree, uniform),
            _F32,
        )
        if has_importances:
            row_importances = scratch.importances[: row.degree]
            _gather_importances(
                steps.importances,
                steps.neighbor_indices[steps.offsets[i] : steps.offsets[i + 1]],
                row_importances,
                stop,
            )
            level = solve_level(
                row_weights, row_importances, squares, ratios, fanout, levels[i], stop
            )
            end = _keep_node(
                table, params, row, level, row_weights, row_importances, scratch, first, out, stop
            )
        else:
            level = level_from_weights(row_weights, row.degree, fanout, uniform, stop)
            end = _keep_node(
                table, params, row, level, row_weights, row_weights, scratch, first, out, stop
            )
        if end < 0 or is_set(stop):
            return
        sizes[i] = np.int32(end - first)
        state[ROW], state[TOTAL] = i + 1, end
        num_scanned += row.degree + 1


@kernel
def keep_edges(
    rows: RowSpans,
    params: KeepParams,
    steps: ImportanceState,
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: NeighborOutputs,
    stop: NDArray[np.int64],
) -> None:
    """Keep edges node by node, until all nodes are done or a limit is reached.

    A call ends early after ``max_edges`` edges, or if the output is full.

    Parameters
    ----------
    rows : RowSpans
    params : KeepParams
    steps : ImportanceState
    state : int64[2], inout
        Position to resume from: `ROW` and `TOTAL`.
    sizes : int32[m], out
        Number of edges kept of each node.
    out : NeighborOutputs
        `BLOCK` longer than the number of edges that is certain to fit. Weights are those in a mean.
    stop : int64[1]
        A nonzero value stops the call; its outputs are then incomplete.
    """
    max_degree = np.int64(0)
    if steps.offsets.shape[0] > 0 and rows.degrees.shape[0] > 0:
        max_degree = np.int64(rows.degrees.max())
    flags = np.zeros(BLOCK, np.uint8)
    scratch = LaborScratch(
        np.empty(BLOCK, np.int64),
        flags,
        flags.view(np.uint64),
        np.empty(max_degree, np.float64),
        np.empty(max_degree, np.float64),
        np.empty(max_degree, np.float64),
    )
    _keep_edges(rows, params, steps, scratch, state, sizes, out, stop)


@kernel
def highest_neighbor(rows: RowSpans) -> int:
    """Return the highest neighbor id of some nodes, or -1 if they have no neighbors."""
    table, partitions, starts, degrees = rows
    max_id, last_neighbor = np.int64(-1), np.empty(1, np.int64)
    for i in range(partitions.shape[0]):
        if degrees[i] > 0:
            _copy_neighbors(table, partitions[i], starts[i] + degrees[i] - 1, 1, last_neighbor)
            max_id = max(max_id, last_neighbor[0])
    return max_id  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def set_neighbor_bits(rows: RowSpans, words: NDArray[np.uint64], stop: NDArray[np.int64]) -> None:
    """Set the bits of the neighbors of some nodes.

    ``words`` is uint64[w], inout; ``stop`` as in `keep_edges`.
    """
    table, partitions, starts, degrees = rows
    neighbors, m = np.empty(BLOCK, np.int64), partitions.shape[0]
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        _prefetch_row(table, partitions[ahead], starts[ahead], False)
        for begin in range(0, degrees[i], BLOCK):
            if is_set(stop):
                return
            size = min(degrees[i] - begin, BLOCK)
            _copy_neighbors(table, partitions[i], starts[i] + begin, size, neighbors)
            for e in range(size):
                node = np.uint64(neighbors[e])
                words[node >> WORD_SHIFT] |= ONE << (node & BIT_MASK)


@kernel
def index_neighbors(
    rows: RowSpans,
    words: NDArray[np.uint64],
    word_ranks: NDArray[np.int32],
    neighbor_indices: NDArray[np.int32],
    stop: NDArray[np.int64],
) -> None:
    """Write the local id of each edge's neighbor: the rank of its bit.

    Parameters
    ----------
    rows : RowSpans
    words, word_ranks : uint64[w], int32[w]
        As in `asterism_graphkit.relabel.bitset.rank_words`.
    neighbor_indices : int32[e], out
    stop : int64[1]
        As in `keep_edges`.
    """
    table, partitions, starts, degrees = rows
    neighbors, m, pos = np.empty(BLOCK, np.int64), partitions.shape[0], np.int64(0)
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        _prefetch_row(table, partitions[ahead], starts[ahead], False)
        for begin in range(0, degrees[i], BLOCK):
            if is_set(stop):
                return
            size = min(degrees[i] - begin, BLOCK)
            _copy_neighbors(table, partitions[i], starts[i] + begin, size, neighbors)
            for e in range(size):
                node = np.uint64(neighbors[e])
                neighbor_indices[pos + e] = np.int32(bit_rank(node, words, word_ranks))
            pos += size


@kernel
def list_neighbors(rows: RowSpans, out: NDArray[np.int64], stop: NDArray[np.int64]) -> None:
    """Write the neighbor of each edge, int64[e]; ``stop`` as in `keep_edges`."""
    table, partitions, starts, degrees = rows
    pos = np.int64(0)
    for i in range(partitions.shape[0]):
        for begin in range(0, degrees[i], BLOCK):
            if is_set(stop):
                return
            size = min(degrees[i] - begin, BLOCK)
            _copy_neighbors(table, partitions[i], starts[i] + begin, size, out[pos:])
            pos += size


@kernel
def initial_levels(
    rows: RowSpans, fanout: np.int64, uniform: bool, levels: F64, stop: NDArray[np.int64]
) -> None:
    """Write the level of each node with edge weights as importances.

    Parameters
    ----------
    rows : RowSpans
    fanout, uniform
        As in `KeepParams`.
    levels : float64[m], out
    stop : int64[1]
        As in `keep_edges`.
    """
    table, partitions, starts, degrees = rows
    m = partitions.shape[0]
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        _prefetch_row(table, partitions[ahead], starts[ahead], not uniform)
        weights = view_at(
            table[partitions[i], WEIGHTS] + 4 * starts[i],
            _weighted_degree(table, partitions[i], degrees[i], uniform),
            _F32,
        )
        levels[i] = level_from_weights(weights, degrees[i], fanout, uniform, stop)
        if is_set(stop):
            return


@kernel
def update_levels(
    rows: RowSpans,
    fanout: np.int64,
    uniform: bool,
    steps: ImportanceState,
    stop: NDArray[np.int64],
) -> None:
    """Update ``steps.levels`` with the importances of a step.

    Parameters
    ----------
    rows : RowSpans
    fanout, uniform
        As in `KeepParams`.
    steps : ImportanceState
    stop : int64[1]
        As in `keep_edges`.
    """
    table, partitions, starts, degrees = rows
    offsets, neighbor_indices, importances, levels = steps
    max_degree = np.int64(degrees.max()) if partitions.shape[0] > 0 else np.int64(0)
    row_importances, squares, ratios = (
        np.empty(max_degree, np.float64),
        np.empty(max_degree, np.float64),
        np.empty(max_degree, np.float64),
    )
    for i in range(partitions.shape[0]):
        _gather_importances(
            importances, neighbor_indices[offsets[i] : offsets[i + 1]], row_importances, stop
        )
        weights = view_at(
            table[partitions[i], WEIGHTS] + 4 * starts[i],
            _weighted_degree(table, partitions[i], degrees[i], uniform),
            _F32,
        )
        levels[i] = solve_level(
            weights, row_importances[: degrees[i]], squares, ratios, fanout, levels[i], stop
        )
        if is_set(stop):
            return


@kernel
def update_importances(
    rows: RowSpans,
    uniform: bool,
    by_weight: bool,
    steps: ImportanceState,
    largest: F64,
    stop: NDArray[np.int64],
) -> None:
    """Raise the largest c_s of each neighbor to the values of the nodes that expand to it.

    Parameters
    ----------
    rows : RowSpans
    uniform : bool
        Whether every edge counts with weight 1.
    by_weight : bool
        Whether the importance of an edge was its weight; c_s is then multiplied by it.
    steps : ImportanceState
        Its importances are not read.
    largest : float64[n], inout
    stop : int64[1]
        As in `keep_edges`.
    """
    table, partitions, starts, degrees = rows
    offsets, neighbor_indices, levels = steps.offsets, steps.neighbor_indices, steps.levels
    m = partitions.shape[0]
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        _prefetch_row(table, partitions[ahead], starts[ahead], not uniform)
        begin, level = offsets[i], levels[i]
        weights = view_at(
            table[partitions[i], WEIGHTS] + 4 * starts[i],
            _weighted_degree(table, partitions[i], degrees[i], uniform),
            _F32,
        )
        if weights.shape[0] == 0:
            for e in range(degrees[i]):
                if e & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                    return
                neighbor_index = neighbor_indices[begin + e]
                largest[neighbor_index] = max(largest[neighbor_index], 1.0 / level)
            continue
        # Always written: a branch on the comparison would be mispredicted.
        for e in range(degrees[i]):
            if e & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                return
            neighbor_index, weight = neighbor_indices[begin + e], np.float64(weights[e])
            importance = (weight if by_weight else 1.0) / level if weight > 0.0 else 0.0
            largest[neighbor_index] = max(largest[neighbor_index], importance)
