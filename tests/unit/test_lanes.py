"""Steps of sixteen numbers, compiled and as plain Python, against what NumPy says."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.waiting import HANG_S

from graphkit.jit import CHECKED, INTERPRETED, kernel, register
from graphkit.lanes import LANES, list_pairs, list_set, rank

GENERATOR = np.random.default_rng(7)
COUNT, WORDS = 40 * LANES, 30
_LANES, _BYTES = np.uint64(LANES), np.uint64(4)
U32, U64 = NDArray[np.uint32], NDArray[np.uint64]


@kernel
def _listed(numbers: U32, low: np.uint64, words: U64, places: U32, ats: U32) -> np.uint64:
    count = np.uint64(0)
    if CHECKED:
        register(numbers)
    for i in range(np.uint64(0), np.uint64(numbers.shape[0]), _LANES):
        count += list_set(np.uint64(numbers.ctypes.data) + _BYTES * np.uint64(i), np.uint64(i), low, words, places, ats, count)
    return count


@kernel
def _listed_pairs(pairs: U64, low: np.uint64, words: U64, seconds: U32, ats: U32) -> np.uint64:
    count = np.uint64(0)
    if CHECKED:
        register(pairs)
    for i in range(np.uint64(0), np.uint64(pairs.shape[0]), _LANES):
        count += list_pairs(np.uint64(pairs.ctypes.data) + np.uint64(8) * np.uint64(i), low, words, seconds, ats, count)
    return count


@kernel
def _ranked(ats: U32, words: U64, firsts: NDArray[np.int32], ranks: U32) -> None:
    for i in range(np.uint64(0), np.uint64(ats.shape[0]), _LANES):
        rank(ats, np.uint64(i), words, firsts, ranks)


def _set_of(members: NDArray[np.int64]) -> tuple[U64, NDArray[np.int32]]:
    words = np.zeros(WORDS, np.uint64)
    np.bitwise_or.at(words, members >> 6, np.uint64(1) << (members & 63).astype(np.uint64))
    return words, np.searchsorted(members, 64 * np.arange(WORDS)).astype(np.int32)


@pytest.mark.parametrize("low", [0, 900, (1 << 32) - 64 * WORDS])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_numbers_of_a_set_are_listed_and_ranked(low: int, share: float) -> None:
    """Whatever lies before the set or behind it is none of it, also where sums wrap."""
    members = np.flatnonzero(GENERATOR.random(64 * WORDS - 1) < share)
    words, firsts = _set_of(members)
    numbers = GENERATOR.integers(max(low - 700, 0), min(low + 64 * WORDS + 700, 1 << 32), COUNT)
    numbers[: 2 * LANES] = np.repeat([0, low, (1 << 32) - 1, max(low - 1, 0)], 8)
    there = np.flatnonzero(np.isin(numbers - low, members))
    places, ats = (np.full(COUNT + LANES, 9, np.uint32) for _ in range(2))
    assert _listed(numbers.astype(np.uint32), np.uint64(low), words, places, ats) == there.size
    assert places[: there.size].tolist() == there.tolist()
    assert ats[: there.size].tolist() == (numbers - low)[there].tolist()
    seconds = GENERATOR.integers(0, 1 << 32, COUNT)
    pairs = seconds.astype(np.uint64) << np.uint64(32) | numbers.astype(np.uint64)
    assert _listed_pairs(pairs, np.uint64(low), words, places, ats) == there.size
    assert places[: there.size].tolist() == seconds[there].tolist()
    ats[there.size :] = 64 * WORDS - 1
    ranks = np.zeros(COUNT + LANES, np.uint32)
    _ranked(ats, words, firsts, ranks)
    assert ranks[: there.size].tolist() == np.searchsorted(members, (numbers - low)[there]).tolist()
    assert (ranks[there.size :] == members.size).all()


@pytest.mark.skipif(INTERPRETED, reason="this is the other way already")
def test_plain_python_says_the_same() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # noqa: TID251  # a child with one switch more
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
