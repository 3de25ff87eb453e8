"""Handlers for subgraphs: expansions, LABOR importances, and induced edges."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_graphkit.operators.labor import UNTIL_CONVERGED
from asterism_model.excluded_edges import excludes_edges
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.api.decoding import (
    Sections,
    decode_temporal_filter,
    node_arguments,
    present_sections,
)
from storaged.api.version_resolution import RequestVersions

MAX_NEIGHBORS = (60 << 20) // 16
"""Largest number of neighbors in the reply to an importance step: a message has 64 MiB."""

FanoutRequest = storaged_pb.ExpandRequest | storaged_pb.UpdateImportanceRequest


def expand(
    versions: RequestVersions, request: Frame[storaged_pb.ExpandRequest], call: CallContext
) -> Frame[storaged_pb.ExpandReply]:
    """Expand local nodes by one hop of a subgraph."""
    head = request.head
    version = _version(versions, request, call)
    expansion, sections = _decode_expansion(head), Sections()
    for fanout in head.fanouts:
        local_type = sampling.end_types(version, fanout.edge_type, head.direction)[0]
        sample = sampling.expand(
            _expanded_version(
                versions, version, request, expansion, fanout.edge_type, fanout.count, call
            ),
            expansion,
            ids=request.array(f"ids.{local_type}", "int64"),
            trees=request.optional_array(f"trees.{local_type}", "int32"),
            temporal_filter=decode_temporal_filter(request, f"times.{local_type}"),
            importance_state=_decode_importances(request, fanout.edge_type),
            edge_type=fanout.edge_type,
            hop=head.hop,
            count=fanout.count,
            checkpoint=call.remaining,
        )
        columns = present_sections(
            sizes=sample.sizes,
            ids=sample.ids,
            eids=sample.eids,
            weights=sample.weights,
            times=sample.times,
        )
        sections |= {f"{name}.{fanout.edge_type}": column for name, column in columns.items()}
        call.remaining()
    return Frame(storaged_pb.ExpandReply(), sections)


def sample_k_hop(
    versions: RequestVersions, request: Frame[storaged_pb.SampleKHopRequest], call: CallContext
) -> Frame[storaged_pb.SampleKHopReply]:
    """Sample a k-hop subgraph from seeds, if all partitions are held here."""
    head = request.head
    version, expansion = _version(versions, request, call), _decode_expansion(head)
    sections = sampling.sample_khop(
        version,
        expansion,
        {fanout.edge_type: tuple(fanout.counts) for fanout in head.fanouts},
        request.array("ids", "int64"),
        request.array("types", "int32"),
        disjoint=head.disjoint,
        expand_all_hops=head.expand_all_hops,
        max_reply_bytes=head.max_reply_bytes,
        checkpoint=call.remaining,
        temporal_filter=decode_temporal_filter(request),
        expanded_version=(
            lambda edge_type, count: _expanded_version(
                versions, version, request, expansion, edge_type, count, call
            )
        )
        if excludes_edges(request.arrays)
        else None,
    )
    return Frame(storaged_pb.SampleKHopReply(), sections)


def update_importance(
    versions: RequestVersions,
    request: Frame[storaged_pb.UpdateImportanceRequest],
    call: CallContext,
) -> Frame[storaged_pb.UpdateImportanceReply]:
    """Take an importance step of LABOR for local nodes."""
    head = request.head
    version = versions.without_excluded(
        _version(versions, request, call),
        request,
        [fanout.edge_type for fanout in head.fanouts],
        call,
    )
    sections = Sections()
    for fanout in head.fanouts:
        local_type, _ = sampling.end_types(version, fanout.edge_type, head.direction)
        levels, importances = _decode_importances(request, fanout.edge_type) or (None, None)
        importance_steps = sampling.ImportanceSteps(
            version,
            edge_type=fanout.edge_type,
            direction=head.direction,
            uniform=head.uniform,
            count=fanout.count,
            ids=request.array(f"ids.{local_type}", "int64"),
            levels=levels,
            checkpoint=call.remaining,
        )
        if importance_steps.neighbors.size > MAX_NEIGHBORS:
            raise InvalidRequest(
                f"the nodes of this hop on one storaged have {importance_steps.neighbors.size} "
                f"different neighbors: expected at most {MAX_NEIGHBORS} with importance steps; "
                "start from fewer seeds, or use importance=0"
            )
        outputs: Sections = {
            "largest": importance_steps.update_importances(importances),
            "levels": importance_steps.levels,
        }
        if importances is None:
            outputs["neighbors"] = importance_steps.neighbors
        sections |= {f"{name}.{fanout.edge_type}": column for name, column in outputs.items()}
    return Frame(storaged_pb.UpdateImportanceReply(), sections)


def read_induced_edges(
    versions: RequestVersions,
    request: Frame[storaged_pb.ReadInducedEdgesRequest],
    call: CallContext,
) -> Frame[storaged_pb.ReadInducedEdgesReply]:
    """Read the edges of local nodes to some targets."""
    head = request.head
    version = versions.filtered(request, call).with_weights(
        head.weight, sampling.EDGE, head.edge_types
    )
    edges = sampling.find_induced_edges(
        versions.without_excluded(version, request, head.edge_types, call),
        **node_arguments(request),
        cols=request.array("cols", "int64"),
        col_types=request.optional_array("col_types", "int32"),
        groups=request.optional_array("groups", "int32"),
        col_groups=request.optional_array("col_groups", "int32"),
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        checkpoint=call.remaining,
    )
    sections = present_sections(
        counts=edges.counts,
        cols=edges.cols,
        types=edges.types,
        weights=edges.weights,
        eids=edges.eids,
    )
    return Frame(storaged_pb.ReadInducedEdgesReply(), sections)


def _version(
    versions: RequestVersions,
    request: Frame[FanoutRequest] | Frame[storaged_pb.SampleKHopRequest],
    call: CallContext,
) -> sampling.LocalVersion:
    head = request.head
    return versions.filtered(request, call).with_weights(
        head.weight, sampling.EDGE, [fanout.edge_type for fanout in head.fanouts]
    )


def _expanded_version(
    versions: RequestVersions,
    version: sampling.LocalVersion,
    request: Frame[storaged_pb.ExpandRequest] | Frame[storaged_pb.SampleKHopRequest],
    expansion: sampling.Expansion,
    edge_type: int,
    count: int,
    call: CallContext,
) -> sampling.LocalVersion:
    """Return the version without excluded edges for an expansion along one edge type.

    It depends on the edge type and the count alone, so that hosts that expand along different edge
    types, or one hop at a time, give the same result.
    """
    draws = count >= 0 and expansion.labor is None and not request.head.HasField("temporal_filter")
    return versions.without_excluded(
        version,
        request,
        [edge_type],
        call,
        sampling.RejectionParams(
            uniform=expansion.uniform, distinct=0 if expansion.replace else count
        )
        if draws
        else None,
        alias_tables=expansion.labor is None and not expansion.uniform,
    )


def _decode_expansion(
    head: storaged_pb.ExpandRequest | storaged_pb.SampleKHopRequest,
) -> sampling.Expansion:
    return sampling.Expansion(
        seed=head.seed,
        direction=head.direction,
        replace=head.replace,
        uniform=head.uniform,
        want_eids=head.want_edge_ids,
        want_weights=head.want_weights,
        labor=_decode_labor_options(head.labor) if head.HasField("labor") else None,
    )


def _decode_labor_options(message: storaged_pb.LaborParams) -> sampling.LaborOptions:
    """Return the options of LABOR: how variates are shared among nodes and hops."""
    if message.importance_steps < UNTIL_CONVERGED:
        raise InvalidRequest(
            f"importance_steps={message.importance_steps}: expected 0 or more, or "
            f"{UNTIL_CONVERGED} to iterate until convergence"
        )
    return sampling.LaborOptions(
        layer_dependency=message.layer_dependency, importance=message.importance_steps
    )


def _decode_importances(
    request: Frame[FanoutRequest], edge_type: int
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return levels and importances along an edge type; None before the first importance step."""
    names = f"levels.{edge_type}", f"importances.{edge_type}"
    if not any(name in request.arrays for name in names):
        return None
    return request.array(names[0], "float64"), request.array(names[1], "float64")
