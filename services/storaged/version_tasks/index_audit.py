"""Audit of column indexes: every row once, in order, with tables that match the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.sort_keys import sort_keys
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_model.schema.index_columns import parse_column
from asterism_proto.errors import Corrupt
from storaged.build.alias_table import MAX_DISTANCE
from storaged.build.edge_indexes import fill_weight_trees
from storaged.store.column_index import (
    BLOCK_SIZES,
    OWN_WEIGHT_NAME,
    ColumnIndex,
    SortedEdges,
    level_block_sizes,
)
from storaged.store.image import AdjacencyImage, EdgeImage, NodeImage
from storaged.version_tasks import alias_audit

_CHUNK = BLOCK_SIZES[-1]


def check_index(
    location: str, index: ColumnIndex, node: NodeImage, live: int, weights: str
) -> None:
    """Compare a column index with the rows and the weights of its node type.

    Parameters
    ----------
    location : str
        Partition and type, for messages.
    index : ColumnIndex
    node : NodeImage
        The indexed nodes, with the audited weights in place of their own.
    live : int
        Number of live rows.
    weights : str
        Name of the weights; ``storaged.store.column_index.OWN_WEIGHT_NAME`` for the rows' own.

    Raises
    ------
    Corrupt
        The first fault.
    """

    _check(location, index, live, node.rows, node.live, node.weights, weights)


def check_edge_index(location: str, index: ColumnIndex, edge: EdgeImage, weights: str) -> None:
    """Compare a column index with the out-slots and the weights of its edge type.

    Parameters and errors are those of `check_index`.
    """
    slots = edge.outgoing.nbr.size
    _check(location, index, slots, slots, np.zeros(0, np.uint8), edge.outgoing.weights, weights)


def check_sorted_edges(
    location: str,
    index: ColumnIndex,
    side: AdjacencyImage,
    sorted_edges: SortedEdges,
    weights: str,
    runs: Sequence[tuple[int, int]],
) -> None:
    """Compare the order of each node's edges at one end with their values and weights.

    Parameters
    ----------
    location : str
        Partition and type, for messages.
    index : ColumnIndex
    side : AdjacencyImage
        Adjacency with the audited weights in place of its own.
    sorted_edges : SortedEdges
        Order of the edges of ``side``.
    weights : str
        Name of the weights.
    runs : sequence of (int, int)
        Consecutive ranges of rows.

    Raises
    ------
    Corrupt
        The first fault.
    """
    values = {**side.edge_columns, "id": side.eid, "weight": side.weights}[
        parse_column(index.column).name
    ]
    if sorted_edges.order.size != side.nbr.size or sorted_edges.keys.size != side.nbr.size:
        raise _index_error(
            location,
            index,
            f"the nodes have {sorted_edges.order.size} edges in order: expected {side.nbr.size}",
        )
    for low, high in runs:
        first, end = int(side.indptr[low]), int(side.indptr[high])
        span_text, bounds = (
            f"positions {first} to {end - 1} of the nodes' orders",
            as_kernel_array(side.indptr[low : high + 1] - first),
        )
        order = sorted_edges.order[first:end].astype(np.int64) - first
        rows = np.repeat(np.arange(high - low), np.diff(bounds))
        if order.size and not (
            int(order.min()) >= 0
            and int(order.max()) < order.size
            and np.array_equal(rows[order], rows)
        ):
            raise _index_error(location, index, f"{span_text} have an edge of another node")
        # The order is the same for all weight names; an indexed weight column is the rows' own.
        if weights == OWN_WEIGHT_NAME:
            keys = sort_keys(values[first:end] if values.size else np.ones(order.size, np.float32))[
                order
            ]
            if not np.array_equal(sorted_edges.keys[first:end], keys) or not np.array_equal(
                np.lexsort((order, keys, rows)), np.arange(order.size)
            ):
                raise _index_error(location, index, f"{span_text} are not in order")
            if order.size and int(np.bincount(order).max()) > 1:
                raise _index_error(location, index, f"{span_text} have an edge twice")
        if weights in sorted_edges.weight_trees:
            sums = np.empty(order.size, np.float64)
            fill_weight_trees(
                bounds,
                np.int64(0),
                np.int64(high - low),
                as_kernel_array(order.astype(np.uint32)),
                as_kernel_array(side.weights[first:end]),
                sums,
            )
            if not np.array_equal(sums, sorted_edges.weight_trees[weights][first:end]):
                raise _index_error(
                    location,
                    index,
                    f"{span_text} have other sums than those of their weights {weights!r}",
                )


def _index_error(location: str, index: ColumnIndex, problem: str) -> Corrupt:
    return Corrupt(f"{location}: the index on {index.name}: {problem}; build the version again")


def _check(
    location: str,
    index: ColumnIndex,
    live: int,
    total_rows: int,
    live_mask: NDArray[np.uint8],
    row_weights: NDArray[np.float32],
    weights: str,
) -> None:
    """Compare the order of rows in an index, and its tables, with the rows and their weights.

    The index must have ``live`` of ``total_rows`` rows: those in ``live_mask``, or all if that is
    empty. ``row_weights`` has the weight of each row.
    """

    def wrong(problem: str) -> Corrupt:
        return _index_error(location, index, problem)

    if index.rows.size != live:
        raise wrong(f"it has {index.rows.size} rows: expected {live}")
    seen = np.zeros(total_rows, np.bool_)
    for low in range(0, live, _CHUNK):
        rows = index.rows[low : low + _CHUNK]
        if int(rows.max(initial=0)) >= total_rows or (live_mask.size and not live_mask[rows].all()):
            raise wrong(f"a row among {low} to {low + rows.size - 1} does not exist")
        seen[rows] = True
    if int(np.count_nonzero(seen)) != live:
        raise wrong("a row occurs twice")
    for low in range(0, index.values.size, _CHUNK):
        keys = sort_keys(index.values[max(low - 1, 0) : low + _CHUNK])
        if (np.diff(keys) < 0).any():
            raise wrong(f"its values {low} to {low + keys.size - 1} are not in order")
    tables = index.tables.get(weights)
    for level, step in zip(
        tables.levels if tables is not None else (),
        level_block_sizes(live),
        strict=tables is not None,
    ):
        for low in range(0, live, _CHUNK):
            chunk_weights = as_kernel_array(row_weights[index.rows[low : low + _CHUNK]])
            bounds = as_kernel_array(
                np.append(np.arange(0, chunk_weights.size, step), chunk_weights.size)
            )
            max_errors, fault = alias_audit.new_outputs()
            blocks = slice(low // step, low // step + bounds.size - 1)
            alias_threshold, alias_fraction = (
                as_kernel_array(level.alias_threshold[low : low + chunk_weights.size]),
                as_kernel_array(level.alias_fraction[low : low + chunk_weights.size]),
            )
            alias_audit.audit_rows(
                bounds,
                chunk_weights,
                as_kernel_array(level.sums[blocks]),
                alias_threshold,
                alias_fraction,
                0.0,
                MAX_DISTANCE,
                max_errors,
                fault,
            )
            if fault[1]:
                raise wrong(
                    f"the table from row {low + int(fault[0]) * step} on does not match the "
                    f"weights {weights!r}"
                )
