"""Handlers for features of local nodes and edges, and for types of nodes."""

from __future__ import annotations

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.api.version_resolution import RequestVersions


def read_node_features(
    versions: RequestVersions,
    request: Frame[storaged_pb.ReadNodeFeaturesRequest],
    call: CallContext,
) -> Frame[storaged_pb.ReadNodeFeaturesReply]:
    """Read feature columns of local nodes."""
    head = request.head
    version = versions.filtered(request, call).with_weights(
        head.weight, sampling.NODE, [head.type_id]
    )
    sections = sampling.node_features(
        version,
        head.type_id,
        list(head.names),
        request.array("ids", "int64"),
        call.remaining,
    )
    return Frame(storaged_pb.ReadNodeFeaturesReply(), sections)


def read_edge_features(
    versions: RequestVersions,
    request: Frame[storaged_pb.ReadEdgeFeaturesRequest],
    call: CallContext,
) -> Frame[storaged_pb.ReadEdgeFeaturesReply]:
    """Read feature columns of edges with features stored here."""
    head = request.head
    sections = sampling.edge_features(
        versions.filtered(request, call),
        head.type_id,
        list(head.names),
        request.array("eids", "int64"),
        call.remaining,
    )
    return Frame(storaged_pb.ReadEdgeFeaturesReply(), sections)


def read_node_types(
    versions: RequestVersions, request: Frame[storaged_pb.ReadNodeTypesRequest], call: CallContext
) -> Frame[storaged_pb.ReadNodeTypesReply]:
    """Read the types of local nodes."""
    version, types = versions.filtered(request, call), request.optional_array("types", "int32")
    node_types = sampling.node_types(
        version, request.head.node_type, request.array("ids", "int64"), types, call.remaining
    )
    return Frame(storaged_pb.ReadNodeTypesReply(), {"types": node_types})
