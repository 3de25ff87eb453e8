"""Degrees of nodes, and the weight of each edge type at each node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from storaged.kernels.node_rows import measure_rows
from storaged.sampling.cancellation import (
    BLOCK_DRAWS,
    Checkpoint,
    blocks,
    no_checkpoint,
)
from storaged.sampling.node_lookup import (
    group_nodes,
    resolve_local_types,
    select_adjacency,
)
from storaged.sampling.version import LocalVersion, check_output_size
from storaged.store.image import EMPTY_F64


def degrees(
    version: LocalVersion,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    direction: int,
    checkpoint: Checkpoint = no_checkpoint,
) -> NDArray[np.int64]:
    """Return the number of edges of each type at each node.

    Parameters are those of `storaged.sampling.top_neighbors`.

    Returns
    -------
    ndarray of int64, shape (m, types)
        0 for unknown nodes.

    Raises
    ------
    InvalidRequest, Unavailable
        As for `storaged.sampling.top_neighbors`.
    """
    arguments = {
        "edge_types": edge_types,
        "node_type": node_type,
        "ids": ids,
        "types": types,
        "direction": direction,
    }
    counts = type_weights(
        version,
        **arguments,  # type: ignore[arg-type]
        uniform=True,
        checkpoint=checkpoint,
    )
    return counts.astype(np.int64)


def type_weights(
    version: LocalVersion,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    direction: int,
    uniform: bool,
    checkpoint: Checkpoint = no_checkpoint,
) -> NDArray[np.float64]:
    """Return the weight of each edge type at each node, as neighbor sampling sees it.

    Parameters and errors are those of `degrees`. With ``uniform``, the weight is the degree.

    Returns
    -------
    ndarray of float64, shape (m, types)
    """
    local_types = resolve_local_types(version, edge_types, node_type, direction)
    check_output_size("degrees", ids.size, len(edge_types))
    out = np.zeros((ids.size, len(edge_types)), np.float64)
    for block in blocks(ids.size, BLOCK_DRAWS // len(edge_types), checkpoint):
        block_out = out[block]
        for group in group_nodes(
            version, node_type, ids[block], None if types is None else types[block]
        ):
            for column, (edge_type, local_type) in enumerate(
                zip(edge_types, local_types, strict=True)
            ):
                if local_type == group.type_id:
                    group_weights, edges = (
                        np.empty(group.rows.size, np.float64),
                        select_adjacency(group.image, edge_type, direction),
                    )
                    measure_rows(
                        group.rows,
                        edges.indptr,
                        as_kernel_array(EMPTY_F64) if uniform else edges.sums,
                        group_weights,
                    )
                    block_out[group.places, column] = group_weights
    return out
