"""Reproducible random orders in NumPy: hashed keys, shuffles, and implicit permutations.

The mixing function is the output function of splitmix64 (Steele, Lea & Flood 2014, *Fast splittable
pseudorandom number generators*, OOPSLA), as in the service's sampling. The tags under a seed differ
from those of the service. NumPy's generators are not used, because they do not guarantee their
streams across releases.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UInt64Array = NDArray[np.uint64]

SHUFFLE, EPOCH, WALK, NEGATIVE, BATCH, SUBGRAPH = range(101, 107)
"""First tag under a seed: the purpose of the stream.

Part of the sampling contract: changing it changes results for a given seed.
"""

# Part of the sampling contract: changing them changes results for a given seed.
_GOLDEN, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_SALT, _MASK = 0xD6E8FEB86659FD93, 0xFFFFFFFFFFFFFFFF
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_ROUNDS = 8


def mix64(words: UInt64Array) -> UInt64Array:
    """Apply the finalizer of splitmix64, a bijection of 64-bit words, elementwise.

    Parameters
    ----------
    words : ndarray of uint64
        Words, any shape.

    Returns
    -------
    ndarray of uint64, same shape
        Mixed words.
    """
    with np.errstate(over="ignore"):
        mixed = (words ^ (words >> _S30)) * np.uint64(_M1)
        mixed = (mixed ^ (mixed >> _S27)) * np.uint64(_M2)
    return np.asarray(mixed ^ (mixed >> _S31))


def key_of(seed: int, *tags: int) -> int:
    """Return the key of a seed and a path of tags.

    Parameters
    ----------
    seed : int
        Seed; taken modulo 2^64.
    *tags : int
        Path of tags; different paths give independent keys.

    Returns
    -------
    int
        64-bit key.
    """
    key = _mix64_scalar(seed & _MASK)
    for tag in tags:
        key = _mix64_scalar(
            _mix64_scalar(key ^ _SALT) + _mix64_scalar((tag + 1) * _GOLDEN & _MASK) & _MASK
        )
    return key


def _mix64_scalar(word: int) -> int:
    """Apply `mix64` to one word, faster than through NumPy."""
    word = (word ^ word >> 30) * _M1 & _MASK
    word = (word ^ word >> 27) * _M2 & _MASK
    return word ^ word >> 31


def key_stream(key: int, count: int) -> UInt64Array:
    """Return the first words of a key's stream.

    Parameters
    ----------
    key : int
        64-bit key.
    count : int
        Number of words.

    Returns
    -------
    ndarray of uint64, shape (count,)
        Pseudorandom words.
    """
    with np.errstate(over="ignore"):
        return mix64(np.uint64(key) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN))


def shuffled_range(count: int, seed: int) -> NDArray[np.int64]:
    """Return the integers below ``count`` in random order, sorted by random 64-bit keys.

    Parameters
    ----------
    count : int
        Number of integers.
    seed : int
        Seed of the order.

    Returns
    -------
    ndarray of int64, shape (count,)
        The integers; equal keys are ordered by number.
    """
    return np.argsort(key_stream(key_of(seed, SHUFFLE), count), kind="stable")


def permute(numbers: NDArray[np.int64], size: int, key: int) -> NDArray[np.int64]:
    """Map numbers through a pseudorandom permutation of the integers below ``size``.

    The permutation is a Feistel network over the next power of four; results beyond ``size`` pass
    through it again (Black & Rogaway 2002, *Ciphers with arbitrary finite domains*, CT-RSA). It
    needs no memory beyond the given numbers. Orders of few numbers are not all equally likely: use
    it to visit each number once, not to sample.

    Parameters
    ----------
    numbers : ndarray of int64, shape (m,)
        Numbers from 0 to ``size`` - 1.
    size : int
        Size of the permuted range.
    key : int
        64-bit key.

    Returns
    -------
    ndarray of int64, shape (m,)
        Images of the numbers.
    """
    half = np.uint64((max(size - 1, 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << int(half)) - 1)
    keys = key_stream(key, _ROUNDS)
    out = _network(numbers.astype(np.uint64), half, mask, keys)
    beyond = np.flatnonzero(out >= np.uint64(size))
    while beyond.size:
        out[beyond] = _network(out[beyond], half, mask, keys)
        beyond = beyond[out[beyond] >= np.uint64(size)]
    return out.astype(np.int64)


def _network(
    numbers: UInt64Array, half: np.uint64, mask: np.uint64, keys: UInt64Array
) -> UInt64Array:
    left, right = numbers >> half, numbers & mask
    for key in keys:
        left, right = right, left ^ (mix64(right ^ key) & mask)
    return np.asarray((left << half) | right)
