"""Tests of the audit's kernel on correct alias rows, and on every kind of error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.kit.alias_tables import implied_distribution

from asterism_graphkit.random.alias_build import build_rows
from storaged.version_tasks.alias_audit import (
    MISSING_TABLE,
    WRONG_DISTRIBUTION,
    WRONG_SUM,
    audit_rows,
    new_outputs,
)

LIMIT = 1e-9
Rows = list[list[float]]


def build_tables(
    rows: Rows,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.float32],
    NDArray[np.float64],
    NDArray[np.uint64],
    NDArray[np.uint32],
]:
    indptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    weights = np.array([weight for row in rows for weight in row], np.float32)
    alias_threshold, alias_fraction, sums = build_rows(indptr, weights)
    return indptr, weights, sums, alias_threshold, alias_fraction


def audit_tables(
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    sums: NDArray[np.float64],
    alias_threshold: object,
    alias_fraction: object,
) -> tuple[list[int], list[float]]:
    distances, violation = new_outputs()
    audit_rows(
        indptr,
        weights,
        sums,
        alias_threshold,
        alias_fraction,
        float(weights[0]) if weights.size else 0.0,
        LIMIT,
        distances,
        violation,
    )  # type: ignore[arg-type]
    return violation.tolist(), distances.tolist()


WEIGHTS = st.floats(0, 100, width=32) | st.just(0.0) | st.sampled_from([2.0**-149, 3e38, 1.0])


@given(rows=st.lists(st.lists(WEIGHTS, max_size=12), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_built_rows_pass_with_the_distance_of_their_tables(rows: Rows) -> None:
    indptr, weights, sums, alias_threshold, alias_fraction = build_tables(rows)
    violation, (distance, _) = audit_tables(indptr, weights, sums, alias_threshold, alias_fraction)
    assert violation == [-1, 0]
    max_distance = 0.0
    for r, row in enumerate(rows):
        if sums[r] > 0:
            row_slice = slice(indptr[r], indptr[r + 1])
            max_distance = max(
                max_distance,
                float(
                    np.abs(
                        implied_distribution(alias_threshold[row_slice], alias_fraction[row_slice])
                        - np.array(row, np.float32).astype(np.float64) / sums[r]
                    ).sum()
                )
                / 2,
            )
    assert distance == pytest.approx(max_distance, abs=1e-15)


ROWS: Rows = [[1, 2, 3, 4], [5, 0, 1, 1, 1], [2, 2], [7, 1, 1, 1, 1, 1, 9, 2]]


def test_every_altered_threshold_is_detected_at_its_row() -> None:
    """The highest bit of ``cold`` is 2^-32, within the limit; high halves of ``hot`` are not."""
    indptr, weights, sums, alias_threshold, alias_fraction = build_tables(ROWS)
    for slot in range(weights.size):
        row = int(np.searchsorted(indptr, slot, side="right")) - 1
        n = int(indptr[row + 1] - indptr[row])
        if int(alias_threshold[slot]) & 0xFFFFFFFF == slot - int(indptr[row]):
            continue  # certain: no draw reads its threshold either
        altered = alias_threshold.copy()
        altered[slot] ^= np.uint64(1 << 60)
        assert audit_tables(indptr, weights, sums, altered, alias_fraction)[0] == [
            row,
            WRONG_DISTRIBUTION,
        ], slot
        for target in range(n):
            if target != int(alias_threshold[slot]) & 0xFFFFFFFF:
                altered = alias_threshold.copy()
                altered[slot] = (alias_threshold[slot] & np.uint64(0xFFFFFFFF00000000)) | np.uint64(
                    target
                )
                assert audit_tables(indptr, weights, sums, altered, alias_fraction)[0] == [
                    row,
                    WRONG_DISTRIBUTION,
                ], (slot, target)


def test_altered_weights_and_sums_are_detected() -> None:
    indptr, weights, sums, alias_threshold, alias_fraction = build_tables(ROWS)
    for row in range(len(ROWS)):
        altered_sums = sums.copy()
        altered_sums[row] = np.nextafter(altered_sums[row], np.inf)
        assert audit_tables(indptr, weights, altered_sums, alias_threshold, alias_fraction)[0] == [
            row,
            WRONG_SUM,
        ]
        heavier = weights.copy()
        heavier[indptr[row]] += 1
        assert audit_tables(indptr, heavier, sums, alias_threshold, alias_fraction)[0] == [
            row,
            WRONG_SUM,
        ]
    swapped = weights.copy()
    swapped[[0, 1]] = swapped[[1, 0]]  # the same sum, but another distribution
    assert audit_tables(indptr, swapped, sums, alias_threshold, alias_fraction)[0] == [
        0,
        WRONG_DISTRIBUTION,
    ]


def test_zero_weight_of_any_probability_is_detected() -> None:
    indptr, weights, sums, alias_threshold, alias_fraction = build_tables(ROWS)
    slot = int(indptr[1]) + 1
    assert weights[slot] == 0
    altered_fraction = alias_fraction.copy()
    altered_fraction[slot] = 1  # 2^-64: far below the limit
    assert audit_tables(indptr, weights, sums, alias_threshold, altered_fraction)[0] == [
        1,
        WRONG_DISTRIBUTION,
    ]


def test_rows_without_tables_must_have_one_positive_weight() -> None:
    empty_tables = np.zeros(0, np.uint64), np.zeros(0, np.uint32)
    indptr = np.array([0, 2, 2, 5], np.int64)
    for weights, violation in (
        ([3, 3, 3, 3, 3], [-1, 0]),
        ([3, 3, 3, 3, 4], [2, MISSING_TABLE]),
        ([0, 0, 0, 0, 0], [0, MISSING_TABLE]),
    ):
        values = np.array(weights, np.float32)
        sums = np.array([values[:2].sum(), 0, values[2:].sum()], np.float64)
        assert audit_tables(indptr, values, sums, *empty_tables)[0] == violation
