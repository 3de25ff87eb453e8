"""Select the heaviest edges of rows: one bounded heap per row, over all edge types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    STOP_CHECK_MASK,
    IntLike,
    f32_at,
    i64_at,
    inlined,
    is_set,
    kernel,
)
from storaged.kernels.adjacency_rows import INDPTR, NBR, WEIGHTS

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
F32 = NDArray[np.float32]


@inlined
def _ranks_after(weights: F32, ids: I64, orders: I64, a: np.int64, b: np.int64) -> bool:
    """Return whether entry a ranks after entry b: by weight, descending, by id, then by order."""
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
    weights: F32, ids: I64, orders: I64, type_indices: I32, slots: I64, size: np.int64
) -> None:
    """Sift the root down, so that the entry that ranks last is on top."""
    pos = np.int64(0)
    while True:
        child = 2 * pos + 1
        if child >= size:
            return
        if child + 1 < size and _ranks_after(weights, ids, orders, child + 1, child):
            child += 1
        if not _ranks_after(weights, ids, orders, child, pos):
            return
        _swap(weights, ids, orders, type_indices, slots, pos, child)
        pos = child


@inlined
def _select_row(
    tables: I64,
    part: IntLike,
    row: IntLike,
    weights: F32,
    ids: I64,
    orders: I64,
    type_indices: I32,
    slots: I64,
    stop: I64,
) -> IntLike:
    """Select and sort the heaviest edges of one row; return their number.

    The heap has the entry that ranks last on top.
    """
    count, size, num_seen = orders.shape[0], np.int64(0), np.int64(0)
    for t in range(tables.shape[0]):
        indptr, nbr, edge_weights = (
            np.uint64(tables[t, part, INDPTR]),
            np.uint64(tables[t, part, NBR]),
            np.uint64(tables[t, part, WEIGHTS]),
        )
        for slot in range(i64_at(indptr, row), i64_at(indptr, row + 1)):
            if slot & STOP_CHECK_MASK == 0 and is_set(stop):
                return size
            weight = f32_at(edge_weights, slot) if edge_weights > 0 else np.float32(1.0)
            neighbor, order = i64_at(nbr, slot), num_seen
            num_seen += 1
            if size == count:
                # Only an entry that ranks before the top one enters. With equal weight and id it
                # ranks after, since it was seen later.
                if weight < weights[0] or (weight == weights[0] and neighbor >= ids[0]):
                    continue
                weights[0], ids[0], orders[0], type_indices[0], slots[0] = (
                    weight,
                    neighbor,
                    order,
                    t,
                    slot,
                )
                _sift_down(weights, ids, orders, type_indices, slots, size)
                continue
            pos = size
            size += 1
            weights[pos], ids[pos], orders[pos], type_indices[pos], slots[pos] = (
                weight,
                neighbor,
                order,
                t,
                slot,
            )
            while pos > 0:
                parent = (pos - 1) // 2
                if not _ranks_after(weights, ids, orders, pos, parent):
                    break
                _swap(weights, ids, orders, type_indices, slots, pos, parent)
                pos = parent
    for last in range(size - 1, 0, -1):
        if last & STOP_CHECK_MASK == 0 and is_set(stop):
            return size
        _swap(weights, ids, orders, type_indices, slots, np.int64(0), np.int64(last))
        _sift_down(weights, ids, orders, type_indices, slots, np.int64(last))
    return size


@inlined
def _select_rows(
    tables: I64,
    parts: I32,
    rows: I64,
    sizes: I64,
    weights: F32,
    ids: I64,
    orders: I64,
    type_indices: I32,
    slots: I64,
    stop: I64,
) -> None:
    """Run `select_top_edges` with an existing scratch array: ``orders``, int64[count]."""
    count = orders.shape[0]
    for i in range(rows.shape[0]):
        sizes[i] = 0
        if rows[i] < 0:
            continue
        heap_slice = slice(i * count, (i + 1) * count)
        sizes[i] = _select_row(
            tables,
            parts[i],
            rows[i],
            weights[heap_slice],
            ids[heap_slice],
            orders,
            type_indices[heap_slice],
            slots[heap_slice],
            stop,
        )
        if is_set(stop):
            return


@kernel
def select_top_edges(
    tables: I64,
    count: np.int64,
    parts: I32,
    rows: I64,
    sizes: I64,
    weights: F32,
    ids: I64,
    type_indices: I32,
    slots: I64,
    stop: I64,
) -> None:
    """Select the heaviest edges of each node over a union of edge types, heaviest first.

    Parameters
    ----------
    tables : ndarray of int64, shape (types, P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows` for each edge type; without ``WEIGHTS``
        every edge has weight 1.
    count : int64
        Maximum number of edges per node, at least 1.
    parts : ndarray of int32, shape (m,)
    rows : ndarray of int64, shape (m,)
        As in `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no edges.
    sizes : ndarray of int64, shape (m,), out
        Number of selected edges of each node. The elements of the other outputs after them are
        undefined.
    weights, ids : ndarray of float32 and of int64, shape (m * count,), out
        Weights and neighbors.
    type_indices, slots : ndarray of int32 and of int64, shape (m * count,), out
        Edge types, as indices into the union, and slots.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.
    """
    orders = np.empty(count, np.int64)
    _select_rows(tables, parts, rows, sizes, weights, ids, orders, type_indices, slots, stop)
