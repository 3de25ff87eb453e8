"""Images of what satisfies a condition: rows that do not are not there, and tables are made of those that do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphkit import alias
from graphkit.condition import Mask
from graphkit.index import build_index
from graphkit.jit import settled
from graphkit.times import sum_rows
from storaged.draw.version import Share
from storaged.store.image import EMPTY_U32, Adjacency, EdgeImage, NodeImage, Table

EDGE_BYTES = 52
"""Of an edge that is kept, and once more beside it: neighbor, id, weight, thresholds of its row and of its table, source."""
TIME_BYTES = 20
"""Of the same where it has a time: that, its place in the order, what its row weighs up to there."""
NODE_BYTES = 16
INDEX_BYTES = 48


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """The rows of one type in one part that satisfy a condition."""

    image: NodeImage | EdgeImage
    share: Share
    bytes: int
    """Of memory, beside the image that it is made of."""


def bytes_of_nodes(node: NodeImage, kept: int) -> int:
    """The memory that `nodes_kept` takes."""
    return kept * (NODE_BYTES + 4 + (0 if node.dense else INDEX_BYTES)) + node.rows


def bytes_of_edges(edge: EdgeImage, kept: int, *, both: bool) -> int:
    """The memory that `edges_kept` takes."""
    sides = [edge.out, edge.into] if both and edge.into is not None else [edge.out]
    return sum(kept * (EDGE_BYTES + TIME_BYTES * (side.when.size > 0)) + 16 * side.indptr.size for side in sides)


def nodes_kept(node: NodeImage, mask: Mask) -> Piece:
    """The nodes of a type that are marked.

    Parameters
    ----------
    node : NodeImage
    mask : bool[rows]
        Of rows; what is dead stays so.
    """
    if node.live.size:
        mask = mask & (node.live > 0)
    rows = np.flatnonzero(mask).astype(np.uint32)
    table = _table(rows, node.weights[rows] if node.weights.size else None)
    if not node.dense:
        index_ids, index_of = build_index(node.ids[rows])
        index_rows = rows[index_of] if rows.size else index_of
        node = replace(node, index_ids=index_ids, index_rows=index_rows)
    image = replace(node, count=rows.size, live=mask.astype(np.uint8), live_rows=rows, table=table, named={})
    return Piece(image=image, share=Share(count=rows.size, positive=table.size, weight=table.total), bytes=bytes_of_nodes(node, rows.size))


def edges_kept(edge: EdgeImage, out: Mask, into: Mask | None) -> Piece:
    """The edges of a type that are marked.

    Parameters
    ----------
    edge : EdgeImage
    out : bool[slots]
        Of the slots of ``edge.out``.
    into : bool[slots of edge.into] or None
        None: the in-copies are left out.
    """
    slots = np.flatnonzero(out)
    side = _side(edge.out, slots)
    table = _table(np.arange(slots.size, dtype=np.uint32), side.weights if side.weights.size else None, whole=True)
    image = replace(
        edge,
        out=side,
        into=None if into is None or edge.into is None else _side(edge.into, np.flatnonzero(into)),
        src_row=edge.src_row[slots],
        table=table,
        named={},
        indexes=(),
    )
    size = bytes_of_edges(edge, slots.size, both=into is not None)
    return Piece(image=image, share=Share(count=slots.size, positive=table.size, weight=table.total), bytes=size)


def _side(side: Adjacency, slots: NDArray[np.int64]) -> Adjacency:
    indptr = np.searchsorted(slots, side.indptr).astype(np.int64)
    kept = Adjacency(indptr=indptr, nbr=side.nbr[slots], eid=side.eid[slots])
    if side.when.size:
        kept = replace(kept, when=side.when[slots], order=_order(side, slots))
    if not side.weights.size:
        return kept
    weights = side.weights[slots]
    hot, cold, sums = alias.build_rows(indptr, weights)
    kept = replace(kept, weights=weights, sums=sums, hot=hot, cold=cold)
    if side.when.size:
        kept = replace(kept, time_sums=np.empty(slots.size, np.float64))
        sum_rows(settled(indptr), np.int64(0), np.int64(indptr.size - 1), settled(kept.order), settled(weights), kept.time_sums)
    return kept


def _order(side: Adjacency, slots: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The order by time of the slots that are kept, which get new numbers: what is left of an order is one."""
    number = np.full(side.nbr.size, side.nbr.size, np.uint32)
    number[slots] = np.arange(slots.size, dtype=np.uint32)
    ordered = number[side.order]
    return ordered[ordered < side.nbr.size] if slots.size < side.nbr.size else ordered


def _table(rows: NDArray[np.uint32], weights: NDArray[np.float32] | None, *, whole: bool = False) -> Table:
    """The table of these rows, where ``whole`` of all of an array's: by weight, or where there are none all alike."""
    if weights is None:
        return Table(size=rows.size, total=float(rows.size), row_of=EMPTY_U32 if whole else rows)
    positive = np.flatnonzero(weights > 0)
    drawn = weights[positive]
    row_of = EMPTY_U32 if whole and positive.size == rows.size else rows[positive]
    total = alias.neumaier(drawn)
    if drawn.size and drawn.min() == drawn.max():
        return Table(size=drawn.size, total=total, row_of=row_of)
    hot, cold = alias.thresholds(*alias.build(drawn))
    return Table(size=drawn.size, total=total, hot=hot, cold=cold, row_of=row_of)
