"""Explanations of sampling calls: shares of draws, and requests and replies of storageds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_graphkit.random import partition_choice
from asterism_model.elements import EDGE, NODE
from asterism_model.graph_prices import price_request, section_sizes
from asterism_model.prices import Limits
from asterism_proto import framing
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH, SAMPLING_METHODS, STORE, SamplingRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.decoding import decode_nodes
from graphd.api.global_sampling import GlobalDrawRequest, decode_global_draw
from graphd.api.neighbors import HopRequest, decode_hop
from graphd.api.replies import SampleReply
from graphd.api.versioned_execution import Operation, RequestCheck, VersionRunner
from graphd.operators import neighbor_reads
from graphd.operators.filters import with_filter
from graphd.operators.neighbor_sampling import NeighborParams
from graphd.operators.request_context import RequestContext
from graphd.routing.dispatch import Dispatcher
from graphd.routing.routes import SpaceRoute


class RecordingDispatcher(Dispatcher):
    """Dispatcher that forwards to another dispatcher and records the requests."""

    def __init__(self, inner: Dispatcher) -> None:
        self._inner = inner
        self.requests: list[graphd_pb.StorageRequest] = []
        self._round = 0

    def dispatch(
        self,
        name: str,
        space: SpaceRoute,
        requests: Iterable[tuple[int, Frame[Message]]],
        call: CallContext,
    ) -> list[Frame[Message]]:
        """Return the replies in request order; the requests of one call form one round."""
        host_requests = list(requests)
        replies = self._inner.dispatch(name, space, host_requests, call)
        for (host, request), reply in zip(host_requests, replies, strict=True):
            self.requests.append(
                graphd_pb.StorageRequest(
                    round=self._round,
                    method=STORE[name].python_name,
                    host=space.hosts[host],
                    rows=_rows(request.arrays, reply.arrays),
                    bytes_sent=len(framing.encode(request)),
                    bytes_received=len(framing.encode(reply)),
                )
            )
        self._round += 1
        return replies


def _rows(sent: Mapping[str, NDArray[Any]], received: Mapping[str, NDArray[Any]]) -> int:
    """Return the number of rows requested from a storaged: nodes sent or draws assigned."""
    return len(sent["ids"] if "ids" in sent else next(iter(received.values()), ()))


class ExplainHandler:
    """Run sampling calls and explain them.

    Parameters
    ----------
    versions : VersionRunner
    operations, checks : mapping
        Operations of the Graph service and the checks that precede them, by handler name.
    """

    def __init__(
        self,
        versions: VersionRunner,
        operations: Mapping[str, Operation],
        checks: Mapping[str, RequestCheck],
    ) -> None:
        self._versions, self._operations, self._checks = versions, operations, checks

    def explain(
        self, request: Frame[graphd_pb.ExplainRequest], call: CallContext
    ) -> Frame[graphd_pb.ExplainReply]:
        """Run a sampling call and return its explanation."""
        method = request.head.method
        sampling_request = _decode_request(request)
        if method in self._checks:
            self._checks[method](sampling_request)
        recorder = RecordingDispatcher(self._versions.dispatcher)
        reply = self._versions.run_at_version(
            sampling_request,
            call,
            lambda context: self._operations[method](context, sampling_request),
            dispatcher=recorder,
        )
        reply_head = cast(SampleReply, reply.head)
        sampling_request.head.version = reply_head.version

        def build_reply(context: RequestContext) -> graphd_pb.ExplainReply:
            for entry in recorder.requests:
                entry.address = context.dispatcher.address(entry.host)
            return graphd_pb.ExplainReply(
                version=reply_head.version,
                digest=reply_head.digest,
                key_version=reply_head.key_version,
                storage_requests=recorder.requests,
                shares=_shares(context, sampling_request, reply),
                filter_plan=_filter_plan(context, sampling_request.head),
                reply_bytes=len(framing.encode(reply)),
                price=_price(context, sampling_request, self._versions.limits),
            )

        return Frame(self._versions.run_at_version(sampling_request, call, build_reply))


def _decode_request(request: Frame[graphd_pb.ExplainRequest]) -> Frame[SamplingRequest]:
    """Return the sampling request to explain."""
    head = request.head
    if head.method not in SAMPLING_METHODS:
        raise InvalidRequest(
            f"{head.method!r} is not a sampling call; expected one of {', '.join(SAMPLING_METHODS)}"
        )
    sampling_head = cast(SamplingRequest, GRAPH[head.method].request())
    try:
        sampling_head.ParseFromString(head.request)
    except DecodeError as error:
        raise InvalidRequest(
            f"{head.method}: request: expected a request of this method ({error})"
        ) from error
    sampling_head.space, sampling_head.version = head.space, head.version
    return Frame(sampling_head, request.arrays)


def _price(
    context: RequestContext, request: Frame[SamplingRequest], limits: Limits
) -> graphd_pb.Price | None:
    """Return the upper bound of a call's cost, with its share of each limit."""
    uncapped = price_request(
        request.head,
        section_sizes(request.arrays),
        schema=context.space.schema,
        counts=context.version.totals,
    )
    if uncapped is None:
        return None
    price = uncapped.cap(limits)
    return graphd_pb.Price(
        formula=price.formula,
        rows=price.rows,
        bytes=price.bytes,
        scratch=price.scratch,
        steps=price.steps,
        exact=price.exact,
        limits=[
            graphd_pb.Limit(setting=setting, value=value, limit=limit)
            for setting, value, limit in price.usage(limits)
        ],
    )


