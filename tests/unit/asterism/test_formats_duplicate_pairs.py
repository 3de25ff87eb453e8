"""Tests of the search for repeated pairs, in memory and with buckets on disk."""

from __future__ import annotations

import numpy as np
import pytest

from asterism.formats.duplicate_pairs import find_repeated_pairs


@pytest.mark.parametrize("in_memory", [2, 7, 100])
def test_every_repeat_is_found_in_the_order_of_rows(in_memory: int) -> None:
    generator = np.random.default_rng(2)
    first, second = generator.integers(0, 6, (2, 60))
    chunks = [
        (np.arange(start, start + 5) * 3, first[start : start + 5], second[start : start + 5])
        for start in range(0, 60, 5)
    ]
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    expected = [3 * i for i, pair in enumerate(pairs) if pair in pairs[:i]]
    assert len(expected) > 20
    assert find_repeated_pairs(chunks, in_memory=in_memory).tolist() == expected


def test_a_repeat_in_the_last_chunk_is_found() -> None:
    chunks = [(np.array([i]), np.array([7]), np.array([8 * (i % 3)])) for i in range(4)]
    assert find_repeated_pairs(chunks, in_memory=2).tolist() == [3]
