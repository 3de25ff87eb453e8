"""Personalized PageRank of some start nodes, if all partitions are held here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_proto.errors import InvalidRequest
from storaged.kernels import pagerank as kernel
from storaged.sampling.node_lookup import address_table, end_types, resolve_local_types
from storaged.sampling.version import LocalVersion, check_length, check_output_size

MAX_NODES = 1 << 22
"""Largest number of nodes that one start may reach, with some 70 bytes each."""
_FIRST_CAPACITY = 1 << 13
_CHECKPOINT_EDGES = 1 << 20
"""Number of edges between two checkpoints."""


def rank_nodes(
    version: LocalVersion,
    *,
    ids: NDArray[np.int64],
    kinds: NDArray[np.int32],
    edge_types: Sequence[int],
    direction: int,
    uniform: bool,
    alpha: float,
    epsilon: float,
    top: int,
    checkpoint: Callable[[], object],
) -> kernel.PageRankScores:
    """Push the mass of each start until no node of degree d keeps more than ``epsilon * d``.

    Parameters
    ----------
    version : LocalVersion
        Version with all partitions held here.
    ids : ndarray of int64, shape (m,)
        Start nodes.
    kinds : ndarray of int32, shape (m,)
        Types of the starts; the row of a start of type -1 stays empty.
    edge_types : sequence of int
        Edge types to follow.
    direction : int
        1 for out-edges, 2 for in-edges.
    uniform : bool
        Give all edges the same probability, instead of one by weight.
    alpha, epsilon, top
        As in `graphd.operators.pagerank.PagerankParams`.
    checkpoint : callable
        Called periodically; may raise.

    Returns
    -------
    PageRankScores
        Ids and types are -1 if there are no more nodes.

    Raises
    ------
    InvalidRequest
        An argument is out of range, or a start reaches more than `MAX_NODES` nodes.
    Unavailable
        A partition is not held here.
    """
    check_length("types", kinds, ids.size)
    resolve_local_types(version, edge_types, -1, direction)
    if not 0 < alpha <= 1 or not 0 < epsilon < np.inf or top < 1:
        raise InvalidRequest(
            f"alpha {alpha}, epsilon {epsilon}, top {top}: expected a probability above 0, and "
            "two numbers above 0"
        )
    check_output_size("ranks", ids.size, top)
    for part in range(version.schema.parts):
        version.image(part)
    tables = as_kernel_array(
        np.stack([address_table(version, edge_type, direction) for edge_type in edge_types])
    )
    local_types, remote_types = (
        as_kernel_array(np.array(side, np.int32))
        for side in zip(
            *(end_types(version, edge_type, direction) for edge_type in edge_types), strict=True
        )
    )
    result = kernel.PageRankScores(
        ids=np.full((ids.size, top), -1, np.int64),
        kinds=np.full((ids.size, top), -1, np.int32),
        scores=np.zeros((ids.size, top), np.float64),
        residuals=np.zeros(ids.size, np.float64),
    )
    state, heap = np.zeros(kernel.STATE, np.int64), np.empty(top, np.int32)
    ids, kinds = as_kernel_array(ids), as_kernel_array(kinds)
    params = kernel.PushParams(
        np.int64(version.schema.parts),
        version.schema.placement != "mix64",
        uniform,
        float(alpha),
        float(epsilon),
        np.int64(_CHECKPOINT_EDGES),
    )
    capacity = min(_FIRST_CAPACITY, MAX_NODES)
    buffers = _allocate_buffers(capacity)
    while True:
        status = kernel.push_mass(
            tables, params, local_types, remote_types, ids, kinds, state, heap, buffers, result
        )
        if status == kernel.DONE:
            return result
        checkpoint()
        if status == kernel.OUT_OF_CAPACITY:
            if capacity == MAX_NODES:
                start_index = int(state[kernel.START])
                raise InvalidRequest(
                    f"nodes[{start_index}] = {ids[start_index]} reaches more than {MAX_NODES} "
                    f"nodes with epsilon {epsilon:g}, the maximum for one node; use a larger "
                    "epsilon"
                )
            previous, capacity = buffers, min(2 * capacity, MAX_NODES)
            buffers = _allocate_buffers(capacity)
            arrays: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(
                previous, buffers, strict=True
            )
            for old, new in arrays:
                new[: old.size] = old  # The used slots are the first of a buffer.


def _allocate_buffers(capacity: int) -> kernel.PushBuffers:
    """Allocate buffers for the nodes that a start reaches."""
    slots = max(4 * capacity, kernel.MIN_SLOTS)  # The table doubles when it is half full.
    return kernel.PushBuffers(
        hash_table=np.empty(slots, np.int32),
        ids=np.empty(capacity, np.int64),
        kinds=np.empty(capacity, np.int32),
        scores=np.empty(capacity, np.float64),
        residuals=np.empty(capacity, np.float64),
        weight_sums=np.empty(capacity, np.float64),
        rounds=np.empty(capacity, np.int32),
        frontier=np.empty(capacity, np.int32),
        reached=np.empty(capacity, np.int32),
        per_weight=np.empty(capacity, np.float64),
    )
