"""Neighbors: sampling over one or several hops, full neighborhoods, and degrees."""

from __future__ import annotations

from fractions import Fraction

from asterism_model.elements import EDGE
from asterism_model.fanout_fractions import parse_share
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.decoding import (
    decode_direction,
    decode_edge_types,
    decode_nodes,
    decode_seed,
    step_edge_types,
)
from graphd.api.replies import read_reply, sample_reply
from graphd.operators import fanout_sampling, feature_join, neighbor_reads, neighbor_sampling
from graphd.operators import temporal_filters as temporal
from graphd.operators.call_seeds import Operator
from graphd.operators.filters import with_filter
from graphd.operators.request_context import RequestContext

HopRequest = graphd_pb.SampleNeighborsRequest | graphd_pb.SampleFanoutRequest


def sample_neighbors(
    context: RequestContext, request: Frame[graphd_pb.SampleNeighborsRequest]
) -> Frame[graphd_pb.SampleNeighborsReply]:
    """Sample neighbors of nodes."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    temporal_filter = temporal.neighbor_filter(
        request, schema, decode_edge_types(schema, head.edge_types)
    )
    hop = decode_hop(schema, head, head, 0, temporal_filter)
    sample = neighbor_sampling.sample_neighbors if hop.share is None else fanout_sampling.sample_hop
    sections = sample(
        with_filter(context, EDGE, hop.edge_types, head), hop, nodes, head.node_type, types
    )
    return sample_reply(context, graphd_pb.SampleNeighborsReply, sections)


def check_hops(request: Frame[graphd_pb.SampleFanoutRequest]) -> None:
    """Raise InvalidRequest if a fanout has no hop."""
    if not request.head.hops:
        raise InvalidRequest("counts: expected at least one hop")


def sample_fanout(
    context: RequestContext, request: Frame[graphd_pb.SampleFanoutRequest]
) -> Frame[graphd_pb.SampleFanoutReply]:
    """Sample neighbors of neighbors, hop by hop."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    temporal_filters = temporal.fanout_filters(
        request, schema, [decode_edge_types(schema, hop.edge_types) for hop in head.hops]
    )
    hops = [
        decode_hop(schema, head, hop, h, temporal_filters[h]) for h, hop in enumerate(head.hops)
    ]
    columns = feature_join.decode_features(schema, head.node_features)
    sampled = fanout_sampling.sample_fanout(
        with_filter(context, EDGE, step_edge_types(hop.edge_types for hop in hops), head),
        hops,
        nodes,
        head.node_type,
        types,
    )
    sections = feature_join.join_fanout(
        context, columns, hops, nodes, head.node_type, types, sampled
    )
    return sample_reply(context, graphd_pb.SampleFanoutReply, sections)


def neighbors(
    context: RequestContext, request: Frame[graphd_pb.NeighborsRequest]
) -> Frame[graphd_pb.NeighborsReply]:
    """Read all neighbors of nodes, or the heaviest."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    edge_params = _decode_neighbor_read(schema, head)
    sections = neighbor_reads.neighbors(
        with_filter(context, EDGE, edge_params.edge_types, head),
        edge_params,
        nodes,
        head.node_type,
        types,
    )
    return read_reply(context, graphd_pb.NeighborsReply, sections)


def degrees(
    context: RequestContext, request: Frame[graphd_pb.DegreesRequest]
) -> Frame[graphd_pb.DegreesReply]:
    """Count the edges of nodes, or sum their weights."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    edge_types = decode_edge_types(schema, head.edge_types)
    direction = decode_direction(schema, head.direction)
    filtered_context = with_filter(context, EDGE, edge_types, head)
    if not head.weight:
        sections = neighbor_reads.degrees(
            filtered_context, edge_types, direction, nodes, head.node_type, types
        )
    else:
        sections = {
            "sums": neighbor_reads.edge_weight_sums(
                filtered_context, edge_types, direction, False, nodes, head.node_type, types
            )
        }
    return read_reply(context, graphd_pb.DegreesReply, sections)


def decode_hop(
    schema: Schema,
    head: HopRequest,
    hop_head: graphd_pb.Hop | graphd_pb.SampleNeighborsRequest,
    hop: int,
    temporal_filter: temporal.TemporalFilter | None = None,
) -> neighbor_sampling.NeighborParams:
    """Return the sampling parameters of one hop."""
    count = hop_head.count
    if count < 0:
        raise InvalidRequest(f"count {count}: expected 0 or more neighbors per node")
    hop_types = decode_edge_types(schema, hop_head.edge_types)
    direction = decode_direction(schema, head.direction)
    return neighbor_sampling.NeighborParams(
        edge_types=hop_types,
        count=count,
        share=_decode_share(head, hop_head, is_timed=temporal_filter is not None),
        replace=head.replace,
        uniform=head.uniform,
        direction=direction,
        seed=decode_seed(head, Operator.NEIGHBORS, types=hop_types, direction=direction),
        hop=hop,
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        want_probabilities=head.want_probabilities,
        temporal_filter=temporal_filter,
    )


def _decode_share(
    head: HopRequest,
    hop_head: graphd_pb.Hop | graphd_pb.SampleNeighborsRequest,
    *,
    is_timed: bool,
) -> Fraction | None:
    """Return the share of each node's edges to sample, or None if the hop has a count."""
    text = hop_head.share
    if not text:
        return None
    share = parse_share("share", text)
    if hop_head.count:
        raise InvalidRequest(
            f"share={text}: expected a share or a count of neighbors, found count={hop_head.count}"
        )
    if head.replace:
        raise InvalidRequest(
            f"share={text}: expected replace=False; a share of a node's edges is sampled without "
            "replacement"
        )
    if is_timed:
        raise InvalidRequest(
            f"share={text}: expected no times along these edge types, because the edges of a node "
            "up to a time are not counted; give a number of neighbors as an integer"
        )
    return share


def _decode_neighbor_read(
    schema: Schema, head: graphd_pb.NeighborsRequest
) -> neighbor_reads.EdgeReadParams:
    """Return the parameters of a neighbor read."""
    if head.sort not in ("", "id", "weight"):
        raise InvalidRequest(f"sort {head.sort!r}: expected '', 'id' or 'weight'")
    if head.top and head.sort:
        raise InvalidRequest(
            f"sort {head.sort!r} with top {head.top}: the top neighbors are always ordered by "
            "weight; omit sort"
        )
    return neighbor_reads.EdgeReadParams(
        edge_types=decode_edge_types(schema, head.edge_types),
        direction=decode_direction(schema, head.direction),
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        sort=head.sort,
        top=head.top,
    )