def _filter_plan(context: RequestContext, head: SamplingRequest) -> str:
    """Return the description of how a call's filter is evaluated; "" without a filter.

    Also "" for calls without an explanation of shares."""
    if isinstance(head, graphd_pb.SampleNodesRequest | graphd_pb.SampleEdgesRequest):
        element = _element(head)
        draw = decode_global_draw(element, context.space.schema, head)
        return with_filter(context, element, draw.types, head).filter_plan
    if isinstance(head, graphd_pb.SampleNeighborsRequest | graphd_pb.SampleFanoutRequest):
        params = _decode_first_hop(context, head)
        return with_filter(context, EDGE, params.edge_types, head).filter_plan
    return ""


def _element(head: GlobalDrawRequest) -> int:
    return NODE if isinstance(head, graphd_pb.SampleNodesRequest) else EDGE


def _decode_first_hop(context: RequestContext, head: HopRequest) -> NeighborParams:
    hop: graphd_pb.Hop | graphd_pb.SampleNeighborsRequest = (
        head.hops[0] if isinstance(head, graphd_pb.SampleFanoutRequest) else head
    )
    return decode_hop(context.space.schema, head, hop, 0)


def _shares(
    context: RequestContext, request: Frame[SamplingRequest], reply: Frame[Message]
) -> list[graphd_pb.DrawShare]:
    """Return the expected and the actual share of a call's draws."""
    head = request.head
    if isinstance(head, graphd_pb.SampleNodesRequest | graphd_pb.SampleEdgesRequest):
        return _global_shares(context, head, reply)
    if not isinstance(head, graphd_pb.SampleNeighborsRequest | graphd_pb.SampleFanoutRequest):
        return []
    if head.HasField("temporal_filter"):  # shares differ per node
        return []
    hop = ".0" if isinstance(head, graphd_pb.SampleFanoutRequest) else ""
    params = _decode_first_hop(context, head)
    filtered_context = with_filter(context, EDGE, params.edge_types, head)
    nodes, types = decode_nodes(Frame(head, request.arrays), context.space.schema)
    weights = neighbor_reads.edge_weight_sums(
        filtered_context,
        params.edge_types,
        params.direction,
        params.uniform,
        nodes,
        head.node_type,
        types,
    )
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0).sum(axis=0)
    ids, edge_types = reply.arrays[f"ids{hop}"], reply.arrays.get(f"types{hop}")
    drawn_counts = {
        edge_type: int(
            np.count_nonzero(ids >= 0 if edge_types is None else edge_types == edge_type)
        )
        for edge_type in params.edge_types
    }
    return [
        graphd_pb.DrawShare(
            type_id=edge_type,
            part=-1,
            share=share / max(shares.sum(), 1e-300),
            expected=share * params.count if params.replace else None,
            drawn=drawn_counts[edge_type],
        )
        for edge_type, share in zip(params.edge_types, shares.tolist(), strict=True)
        if share
    ]


def _global_shares(
    context: RequestContext, head: GlobalDrawRequest, reply: Frame[Message]
) -> list[graphd_pb.DrawShare]:
    space, schema, element = context.space, context.space.schema, _element(head)
    draw = decode_global_draw(element, schema, head)
    filtered_context = with_filter(context, element, draw.types, head)
    shares = filtered_context.version.totals.shares(element, draw.types, uniform=draw.uniform)
    parts = partition_choice.part_of(
        reply.array("ids" if element == NODE else "src", "int64"), schema.parts, schema.placement
    )
    types = reply.optional_array("types", "int32")  # absent if there is only one type
    type_ids = draw.types[0] if types is None else types
    drawn_counts = np.bincount(
        type_ids * schema.parts + parts, minlength=(max(draw.types) + 1) * schema.parts
    )
    return [
        graphd_pb.DrawShare(
            type_id=type_id,
            part=part,
            host=space.hosts[space.host_of_part[part]],
            share=measure / shares.total,
            expected=None if draw.distinct else draw.count * measure / shares.total,
            drawn=drawn_counts[type_id * schema.parts + part],
        )
        for type_id, part, measure in zip(
            shares.types.tolist(), shares.parts.tolist(), shares.measure.tolist(), strict=True
        )
        if measure > 0
    ]
