"""Tests of visit counts by comparison and by sorting, against a loop over walks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit import reference

from asterism_graphkit.operators.visit_counts import most_visited
from asterism_graphkit.random.rng import TERMINATION

SEED, FIRST, NODES = 5, 7, 40
STARTS = np.arange(NODES) % 7


def visits_by_loop(
    termination: float,
    walks: int,
    end_nodes: NDArray[np.int64],
    end_types: NDArray[np.int32],
    count: int,
) -> list[list[tuple[int, int, int]]]:
    """Return (id, type, visits) of the nodes of each start."""
    result = []
    for i in range(NODES):
        visits: Counter[tuple[int, int]] = Counter()
        for row in range(i * walks, (i + 1) * walks):
            for t in range(end_nodes.shape[1]):
                key = reference.derive_mixed(
                    reference.key_of(SEED, TERMINATION, t),
                    reference.node_tag(FIRST + row, int(STARTS[i]), 0),
                )
                ended = t > 0 and reference.unit_float(reference.word(key, 0)) < termination
                if end_nodes[row, t] < 0 or ended:
                    break
                visits[int(end_nodes[row, t]), int(end_types[row, t])] += 1
        ranked = sorted(visits, key=lambda node: (-visits[node], node))[:count]
        result.append(
            [(*node, visits[node]) for node in ranked] + [(-1, -1, 0)] * (count - len(ranked))
        )
    return result


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize(
    ("walks", "span"), [(1, 3), (16, 9), (32, 6), (33, 6), (32, 1 << 62), (90, 30)]
)
def test_visits_match_a_loop_for_any_count(walks: int, span: int, typed: bool) -> None:
    generator = np.random.default_rng([walks, typed])
    end_nodes = generator.integers(0, span, (NODES * walks, 2))
    end_nodes[generator.random(len(end_nodes)) < 0.05] = -1
    end_nodes[generator.random(len(end_nodes)) < 0.05, 1] = -1
    end_types = generator.integers(0, 3 if typed else 1, end_nodes.shape).astype(np.int32)
    for count in (0, 1, 4, 2 * walks + 1):
        ids, types, visits = most_visited(
            SEED, 0.4, FIRST, walks, STARTS, end_nodes, end_types if typed else None, count
        )
        assert (types is not None) == typed
        visit_types = np.where(ids >= 0, 0, -1) if types is None else types
        counted = [
            list(zip(*rows, strict=True))
            for rows in zip(ids.tolist(), visit_types.tolist(), visits.tolist(), strict=True)
        ]
        assert counted == visits_by_loop(0.4, walks, end_nodes, end_types, count)
