"""The heaviest slots of rows: one bounded heap a row, fed by one edge type after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, inlined, is_set, kernel

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
F32 = NDArray[np.float32]


@inlined
def _ranks_after(weights: F32, ids: I64, orders: I64, a: np.int64, b: np.int64) -> bool:
    """Whether entry a comes behind entry b: lighter; of equal weight, of a larger id; of equal id,
    met later.
    """
    if weights[a] != weights[b]:
        return bool(weights[a] < weights[b])
    if ids[a] != ids[b]:
        return bool(ids[a] > ids[b])
    return bool(orders[a] > orders[b])


@inlined
def _swap(
    weights: F32, ids: I64, orders: I64, type_indices: I32, slots: I64, a: np.int64, b: np.int64
) -> None:
    weights[a], weights[b] = weights[b], weights[a]
    ids[a], ids[b] = ids[b], ids[a]
    orders[a], orders[b] = orders[b], orders[a]
    type_indices[a], type_indices[b] = type_indices[b], type_indices[a]
    slots[a], slots[b] = slots[b], slots[a]


@inlined
def _sift_down(
    weights: F32,
    ids: I64,
    orders: I64,
    type_indices: I32,
    slots: I64,
    base: np.int64,
    size: np.int64,
) -> None:
    """Let the root down: the entry that comes last stays on top."""
    pos = np.int64(0)
    while True:
        child = 2 * pos + 1
        if child >= size:
            return
        if child + 1 < size and _ranks_after(weights, ids, orders, base + child + 1, base + child):
            child += 1
        if not _ranks_after(weights, ids, orders, base + child, base + pos):
            return
        _swap(weights, ids, orders, type_indices, slots, base + pos, base + child)
        pos = child


@kernel
def push_edges(
    rows: I64,
    indptr: I64,
    nbr: I64,
    edge_weights: F32,
    type_index: np.int32,
    count: np.int64,
    push_counts: I64,
    sizes: I64,
    weights: F32,
    ids: I64,
    orders: I64,
    type_indices: I32,
    slots: I64,
    stop: I64,
) -> None:
    """Offer every slot of one edge type to the heaps of its rows.

    Parameters
    ----------
    rows : int64[m]
        -1 is no row.
    indptr, nbr : int64[rows + 1], int64[slots]
    edge_weights : float32[slots]
        Weights; empty: all 1.
    type_index : int32
        What ``type_indices`` says of this edge type.
    count : int64
        Entries of a heap, at least 1.
    push_counts : int64[m], inout
        How many slots each row was offered.
    sizes : int64[m], inout
    weights, ids, orders, type_indices, slots : float32, int64, int64, int32, int64 [m * count],
    inout
        The heaps, the entry to leave first on top.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        if row < 0:
            continue
        base = np.int64(i) * count
        for slot in range(indptr[row], indptr[row + 1]):
            if slot & STOP_CHECK_MASK == 0 and is_set(stop):
                return
            weight = edge_weights[slot] if edge_weights.shape[0] > 0 else np.float32(1.0)
            order = push_counts[i]
            push_counts[i] += 1
            if sizes[i] == count:
                # Only what comes before the last one enters; of equal weight and id it was met
                # later.
                if weight < weights[base] or (weight == weights[base] and nbr[slot] >= ids[base]):
                    continue
                weights[base], ids[base], orders[base], type_indices[base], slots[base] = (
                    weight,
                    nbr[slot],
                    order,
                    type_index,
                    slot,
                )
                _sift_down(weights, ids, orders, type_indices, slots, base, count)
                continue
            pos = sizes[i]
            sizes[i] += 1
            (
                weights[base + pos],
                ids[base + pos],
                orders[base + pos],
                type_indices[base + pos],
                slots[base + pos],
            ) = weight, nbr[slot], order, type_index, slot
            while pos > 0:
                parent = (pos - 1) // 2
                if not _ranks_after(weights, ids, orders, base + pos, base + parent):
                    break
                _swap(weights, ids, orders, type_indices, slots, base + pos, base + parent)
                pos = parent


@kernel
def sort_heaps(
    count: np.int64,
    sizes: I64,
    weights: F32,
    ids: I64,
    orders: I64,
    type_indices: I32,
    slots: I64,
    stop: I64,
) -> None:
    """Sort every heap in place, heaviest first; arrays and ``stop`` as of `push_edges`."""
    for i in range(sizes.shape[0]):
        base = np.int64(i) * count
        for size in range(sizes[i] - 1, 0, -1):
            if size & STOP_CHECK_MASK == 0 and is_set(stop):
                return
            _swap(weights, ids, orders, type_indices, slots, base, base + size)
            _sift_down(weights, ids, orders, type_indices, slots, base, np.int64(size))
