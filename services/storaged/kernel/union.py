"""Neighbors without replacement of several edge types: one race over all of their edges, or over the neighbors that these lead to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import CHECK_MASK, f32_at, i64_at, is_set, kernel
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
    stop: NDArray[np.int64],
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
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.
    """
    for i in range(rows.shape[0]):
        if rows[i] < 0:
            continue
        start = indptr[rows[i]]
        own = slice(i * count, (i + 1) * count)
        own_keys, own_which, own_slots = keys[own], which[own], slots[own]
        size = sizes[i]
        for slot in range(start, indptr[rows[i] + 1]):
            if slot & CHECK_MASK == 0 and is_set(stop):
                return
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
    stop: NDArray[np.int64],
) -> None:
    """Order the nodes' races and pad them with -1; arrays as in `race_union`."""
    for i in range(sizes.shape[0]):
        own = slice(i * count, (i + 1) * count)
        if degrees[i] > count:
            finish(keys[own], which[own], slots[own], slots[own], sizes[i], stop)
            if is_set(stop):
                return
        for k in range(sizes[i], count):
            slots[i * count + k] = -1
            which[i * count + k] = -1


@kernel
def race_neighbors(
    race_keys: NDArray[np.uint64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    count: np.int64,
    ends: NDArray[np.int32],
    indptr: NDArray[np.uint64],
    nbr: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw edges of a union of edge types to different neighbors, in the order of successive draws.

    Parameters
    ----------
    race_keys : uint64[types, m]
        Of the nodes' positions, under the race's key of each edge type; an edge's word is that of its place in the row.
    parts, rows : int32[m], int64[m]
        As of `storaged.kernel.rows.locate`; a node of row -1 has no neighbors.
    count : int64
    ends : int32[types]
        The node type that each edge type leads to: of two types the same id is two neighbors.
    indptr, nbr : uint64[types, P], uint64[types, P]
        Addresses of each part's int64[rows + 1] and int64[slots]; neighbors ascend within a row.
    weights : uint64[types, P]
        Addresses of float32[slots]; 0: all 1.
    which, slots : int32[m * count], int64[m * count], out
        Edge types, as places in the union, and slots; padded with -1.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    The earliest of the edges to a neighbor counts for it: an exponential variable of the weight of all of them, and the edge that
    is earliest is each by its own weight among them. So the first m of n are the draws of m.
    """
    types = ends.shape[0]
    keys = np.empty(count, np.float64)
    at, stops = np.empty(types, np.int64), np.empty(types, np.int64)
    for i in range(rows.shape[0]):
        own = slice(i * count, (i + 1) * count)
        own_which, own_slots = which[own], slots[own]
        size = np.int64(0)
        if is_set(stop):
            return
        if rows[i] >= 0:
            part = parts[i]
            for t in range(types):
                at[t], stops[t] = i64_at(indptr[t, part], rows[i]), i64_at(indptr[t, part], rows[i] + 1)
            turn = 0
            while True:
                turn += 1
                if turn & CHECK_MASK == 0 and is_set(stop):
                    return
                # The next neighbor: the smallest id of the first type that has one left.
                lead = -1
                node = np.int64(0)
                for t in range(types):
                    if at[t] < stops[t] and (lead < 0 or ends[t] == ends[lead]):
                        here = i64_at(nbr[t, part], at[t])
                        if lead < 0 or here < node:
                            lead, node = t, here
                if lead < 0:
                    break
                first, kind, chosen = np.inf, np.int32(0), np.int64(0)
                for t in range(types):
                    if ends[t] != ends[lead]:
                        continue
                    start = i64_at(indptr[t, part], rows[i])
                    while at[t] < stops[t] and i64_at(nbr[t, part], at[t]) == node:
                        weight = 1.0 if weights[t, part] == 0 else np.float64(f32_at(weights[t, part], at[t]))
                        if weight > 0.0:
                            arrives = arrival(word(race_keys[t, i], np.uint64(at[t] - start)), weight)
                            if arrives < first:
                                first, kind, chosen = arrives, np.int32(t), at[t]
                        at[t] += 1
                if first < np.inf and not (size == count and first > keys[0]):
                    size = np.int64(offer(keys, own_which, own_slots, own_slots, size, first, kind, chosen, chosen))
            finish(keys, own_which, own_slots, own_slots, size, stop)
        for k in range(size, count):
            own_which[k] = -1
            own_slots[k] = -1
