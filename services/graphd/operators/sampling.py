"""Sampling: global draws of nodes and edges, and neighbors.

Each operator is a pure function of (version, request, seed).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from asterism_daemonkit.calls import CallContext
from asterism_graphkit.random import rng
from asterism_graphkit.random.alias_build import neumaier_sum
from asterism_graphkit.random.partition_choice import PartShares, choose_entries, group_by_key
from asterism_model.elements import EDGE, NODE
from asterism_proto.errors import Internal, InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators.temporal import TemporalFilter
from graphd.operators.without_replacement import (
    DistinctDraws,
    conditional_probabilities,
    smallest_key_rows,
)
from graphd.routing import split_merge
from graphd.routing.dispatch import Dispatcher
from graphd.routing.excluded_edges import FOLLOWING_METHODS, RoutedExclusions
from graphd.routing.filter_cache import FilterTotalsCache
from graphd.routing.routes import ServedVersion, SpaceRoute

Ids = NDArray[np.int64]
Types = NDArray[np.int32]
Sections = dict[str, NDArray[Any]]

REPLY_BYTES = 60 << 20
"""Maximum bytes of one reply's arrays, so that it fits into a message of 64 MiB."""
_ROW_BYTES = {NODE: 12, EDGE: 32}
_PROBABILITY_BYTES = 8
_WORD = {NODE: "node", EDGE: "edge"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Context of one request: version, weights, filter, dispatcher and deadline."""

    space: SpaceRoute
    version: ServedVersion
    dispatcher: Dispatcher
    call: CallContext
    filter_cache: FilterTotalsCache = field(default_factory=FilterTotalsCache)
    """Totals of filters of earlier requests."""
    weight_name: str = ""
    """Name of the weights to sample by; "" for the rows' own weights."""
    row_filter: storaged_pb.RowFilter | None = None
    """Filter of the rows, with their totals; None for all rows."""
    filter_plan: str = ""
    """Description of how the filter is evaluated."""
    exclusions: RoutedExclusions | None = None
    """Edges that the request excludes; None for none."""

    def with_weights(self, weight_name: str) -> RequestContext:
        """Return this context with the weights of that name."""
        if weight_name == self.weight_name:
            return self
        return replace(
            self,
            version=replace(self.version, totals=self.version.totals.with_weights(weight_name)),
            weight_name=weight_name,
        )

    def without_filter(self) -> RequestContext:
        """Return this context without a filter, for lookups of types."""
        return replace(self, row_filter=None)

    def version_ref(self) -> storaged_pb.VersionRef:
        """Return the version and the filter in the form that storageds accept."""
        return storaged_pb.VersionRef(
            space_id=self.space.space_id,
            version=self.version.version,
            digest=self.version.digest,
            where=self.row_filter,
        )

    def dispatch(
        self, name: str, requests: Sequence[tuple[int, Frame[Message]]]
    ) -> list[Frame[Message]]:
        """Return the hosts' replies in request order.

        Requests that follow edges get the excluded edges, so that no operator can ignore them.
        """
        if self.exclusions is not None and name in FOLLOWING_METHODS:
            requests = [
                (host, Frame(request.head, {**request.arrays, **self.exclusions.sections(host)}))
                for host, request in requests
            ]
        return self.dispatcher.dispatch(name, self.space, requests, self.call)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalDraw:
    """Parameters for sampling nodes or edges from all partitions."""

    element: int
    """NODE or EDGE."""
    types: tuple[int, ...]
    seed: int
    count: int
    uniform: bool
    distinct: bool
    want_probabilities: bool

    @property
    def max_rows(self) -> int:
        """Maximum rows that one reply can hold."""
        return REPLY_BYTES // (
            _ROW_BYTES[self.element] + _PROBABILITY_BYTES * self.want_probabilities
        )

    @property
    def id_section(self) -> str:
        """Section with the ids of rows, unique within a type."""
        return "ids" if self.element == NODE else "eids"

    @property
    def is_single_type(self) -> bool:
        """True if the request names a single node type, so that the reply omits types."""
        return self.element == NODE and len(self.types) == 1

    @property
    def method(self) -> str:
        """Method of storageds for this draw."""
        return "draw_nodes" if self.element == NODE else "draw_edges"


