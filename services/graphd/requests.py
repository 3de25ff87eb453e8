"""What a request says, in the words of the rooms: types and directions checked, arrays taken out of the frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asterism_proto.arrays import Frame
from asterism_proto.condition import parse
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from graphd import read, sample, subgraph, walk
from graphd.sample import Ids, Types
from graphd.totals import NODE, OWN_WEIGHTS
from graphkit import growth, rng


def weights_of(element: int, schema: Schema, types: Sequence[int], name: str) -> str:
    """The name of the weights that a request wants, "" for the rows' own; NotFound where one of its types has none of it."""
    for type_id in types:
        if name not in OWN_WEIGHTS:
            (schema.node_types if element == NODE else schema.edge_types)[type_id].table(name)
    return named(name)


def named(weights: str) -> str:
    """The name of weights, "" for the rows' own."""
    return "" if weights in OWN_WEIGHTS else weights


def seed_of(head: Any) -> int:
    """The seed of a request's draws, which those by other weights, or under another condition, have nothing to do with."""
    return rng.seed_of(head.seed, named(head.weight), parse(head.where).canonical if head.where else "")


_LEAST_BIAS, _MOST_BIAS = 1e-3, 1e3
_MOST_WALKS = 1 << 20
"""From one node: more do not fit into a reply."""


def draw_of(element: int, schema: Schema, head: Any) -> sample.Global:
    """A global draw; no type named means all."""
    types = sorted(set(head.types))
    of = schema.node_types if element == NODE else schema.edge_types
    check_types("node" if element == NODE else "edge", schema, types)
    return sample.Global(
        element=element,
        types=tuple(types or range(len(of))),
        seed=seed_of(head),
        count=head.count,
        uniform=head.uniform,
        distinct=head.distinct,
        want_probabilities=head.want_probabilities,
    )


def hop_of(schema: Schema, head: Any, edge_types: Sequence[int], count: int, hop: int) -> sample.Neighbors:
    """How the neighbors of one hop are drawn."""
    if count < 0:
        raise InvalidRequest(f"count {count}: expected 0 or more neighbors per node")
    return sample.Neighbors(
        edge_types=edge_types_of(schema, edge_types),
        count=count,
        replace=head.replace,
        uniform=head.uniform,
        direction=direction_of(schema, head.direction),
        seed=seed_of(head),
        hop=hop,
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        want_probabilities=head.want_probabilities,
    )


def walking_of(schema: Schema, head: Any) -> walk.Walking:
    """How walks go."""
    if not head.steps:
        raise InvalidRequest("a walk has one step at least; say which edge types to follow")
    if not 0 <= head.restart <= 1:
        raise InvalidRequest(f"restart {head.restart}: a probability is in 0 .. 1")
    for name, value in (("p", head.p or 1.0), ("q", head.q or 1.0)):
        if not _LEAST_BIAS <= value <= _MOST_BIAS:
            raise InvalidRequest(f"{name} {value}: expected {_LEAST_BIAS} to {_MOST_BIAS:g}")
    steps = tuple(edge_types_of(schema, step.edge_types) for step in head.steps)
    if head.walks > _MOST_WALKS:
        raise InvalidRequest(f"walks {head.walks}: expected 0 to {_MOST_WALKS} from a node")
    if head.different_first and not (head.walks and head.length):
        raise InvalidRequest(f"different_first with walks {head.walks} and length {head.length}: expected 1 or more walks of 1 or more steps")
    return walk.Walking(
        steps=steps,
        length=head.length,
        uniform=head.uniform,
        direction=direction_of(schema, head.direction),
        seed=seed_of(head),
        restart=head.restart,
        p=head.p or 1.0,
        q=head.q or 1.0,
        want_edge_ids=head.want_edge_ids,
        walks=head.walks,
        different_first=head.different_first,
    )


def subgraph_of(schema: Schema, head: Any) -> subgraph.Subgraph:
    """How a subgraph grows."""
    check_types("edge", schema, [reach.edge_type for reach in head.reach])
    direction = direction_of(schema, head.direction)

    def ends(edge_type: int) -> tuple[int, int]:
        edge = schema.edge_types[edge_type]
        src, dst = schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type)
        return (src, dst) if direction == pb.OUT else (dst, src)

    return subgraph.Subgraph(
        reach=growth.reach_of(ends, [reach.edge_type for reach in head.reach], [list(reach.counts) for reach in head.reach]),
        replace=head.replace,
        uniform=head.uniform,
        direction=direction,
        seed=seed_of(head),
        disjoint=head.disjoint,
        every=head.every,
        want_edge_ids=head.want_edge_ids,
        want_weights=head.want_weights,
    )


def edge_types_of(schema: Schema, types: Sequence[int]) -> tuple[int, ...]:
    """Edge types as asked for, each once."""
    if not types:
        raise InvalidRequest("no edge type was named; say which to follow")
    check_types("edge", schema, types)
    return tuple(dict.fromkeys(types))


def direction_of(schema: Schema, direction: int) -> pb.Direction:
    """OUT or IN, the latter where the space keeps in-copies."""
    if direction in (pb.DIRECTION_UNSPECIFIED, pb.OUT):
        return pb.OUT
    if direction != pb.IN:
        raise InvalidRequest(f"direction {direction}: expected OUT or IN")
    if not schema.has_in:
        raise InvalidRequest("direction in: the space keeps out-edges only; make it with direction: both")
    return pb.IN


def check_types(word: str, schema: Schema, types: Sequence[int]) -> None:
    """NotFound for a type id that the schema has not."""
    known: Sequence[NodeType | EdgeType] = schema.node_types if word == "node" else schema.edge_types
    for type_id in types:
        if type_id >= len(known):
            names = ", ".join(f"{i} ({t.name})" for i, t in enumerate(known)) or "none"
            raise NotFound(f"no {word} type {type_id}; there are {names}")


def starts_of(request: Frame, schema: Schema) -> tuple[Ids, Types | None]:
    """A request's nodes, and their types where each has its own."""
    head: Any = request.head
    nodes = request.array("nodes", "int64")
    if head.node_type >= 0:
        check_types("node", schema, [head.node_type])
        return nodes, None
    types = request.optional("types", "int32")
    if types is None:
        if schema.ids != "global":
            raise InvalidRequest("node type -1: the section types must then say each node's, for ids of this space are per type")
        return nodes, None
    if len(types) != len(nodes):
        raise InvalidRequest(f"types has {len(types)} entries for {len(nodes)} nodes")
    if types.size and (types.min() < -1 or types.max() >= len(schema.node_types)):
        at = int(np.argmax((types < -1) | (types >= len(schema.node_types))))
        raise InvalidRequest(f"types[{at}] = {types[at]}: there are node types 0 to {len(schema.node_types) - 1}")
    return nodes, types


def adjacent_of(schema: Schema, head: Any) -> read.Adjacent:
    """Which neighbors are read."""
    if head.sort not in ("", "id", "weight"):
        raise InvalidRequest(f"sort {head.sort!r}: expected nothing, id or weight")
    if head.top and head.sort:
        raise InvalidRequest(f"sort {head.sort!r} with top {head.top}: the heaviest neighbors come heaviest first; leave sort out")
    return read.Adjacent(
        edge_types=edge_types_of(schema, head.edge_types),
        direction=direction_of(schema, head.direction),
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        sort=head.sort,
        top=head.top,
    )
