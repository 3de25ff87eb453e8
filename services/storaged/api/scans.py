"""Handlers for scans: rows of a partition in order or by position, and weight histograms."""

from __future__ import annotations

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.api.version_resolution import RequestVersions


def read_nodes(
    versions: RequestVersions, request: Frame[storaged_pb.ReadNodesRequest], call: CallContext
) -> Frame[storaged_pb.ReadNodesReply]:
    """Read a page of one partition's nodes."""
    head = request.head
    version = versions.filtered(request, call).with_weights(
        head.weight, sampling.NODE, [head.type_id]
    )
    sections, cursor = sampling.read_nodes(
        version, head.type_id, head.part, head.cursor, head.limit, list(head.names)
    )
    return Frame(storaged_pb.ReadNodesReply(next_cursor=cursor), sections)


def read_edges(
    versions: RequestVersions, request: Frame[storaged_pb.ReadEdgesRequest], call: CallContext
) -> Frame[storaged_pb.ReadEdgesReply]:
    """Read a page of one partition's edges."""
    head = request.head
    version = versions.filtered(request, call).with_weights(
        head.weight, sampling.EDGE, [head.type_id]
    )
    sections, cursor = sampling.read_edges(
        version, head.type_id, head.part, head.cursor, head.limit
    )
    return Frame(storaged_pb.ReadEdgesReply(next_cursor=cursor), sections)


def read_nodes_at(
    versions: RequestVersions, request: Frame[storaged_pb.ReadNodesAtRequest], call: CallContext
) -> Frame[storaged_pb.ReadNodesAtReply]:
    """Read nodes of local partitions by position."""
    ids = sampling.read_nodes_at(
        versions.filtered(request, call),
        request.head.type_id,
        request.array("parts", "int32"),
        request.array("places", "int64"),
    )
    return Frame(storaged_pb.ReadNodesAtReply(), {"ids": ids})


def read_edges_at(
    versions: RequestVersions, request: Frame[storaged_pb.ReadEdgesAtRequest], call: CallContext
) -> Frame[storaged_pb.ReadEdgesAtReply]:
    """Read edges of local partitions by position."""
    head = request.head
    version = versions.filtered(request, call).with_weights(
        head.weight, sampling.EDGE, [head.type_id]
    )
    sections = sampling.read_edges_at(
        version, head.type_id, request.array("parts", "int32"), request.array("places", "int64")
    )
    return Frame(storaged_pb.ReadEdgesAtReply(), sections)


def read_weight_histogram(
    versions: RequestVersions,
    request: Frame[storaged_pb.ReadWeightHistogramRequest],
    call: CallContext,
) -> Frame[storaged_pb.ReadWeightHistogramReply]:
    """Read the histogram of a type's weights in local partitions."""
    head = request.head
    version = versions.filtered(request, call).with_weights(
        head.weight, head.element, [head.type_id]
    )
    histogram = sampling.build_histogram(
        version, head.element, head.type_id, list(head.parts), call.remaining
    )
    return Frame(
        storaged_pb.ReadWeightHistogramReply(), {"counts": histogram.counts, "sums": histogram.sums}
    )
