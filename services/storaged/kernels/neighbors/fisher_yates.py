"""Uniform sampling without replacement from a row by a sparse Fisher-Yates shuffle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, IntLike, inlined, is_set, prefetch_at
from asterism_graphkit.random.rng import GOLDEN, bounded, bounded_short, word

MAX_DIRECT_DEGREE = 1 << 12
"""Maximum degree of rows that use a direct table; larger rows use a hash table."""
_EIGHTS = np.uint64(3)


@inlined
def find_hash_slot(hash_keys: NDArray[np.int64], key: IntLike, shift: np.uint64) -> IntLike:
    """Return the bucket of ``key`` in an open-addressing table, or the free bucket for it.

    ``hash_keys`` is int64[2^k]; ``shift`` is 64 - k.
    """
    mask = hash_keys.shape[0] - 1
    bucket = np.int64((np.uint64(key) * GOLDEN) >> shift)
    while hash_keys[bucket] >= 0 and hash_keys[bucket] != key:
        bucket = (bucket + 1) & mask
    return bucket


@inlined
def hash_table_bits(count: IntLike) -> np.uint64:
    """Return log2 of the size of a hash table for ``count`` keys, at most a quarter full."""
    bits = np.uint64(4)
    while np.int64(1) << np.int64(bits) < 4 * count:
        bits += np.uint64(1)
    return bits


class RowDraw(NamedTuple):
    """A draw without replacement from one row of an adjacency; scalars only.

    Attributes
    ----------
    key : uint64
        Key derived from the node's position.
    selection_key : uint64
        Key derived from the node's position for exponential-key selection.
    start, degree : int64
        First slot of the row, and its number of slots.
    num_draws : int64
        Number of neighbors to draw.
    base : int64
        Index of the first output in ``slots``.
    weights : uint64
        Address of the row's float32 weights; 0: draw uniformly.
    alias_threshold, alias_fraction : uint64
        Addresses of the row's alias table, uint64 and uint32; 0: all weights are equal and
        positive.
    nbr : uint64
        Address of the row's int64 neighbors, which are prefetched as they are drawn; 0: no
        prefetch.
    """

    key: np.uint64
    selection_key: np.uint64
    start: IntLike
    degree: IntLike
    num_draws: IntLike
    base: IntLike
    weights: np.uint64
    alias_threshold: np.uint64
    alias_fraction: np.uint64
    nbr: np.uint64


class DistinctScratch(NamedTuple):
    """Scratch arrays of draws without replacement, shared by the rows of a call.

    Attributes
    ----------
    direct_table : ndarray of int16, shape (MAX_DIRECT_DEGREE,)
        All zero between two rows.
    hash_keys : ndarray of int64, shape (2^k,), at least 16 and 4 * count
        All -1 between two rows.
    values : ndarray of int64, shape (2^k,)
    used_buckets : ndarray of int64, shape (count,)
    heap_keys : ndarray of float64, shape (count,)
    heap_tags : ndarray of int32, shape (count,)
        All zero.
    """

    direct_table: NDArray[np.int16]
    hash_keys: NDArray[np.int64]
    values: NDArray[np.int64]
    used_buckets: NDArray[np.int64]
    heap_keys: NDArray[np.float64]
    heap_tags: NDArray[np.int32]


@inlined
def shuffle(
    row: RowDraw,
    shift: np.uint64,
    scratch: DistinctScratch,
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw the first ``row.num_draws`` slots of a Fisher-Yates shuffle of a row.

    Only the touched elements of the shuffled array are stored.

    Parameters
    ----------
    row : RowDraw
    shift : uint64
        64 - k, for hash tables of 2^k buckets.
    scratch : DistinctScratch
    slots : ndarray of int64, out
        Written from ``row.base`` on.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call.
    """
    hash_keys, values, used_buckets = scratch.hash_keys, scratch.values, scratch.used_buckets
    if row.degree <= MAX_DIRECT_DEGREE:
        _shuffle_direct(row, scratch.direct_table, used_buckets, slots)
    else:
        for k in range(row.num_draws):
            if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                return
            chosen = k + np.int64(bounded(word(row.key, np.uint64(k)), np.uint64(row.degree - k)))
            chosen_bucket, k_bucket = (
                np.int64(find_hash_slot(hash_keys, chosen, shift)),
                np.int64(find_hash_slot(hash_keys, k, shift)),
            )
            # Position k is never read again: its value moves to the chosen position.
            chosen_value = (
                values[chosen_bucket] if hash_keys[chosen_bucket] >= 0 else np.int64(chosen)
            )
            k_value = values[k_bucket] if hash_keys[k_bucket] >= 0 else np.int64(k)
            hash_keys[chosen_bucket] = chosen
            values[chosen_bucket] = k_value
            used_buckets[k] = chosen_bucket
            slots[row.base + k] = row.start + chosen_value
        for k in range(row.num_draws):
            hash_keys[used_buckets[k]] = -1
    if row.nbr > 0:
        for k in range(row.num_draws):
            prefetch_at(row.nbr + (np.uint64(slots[row.base + k] - row.start) << _EIGHTS))


@inlined
def _shuffle_direct(
    row: RowDraw,
    direct_table: NDArray[np.int16],
    positions: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """Run `shuffle` on a row that fits in ``direct_table``.

    The table stores the XOR of the value at a position and the position: 0 for an untouched
    position. Hashing is a separate loop, which is vectorized, and the loops after it have no
    branches.
    """
    key, start, degree, base = row.key, row.start, row.degree, row.base
    for k in range(row.num_draws):
        k_th = np.uint64(k)
        positions[k] = np.int64(bounded_short(word(key, k_th), np.uint64(degree) - k_th) + k_th)
    for k in range(row.num_draws):
        chosen = positions[k]
        slots[base + k] = start + (np.int64(direct_table[chosen]) ^ chosen)
        direct_table[chosen] = np.int16(np.int64(direct_table[k]) ^ k ^ chosen)
    for k in range(row.num_draws):
        direct_table[positions[k]] = 0
