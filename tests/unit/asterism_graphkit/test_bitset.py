"""Tests of bitsets against sorted arrays."""

from __future__ import annotations

import numpy as np
import pytest

from asterism_graphkit.relabel.bitset import list_set_bits, rank_words


@pytest.mark.parametrize("size", [0, 1, 64, 500])
def test_set_bits_are_counted_and_listed_ascending(size: int) -> None:
    numbers = np.sort(np.random.default_rng(size).permutation(640)[:size])
    words, word_ranks = np.zeros(10, np.uint64), np.empty(10, np.int32)
    for number in numbers.tolist():
        words[number // 64] |= np.uint64(1 << number % 64)
    assert rank_words(words[:4], np.int64(0), word_ranks[:4]) == np.sum(numbers < 256)
    first = np.int64(np.sum(numbers < 256))
    assert rank_words(words[4:], first, word_ranks[4:]) == size
    assert word_ranks.tolist() == np.searchsorted(numbers, 64 * np.arange(10)).tolist()
    listed = np.full(size, -1, np.int64)
    list_set_bits(words[:4], np.int64(0), listed[:first])
    list_set_bits(words[4:], np.int64(256), listed[first:])
    assert listed.tolist() == numbers.tolist()
