"""Induced edges: edges from some nodes to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_proto.errors import InvalidRequest
from storaged.kernels.induced.hash_join import ROW, TOTAL, EdgeOutputs, TargetNodes
from storaged.sampling.cancellation import (
    BLOCK_DRAWS,
    BLOCK_EDGES,
    Checkpoint,
    StopFlag,
    blocks_by_work,
    no_checkpoint,
)
from storaged.sampling.node_lookup import (
    OUT,
    EdgeSpans,
    resized_copy,
    resolve_local_types,
    resolve_types,
)
from storaged.sampling.subgraphs.target_sets import (
    BitsetJoin,
    EdgeSearch,
    HashJoin,
    select_targets,
)
from storaged.sampling.version import LocalVersion, check_length, max_rows_per_message
from storaged.store.image import EMPTY_F32, EMPTY_I64

_NONE = np.zeros(0, np.int32)
_LEAST, _FIRST = 1 << 10, 1 << 16
"""Extra capacity in edges beyond the nodes' edges, and the largest first capacity.

Memory that is allocated but never written prevents the reuse of other memory.
"""
_BLOCK = BLOCK_EDGES << 2
"""Edges per block of rows, which takes some ten milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InducedEdges:
    """The edges of each node of a request that lead to a target.

    They are ordered by (position of the edge type in the request, neighbor id, edge id, position of
    the target).
    """

    counts: NDArray[np.int32]
    """Number of edges of each node: int32, shape (m,)."""
    cols: NDArray[np.int32]
    """Positions of the targets in the request: int32, shape (k,)."""
    types: NDArray[np.int32] | None
    """Edge types: int32, shape (k,); None if one was requested."""
    weights: NDArray[np.float32] | None
    """Weights, if requested: float32, shape (k,)."""
    eids: NDArray[np.int64] | None
    """Edge ids, if requested: int64, shape (k,)."""


def find_induced_edges(
    version: LocalVersion,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    cols: NDArray[np.int64],
    col_types: NDArray[np.int32] | None = None,
    groups: NDArray[np.int32] | None = None,
    col_groups: NDArray[np.int32] | None = None,
    direction: int,
    want_weights: bool,
    want_edge_ids: bool,
    checkpoint: Checkpoint = no_checkpoint,
) -> InducedEdges:
    """Return the edges of each node that lead to one of ``cols``; unknown nodes have none.

    Parameters
    ----------
    version : LocalVersion
    edge_types : sequence of int
        Edge types to follow.
    node_type : int
        Type of all ids; -1 if ``types`` has the type of each.
    ids : ndarray of int64, shape (m,)
        Nodes in partitions held here.
    types : ndarray of int32, shape (m,), optional
        Node types, if ``node_type`` is -1; optional in a space of global ids.
    cols : ndarray of int64, shape (c,)
        Targets: any nodes; -1 for none. A target given several times has every edge as often.
    col_types : ndarray of int32, shape (c,), optional
        Types of the targets. By default, each has the type that each edge type leads to.
    groups : ndarray of int32, shape (m,), optional
        Group of each node. Only edges within a group are returned.
    col_groups : ndarray of int32, shape (c,), optional
        Group of each target; required with ``groups``.
    direction : int
        1 for out-edges, 2 for in-edges.
    want_weights, want_edge_ids : bool
        Return weights, return edge ids.
    checkpoint : callable
        Called between blocks of edges; may raise.

    Returns
    -------
    InducedEdges

    Raises
    ------
    InvalidRequest
        A type or direction is invalid, or the reply would be larger than a message.
    Unavailable
        A partition is not held here.
    """
    local_types = resolve_local_types(version, edge_types, node_type, direction)
    if col_types is not None:
        check_length("col_types", col_types, cols.size)
    if (groups is None) != (col_groups is None):
        raise InvalidRequest("groups, col_groups: expected both or neither")
    if groups is not None and col_groups is not None:
        check_length("groups", groups, ids.size)
        check_length("col_groups", col_groups, cols.size)
    schema = version.schema
    kinds = resolve_types(version, node_type, ids, types)
    targets: dict[int, TargetNodes] = {}
    edges_by_type: list[_TypeEdges] = []
    max_edges = max_rows_per_message(
        4 + 4 * (len(edge_types) > 1) + 4 * want_weights + 8 * want_edge_ids
    )
    for edge_type, local_type in zip(edge_types, local_types, strict=True):
        remote_type = schema.edge_ends[edge_type][1 if direction == OUT else 0]
        if remote_type not in targets:
            targets[remote_type] = select_targets(
                cols,
                None if col_types is None else col_types == remote_type,
                col_groups,
                checkpoint,
            )
        matching_ids = (
            ids
            if kinds is None and local_type == node_type
            else np.where(local_type == (node_type if kinds is None else kinds), ids, -1)
        )
        rows = EdgeSpans.locate(version, edge_type, direction, matching_ids)
        capacity = max_edges - sum(edges.cols.size for edges in edges_by_type)
        edges_by_type.append(
            _find_type_edges(
                rows,
                targets[remote_type],
                groups,
                capacity,
                checkpoint,
                want_weights=want_weights,
                want_edge_ids=want_edge_ids,
            )
        )
        checkpoint()
    return _merge_types(edge_types, edges_by_type, checkpoint)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TypeEdges:
    """The induced edges along one type, node by node."""

    counts: NDArray[np.int32]
    cols: NDArray[np.int32]
    weights: NDArray[np.float32] | None
    eids: NDArray[np.int64] | None