def draw(context: RequestContext, draw: GlobalDraw) -> Sections:
    """Return ``draw.count`` rows in draw order, with or without replacement."""
    if not 0 <= draw.count <= draw.max_rows:
        raise InvalidRequest(f"count {draw.count}: expected 0 to {draw.max_rows} in one call")
    shares = context.version.totals.shares(draw.element, draw.types, uniform=draw.uniform)
    if not shares.total > 0:
        raise NotFound(nothing_to_draw(context, draw))
    sections = (
        _draw_distinct(context, draw, shares)
        if draw.distinct
        else _draw_block(context, draw, shares, 0, draw.count)
    )
    if draw.is_single_type:
        sections.pop("types", None)  # the client knows the only type
    return sections


def nothing_to_draw(context: RequestContext, draw: GlobalDraw) -> str:
    """Return the reason why nothing can be drawn, for a message."""
    schema, totals = context.space.schema, context.version.totals
    schema_types = schema.node_types if draw.element == NODE else schema.edge_types
    names = (
        ", ".join(repr(schema_types[type_id].name) for type_id in draw.types)
        or f"no {_WORD[draw.element]} type"
    )
    rows = totals.drawable_count(draw.element, draw.types, uniform=True)
    source = f"version {context.version.version} of space {context.space.name!r}"
    if context.row_filter is not None:
        source += f" where {context.row_filter.expression}"
    if rows:
        weight_label = f" {context.weight_name!r}" if context.weight_name else ""
        return (
            f"nothing to draw from {names}: all {rows} weights{weight_label} in {source} are "
            "zero; draw uniformly"
        )
    return f"nothing to draw from {names}: {source} has no such {_WORD[draw.element]}"


def _draw_block(
    context: RequestContext, draw: GlobalDraw, shares: PartShares, start: int, count: int
) -> Sections:
    """Return draws start .. start + count - 1 of the stream."""
    space = context.space
    key = rng.key_of(draw.seed, rng.PART, draw.element)
    hosts = np.unique(space.host_of_part[shares.parts[shares.measure > 0]])
    if len(hosts) > 1 and count:
        order, offsets = group_by_key(
            space.host_of_part[shares.parts].take(choose_entries(key, start, count, shares)),
            len(space.hosts),
        )
        rows: list[Ids | None] = [order[offsets[host] : offsets[host + 1]] for host in hosts]
    else:
        rows = [None] * len(hosts)  # one host has all draws, or there are no draws
    requests = [
        (int(host), Frame(_draw_request(context, draw, int(host), start, count))) for host in hosts
    ]
    replies = context.dispatch(draw.method, requests)
    for (host, _), reply, host_rows in zip(requests, replies, rows, strict=True):
        received, expected = (
            len(reply.arrays[draw.id_section]),
            count if host_rows is None else len(host_rows),
        )
        if received != expected:
            raise Internal(
                f"storaged at {context.dispatcher.address(space.hosts[host])} returned "
                f"{received} draws: expected {expected}"
            )
    if len(replies) == 1:
        return dict(replies[0].arrays)
    return split_merge.merge_rows(
        count,
        [(host_rows, reply.arrays) for host_rows, reply in zip(rows, replies, strict=True)],
        context.call.remaining,
    )


