"""Personalized PageRank by forward push.

Neighborhoods are read from the storageds when mass arrives at them, each once per request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.stable_sort import stable_order
from asterism_graphkit.operators.pagerank_push import (
    NodeEdges,
    absorb_residuals,
    add_arrivals,
    spread_mass,
)
from asterism_graphkit.relabel.relabel import Relabeling
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators import neighbor_reads, reads
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types

MAX_EDGES = 1 << 25
"""Maximum edges of a request's neighborhoods in memory, 8 bytes each."""
MAX_PAIRS = 1 << 22
"""Maximum pairs of a start and a node that its mass has reached, about 60 bytes each."""
_GROUP = 256
"""Starts that are pushed together, unless they reach too many nodes in total."""
_PIECE_EDGES = 1 << 22
"""Edges over which mass is spread in one step."""
_ROW_BYTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerankParams:
    """Parameters of PageRank."""

    edge_types: tuple[int, ...]
    direction: common_pb.Direction
    uniform: bool
    alpha: float
    """Probability that a walk ends at a step."""
    epsilon: float
    """Tolerance: a node with total edge weight d keeps at most ``epsilon * d`` unsettled."""
    top_k: int


class _TooManyPairs(Exception):
    """Raised if starts reach more nodes than can be held together."""


def pagerank(
    context: RequestContext, params: PagerankParams, nodes: Ids, node_type: int, types: Types | None
) -> Sections:
    """Return the nodes with the highest personalized PageRank for each start node.

    The sections are those of PersonalizedPagerankReply.

    Notes
    -----
    Mass is pushed in rounds. All nodes with more than the tolerance at the start of a round settle,
    and the mass that they pass on arrives in the order of (start, node id, node type, edge as
    stored). The result of a start therefore depends only on the graph."""
    if len(nodes) * params.top_k * _ROW_BYTES > REPLY_BYTES:
        max_nodes = REPLY_BYTES // (_ROW_BYTES * params.top_k)
        raise InvalidRequest(
            f"{params.top_k} nodes for each of {len(nodes)} do not fit into one reply; request "
            f"{max_nodes} nodes at a time"
        )
    resolved_types = reads.node_types(context.without_filter(), nodes, node_type, types)["types"]
    if len(context.space.hosts) == 1:
        return _rank_on_one_host(context, params, nodes, resolved_types)
    existing = np.flatnonzero(resolved_types >= 0)
    out: Sections = {
        "ids": np.full((len(nodes), params.top_k), -1, np.int64),
        "kinds": np.full((len(nodes), params.top_k), -1, np.int32),
        "scores": np.zeros((len(nodes), params.top_k), np.float64),
        "residuals": np.zeros(len(nodes), np.float64),
    }
    with Relabeling.pooled(1) as (relabeling,):
        cache = _GraphCache(context, params, relabeling)
        indices = cache.assign_indices(nodes[existing], resolved_types[existing])
        begin, size = 0, _GROUP
        while begin < len(existing):
            chunk = slice(begin, begin + size)
            try:
                _push(context, params, cache, indices[chunk], existing[chunk], out)
            except _TooManyPairs:
                if size == 1:
                    raise InvalidRequest(
                        f"nodes[{existing[begin]}] = {nodes[existing[begin]]} reaches more than "
                        f"{MAX_PAIRS} nodes with epsilon {params.epsilon:g}, the maximum for one "
                        "node; use a larger epsilon"
                    ) from None
                size = max(min(size, len(existing) - begin) // 2, 1)
                continue
            begin += size
    return out


def _rank_on_one_host(
    context: RequestContext, params: PagerankParams, nodes: Ids, node_types: Types
) -> Sections:
    """Run the whole computation on the one storaged that has every partition."""
    head = storaged_pb.PushPagerankRequest(
        version_ref=context.version_ref(),
        edge_types=params.edge_types,
        direction=params.direction,
        uniform=params.uniform,
        alpha=params.alpha,
        epsilon=params.epsilon,
        top=params.top_k,
        weight=context.weight_name,
    )
    (reply,) = context.dispatch(
        "push_pagerank", [(0, Frame(head, {"ids": nodes, "types": node_types}))]
    )
    return dict(reply.arrays)


def _push(
    context: RequestContext,
    params: PagerankParams,
    cache: _GraphCache,
    starts: Ids,
    rows: Ids,
    out: Sections,
) -> None:
    """Push the mass of some starts until no node exceeds the tolerance.

    Writes the highest scores to ``rows`` of ``out``.
    """
    with Relabeling.pooled(1) as (pairs,):
        scores, residuals, rounds = (
            _GrowableArray(np.float64),
            _GrowableArray(np.float64),
            _GrowableArray(np.int32),
        )
        checkpoint = context.call.remaining
        frontier = pairs.assign(starts, np.arange(len(starts), dtype=np.int32)).astype(np.int64)
        for column in (scores, residuals, rounds):
            column.resize(len(pairs))
        residuals.values[frontier] = 1.0
        cache.read_weight_sums()
        round_number = 0
        while frontier.size:
            round_number += 1
            context.call.remaining()
            node_indices = pairs.ids[frontier]
            frontier = frontier[
                stable_order(
                    [pairs.trees[frontier], cache.ids[node_indices], cache.types[node_indices]],
                    checkpoint,
                )
            ]
            cache.read_neighbors(pairs.ids[frontier])
            per_weight = absorb_residuals(
                frontier,
                pairs.ids,
                cache.weight_sums,
                params.alpha,
                scores.values,
                residuals.values,
            )
            edges = np.cumsum(cache.ends[pairs.ids[frontier]] - cache.begins[pairs.ids[frontier]])
            arrived_chunks, begin = [], 0
            while begin < len(frontier):
                edges_before = int(edges[begin - 1]) if begin else 0
                end = max(
                    int(np.searchsorted(edges, edges_before + _PIECE_EDGES, side="right")),
                    begin + 1,
                )
                chunk, count = slice(begin, end), int(edges[end - 1]) - edges_before
                flows = spread_mass(
                    NodeEdges(cache.begins, cache.ends, cache.neighbors, cache.weights),
                    frontier[chunk],
                    per_weight[chunk],
                    pairs.trees,
                    pairs.ids,
                    count,
                )
                target_pairs = pairs.assign(flows[1], flows[0], checkpoint=checkpoint)
                if len(pairs) > MAX_PAIRS:
                    raise _TooManyPairs
                for column in (scores, residuals, rounds):
                    column.resize(len(pairs))
                arrived_chunks.append(
                    add_arrivals(
                        target_pairs, flows[2], residuals.values, rounds.values, round_number
                    )
                )
                begin = end
            arrived = np.concatenate(arrived_chunks)
            cache.read_weight_sums()
            frontier = arrived[
                residuals.values[arrived] > params.epsilon * cache.weight_sums[pairs.ids[arrived]]
            ]
        out["residuals"][rows] = np.bincount(
            pairs.trees, weights=residuals.values, minlength=len(starts)
        )
        _write_top(cache, pairs, scores.values, rows, out, checkpoint)


def _write_top(
    cache: _GraphCache,
    pairs: Relabeling,
    scores: NDArray[np.float64],
    rows: Ids,
    out: Sections,
    checkpoint: Callable[[], object],
) -> None:
    """Write the highest scores of each start; ties are ordered by id, then by type."""
    scored = np.flatnonzero(scores > 0)
    node_indices, starts = pairs.ids[scored], pairs.trees[scored]
    order = stable_order(
        [starts, -scores[scored], cache.ids[node_indices], cache.types[node_indices]],
        checkpoint,
    )
    scored, node_indices, starts = scored[order], node_indices[order], starts[order]
    rank = np.arange(len(scored)) - np.searchsorted(starts, starts)
    selected = np.flatnonzero(rank < out["ids"].shape[1])
    target = (rows[starts[selected]], rank[selected])
    out["ids"][target], out["kinds"][target], out["scores"][target] = (
        cache.ids[node_indices[selected]],
        cache.types[node_indices[selected]],
        scores[scored[selected]],
    )


class _GrowableArray:
    """Array that grows; new elements have a given value."""

    def __init__(self, dtype: Any, fill: float = 0) -> None:
        self._fill, self._size = fill, 0
        self._buffer: NDArray[Any] = np.full(1024, fill, dtype)

    @property
    def values(self) -> NDArray[Any]:
        """The current elements."""
        return self._buffer[: self._size]

    def resize(self, size: int) -> None:
        """Set the number of elements."""
        if size > len(self._buffer):
            buffer = np.full(max(size, 2 * len(self._buffer)), self._fill, self._buffer.dtype)
            buffer[: self._size] = self.values
            self._buffer = buffer
        self._size = size

    def append(self, values: NDArray[Any]) -> None:
        """Append elements."""
        old_size = self._size
        self.resize(old_size + len(values))
        self._buffer[old_size : self._size] = values


class _GraphCache:
    """Data of the graph that a request has read: nodes by index, weight sums, neighbors."""

    def __init__(
        self, context: RequestContext, params: PagerankParams, relabeling: Relabeling
    ) -> None:
        self._context, self._params, self._relabeling = context, params, relabeling
        schema, outgoing = context.space.schema, params.direction == common_pb.OUT
        self._neighbor_types = np.array(
            [
                schema.node_type_id(edge.dst_type if outgoing else edge.src_type)
                for edge in schema.edge_types
            ],
            np.int32,
        )
        self._edge_params = neighbor_reads.EdgeReadParams(
            edge_types=params.edge_types,
            direction=params.direction,
            want_weights=not params.uniform,
            want_edge_ids=False,
            sort="",
        )
        self._summed = 0
        self._weight_sums, self._begins, self._ends = (
            _GrowableArray(np.float64, np.nan),
            _GrowableArray(np.int64, -1),
            _GrowableArray(np.int64, -1),
        )
        self._neighbors, self._weights = _GrowableArray(np.int32), _GrowableArray(np.float32)

    @property
    def ids(self) -> Ids:
        """ndarray of int64, shape (nodes,)."""
        return self._relabeling.ids

    @property
    def types(self) -> Types:
        """ndarray of int32, shape (nodes,)."""
        return self._relabeling.trees

    @property
    def weight_sums(self) -> NDArray[np.float64]:
        """Weight of all edges of each node, float64[nodes]; NaN if not read."""
        return self._weight_sums.values

    @property
    def begins(self) -> Ids:
        """Begin of each node's neighbors, int64[nodes]; -1 if not read."""
        return self._begins.values

    @property
    def ends(self) -> Ids:
        """End of each node's neighbors, int64[nodes]."""
        return self._ends.values

    @property
    def neighbors(self) -> Types:
        """Node indices of neighbors, int32[edges]."""
        return self._neighbors.values

    @property
    def weights(self) -> NDArray[np.float32]:
        """Weights of edges, float32[edges]; empty if every edge weighs 1."""
        return self._weights.values

    def assign_indices(self, ids: Ids, types: Types) -> Ids:
        """Return the index of each node."""
        indices = self._relabeling.assign(ids, types)
        for column in (self._weight_sums, self._begins, self._ends):
            column.resize(len(self._relabeling))
        return indices.astype(np.int64)

    def read_weight_sums(self) -> None:
        """Read the weight sums of the nodes that got indices since the last call.

        Every such node needs it, because mass arrives at all of them.
        """
        begin, end = self._summed, len(self._relabeling)
        step = REPLY_BYTES // (8 * len(self._params.edge_types))
        for start in range(begin, end, step):
            chunk = slice(start, min(start + step, end))
            params = self._params
            sums = neighbor_reads.edge_weight_sums(
                self._context,
                params.edge_types,
                params.direction,
                params.uniform,
                self.ids[chunk],
                -1,
                self.types[chunk],
            )
            self.weight_sums[chunk] = sums.sum(axis=1)
        self._summed = end

    def read_neighbors(self, indices: Ids) -> None:
        """Read the neighbors of those nodes that do not have them yet."""
        unread = np.unique(indices[self.begins[indices] < 0])
        isolated = unread[self.weight_sums[unread] == 0]
        self.begins[isolated] = self.ends[isolated] = 0
        self._read_neighbors(unread[self.weight_sums[unread] > 0])

    def _read_neighbors(self, indices: Ids) -> None:
        if not len(indices):
            return
        ids, types = self.ids[indices], self.types[indices]
        try:
            edges = neighbor_reads.neighbors(self._context, self._edge_params, ids, -1, types)
        except InvalidRequest as error:  # more than a reply can hold
            if len(indices) == 1:
                raise InvalidRequest(
                    f"node {ids[0]} has more edges than one reply can hold: {error.message}"
                ) from error
            half = len(indices) // 2
            self._read_neighbors(indices[:half])
            self._read_neighbors(indices[half:])
            return
        lengths, offset = np.diff(edges["indptr"]), len(self.neighbors)
        if not self._params.uniform:
            is_positive = edges["weights"] > 0
            lengths = np.diff(np.concatenate([[0], np.cumsum(is_positive)])[edges["indptr"]])
            edges = {name: edges[name][is_positive] for name in ("ids", "types", "weights")}
            self._weights.append(edges["weights"])
        if offset + len(edges["ids"]) > MAX_EDGES:
            raise InvalidRequest(
                f"the nodes reached have more than {MAX_EDGES} edges, the maximum of one "
                "request; use a larger epsilon, or request fewer nodes at a time"
            )
        self._neighbors.append(
            self.assign_indices(edges["ids"], self._neighbor_types[edges["types"]]).astype(np.int32)
        )
        ends = offset + np.cumsum(lengths)
        self.begins[indices], self.ends[indices] = ends - lengths, ends
