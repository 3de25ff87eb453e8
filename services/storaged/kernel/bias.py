"""Biased steps: whether a draw counts, by a toss, and where that does not say by an edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, i64_at, inlined, prefetch_at
from graphkit.rng import mix64, unit, word
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
    HANGING,
    LAST_TURN,
    LOW,
    NEAR,
    NEIGHBORS,
    REFUSED,
    RETURN_KEY,
    SIZE,
    STEP,
    TAG,
    TAKEN,
    Way,
)
from storaged.kernel.table import INDPTR, NBR


@inlined
def fate_of(lanes: NDArray[np.int64], lane: Whole, ends: NDArray[np.int64], keys: NDArray[np.uint64], way: Way) -> Whole:
    """What becomes of a walk's draw, where it came from somewhere."""
    coin = unit(word(mix64(keys[RETURN_KEY, lanes[lane, STEP]] + np.uint64(lanes[lane, TAG])), np.uint64(0)))
    kind = lanes[lane, BEFORE_KIND]  # -1 where it lives elsewhere and ids are global: then the id is enough
    if lanes[lane, FOUND] == lanes[lane, BEFORE] and (kind < 0 or ends[FAR, lanes[lane, EDGE]] == kind):
        return TAKEN if coin * way.most < way.back else REFUSED
    if coin < way.sure:
        return TAKEN
    if coin >= way.hopeless:
        return REFUSED
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
    """Say of steps that hang on an edge which is here whether they count; searches go on side by side."""
    for i in range(asked):
        lanes[asking[i], FATE] = REFUSED if way.counts_joined else TAKEN  # unless the two are joined
    for t in range(steps.shape[1]):
        searched = 0
        for i in range(asked):
            lane = asking[i]
            edge, row, kind = steps[lanes[lane, LAST_TURN], t], lanes[lane, BEFORE_ROW], lanes[lane, BEFORE_KIND]
            lanes[lane, SIZE], lanes[lane, LOW] = 0, -1
            if edge < 0 or row < 0 or ends[NEAR, edge] != kind or ends[FAR, edge] != ends[FAR, lanes[lane, EDGE]]:
                continue
            line = edge * way.parts + lanes[lane, BEFORE_PART]
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
