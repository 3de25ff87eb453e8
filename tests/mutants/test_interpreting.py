"""Tests of interpreting some kernels in a process that has compiled ones."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np

from asterism_graphkit.arrays import siphash
from asterism_graphkit.relabel import bitset
from tests.mutants import interpreting, planting, runner
from tests.mutants.mutant import change

KERNELS: Sequence[Any] = (bitset.popcount, bitset.rank_words, bitset.bit_rank, siphash.siphash)
"""The last one has nothing in common with the others, whichever modules are imported."""


def rank(words: Sequence[int]) -> tuple[int, list[int]]:
    """Return the number of set bits, and those before each word, by a compiled kernel."""
    ranks = np.zeros(len(words), np.int32)
    return int(bitset.rank_words(np.array(words, np.uint64), np.int64(0), ranks)), ranks.tolist()


def interpreted_with(function: FunctionType) -> list[str]:
    """Return which of `KERNELS` are interpreted with a function, in a process of their own."""

    def interpret() -> list[str]:
        interpreting.interpret([function])
        return [kernel.__name__ for kernel in KERNELS if interpreting.is_interpreted(kernel)]

    return runner.call_in_child(interpret)


def test_only_kernels_that_call_a_changed_one_are_interpreted() -> None:
    function = bitset.popcount.py_func  # type: ignore[attr-defined]  # a dispatcher
    assert interpreted_with(function) == ["popcount", "rank_words", "bit_rank"]
    assert interpreted_with(rank) == []


def test_mutant_of_a_kernel_changes_the_kernels_that_call_it() -> None:
    mutant = change("m", "nowhere", bitset.__name__, ("word - (word >> ONE & _TWOS)", "word"))

    def plant() -> tuple[int, list[int]]:
        np.seterr(over="ignore")
        planting.plant([mutant], interpreting=True)
        return rank([7, 1])

    assert rank([7, 1]) == (4, [0, 3])
    assert runner.call_in_child(plant) != (4, [0, 3])
    assert rank([7, 1]) == (4, [0, 3])
