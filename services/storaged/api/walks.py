"""Handlers for walks that continue on this host, and PageRank over local partitions."""

from __future__ import annotations

import numpy as np

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.api.decoding import present_sections
from storaged.api.version_resolution import RequestVersions


def walk(
    versions: RequestVersions, request: Frame[storaged_pb.WalkRequest], call: CallContext
) -> Frame[storaged_pb.WalkReply]:
    """Continue walks until they leave this host."""
    head = request.head
    version = versions.filtered(request, call)
    ids, kinds = request.array("ids", "int64"), request.optional_array("types", "int32")
    kinds = (
        np.full(len(ids), head.node_type, np.int32)
        if kinds is None and head.node_type >= 0
        else kinds
    )
    edge_types = [edge_type for step in head.steps for edge_type in step.edge_types]
    version = version.with_weights(head.weight, sampling.EDGE, edge_types)
    spec = _decode_spec(head)
    version = versions.without_excluded(
        version,
        request,
        edge_types,
        call,
        None if spec.is_biased else sampling.RejectionParams(uniform=spec.uniform),
        alias_tables=not spec.uniform,
    )
    if head.paths:
        walk_paths = sampling.sample_paths(
            version,
            spec,
            sampling.WalkState.at_start(ids, kinds, request.array("positions", "int64"), spec),
            call.remaining,
        )
        return Frame(
            storaged_pb.WalkReply(),
            present_sections(nodes=walk_paths.nodes, types=walk_paths.types, eids=walk_paths.eids),
        )
    state = sampling.WalkState(
        ids=ids,
        kinds=kinds,
        positions=request.array("positions", "int64"),
        taken=request.array("steps_done", "int32"),
        starts=request.optional_array("starts", "int64"),
        start_kinds=kinds
        if head.node_type >= 0
        else request.optional_array("start_types", "int32"),
        before=request.optional_array("before", "int64"),
        before_kinds=request.optional_array("before_types", "int32"),
        attempts=request.optional_array("attempts", "int64"),
    )
    walks = sampling.continue_walks(version, spec, state, call.remaining)
    sections = present_sections(
        indptr=walks.indptr, ids=walks.ids, types=walks.types, eids=walks.eids
    )
    if (pending := walks.pending) is not None:
        sections |= present_sections(
            open=pending.is_pending.astype(np.uint8),
            open_ids=pending.ids,
            open_types=pending.types,
            open_eids=pending.eids,
            attempts=pending.attempts,
        )
    return Frame(storaged_pb.WalkReply(), sections)


def push_pagerank(
    versions: RequestVersions, request: Frame[storaged_pb.PushPagerankRequest], call: CallContext
) -> Frame[storaged_pb.PushPagerankReply]:
    """Return the nodes with the highest personalized PageRank for some start nodes."""
    head = request.head
    version = versions.filtered(request, call).with_weights(
        head.weight, sampling.EDGE, head.edge_types
    )
    ranking = sampling.rank_nodes(
        versions.without_excluded(version, request, head.edge_types, call),
        ids=request.array("ids", "int64"),
        kinds=request.array("types", "int32"),
        edge_types=list(head.edge_types),
        direction=head.direction,
        uniform=head.uniform,
        alpha=head.alpha,
        epsilon=head.epsilon,
        top=head.top,
        checkpoint=call.remaining,
    )
    return Frame(
        storaged_pb.PushPagerankReply(),
        {
            "ids": ranking.ids,
            "kinds": ranking.kinds,
            "scores": ranking.scores,
            "residuals": ranking.residuals,
        },
    )


def _decode_spec(head: storaged_pb.WalkRequest) -> sampling.WalkSpec:
    return sampling.WalkSpec(
        steps=[list(step.edge_types) for step in head.steps],
        length=head.length,
        uniform=head.uniform,
        direction=head.direction,
        seed=head.seed,
        restart=head.restart,
        p=head.p or 1.0,
        q=head.q or 1.0,
        want_edge_ids=head.want_edge_ids,
    )
