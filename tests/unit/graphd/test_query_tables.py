"""Tests of tables of statements: equal rows."""

from __future__ import annotations

import numpy as np

from graphd.query.table import ResultTable, array_column, coded_column, feature_column


def test_distinct_keeps_the_first_of_equal_rows() -> None:
    lists = (
        np.array([0, 2, 2, 4, 6, 8, 8, 10], np.int64),
        np.array([1, 2, 1, 2, 2, 1, 1, 2, 1, 2], np.int64),
    )
    table = ResultTable(
        columns=(
            array_column("x", np.array([1, 1, 1, 1, np.nan, 1, np.nan])),
            array_column("v", np.array([[0, 1]] * 6 + [[0, 1]], np.int32)),
            coded_column("t", np.array([0, -1, 0, 0, 1, -1, 1]), ("a", "b")),
            feature_column("l", "ragged", lists),
        ),
        rows=7,
    )
    distinct = table.distinct()
    assert distinct.rows == 4
    np.testing.assert_array_equal(distinct.columns[0].values, [1, 1, 1, np.nan])
    indptr, values = distinct.columns[3].values
    assert (np.asarray(indptr).tolist(), np.asarray(values).tolist()) == (
        [0, 2, 2, 4, 6],
        [1, 2, 2, 1, 1, 2],
    )


def test_rows_that_differ_in_one_value_of_a_vector_stay() -> None:
    vectors = np.array([[0, 1], [1, 0], [0, 1], [0, 2]], np.float32)
    table = ResultTable(columns=(array_column("v", vectors),), rows=4)
    assert np.asarray(table.distinct().columns[0].values).tolist() == [[0, 1], [1, 0], [0, 2]]


def test_distinct_of_an_empty_table_is_empty() -> None:
    empty = ResultTable(
        columns=(
            array_column("x", np.zeros(0)),
            feature_column("b", "bytes", (np.zeros(1, np.int64), np.zeros(0, np.uint8))),
        ),
        rows=0,
    )
    assert empty.distinct().rows == 0
