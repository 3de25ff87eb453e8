"""Neighbors without replacement of several edge types: one race over all of their edges, or over
the neighbors that these lead to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, f32_at, i64_at, is_set, kernel
from asterism_graphkit.random.rng import word
from storaged.kernels.exponential_race import exponential_key, keep_smallest, sort_heap


@kernel
def select_union_edges(
    selection_keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    degrees: NDArray[np.float64],
    count: np.int64,
    type_index: np.int32,
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    sizes: NDArray[np.int64],
    keys: NDArray[np.float64],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Run one edge type's neighbors through the nodes' races over a union of edge types.

    Parameters
    ----------
    selection_keys : uint64[m]
        Of the nodes' positions, under the race's key of this edge type.
    rows : int64[m]
        -1: no row.
    degrees : float64[m]
        Over all types of the union: nodes of at most ``count`` edges take them all, in order.
    count : int64
    type_index : int32
        Index of this edge type in the union.
    indptr : int64[rows + 1]
    weights : float32[slots]
        Empty: all 1.
    sizes : int64[m], in and out
        Neighbors kept so far.
    keys, type_indices, slots : float64[m * count], int32[m * count], int64[m * count], in and out
        A heap per node, its elements (key, type, slot).
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.
    """
    for i in range(rows.shape[0]):
        if rows[i] < 0:
            continue
        start = indptr[rows[i]]
        heap_slice = slice(i * count, (i + 1) * count)
        heap_keys, heap_types, heap_slots = (
            keys[heap_slice],
            type_indices[heap_slice],
            slots[heap_slice],
        )
        size = sizes[i]
        for slot in range(start, indptr[rows[i] + 1]):
            if slot & STOP_CHECK_MASK == 0 and is_set(stop):
                return
            weight = 1.0 if weights.shape[0] == 0 else np.float64(weights[slot])
            if not weight > 0.0:
                continue
            if degrees[i] <= count:
                heap_types[size] = type_index
                heap_slots[size] = slot
                size += 1
            else:
                edge_key = exponential_key(word(selection_keys[i], np.uint64(slot - start)), weight)
                if size == count and edge_key > heap_keys[0]:
                    continue
                size = np.int64(
                    keep_smallest(
                        heap_keys,
                        heap_types,
                        heap_slots,
                        heap_slots,
                        size,
                        edge_key,
                        type_index,
                        slot,
                        slot,
                    )
                )
        sizes[i] = size


@kernel
def sort_union(
    degrees: NDArray[np.float64],
    count: np.int64,
    sizes: NDArray[np.int64],
    keys: NDArray[np.float64],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Order the nodes' races and pad them with -1; arrays as in `select_union_edges`."""
    for i in range(sizes.shape[0]):
        heap_slice = slice(i * count, (i + 1) * count)
        if degrees[i] > count:
            sort_heap(
                keys[heap_slice],
                type_indices[heap_slice],
                slots[heap_slice],
                slots[heap_slice],
                sizes[i],
                stop,
            )
            if is_set(stop):
                return
        for k in range(sizes[i], count):
            slots[i * count + k] = -1
            type_indices[i * count + k] = -1


@kernel
def select_union_nodes(
    selection_keys: NDArray[np.uint64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    count: np.int64,
    remote_types: NDArray[np.int32],
    indptr: NDArray[np.uint64],
    nbr: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw edges of a union of edge types to different neighbors, in the order of successive draws.

    Parameters
    ----------
    selection_keys : uint64[types, m]
        Of the nodes' positions, under the race's key of each edge type; an edge's word is that of
        its place in the row.
    parts, rows : int32[m], int64[m]
        As of `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no neighbors.
    count : int64
    remote_types : int32[types]
        The node type that each edge type leads to: of two types the same id is two neighbors.
    indptr, nbr : uint64[types, P], uint64[types, P]
        Addresses of each part's int64[rows + 1] and int64[slots]; neighbors ascend within a row.
    weights : uint64[types, P]
        Addresses of float32[slots]; 0: all 1.
    type_indices, slots : int32[m * count], int64[m * count], out
        Edge types, as places in the union, and slots; padded with -1.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    The earliest of the edges to a neighbor counts for it: an exponential variable of the weight of
    all of them, and the edge that is earliest is each by its own weight among them. So the first m
    of n are the draws of m."""
    types = remote_types.shape[0]
    keys = np.empty(count, np.float64)
    cursors, row_ends = np.empty(types, np.int64), np.empty(types, np.int64)
    for i in range(rows.shape[0]):
        heap_slice = slice(i * count, (i + 1) * count)
        heap_types, heap_slots = type_indices[heap_slice], slots[heap_slice]
        size = np.int64(0)
        if is_set(stop):
            return
        if rows[i] >= 0:
            part = parts[i]
            for t in range(types):
                cursors[t], row_ends[t] = (
                    i64_at(indptr[t, part], rows[i]),
                    i64_at(indptr[t, part], rows[i] + 1),
                )
            iteration = 0
            while True:
                iteration += 1
                if iteration & STOP_CHECK_MASK == 0 and is_set(stop):
                    return
                # The next neighbor: the smallest id of the first type that has one left.
                lead_type = -1
                node = np.int64(0)
                for t in range(types):
                    if cursors[t] < row_ends[t] and (
                        lead_type < 0 or remote_types[t] == remote_types[lead_type]
                    ):
                        neighbor = i64_at(nbr[t, part], cursors[t])
                        if lead_type < 0 or neighbor < node:
                            lead_type, node = t, neighbor
                if lead_type < 0:
                    break
                min_key, kind, chosen = np.inf, np.int32(0), np.int64(0)
                for t in range(types):
                    if remote_types[t] != remote_types[lead_type]:
                        continue
                    start = i64_at(indptr[t, part], rows[i])
                    while cursors[t] < row_ends[t] and i64_at(nbr[t, part], cursors[t]) == node:
                        weight = (
                            1.0
                            if weights[t, part] == 0
                            else np.float64(f32_at(weights[t, part], cursors[t]))
                        )
                        if weight > 0.0:
                            edge_key = exponential_key(
                                word(selection_keys[t, i], np.uint64(cursors[t] - start)), weight
                            )
                            if edge_key < min_key:
                                min_key, kind, chosen = edge_key, np.int32(t), cursors[t]
                        cursors[t] += 1
                if min_key < np.inf and not (size == count and min_key > keys[0]):
                    size = np.int64(
                        keep_smallest(
                            keys,
                            heap_types,
                            heap_slots,
                            heap_slots,
                            size,
                            min_key,
                            kind,
                            chosen,
                            chosen,
                        )
                    )
            sort_heap(keys, heap_types, heap_slots, heap_slots, size, stop)
        for k in range(size, count):
            heap_types[k] = -1
            heap_slots[k] = -1
