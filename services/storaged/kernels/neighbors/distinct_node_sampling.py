"""Sampling of distinct neighbors: successive draws by the total weight of their edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    STOP_CHECK_MASK,
    IntLike,
    f32_at,
    f64_at,
    i64_at,
    inlined,
    is_set,
    kernel,
    u32_at,
    u64_at,
)
from asterism_graphkit.random.rng import bounded, derive_mixed, word
from storaged.kernels.adjacency_rows import (
    ALIAS_FRACTION,
    ALIAS_THRESHOLD,
    INDPTR,
    NBR,
    SUMS,
    WEIGHTS,
)
from storaged.kernels.exponential_keys import exponential_key, keep_smallest, sort_heap
from storaged.kernels.neighbors.distinct_edge_sampling import REJECTIONS, DistinctParams
from storaged.kernels.neighbors.fisher_yates import find_hash_slot, hash_table_bits

_S32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


class _Scratch(NamedTuple):
    """Scratch arrays of a call.

    Attributes
    ----------
    hash_keys : ndarray of int64, shape (2^k,)
        Ids of the drawn neighbors; all -1 between two rows.
    used_buckets : ndarray of int64, shape (count,)
    heap_keys : ndarray of float64, shape (count,)
    heap_tags : ndarray of int32, shape (count,)
        All zero.
    """

    hash_keys: NDArray[np.int64]
    used_buckets: NDArray[np.int64]
    heap_keys: NDArray[np.float64]
    heap_tags: NDArray[np.int32]


@inlined
def _draw_with_rejection(
    addresses: NDArray[np.int64],
    key: np.uint64,
    start: IntLike,
    degree: IntLike,
    shift: np.uint64,
    scratch: _Scratch,
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Sample edges and reject those to a neighbor already drawn; return the number found.

    Ends with enough edges, or after too many consecutive rejections.
    """
    hash_keys, used_buckets = scratch.hash_keys, scratch.used_buckets
    nbr, alias_threshold, alias_fraction = (
        np.uint64(addresses[NBR]),
        np.uint64(addresses[ALIAS_THRESHOLD]),
        np.uint64(addresses[ALIAS_FRACTION]),
    )
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
        if alias_threshold > 0:
            coin = w * n
            entry = u64_at(alias_threshold, column)
            high, threshold = coin >> _S32, entry >> _S32
            if high > threshold or (
                high == threshold and (coin & _LOW) >= np.uint64(u32_at(alias_fraction, column))
            ):
                slot = start + np.int64(entry & _LOW)
        neighbor = i64_at(nbr, slot)
        bucket = find_hash_slot(hash_keys, neighbor, shift)
        if hash_keys[bucket] >= 0:
            rejections += 1
        else:
            hash_keys[bucket] = neighbor
            used_buckets[num_found] = bucket
            slots[num_found] = slot
            num_found += 1
            rejections = 0
    return num_found


@inlined
def _select_rest(
    addresses: NDArray[np.int64],
    selection_key: np.uint64,
    start: IntLike,
    end: IntLike,
    shift: np.uint64,
    num_drawn: IntLike,
    scratch: _Scratch,
    row_slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Select by exponential keys among the edges to neighbors not drawn; return their number.

    The edge with the smallest key counts for each neighbor.
    """
    remaining = row_slots.shape[0] - num_drawn
    keys, tags, slots, hash_keys = (
        scratch.heap_keys[:remaining],
        scratch.heap_tags[:remaining],
        row_slots[num_drawn:],
        scratch.hash_keys,
    )
    nbr, weights = np.uint64(addresses[NBR]), np.uint64(addresses[WEIGHTS])
    size = np.int64(0)
    slot, iteration = start, 0
    while slot < end:
        iteration += 1
        if iteration & STOP_CHECK_MASK == 0 and is_set(stop):
            return size
        node = i64_at(nbr, slot)
        min_key = np.inf
        chosen = slot
        while slot < end and i64_at(nbr, slot) == node:  # the edges to a neighbor are adjacent
            weight = 1.0 if weights == 0 else np.float64(f32_at(weights, slot))
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


@inlined
def _draw_rows(
    table: NDArray[np.int64],
    params: DistinctParams,
    tags: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    scratch: _Scratch,
    shift: np.uint64,
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Run `draw_distinct_nodes` with existing scratch arrays."""
    count = params.num_draws
    for i in range(rows.shape[0]):
        row_slots = slots[i * count : (i + 1) * count]
        num_found = np.int64(0)
        if rows[i] >= 0:
            addresses = table[parts[i]]
            indptr, tag = np.uint64(addresses[INDPTR]), np.uint64(tags[i])
            start, end = i64_at(indptr, rows[i]), i64_at(indptr, rows[i] + 1)
            if end > start and (
                addresses[ALIAS_THRESHOLD] == 0 or f64_at(np.uint64(addresses[SUMS]), rows[i]) > 0.0
            ):
                num_drawn = np.int64(
                    _draw_with_rejection(
                        addresses,
                        derive_mixed(params.key, tag),
                        start,
                        end - start,
                        shift,
                        scratch,
                        row_slots,
                        stop,
                    )
                )
                num_found = num_drawn
                if num_drawn < count:
                    num_found += np.int64(
                        _select_rest(
                            addresses,
                            derive_mixed(params.selection_key, tag),
                            start,
                            end,
                            shift,
                            num_drawn,
                            scratch,
                            row_slots,
                            stop,
                        )
                    )
                if is_set(stop):
                    return
                for k in range(num_drawn):
                    scratch.hash_keys[scratch.used_buckets[k]] = -1
        for k in range(num_found, count):
            row_slots[k] = -1


@kernel
def draw_distinct_nodes(
    table: NDArray[np.int64],
    params: DistinctParams,
    tags: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Sample edges of one edge type to distinct neighbors, in the order of successive draws.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows`. Neighbors ascend within a row. Without
        ``WEIGHTS`` draws are uniform over edges; without ``ALIAS_THRESHOLD`` all edges have the
        same weight.
    params : DistinctParams
    tags : ndarray of int64, shape (m,)
        Tags that key the nodes' draws, from `storaged.kernels.node_rows.node_tags`.
    parts : ndarray of int32, shape (m,)
    rows : ndarray of int64, shape (m,)
        As in `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no neighbors.
    slots : ndarray of int64, shape (m * count,), out
        Padded with -1 if a row has fewer neighbors (by weight: neighbors of positive weight).
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.

    Notes
    -----
    An edge is drawn by weight among the edges to neighbors that were not drawn. So a neighbor is
    drawn by the total weight of the edges to it, and the edge by its weight among them. Edges to
    neighbors already drawn are rejected. After ``REJECTIONS`` consecutive rejections the rest is
    selected by exponential keys (Efraimidis & Spirakis 2006). The smallest key of the edges to a
    neighbor counts: it is an exponential variable with the neighbor's weight as its rate. The
    earlier draws are kept. Neither step depends on ``count``, so the first m of n draws are the
    draws of a request for m.
    """
    count = params.num_draws
    bits = hash_table_bits(count)
    scratch = _Scratch(
        np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.float64),
        np.zeros(count, np.int32),
    )
    shift = np.uint64(64) - bits
    _draw_rows(table, params, tags, parts, rows, scratch, shift, slots, stop)
