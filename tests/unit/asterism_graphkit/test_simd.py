"""Tests of steps of sixteen numbers, compiled and interpreted, against NumPy."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.waiting import HANG_S

from asterism_graphkit.compile.jit import CHECK_BOUNDS, INTERPRETED, kernel, register
from asterism_graphkit.compile.simd import LANES, compress_members, compress_pairs, rank_bits

GENERATOR = np.random.default_rng(7)
COUNT, WORDS = 40 * LANES, 30
_LANES, _BYTES = np.uint64(LANES), np.uint64(4)
U32, U64 = NDArray[np.uint32], NDArray[np.uint64]


@kernel
def _compress_members(
    numbers: U32, low: np.uint64, words: U64, positions: U32, offsets: U32
) -> np.uint64:
    count = np.uint64(0)
    if CHECK_BOUNDS:
        register(numbers)
    for i in range(np.uint64(0), np.uint64(numbers.shape[0]), _LANES):
        count += compress_members(
            np.uint64(numbers.ctypes.data) + _BYTES * np.uint64(i),
            np.uint64(i),
            low,
            words,
            positions,
            offsets,
            count,
        )
    return count


@kernel
def _compress_pairs(
    pairs: U64, low: np.uint64, words: U64, seconds: U32, offsets: U32
) -> np.uint64:
    count = np.uint64(0)
    if CHECK_BOUNDS:
        register(pairs)
    for i in range(np.uint64(0), np.uint64(pairs.shape[0]), _LANES):
        count += compress_pairs(
            np.uint64(pairs.ctypes.data) + np.uint64(8) * np.uint64(i),
            low,
            words,
            seconds,
            offsets,
            count,
        )
    return count


@kernel
def _rank_all(offsets: U32, words: U64, word_ranks: NDArray[np.int32], ranks: U32) -> None:
    for i in range(np.uint64(0), np.uint64(offsets.shape[0]), _LANES):
        rank_bits(offsets, np.uint64(i), words, word_ranks, ranks)


def _bitset_of(members: NDArray[np.int64]) -> tuple[U64, NDArray[np.int32]]:
    words = np.zeros(WORDS, np.uint64)
    np.bitwise_or.at(words, members >> 6, np.uint64(1) << (members & 63).astype(np.uint64))
    return words, np.searchsorted(members, 64 * np.arange(WORDS)).astype(np.int32)


@pytest.mark.parametrize("low", [0, 900, (1 << 32) - 64 * WORDS])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_set_members_are_compressed_and_ranked(low: int, share: float) -> None:
    """Numbers outside the set's range are not members, even if sums wrap around."""
    members = np.flatnonzero(GENERATOR.random(64 * WORDS - 1) < share)
    words, word_ranks = _bitset_of(members)
    numbers = GENERATOR.integers(max(low - 700, 0), min(low + 64 * WORDS + 700, 1 << 32), COUNT)
    numbers[: 2 * LANES] = np.repeat([0, low, (1 << 32) - 1, max(low - 1, 0)], 8)
    member_positions = np.flatnonzero(np.isin(numbers - low, members))
    positions, offsets = (np.full(COUNT + LANES, 9, np.uint32) for _ in range(2))
    assert (
        _compress_members(numbers.astype(np.uint32), np.uint64(low), words, positions, offsets)
        == member_positions.size
    )
    assert positions[: member_positions.size].tolist() == member_positions.tolist()
    assert offsets[: member_positions.size].tolist() == (numbers - low)[member_positions].tolist()
    seconds = GENERATOR.integers(0, 1 << 32, COUNT)
    pairs = seconds.astype(np.uint64) << np.uint64(32) | numbers.astype(np.uint64)
    assert (
        _compress_pairs(pairs, np.uint64(low), words, positions, offsets) == member_positions.size
    )
    assert positions[: member_positions.size].tolist() == seconds[member_positions].tolist()
    offsets[member_positions.size :] = 64 * WORDS - 1
    ranks = np.zeros(COUNT + LANES, np.uint32)
    _rank_all(offsets, words, word_ranks, ranks)
    assert (
        ranks[: member_positions.size].tolist()
        == np.searchsorted(members, (numbers - low)[member_positions]).tolist()
    )
    assert (ranks[member_positions.size :] == members.size).all()


@pytest.mark.skipif(INTERPRETED, reason="this is the other way already")
def test_interpreted_python_gives_the_same_results() -> None:
    # Environment of a child with one more switch.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # noqa: TID251
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    completed = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
