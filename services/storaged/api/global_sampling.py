"""Handlers for global draws: this storaged's share of samples of nodes and edges."""

from __future__ import annotations

from typing import Any

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.api.decoding import Sections, present_sections
from storaged.api.version_resolution import RequestVersions

GlobalDrawRequest = storaged_pb.DrawNodesRequest | storaged_pb.DrawEdgesRequest


def draw_nodes(
    versions: RequestVersions, request: Frame[storaged_pb.DrawNodesRequest], call: CallContext
) -> Frame[storaged_pb.DrawNodesReply]:
    """Draw nodes. Distinct draws return their exponential keys."""
    head = request.head
    version = _version(versions, request, call, sampling.NODE)
    if head.remaining_weight:
        rest = sampling.remaining_node_weight(version, **_rest_arguments(request, call))
        return Frame(storaged_pb.DrawNodesReply(), {"remaining_weight": rest})
    if head.exponential_keys:
        keyed = sampling.sample_distinct_nodes(
            version, **_excluded(request), **_draw_arguments(head, call)
        )
        sections = present_sections(
            ids=keyed.ids, types=keyed.types, keys=keyed.keys, probabilities=keyed.probabilities
        )
        return Frame(storaged_pb.DrawNodesReply(), sections)
    sample = sampling.sample_nodes(version, start=head.start, **_draw_arguments(head, call))
    return Frame(
        storaged_pb.DrawNodesReply(),
        present_sections(ids=sample.ids, types=sample.types, probabilities=sample.probabilities),
    )


def draw_edges(
    versions: RequestVersions, request: Frame[storaged_pb.DrawEdgesRequest], call: CallContext
) -> Frame[storaged_pb.DrawEdgesReply]:
    """Draw edges. Distinct draws return their exponential keys."""
    head = request.head
    version = _version(versions, request, call, sampling.EDGE)
    if head.remaining_weight:
        rest = sampling.remaining_edge_weight(version, **_rest_arguments(request, call))
        return Frame(storaged_pb.DrawEdgesReply(), {"remaining_weight": rest})
    sections: Sections = {}
    if head.exponential_keys:
        keyed = sampling.sample_distinct_edges(
            version, **_excluded(request), **_draw_arguments(head, call)
        )
        edges, sections["keys"] = keyed.edges, keyed.keys
    else:
        edges = sampling.sample_edges(version, start=head.start, **_draw_arguments(head, call))
    sections |= {
        "src": edges.src,
        "dst": edges.dst,
        "eids": edges.eids,
        "types": edges.types,
        "weights": edges.weights,
    }
    return Frame(
        storaged_pb.DrawEdgesReply(), sections | present_sections(probabilities=edges.probabilities)
    )


def draw_nodes_by_number(
    versions: RequestVersions,
    request: Frame[storaged_pb.DrawNodesByNumberRequest],
    call: CallContext,
) -> Frame[storaged_pb.DrawNodesByNumberReply]:
    """Draw nodes by draw index."""
    head = request.head
    version = versions.for_global_draws(request, call, sampling.NODE).with_weights(
        head.weight, sampling.NODE, head.types
    )
    sample = sampling.sample_nodes_by_index(
        version,
        types=list(head.types),
        draw_indices=request.array("numbers", "int64"),
        kinds=request.optional_array("kinds", "int32"),
        seed=head.seed,
        uniform=head.uniform,
        want_probabilities=head.want_probabilities,
        checkpoint=call.remaining,
    )
    return Frame(
        storaged_pb.DrawNodesByNumberReply(),
        present_sections(ids=sample.ids, types=sample.types, probabilities=sample.probabilities),
    )


def _version(
    versions: RequestVersions, request: Frame[GlobalDrawRequest], call: CallContext, element: int
) -> sampling.LocalVersion:
    head = request.head
    version = (
        versions.filtered(request, call)
        if head.remaining_weight or head.exponential_keys
        else versions.for_global_draws(request, call, element)
    )
    return version.with_weights(head.weight, element, head.types)


def _draw_arguments(head: GlobalDrawRequest, call: CallContext) -> dict[str, Any]:
    return {
        "types": list(head.types),
        "parts": list(head.parts),
        "seed": head.seed,
        "count": head.count,
        "uniform": head.uniform,
        "want_probabilities": head.want_probabilities,
        "checkpoint": call.remaining,
    }


def _rest_arguments(request: Frame[GlobalDrawRequest], call: CallContext) -> dict[str, Any]:
    return {
        "types": list(request.head.types),
        "parts": list(request.head.parts),
        **_excluded(request),
        "checkpoint": call.remaining,
    }


def _excluded(request: Frame[GlobalDrawRequest]) -> dict[str, Any]:
    return {
        "taken_ids": request.array("excluded_ids", "int64"),
        "taken_types": request.array("excluded_types", "int32"),
    }
