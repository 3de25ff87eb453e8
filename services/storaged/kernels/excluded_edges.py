"""Search for excluded edges in the rows of nodes, and copies of rows without them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, f32_at, i64_at, inlined, is_set, kernel
from storaged.kernels.adjacency_rows import EID, INDPTR, NBR, WEIGHTS, WHEN

_STOP_CHECK_MASK = (1 << 16) - 1


class CopiedRows(NamedTuple):
    """Columns of copied edges, with capacity c.

    Attributes
    ----------
    nbr, eid : ndarray of int64, shape (c,)
    weights : ndarray of float32, shape (c,) or (0,)
        1 where the partition has no weights. Not written if empty.
    when : ndarray of int64, shape (c,) or (0,)
        Encoded times. Not written if empty.
    """

    nbr: NDArray[np.int64]
    eid: NDArray[np.int64]
    weights: NDArray[np.float32]
    when: NDArray[np.int64]


@inlined
def _first_slot(
    nbr: np.uint64,
    eid: np.uint64,
    start: IntLike,
    end: IntLike,
    neighbor: np.int64,
    edge_id: np.int64,
) -> IntLike:
    """Return the first slot of a row with a (neighbor, edge id) not below the given pair."""
    low, high = start, end
    while low < high:
        middle = (low + high) >> 1
        found = i64_at(nbr, middle)
        if found < neighbor or (found == neighbor and i64_at(eid, middle) < edge_id):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def mark_existing_edges(
    table: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    neighbors: NDArray[np.int64],
    edge_ids: NDArray[np.int64],
    out: NDArray[np.bool_],
) -> None:
    """Mark the entries for which the node has an edge.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows`.
    parts, rows : ndarray of int32 and of int64, shape (k,)
        As in `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no edges.
    neighbors, edge_ids : ndarray of int64, shape (k,)
        Remote end of an edge, and its id; any negative id stands for every edge to that neighbor.
    out : ndarray of bool, shape (k,), out
    """
    for i in range(rows.shape[0]):
        out[i] = False
        if rows[i] < 0:
            continue
        indptr, nbr, eid = (
            np.uint64(table[parts[i], INDPTR]),
            np.uint64(table[parts[i], NBR]),
            np.uint64(table[parts[i], EID]),
        )
        end = i64_at(indptr, rows[i] + 1)
        slot = _first_slot(nbr, eid, i64_at(indptr, rows[i]), end, neighbors[i], edge_ids[i])
        out[i] = (
            slot < end
            and i64_at(nbr, slot) == neighbors[i]
            and (edge_ids[i] < 0 or i64_at(eid, slot) == edge_ids[i])
        )


@kernel
def list_existing_slots(
    table: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    neighbors: NDArray[np.int64],
    edge_ids: NDArray[np.int64],
    indptr: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """List the slots of the edges of each entry.

    Parameters
    ----------
    table, parts, rows, neighbors, edge_ids
        As in `mark_existing_edges`.
    indptr : ndarray of int64, shape (k + 1,), out
        Offsets of each entry's slots.
    out : ndarray of int64, shape (n,) or (0,), out
        Slots; if empty, they are only counted.
    """
    total = np.int64(0)
    indptr[0] = 0
    for i in range(rows.shape[0]):
        if rows[i] >= 0:
            row_indptr, nbr, eid = (
                np.uint64(table[parts[i], INDPTR]),
                np.uint64(table[parts[i], NBR]),
                np.uint64(table[parts[i], EID]),
            )
            end = i64_at(row_indptr, rows[i] + 1)
            slot = _first_slot(
                nbr, eid, i64_at(row_indptr, rows[i]), end, neighbors[i], edge_ids[i]
            )
            while (
                slot < end
                and i64_at(nbr, slot) == neighbors[i]
                and (edge_ids[i] < 0 or i64_at(eid, slot) == edge_ids[i])
            ):
                if out.shape[0] > 0:
                    out[total] = slot
                total += 1
                slot += 1
        indptr[i + 1] = total


@kernel
def gather_slots(
    table: NDArray[np.int64],
    parts: NDArray[np.int32],
    slots: NDArray[np.int64],
    out_weights: NDArray[np.float64],
    out_eids: NDArray[np.int64],
) -> None:
    """Gather the weight and the edge id of slots.

    ``out_weights`` is float64[k], with 1 in a partition without weights; ``out_eids`` is int64[k].
    """
    for i in range(slots.shape[0]):
        weights = np.uint64(table[parts[i], WEIGHTS])
        out_weights[i] = np.float64(f32_at(weights, slots[i])) if weights > 0 else 1.0
        out_eids[i] = i64_at(np.uint64(table[parts[i], EID]), slots[i])


@kernel
def row_degrees(
    table: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Write the number of edges of located nodes: ``out`` is int64[m]."""
    for i in range(rows.shape[0]):
        indptr = np.uint64(table[parts[i], INDPTR])
        out[i] = i64_at(indptr, rows[i] + 1) - i64_at(indptr, rows[i])


@kernel
def copy_remaining_edges(
    table: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    entry_indptr: NDArray[np.int64],
    neighbors: NDArray[np.int64],
    edge_ids: NDArray[np.int64],
    indptr_out: NDArray[np.int64],
    out: CopiedRows,
    stop: NDArray[np.int64],
) -> None:
    """Copy the rows of some nodes, without their excluded edges.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows`.
    parts, rows : ndarray of int32 and of int64, shape (m,)
        Partition and row of each node, which exists.
    entry_indptr : ndarray of int64, shape (m + 1,)
        Offsets of each node's excluded edges.
    neighbors, edge_ids : ndarray of int64, shape (k,)
        Remote end and id of each excluded edge, ascending in a node; a negative id stands for
        every edge to that neighbor.
    indptr_out : ndarray of int64, shape (m + 1,), out
        Offsets of each node's remaining edges.
    out : CopiedRows
        Remaining edges, in stored order; sized for all edges of the nodes.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.
    """
    total = np.int64(0)
    indptr_out[0] = 0
    for i in range(rows.shape[0]):
        if is_set(stop):
            return
        part = parts[i]
        indptr, nbr, eid = (
            np.uint64(table[part, INDPTR]),
            np.uint64(table[part, NBR]),
            np.uint64(table[part, EID]),
        )
        weights, when = np.uint64(table[part, WEIGHTS]), np.uint64(table[part, WHEN])
        entry, last_entry = entry_indptr[i], entry_indptr[i + 1]
        for slot in range(i64_at(indptr, rows[i]), i64_at(indptr, rows[i] + 1)):
            if slot & _STOP_CHECK_MASK == _STOP_CHECK_MASK and is_set(stop):
                return
            neighbor, edge_id = i64_at(nbr, slot), i64_at(eid, slot)
            while entry < last_entry and (
                neighbors[entry] < neighbor
                or (
                    neighbors[entry] == neighbor
                    and edge_ids[entry] >= 0
                    and edge_ids[entry] < edge_id
                )
            ):
                entry += 1
            if (
                entry < last_entry
                and neighbors[entry] == neighbor
                and (edge_ids[entry] < 0 or edge_ids[entry] == edge_id)
            ):
                continue
            out.nbr[total], out.eid[total] = neighbor, edge_id
            if out.weights.shape[0] > 0:
                out.weights[total] = f32_at(weights, slot) if weights > 0 else np.float32(1.0)
            if out.when.shape[0] > 0:
                out.when[total] = i64_at(when, slot)
            total += 1
        indptr_out[i + 1] = total
