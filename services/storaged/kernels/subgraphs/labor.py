"""LABOR at the nodes of any of a host's parts: edges are looked at where they lie, and only those
that are kept are given.
"""

from __future__ import annotations

from typing import Any

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
    view_at,
)
from asterism_graphkit.operators.labor import F64, level_from_weights, solve_level
from asterism_graphkit.random.rng import unit_float, unit_threshold, word
from storaged.kernels.adjacency import EID, NARROW, NBR, PAIRS, WEIGHTS, unpack_pair

ROW, TOTAL = range(2)
"""Of the state of `keep_edges`: the node that comes next, and how many edges were kept before
it.
"""
BLOCK = 4096
"""Edges that are looked at before room is looked for again."""
_AHEAD = 4
_FLAGS_PER_WORD = 8
"""Marks in a word."""
_ROUNDING_MARGIN = 1.0 + 1e-12
"""More than what rounding makes of the two sides of an inequality."""
_S12 = np.uint64(12)
EMPTY_F32 = np.zeros(0, np.float32)
_I64, _U32 = np.zeros(0, np.int64), np.zeros(0, np.uint32)


@inlined
def prefetch_row(table: NDArray[np.int64], part: IntLike, start: IntLike, weighted: bool) -> None:
    """Ask for the first edges of a row."""
    narrow = table[part, NARROW]
    prefetch_at(
        np.uint64(narrow + 4 * start) if narrow != 0 else np.uint64(table[part, NBR] + 8 * start)
    )
    if weighted and table[part, WEIGHTS] != 0:
        prefetch_at(np.uint64(table[part, WEIGHTS] + 4 * start))


@inlined
def weighted_degree(
    table: NDArray[np.int64], part: IntLike, degree: IntLike, uniform: bool
) -> np.int64:
    """How many of a row's edges have weights: none where every edge counts alike."""
    return np.int64(0) if uniform or table[part, WEIGHTS] == 0 else np.int64(degree)


@inlined
def copy_neighbors(
    table: NDArray[np.int64], part: IntLike, start: IntLike, size: IntLike, out: NDArray[np.int64]
) -> None:
    """The neighbors that so many edges from a slot on lead to."""
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
    """Mark the edges that their neighbors' variates keep, all with one probability: a loop by
    itself runs over several at once.
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
    """The same by importances, and some edges more: most are far from being kept, which is seen
    without a division.
    """
    for e in range(size):
        flags[e] = np.uint8(
            unit_float(word(key, np.uint64(neighbors[e]))) * level
            <= np.float64(importances[e]) * _ROUNDING_MARGIN
        )


@inlined
def _list_flagged(
    flags: NDArray[np.uint8],
    flag_words: NDArray[np.uint64],
    size: IntLike,
    first: IntLike,
    out_pos: IntLike,
    edges: NDArray[np.int64],
) -> IntLike:
    """Put the marked edges, numbered from ``first`` on, from ``out_pos`` on; gives where they end.
    ``flag_words`` are the marks, many at once.
    """
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
    """Of what was put at begin .. end - 1, leave what is kept indeed; gives where that ends."""
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
    """Put all edges of positive weight, likewise."""
    count = out_pos
    for e in range(begin, end):
        edges[count] = e
        count += np.int64(weights.shape[0] == 0 or weights[e] > 0.0)
    return count


@inlined
def _inverse(weights: NDArray[np.float32], e: IntLike, importance: float, level: float) -> float:
    """An edge's weight over its probability."""
    weight = np.float64(weights[e]) if weights.shape[0] > 0 else 1.0
    return weight / (1.0 if importance >= level else importance / level)


@inlined
def _weigh(
    weights: NDArray[np.float32],
    importances: NDArray[Any],
    level: float,
    edges: NDArray[np.int64],
    out: NDArray[np.float32],
) -> None:
    """What the kept edges of a node count in a mean: their sum is how many they are. Without
    importances all are 1.
    """
    total, count, no_importances = 0.0, np.float64(edges.shape[0]), importances.shape[0] == 0
    for i in range(edges.shape[0]):
        total += _inverse(
            weights, edges[i], 1.0 if no_importances else np.float64(importances[edges[i]]), level
        )
    for i in range(edges.shape[0]):
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
) -> None:
    """The ids of a node's kept edges, where they are asked for, and, in their places, the neighbors
    that these lead to.
    """
    pairs, narrow = np.uint64(table[part, PAIRS]), np.uint64(table[part, NARROW])
    if pairs != 0 and eids.shape[0] > 0:
        for i in range(edges.shape[0]):
            eids[i], edges[i] = unpack_pair(u64_at(pairs, start + edges[i]))
        return
    for i in range(eids.shape[0]):
        eids[i] = i64_at(np.uint64(table[part, EID]), start + edges[i])
    for i in range(edges.shape[0]):
        slot = start + edges[i]
        edges[i] = (
            np.int64(u32_at(narrow, slot))
            if narrow != 0
            else i64_at(np.uint64(table[part, NBR]), slot)
        )


