"""Neighbors without replacement of several edge types: one race over all of their edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import kernel
from graphkit.rng import word
from storaged.kernel.race import arrival, finish, offer


@kernel
def race_union(
    race_keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    degrees: NDArray[np.float64],
    count: np.int64,
    mine: np.int32,
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    sizes: NDArray[np.int64],
    keys: NDArray[np.float64],
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> None:
    """Run one edge type's neighbors through the nodes' races over a union of edge types.

    Parameters
    ----------
    race_keys : uint64[m]
        Of the nodes' positions, under the race's key of this edge type.
    rows : int64[m]
        -1: no row.
    degrees : float64[m]
        Over all types of the union: nodes of at most ``count`` edges take them all, in order.
    count : int64
    mine : int32
        Index of this edge type in the union.
    indptr : int64[rows + 1]
    weights : float32[slots]
        Empty: all 1.
    sizes : int64[m], in and out
        Neighbors kept so far.
    keys, which, slots : float64[m * count], int32[m * count], int64[m * count], in and out
        A heap per node, its elements (key, type, slot).
    """
    for i in range(rows.shape[0]):
        if rows[i] < 0:
            continue
        start = indptr[rows[i]]
        own = slice(i * count, (i + 1) * count)
        own_keys, own_which, own_slots = keys[own], which[own], slots[own]
        size = sizes[i]
        for slot in range(start, indptr[rows[i] + 1]):
            weight = 1.0 if weights.shape[0] == 0 else np.float64(weights[slot])
            if not weight > 0.0:
                continue
            if degrees[i] <= count:
                own_which[size] = mine
                own_slots[size] = slot
                size += 1
            else:
                at = arrival(word(race_keys[i], np.uint64(slot - start)), weight)
                if size == count and at > own_keys[0]:
                    continue
                size = np.int64(offer(own_keys, own_which, own_slots, own_slots, size, at, mine, slot, slot))
        sizes[i] = size


@kernel
def finish_union(
    degrees: NDArray[np.float64],
    count: np.int64,
    sizes: NDArray[np.int64],
    keys: NDArray[np.float64],
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> None:
    """Order the nodes' races and pad them with -1; arrays as in `race_union`."""
    for i in range(sizes.shape[0]):
        own = slice(i * count, (i + 1) * count)
        if degrees[i] > count:
            finish(keys[own], which[own], slots[own], slots[own], sizes[i])
        for k in range(sizes[i], count):
            slots[i * count + k] = -1
            which[i * count + k] = -1
