"""LABOR at the nodes of any of a host's parts: edges are looked at where they lie, and only those that are kept are given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, i64_at, inlined, kernel, prefetch_at, u32_at, u64_at, view_at
from graphkit.labor import F64, level_of, solved
from graphkit.rng import most_within, unit, word
from storaged.kernel.table import EID, NARROW, NBR, PAIRS, WEIGHTS, both_of

ROW, TOTAL = range(2)
"""Of the state of `keep_expansion`: the node that comes next, and how many edges were kept before it."""
BLOCK = 4096
"""Edges that are looked at before room is looked for again."""
_AHEAD = 4
_AT_ONCE = 8
"""Marks in a word."""
_NEARLY = 1.0 + 1e-12
"""More than what rounding makes of the two sides of an inequality."""
_S12 = np.uint64(12)
F32 = np.zeros(0, np.float32)
_I64, _U32 = np.zeros(0, np.int64), np.zeros(0, np.uint32)


@inlined
def ask_for(table: NDArray[np.int64], line: Whole, start: Whole, weighted: bool) -> None:
    """Ask for the first edges of a row."""
    narrow = table[line, NARROW]
    prefetch_at(np.uint64(narrow + 4 * start) if narrow != 0 else np.uint64(table[line, NBR] + 8 * start))
    if weighted and table[line, WEIGHTS] != 0:
        prefetch_at(np.uint64(table[line, WEIGHTS] + 4 * start))


@inlined
def weighed(table: NDArray[np.int64], line: Whole, degree: Whole, uniform: bool) -> np.int64:
    """How many of a row's edges have weights: none where every edge counts alike."""
    return np.int64(0) if uniform or table[line, WEIGHTS] == 0 else np.int64(degree)


@inlined
def copy_near(table: NDArray[np.int64], line: Whole, start: Whole, size: Whole, out: NDArray[np.int64]) -> None:
    """The neighbors that so many edges from a slot on lead to."""
    if table[line, NARROW] != 0:
        narrow = view_at(table[line, NARROW] + 4 * start, size, _U32)
        for e in range(size):
            out[e] = np.int64(narrow[e])
        return
    wide = view_at(table[line, NBR] + 8 * start, size, _I64)
    for e in range(size):
        out[e] = wide[e]


@inlined
def _mark_alike(key: np.uint64, probability: float, near: NDArray[np.int64], size: Whole, marks: NDArray[np.uint8]) -> None:
    """Mark the edges that their neighbors' variates keep, all with one probability: a loop by itself runs over several at once."""
    most = most_within(probability)
    for e in range(size):
        marks[e] = np.uint8(np.int64(word(key, np.uint64(near[e])) >> _S12) <= most)


@inlined
def _mark(key: np.uint64, level: float, near: NDArray[np.int64], importances: NDArray[Any], size: Whole, marks: NDArray[np.uint8]) -> None:
    """The same by importances, and some edges more: most are far from being kept, which is seen without a division."""
    for e in range(size):
        marks[e] = np.uint8(unit(word(key, np.uint64(near[e]))) * level <= np.float64(importances[e]) * _NEARLY)


