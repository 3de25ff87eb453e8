"""Sampling of the neighbors of one hop."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types
from graphd.operators.temporal_filters import TemporalFilter
from graphd.routing import split_merge
from graphd.routing.routes import SpaceRoute

_PROBABILITY_BYTES = 8


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
