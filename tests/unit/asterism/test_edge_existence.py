"""Tests of the filters that find edges by their ids."""

from __future__ import annotations

import numpy as np
import pytest

from asterism.calls.edge_existence import _filters

LARGEST = (1 << 63) - 1


@pytest.mark.parametrize(
    "ids",
    [
        [0],
        [LARGEST],
        [0, LARGEST],
        range(5000),
        range(LARGEST - 5000, LARGEST + 1),
        [*range(900), *range(1 << 30, (1 << 30) + 900), LARGEST - 1, LARGEST],
    ],
    ids=["first", "last", "both", "range", "last range", "several"],
)
def test_filters_match_all_ids_up_to_the_largest(ids: list[int]) -> None:
    wanted = np.array(ids, np.int64)
    matched = np.zeros(len(wanted), np.int64)
    for where in _filters(wanted):
        if where.startswith("id in ("):
            listed = [int(text) for text in where[7:-1].split(", ")]
            matched += np.isin(wanted, np.array(listed, np.int64))
        else:
            low, high = map(int, where.removeprefix("id between ").split(" and "))
            matched += (wanted >= low) & (wanted <= high)
    assert matched.tolist() == [1] * len(wanted)