def _draw_request(
    context: RequestContext,
    draw: GlobalDraw,
    host: int,
    start: int,
    count: int,
    *,
    exponential_keys: bool = False,
    want_rest: bool = False,
) -> storaged_pb.DrawNodesRequest | storaged_pb.DrawEdgesRequest:
    request_type: type[storaged_pb.DrawNodesRequest] | type[storaged_pb.DrawEdgesRequest] = (
        storaged_pb.DrawNodesRequest if draw.element == NODE else storaged_pb.DrawEdgesRequest
    )
    return request_type(
        version_ref=context.version_ref(),
        types=draw.types,
        parts=context.space.parts_of(host),
        seed=draw.seed,
        start=start,
        count=count,
        uniform=draw.uniform,
        exponential_keys=exponential_keys,
        want_probabilities=draw.want_probabilities,
        remaining_weight=want_rest,
        weight=context.weight_name,
    )


def _draw_distinct(context: RequestContext, draw: GlobalDraw, shares: PartShares) -> Sections:
    """Return the first distinct draws of the stream, then exponential-key selections."""
    available = context.version.totals.drawable_count(
        draw.element, draw.types, uniform=draw.uniform
    )
    if draw.count > available:
        mode = "uniformly" if draw.uniform else "by weight"
        raise InvalidRequest(
            f"{draw.count} different {_WORD[draw.element]}s were requested; {available} can be "
            f"drawn {mode}"
        )
    distinct_draws, start = DistinctDraws(draw.id_section), 0
    while not start or (len(distinct_draws) < draw.count and not distinct_draws.exhausted):
        block_size = min(max(2 * (draw.count - len(distinct_draws)), 64), draw.max_rows)
        distinct_draws.add(
            _with_types(draw, _draw_block(context, draw, shares, start, block_size)),
            context.call.remaining,
        )
        start += block_size
    sections = distinct_draws.first(draw.count)
    missing = draw.count - len(sections["types"])
    if missing:
        winners = smallest_key_rows(
            [
                reply.arrays
                for reply in draw_excluding(
                    context, draw, shares, sections, missing, exponential_keys=True
                )
            ],
            draw.id_section,
            missing,
            context.call.remaining,
        )
        sections = {
            name: np.concatenate([array, winners[name]]) for name, array in sections.items()
        }
    if draw.want_probabilities:
        sections["probabilities"] = conditional_probabilities(
            sections["probabilities"],
            uniform=draw.uniform,
            available=available,
            remaining_share=lambda: (
                weight_excluding(context, draw, shares, sections) / shares.total
            ),
        )
    return sections


def _with_types(draw: GlobalDraw, sections: Sections) -> Sections:
    """Return draws with their types."""
    return (
        sections | {"types": np.full(len(sections[draw.id_section]), draw.types[0], np.int32)}
        if "types" not in sections
        else sections
    )


def draw_excluding(
    context: RequestContext,
    draw: GlobalDraw,
    shares: PartShares,
    excluded_rows: Sections,
    count: int,
    *,
    exponential_keys: bool = False,
    want_rest: bool = False,
) -> list[Frame[Message]]:
    """Return the hosts' replies about all rows except the excluded ones."""
    sections: Sections = {
        "excluded_ids": excluded_rows[draw.id_section],
        "excluded_types": excluded_rows["types"],
    }
    hosts = np.unique(context.space.host_of_part[shares.parts[shares.measure > 0]])
    requests = [
        (
            int(host),
            Frame(
                _draw_request(
                    context,
                    draw,
                    int(host),
                    0,
                    count,
                    exponential_keys=exponential_keys,
                    want_rest=want_rest,
                ),
                sections,
            ),
        )
        for host in hosts
    ]
    return context.dispatch(draw.method, requests)


