"""Filtered images: only the matching rows exist, with tables built from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.time_keys import running_weight_sums
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.evaluate.filters import Mask
from asterism_graphkit.random import alias_build
from asterism_graphkit.relabel.hash_index import build_index
from asterism_model.partition_stats import PartitionTotals
from storaged.store.image import EMPTY_U32, AdjacencyImage, AliasTable, EdgeImage, NodeImage

EDGE_BYTES = 52
"""Memory per kept edge and side in bytes.

Neighbor, id, weight, thresholds of its row and of its table, and source.
"""
TIME_BYTES = 20
"""Additional memory per kept edge with a time in bytes.

The time, its place in the order, and the prefix sum of weights.
"""
NODE_BYTES = 16
INDEX_BYTES = 48


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilteredPart:
    """The rows of one type in one partition that match a filter."""

    image: NodeImage | EdgeImage
    totals: PartitionTotals
    bytes: int
    """Memory in bytes, in addition to that of the unfiltered image."""


def filtered_node_bytes(node: NodeImage, row_count: int) -> int:
    """Return the memory that `filter_nodes` needs, in bytes."""
    return row_count * (NODE_BYTES + 4 + (0 if node.dense else INDEX_BYTES)) + node.rows


def filtered_edge_bytes(edge: EdgeImage, edge_count: int, *, both_directions: bool) -> int:
    """Return the memory that `filter_edges` needs, in bytes."""
    sides = (
        [edge.outgoing, edge.incoming]
        if both_directions and edge.incoming is not None
        else [edge.outgoing]
    )
    return sum(
        edge_count * (EDGE_BYTES + TIME_BYTES * (side.when.size > 0)) + 16 * side.indptr.size
        for side in sides
    )


def filter_nodes(node: NodeImage, mask: Mask) -> FilteredPart:
    """Return the selected nodes of a type.

    Parameters
    ----------
    node : NodeImage
    mask : ndarray of bool, shape (rows,)
        Selected rows; deleted rows stay deleted.
    """
    if node.live.size:
        mask = mask & (node.live > 0)
    rows = np.flatnonzero(mask).astype(np.uint32)
    table = _table(rows, node.weights[rows] if node.weights.size else None)
    if not node.dense:
        index_ids, index_of = build_index(node.ids[rows])
        index_rows = rows[index_of] if rows.size else index_of
        node = replace(node, index_ids=index_ids, index_rows=index_rows)
    image = replace(
        node,
        count=rows.size,
        live=mask.astype(np.uint8),
        live_rows=rows,
        table=table,
        extra_weights={},
    )
    return FilteredPart(
        image=image,
        totals=PartitionTotals(count=rows.size, positive=table.size, weight=table.total),
        bytes=filtered_node_bytes(node, rows.size),
    )


def filter_edges(edge: EdgeImage, outgoing: Mask, incoming: Mask | None) -> FilteredPart:
    """Return the selected edges of a type.

    Parameters
    ----------
    edge : EdgeImage
    outgoing : ndarray of bool, shape (slots of ``edge.outgoing``,)
        Selected slots.
    incoming : ndarray of bool, shape (slots of ``edge.incoming``,), or None
        Selected slots; None leaves the in-copies out.
    """
    slots = np.flatnonzero(outgoing)
    side = _filter_side(edge.outgoing, slots)
    table = _table(
        np.arange(slots.size, dtype=np.uint32),
        side.weights if side.weights.size else None,
        all_rows=True,
    )
    image = replace(
        edge,
        outgoing=side,
        incoming=None
        if incoming is None or edge.incoming is None
        else _filter_side(edge.incoming, np.flatnonzero(incoming)),
        src_row=edge.src_row[slots],
        table=table,
        extra_weights={},
        indexes=(),
    )
    size = filtered_edge_bytes(edge, slots.size, both_directions=incoming is not None)
    return FilteredPart(
        image=image,
        totals=PartitionTotals(count=slots.size, positive=table.size, weight=table.total),
        bytes=size,
    )


def _filter_side(side: AdjacencyImage, slots: NDArray[np.int64]) -> AdjacencyImage:
    indptr = np.searchsorted(slots, side.indptr).astype(np.int64)
    filtered = AdjacencyImage(indptr=indptr, nbr=side.nbr[slots], eid=side.eid[slots])
    if side.when.size:
        filtered = replace(filtered, when=side.when[slots], order=_filter_time_order(side, slots))
    if not side.weights.size:
        return filtered
    weights = side.weights[slots]
    alias_thresholds, alias_fractions, sums = alias_build.build_rows(indptr, weights)
    filtered = replace(
        filtered, weights=weights, sums=sums, hot=alias_thresholds, cold=alias_fractions
    )
    if side.when.size:
        filtered = replace(filtered, time_sums=np.empty(slots.size, np.float64))
        running_weight_sums(
            as_kernel_array(indptr),
            np.int64(0),
            np.int64(indptr.size - 1),
            as_kernel_array(filtered.order),
            as_kernel_array(weights),
            filtered.time_sums,
        )
    return filtered


def _filter_time_order(side: AdjacencyImage, slots: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the order by time of the kept slots, renumbered.

    A subsequence of a sorted order is sorted.
    """
    new_slots = np.full(side.nbr.size, side.nbr.size, np.uint32)
    new_slots[slots] = np.arange(slots.size, dtype=np.uint32)
    ordered = new_slots[side.order]
    return ordered[ordered < side.nbr.size] if slots.size < side.nbr.size else ordered


def _table(
    rows: NDArray[np.uint32], weights: NDArray[np.float32] | None, *, all_rows: bool = False
) -> AliasTable:
    """Return the alias table of some rows; all weigh 1 if there are no weights.

    With ``all_rows``, they are all rows of an array, so row numbers are not stored.
    """
    if weights is None:
        return AliasTable(
            size=rows.size, total=float(rows.size), row_of=EMPTY_U32 if all_rows else rows
        )
    positive = np.flatnonzero(weights > 0)
    positive_weights = weights[positive]
    row_of = EMPTY_U32 if all_rows and positive.size == rows.size else rows[positive]
    total = alias_build.neumaier_sum(positive_weights)
    if positive_weights.size and positive_weights.min() == positive_weights.max():
        return AliasTable(size=positive_weights.size, total=total, row_of=row_of)
    alias_thresholds, alias_fractions = alias_build.pack_thresholds(
        *alias_build.build(positive_weights)
    )
    return AliasTable(
        size=positive_weights.size,
        total=total,
        hot=alias_thresholds,
        cold=alias_fractions,
        row_of=row_of,
    )