@inlined
def _marked(marks: NDArray[np.uint8], words: NDArray[np.uint64], size: Whole, first: Whole, at: Whole, kept: NDArray[np.int64]) -> Whole:
    """Put the marked edges, numbered from ``first`` on, from ``at`` on; gives where they end. ``words`` are the marks, many at once."""
    count = at
    for w in range((size + _AT_ONCE - 1) // _AT_ONCE):
        if words[w] == 0:
            continue
        for e in range(_AT_ONCE * w, min(_AT_ONCE * w + _AT_ONCE, size)):
            kept[count] = first + e
            count += np.int64(marks[e])
    return count


@inlined
def _certainly(
    key: np.uint64,
    level: float,
    near: NDArray[np.int64],
    weights: NDArray[np.float32],
    importances: NDArray[Any],
    first: Whole,
    begin: Whole,
    end: Whole,
    kept: NDArray[np.int64],
) -> Whole:
    """Of what was put at begin .. end - 1, leave what is kept indeed; gives where that ends."""
    count = begin
    for i in range(begin, end):
        e = kept[i]
        kept[count] = e
        within = unit(word(key, np.uint64(near[e - first]))) <= np.float64(importances[e]) / level
        count += np.int64(within and (weights.shape[0] == 0 or weights[e] > 0.0))
    return count


@inlined
def _all(weights: NDArray[np.float32], begin: Whole, end: Whole, at: Whole, kept: NDArray[np.int64]) -> Whole:
    """Put all edges of positive weight, likewise."""
    count = at
    for e in range(begin, end):
        kept[count] = e
        count += np.int64(weights.shape[0] == 0 or weights[e] > 0.0)
    return count


@inlined
def _inverse(weights: NDArray[np.float32], e: Whole, importance: float, level: float) -> float:
    """An edge's weight over its probability."""
    weight = np.float64(weights[e]) if weights.shape[0] > 0 else 1.0
    return weight / (1.0 if importance >= level else importance / level)


@inlined
def _weigh(weights: NDArray[np.float32], importances: NDArray[Any], level: float, kept: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    """What the kept edges of a node count in a mean: their sum is how many they are. Without importances all are 1."""
    total, count, alike = 0.0, np.float64(kept.shape[0]), importances.shape[0] == 0
    for i in range(kept.shape[0]):
        total += _inverse(weights, kept[i], 1.0 if alike else np.float64(importances[kept[i]]), level)
    for i in range(kept.shape[0]):
        out[i] = np.float32(_inverse(weights, kept[i], 1.0 if alike else np.float64(importances[kept[i]]), level) * (count / total))


@inlined
def _tell(table: NDArray[np.int64], line: Whole, start: Whole, kept: NDArray[np.int64], eids: NDArray[np.int64]) -> None:
    """The ids of a node's kept edges, where they are asked for, and, in their places, the neighbors that these lead to."""
    pairs, narrow = np.uint64(table[line, PAIRS]), np.uint64(table[line, NARROW])
    if pairs != 0 and eids.shape[0] > 0:
        for i in range(kept.shape[0]):
            eids[i], kept[i] = both_of(u64_at(pairs, start + kept[i]))
        return
    for i in range(eids.shape[0]):
        eids[i] = i64_at(np.uint64(table[line, EID]), start + kept[i])
    for i in range(kept.shape[0]):
        slot = start + kept[i]
        kept[i] = np.int64(u32_at(narrow, slot)) if narrow != 0 else i64_at(np.uint64(table[line, NBR]), slot)


@inlined
def _row(
    key: np.uint64,
    table: NDArray[np.int64],
    line: Whole,
    start: Whole,
    degree: Whole,
    every: bool,
    level: float,
    weights: NDArray[np.float32],
    importances: NDArray[Any],
    near: NDArray[np.int64],
    marks: NDArray[np.uint8],
    words: NDArray[np.uint64],
    first: Whole,
    out: NDArray[np.int64],
) -> Whole:
    """Put a node's edges that are kept, as places in its row, from ``first`` on; gives where they end, -1 where there is too little room."""
    at = first
    for begin in range(0, degree, BLOCK):
        end = min(begin + BLOCK, degree)
        size = end - begin
        if out.shape[0] - at < size:
            return np.int64(-1)
        if every:
            at = _all(weights, begin, end, at, out)
            continue
        copy_near(table, line, start + begin, size, near)
        if importances.shape[0] == 0:
            _mark_alike(key, 1.0 / level, near, size, marks)
            at = _marked(marks, words, size, begin, at, out)
            continue
        _mark(key, level, near, importances[begin:end], size, marks)
        put = _marked(marks, words, size, begin, at, out)
        at = _certainly(key, level, near, weights, importances, begin, at, put, out)
    return at


@kernel
def keep_expansion(
    key: np.uint64,
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    fanout: np.int64,
    uniform: bool,
    most: np.int64,
    offsets: NDArray[np.int64],
    numbers: NDArray[np.int32],
    importances: F64,
    levels: F64,
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> None:
    """Keep edges of one node after another's, until all are done, enough were looked at, or there is no room.

    Parameters
    ----------
    key : uint64
        The variate of node t is word t of it.
    table : int64[parts, COLUMNS]
    lines, starts, degrees : int64[m]
        From `storaged.kernel.table.find_rows`.
    fanout : int64
        Of each node, in expectation; -1: all of positive weight.
    uniform : bool
        Whether every edge counts alike.
    most : int64
        Edges to look at, up to the end of a node's.
    offsets, numbers, importances, levels : int64[m + 1], int32[edges], float64[n], float64[m]; or all empty
        Where a node's edges are among all of them, the numbers of the neighbors that these lead to, what importance steps made of
        them by number, and the levels of before; empty: weights are importances.
    state : int64[2], inout
        Where to go on, and where that ended.
    sizes : int32[m], out
    out, eids, weights : int64[k], int64[k] or [0], float32[k] or [0], out
        Neighbor ids, edge ids and weights of means; k is BLOCK more than there is certain to be room for.
    """
    m, want_eids, want_weights, stepped = lines.shape[0], eids.shape[0] > 0, weights.shape[0] > 0, offsets.shape[0] > 0
    seen, near, marks = np.int64(0), np.empty(BLOCK, np.int64), np.zeros(BLOCK, np.uint8)
    longest = np.int64(degrees.max()) if stepped and m > 0 else np.int64(0)
    own, squares, ratios = np.empty(longest, np.float64), np.empty(longest, np.float64), np.empty(longest, np.float64)
    words = marks.view(np.uint64)
    for i in range(state[ROW], m):
        if seen >= most:
            return
        ahead = min(i + _AHEAD, m - 1)
        ask_for(table, lines[ahead], starts[ahead], not uniform)
        line, start, degree, first = lines[i], starts[i], degrees[i], state[TOTAL]
        heavy = view_at(table[line, WEIGHTS] + 4 * start, weighed(table, line, degree, uniform), F32)
        every = bool(fanout < 0 or degree <= fanout)
        if stepped:
            gather(importances, numbers[offsets[i] : offsets[i + 1]], own)
            mine = own[:degree]
            level = solved(heavy, mine, squares, ratios, fanout, levels[i])
            at = _row(key, table, line, start, degree, every, level, heavy, mine, near, marks, words, first, out)
        else:
            level = level_of(heavy, degree, fanout, uniform)
            at = _row(key, table, line, start, degree, every, level, heavy, heavy, near, marks, words, first, out)
        if at < 0:
            return
        if want_weights:
            if stepped:
                _weigh(heavy, own[:degree], level, out[first:at], weights[first:at])
            else:
                _weigh(heavy, heavy, level, out[first:at], weights[first:at])
        _tell(table, line, start, out[first:at], eids[first:at] if want_eids else eids)
        sizes[i] = np.int32(at - first)
        state[ROW], state[TOTAL] = i + 1, at
        seen += degree + 1


@inlined
def gather(importances: F64, numbers: NDArray[np.int32], own: F64) -> None:
    """The importances of a row's neighbors: read once, from all over the place, for all that is done with them."""
    for e in range(numbers.shape[0]):
        own[e] = importances[numbers[e]]
