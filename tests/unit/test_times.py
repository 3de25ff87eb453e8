"""Times as keys: numbers of every kind, compared as exactly as Python compares them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkit.times import keys_of, limits_of, times_of

WHOLE = st.integers(-(2**63) + 1, 2**63 - 1) | st.sampled_from([0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 512, 2**63 - 513, 2**63 - 1])
FLOAT = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 0.5, -0.5, 2.0**53, 2.0**63, -(2.0**63), float(np.nextafter(2.0**63, 0)), 5e-324])


@pytest.mark.parametrize("strict", [False, True])
@settings(max_examples=200, deadline=None)
@given(
    times=st.lists(WHOLE | st.just(-(2**63)), min_size=1, max_size=6) | st.lists(FLOAT, min_size=1, max_size=6),
    edges=st.lists(WHOLE, min_size=1, max_size=6) | st.lists(FLOAT, min_size=1, max_size=6),
)
def test_an_edge_is_seen_where_its_time_is_not_after(strict: bool, times: list[int] | list[float], edges: list[int] | list[float]) -> None:
    kinds = [np.float64 if isinstance(values[0], float) else np.int64 for values in (times, edges)]
    keys = keys_of(np.array(edges, kinds[1]))
    limits = limits_of(np.array(times, kinds[0]), strict=strict, floating=kinds[1] is np.float64)
    assert (keys <= limits[:, None]).tolist() == [[edge < time if strict else edge <= time for edge in edges] for time in times]


@given(st.lists(FLOAT, max_size=20))
def test_keys_are_in_the_order_of_floats_and_give_them_back(values: list[float]) -> None:
    array = np.array(values, np.float64)
    keys = keys_of(array)
    assert (keys[:, None] < keys).tolist() == (array[:, None] < array).tolist()
    assert np.array_equal(times_of(keys, floating=True), array)
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    assert np.array_equal(keys_of(narrow), keys_of(narrow.astype(np.float64)))
