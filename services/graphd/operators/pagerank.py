"""Personalised PageRank by forward push: neighborhoods are read from the storageds as mass comes to
them, each once a request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.stable_order import stable_order
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
from graphd.operators import reads
from graphd.operators.sampling import REPLY_BYTES, Ids, RequestContext, Sections, Types

MAX_EDGES = 1 << 25
"""Held of a request's neighborhoods, 8 bytes each."""
MAX_PAIRS = 1 << 22
"""Of a start and a node that its mass has come to, some 60 bytes each."""
_GROUP = 256
"""Starts whose mass is pushed at a time, unless they come to too many nodes together."""
_PIECE_EDGES = 1 << 22
"""Along which mass goes at a time."""
_ROW_BYTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerankParams:
    """What PageRank is of, and how closely."""

    edge_types: tuple[int, ...]
    direction: common_pb.Direction
    uniform: bool
    alpha: float
    """The probability that a walk ends, at every step."""
    epsilon: float
    """No node of degree d is left with more than ``epsilon * d`` that has not settled."""
    top_k: int


class _TooManyPairs(Exception):
    """Starts come to more nodes than are held at a time."""


def pagerank(
    context: RequestContext, params: PagerankParams, nodes: Ids, node_type: int, types: Types | None
) -> Sections:
    """The nodes of the highest scores for each node: sections as PersonalizedPagerankReply has
    them.

    Notes
    -----
    Mass is pushed in rounds: all nodes that hold back more than they may at its beginning settle,
    and what they carry on arrives in the order of (start, node id, node type, edge as stored). So
    what a start comes to depends on nothing but the graph."""
    if len(nodes) * params.top_k * _ROW_BYTES > REPLY_BYTES:
        max_nodes = REPLY_BYTES // (_ROW_BYTES * params.top_k)
        raise InvalidRequest(
            f"{params.top_k} nodes for each of {len(nodes)} do not fit into one reply; ask "
            f"for {max_nodes} nodes at a time"
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
                        f"nodes[{existing[begin]}] = {nodes[existing[begin]]} comes to more "
                        f"than {MAX_PAIRS} nodes with epsilon {params.epsilon:g}, "
                        "the most that is held for one; ask with a larger epsilon"
                    ) from None
                size = max(min(size, len(existing) - begin) // 2, 1)
                continue
            begin += size
    return out


def _rank_on_one_host(
    context: RequestContext, params: PagerankParams, nodes: Ids, node_types: Types
) -> Sections:
    """The whole of it, by the one storaged that has every part."""
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
    """Push the mass of some starts until no node holds back more than it may, and put the highest
    scores into their rows.
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
    """The highest scores of each start; ties by id, then by type."""
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
    """An array that grows; what is new in it is a given value."""

    def __init__(self, dtype: Any, fill: float = 0) -> None:
        self._fill, self._size = fill, 0
        self._buffer: NDArray[Any] = np.full(1024, fill, dtype)

    @property
    def values(self) -> NDArray[Any]:
        """What there is of it."""
        return self._buffer[: self._size]

    def resize(self, size: int) -> None:
        """Make it that long."""
        if size > len(self._buffer):
            buffer = np.full(max(size, 2 * len(self._buffer)), self._fill, self._buffer.dtype)
            buffer[: self._size] = self.values
            self._buffer = buffer
        self._size = size

    def append(self, values: NDArray[Any]) -> None:
        """Make it longer by these."""
        old_size = self._size
        self.resize(old_size + len(values))
        self._buffer[old_size : self._size] = values


class _GraphCache:
    """What a request has read of the graph: nodes by number, what their edges weigh, and the
    neighbors of some.
    """

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
        self._edge_params = reads.EdgeReadParams(
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
        """int64[nodes]."""
        return self._relabeling.ids

    @property
    def types(self) -> Types:
        """int32[nodes]."""
        return self._relabeling.trees

    @property
    def weight_sums(self) -> NDArray[np.float64]:
        """float64[nodes]: what the edges of each weigh together, NaN where nobody asked."""
        return self._weight_sums.values

    @property
    def begins(self) -> Ids:
        """int64[nodes]: where the neighbors of each begin; -1 where they are not read."""
        return self._begins.values

    @property
    def ends(self) -> Ids:
        """int64[nodes]."""
        return self._ends.values

    @property
    def neighbors(self) -> Types:
        """int32[edges], by number."""
        return self._neighbors.values

    @property
    def weights(self) -> NDArray[np.float32]:
        """float32[edges]; none where every edge weighs 1."""
        return self._weights.values

    def assign_indices(self, ids: Ids, types: Types) -> Ids:
        """The number of each node."""
        indices = self._relabeling.assign(ids, types)
        for column in (self._weight_sums, self._begins, self._ends):
            column.resize(len(self._relabeling))
        return indices.astype(np.int64)

    def read_weight_sums(self) -> None:
        """Ask what the edges of nodes weigh, of whom nobody asked: those that got numbers since,
        for mass comes to all of them.
        """
        begin, end = self._summed, len(self._relabeling)
        step = REPLY_BYTES // (8 * len(self._params.edge_types))
        for start in range(begin, end, step):
            chunk = slice(start, min(start + step, end))
            params = self._params
            sums = reads.edge_weight_sums(
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
        """Read the neighbors of nodes, of whom they are not held."""
        unread = np.unique(indices[self.begins[indices] < 0])
        isolated = unread[self.weight_sums[unread] == 0]
        self.begins[isolated] = self.ends[isolated] = 0
        self._read_neighbors(unread[self.weight_sums[unread] > 0])

    def _read_neighbors(self, indices: Ids) -> None:
        if not len(indices):
            return
        ids, types = self.ids[indices], self.types[indices]
        try:
            edges = reads.neighbors(self._context, self._edge_params, ids, -1, types)
        except InvalidRequest as error:  # more than one reply holds
            if len(indices) == 1:
                raise InvalidRequest(
                    f"node {ids[0]} has more edges than can be read at a time: {error.message}"
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
                f"the nodes that mass comes to have more than {MAX_EDGES} edges, the most "
                "that one request reads; "
                "ask with a larger epsilon, or for fewer nodes at a time"
            )
        self._neighbors.append(
            self.assign_indices(edges["ids"], self._neighbor_types[edges["types"]]).astype(np.int32)
        )
        ends = offset + np.cumsum(lengths)
        self.begins[indices], self.ends[indices] = ends - lengths, ends
