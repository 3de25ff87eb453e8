"""Biased steps: whether a draw counts, by a toss, and where that does not say by an edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, f32_at, f64_at, i64_at, inlined, prefetch_at
from storaged.kernel.lanes import (
    ASKED,
    BEFORE,
    BEFORE_KIND,
    BEFORE_PART,
    BEFORE_ROW,
    EDGE,
    END,
    FAR,
    FATE,
    FOUND,
    HALVES,
    HANGING,
    KIND,
    LAST_TURN,
    LOW,
    NEAR,
    NEIGHBORS,
    PART,
    REFUSED,
    RETURNED,
    ROW,
    SIZE,
    SLOT,
    TAKEN,
    TOSS,
    TURN,
    Way,
)
from storaged.kernel.sieve import SHARES, hash_of, may_be_joined, place_of
from storaged.kernel.table import INDPTR, NBR, SUMS, WEIGHTS


@inlined
def weight_of(table: NDArray[np.int64], line: Whole, row: np.int64, uniform: bool) -> float:
    """What an edge type weighs at a row."""
    if not uniform and table[line, SUMS] != 0:
        return f64_at(np.uint64(table[line, SUMS]), row)  # type: ignore[no-any-return]
    indptr = np.uint64(table[line, INDPTR])
    return np.float64(i64_at(indptr, row + 1) - i64_at(indptr, row))


@inlined
def share_back(lanes: NDArray[np.int64], lane: Whole, table: NDArray[np.int64], ends: NDArray[np.int64], steps: NDArray[np.int64], way: Way) -> float:
    """How much of what a walk may follow leads back to the node before, at most. Whoever asks, for any node before it is the same."""
    turn, part, row = lanes[lane, TURN], lanes[lane, PART], lanes[lane, ROW]
    if steps.shape[1] == 1:
        return np.float64(f32_at(np.uint64(table[steps[turn, 0] * way.parts + part, SHARES]), row))
    whole, most = 0.0, 0.0
    for t in range(steps.shape[1]):
        edge = steps[turn, t]
        if edge >= 0 and ends[NEAR, edge] == lanes[lane, KIND]:
            line = edge * way.parts + part
            heavy = weight_of(table, line, row, way.uniform)
            whole += heavy
            most += heavy * np.float64(f32_at(np.uint64(table[line, SHARES]), row))
    return most / whole if whole > 0.0 else 0.0


@inlined
def go_back(
    lanes: NDArray[np.int64],
    lane: Whole,
    share: float,
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    steps: NDArray[np.int64],
    way: Way,
) -> None:
    """Let a share of what a walk may follow, below `share_back`, lead along that edge back which it falls on; it counts where there is one."""
    turn, part, row, kind = lanes[lane, TURN], lanes[lane, PART], lanes[lane, ROW], lanes[lane, BEFORE_KIND]
    node, whole = lanes[lane, BEFORE], 0.0
    for t in range(steps.shape[1]):
        edge = steps[turn, t]
        if edge >= 0 and ends[NEAR, edge] == lanes[lane, KIND]:
            whole += weight_of(table, edge * way.parts + part, row, way.uniform)
    lanes[lane, FATE], left = REFUSED, share * whole
    for t in range(steps.shape[1]):
        edge = steps[turn, t]
        if edge < 0 or ends[NEAR, edge] != lanes[lane, KIND] or (kind >= 0 and ends[FAR, edge] != kind):
            continue
        line = edge * way.parts + part
        if not may_be_joined(hash_of(row, node), table, line):
            continue
        indptr, nbr = np.uint64(table[line, INDPTR]), np.uint64(table[line, NBR])
        slot, end = i64_at(indptr, row), i64_at(indptr, row + 1)
        size = end - slot
        while size > 0:
            half = size >> 1
            if i64_at(nbr, slot + half) < node:
                slot += half + 1
                size -= half + 1
            else:
                size = half
        while slot < end and i64_at(nbr, slot) == node:
            left -= 1.0 if way.uniform or table[line, WEIGHTS] == 0 else np.float64(f32_at(np.uint64(table[line, WEIGHTS]), slot))
            if left < 0.0:
                lanes[lane, FATE], lanes[lane, EDGE], lanes[lane, SLOT] = RETURNED, edge, slot
                return
            slot += 1


@inlined
def fate_of(lanes: NDArray[np.int64], lane: Whole, ends: NDArray[np.int64], way: Way) -> Whole:
    """What becomes of a walk's draw, where it came from somewhere."""
    toss = lanes[lane, TOSS] * HALVES
    kind = lanes[lane, BEFORE_KIND]  # -1 where it lives elsewhere and ids are global: then the id is enough
    if lanes[lane, FOUND] == lanes[lane, BEFORE] and (kind < 0 or ends[FAR, lanes[lane, EDGE]] == kind):
        return TAKEN if toss < way.back else REFUSED
    if toss < way.sure:
        return TAKEN
    return ASKED if lanes[lane, BEFORE_PART] >= 0 else HANGING


