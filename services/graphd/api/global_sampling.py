"""Global sampling: nodes or edges of a version, and nodes of the types of given nodes."""

from __future__ import annotations

from asterism_model.elements import EDGE, NODE
from asterism_model.schema import Schema
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.decoding import decode_nodes, decode_seed
from graphd.api.replies import sample_reply
from graphd.operators import global_sampling, negatives
from graphd.operators.call_seeds import Operator
from graphd.operators.filters import with_filter
from graphd.operators.request_context import RequestContext, Sections
from graphd.operators.schema_checks import check_types

GlobalDrawRequest = graphd_pb.SampleNodesRequest | graphd_pb.SampleEdgesRequest


def sample_nodes(
    context: RequestContext, request: Frame[graphd_pb.SampleNodesRequest]
) -> Frame[graphd_pb.SampleNodesReply]:
    """Sample nodes."""
    return sample_reply(context, graphd_pb.SampleNodesReply, _draw(context, NODE, request.head))


def sample_edges(
    context: RequestContext, request: Frame[graphd_pb.SampleEdgesRequest]
) -> Frame[graphd_pb.SampleEdgesReply]:
    """Sample edges."""
    return sample_reply(context, graphd_pb.SampleEdgesReply, _draw(context, EDGE, request.head))


def sample_nodes_like(
    context: RequestContext, request: Frame[graphd_pb.SampleNodesLikeRequest]
) -> Frame[graphd_pb.SampleNodesLikeReply]:
    """Sample nodes of the same types as the given nodes."""
    head, schema = request.head, context.space.schema
    nodes, types = decode_nodes(request, schema)
    type_ids = list(range(len(schema.node_types))) if head.node_type < 0 else [head.node_type]
    if types is not None:
        type_ids = sorted(set(types[types >= 0].tolist()))
    filtered_context = with_filter(context, NODE, type_ids, head)
    draw = global_sampling.GlobalDraw(
        element=NODE,
        types=tuple(type_ids),
        seed=decode_seed(head, Operator.NODES_LIKE),
        count=head.count,
        uniform=head.uniform,
        distinct=False,
        want_probabilities=head.want_probabilities,
    )
    sections = negatives.sample_nodes_like(
        filtered_context,
        negatives.NodesLikeParams(draw=draw, allow_unknown=head.allow_unknown),
        nodes,
        head.node_type,
        types,
    )
    return sample_reply(context, graphd_pb.SampleNodesLikeReply, sections)


def decode_global_draw(
    element: int, schema: Schema, head: GlobalDrawRequest
) -> global_sampling.GlobalDraw:
    """Return the parameters of a global draw; without types, all types."""
    types = sorted(set(head.types))
    schema_types = schema.node_types if element == NODE else schema.edge_types
    check_types("node" if element == NODE else "edge", schema, types)
    types = types or list(range(len(schema_types)))
    return global_sampling.GlobalDraw(
        element=element,
        types=tuple(types),
        seed=decode_seed(head, Operator.NODES if element == NODE else Operator.EDGES, types=types),
        count=head.count,
        uniform=head.uniform,
        distinct=head.distinct,
        want_probabilities=head.want_probabilities,
    )


def _draw(context: RequestContext, element: int, head: GlobalDrawRequest) -> Sections:
    draw = decode_global_draw(element, context.space.schema, head)
    return global_sampling.draw(with_filter(context, element, draw.types, head), draw)
