"""Sets of numbers as bits of 64-bit words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, inlined, kernel

ONE, WORD_SHIFT, BIT_MASK = np.uint64(1), np.uint64(6), np.uint64(63)
"""The bit of number i is ``ONE << (i & LOW)`` of word ``i >> SHIFT``."""
_FEW_WORDS, _WORDS_EACH, _MOST_WORDS = 1 << 10, 4, 1 << 17
"""Words that are cleared in no time, and as many more for each number: with these a set of bits is
cheaper than one of hashes. And as many as stay near: 1 MiB."""
_S2, _S4, _S56 = np.uint64(2), np.uint64(4), np.uint64(56)
_TWOS, _FOURS, _EIGHTS, _BYTES = (
    np.uint64(value)
    for value in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)
)


@inlined
def popcount(word: np.uint64) -> np.uint64:
    """How many bits are set; LLVM knows this form, and has one instruction for it (Warren 2012,
    Hacker's Delight, section 5-1).
    """
    word = word - (word >> ONE & _TWOS)
    word = (word & _FOURS) + (word >> _S2 & _FOURS)
    return ((word + (word >> _S4)) & _EIGHTS) * _BYTES >> _S56


@inlined
def popcount_below(word: np.uint64, bit: np.uint64) -> np.uint64:
    """How many of the bits 0 .. bit - 1 are set."""
    return popcount(word & ((ONE << bit) - ONE))


@inlined
def bit_rank(bit: np.uint64, words: NDArray[np.uint64], word_ranks: NDArray[np.int32]) -> np.uint64:
    """How many numbers of a set are smaller, ``word_ranks`` being how many are in the words before
    each.
    """
    word = bit >> WORD_SHIFT
    return np.uint64(word_ranks[word]) + popcount_below(words[word], bit & BIT_MASK)


@kernel
def rank_words(words: NDArray[np.uint64], first: np.int64, word_ranks: NDArray[np.int32]) -> int:
    """Write how many bits are set before each word, and return how many are set in all.

    Parameters
    ----------
    words : uint64[w]
    first : int64
        Bits that are set before these words.
    word_ranks : int32[w], out
    """
    count = first
    for w in range(words.shape[0]):
        word_ranks[w] = count
        count += np.int64(popcount(words[w]))
    return count  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def list_set_bits(words: NDArray[np.uint64], first: np.int64, out: NDArray[np.int64]) -> None:
    """Write the members of a bitset, ascending.

    Parameters
    ----------
    words : uint64[w]
    first : int64
        The number of the first bit.
    out : int64[..], out
        At least as long as there are members.
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
    """Return whether words of bits are few for a count of numbers, and stay in a cache."""
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
    """Whether it is seen at a glance that no id is there twice, and none below 0: they ascend, or
    lie near each other.

    False also where it would take longer to say: of ids in any order that lie far apart.
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
