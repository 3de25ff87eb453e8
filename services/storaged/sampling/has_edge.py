"""Existence of edges between pairs of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from storaged.kernels.has_edge import mark_joined_rows
from storaged.sampling.cancellation import BLOCK_DRAWS, Checkpoint, blocks, no_checkpoint
from storaged.sampling.node_lookup import OUT, group_nodes, resolve_local_types, select_adjacency
from storaged.sampling.version import LocalVersion, check_length

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]


def has_edge(
    version: LocalVersion,
    *,
    edge_types: Sequence[int],
    ids: I64,
    kinds: I32 | None,
    targets: I64,
    target_kinds: I32 | None,
    direction: int,
    checkpoint: Checkpoint = no_checkpoint,
) -> NDArray[np.bool_]:
    """Return whether each node has an edge to its target, along any of some edge types.

    Parameters
    ----------
    version : LocalVersion
    edge_types : sequence of int
    ids : ndarray of int64, shape (m,)
        Nodes in partitions held here.
    kinds : ndarray of int32, shape (m,), or None
        Types of the nodes; None if ids are global.
    targets : ndarray of int64, shape (m,)
        Any nodes.
    target_kinds : ndarray of int32, shape (m,), or None
        Types of the targets; None if ids are global.
    direction : int
        1 for out-edges, 2 for in-edges.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Returns
    -------
    ndarray of bool, shape (m,)
    """
    check_length("targets", targets, ids.size)
    if ids.size > BLOCK_DRAWS:
        return np.concatenate(
            [
                has_edge(
                    version,
                    edge_types=edge_types,
                    ids=ids[block],
                    kinds=None if kinds is None else kinds[block],
                    targets=targets[block],
                    target_kinds=None if target_kinds is None else target_kinds[block],
                    direction=direction,
                )
                for block in blocks(ids.size, BLOCK_DRAWS, checkpoint, max_size=BLOCK_DRAWS)
            ]
        )
    schema = version.schema
    local_types = resolve_local_types(version, edge_types, -1, direction)
    out = np.zeros(ids.size, np.bool_)
    for group in group_nodes(version, -1, ids, kinds):
        group_out = out[group.places]
        for edge_type, local_type in zip(edge_types, local_types, strict=True):
            if local_type != group.type_id:
                continue
            edge = schema.edge_types[edge_type]
            remote_type = schema.node_type_id(edge.dst_type if direction == OUT else edge.src_type)
            group_targets = targets[group.places]
            if target_kinds is not None:
                group_targets = np.where(
                    target_kinds[group.places] == remote_type, group_targets, -1
                )
            edges = select_adjacency(group.image, edge_type, direction)
            mark_joined_rows(
                group.rows, edges.indptr, edges.nbr, as_kernel_array(group_targets), group_out
            )
        out[group.places] = group_out
    return out
