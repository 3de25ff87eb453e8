"""Tests of stable sorting in pieces: equal to NumPy's, and stoppable between pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asterism_graphkit.arrays.stable_sort import distinct, stable_order
from asterism_proto.errors import Deadline


def lexsorted(keys: list[NDArray[Any]]) -> list[int]:
    return np.lexsort(list(reversed(keys))).tolist()  # type: ignore[no-any-return]


@settings(deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 400),
    st.sampled_from([1, 2, 3, 50, 10**6]),
    st.integers(2, 60),
)
def test_pieces_give_the_order_of_lexsort(
    seed: int, size: int, distinct: int, max_entries: int
) -> None:
    rng = np.random.default_rng(seed)
    keys: list[NDArray[Any]] = [
        rng.integers(0, distinct, size).astype(np.float32) - 0.5,
        rng.integers(0, 4, size),
    ]
    assert stable_order(keys, lambda: None, max_entries).tolist() == lexsorted(keys)


@pytest.mark.parametrize("kind", ["random", "sorted", "reversed", "equal", "few", "one is rare"])
def test_large_rows_have_the_order_of_lexsort(kind: str) -> None:
    size = 300_000
    values = np.random.default_rng(3).random(size)
    key = {
        "random": values,
        "sorted": np.sort(values),
        "reversed": np.sort(values)[::-1],
        "equal": np.ones(size),
        "few": np.round(values * 3),
        "one is rare": np.where(np.arange(size) == 77_777, 0.5, 1.0),
    }[kind]
    keys = [-key, np.arange(size)[::-1] // 3]
    assert stable_order(keys, lambda: None, 1 << 14).tolist() == lexsorted(keys)


def test_a_checkpoint_comes_for_every_piece() -> None:
    size, piece = 1 << 18, 1 << 12
    calls = 0

    def checkpoint() -> None:
        nonlocal calls
        calls += 1
        if calls == 100:
            raise Deadline("time is up")

    with pytest.raises(Deadline):
        stable_order([np.random.default_rng(1).random(size)], checkpoint, piece)
    assert calls == 100


@settings(deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 400),
    st.sampled_from([1, 3, 50, 2**62]),
    st.integers(2, 60),
)
def test_pieces_give_the_distinct_ids_of_unique(
    seed: int, size: int, values: int, max_entries: int
) -> None:
    ids = np.random.default_rng(seed).integers(-values, values, size)
    expected, expected_inverse = np.unique(ids, return_inverse=True)
    found, inverse = distinct(ids, lambda: None, max_entries)
    assert (found.tolist(), inverse.tolist()) == (expected.tolist(), expected_inverse.tolist())
    assert found.dtype == inverse.dtype == np.int64


def test_distinct_ids_of_many_entries_can_be_cancelled() -> None:
    size, piece, calls = 1 << 16, 1 << 10, 0

    def checkpoint() -> None:
        nonlocal calls
        calls += 1
        if calls == 300:  # in the last pass, which numbers the sorted entries
            raise Deadline("time is up")

    with pytest.raises(Deadline):
        distinct(np.random.default_rng(1).permutation(size), checkpoint, piece)
    assert calls == 300
