"""Sets of numbers as bits of 64-bit words."""

from __future__ import annotations

import numpy as np

from graphkit.jit import inlined

ONE, SHIFT, LOW = np.uint64(1), np.uint64(6), np.uint64(63)
"""The bit of number i is ``ONE << (i & LOW)`` of word ``i >> SHIFT``."""
_S2, _S4, _S56 = np.uint64(2), np.uint64(4), np.uint64(56)
_TWOS, _FOURS, _EIGHTS, _BYTES = (np.uint64(value) for value in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101))


@inlined
def ones(word: np.uint64) -> np.uint64:
    """How many bits are set; LLVM knows this form, and has one instruction for it (Warren 2012, Hacker's Delight, section 5-1)."""
    word = word - (word >> ONE & _TWOS)
    word = (word & _FOURS) + (word >> _S2 & _FOURS)
    return ((word + (word >> _S4)) & _EIGHTS) * _BYTES >> _S56


@inlined
def ones_below(word: np.uint64, bit: np.uint64) -> np.uint64:
    """How many of the bits 0 .. bit - 1 are set."""
    return ones(word & ((ONE << bit) - ONE))
