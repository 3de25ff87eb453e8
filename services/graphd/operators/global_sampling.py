"""Sampling of nodes and edges from all partitions.

Each operator is a pure function of (version, request, seed).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from google.protobuf.message import Message

from asterism_graphkit.random import rng
from asterism_graphkit.random.alias_build import neumaier_sum
from asterism_graphkit.random.partition_choice import PartShares, choose_entries, group_by_key
from asterism_model.elements import EDGE, NODE
from asterism_proto.errors import Internal, InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections
from graphd.operators.without_replacement import (
    DistinctDraws,
    conditional_probabilities,
    smallest_key_rows,
)
from graphd.routing import split_merge

_ROW_BYTES = {NODE: 12, EDGE: 32}
_PROBABILITY_BYTES = 8
_WORD = {NODE: "node", EDGE: "edge"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalDraw:
    """Parameters for sampling nodes or edges from all partitions."""

    element: int
    """NODE or EDGE."""
    types: tuple[int, ...]
    seed: int
    count: int
    uniform: bool
    distinct: bool
    want_probabilities: bool

    @property
    def max_rows(self) -> int:
        """Maximum rows that one reply can hold."""
        return REPLY_BYTES // (
            _ROW_BYTES[self.element] + _PROBABILITY_BYTES * self.want_probabilities
        )

    @property
    def id_section(self) -> str:
        """Section with the ids of rows, unique within a type."""
        return "ids" if self.element == NODE else "eids"

    @property
    def is_single_type(self) -> bool:
        """True if the request names a single node type, so that the reply omits types."""
        return self.element == NODE and len(self.types) == 1

    @property
    def method(self) -> str:
        """Method of storageds for this draw."""
        return "draw_nodes" if self.element == NODE else "draw_edges"


def draw(context: RequestContext, draw: GlobalDraw) -> Sections:
    """Return ``draw.count`` rows in draw order, with or without replacement."""
    if not 0 <= draw.count <= draw.max_rows:
        raise InvalidRequest(f"count {draw.count}: expected 0 to {draw.max_rows} in one call")
    shares = context.version.totals.shares(draw.element, draw.types, uniform=draw.uniform)
    if not shares.total > 0:
        raise NotFound(nothing_to_draw(context, draw))
    sections = (
        _draw_distinct(context, draw, shares)
        if draw.distinct
        else _draw_block(context, draw, shares, 0, draw.count)
    )
    if draw.is_single_type:
        sections.pop("types", None)  # the client knows the only type
    return sections


def nothing_to_draw(context: RequestContext, draw: GlobalDraw) -> str:
    """Return the reason why nothing can be drawn, for a message."""
    schema, totals = context.space.schema, context.version.totals
    schema_types = schema.node_types if draw.element == NODE else schema.edge_types
    names = (
        ", ".join(repr(schema_types[type_id].name) for type_id in draw.types)
        or f"no {_WORD[draw.element]} type"
    )
    rows = totals.drawable_count(draw.element, draw.types, uniform=True)
    source = f"version {context.version.version} of space {context.space.name!r}"
    if context.row_filter is not None:
        source += f" where {context.row_filter.expression}"
    if rows:
        weight_label = f" {context.weight_name!r}" if context.weight_name else ""
        return (
            f"nothing to draw from {names}: all {rows} weights{weight_label} in {source} are "
            "zero; draw uniformly"
        )
    return f"nothing to draw from {names}: {source} has no such {_WORD[draw.element]}"


def _draw_block(
    context: RequestContext, draw: GlobalDraw, shares: PartShares, start: int, count: int
) -> Sections:
    """Return draws start .. start + count - 1 of the stream."""
    space = context.space
    key = rng.key_of(draw.seed, rng.PART, draw.element)
    hosts = np.unique(space.host_of_part[shares.parts[shares.measure > 0]])
    if len(hosts) > 1 and count:
        order, offsets = group_by_key(
            space.host_of_part[shares.parts].take(choose_entries(key, start, count, shares)),
            len(space.hosts),
        )
        rows: list[Ids | None] = [order[offsets[host] : offsets[host + 1]] for host in hosts]
    else:
        rows = [None] * len(hosts)  # one host has all draws, or there are no draws
    requests = [
        (int(host), Frame(_draw_request(context, draw, int(host), start, count))) for host in hosts
    ]
    replies = context.dispatch(draw.method, requests)
    for (host, _), reply, host_rows in zip(requests, replies, rows, strict=True):
        received, expected = (
            len(reply.arrays[draw.id_section]),
            count if host_rows is None else len(host_rows),
        )
        if received != expected:
            raise Internal(
                f"storaged at {context.dispatcher.address(space.hosts[host])} returned "
                f"{received} draws: expected {expected}"
            )
    if len(replies) == 1:
        return dict(replies[0].arrays)
    return split_merge.merge_rows(
        count,
        [(host_rows, reply.arrays) for host_rows, reply in zip(rows, replies, strict=True)],
        context.call.remaining,
    )


def _draw_request(
    context: RequestContext,
    draw: GlobalDraw,
    host: int,
    start: int,
    count: int,
    *,
    exponential_keys: bool = False,
    want_rest: bool = False,
) -> storaged_pb.DrawNodesRequest | storaged_pb.DrawEdgesRequest:
    request_type: type[storaged_pb.DrawNodesRequest] | type[storaged_pb.DrawEdgesRequest] = (
        storaged_pb.DrawNodesRequest if draw.element == NODE else storaged_pb.DrawEdgesRequest
    )
    return request_type(
        version_ref=context.version_ref(),
        types=draw.types,
        parts=context.space.parts_of(host),
        seed=draw.seed,
        start=start,
        count=count,
        uniform=draw.uniform,
        exponential_keys=exponential_keys,
        want_probabilities=draw.want_probabilities,
        remaining_weight=want_rest,
        weight=context.weight_name,
    )


def _draw_distinct(context: RequestContext, draw: GlobalDraw, shares: PartShares) -> Sections:
    """Return the first distinct draws of the stream, then exponential-key selections."""
    available = context.version.totals.drawable_count(
        draw.element, draw.types, uniform=draw.uniform
    )
    if draw.count > available:
        mode = "uniformly" if draw.uniform else "by weight"
        raise InvalidRequest(
            f"{draw.count} different {_WORD[draw.element]}s were requested; {available} can be "
            f"drawn {mode}"
        )
    distinct_draws, start = DistinctDraws(draw.id_section), 0
    while not start or (len(distinct_draws) < draw.count and not distinct_draws.exhausted):
        block_size = min(max(2 * (draw.count - len(distinct_draws)), 64), draw.max_rows)
        distinct_draws.add(
            _with_types(draw, _draw_block(context, draw, shares, start, block_size)),
            context.call.remaining,
        )
        start += block_size
    sections = distinct_draws.first(draw.count)
    missing = draw.count - len(sections["types"])
    if missing:
        winners = smallest_key_rows(
            [
                reply.arrays
                for reply in draw_excluding(
                    context, draw, shares, sections, missing, exponential_keys=True
                )
            ],
            draw.id_section,
            missing,
            context.call.remaining,
        )
        sections = {
            name: np.concatenate([array, winners[name]]) for name, array in sections.items()
        }
    if draw.want_probabilities:
        sections["probabilities"] = conditional_probabilities(
            sections["probabilities"],
            uniform=draw.uniform,
            available=available,
            remaining_share=lambda: (
                weight_excluding(context, draw, shares, sections) / shares.total
            ),
        )
    return sections


def _with_types(draw: GlobalDraw, sections: Sections) -> Sections:
    """Return draws with their types."""
    return (
        sections | {"types": np.full(len(sections[draw.id_section]), draw.types[0], np.int32)}
        if "types" not in sections
        else sections
    )


def draw_excluding(
    context: RequestContext,
    draw: GlobalDraw,
    shares: PartShares,
    excluded_rows: Sections,
    count: int,
    *,
    exponential_keys: bool = False,
    want_rest: bool = False,
) -> list[Frame[Message]]:
    """Return the hosts' replies about all rows except the excluded ones."""
    sections: Sections = {
        "excluded_ids": excluded_rows[draw.id_section],
        "excluded_types": excluded_rows["types"],
    }
    hosts = np.unique(context.space.host_of_part[shares.parts[shares.measure > 0]])
    requests = [
        (
            int(host),
            Frame(
                _draw_request(
                    context,
                    draw,
                    int(host),
                    0,
                    count,
                    exponential_keys=exponential_keys,
                    want_rest=want_rest,
                ),
                sections,
            ),
        )
        for host in hosts
    ]
    return context.dispatch(draw.method, requests)


def weight_excluding(
    context: RequestContext, draw: GlobalDraw, shares: PartShares, excluded_rows: Sections
) -> float:
    """Return the weight of all rows except the excluded ones.

    The sum has the same terms in the same order, whichever hosts hold the rows.
    """
    rest_weights = [
        reply.array("remaining_weight", "float64", 2)
        for reply in draw_excluding(context, draw, shares, excluded_rows, 0, want_rest=True)
    ]
    terms = np.concatenate([part_weights.reshape(-1) for part_weights in rest_weights])
    return neumaier_sum(np.sort(terms[terms > 0]))