def weight_excluding(
    context: RequestContext, draw: GlobalDraw, shares: PartShares, excluded_rows: Sections
) -> float:
    """Return the weight of all rows except the excluded ones.

    The sum has the same terms in the same order, whichever hosts hold the rows.
    """
    rest_weights = [
        reply.array("remaining_weight", "float64", 2)
        for reply in draw_excluding(context, draw, shares, excluded_rows, 0, want_rest=True)
    ]
    terms = np.concatenate([part_weights.reshape(-1) for part_weights in rest_weights])
    return neumaier_sum(np.sort(terms[terms > 0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborParams:
    """Parameters for sampling the neighbors of one hop."""

    edge_types: tuple[int, ...]
    count: int
    replace: bool
    uniform: bool
    direction: common_pb.Direction
    seed: int
    hop: int
    want_weights: bool
    want_edge_ids: bool
    want_probabilities: bool
    share: Fraction | None = None
    """Share of each node's edges to sample in place of ``count``; `fanouts` follows it."""
    distinct_nodes: bool = False
    """Sample distinct neighbors instead of distinct edges."""
    temporal_filter: TemporalFilter | None = None


def check_reply_size(params: NeighborParams, nodes: int) -> None:
    """Raise InvalidRequest if the neighbors of a number of nodes do not fit into one reply."""
    width = (
        8
        + 4 * (len(params.edge_types) > 1)
        + 4 * params.want_weights
        + 8 * params.want_edge_ids
        + _PROBABILITY_BYTES * params.want_probabilities
    )
    width += 8 * (params.temporal_filter is not None and params.temporal_filter.head.want_times)
    if params.count * nodes * width > REPLY_BYTES:
        max_nodes = REPLY_BYTES // (width * max(params.count, 1))
        raise InvalidRequest(
            f"{params.count} neighbors of {nodes} nodes do not fit into one reply; request "
            f"{max_nodes} nodes at a time"
        )


def sample_neighbors(
    context: RequestContext,
    params: NeighborParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    positions: Ids | None = None,
) -> Sections:
    """Sample ``params.count`` neighbors per node: sections [m, count] of DrawNeighborsReply.

    A draw is keyed by the node and its position, which is its index in the request unless
    ``positions`` is given. Part of the sampling contract: changing it changes results for a given
    seed.
    """
    check_reply_size(params, len(nodes))
    head = storaged_pb.DrawNeighborsRequest(
        version_ref=context.version_ref(),
        edge_types=params.edge_types,
        node_type=node_type,
        count=params.count,
        replace=params.replace,
        uniform=params.uniform,
        direction=params.direction,
        seed=params.seed,
        hop=params.hop,
        want_weights=params.want_weights,
        want_edge_ids=params.want_edge_ids,
        want_probabilities=params.want_probabilities,
        weight=context.weight_name,
        distinct_neighbors=params.distinct_nodes,
        temporal_filter=None if params.temporal_filter is None else params.temporal_filter.head,
    )
    plan = split_merge.rows_by_owner(context.space, nodes)
    if not plan:  # without nodes there is no owner; one host still returns the array shapes
        plan = [(0, None)]
    if positions is None:
        positions = np.arange(len(nodes), dtype=np.int64)
    requests = []
    for host, rows in plan:
        sections: Sections = {
            "ids": split_merge.take_rows(nodes, rows),
            "positions": split_merge.take_rows(positions, rows),
        }
        if types is not None:
            sections["types"] = split_merge.take_rows(types, rows)
        if params.temporal_filter is not None:
            sections["times"] = params.temporal_filter.times_at(rows)
        requests.append((host, Frame(head, sections)))
    replies = context.dispatch("draw_neighbors", requests)
    return split_merge.merge_rows(
        len(nodes),
        [(rows, reply.arrays) for (_, rows), reply in zip(plan, replies, strict=True)],
        context.call.remaining,
    )


def neighbor_types(
    space: SpaceRoute, hop: NeighborParams, edge_types: Types | None
) -> tuple[int, Types | None]:
    """Return the node type of a hop's neighbors, or -1 and the type of each if they differ."""
    schema = space.schema
    ends = [
        schema.node_type_id(edge.dst_type if hop.direction == common_pb.OUT else edge.src_type)
        for edge in schema.edge_types
    ]
    type_ids = {ends[edge_type] for edge_type in hop.edge_types}
    if len(type_ids) == 1 or edge_types is None:
        return type_ids.pop(), None
    # The extra last entry maps edge type -1 ("none") to node type -1.
    return -1, np.array([*ends, -1], np.int32)[edge_types]
