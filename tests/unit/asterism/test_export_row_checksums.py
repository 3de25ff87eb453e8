"""Tests of checksums of rows: what changes them, and that the order does not."""

from __future__ import annotations

import numpy as np
import pytest

from asterism.export.row_checksums import Checksums, ids_sum, rows_sum

IDS = np.array([3, 8, 1 << 40])
SRC, DST = np.array([0, 5, 5]), np.array([7, 7, 2])
ORDER = np.array([2, 0, 1])


def test_a_sum_depends_on_ids_and_both_ends_not_on_order() -> None:
    sums = {
        ids_sum(IDS),
        ids_sum(IDS, SRC, DST),
        ids_sum(IDS, SRC, DST[ORDER]),
        ids_sum(IDS, SRC[ORDER], DST),
        ids_sum(IDS + 1, SRC, DST),
        ids_sum(IDS, DST, SRC),
    }
    assert len(sums) == 6
    assert ids_sum(IDS[ORDER], SRC[ORDER], DST[ORDER]) == ids_sum(IDS, SRC, DST)


@pytest.mark.parametrize(
    "rows",
    [
        np.arange(6, dtype=np.float64).reshape(3, 2),
        np.arange(3, dtype=np.int16),
        np.arange(33, dtype=np.uint8).reshape(3, 11),
    ],
    ids=["words", "narrow", "wide"],
)
def test_a_sum_depends_on_each_value_and_its_id(rows: np.ndarray) -> None:
    whole = rows_sum(IDS, rows)
    changed = rows.copy()
    changed.reshape(3, -1)[1, -1] += 1
    assert len({whole, rows_sum(IDS, rows[ORDER]), rows_sum(IDS, changed)}) == 3
    assert rows_sum(IDS[ORDER], rows[ORDER]) == whole
    sums = Checksums()
    for row in range(3):
        sums.add("x", rows_sum(IDS[row : row + 1], rows[row : row + 1]))
    assert sums.to_dict() == {"x": f"{whole:016x}"}
