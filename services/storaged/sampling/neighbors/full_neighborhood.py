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
    """All neighbors of the nodes of a request, by (edge type as asked for, neighbor id, edge
    id).
    """

    indptr: NDArray[np.int64]
    """int64[m + 1]."""
    ids: NDArray[np.int64]
    """int64[k]."""
    types: NDArray[np.int32]
    """int32[k], edge types."""
    weights: NDArray[np.float32] | None
    """float32[k], when wanted."""
    eids: NDArray[np.int64] | None
    """int64[k], when wanted."""


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
    """All neighbors of each node; unknown nodes have none.

    Parameters
    ----------
    version, edge_types, node_type, ids, types, direction, want_weights, want_edge_ids
        As in `storaged.sampling.neighbors`.

    Raises
    ------
    InvalidRequest, Unavailable
        As there; also where the answer would be too large.
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
