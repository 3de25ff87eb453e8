"""Walks: random walks, and the nodes that walks visit or end at most often."""

from __future__ import annotations

from asterism_model.elements import EDGE
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.decoding import (
    decode_direction,
    decode_edge_types,
    decode_nodes,
    decode_seed,
    step_edge_types,
)
from graphd.api.replies import read_reply, sample_reply
from graphd.operators import pagerank, visit_counts, walks
from graphd.operators.call_seeds import Operator
from graphd.operators.filters import with_filter
from graphd.operators.request_context import RequestContext

_MIN_BIAS, _MAX_BIAS = 1e-3, 1e3
_MIN_EPSILON = 1e-12
_MAX_WALKS = 1 << 20
"""Maximum walks per node, and nodes per ranking: more do not fit into a reply."""


def random_walk(
    context: RequestContext, request: Frame[graphd_pb.RandomWalkRequest]
) -> Frame[graphd_pb.RandomWalkReply]:
    """Walk from nodes."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    params = _decode_walk(schema, head)
    sections = walks.random_walks(
        with_filter(context, EDGE, step_edge_types(params.steps), head),
        params,
        nodes,
        head.node_type,
        types,
    )
    return sample_reply(context, graphd_pb.RandomWalkReply, sections)


def sample_pinsage(
    context: RequestContext, request: Frame[graphd_pb.SamplePinsageRequest]
) -> Frame[graphd_pb.SamplePinsageReply]:
    """Return the nodes that walks over a metapath visit most often."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    params = _decode_visits(schema, head)
    sections = visit_counts.top_visited(
        with_filter(context, EDGE, step_edge_types(params.walk.steps), head),
        params,
        nodes,
        head.node_type,
        types,
    )
    return sample_reply(context, graphd_pb.SamplePinsageReply, sections)


def personalized_pagerank(
    context: RequestContext, request: Frame[graphd_pb.PersonalizedPagerankRequest]
) -> Frame[graphd_pb.PersonalizedPagerankReply]:
    """Return the nodes at which walks from given nodes end most often."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    params = _decode_pagerank(schema, head)
    sections = pagerank.pagerank(
        with_filter(context, EDGE, params.edge_types, head), params, nodes, head.node_type, types
    )
    return read_reply(context, graphd_pb.PersonalizedPagerankReply, sections)


def _decode_walk(schema: Schema, head: graphd_pb.RandomWalkRequest) -> walks.RandomWalkParams:
    """Return the parameters of random walks."""
    if not head.steps:
        raise InvalidRequest("edge_types: expected at least one step")
    if not 0 <= head.restart <= 1:
        raise InvalidRequest(f"restart {head.restart}: expected a probability, 0 to 1")
    for name, value in (("p", head.p or 1.0), ("q", head.q or 1.0)):
        if not _MIN_BIAS <= value <= _MAX_BIAS:
            raise InvalidRequest(f"{name} {value}: expected {_MIN_BIAS} to {_MAX_BIAS:g}")
    steps = tuple(decode_edge_types(schema, step.edge_types) for step in head.steps)
    if head.walks > _MAX_WALKS:
        raise InvalidRequest(f"walks {head.walks}: expected 0 to {_MAX_WALKS} from a node")
    if head.distinct_first_step and not (head.walks and head.length):
        raise InvalidRequest(
            f"different_first with walks {head.walks} and length {head.length}: expected 1 "
            "or more walks of 1 or more steps"
        )
    direction = decode_direction(schema, head.direction)
    return walks.RandomWalkParams(
        steps=steps,
        length=head.length,
        uniform=head.uniform,
        direction=direction,
        # The types of a step are part of the keys of that step.
        seed=decode_seed(head, Operator.WALK, direction=direction),
        restart=head.restart,
        p=head.p or 1.0,
        q=head.q or 1.0,
        want_edge_ids=head.want_edge_ids,
        walks=head.walks,
        distinct_first_step=head.distinct_first_step,
    )


def _decode_visits(
    schema: Schema, head: graphd_pb.SamplePinsageRequest
) -> visit_counts.VisitParams:
    """Return the parameters of visit counts over a metapath."""
    if not head.steps:
        raise InvalidRequest("metapath: expected at least one step")
    for name, value, limit in (
        ("traversals", head.traversals, _MAX_WALKS),
        ("walks", head.walks, _MAX_WALKS),
    ):
        if not 1 <= value <= limit:
            raise InvalidRequest(f"{name} {value}: expected 1 to {limit}")
    if not 0 <= head.termination <= 1:
        raise InvalidRequest(f"termination {head.termination}: expected a probability, 0 to 1")
    if head.count < 0:
        raise InvalidRequest(f"count {head.count}: expected 0 or more neighbors per node")
    steps = tuple(decode_edge_types(schema, step.edge_types) for step in head.steps)
    direction = decode_direction(schema, head.direction)
    edges = [
        (edge.src_type, edge.dst_type)
        if direction == common_pb.OUT
        else (edge.dst_type, edge.src_type)
        for edge in schema.edge_types
    ]
    begins, ends = {edges[e][0] for e in steps[0]}, {edges[e][1] for e in steps[-1]}
    if head.traversals > 1 and not begins & ends:
        raise InvalidRequest(
            f"the metapath begins at {', '.join(sorted(begins))} and ends at "
            f"{', '.join(sorted(ends))}: it cannot be traversed {head.traversals} times; let it "
            "end where it begins, or use traversals=1"
        )
    walk_params = walks.RandomWalkParams(
        steps=steps,
        length=len(steps) * head.traversals,
        uniform=head.uniform,
        direction=direction,
        seed=decode_seed(head, Operator.WALK, direction=direction),
        restart=0.0,
        p=1.0,
        q=1.0,
        want_edge_ids=False,
    )
    return visit_counts.VisitParams(
        walk=walk_params, walks=head.walks, termination=head.termination, count=head.count
    )


def _decode_pagerank(
    schema: Schema, head: graphd_pb.PersonalizedPagerankRequest
) -> pagerank.PagerankParams:
    """Return the parameters of PageRank."""
    if not 0 < head.alpha <= 1:
        raise InvalidRequest(f"alpha {head.alpha}: expected a probability above 0, at most 1")
    if not _MIN_EPSILON <= head.epsilon <= 1:
        raise InvalidRequest(f"epsilon {head.epsilon}: expected {_MIN_EPSILON:g} to 1")
    if not 1 <= head.top <= _MAX_WALKS:
        raise InvalidRequest(f"top {head.top}: expected 1 to {_MAX_WALKS} nodes")
    return pagerank.PagerankParams(
        edge_types=decode_edge_types(schema, head.edge_types),
        direction=decode_direction(schema, head.direction),
        uniform=head.uniform,
        alpha=head.alpha,
        epsilon=head.epsilon,
        top_k=head.top,
    )
