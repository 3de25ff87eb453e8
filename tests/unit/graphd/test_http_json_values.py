"""Tests of the conversion of arrays to JSON values."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphd.http.json_values import plain_values, shortest_decimals


def test_float32_has_its_shortest_digits() -> None:
    values = np.array([26.79, 16.1, 0.1, -2.5, 0, 1e-30, 3e38, 16777216], np.float32)
    assert json.dumps(plain_values(values)) == (
        "[26.79, 16.1, 0.1, -2.5, 0.0, 1e-30, 3e+38, 16777216.0]"
    )


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_shortest_decimals_read_as_the_same_float32(values: list[float]) -> None:
    array = np.array(values, np.float32)
    decimals = shortest_decimals(array)
    assert (decimals.astype(np.float32) == array).all()
    assert decimals.tolist() == [float(str(value)) for value in array]


def test_float16_has_its_shortest_digits() -> None:
    assert plain_values(np.array([0.1, 65504, 3.14], np.float16)) == [0.1, 65500.0, 3.14]


def test_numbers_without_json_become_null() -> None:
    for dtype in (np.float32, np.float64):
        array = np.array([[1.5, np.nan], [np.inf, -np.inf]], dtype)
        assert plain_values(array) == [[1.5, None], [None, None]]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([[1, -1]], np.int64), [[1, -1]]),
        (np.array([True]), [True]),
        (np.array(["a", ""]), ["a", ""]),
        (np.zeros((2, 0), np.float32), [[], []]),
        (np.array([0.1 + 0.2]), [0.1 + 0.2]),
    ],
)
def test_other_values_stay_as_they_are(array: np.ndarray, expected: list[object]) -> None:
    assert plain_values(array) == expected
