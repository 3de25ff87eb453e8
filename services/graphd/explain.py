"""What a sampling call takes: where its draws fall, who is asked for what, in how many rounds and bytes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from asterism_proto import arrays
from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.graph_prices import price_of, sizes_of
from asterism_proto.methods import GRAPH, STORE
from asterism_proto.prices import Limits
from asterism_proto.v1 import graphd_pb2 as wire
from daemonkit.calls import Call
from graphd import read, restriction
from graphd.fanout import Fanout
from graphd.requests import draw_of, hop_of, starts_of
from graphd.route import Space, Version
from graphd.sample import Sampling
from graphd.totals import EDGE, NODE
from graphkit import split

T = TypeVar("T")

_GLOBAL = {"sample_nodes": NODE, "sample_edges": EDGE}
_LOCAL = ("sample_neighbors", "sample_fanout")
SAMPLES = (
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


class Counted(Fanout):
    """Asks as another fanout does, and keeps account of it."""

    def __init__(self, asking: Fanout) -> None:
        self._asking = asking
        self.asked: list[wire.Asked] = []
        self._rounds = 0

    def ask(self, name: str, space: Space, requests: Iterable[tuple[int, Frame]], call: Call) -> list[Frame]:
        """The replies to (host, request) pairs, in their order; those of one call are one round."""
        made = list(requests)
        replies = self._asking.ask(name, space, made, call)
        for (host, request), reply in zip(made, replies, strict=True):
            self.asked.append(
                wire.Asked(
                    round=self._rounds,
                    method=STORE[name].python_name,
                    host=space.hosts[host],
                    rows=_rows(request.arrays, reply.arrays),
                    sent=len(arrays.encode(request)),
                    received=len(arrays.encode(reply)),
                )
            )
        self._rounds += 1
        return replies


def _rows(sent: Mapping[str, NDArray[Any]], received: Mapping[str, NDArray[Any]]) -> int:
    """How many rows a storaged was asked for: of the nodes that were sent, or of the draws that fell to it."""
    return len(sent["ids"] if "ids" in sent else next(iter(received.values()), ()))


class Explaining(ABC):
    """Handlers of the Graph service, one part of them."""

    _fanout: Fanout
    limits: Limits

    @abstractmethod
    def _answered(self, request: Frame, call: Call, run: Callable[[Sampling], T]) -> tuple[T, Version]:
        """Run a request at the version that it names, or at the current one."""

    def explain(self, request: Frame, call: Call) -> Frame:
        """Make a sampling call, and give account of it."""
        head: Any = request.head
        if head.method not in SAMPLES:
            raise InvalidRequest(f"{head.method!r} is no sampling call; expected one of {', '.join(SAMPLES)}")
        asked: Any = Frame(GRAPH[head.method].request(), request.arrays)
        try:
            asked.head.ParseFromString(head.request)
        except DecodeError as error:
            raise InvalidRequest(f"{head.method}: the bytes to explain are not its request: {error}") from error
        asked.head.space, asked.head.version = head.space, head.version
        counted = Counted(self._fanout)
        asking = copy.copy(self)
        asking._fanout = counted
        reply: Any = getattr(asking, head.method)(asked, call)
        asked.head.version = reply.head.version

        def told(at: Sampling) -> wire.ExplainReply:
            for one in counted.asked:
                one.address = at.fanout.address(one.host)
            return wire.ExplainReply(
                version=reply.head.version,
                digest=reply.head.digest,
                asked=counted.asked,
                shares=_shares(at, head.method, asked, reply),
                condition=_way(at, head.method, asked),
                reply_bytes=len(arrays.encode(reply)),
                price=_priced(at, asked, self.limits),
            )

        return Frame(self._answered(asked, call, told)[0])


def _priced(at: Sampling, asked: Frame, limits: Limits) -> wire.Price | None:
    """Return what a call takes at most, with the share of each limit."""
    found = price_of(asked.head, sizes_of(asked.arrays), schema=at.space.schema, counts=at.version.totals)
    if found is None:
        return None
    price = found.capped(limits)
    return wire.Price(
        formula=price.formula,
        rows=price.rows,
        bytes=price.bytes,
        scratch=price.scratch,
        steps=price.steps,
        exact=price.exact,
        limits=[wire.Limit(setting=setting, value=value, limit=limit) for setting, value, limit in price.shares(limits)],
    )


def _way(at: Sampling, method: str, asked: Frame) -> str:
    """How what satisfies a call's condition is found; "" where it has none, or draws in another way than those whose shares are told."""
    head: Any = asked.head
    if method in _GLOBAL:
        return restriction.by(at, _GLOBAL[method], draw_of(_GLOBAL[method], at.space.schema, head).types, head).way
    if method not in _LOCAL:
        return ""
    first = head.hops[0] if method == "sample_fanout" else head
    return restriction.by(at, EDGE, hop_of(at.space.schema, head, first.edge_types, first.count, 0).edge_types, head).way


def _shares(at: Sampling, method: str, asked: Frame, reply: Frame) -> list[wire.DrawShare]:
    """Where the draws of a call were to fall, and did."""
    head: Any = asked.head
    if method in _GLOBAL:
        return _global_shares(at, _GLOBAL[method], head, reply)
    if method not in _LOCAL or (
        "until" in head.DESCRIPTOR.fields_by_name and head.HasField("until")
    ):  # until a time every node has shares of its own
        return []
    schema, hop = at.space.schema, ".0" if method == "sample_fanout" else ""
    first = head.hops[0] if hop else head
    drawing = hop_of(schema, head, first.edge_types, first.count, 0)
    by = restriction.by(at, EDGE, drawing.edge_types, head)
    nodes, types = starts_of(asked, schema)
    weights = read.measures(by, drawing.edge_types, drawing.direction, drawing.uniform, nodes, head.node_type, types)
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0).sum(axis=0)
    ids, kinds = reply.arrays[f"ids{hop}"], reply.arrays.get(f"types{hop}")
    drawn = {edge_type: int(np.count_nonzero(ids >= 0 if kinds is None else kinds == edge_type)) for edge_type in drawing.edge_types}
    return [
        wire.DrawShare(
            type_id=edge_type,
            part=-1,
            share=share / max(shares.sum(), 1e-300),
            expected=share * drawing.count if drawing.replace else None,
            drawn=drawn[edge_type],
        )
        for edge_type, share in zip(drawing.edge_types, shares.tolist(), strict=True)
        if share
    ]


def _global_shares(at: Sampling, element: int, head: Any, reply: Frame) -> list[wire.DrawShare]:
    space, schema = at.space, at.space.schema
    what = draw_of(element, schema, head)
    by = restriction.by(at, element, what.types, head)
    shares = by.version.totals.shares(element, what.types, uniform=what.uniform)
    parts = split.part_of(reply.array("ids" if element == NODE else "src", "int64"), schema.parts, schema.placement)
    types = reply.optional("types", "int32")  # left out where there is only one
    of = what.types[0] if types is None else types
    drawn = np.bincount(of * schema.parts + parts, minlength=(max(what.types) + 1) * schema.parts)
    return [
        wire.DrawShare(
            type_id=type_id,
            part=part,
            host=space.hosts[space.host_of_part[part]],
            share=measure / shares.total,
            expected=None if what.distinct else what.count * measure / shares.total,
            drawn=drawn[type_id * schema.parts + part],
        )
        for type_id, part, measure in zip(shares.types.tolist(), shares.parts.tolist(), shares.measure.tolist(), strict=True)
        if measure > 0
    ]
