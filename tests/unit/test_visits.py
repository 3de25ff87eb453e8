"""Visits counted by comparing and by sorting, against what a loop over walks counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from graphkit.rng import TERMINATION, key_of, unit, word
from graphkit.visits import most_visited

SEED, FIRST, NODES = 5, 7, 40


def expected(termination: float, walks: int, ends: NDArray[np.int64], kinds: NDArray[np.int32], count: int) -> list[list[tuple[int, int, int]]]:
    """(id, type, visits) of the nodes of each start."""
    found = []
    for i in range(NODES):
        visits: Counter[tuple[int, int]] = Counter()
        for row in range(i * walks, (i + 1) * walks):
            for t in range(ends.shape[1]):
                ended = t > 0 and unit(np.uint64(word(np.uint64(key_of(SEED, TERMINATION, t)), np.uint64(FIRST + row)))) < termination
                if ends[row, t] < 0 or ended:
                    break
                visits[int(ends[row, t]), int(kinds[row, t])] += 1
        ranked = sorted(visits, key=lambda node: (-visits[node], node))[:count]
        found.append([(*node, visits[node]) for node in ranked] + [(-1, -1, 0)] * (count - len(ranked)))
    return found


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize(("walks", "span"), [(1, 3), (16, 9), (32, 6), (33, 6), (32, 1 << 62), (90, 30)])
def test_visits_are_those_of_a_loop_however_many_there_are(walks: int, span: int, typed: bool) -> None:
    generator = np.random.default_rng([walks, typed])
    ends = generator.integers(0, span, (NODES * walks, 2))
    ends[generator.random(len(ends)) < 0.05] = -1
    ends[generator.random(len(ends)) < 0.05, 1] = -1
    kinds = generator.integers(0, 3 if typed else 1, ends.shape).astype(np.int32)
    for count in (0, 1, 4, 2 * walks + 1):
        ids, types, visits = most_visited(SEED, 0.4, FIRST, walks, ends, kinds if typed else None, count)
        assert (types is not None) == typed
        kind = np.where(ids >= 0, 0, -1) if types is None else types
        told = [list(zip(*rows, strict=True)) for rows in zip(ids.tolist(), kind.tolist(), visits.tolist(), strict=True)]
        assert told == expected(0.4, walks, ends, kinds, count)
