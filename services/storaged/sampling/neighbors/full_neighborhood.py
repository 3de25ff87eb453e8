"""Full neighborhoods: all edges of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from storaged.kernels import node_rows as kernel_rows
from storaged.sampling.node_lookup import (
    address_table,
    group_nodes,
    resolve_local_types,
    select_adjacency,
)
from storaged.sampling.version import LocalVersion, check_row_count
from storaged.store.image import EMPTY_F64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RaggedNeighbors:
    """All neighbors of the nodes of a request.

    They are ordered by (position of the edge type in the request, neighbor id, edge id).
    """

    indptr: NDArray[np.int64]
    """Row pointers: int64, shape (m + 1,)."""
    ids: NDArray[np.int64]
    """Neighbor ids: int64, shape (k,)."""
    types: NDArray[np.int32]
    """Edge types: int32, shape (k,)."""
    weights: NDArray[np.float32] | None
    """Weights, if requested: float32, shape (k,)."""
    eids: NDArray[np.int64] | None
    """Edge ids, if requested: int64, shape (k,)."""


def read_neighbors(
    version: LocalVersion,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    direction: int,
    want_weights: bool,
    want_edge_ids: bool,
) -> RaggedNeighbors:
    """Return all neighbors of each node; unknown nodes have none.

    Parameters
    ----------
    version : LocalVersion
    edge_types : sequence of int
        Edge types to follow.
    node_type : int
        Type of all ids; -1 if ``types`` has the type of each.
    ids : ndarray of int64, shape (m,)
    types : ndarray of int32, shape (m,), optional
        Node types, if ``node_type`` is -1; optional in a space of global ids.
    direction : int
        1 for out-edges, 2 for in-edges.
    want_weights, want_edge_ids : bool
        Return weights, return edge ids.

    Returns
    -------
    RaggedNeighbors

    Raises
    ------
    InvalidRequest
        A type or direction is invalid, or the reply would be too large.
    Unavailable
        A partition is not held here.
    """
    local_types = resolve_local_types(version, edge_types, node_type, direction)
    groups = list(group_nodes(version, node_type, ids, types))
    degrees = np.zeros(ids.size, np.int64)
    for group in groups:
        for edge_type, local_type in zip(edge_types, local_types, strict=True):
            if local_type == group.type_id:
                group_degrees = np.empty(group.rows.size, np.float64)
                kernel_rows.measure_rows(
                    group.rows,
                    select_adjacency(group.image, edge_type, direction).indptr,
                    as_kernel_array(EMPTY_F64),
                    group_degrees,
                )
                degrees[group.places] += group_degrees.astype(np.int64)
    indptr = np.zeros(ids.size + 1, np.int64)
    np.cumsum(degrees, out=indptr[1:])
    total = int(indptr[-1])
    check_row_count("neighbors", total, 12 + 4 * want_weights + 8 * want_edge_ids)
    out_ids, out_types = np.empty(total, np.int64), np.empty(total, np.int32)
    weights = np.empty(total if want_weights else 0, np.float32)
    eids = np.empty(total if want_edge_ids else 0, np.int64)
    cursor = indptr[:-1].copy()
    for group in groups:
        for edge_type, local_type in zip(edge_types, local_types, strict=True):
            if local_type == group.type_id:
                kernel_rows.copy_rows(
                    address_table(version, edge_type, direction)[group.image.part],
                    np.int32(edge_type),
                    group.rows,
                    group.places,
                    cursor,
                    out_ids,
                    out_types,
                    weights,
                    eids,
                )
    return RaggedNeighbors(
        indptr=indptr,
        ids=out_ids,
        types=out_types,
        weights=weights if want_weights else None,
        eids=eids if want_edge_ids else None,
    )
