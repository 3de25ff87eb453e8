from __future__ import annotations

import numpy as np
import pytest

from asterism_graphkit.arrays.gather_scatter import gather_rows, scatter_rows
from asterism_graphkit.compile.jit import addresses_of

KINDS = [
    ((), "int64"),
    ((), "float32"),
    ((), "bool"),
    ((2,), "float32"),
    ((2, 3), "int8"),
    ((129,), "float32"),
    ((0,), "float64"),
    ((3,), "bool"),
]


@pytest.mark.parametrize(("shape", "dtype"), KINDS)
def test_rows_of_any_dtype_and_shape_are_scattered(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(1)
    rows = rng.permutation(40)[:25]
    values = rng.integers(1, 100, (25, *shape)).astype(dtype)
    out, expected = np.zeros((40, *shape), dtype), np.zeros((40, *shape), dtype)
    expected[rows] = values
    scatter_rows(out, rows, values)
    scatter_rows(out, rows[:0], values[:0])
    np.testing.assert_array_equal(out, expected)


def test_unaligned_and_strided_rows_are_scattered() -> None:
    odd = np.zeros(1 + 8 * 30, np.uint8)[1:].view(np.int64)
    strided = np.arange(40, dtype=np.int64)[::2]
    scatter_rows(odd, np.arange(20)[::-1], strided)
    assert odd.tolist() == [*range(38, -2, -2), *[0] * 10]


@pytest.mark.parametrize(("shape", "dtype"), KINDS)
def test_rows_are_gathered_per_column_and_zero_where_missing(
    shape: tuple[int, ...], dtype: str
) -> None:
    rng = np.random.default_rng(2)
    columns = [rng.integers(0, 100, (size, *shape)).astype(dtype) for size in (7, 1, 100)]
    column_of_row = rng.integers(0, 3, 200).astype(np.int32)
    rows = np.array([rng.integers(-1, len(columns[k])) for k in column_of_row], np.int64)
    expected = np.array(
        [
            np.zeros(shape, dtype) if row < 0 else columns[k][row]
            for k, row in zip(column_of_row, rows, strict=True)
        ]
    ).reshape(200, *shape)
    result = gather_rows(column_of_row, rows, addresses_of(columns), shape, np.dtype(dtype))
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    assert gather_rows(
        column_of_row[:0], rows[:0], addresses_of(columns), shape, np.dtype(dtype)
    ).shape == (0, *shape)


def test_values_that_do_not_fit_their_rows_are_refused() -> None:
    out, rows = np.zeros((4, 2), np.float32), np.array([3, 0])
    for values in (
        np.zeros((1, 2), np.float32),
        np.zeros((2, 3), np.float32),
        np.zeros((2, 2), np.float64),
    ):
        with pytest.raises(ValueError, match="for 2 rows of float32"):
            scatter_rows(out, rows, values)
    assert not out.any()