def _find_type_edges(
    rows: EdgeSpans,
    targets: TargetNodes,
    groups: NDArray[np.int32] | None,
    max_edges: int,
    checkpoint: Checkpoint,
    *,
    want_weights: bool,
    want_edge_ids: bool,
) -> _TypeEdges:
    """Find the edges along one type, at most ``max_edges``."""
    counts, state, node_groups = (
        np.empty(rows.partitions.size, np.int32),
        np.zeros(2, np.int64),
        as_kernel_array(_NONE if groups is None else groups),
    )
    search: EdgeSearch = BitsetJoin.create_if_fits(rows, targets, node_groups) or HashJoin(
        rows, targets, node_groups, checkpoint
    )
    buffer = _EdgeBuffer(rows, max_edges, want_weights=want_weights, want_edge_ids=want_edge_ids)
    if not buffer.fill(search, counts, state, checkpoint):
        search, state = HashJoin(rows, targets, node_groups, checkpoint), np.zeros(2, np.int64)
        buffer.fill(search, counts, state, checkpoint)
    total = int(state[TOTAL])
    weights, eids = (
        buffer.out.weights[:total] if want_weights else None,
        buffer.out.eids[:total] if want_edge_ids else None,
    )
    return _TypeEdges(counts=counts, cols=buffer.out.places[:total], weights=weights, eids=eids)


class _EdgeBuffer:
    """A growing buffer of found edges."""

    def __init__(
        self, rows: EdgeSpans, max_edges: int, *, want_weights: bool, want_edge_ids: bool
    ) -> None:
        self.out = EdgeOutputs(_NONE, EMPTY_F32, EMPTY_I64)
        self._rows, self._max_edges, self._want_weights, self._want_edge_ids = (
            rows,
            max_edges,
            want_weights,
            want_edge_ids,
        )

    def fill(
        self,
        search: EdgeSearch,
        counts: NDArray[np.int32],
        state: NDArray[np.int64],
        checkpoint: Checkpoint,
    ) -> bool:
        """Find the edges, block by block of rows.

        Returns False if the search method does not suit the data.
        """
        capacity = max(min(_LEAST + self._rows.edges, _FIRST, self._max_edges), 1)
        with StopFlag(checkpoint) as stop:
            for block in blocks_by_work(self._rows.degrees, _BLOCK, checkpoint):
                while True:
                    if capacity > self.out.places.size:
                        self._reserve(int(state[TOTAL]), capacity)
                    is_way = search.find(state, counts[: block.stop], self.out, stop.flag)
                    stop.check()
                    if not is_way:
                        return False
                    if int(state[ROW]) == block.stop:
                        break
                    checkpoint()
                    capacity = self._estimate_capacity(state, capacity)
                self._check(int(state[TOTAL]))
        return True

    def _reserve(self, used: int, capacity: int) -> None:
        self.out = EdgeOutputs(
            resized_copy(self.out.places, used, capacity),
            resized_copy(self.out.weights, used, capacity if self._want_weights else 0),
            resized_copy(self.out.eids, used, capacity if self._want_edge_ids else 0),
        )

    def _estimate_capacity(self, state: NDArray[np.int64], capacity: int) -> int:
        """Return an estimate of the capacity for all edges, with a margin.

        It assumes that the remaining nodes have as many matches per edge as the completed ones.
        """
        row, used = int(state[ROW]), int(state[TOTAL])
        # A row may need capacity for all of its edges, even if few match.
        max_edges = max(self._max_edges, used + int(self._rows.degrees[row]))
        self._check(used if capacity < max_edges else self._max_edges + 1)
        estimate = used * self._rows.edges // max(int(self._rows.degrees[:row].sum()), 1)
        return min(
            max(
                estimate + estimate // 8 + int(self._rows.degrees[row]) + _LEAST,
                capacity + capacity // 4,
            ),
            max_edges,
        )

    def _check(self, count: int) -> None:
        if count > self._max_edges:
            raise InvalidRequest(
                f"edges: more than {self._max_edges} rows do not fit into one reply; request "
                "fewer nodes at a time"
            )


def _merge_types(
    edge_types: Sequence[int], edges_by_type: Sequence[_TypeEdges], checkpoint: Checkpoint
) -> InducedEdges:
    """Merge the edges of each node over all types."""
    total = sum(edges.cols.size for edges in edges_by_type)
    if len(edges_by_type) == 1:
        single = edges_by_type[0]
        return InducedEdges(
            counts=single.counts,
            cols=single.cols,
            types=None,
            weights=single.weights,
            eids=single.eids,
        )
    counts = np.zeros(edges_by_type[0].counts.size, np.int32)
    for edges in edges_by_type:
        counts += edges.counts
    cols, types = np.empty(total, np.int32), np.empty(total, np.int32)
    weights = np.empty(total if edges_by_type[0].weights is not None else 0, np.float32)
    eids = np.empty(total if edges_by_type[0].eids is not None else 0, np.int64)
    begins = np.cumsum(counts, dtype=np.int64) - counts
    for edge_type, edges in zip(edge_types, edges_by_type, strict=True):
        ends = np.cumsum(edges.counts, dtype=np.int64)
        shifts = begins - (ends - edges.counts)
        for block in blocks_by_work(edges.counts.astype(np.int64), BLOCK_DRAWS, checkpoint):
            first, last = (
                int(ends[block.start - 1]) if block.start else 0,
                int(ends[block.stop - 1]) if block.stop else 0,
            )
            source = slice(first, last)
            destination = np.repeat(shifts[block], edges.counts[block]) + np.arange(first, last)
            cols[destination], types[destination] = edges.cols[source], edge_type
            if edges.weights is not None:
                weights[destination] = edges.weights[source]
            if edges.eids is not None:
                eids[destination] = edges.eids[source]
        begins += edges.counts
    return InducedEdges(
        counts=counts,
        cols=cols,
        types=types,
        weights=None if edges_by_type[0].weights is None else weights,
        eids=None if edges_by_type[0].eids is None else eids,
    )
