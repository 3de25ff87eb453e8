"""Handlers for graph labels of local partitions, and for the nodes that have them."""

from __future__ import annotations

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.api.version_resolution import RequestVersions


def read_graph_labels(
    versions: RequestVersions, request: Frame[storaged_pb.ReadGraphLabelsRequest], call: CallContext
) -> Frame[storaged_pb.ReadGraphLabelsReply]:
    """Read a page of graph labels."""
    head = request.head
    sections, cursor = sampling.read_graph_labels(
        versions.filtered(request, call), list(head.parts), head.cursor
    )
    return Frame(storaged_pb.ReadGraphLabelsReply(next_cursor=cursor), sections)


def read_nodes_by_label(
    versions: RequestVersions,
    request: Frame[storaged_pb.ReadNodesByLabelRequest],
    call: CallContext,
) -> Frame[storaged_pb.ReadNodesByLabelReply]:
    """Read the nodes of graph labels."""
    sections = sampling.read_nodes_by_label(
        versions.filtered(request, call),
        list(request.head.parts),
        request.array("indptr", "int64"),
        request.array("values", "uint8"),
    )
    return Frame(storaged_pb.ReadNodesByLabelReply(), sections)
