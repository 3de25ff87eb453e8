"""Different neighbors: successive draws of nodes, each by all edges to it together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, IntLike, inlined, is_set, kernel
from asterism_graphkit.random.rng import bounded, word
from storaged.kernels.exponential_race import exponential_key, keep_smallest, sort_heap
from storaged.kernels.neighbors.distinct_edges import REJECTIONS
from storaged.kernels.neighbors.fisher_yates import find_hash_slot

_S32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@inlined
def _draw_with_rejection(
    key: np.uint64,
    start: IntLike,
    degree: IntLike,
    nbr: NDArray[np.int64],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    hash_keys: NDArray[np.int64],
    used_buckets: NDArray[np.int64],
    shift: np.uint64,
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Successive edges, those to a neighbor that there is already rejected; gives how many were
    found before too many in a row.
    """
    num_found = 0
    rejections = 0
    attempt = np.uint64(0)
    n = np.uint64(degree)
    while num_found < slots.shape[0] and rejections < REJECTIONS:
        w = word(key, attempt)
        attempt += np.uint64(1)
        if attempt & np.uint64(STOP_CHECK_MASK) == np.uint64(0) and is_set(stop):
            break
        column = start + np.int64(bounded(w, n))
        slot: IntLike = column
        if alias_threshold.shape[0] > 0:
            coin = w * n
            entry = alias_threshold[column]
            high, threshold = coin >> _S32, entry >> _S32
            if high > threshold or (
                high == threshold and (coin & _LOW) >= np.uint64(alias_fraction[column])
            ):
                slot = start + np.int64(entry & _LOW)
        bucket = find_hash_slot(hash_keys, np.int64(nbr[slot]), shift)
        if hash_keys[bucket] >= 0:
            rejections += 1
        else:
            hash_keys[bucket] = nbr[slot]
            used_buckets[num_found] = bucket
            slots[num_found] = slot
            num_found += 1
            rejections = 0
    return num_found


@inlined
def _select_rest(
    selection_key: np.uint64,
    start: IntLike,
    end: IntLike,
    nbr: NDArray[np.int64],
    weights: NDArray[np.float32],
    hash_keys: NDArray[np.int64],
    shift: np.uint64,
    keys: NDArray[np.float64],
    tags: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """A race of all edges to neighbors that are not marked, where the first edge to each counts;
    gives how many came in.
    """
    size = np.int64(0)
    slot, iteration = start, 0
    while slot < end:
        iteration += 1
        if iteration & STOP_CHECK_MASK == 0 and is_set(stop):
            return size
        node = nbr[slot]
        min_key = np.inf
        chosen = slot
        while slot < end and nbr[slot] == node:  # the edges to a neighbor lie side by side
            weight = 1.0 if weights.shape[0] == 0 else np.float64(weights[slot])
            if weight > 0.0:
                edge_key = exponential_key(word(selection_key, np.uint64(slot - start)), weight)
                if edge_key < min_key:
                    min_key = edge_key
                    chosen = slot
            slot += 1
        if (
            min_key < np.inf
            and not (size == slots.shape[0] and min_key > keys[0])
            and hash_keys[find_hash_slot(hash_keys, node, shift)] < 0
        ):
            size = np.int64(
                keep_smallest(keys, tags, slots, slots, size, min_key, np.int32(0), chosen, chosen)
            )
    sort_heap(keys, tags, slots, slots, size, stop)
    return size


@kernel
def draw_distinct_nodes(
    keys: NDArray[np.uint64],
    selection_keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    count: np.int64,
    indptr: NDArray[np.int64],
    nbr: NDArray[np.int64],
    weights: NDArray[np.float32],
    sums: NDArray[np.float64],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw edges of one edge type to different neighbors, in the order of successive draws.

    Parameters
    ----------
    keys : uint64[m]
        Of the nodes' positions, under ``key_of(seed, rng.NEIGHBOR, direction, hop)``.
    selection_keys : uint64[m]
        The same under the race's key of this edge type; an edge's word is that of its place in the
        row.
    rows : int64[m]
        -1: no row.
    count : int64
    indptr, nbr : int64[rows + 1], int64[slots]
        Neighbors ascend within a row.
    weights : float32[slots]
        Draw by these; empty: uniformly over edges.
    sums : float64[rows]
        Of the weights; read where there is a table.
    alias_threshold, alias_fraction : uint64[slots], uint32[slots]
        Per-row tables; empty: all edges are alike.
    slots : int64[m * count], out
        Padded with -1, where a row has fewer neighbors (by weight: of positive weight).
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    An edge is drawn by weight among those to neighbors that were not drawn: so a neighbor is drawn
    by the weight of all edges to it, and the edge by its own among them. Edges to neighbors that
    were drawn are rejected; after ``REJECTIONS`` in a row the rest follows by exponential keys, the
    earliest of which counts for each neighbor: it is an exponential variable of the neighbor's
    weight. What came before is kept. Neither depends on ``count``, so the first m of n are the
    draws of m."""
    bits = np.uint64(4)
    while np.int64(1) << np.int64(bits) < 4 * count:
        bits += np.uint64(1)
    shift = np.uint64(64) - bits
    hash_keys = np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64)
    used_buckets = np.empty(count, np.int64)
    heap_keys = np.empty(count, np.float64)
    heap_tags = np.zeros(count, np.int32)
    for i in range(rows.shape[0]):
        row_slots = slots[i * count : (i + 1) * count]
        num_found = np.int64(0)
        if rows[i] >= 0:
            start, end = indptr[rows[i]], indptr[rows[i] + 1]
            if end > start and (alias_threshold.shape[0] == 0 or sums[rows[i]] > 0.0):
                num_drawn = np.int64(
                    _draw_with_rejection(
                        keys[i],
                        start,
                        end - start,
                        nbr,
                        alias_threshold,
                        alias_fraction,
                        hash_keys,
                        used_buckets,
                        shift,
                        row_slots,
                        stop,
                    )
                )
                num_found = num_drawn
                if num_drawn < count:
                    remaining = count - num_drawn
                    heap = heap_keys[:remaining], heap_tags[:remaining], row_slots[num_drawn:]
                    num_found += np.int64(
                        _select_rest(
                            selection_keys[i],
                            start,
                            end,
                            nbr,
                            weights,
                            hash_keys,
                            shift,
                            *heap,
                            stop,
                        )
                    )
                if is_set(stop):
                    return
                for k in range(num_drawn):
                    hash_keys[used_buckets[k]] = -1
        for k in range(num_found, count):
            row_slots[k] = -1
