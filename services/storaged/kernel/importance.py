"""LABOR's importance steps over edges where they lie: neighbors are numbered, and what each node asks of them is raised to the largest.

Rows are ascending by neighbor, so that what lies by id is met in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.bits import LOW, ONE, SHIFT, ones, rank_of
from graphkit.jit import kernel, view_at
from graphkit.labor import F64, level_of, solved
from storaged.kernel.labor import BLOCK, F32, ask_for, copy_near, gather, weighed
from storaged.kernel.table import WEIGHTS

_AHEAD = 4


@kernel
def highest(table: NDArray[np.int64], lines: NDArray[np.int64], starts: NDArray[np.int64], degrees: NDArray[np.int64]) -> int:
    """The highest neighbor of some nodes, -1 where they have none; arguments as of `storaged.kernel.labor.keep_expansion`."""
    found, last = np.int64(-1), np.empty(1, np.int64)
    for i in range(lines.shape[0]):
        if degrees[i] > 0:
            copy_near(table, lines[i], starts[i] + degrees[i] - 1, 1, last)
            found = max(found, last[0])
    return found  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def mark_near(
    table: NDArray[np.int64], lines: NDArray[np.int64], starts: NDArray[np.int64], degrees: NDArray[np.int64], words: NDArray[np.uint64]
) -> None:
    """Set the bits of the neighbors of some nodes."""
    near, m = np.empty(BLOCK, np.int64), lines.shape[0]
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        ask_for(table, lines[ahead], starts[ahead], False)
        for begin in range(0, degrees[i], BLOCK):
            size = min(degrees[i] - begin, BLOCK)
            copy_near(table, lines[i], starts[i] + begin, size, near)
            for e in range(size):
                node = np.uint64(near[e])
                words[node >> SHIFT] |= ONE << (node & LOW)


@kernel
def count_words(words: NDArray[np.uint64], firsts: NDArray[np.int32]) -> int:
    """How many bits are set before each word, and in all."""
    count = np.int64(0)
    for w in range(words.shape[0]):
        firsts[w] = count
        count += np.int64(ones(words[w]))
    return count  # type: ignore[return-value]


@kernel
def list_set(words: NDArray[np.uint64], out: NDArray[np.int64]) -> None:
    """The numbers whose bits are set, ascending."""
    count = np.int64(0)
    for w in range(words.shape[0]):
        word = words[w]
        while word != 0:
            low = word & (~word + ONE)
            out[count] = (w << np.int64(SHIFT)) + np.int64(ones(low - ONE))
            count += 1
            word ^= low


@kernel
def number_near(
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    words: NDArray[np.uint64],
    firsts: NDArray[np.int32],
    numbers: NDArray[np.int32],
) -> None:
    """The number of the neighbor that each edge leads to: how many set bits there are before its own."""
    near, m, at = np.empty(BLOCK, np.int64), lines.shape[0], np.int64(0)
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        ask_for(table, lines[ahead], starts[ahead], False)
        for begin in range(0, degrees[i], BLOCK):
            size = min(degrees[i] - begin, BLOCK)
            copy_near(table, lines[i], starts[i] + begin, size, near)
            for e in range(size):
                node = np.uint64(near[e])
                numbers[at + e] = np.int32(rank_of(node, words, firsts))
            at += size


@kernel
def list_near(
    table: NDArray[np.int64], lines: NDArray[np.int64], starts: NDArray[np.int64], degrees: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """The neighbor that each edge leads to."""
    at = np.int64(0)
    for i in range(lines.shape[0]):
        copy_near(table, lines[i], starts[i], degrees[i], out[at:])
        at += degrees[i]


@kernel
def first_levels(
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    fanout: np.int64,
    uniform: bool,
    levels: F64,
) -> None:
    """The level of each node where importances are the weights of edges."""
    m = lines.shape[0]
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        ask_for(table, lines[ahead], starts[ahead], not uniform)
        weights = view_at(table[lines[i], WEIGHTS] + 4 * starts[i], weighed(table, lines[i], degrees[i], uniform), F32)
        levels[i] = level_of(weights, degrees[i], fanout, uniform)


@kernel
def later_levels(
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    fanout: np.int64,
    uniform: bool,
    offsets: NDArray[np.int64],
    numbers: NDArray[np.int32],
    importances: F64,
    levels: F64,
) -> None:
    """The level of each node by the importances of a step, after those of before."""
    longest = np.int64(degrees.max()) if lines.shape[0] > 0 else np.int64(0)
    own, squares, ratios = np.empty(longest, np.float64), np.empty(longest, np.float64), np.empty(longest, np.float64)
    for i in range(lines.shape[0]):
        gather(importances, numbers[offsets[i] : offsets[i + 1]], own)
        weights = view_at(table[lines[i], WEIGHTS] + 4 * starts[i], weighed(table, lines[i], degrees[i], uniform), F32)
        levels[i] = solved(weights, own[: degrees[i]], squares, ratios, fanout, levels[i])


@kernel
def raise_near(
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    uniform: bool,
    offsets: NDArray[np.int64],
    numbers: NDArray[np.int32],
    levels: F64,
    by_weight: bool,
    largest: F64,
) -> None:
    """The largest c_s of the nodes that expand to each neighbor; times the edge's weight where that was its importance."""
    m = lines.shape[0]
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        ask_for(table, lines[ahead], starts[ahead], not uniform)
        begin, level = offsets[i], levels[i]
        weights = view_at(table[lines[i], WEIGHTS] + 4 * starts[i], weighed(table, lines[i], degrees[i], uniform), F32)
        if weights.shape[0] == 0:
            for e in range(degrees[i]):
                number = numbers[begin + e]
                largest[number] = max(largest[number], 1.0 / level)
            continue
        # Written whether it is larger or not: which is hard to foretell.
        for e in range(degrees[i]):
            number, weight = numbers[begin + e], np.float64(weights[e])
            asked = (weight if by_weight else 1.0) / level if weight > 0.0 else 0.0
            largest[number] = max(largest[number], asked)
