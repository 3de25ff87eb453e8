"""The heaviest slots of rows: one bounded heap a row, fed by one edge type after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import CHECK_MASK, inlined, is_set, kernel

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
F32 = NDArray[np.float32]


@inlined
def _behind(weights: F32, ids: I64, orders: I64, a: np.int64, b: np.int64) -> bool:
    """Whether entry a comes behind entry b: lighter; of equal weight, of a larger id; of equal id, met later."""
    if weights[a] != weights[b]:
        return bool(weights[a] < weights[b])
    if ids[a] != ids[b]:
        return bool(ids[a] > ids[b])
    return bool(orders[a] > orders[b])


@inlined
def _swap(weights: F32, ids: I64, orders: I64, which: I32, slots: I64, a: np.int64, b: np.int64) -> None:
    weights[a], weights[b] = weights[b], weights[a]
    ids[a], ids[b] = ids[b], ids[a]
    orders[a], orders[b] = orders[b], orders[a]
    which[a], which[b] = which[b], which[a]
    slots[a], slots[b] = slots[b], slots[a]


@inlined
def _sink(weights: F32, ids: I64, orders: I64, which: I32, slots: I64, base: np.int64, size: np.int64) -> None:
    """Let the root down: the entry that comes last stays on top."""
    at = np.int64(0)
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and _behind(weights, ids, orders, base + child + 1, base + child):
            child += 1
        if not _behind(weights, ids, orders, base + child, base + at):
            return
        _swap(weights, ids, orders, which, slots, base + at, base + child)
        at = child


@kernel
def feed(
    rows: I64,
    indptr: I64,
    nbr: I64,
    given: F32,
    mine: np.int32,
    count: np.int64,
    met: I64,
    sizes: I64,
    weights: F32,
    ids: I64,
    orders: I64,
    which: I32,
    slots: I64,
    stop: I64,
) -> None:
    """Offer every slot of one edge type to the heaps of its rows.

    Parameters
    ----------
    rows : int64[m]
        -1 is no row.
    indptr, nbr : int64[rows + 1], int64[slots]
    given : float32[slots]
        Weights; empty: all 1.
    mine : int32
        What ``which`` says of this edge type.
    count : int64
        Entries of a heap, at least 1.
    met : int64[m], inout
        How many slots each row was offered.
    sizes : int64[m], inout
    weights, ids, orders, which, slots : float32, int64, int64, int32, int64 [m * count], inout
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
            if slot & CHECK_MASK == 0 and is_set(stop):
                return
            weight = given[slot] if given.shape[0] > 0 else np.float32(1.0)
            order = met[i]
            met[i] += 1
            if sizes[i] == count:
                # Only what comes before the last one enters; of equal weight and id it was met later.
                if weight < weights[base] or (weight == weights[base] and nbr[slot] >= ids[base]):
                    continue
                weights[base], ids[base], orders[base], which[base], slots[base] = weight, nbr[slot], order, mine, slot
                _sink(weights, ids, orders, which, slots, base, count)
                continue
            at = sizes[i]
            sizes[i] += 1
            weights[base + at], ids[base + at], orders[base + at], which[base + at], slots[base + at] = weight, nbr[slot], order, mine, slot
            while at > 0:
                parent = (at - 1) // 2
                if not _behind(weights, ids, orders, base + at, base + parent):
                    break
                _swap(weights, ids, orders, which, slots, base + at, base + parent)
                at = parent


@kernel
def drain(count: np.int64, sizes: I64, weights: F32, ids: I64, orders: I64, which: I32, slots: I64, stop: I64) -> None:
    """Sort every heap in place, heaviest first; arrays and ``stop`` as of `feed`."""
    for i in range(sizes.shape[0]):
        base = np.int64(i) * count
        for size in range(sizes[i] - 1, 0, -1):
            if size & CHECK_MASK == 0 and is_set(stop):
                return
            _swap(weights, ids, orders, which, slots, base, base + size)
            _sink(weights, ids, orders, which, slots, base, np.int64(size))
