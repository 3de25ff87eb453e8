"""Different neighbors drawn alike: sparse Fisher-Yates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, IntLike, inlined, is_set, prefetch_at
from asterism_graphkit.random.rng import GOLDEN, bounded, bounded_short, word

MAX_DIRECT_DEGREE = 1 << 12
"""Up to this degree what was drawn is noted under its place in the row; in a hash table beyond."""
_EIGHTS = np.uint64(3)


@inlined
def find_hash_slot(hash_keys: NDArray[np.int64], key: IntLike, shift: np.uint64) -> IntLike:
    """Where ``key`` stands in an open-addressing table of keys, or the free place where it
    would.
    """
    mask = hash_keys.shape[0] - 1
    bucket = np.int64((np.uint64(key) * GOLDEN) >> shift)
    while hash_keys[bucket] >= 0 and hash_keys[bucket] != key:
        bucket = (bucket + 1) & mask
    return bucket


@inlined
def shuffle(
    key: np.uint64,
    start: IntLike,
    degree: IntLike,
    count: IntLike,
    base: IntLike,
    shift: np.uint64,
    row_nbr: np.uint64,
    direct_table: NDArray[np.int16],
    hash_keys: NDArray[np.int64],
    values: NDArray[np.int64],
    used_buckets: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """The first ``count`` of a Fisher-Yates shuffle of a row, whose array is kept only where it was
    touched.
    """
    if degree <= MAX_DIRECT_DEGREE:
        _shuffle_direct(key, start, degree, count, base, direct_table, used_buckets, slots)
    else:
        for k in range(count):
            if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                return
            chosen = k + np.int64(bounded(word(key, np.uint64(k)), np.uint64(degree - k)))
            chosen_bucket, k_bucket = (
                np.int64(find_hash_slot(hash_keys, chosen, shift)),
                np.int64(find_hash_slot(hash_keys, k, shift)),
            )
            # Position k is never looked at again: what stood there goes to where the chosen one
            # was.
            chosen_value = (
                values[chosen_bucket] if hash_keys[chosen_bucket] >= 0 else np.int64(chosen)
            )
            k_value = values[k_bucket] if hash_keys[k_bucket] >= 0 else np.int64(k)
            hash_keys[chosen_bucket] = chosen
            values[chosen_bucket] = k_value
            used_buckets[k] = chosen_bucket
            slots[base + k] = start + chosen_value
        for k in range(count):
            hash_keys[used_buckets[k]] = -1
    if row_nbr > 0:
        for k in range(count):
            prefetch_at(row_nbr + (np.uint64(slots[base + k] - start) << _EIGHTS))


@inlined
def _shuffle_direct(
    key: np.uint64,
    start: IntLike,
    degree: IntLike,
    count: IntLike,
    base: IntLike,
    direct_table: NDArray[np.int16],
    positions: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """`shuffle` of a row that ``direct_table`` has room for: what stands at a place is noted as its
    difference to the place, 0 where it stands itself.

    Hashing is a loop of its own, which runs over several at once, and what follows it has no
    branch."""
    for k in range(count):
        k_th = np.uint64(k)
        positions[k] = np.int64(bounded_short(word(key, k_th), np.uint64(degree) - k_th) + k_th)
    for k in range(count):
        chosen = positions[k]
        slots[base + k] = start + (np.int64(direct_table[chosen]) ^ chosen)
        direct_table[chosen] = np.int16(np.int64(direct_table[k]) ^ k ^ chosen)
    for k in range(count):
        direct_table[positions[k]] = 0
