"""Scans: rows of a partition in canonical order, and rows by their position in a scan."""

from __future__ import annotations

from asterism_model.elements import EDGE, NODE
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.operators import scans
from graphd.operators.filters import with_filter
from graphd.operators.request_context import RequestContext
from graphd.operators.schema_checks import check_types, resolve_weight_name


def scan_nodes(
    context: RequestContext, request: Frame[graphd_pb.ScanNodesRequest]
) -> Frame[graphd_pb.ScanNodesReply]:
    """Read consecutive nodes of one partition."""
    head, schema = request.head, context.space.schema
    check_types("node", schema, [head.type_id])
    sections, cursor = scans.scan_nodes(
        context.with_weights(resolve_weight_name(NODE, schema, [head.type_id], head.weight)),
        head.type_id,
        head.part,
        head.cursor,
        head.limit,
        list(head.names),
    )
    return Frame(
        graphd_pb.ScanNodesReply(version=context.version.version, next_cursor=cursor), sections
    )


def scan_edges(
    context: RequestContext, request: Frame[graphd_pb.ScanEdgesRequest]
) -> Frame[graphd_pb.ScanEdgesReply]:
    """Read consecutive edges of one partition."""
    head, schema = request.head, context.space.schema
    check_types("edge", schema, [head.type_id])
    sections, cursor = scans.scan_edges(
        context.with_weights(resolve_weight_name(EDGE, schema, [head.type_id], head.weight)),
        head.type_id,
        head.part,
        head.cursor,
        head.limit,
        list(head.names),
    )
    return Frame(
        graphd_pb.ScanEdgesReply(version=context.version.version, next_cursor=cursor), sections
    )


def nodes_at(
    context: RequestContext, request: Frame[graphd_pb.NodesAtRequest]
) -> Frame[graphd_pb.NodesAtReply]:
    """Read nodes by their position in a scan."""
    head = request.head
    check_types("node", context.space.schema, [head.type_id])
    sections, count = scans.nodes_at(context, head.type_id, request.array("places", "int64"))
    return Frame(graphd_pb.NodesAtReply(version=context.version.version, count=count), sections)


def edges_at(
    context: RequestContext, request: Frame[graphd_pb.EdgesAtRequest]
) -> Frame[graphd_pb.EdgesAtReply]:
    """Read edges by their position in a scan."""
    head = request.head
    check_types("edge", context.space.schema, [head.type_id])
    sections, count = scans.edges_at(
        with_filter(context, EDGE, [head.type_id], head),
        head.type_id,
        request.array("places", "int64"),
    )
    return Frame(graphd_pb.EdgesAtReply(version=context.version.version, count=count), sections)
