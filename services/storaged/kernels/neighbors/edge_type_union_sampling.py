"""Neighbor sampling without replacement from a union of edge types.

Uses one exponential-key selection over all of their edges, or over all distinct neighbors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, f32_at, i64_at, inlined, is_set, kernel
from asterism_graphkit.random.rng import word
from storaged.kernels.adjacency_rows import INDPTR, NBR, WEIGHTS
from storaged.kernels.exponential_keys import exponential_key, keep_smallest, sort_heap


@inlined
def _slot_weight(weights: np.uint64, slot: np.int64) -> float:
    """Return the weight of a slot; it is 1 if the address of the weights is 0."""
    return 1.0 if weights == 0 else np.float64(f32_at(weights, slot))


@inlined
def _select_edges(
    tables: NDArray[np.int64],
    selection_keys: NDArray[np.uint64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    keys: NDArray[np.float64],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Run `select_union_edges` with an existing scratch array: ``keys``, float64[count]."""
    types, count = tables.shape[0], keys.shape[0]
    for i in range(rows.shape[0]):
        heap_slice = slice(i * count, (i + 1) * count)
        heap_types, heap_slots = type_indices[heap_slice], slots[heap_slice]
        size, degree = np.int64(0), np.int64(0)
        if is_set(stop):
            return
        if rows[i] >= 0:
            part = parts[i]
            for t in range(types):
                indptr = np.uint64(tables[t, part, INDPTR])
                degree += i64_at(indptr, rows[i] + 1) - i64_at(indptr, rows[i])
            for t in range(types):
                indptr = np.uint64(tables[t, part, INDPTR])
                weights = np.uint64(tables[t, part, WEIGHTS])
                start = i64_at(indptr, rows[i])
                for slot in range(start, i64_at(indptr, rows[i] + 1)):
                    if slot & STOP_CHECK_MASK == 0 and is_set(stop):
                        return
                    weight = _slot_weight(weights, np.int64(slot))
                    if not weight > 0.0:
                        continue
                    if degree <= count:
                        heap_types[size] = t
                        heap_slots[size] = slot
                        size += 1
                        continue
                    edge_key = exponential_key(
                        word(selection_keys[t, i], np.uint64(slot - start)), weight
                    )
                    if size == count and edge_key > keys[0]:
                        continue
                    size = np.int64(
                        keep_smallest(
                            keys,
                            heap_types,
                            heap_slots,
                            heap_slots,
                            size,
                            edge_key,
                            np.int32(t),
                            np.int64(slot),
                            np.int64(slot),
                        )
                    )
            if degree > count:
                sort_heap(keys, heap_types, heap_slots, heap_slots, size, stop)
        for k in range(size, count):
            heap_types[k] = -1
            heap_slots[k] = -1


@kernel
def select_union_edges(
    tables: NDArray[np.int64],
    count: np.int64,
    selection_keys: NDArray[np.uint64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Sample edges of a union of edge types without replacement.

    The edges are in the order of successive draws. The method is that of Efraimidis & Spirakis
    2006.

    Parameters
    ----------
    tables : ndarray of int64, shape (types, P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows` for each edge type; without ``WEIGHTS``
        every edge has weight 1.
    count : int64
        Edges per node. A node of at most ``count`` edges gets all of them (by weight: those of
        positive weight), in stored order.
    selection_keys : ndarray of uint64, shape (types, m)
        Keys of the nodes' tags, derived from the selection key of each edge type. The word of
        an edge is that of its offset in the row.
    parts : ndarray of int32, shape (m,)
    rows : ndarray of int64, shape (m,)
        As in `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no neighbors.
    type_indices : ndarray of int32, shape (m * count,), out
        Edge types, as indices into the union; padded with -1.
    slots : ndarray of int64, shape (m * count,), out
        Padded with -1.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.
    """
    keys = np.empty(count, np.float64)
    _select_edges(tables, selection_keys, parts, rows, keys, type_indices, slots, stop)


class _Scratch(NamedTuple):
    """Scratch arrays of `select_union_nodes`.

    Attributes
    ----------
    keys : ndarray of float64, shape (count,)
    cursors, row_ends : ndarray of int64, shape (types,)
        Next slot of each edge type in a row, and the slot after the last.
    """

    keys: NDArray[np.float64]
    cursors: NDArray[np.int64]
    row_ends: NDArray[np.int64]


@inlined
def _select_nodes(
    tables: NDArray[np.int64],
    selection_keys: NDArray[np.uint64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    remote_types: NDArray[np.int32],
    scratch: _Scratch,
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Run `select_union_nodes` with existing scratch arrays."""
    keys, cursors, row_ends = scratch
    types, count = remote_types.shape[0], keys.shape[0]
    for i in range(rows.shape[0]):
        heap_slice = slice(i * count, (i + 1) * count)
        heap_types, heap_slots = type_indices[heap_slice], slots[heap_slice]
        size = np.int64(0)
        if is_set(stop):
            return
        if rows[i] >= 0:
            part = parts[i]
            for t in range(types):
                indptr = np.uint64(tables[t, part, INDPTR])
                cursors[t], row_ends[t] = i64_at(indptr, rows[i]), i64_at(indptr, rows[i] + 1)
            iteration = 0
            while True:
                iteration += 1
                if iteration & STOP_CHECK_MASK == 0 and is_set(stop):
                    return
                # Next neighbor: the smallest id of the first node type with neighbors left.
                lead_type = -1
                node = np.int64(0)
                for t in range(types):
                    if cursors[t] < row_ends[t] and (
                        lead_type < 0 or remote_types[t] == remote_types[lead_type]
                    ):
                        neighbor = i64_at(np.uint64(tables[t, part, NBR]), cursors[t])
                        if lead_type < 0 or neighbor < node:
                            lead_type, node = t, neighbor
                if lead_type < 0:
                    break
                min_key, kind, chosen = np.inf, np.int32(0), np.int64(0)
                for t in range(types):
                    if remote_types[t] != remote_types[lead_type]:
                        continue
                    nbr, weights = (
                        np.uint64(tables[t, part, NBR]),
                        np.uint64(tables[t, part, WEIGHTS]),
                    )
                    start = i64_at(np.uint64(tables[t, part, INDPTR]), rows[i])
                    while cursors[t] < row_ends[t] and i64_at(nbr, cursors[t]) == node:
                        weight = _slot_weight(weights, cursors[t])
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


@kernel
def select_union_nodes(
    tables: NDArray[np.int64],
    count: np.int64,
    selection_keys: NDArray[np.uint64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    remote_types: NDArray[np.int32],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Sample edges of a union of edge types to distinct neighbors.

    The edges are in the order of successive draws.

    Parameters
    ----------
    tables, count, selection_keys, parts, rows, type_indices, slots, stop
        As in `select_union_edges`; neighbors ascend within a row.
    remote_types : ndarray of int32, shape (types,)
        Node type that each edge type leads to. The same id of two node types is two neighbors.

    Notes
    -----
    The smallest key of the edges to a neighbor counts. It is an exponential variable with their
    total weight as its rate, and it belongs to each edge in proportion to the edge's weight. The
    first m of n draws are therefore the draws of a request for m.
    """
    types = remote_types.shape[0]
    keys, cursors = np.empty(count, np.float64), np.empty(types, np.int64)
    scratch = _Scratch(keys, cursors, np.empty(types, np.int64))
    _select_nodes(
        tables, selection_keys, parts, rows, remote_types, scratch, type_indices, slots, stop
    )
