"""Top-k neighbors by weight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_proto.errors import InvalidRequest
from storaged.kernels.adjacency_rows import EID
from storaged.kernels.neighbors import top_k as kernel
from storaged.kernels.neighbors.with_replacement import gather_ids, gather_params
from storaged.sampling.cancellation import (
    BLOCK_NODES,
    Checkpoint,
    StopFlag,
    blocks,
    no_checkpoint,
    nodes_per_block,
)
from storaged.sampling.neighbors.degrees import type_weights
from storaged.sampling.neighbors.full_neighborhood import RaggedNeighbors
from storaged.sampling.node_lookup import (
    LocatedNodes,
    address_table,
    locate_nodes,
    resolve_local_types,
    stack_tables,
)
from storaged.sampling.version import LocalVersion, check_output_size
from storaged.store.image import EMPTY_I64

_COUNT_FIRST = 1 << 10
"""Neighbors per node above which it pays to count the existing edges first."""


def top_neighbors(
    version: LocalVersion,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    direction: int,
    count: int,
    want_edge_ids: bool,
    checkpoint: Checkpoint = no_checkpoint,
) -> RaggedNeighbors:
    """Return the heaviest edges of each node over a union of edge types.

    Parameters
    ----------
    version : LocalVersion
    edge_types : sequence of int
        Edge types of the union.
    node_type : int
        Type of all ids; -1 if ``types`` has the type of each.
    ids : ndarray of int64, shape (m,)
    types : ndarray of int32, shape (m,), optional
        Node types, if ``node_type`` is -1; optional in a space of global ids.
    direction : int
        1 for out-edges, 2 for in-edges.
    count : int
        Largest number of edges per node.
    want_edge_ids : bool
        Return edge ids.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Returns
    -------
    RaggedNeighbors
        Rows by weight, largest first. Ties are broken by neighbor id, then by (position of the edge
        type in the request, edge id). The memory used is that of the reply, regardless of the
        degrees.

    Raises
    ------
    InvalidRequest
        A type, count or direction is invalid.
    Unavailable
        A partition is not held here.
    """
    if count < 1:
        raise InvalidRequest(f"top {count}: expected 1 or more neighbors per node")
    check_output_size("neighbors", ids.size, count)
    local_types = resolve_local_types(version, edge_types, node_type, direction)
    arguments: dict[str, Any] = {
        "edge_types": edge_types,
        "node_type": node_type,
        "direction": direction,
    }
    if count > _COUNT_FIRST:  # Capacity beyond the largest degree is of no use.
        degree_counts = type_weights(
            version, **arguments, ids=ids, types=types, uniform=True, checkpoint=checkpoint
        ).sum(axis=1)
        count = max(min(count, int(degree_counts.max(initial=0))), 1)
    first = min(nodes_per_block(count), BLOCK_NODES)
    pieces = []
    with StopFlag(checkpoint) as stop:
        for block in blocks(ids.size, first, checkpoint, max_size=first):
            groups = locate_nodes(
                version, node_type, ids[block], None if types is None else types[block]
            )
            pieces.append(
                _top_of_block(
                    version,
                    edge_types,
                    local_types,
                    block.stop - block.start,
                    groups,
                    direction,
                    count,
                    want_edge_ids,
                    stop,
                )
            )
    return _concat(pieces) if len(pieces) > 1 else pieces[0]


def _top_of_block(
    version: LocalVersion,
    edge_types: Sequence[int],
    local_types: Sequence[int],
    node_count: int,
    groups: Iterable[LocatedNodes],
    direction: int,
    count: int,
    want_edge_ids: bool,
    stop: StopFlag,
) -> RaggedNeighbors:
    """Return the heaviest edges of the nodes of one block."""
    shape = (node_count, count)
    out_ids, out_types = np.empty(shape, np.int64), np.empty(shape, np.int32)
    out_weights, out_eids = (
        np.empty(shape, np.float32),
        np.empty(shape if want_edge_ids else (0, 0), np.int64),
    )
    lengths = np.zeros(node_count, np.int64)
    for group in groups:
        union = [
            edge_type
            for edge_type, local_type in zip(edge_types, local_types, strict=True)
            if local_type == group.type_id
        ]
        if not union:
            continue
        m = group.rows.size
        places = group.places if group.places.size else np.arange(node_count)
        weights, neighbor_ids = np.empty(m * count, np.float32), np.empty(m * count, np.int64)
        type_indices, slots = np.empty(m * count, np.int32), np.empty(m * count, np.int64)
        sizes = np.empty(m, np.int64)
        kernel.select_top_edges(
            stack_tables(version, union, direction),
            np.int64(count),
            group.parts,
            group.rows,
            sizes,
            weights,
            neighbor_ids,
            type_indices,
            slots,
            stop.flag,
        )
        stop.check()
        valid = np.arange(count) < sizes[:, None]
        lengths[places] = sizes
        out_ids[places], out_weights[places] = (
            neighbor_ids.reshape(m, count),
            weights.reshape(m, count),
        )
        out_types[places] = np.array(union, np.int32)[
            np.where(valid, type_indices.reshape(m, count), 0)
        ]
        if want_edge_ids:
            slots[~valid.reshape(-1)] = -1
            eids = np.empty(m * count, np.int64)
            for type_index, edge_type in enumerate(union):
                gather_ids(
                    address_table(version, edge_type, direction),
                    gather_params(count, type_index, EID),
                    as_kernel_array(slots),
                    as_kernel_array(EMPTY_I64),
                    group.parts,
                    as_kernel_array(type_indices),
                    eids,
                )
            out_eids[places] = eids.reshape(m, count)
    valid = np.arange(count) < lengths[:, None]
    indptr = np.zeros(node_count + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return RaggedNeighbors(
        indptr=indptr,
        ids=out_ids[valid],
        types=out_types[valid],
        weights=out_weights[valid],
        eids=out_eids[valid] if want_edge_ids else None,
    )


def _concat(pieces: Sequence[RaggedNeighbors]) -> RaggedNeighbors:
    """Concatenate the results of blocks of nodes."""
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(piece.indptr) for piece in pieces)])
    return RaggedNeighbors(
        indptr=np.cumsum(sizes),
        ids=np.concatenate([piece.ids for piece in pieces]),
        types=np.concatenate([piece.types for piece in pieces]),
        weights=np.concatenate([piece.weights for piece in pieces if piece.weights is not None]),
        eids=np.concatenate([piece.eids for piece in pieces if piece.eids is not None])
        if pieces[0].eids is not None
        else None,
    )
