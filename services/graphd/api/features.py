"""Handlers that read features of nodes and edges, and types of nodes."""

from __future__ import annotations

from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.decoding import decode_nodes
from graphd.api.replies import read_reply
from graphd.operators import reads
from graphd.operators.request_context import RequestContext
from graphd.operators.schema_checks import check_types


def node_features(
    context: RequestContext, request: Frame[graphd_pb.NodeFeaturesRequest]
) -> Frame[graphd_pb.NodeFeaturesReply]:
    """Read feature columns of nodes."""
    head = request.head
    check_types("node", context.space.schema, [head.type_id])
    sections = reads.node_features(
        context, head.type_id, list(head.names), request.array("nodes", "int64")
    )
    return read_reply(context, graphd_pb.NodeFeaturesReply, sections)


def edge_features(
    context: RequestContext, request: Frame[graphd_pb.EdgeFeaturesRequest]
) -> Frame[graphd_pb.EdgeFeaturesReply]:
    """Read feature columns of edges."""
    head = request.head
    check_types("edge", context.space.schema, [head.type_id])
    sections = reads.edge_features(
        context, head.type_id, list(head.names), request.array("eids", "int64")
    )
    return read_reply(context, graphd_pb.EdgeFeaturesReply, sections)


def node_types(
    context: RequestContext, request: Frame[graphd_pb.NodeTypesRequest]
) -> Frame[graphd_pb.NodeTypesReply]:
    """Read the types of nodes."""
    nodes, types = decode_nodes(request, context.space.schema)
    sections = reads.node_types(context, nodes, request.head.node_type, types)
    return read_reply(context, graphd_pb.NodeTypesReply, sections)
