"""Successive draws without replacement among the matching edges of a row.

The matching edges form runs of a sorted order. Draws from an index and draws with a temporal filter
share these functions. Matching edges are numbered run by run, each run in its order. A *match
index* is such a number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, IntLike, f32_at, inlined, is_set, u32_at
from asterism_graphkit.random.rng import bounded, word
from storaged.kernels.adjacency_rows import ORDER, WEIGHTS
from storaged.kernels.exponential_keys import exponential_key, keep_smallest, sort_heap
from storaged.kernels.neighbors.fisher_yates import find_hash_slot


class Runs(NamedTuple):
    """Matching edges of one row.

    Attributes
    ----------
    types : ndarray of int64, shape (runs,)
        Edge type of each run, as an index into the union.
    starts : ndarray of int64, shape (runs,)
        First position of each run in the order of its edge type.
    sizes : ndarray of int64, shape (runs,)
        Number of edges of each run.
    """

    types: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


class SuccessiveScratch(NamedTuple):
    """Scratch arrays of successive draws, and the draws themselves.

    Attributes
    ----------
    hash_keys : ndarray of int64, shape (2^k,)
        Match indices that were drawn; all -1 between two rows.
    values : ndarray of int64, shape (2^k,)
    used_buckets : ndarray of int64, shape (count,)
    heap_keys : ndarray of float64, shape (count,)
    heap_tags : ndarray of int32, shape (count,)
        All zero.
    draws : ndarray of int64, shape (count,)
        Match indices drawn from a row.
    """

    hash_keys: NDArray[np.int64]
    values: NDArray[np.int64]
    used_buckets: NDArray[np.int64]
    heap_keys: NDArray[np.float64]
    heap_tags: NDArray[np.int32]
    draws: NDArray[np.int64]


@inlined
def match_weight(
    tables: NDArray[np.int64], part: IntLike, match_index: IntLike, runs: Runs
) -> float:
    """Return the weight of a matching edge.

    Parameters
    ----------
    tables : ndarray of int64, shape (types, P, COLUMNS)
        Address table for each edge type. ``ORDER`` is the order of the runs. Without ``WEIGHTS``
        every edge has weight 1.
    part, match_index : int64
    runs : Runs
    """
    types, starts, sizes = runs
    s, offset = np.int64(0), np.int64(match_index)
    while offset >= sizes[s]:
        offset -= sizes[s]
        s += 1
    weights = np.uint64(tables[types[s], part, WEIGHTS])
    if weights == 0:
        return 1.0
    order = np.uint64(tables[types[s], part, ORDER])
    return np.float64(f32_at(weights, u32_at(order, starts[s] + offset)))


@inlined
def shuffle_matches(
    key: np.uint64,
    match_count: IntLike,
    shift: np.uint64,
    scratch: SuccessiveScratch,
    stop: NDArray[np.int64],
) -> None:
    """Sample matches uniformly without replacement, by a partial Fisher-Yates shuffle.

    Only the touched elements of the shuffled array are stored.
    """
    hash_keys, values, used_buckets, draws = (
        scratch.hash_keys,
        scratch.values,
        scratch.used_buckets,
        scratch.draws,
    )
    count = draws.shape[0]
    for k in range(count):
        if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            return
        chosen = k + np.int64(bounded(word(key, np.uint64(k)), np.uint64(match_count - k)))
        k_bucket = np.int64(find_hash_slot(hash_keys, np.int64(k), shift))
        k_value = values[k_bucket] if hash_keys[k_bucket] >= 0 else np.int64(k)
        chosen_bucket = np.int64(find_hash_slot(hash_keys, np.int64(chosen), shift))
        draws[k] = values[chosen_bucket] if hash_keys[chosen_bucket] >= 0 else np.int64(chosen)
        hash_keys[chosen_bucket], values[chosen_bucket] = chosen, k_value
        used_buckets[k] = chosen_bucket
    for k in range(count):
        hash_keys[used_buckets[k]] = -1


@inlined
def record_draw(
    match_index: np.int64, num_found: np.int64, shift: np.uint64, scratch: SuccessiveScratch
) -> bool:
    """Record a match as draw ``num_found``; return whether it was not drawn before."""
    hash_keys = scratch.hash_keys
    bucket = np.int64(find_hash_slot(hash_keys, match_index, shift))
    if hash_keys[bucket] >= 0:
        return False
    hash_keys[bucket] = match_index
    scratch.used_buckets[num_found] = bucket
    scratch.draws[num_found] = match_index
    return True


@inlined
def select_undrawn(
    tables: NDArray[np.int64],
    part: IntLike,
    selection_key: np.uint64,
    match_count: IntLike,
    num_drawn: np.int64,
    runs: Runs,
    shift: np.uint64,
    scratch: SuccessiveScratch,
    stop: NDArray[np.int64],
) -> IntLike:
    """Complete a row's draws by exponential keys among undrawn matches; return the number.

    Also clears the hash table of drawn matches.
    """
    hash_keys, used_buckets, draws = scratch.hash_keys, scratch.used_buckets, scratch.draws
    count, num_found = draws.shape[0], num_drawn
    if num_drawn < count:
        rest_keys, tags, rest_draws = (
            scratch.heap_keys[: count - num_drawn],
            scratch.heap_tags[: count - num_drawn],
            draws[num_drawn:],
        )
        size = np.int64(0)
        for match_index in range(match_count):
            if match_index & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                return num_drawn
            weight = match_weight(tables, part, np.int64(match_index), runs)
            if (
                weight > 0.0
                and hash_keys[find_hash_slot(hash_keys, np.int64(match_index), shift)] < 0
            ):
                edge_key = exponential_key(word(selection_key, np.uint64(match_index)), weight)
                if size == rest_keys.shape[0] and edge_key > rest_keys[0]:
                    continue
                size = np.int64(
                    keep_smallest(
                        rest_keys,
                        tags,
                        rest_draws,
                        rest_draws,
                        size,
                        edge_key,
                        np.int32(0),
                        np.int64(match_index),
                        np.int64(match_index),
                    )
                )
        sort_heap(rest_keys, tags, rest_draws, rest_draws, size, stop)
        num_found = np.int64(num_drawn + size)
    for k in range(num_drawn):
        hash_keys[used_buckets[k]] = -1
    return num_found
