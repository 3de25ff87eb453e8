"""Tables of statements: rows that are alike."""

from __future__ import annotations

import numpy as np

from graphd.statements.table import Table, of_array, of_codes, of_feature


def test_distinct_rows_are_the_first_of_each_kind_whatever_their_columns() -> None:
    lists = np.array([0, 2, 2, 4, 6, 8, 8, 10], np.int64), np.array([1, 2, 1, 2, 2, 1, 1, 2, 1, 2], np.int64)
    table = Table(
        columns=(
            of_array("x", np.array([1, 1, 1, 1, np.nan, 1, np.nan])),
            of_array("v", np.array([[0, 1]] * 6 + [[0, 1]], np.int32)),
            of_codes("t", np.array([0, -1, 0, 0, 1, -1, 1]), ("a", "b")),
            of_feature("l", "ragged", lists),
        ),
        rows=7,
    )
    kept = table.distinct()
    assert kept.rows == 4
    np.testing.assert_array_equal(kept.columns[0].values, [1, 1, 1, np.nan])
    indptr, values = kept.columns[3].values
    assert (np.asarray(indptr).tolist(), np.asarray(values).tolist()) == ([0, 2, 2, 4, 6], [1, 2, 2, 1, 1, 2])


def test_rows_that_differ_in_one_value_of_a_vector_stay() -> None:
    vectors = np.array([[0, 1], [1, 0], [0, 1], [0, 2]], np.float32)
    table = Table(columns=(of_array("v", vectors),), rows=4)
    assert np.asarray(table.distinct().columns[0].values).tolist() == [[0, 1], [1, 0], [0, 2]]


def test_of_no_rows_none_are_kept() -> None:
    nothing = Table(columns=(of_array("x", np.zeros(0)), of_feature("b", "bytes", (np.zeros(1, np.int64), np.zeros(0, np.uint8)))), rows=0)
    assert nothing.distinct().rows == 0
