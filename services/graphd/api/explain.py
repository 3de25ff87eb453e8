"""What a sampling call takes: where its draws fall, who is asked for what, in how many rounds and
bytes.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from asterism_daemonkit.calls import CallContext
from asterism_graphkit.random import partition_choice
from asterism_model.elements import EDGE, NODE
from asterism_model.graph_prices import price_request, section_sizes
from asterism_model.prices import Limits
from asterism_proto import framing
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH, STORE
from asterism_proto.v1 import graphd_pb2 as wire
from graphd.api.decoding import decode_global_draw, decode_hop, decode_nodes
from graphd.filters import filters
from graphd.operators import reads
from graphd.operators.sampling import RequestContext
from graphd.routing.dispatch import Dispatcher
from graphd.routing.routes import ServedVersion, SpaceRoute

T = TypeVar("T")

_GLOBAL = {"sample_nodes": NODE, "sample_edges": EDGE}
_LOCAL = ("sample_neighbors", "sample_fanout")
EXPLAINABLE_CALLS = (
    *_GLOBAL,
    *_LOCAL,
    "sample_nodes_like",
    "sample_negatives",
    "sample_layer",
    "sample_layers",
    "sample_graph_labels",
    "sample_subgraph",
    "sample_ego_subgraphs",
    "sample_labor",
    "sample_hgt",
    "random_walk",
    "sample_pinsage",
)
"""Calls that can be explained."""


class RecordingDispatcher(Dispatcher):
    """Asks as another fanout does, and keeps account of it."""

    def __init__(self, inner: Dispatcher) -> None:
        self._inner = inner
        self.requests: list[wire.Asked] = []
        self._round = 0

    def dispatch(
        self, name: str, space: SpaceRoute, requests: Iterable[tuple[int, Frame]], call: CallContext
    ) -> list[Frame]:
        """The replies to (host, request) pairs, in their order; those of one call are one round."""
        host_requests = list(requests)
        replies = self._inner.dispatch(name, space, host_requests, call)
        for (host, request), reply in zip(host_requests, replies, strict=True):
            self.requests.append(
                wire.Asked(
                    round=self._round,
                    method=STORE[name].python_name,
                    host=space.hosts[host],
                    rows=_rows(request.arrays, reply.arrays),
                    sent=len(framing.encode(request)),
                    received=len(framing.encode(reply)),
                )
            )
        self._round += 1
        return replies


def _rows(sent: Mapping[str, NDArray[Any]], received: Mapping[str, NDArray[Any]]) -> int:
    """How many rows a storaged was asked for: of the nodes that were sent, or of the draws that
    fell to it.
    """
    return len(sent["ids"] if "ids" in sent else next(iter(received.values()), ()))


class ExplainHandler(ABC):
    """Handlers of the Graph service, one part of them."""

    _dispatcher: Dispatcher
    limits: Limits

    @abstractmethod
    def _run_at_version(
        self, request: Frame, call: CallContext, run: Callable[[RequestContext], T]
    ) -> tuple[T, ServedVersion]:
        """Run a request at the version that it names, or at the current one."""

    def explain(self, request: Frame, call: CallContext) -> Frame:
        """Make a sampling call, and give account of it."""
        head: Any = request.head
        if head.method not in EXPLAINABLE_CALLS:
            raise InvalidRequest(
                f"{head.method!r} is no sampling call; expected one of "
                f"{', '.join(EXPLAINABLE_CALLS)}"
            )
        sampling_request: Any = Frame(GRAPH[head.method].request(), request.arrays)
        try:
            sampling_request.head.ParseFromString(head.request)
        except DecodeError as error:
            raise InvalidRequest(
                f"{head.method}: the bytes to explain are not its request: {error}"
            ) from error
        sampling_request.head.space, sampling_request.head.version = head.space, head.version
        recorder = RecordingDispatcher(self._dispatcher)
        handler = copy.copy(self)
        handler._dispatcher = recorder
        reply: Any = getattr(handler, head.method)(sampling_request, call)
        sampling_request.head.version = reply.head.version

        def build_reply(context: RequestContext) -> wire.ExplainReply:
            for entry in recorder.requests:
                entry.address = context.dispatcher.address(entry.host)
            return wire.ExplainReply(
                version=reply.head.version,
                digest=reply.head.digest,
                asked=recorder.requests,
                shares=_shares(context, head.method, sampling_request, reply),
                condition=_filter_plan(context, head.method, sampling_request),
                reply_bytes=len(framing.encode(reply)),
                price=_price(context, sampling_request, self.limits),
            )

        return Frame(self._run_at_version(sampling_request, call, build_reply)[0])


def _price(context: RequestContext, request: Frame, limits: Limits) -> wire.Price | None:
    """Return what a call takes at most, with the share of each limit."""
    uncapped = price_request(
        request.head,
        section_sizes(request.arrays),
        schema=context.space.schema,
        counts=context.version.totals,
    )
    if uncapped is None:
        return None
    price = uncapped.cap(limits)
    return wire.Price(
        formula=price.formula,
        rows=price.rows,
        bytes=price.bytes,
        scratch=price.scratch,
        steps=price.steps,
        exact=price.exact,
        limits=[
            wire.Limit(setting=setting, value=value, limit=limit)
            for setting, value, limit in price.usage(limits)
        ],
    )


def _filter_plan(context: RequestContext, method: str, request: Frame) -> str:
    """How what satisfies a call's condition is found; "" where it has none, or draws in another way
    than those whose shares are told.
    """
    head: Any = request.head
    if method in _GLOBAL:
        return filters.with_filter(
            context,
            _GLOBAL[method],
            decode_global_draw(_GLOBAL[method], context.space.schema, head).types,
            head,
        ).filter_plan
    if method not in _LOCAL:
        return ""
    first_hop = head.hops[0] if method == "sample_fanout" else head
    return filters.with_filter(
        context,
        EDGE,
        decode_hop(context.space.schema, head, first_hop.edge_types, first_hop.count, 0).edge_types,
        head,
    ).filter_plan


def _shares(
    context: RequestContext, method: str, request: Frame, reply: Frame
) -> list[wire.DrawShare]:
    """Where the draws of a call were to fall, and did."""
    head: Any = request.head
    if method in _GLOBAL:
        return _global_shares(context, _GLOBAL[method], head, reply)
    if method not in _LOCAL or (
        "until" in head.DESCRIPTOR.fields_by_name and head.HasField("until")
    ):  # until a time every node has shares of its own
        return []
    schema, hop = context.space.schema, ".0" if method == "sample_fanout" else ""
    first_hop = head.hops[0] if hop else head
    params = decode_hop(schema, head, first_hop.edge_types, first_hop.count, 0)
    filtered_context = filters.with_filter(context, EDGE, params.edge_types, head)
    nodes, types = decode_nodes(request, schema)
    weights = reads.edge_weight_sums(
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
        wire.DrawShare(
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
    context: RequestContext, element: int, head: Any, reply: Frame
) -> list[wire.DrawShare]:
    space, schema = context.space, context.space.schema
    draw = decode_global_draw(element, schema, head)
    filtered_context = filters.with_filter(context, element, draw.types, head)
    shares = filtered_context.version.totals.shares(element, draw.types, uniform=draw.uniform)
    parts = partition_choice.part_of(
        reply.array("ids" if element == NODE else "src", "int64"), schema.parts, schema.placement
    )
    types = reply.optional_array("types", "int32")  # left out where there is only one
    type_ids = draw.types[0] if types is None else types
    drawn_counts = np.bincount(
        type_ids * schema.parts + parts, minlength=(max(draw.types) + 1) * schema.parts
    )
    return [
        wire.DrawShare(
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
