"""Edges from some nodes to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import settled
from storaged.draw.lookup import OUT, adjacency, checked_edge_types, groups_of
from storaged.draw.version import Version, checked_length, checked_outputs
from storaged.kernel.between import between
from storaged.store.image import EMPTY_F32, EMPTY_I64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Between:
    """The edges of each node of a request that lead to others, by (edge type as asked for, neighbor id, edge id, place)."""

    indptr: NDArray[np.int64]
    """int64[m + 1]."""
    cols: NDArray[np.int64]
    """int64[k], places of the far ends in the request."""
    types: NDArray[np.int32]
    """int32[k], edge types."""
    weights: NDArray[np.float32] | None
    """float32[k], when wanted."""
    eids: NDArray[np.int64] | None
    """int64[k], when wanted."""


def edges_between(
    version: Version,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    cols: NDArray[np.int64],
    col_types: NDArray[np.int32] | None = None,
    direction: int,
    want_weights: bool,
    want_edge_ids: bool,
) -> Between:
    """The edges of each node that lead to one of ``cols``; unknown nodes have none.

    Parameters
    ----------
    version, edge_types, node_type, ids, types, direction, want_weights, want_edge_ids
        As in `storaged.draw.neighbors`.
    cols : int64[c]
        Any nodes; -1 is none. One that is there several times has every edge as often.
    col_types : int32[c], optional
        Their types; left out where each edge type leads to the type that they are of.

    Raises
    ------
    InvalidRequest, Unavailable
        As there; also where the answer would be too large.
    """
    near = checked_edge_types(version, edge_types, node_type, direction)
    if col_types is not None:
        checked_length("col_types", col_types, cols.size)
    schema = version.schema
    ends = [schema.edge_types[edge_type] for edge_type in edge_types]
    far = [schema.node_type_id(edge.dst_type if direction == OUT else edge.src_type) for edge in ends]
    targets = {kind: _targets(cols, None if col_types is None else col_types == kind) for kind in set(far)}
    groups = list(groups_of(version, node_type, ids, types))

    def visit(
        cursor: NDArray[np.int64], places: NDArray[np.int64], kinds: NDArray[np.int32], weights: NDArray[np.float32], eids: NDArray[np.int64]
    ) -> None:
        for group in groups:
            for edge_type, end, kind in zip(edge_types, near, far, strict=True):
                if end == group.type_id:
                    edges = adjacency(group.image, edge_type, direction)
                    between(
                        group.rows, group.at, cursor, edges.indptr, edges.nbr, edges.eid, edges.weights, np.int32(edge_type), *targets[kind],
                        places, kinds, weights, eids,
                    )  # fmt: skip

    none_i32 = np.zeros(0, np.int32)
    counts = np.zeros(ids.size, np.int64)
    visit(counts, EMPTY_I64.copy(), none_i32, EMPTY_F32.copy(), EMPTY_I64.copy())
    indptr = np.zeros(ids.size + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    total = int(indptr[-1])
    checked_outputs("edges", total)
    found, kinds = np.empty(total, np.int64), np.empty(total, np.int32)
    weights, eids = np.empty(total if want_weights else 0, np.float32), np.empty(total if want_edge_ids else 0, np.int64)
    if total:
        visit(indptr[:-1].copy(), found, kinds, weights, eids)
    return Between(indptr=indptr, cols=found, types=kinds, weights=weights if want_weights else None, eids=eids if want_edge_ids else None)


def _targets(cols: NDArray[np.int64], of_type: NDArray[np.bool_] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids of nodes that there are, ascending, and their places in the request."""
    places = np.flatnonzero(cols >= 0 if of_type is None else (cols >= 0) & of_type)
    order = np.argsort(cols[places], kind="stable")
    return settled(cols[places][order]), settled(places[order])
