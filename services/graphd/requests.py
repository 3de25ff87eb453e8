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
from graphd import hgt, labor, pagerank, read, sample, subgraph, visits, walk
from graphd.sample import Ids, Types
from graphd.totals import NODE, OWN_WEIGHTS
from graphd.until import Until, of_subgraph
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
_LEAST_EPSILON = 1e-12
_MOST_WALKS = 1 << 20
"""From one node: more do not fit into a reply."""
_MOST_STEPS = 100
"""Of importance: they settle long before."""


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


def hop_of(schema: Schema, head: Any, edge_types: Sequence[int], count: int, hop: int, until: Until | None = None) -> sample.Neighbors:
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
        until=until,
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


def visiting_of(schema: Schema, head: Any) -> visits.Visiting:
    """How nodes are visited by walks over a metapath."""
    if not head.steps:
        raise InvalidRequest("a metapath has one step at least; say which edge types to follow")
    for name, value, most in (("traversals", head.traversals, _MOST_WALKS), ("walks", head.walks, _MOST_WALKS)):
        if not 1 <= value <= most:
            raise InvalidRequest(f"{name} {value}: expected 1 to {most}")
    if not 0 <= head.termination <= 1:
        raise InvalidRequest(f"termination {head.termination}: a probability is in 0 .. 1")
    if head.count < 0:
        raise InvalidRequest(f"count {head.count}: expected 0 or more neighbors per node")
    steps, direction = tuple(edge_types_of(schema, step.edge_types) for step in head.steps), direction_of(schema, head.direction)
    edges = [(edge.src_type, edge.dst_type) if direction == pb.OUT else (edge.dst_type, edge.src_type) for edge in schema.edge_types]
    begins, ends = {edges[e][0] for e in steps[0]}, {edges[e][1] for e in steps[-1]}
    if head.traversals > 1 and not begins & ends:
        raise InvalidRequest(
            f"the metapath begins at {', '.join(sorted(begins))} and ends at {', '.join(sorted(ends))}: "
            f"it can not be traversed {head.traversals} times; let it end where it begins, or ask for 1"
        )
    walking = walk.Walking(
        steps=steps,
        length=len(steps) * head.traversals,
        uniform=head.uniform,
        direction=direction,
        seed=seed_of(head),
        restart=0.0,
        p=1.0,
        q=1.0,
        want_edge_ids=False,
    )
    return visits.Visiting(walking=walking, walks=head.walks, termination=head.termination, count=head.count)


def _reach_of(schema: Schema, head: Any, direction: pb.Direction) -> tuple[growth.Reach, ...]:
    """How far a subgraph grows along which edge types."""
    check_types("edge", schema, [reach.edge_type for reach in head.reach])

    def ends(edge_type: int) -> tuple[int, int]:
        edge = schema.edge_types[edge_type]
        src, dst = schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type)
        return (src, dst) if direction == pb.OUT else (dst, src)

    return growth.reach_of(ends, [reach.edge_type for reach in head.reach], [list(reach.counts) for reach in head.reach])


def subgraph_of(schema: Schema, request: Frame) -> subgraph.Subgraph:
    """How a subgraph grows."""
    head: Any = request.head
    direction = direction_of(schema, head.direction)
    return subgraph.Subgraph(
        reach=_reach_of(schema, head, direction),
        replace=head.replace,
        uniform=head.uniform,
        direction=direction,
        seed=seed_of(head),
        disjoint=head.disjoint,
        every=head.every,
        want_edge_ids=head.want_edge_ids,
        want_weights=head.want_weights,
        # All edges among nodes would let them see what is to come: those of ego subgraphs have no times.
        until=of_subgraph(request, schema) if "until" in head.DESCRIPTOR.fields_by_name else None,
    )


def labor_of(schema: Schema, head: Any) -> labor.Labor:
    """How a subgraph grows by LABOR."""
    if not -1 <= head.importance <= _MOST_STEPS:
        raise InvalidRequest(f"importance {head.importance}: expected 0 to {_MOST_STEPS} steps, or -1 for as many as it takes")
    direction = direction_of(schema, head.direction)
    return labor.Labor(
        reach=_reach_of(schema, head, direction),
        uniform=head.uniform,
        direction=direction,
        seed=seed_of(head),
        importance=head.importance,
        layer_dependency=head.layer_dependency,
        every=head.every,
        want_edge_ids=head.want_edge_ids,
        want_weights=head.want_weights,
    )


def budgeting_of(schema: Schema, head: Any) -> hgt.Budgeting:
    """How nodes are drawn by budgets."""
    check_types("node", schema, [some.type_id for some in head.counts])
    if not head.counts or not head.counts[0].counts:
        raise InvalidRequest("no layers: say how many nodes of one type at least to draw in each")
    counts = {some.type_id: tuple(some.counts) for some in head.counts}
    if len(counts) < len(head.counts):
        raise InvalidRequest(f"counts of node types {[some.type_id for some in head.counts]}: one is given twice")
    layers = len(head.counts[0].counts)
    for type_id, each in counts.items():
        name = schema.node_types[type_id].name
        if len(each) != layers:
            raise InvalidRequest(f"counts of {name!r} are of {len(each)} layers, the first ones of {layers}; give each as many")
        if min(each) < 0:
            raise InvalidRequest(f"count {min(each)} of {name!r}: expected 0 or more nodes of a layer")
    return hgt.Budgeting(
        followed=edge_types_of(schema, head.followed),
        counts=counts,
        layers=layers,
        uniform=head.uniform,
        direction=direction_of(schema, head.direction),
        seed=seed_of(head),
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


def ranking_of(schema: Schema, head: Any) -> pagerank.Ranking:
    """What PageRank is of."""
    if not 0 < head.alpha <= 1:
        raise InvalidRequest(f"alpha {head.alpha}: expected a probability above 0, and 1 at most")
    if not _LEAST_EPSILON <= head.epsilon <= 1:
        raise InvalidRequest(f"epsilon {head.epsilon}: expected {_LEAST_EPSILON:g} to 1")
    if not 1 <= head.top <= _MOST_WALKS:
        raise InvalidRequest(f"top {head.top}: expected 1 to {_MOST_WALKS} nodes")
    return pagerank.Ranking(
        edge_types=edge_types_of(schema, head.edge_types),
        direction=direction_of(schema, head.direction),
        uniform=head.uniform,
        alpha=head.alpha,
        epsilon=head.epsilon,
        top=head.top,
    )


def among_of(schema: Schema, head: Any) -> read.Adjacent:
    """Which edges between nodes are read."""
    return read.Adjacent(
        edge_types=edge_types_of(schema, head.edge_types),
        direction=direction_of(schema, head.direction),
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        sort="",
    )


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
