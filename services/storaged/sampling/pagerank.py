"""Personalised PageRank of some starts, where every part is held here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_proto.errors import InvalidRequest
from storaged.kernels import pagerank as kernel
from storaged.sampling.node_lookup import address_table, end_types, resolve_local_types
from storaged.sampling.version import LocalVersion, check_length, check_output_size

MAX_NODES = 1 << 22
"""That one start may come to, some 70 bytes each."""
_FIRST_CAPACITY = 1 << 13
_CHECKPOINT_EDGES = 1 << 20
"""Edges that are looked at between checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageRankScores:
    """The nodes of the highest scores for each start, best first."""

    ids: NDArray[np.int64]
    """int64[m, top], -1 where there are no more."""
    kinds: NDArray[np.int32]
    """int32[m, top]: their types, -1 likewise."""
    scores: NDArray[np.float64]
    """float64[m, top]."""
    residuals: NDArray[np.float64]
    """float64[m]: what is held back of each start's mass."""


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
) -> PageRankScores:
    """Push the mass of each start until no node of degree d holds back more than ``epsilon * d``.

    Parameters
    ----------
    version : LocalVersion
        All of its parts are held here.
    ids, kinds : int64[m], int32[m]
        Starts and their types; type -1 is no node, whose row stays empty.
    edge_types, direction, uniform
        As of `storaged.sampling.neighbors`.
    alpha, epsilon, top
        As of `graphd.operators.pagerank.PagerankParams`.
    checkpoint : callable
        Called every so many edges; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        Where a type, the direction or a number is impossible, a start comes to more than
        `MAX_NODES` nodes, or a part is not held here.
    """
    check_length("types", kinds, ids.size)
    resolve_local_types(version, edge_types, -1, direction)
    if not 0 < alpha <= 1 or not 0 < epsilon < np.inf or top < 1:
        raise InvalidRequest(
            f"alpha {alpha}, epsilon {epsilon}, top {top}: expected a probability above 0, "
            "and numbers above 0"
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
    result = PageRankScores(
        ids=np.full((ids.size, top), -1, np.int64),
        kinds=np.full((ids.size, top), -1, np.int32),
        scores=np.zeros((ids.size, top), np.float64),
        residuals=np.zeros(ids.size, np.float64),
    )
    state, heap = np.zeros(kernel.STATE, np.int64), np.empty(top, np.int32)
    ids, kinds = as_kernel_array(ids), as_kernel_array(kinds)
    parts, mod = np.int64(version.schema.parts), version.schema.placement != "mix64"
    capacity = min(_FIRST_CAPACITY, MAX_NODES)
    buffers = _allocate_buffers(capacity)
    while True:
        status = kernel.push_mass(
            ids,
            kinds,
            parts,
            mod,
            tables,
            local_types,
            remote_types,
            uniform,
            float(alpha),
            float(epsilon),
            np.int64(_CHECKPOINT_EDGES),
            state,
            heap,
            result.ids,
            result.kinds,
            result.scores,
            result.residuals,
            *buffers,
        )
        if status == kernel.DONE:
            return result
        checkpoint()
        if status == kernel.OUT_OF_CAPACITY:
            if capacity == MAX_NODES:
                start_index = int(state[kernel.START])
                raise InvalidRequest(
                    f"nodes[{start_index}] = {ids[start_index]} comes to more than "
                    f"{MAX_NODES} nodes with epsilon {epsilon:g}, "
                    "the most that is held for one; ask with a larger epsilon"
                )
            previous, capacity = buffers, min(2 * capacity, MAX_NODES)
            buffers = _allocate_buffers(capacity)
            for old, new in zip(previous, buffers, strict=True):
                new[: old.size] = old  # slots that are in use are the first of a table


def _allocate_buffers(capacity: int) -> list[NDArray[Any]]:
    """What is held of the nodes that a start comes to, after the table of their numbers: as
    `push_mass` takes them.
    """
    slots = max(4 * capacity, kernel.MIN_SLOTS)  # it grows by two where it is half full
    dtypes = (
        np.int64,
        np.int32,
        np.float64,
        np.float64,
        np.float64,
        np.int32,
        np.int32,
        np.int32,
        np.float64,
    )
    return [np.empty(slots, np.int32), *(np.empty(capacity, dtype) for dtype in dtypes)]