@inlined
def _keep_row(
    key: np.uint64,
    table: NDArray[np.int64],
    part: IntLike,
    start: IntLike,
    degree: IntLike,
    keep_all: bool,
    level: float,
    weights: NDArray[np.float32],
    importances: NDArray[Any],
    neighbors: NDArray[np.int64],
    flags: NDArray[np.uint8],
    flag_words: NDArray[np.uint64],
    first: IntLike,
    out: NDArray[np.int64],
) -> IntLike:
    """Put a node's edges that are kept, as places in its row, from ``first`` on; gives where they
    end, -1 where there is too little room.
    """
    out_pos = first
    for begin in range(0, degree, BLOCK):
        end = min(begin + BLOCK, degree)
        size = end - begin
        if out.shape[0] - out_pos < size:
            return np.int64(-1)
        if keep_all:
            out_pos = _keep_all(weights, begin, end, out_pos, out)
            continue
        copy_neighbors(table, part, start + begin, size, neighbors)
        if importances.shape[0] == 0:
            _flag_equal(key, 1.0 / level, neighbors, size, flags)
            out_pos = _list_flagged(flags, flag_words, size, begin, out_pos, out)
            continue
        _flag_candidates(key, level, neighbors, importances[begin:end], size, flags)
        candidates_end = _list_flagged(flags, flag_words, size, begin, out_pos, out)
        out_pos = _confirm(
            key, level, neighbors, weights, importances, begin, out_pos, candidates_end, out
        )
    return out_pos


@kernel
def keep_edges(
    key: np.uint64,
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    fanout: np.int64,
    uniform: bool,
    max_edges: np.int64,
    offsets: NDArray[np.int64],
    neighbor_indices: NDArray[np.int32],
    importances: F64,
    levels: F64,
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> None:
    """Keep edges of one node after another's, until all are done, enough were looked at, or there
    is no room.

    Parameters
    ----------
    key : uint64
        The variate of node t is word t of it.
    table : int64[parts, COLUMNS]
    partitions, starts, degrees : int64[m]
        From `storaged.kernels.adjacency.find_rows`.
    fanout : int64
        Of each node, in expectation; -1: all of positive weight.
    uniform : bool
        Whether every edge counts alike.
    max_edges : int64
        Edges to look at, up to the end of a node's.
    offsets, neighbor_indices, importances, levels : int64[m + 1], int32[edges], float64[n],
    float64[m]; or all empty
        Where a node's edges are among all of them, the numbers of the neighbors that these lead to,
        what importance steps made of them by number, and the levels of before; empty: weights are
        importances.
    state : int64[2], inout
        Where to go on, and where that ended.
    sizes : int32[m], out
    out, eids, weights : int64[k], int64[k] or [0], float32[k] or [0], out
        Neighbor ids, edge ids and weights of means; k is BLOCK more than there is certain to be
        room for.
    """
    m, want_eids, want_weights, has_importances = (
        partitions.shape[0],
        eids.shape[0] > 0,
        weights.shape[0] > 0,
        offsets.shape[0] > 0,
    )
    num_scanned, neighbors, flags = (
        np.int64(0),
        np.empty(BLOCK, np.int64),
        np.zeros(BLOCK, np.uint8),
    )
    max_degree = np.int64(degrees.max()) if has_importances and m > 0 else np.int64(0)
    importance_buffer, squares, ratios = (
        np.empty(max_degree, np.float64),
        np.empty(max_degree, np.float64),
        np.empty(max_degree, np.float64),
    )
    flag_words = flags.view(np.uint64)
    for i in range(state[ROW], m):
        if num_scanned >= max_edges:
            return
        ahead = min(i + _AHEAD, m - 1)
        prefetch_row(table, partitions[ahead], starts[ahead], not uniform)
        part, start, degree, first = partitions[i], starts[i], degrees[i], state[TOTAL]
        row_weights = view_at(
            table[part, WEIGHTS] + 4 * start,
            weighted_degree(table, part, degree, uniform),
            EMPTY_F32,
        )
        keep_all = bool(fanout < 0 or degree <= fanout)
        if has_importances:
            gather_importances(
                importances, neighbor_indices[offsets[i] : offsets[i + 1]], importance_buffer
            )
            row_importances = importance_buffer[:degree]
            level = solve_level(row_weights, row_importances, squares, ratios, fanout, levels[i])
            end = _keep_row(
                key,
                table,
                part,
                start,
                degree,
                keep_all,
                level,
                row_weights,
                row_importances,
                neighbors,
                flags,
                flag_words,
                first,
                out,
            )
        else:
            level = level_from_weights(row_weights, degree, fanout, uniform)
            end = _keep_row(
                key,
                table,
                part,
                start,
                degree,
                keep_all,
                level,
                row_weights,
                row_weights,
                neighbors,
                flags,
                flag_words,
                first,
                out,
            )
        if end < 0:
            return
        if want_weights:
            if has_importances:
                _weigh(
                    row_weights,
                    importance_buffer[:degree],
                    level,
                    out[first:end],
                    weights[first:end],
                )
            else:
                _weigh(row_weights, row_weights, level, out[first:end], weights[first:end])
        _write_edges(table, part, start, out[first:end], eids[first:end] if want_eids else eids)
        sizes[i] = np.int32(end - first)
        state[ROW], state[TOTAL] = i + 1, end
        num_scanned += degree + 1


@inlined
def gather_importances(
    importances: F64, neighbor_indices: NDArray[np.int32], row_importances: F64
) -> None:
    """The importances of a row's neighbors: read once, from all over the place, for all that is
    done with them.
    """
    for e in range(neighbor_indices.shape[0]):
        row_importances[e] = importances[neighbor_indices[e]]
