"""Edges from some nodes to others."""

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
"""Capacity in edges besides those that nodes have, and at most at first: memory that is
never written to keeps what is from being used again."""
_BLOCK = BLOCK_EDGES << 2
"""Edges of a block of rows: some ten milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InducedEdges:
    """The edges of each node of a request that lead to others, by (edge type as asked for, neighbor
    id, edge id, place).
    """

    counts: NDArray[np.int32]
    """int32[m], how many each node has."""
    cols: NDArray[np.int32]
    """int32[k], places of the far ends in the request."""
    types: NDArray[np.int32] | None
    """int32[k], edge types; None where one was asked for."""
    weights: NDArray[np.float32] | None
    """float32[k], when wanted."""
    eids: NDArray[np.int64] | None
    """int64[k], when wanted."""


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
    """The edges of each node that lead to one of ``cols``; unknown nodes have none.

    Parameters
    ----------
    version, edge_types, node_type, ids, types, direction, want_weights, want_edge_ids
        As in `storaged.sampling.neighbors`.
    cols : int64[c]
        Any nodes; -1 is none. One that is there several times has every edge as often.
    col_types : int32[c], optional
        Their types; left out where each edge type leads to the type that they are of.
    groups, col_groups : int32[m], int32[c], optional
        Both or neither: the group of each node, and of each of ``cols``. An edge counts where both
        of its ends are of one group.
    checkpoint : callable
        Called between blocks of edges; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        As there; also where the answer would be larger than a message.
    """
    local_types = resolve_local_types(version, edge_types, node_type, direction)
    if col_types is not None:
        check_length("col_types", col_types, cols.size)
    if (groups is None) != (col_groups is None):
        raise InvalidRequest(
            "groups and col_groups: one of the two is missing; give both or neither"
        )
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
        edge = schema.edge_types[edge_type]
        remote_type = schema.node_type_id(edge.dst_type if direction == OUT else edge.src_type)
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
    """The edges along one type, those of one node after another's."""

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
    """Find the edges along one type, ``max_edges`` at most."""
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
    """A growing buffer of edges that are found."""

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
        """Find them block after block of rows; False where this is no way to find them."""
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
        """Return capacity for all edges, and some more, if as many of the other nodes' count as of
        those that are done.
        """
        row, used = int(state[ROW]), int(state[TOTAL])
        max_edges = max(
            self._max_edges, used + int(self._rows.degrees[row])
        )  # a row may need capacity for all of its edges, however few count
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
                f"edges: more than {self._max_edges} rows do not fit into one answer; ask "
                "for fewer nodes at a time"
            )


def _merge_types(
    edge_types: Sequence[int], edges_by_type: Sequence[_TypeEdges], checkpoint: Checkpoint
) -> InducedEdges:
    """Put those of each node together, type after type."""
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
