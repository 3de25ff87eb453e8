"""The audit's eyes: what its kernel makes of alias rows that are right, and of every way in which one can be wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphkit.alias import build_rows, law
from storaged.reread.law import EVEN, LAW, SUM, audit_rows, fresh

LIMIT = 1e-9
Rows = list[list[float]]


def built(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float64], NDArray[np.uint64], NDArray[np.uint32]]:
    indptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    weights = np.array([weight for row in rows for weight in row], np.float32)
    hot, cold, sums = build_rows(indptr, weights)
    return indptr, weights, sums, hot, cold


def audited(
    indptr: NDArray[np.int64], weights: NDArray[np.float32], sums: NDArray[np.float64], hot: object, cold: object
) -> tuple[list[int], list[float]]:
    found, wrong = fresh()
    audit_rows(indptr, weights, sums, hot, cold, float(weights[0]) if weights.size else 0.0, LIMIT, found, wrong)  # type: ignore[arg-type]
    return wrong.tolist(), found.tolist()


WEIGHTS = st.floats(0, 100, width=32) | st.just(0.0) | st.sampled_from([2.0**-149, 3e38, 1.0])


@given(rows=st.lists(st.lists(WEIGHTS, max_size=12), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_the_rows_of_a_build_pass_and_the_distance_is_that_of_their_law(rows: Rows) -> None:
    indptr, weights, sums, hot, cold = built(rows)
    wrong, (distance, _) = audited(indptr, weights, sums, hot, cold)
    assert wrong == [-1, 0]
    worst = 0.0
    for r, row in enumerate(rows):
        if sums[r] > 0:
            here = slice(indptr[r], indptr[r + 1])
            worst = max(worst, float(np.abs(law(hot[here], cold[here]) - np.array(row, np.float32).astype(np.float64) / sums[r]).sum()) / 2)
    assert distance == pytest.approx(worst, abs=1e-15)


ROWS: Rows = [[1, 2, 3, 4], [5, 0, 1, 1, 1], [2, 2], [7, 1, 1, 1, 1, 1, 9, 2]]


def test_every_altered_threshold_is_seen_at_its_row() -> None:
    """The 2^-32 that the highest bit of ``cold`` is worth is within the limit; the high halves of ``hot`` are not."""
    indptr, weights, sums, hot, cold = built(ROWS)
    for slot in range(weights.size):
        row = int(np.searchsorted(indptr, slot, side="right")) - 1
        n = int(indptr[row + 1] - indptr[row])
        if int(hot[slot]) & 0xFFFFFFFF == slot - int(indptr[row]):
            continue  # certain: its threshold is not looked at by a draw either
        altered = hot.copy()
        altered[slot] ^= np.uint64(1 << 60)
        assert audited(indptr, weights, sums, altered, cold)[0] == [row, LAW], slot
        for to in range(n):
            if to != int(hot[slot]) & 0xFFFFFFFF:
                altered = hot.copy()
                altered[slot] = (hot[slot] & np.uint64(0xFFFFFFFF00000000)) | np.uint64(to)
                assert audited(indptr, weights, sums, altered, cold)[0] == [row, LAW], (slot, to)


def test_an_altered_weight_and_an_altered_sum_are_seen() -> None:
    indptr, weights, sums, hot, cold = built(ROWS)
    for row in range(len(ROWS)):
        other = sums.copy()
        other[row] = np.nextafter(other[row], np.inf)
        assert audited(indptr, weights, other, hot, cold)[0] == [row, SUM]
        heavier = weights.copy()
        heavier[indptr[row]] += 1
        assert audited(indptr, heavier, sums, hot, cold)[0] == [row, SUM]
    swapped = weights.copy()
    swapped[[0, 1]] = swapped[[1, 0]]  # the same sum, another law
    assert audited(indptr, swapped, sums, hot, cold)[0] == [0, LAW]


def test_a_weight_of_zero_that_could_be_drawn_is_seen_however_seldom() -> None:
    indptr, weights, sums, hot, cold = built(ROWS)
    slot = int(indptr[1]) + 1
    assert weights[slot] == 0
    risen = cold.copy()
    risen[slot] = 1  # 2^-64: far below the limit
    assert audited(indptr, weights, sums, hot, risen)[0] == [1, LAW]


def test_rows_without_tables_must_be_of_one_positive_weight() -> None:
    none = np.zeros(0, np.uint64), np.zeros(0, np.uint32)
    indptr = np.array([0, 2, 2, 5], np.int64)
    for weights, wrong in (([3, 3, 3, 3, 3], [-1, 0]), ([3, 3, 3, 3, 4], [2, EVEN]), ([0, 0, 0, 0, 0], [0, EVEN])):
        values = np.array(weights, np.float32)
        sums = np.array([values[:2].sum(), 0, values[2:].sum()], np.float64)
        assert audited(indptr, values, sums, *none)[0] == wrong
