"""Handlers for neighbors of local nodes: samples, reads, degrees, and edge lookups."""

from __future__ import annotations

from typing import Any

import numpy as np

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.api.decoding import decode_temporal_filter, node_arguments, present_sections
from storaged.api.version_resolution import RequestVersions


def draw_neighbors(
    versions: RequestVersions, request: Frame[storaged_pb.DrawNeighborsRequest], call: CallContext
) -> Frame[storaged_pb.DrawNeighborsReply]:
    """Sample neighbors of local nodes."""
    head = request.head
    temporal_filter = decode_temporal_filter(request)
    ranges = (
        versions.index_ranges(request)
        if temporal_filter is None and not head.distinct_neighbors
        else {}
    )
    version = (
        versions.unfiltered(request) if ranges else versions.filtered(request, call)
    ).with_weights(head.weight, sampling.EDGE, head.edge_types)
    can_reject = head.replace or (len(head.edge_types) == 1 and not head.distinct_neighbors)
    version = versions.without_excluded(
        version,
        request,
        head.edge_types,
        call,
        sampling.RejectionParams(
            uniform=head.uniform, distinct=0 if head.replace else max(head.count, 0)
        )
        if can_reject and temporal_filter is None
        else None,
        alias_tables=not head.uniform,
    )
    arguments: dict[str, Any] = {
        **node_arguments(request),
        "positions": request.array("positions", "int64"),
        "count": head.count,
        "replace": head.replace,
        "uniform": head.uniform,
        "seed": head.seed,
        "hop": head.hop,
        "want_weights": head.want_weights,
        "want_edge_ids": head.want_edge_ids,
        "checkpoint": call.remaining,
    }
    if temporal_filter is not None:
        sample = sampling.sample_temporal_neighbors(
            version, **arguments, temporal_filter=temporal_filter
        )
    elif ranges:
        sample = sampling.sample_indexed_neighbors(
            version,
            **arguments,
            want_probabilities=head.want_probabilities,
            weight_name=head.weight,
            ranges=ranges,
        )
    else:
        sample = sampling.sample_neighbors(
            version,
            **arguments,
            want_probabilities=head.want_probabilities,
            distinct_neighbors=head.distinct_neighbors,
        )
    sections = present_sections(
        ids=sample.ids,
        types=sample.types,
        weights=sample.weights,
        eids=sample.eids,
        times=sample.times,
        probabilities=sample.probabilities,
    )
    return Frame(storaged_pb.DrawNeighborsReply(), sections)


def read_neighbors(
    versions: RequestVersions, request: Frame[storaged_pb.ReadNeighborsRequest], call: CallContext
) -> Frame[storaged_pb.ReadNeighborsReply]:
    """Read all neighbors of local nodes, or the heaviest ones."""
    head = request.head
    version = versions.filtered(request, call).with_weights(
        head.weight, sampling.EDGE, head.edge_types
    )
    version = versions.without_excluded(version, request, head.edge_types, call)
    if head.top:
        neighbors = sampling.top_neighbors(
            version,
            count=head.top,
            want_edge_ids=head.want_edge_ids,
            checkpoint=call.remaining,
            **node_arguments(request),
        )
    else:
        neighbors = sampling.read_neighbors(
            version,
            want_weights=head.want_weights,
            want_edge_ids=head.want_edge_ids,
            **node_arguments(request),
        )
    sections = present_sections(
        indptr=neighbors.indptr,
        ids=neighbors.ids,
        types=neighbors.types,
        weights=neighbors.weights,
        eids=neighbors.eids,
    )
    return Frame(storaged_pb.ReadNeighborsReply(), sections)


def read_degrees(
    versions: RequestVersions, request: Frame[storaged_pb.ReadDegreesRequest], call: CallContext
) -> Frame[storaged_pb.ReadDegreesReply]:
    """Return the number of each local node's edges by type, or their total weight."""
    head, version = request.head, versions.filtered(request, call)
    if head.type_weights:
        version = version.with_weights(head.weight, sampling.EDGE, head.edge_types)
    version = versions.without_excluded(version, request, head.edge_types, call)
    if head.type_weights:
        measures = sampling.type_weights(
            version, uniform=head.uniform, checkpoint=call.remaining, **node_arguments(request)
        )
        return Frame(storaged_pb.ReadDegreesReply(), {"type_weights": measures})
    degrees = sampling.degrees(version, checkpoint=call.remaining, **node_arguments(request))
    return Frame(storaged_pb.ReadDegreesReply(), {"degrees": degrees})


def has_edge(
    versions: RequestVersions, request: Frame[storaged_pb.HasEdgeRequest], call: CallContext
) -> Frame[storaged_pb.HasEdgeReply]:
    """Return which local nodes have an edge to their targets."""
    head = request.head
    joined = sampling.has_edge(
        versions.without_excluded(versions.filtered(request, call), request, head.edge_types, call),
        edge_types=list(head.edge_types),
        ids=request.array("ids", "int64"),
        kinds=request.optional_array("types", "int32"),
        targets=request.array("targets", "int64"),
        target_kinds=request.optional_array("target_types", "int32"),
        direction=head.direction,
        checkpoint=call.remaining,
    )
    return Frame(storaged_pb.HasEdgeReply(), {"joined": joined.astype(np.uint8)})
