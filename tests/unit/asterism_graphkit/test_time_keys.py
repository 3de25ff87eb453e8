"""Tests of times as keys: numbers of every kind compare exactly as in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism_graphkit.arrays.time_keys import decode_times, encode_times, limit_keys

INTEGERS = st.integers(-(2**63) + 1, 2**63 - 1) | st.sampled_from(
    [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 512, 2**63 - 513, 2**63 - 1]
)
FLOATS = st.floats(allow_nan=False) | st.sampled_from(
    [0.0, -0.0, 0.5, -0.5, 2.0**53, 2.0**63, -(2.0**63), float(np.nextafter(2.0**63, 0)), 5e-324]
)


@pytest.mark.parametrize("strict", [False, True])
@settings(max_examples=200, deadline=None)
@given(
    times=st.lists(INTEGERS | st.just(-(2**63)), min_size=1, max_size=6)
    | st.lists(FLOATS, min_size=1, max_size=6),
    edges=st.lists(INTEGERS, min_size=1, max_size=6) | st.lists(FLOATS, min_size=1, max_size=6),
)
def test_edge_is_eligible_unless_its_time_is_later(
    strict: bool, times: list[int] | list[float], edges: list[int] | list[float]
) -> None:
    kinds = [np.float64 if isinstance(values[0], float) else np.int64 for values in (times, edges)]
    keys = encode_times(np.array(edges, kinds[1]))
    limits = limit_keys(np.array(times, kinds[0]), strict=strict, is_float=kinds[1] is np.float64)
    assert (keys <= limits[:, None]).tolist() == [
        [edge < time if strict else edge <= time for edge in edges] for time in times
    ]


@given(st.lists(FLOATS, max_size=20))
def test_float_keys_keep_order_and_round_trip(values: list[float]) -> None:
    array = np.array(values, np.float64)
    keys = encode_times(array)
    assert (keys[:, None] < keys).tolist() == (array[:, None] < array).tolist()
    assert np.array_equal(decode_times(keys, is_float=True), array)
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    assert np.array_equal(encode_times(narrow), encode_times(narrow.astype(np.float64)))
