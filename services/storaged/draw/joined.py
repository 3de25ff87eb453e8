"""Whether nodes are joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import settled
from storaged.draw.blocks import DRAWS, Checkpoint, blocks, never
from storaged.draw.lookup import OUT, adjacency, checked_edge_types, groups_of
from storaged.draw.version import Version, checked_length
from storaged.kernel.pairs import joined

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]


def are_joined(
    version: Version,
    *,
    edge_types: Sequence[int],
    ids: I64,
    kinds: I32 | None,
    targets: I64,
    target_kinds: I32 | None,
    direction: int,
    checkpoint: Checkpoint = never,
) -> NDArray[np.bool_]:
    """Whether there is an edge from each node to its target, along any of some edge types.

    Parameters
    ----------
    version, edge_types, direction
        As in `storaged.draw.neighbors`.
    ids, targets : int64[m]
        Nodes that live in parts held here, and any nodes.
    kinds, target_kinds : int32[m] or None
        Their types; None where ids are global.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Returns
    -------
    bool[m]
    """
    checked_length("targets", targets, ids.size)
    if ids.size > DRAWS:
        return np.concatenate(
            [
                are_joined(
                    version,
                    edge_types=edge_types,
                    ids=ids[block],
                    kinds=None if kinds is None else kinds[block],
                    targets=targets[block],
                    target_kinds=None if target_kinds is None else target_kinds[block],
                    direction=direction,
                )
                for block in blocks(ids.size, DRAWS, checkpoint, most=DRAWS)
            ]
        )
    schema = version.schema
    near = checked_edge_types(version, edge_types, -1, direction)
    out = np.zeros(ids.size, np.bool_)
    for group in groups_of(version, -1, ids, kinds):
        mine = out[group.at]
        for edge_type, end in zip(edge_types, near, strict=True):
            if end != group.type_id:
                continue
            edge = schema.edge_types[edge_type]
            far = schema.node_type_id(edge.dst_type if direction == OUT else edge.src_type)
            wanted = targets[group.at]
            if target_kinds is not None:
                wanted = np.where(target_kinds[group.at] == far, wanted, -1)
            edges = adjacency(group.image, edge_type, direction)
            joined(group.rows, edges.indptr, edges.nbr, settled(wanted), mine)
        out[group.at] = mine
    return out