@inlined
def ask(
    lanes: NDArray[np.int64],
    asked: Whole,
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    steps: NDArray[np.int64],
    way: Way,
    asking: NDArray[np.int64],
) -> None:
    """Say of steps that hang on an edge which is here whether they count; sieves are asked, and rows searched, side by side."""
    for i in range(asked):
        lanes[asking[i], FATE] = REFUSED if way.counts_joined else TAKEN  # unless the two are joined
    for t in range(steps.shape[1]):
        searched = 0
        for i in range(asked):
            lane = asking[i]
            edge, row, kind = steps[lanes[lane, LAST_TURN], t], lanes[lane, BEFORE_ROW], lanes[lane, BEFORE_KIND]
            lanes[lane, NEIGHBORS] = -1
            if edge < 0 or row < 0 or ends[NEAR, edge] != kind or ends[FAR, edge] != ends[FAR, lanes[lane, EDGE]]:
                continue
            line = edge * way.parts + lanes[lane, BEFORE_PART]
            pair = hash_of(row, lanes[lane, FOUND])
            lanes[lane, NEIGHBORS], lanes[lane, LOW] = line, np.int64(pair)
            prefetch_at(place_of(pair, table, line))
        for i in range(asked):
            lane = asking[i]
            line, pair, row = lanes[lane, NEIGHBORS], np.uint64(lanes[lane, LOW]), lanes[lane, BEFORE_ROW]
            lanes[lane, SIZE], lanes[lane, LOW] = 0, -1
            if line < 0 or not may_be_joined(pair, table, line):
                continue
            low, end = i64_at(np.uint64(table[line, INDPTR]), row), i64_at(np.uint64(table[line, INDPTR]), row + 1)
            lanes[lane, LOW], lanes[lane, END], lanes[lane, SIZE], lanes[lane, NEIGHBORS] = low, end, end - low, table[line, NBR]
            searched += end > low
        while searched > 0:
            searched = 0
            for i in range(asked):
                lane = asking[i]
                size, low, nbr = lanes[lane, SIZE], lanes[lane, LOW], np.uint64(lanes[lane, NEIGHBORS])
                if size > 0:
                    half = size >> 1
                    # All ones where the wanted one is behind: as unpredictable as a coin.
                    behind = -np.int64(i64_at(nbr, low + half) < lanes[lane, FOUND])
                    low += (half + 1) & behind
                    size = half + ((size - half - 1 - half) & behind)
                    lanes[lane, SIZE], lanes[lane, LOW] = size, low
                    if size > 0:
                        prefetch_at(nbr + np.uint64(8 * (low + (size >> 1))))
                        searched += 1
        for i in range(asked):
            lane = asking[i]
            low = lanes[lane, LOW]
            if low >= 0 and low < lanes[lane, END] and i64_at(np.uint64(lanes[lane, NEIGHBORS]), low) == lanes[lane, FOUND]:
                lanes[lane, FATE] = TAKEN if way.counts_joined else REFUSED
