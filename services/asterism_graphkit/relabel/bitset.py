"""Sets of integers as bits of 64-bit words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, inlined, kernel

ONE, WORD_SHIFT, BIT_MASK = np.uint64(1), np.uint64(6), np.uint64(63)
"""Number i is bit ``ONE << (i & BIT_MASK)`` of word ``i >> WORD_SHIFT``."""
_FEW_WORDS, _WORDS_EACH, _MOST_WORDS = 1 << 10, 4, 1 << 17
"""Limits under which a bitset is cheaper than a hash set.

The first is a number of words that costs almost no time to clear, the second the additional words
per number. The third is the number of words that stay in a cache: 1 MiB.
"""
_S2, _S4, _S56 = np.uint64(2), np.uint64(4), np.uint64(56)
_TWOS, _FOURS, _EIGHTS, _BYTES = (
    np.uint64(value)
    for value in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)
)


@inlined
def popcount(word: np.uint64) -> np.uint64:
    """Return the number of set bits.

    LLVM recognizes this form and uses a single instruction (Warren 2012, Hacker's Delight, section
    5-1).
    """
    word = word - (word >> ONE & _TWOS)
    word = (word & _FOURS) + (word >> _S2 & _FOURS)
    return ((word + (word >> _S4)) & _EIGHTS) * _BYTES >> _S56


@inlined
def popcount_below(word: np.uint64, bit: np.uint64) -> np.uint64:
    """Return how many of the bits 0 .. bit - 1 are set."""
    return popcount(word & ((ONE << bit) - ONE))


@inlined
def bit_rank(bit: np.uint64, words: NDArray[np.uint64], word_ranks: NDArray[np.int32]) -> np.uint64:
    """Return how many members of a set are smaller than ``bit``.

    ``words`` is uint64[w]. ``word_ranks``, int32[w], is the number of members before each word.
    """
    word = bit >> WORD_SHIFT
    return np.uint64(word_ranks[word]) + popcount_below(words[word], bit & BIT_MASK)


@kernel
def rank_words(words: NDArray[np.uint64], first: np.int64, word_ranks: NDArray[np.int32]) -> int:
    """Write how many bits are set before each word, and return the total number of set bits.

    Parameters
    ----------
    words : uint64[w]
    first : int64
        Number of bits that are set before these words. It is included in the ranks and the total.
    word_ranks : int32[w], out
    """
    count = first
    for w in range(words.shape[0]):
        word_ranks[w] = count
        count += np.int64(popcount(words[w]))
    return count  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def list_set_bits(words: NDArray[np.uint64], first: np.int64, out: NDArray[np.int64]) -> None:
    """Write the members of a bitset in ascending order.

    Parameters
    ----------
    words : uint64[w]
    first : int64
        Number that the first bit represents.
    out : int64[..], out
        At least as long as the number of members.
    """
    count = np.int64(0)
    for w in range(words.shape[0]):
        word = words[w]
        while word != 0:
            lowest_bit = word & (~word + ONE)
            out[count] = first + (w << np.int64(WORD_SHIFT)) + np.int64(popcount(lowest_bit - ONE))
            count += 1
            word ^= lowest_bit


def fits_in_cache(words: int, numbers: int) -> bool:
    """Return whether a bitset is small for a number of ids, and stays in a cache."""
    return words <= min(_FEW_WORDS + _WORDS_EACH * numbers, _MOST_WORDS)


@kernel
def _ascend(ids: NDArray[np.int64]) -> bool:
    ascending = True
    for i in range(1, ids.shape[0]):
        ascending &= ids[i - 1] < ids[i]
    return ascending


@kernel
def _once(ids: NDArray[np.int64], min_id: np.uint64, words: NDArray[np.uint64]) -> bool:
    repeated = np.uint64(0)
    for i in range(ids.shape[0]):
        bit = np.uint64(ids[i]) - min_id
        repeated |= words[bit >> WORD_SHIFT] >> (bit & BIT_MASK) & ONE
        words[bit >> WORD_SHIFT] |= ONE << (bit & BIT_MASK)
    return bool(repeated == 0)


def is_known_distinct(ids: NDArray[np.int64]) -> bool:
    """Return whether it is quickly seen that all ids are distinct and >= 0.

    True if the ids ascend, or if they are dense enough for a bitset. False if the check would take
    longer: for unordered, sparse ids.
    """
    ids = as_kernel_array(ids)
    if not ids.size or _ascend(ids):
        return not ids.size or int(ids[0]) >= 0
    min_id, max_id = int(ids.min()), int(ids.max())
    words = (max_id - min_id >> 6) + 1
    return (
        min_id >= 0
        and words <= _FEW_WORDS + _WORDS_EACH * ids.size
        and bool(_once(ids, np.uint64(min_id), np.zeros(words, np.uint64)))
    )
