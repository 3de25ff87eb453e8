"""What a request says, in the words of the rooms: types and directions checked, arrays taken out of
the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asterism_graphkit.operators import khop
from asterism_graphkit.random import rng
from asterism_model.elements import NODE, OWN_WEIGHTS, canonical_weight_name
from asterism_model.filters.syntax import parse
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as pb
from graphd.operators import hgt, labor, pagerank, reads, sampling, subgraphs, visit_counts, walks
from graphd.operators.sampling import Ids, Types
from graphd.operators.temporal import TemporalFilter, subgraph_filter


def resolve_weight_name(element: int, schema: Schema, types: Sequence[int], name: str) -> str:
    """The name of the weights that a request wants, "" for the rows' own; NotFound where one of its
    types has none of it.
    """
    for type_id in types:
        if name not in OWN_WEIGHTS:
            (schema.node_types if element == NODE else schema.edge_types)[type_id].table(name)
    return canonical_weight_name(name)


def decode_seed(head: Any) -> int:
    """The seed of a request's draws, which those by other weights, or under another condition, have
    nothing to do with.
    """
    return rng.derive_seed(
        head.seed,
        canonical_weight_name(head.weight),
        parse(head.where).canonical if head.where else "",
    )


_LEAST_BIAS, _MAX_BIAS = 1e-3, 1e3
_LEAST_EPSILON = 1e-12
_MAX_WALKS = 1 << 20
"""From one node: more do not fit into a reply."""
_MAX_STEPS = 100
"""Of importance: they settle long before."""


def decode_global_draw(element: int, schema: Schema, head: Any) -> sampling.GlobalDraw:
    """A global draw; no type named means all."""
    types = sorted(set(head.types))
    schema_types = schema.node_types if element == NODE else schema.edge_types
    check_types("node" if element == NODE else "edge", schema, types)
    return sampling.GlobalDraw(
        element=element,
        types=tuple(types or range(len(schema_types))),
        seed=decode_seed(head),
        count=head.count,
        uniform=head.uniform,
        distinct=head.distinct,
        want_probabilities=head.want_probabilities,
    )


def decode_hop(
    schema: Schema,
    head: Any,
    edge_types: Sequence[int],
    count: int,
    hop: int,
    temporal_filter: TemporalFilter | None = None,
) -> sampling.NeighborParams:
    """How the neighbors of one hop are drawn."""
    if count < 0:
        raise InvalidRequest(f"count {count}: expected 0 or more neighbors per node")
    return sampling.NeighborParams(
        edge_types=decode_edge_types(schema, edge_types),
        count=count,
        replace=head.replace,
        uniform=head.uniform,
        direction=decode_direction(schema, head.direction),
        seed=decode_seed(head),
        hop=hop,
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        want_probabilities=head.want_probabilities,
        temporal_filter=temporal_filter,
    )


def decode_walk(schema: Schema, head: Any) -> walks.RandomWalkParams:
    """How walks go."""
    if not head.steps:
        raise InvalidRequest("a walk has one step at least; say which edge types to follow")
    if not 0 <= head.restart <= 1:
        raise InvalidRequest(f"restart {head.restart}: a probability is in 0 .. 1")
    for name, value in (("p", head.p or 1.0), ("q", head.q or 1.0)):
        if not _LEAST_BIAS <= value <= _MAX_BIAS:
            raise InvalidRequest(f"{name} {value}: expected {_LEAST_BIAS} to {_MAX_BIAS:g}")
    steps = tuple(decode_edge_types(schema, step.edge_types) for step in head.steps)
    if head.walks > _MAX_WALKS:
        raise InvalidRequest(f"walks {head.walks}: expected 0 to {_MAX_WALKS} from a node")
    if head.different_first and not (head.walks and head.length):
        raise InvalidRequest(
            f"different_first with walks {head.walks} and length {head.length}: expected 1 "
            "or more walks of 1 or more steps"
        )
    return walks.RandomWalkParams(
        steps=steps,
        length=head.length,
        uniform=head.uniform,
        direction=decode_direction(schema, head.direction),
        seed=decode_seed(head),
        restart=head.restart,
        p=head.p or 1.0,
        q=head.q or 1.0,
        want_edge_ids=head.want_edge_ids,
        walks=head.walks,
        distinct_first_step=head.different_first,
    )


def decode_visits(schema: Schema, head: Any) -> visit_counts.VisitParams:
    """How nodes are visited by walks over a metapath."""
    if not head.steps:
        raise InvalidRequest("a metapath has one step at least; say which edge types to follow")
    for name, value, limit in (
        ("traversals", head.traversals, _MAX_WALKS),
        ("walks", head.walks, _MAX_WALKS),
    ):
        if not 1 <= value <= limit:
            raise InvalidRequest(f"{name} {value}: expected 1 to {limit}")
    if not 0 <= head.termination <= 1:
        raise InvalidRequest(f"termination {head.termination}: a probability is in 0 .. 1")
    if head.count < 0:
        raise InvalidRequest(f"count {head.count}: expected 0 or more neighbors per node")
    steps, direction = (
        tuple(decode_edge_types(schema, step.edge_types) for step in head.steps),
        decode_direction(schema, head.direction),
    )
    edges = [
        (edge.src_type, edge.dst_type) if direction == pb.OUT else (edge.dst_type, edge.src_type)
        for edge in schema.edge_types
    ]
    begins, ends = {edges[e][0] for e in steps[0]}, {edges[e][1] for e in steps[-1]}
    if head.traversals > 1 and not begins & ends:
        raise InvalidRequest(
            f"the metapath begins at {', '.join(sorted(begins))} and ends at "
            f"{', '.join(sorted(ends))}: "
            f"it can not be traversed {head.traversals} times; let it end where it begins, "
            "or ask for 1"
        )
    walk_params = walks.RandomWalkParams(
        steps=steps,
        length=len(steps) * head.traversals,
        uniform=head.uniform,
        direction=direction,
        seed=decode_seed(head),
        restart=0.0,
        p=1.0,
        q=1.0,
        want_edge_ids=False,
    )
    return visit_counts.VisitParams(
        walk=walk_params, walks=head.walks, termination=head.termination, count=head.count
    )


def _decode_fanouts(
    schema: Schema, head: Any, direction: pb.Direction
) -> tuple[khop.HopFanout, ...]:
    """How far a subgraph grows along which edge types."""
    check_types("edge", schema, [fanout.edge_type for fanout in head.reach])

    def ends(edge_type: int) -> tuple[int, int]:
        edge = schema.edge_types[edge_type]
        src, dst = schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type)
        return (src, dst) if direction == pb.OUT else (dst, src)

    return khop.build_fanouts(
        ends,
        [fanout.edge_type for fanout in head.reach],
        [list(fanout.counts) for fanout in head.reach],
    )


def decode_subgraph(schema: Schema, request: Frame) -> subgraphs.SubgraphParams:
    """How a subgraph grows."""
    head: Any = request.head
    direction = decode_direction(schema, head.direction)
    return subgraphs.SubgraphParams(
        fanouts=_decode_fanouts(schema, head, direction),
        replace=head.replace,
        uniform=head.uniform,
        direction=direction,
        seed=decode_seed(head),
        disjoint=head.disjoint,
        expand_all_hops=head.every,
        want_edge_ids=head.want_edge_ids,
        want_weights=head.want_weights,
        # All edges among nodes would let them see what is to come: those of ego subgraphs have no
        # times.
        temporal_filter=subgraph_filter(request, schema)
        if "until" in head.DESCRIPTOR.fields_by_name
        else None,
    )


def decode_labor(schema: Schema, head: Any) -> labor.LaborParams:
    """How a subgraph grows by LABOR."""
    if not -1 <= head.importance <= _MAX_STEPS:
        raise InvalidRequest(
            f"importance {head.importance}: expected 0 to {_MAX_STEPS} steps, or -1 for as "
            "many as it takes"
        )
    direction = decode_direction(schema, head.direction)
    return labor.LaborParams(
        fanouts=_decode_fanouts(schema, head, direction),
        uniform=head.uniform,
        direction=direction,
        seed=decode_seed(head),
        importance_steps=head.importance,
        layer_dependency=head.layer_dependency,
        expand_all_hops=head.every,
        want_edge_ids=head.want_edge_ids,
        want_weights=head.want_weights,
    )


def decode_hgt(schema: Schema, head: Any) -> hgt.HgtParams:
    """How nodes are drawn by budgets."""
    check_types("node", schema, [entry.type_id for entry in head.counts])
    if not head.counts or not head.counts[0].counts:
        raise InvalidRequest("no layers: say how many nodes of one type at least to draw in each")
    counts = {entry.type_id: tuple(entry.counts) for entry in head.counts}
    if len(counts) < len(head.counts):
        raise InvalidRequest(
            f"counts of node types {[entry.type_id for entry in head.counts]}: one is given twice"
        )
    layer_count = len(head.counts[0].counts)
    for type_id, layer_counts in counts.items():
        name = schema.node_types[type_id].name
        if len(layer_counts) != layer_count:
            raise InvalidRequest(
                f"counts of {name!r} are of {len(layer_counts)} layers, the first ones of "
                f"{layer_count}; give each as many"
            )
        if min(layer_counts) < 0:
            raise InvalidRequest(
                f"count {min(layer_counts)} of {name!r}: expected 0 or more nodes of a layer"
            )
    return hgt.HgtParams(
        edge_types=decode_edge_types(schema, head.followed),
        counts=counts,
        layer_count=layer_count,
        uniform=head.uniform,
        direction=decode_direction(schema, head.direction),
        seed=decode_seed(head),
    )


def decode_edge_types(schema: Schema, types: Sequence[int]) -> tuple[int, ...]:
    """Edge types as asked for, each once."""
    if not types:
        raise InvalidRequest("no edge type was named; say which to follow")
    check_types("edge", schema, types)
    return tuple(dict.fromkeys(types))


def decode_direction(schema: Schema, direction: int) -> pb.Direction:
    """OUT or IN, the latter where the space keeps in-copies."""
    if direction in (pb.DIRECTION_UNSPECIFIED, pb.OUT):
        return pb.OUT
    if direction != pb.IN:
        raise InvalidRequest(f"direction {direction}: expected OUT or IN")
    if not schema.has_in:
        raise InvalidRequest(
            "direction in: the space keeps out-edges only; make it with direction: both"
        )
    return pb.IN


def check_types(element: str, schema: Schema, types: Sequence[int]) -> None:
    """NotFound for a type id that the schema has not."""
    schema_types: Sequence[NodeType | EdgeType] = (
        schema.node_types if element == "node" else schema.edge_types
    )
    for type_id in types:
        if type_id >= len(schema_types):
            names = ", ".join(f"{i} ({t.name})" for i, t in enumerate(schema_types)) or "none"
            raise NotFound(f"no {element} type {type_id}; there are {names}")


def decode_nodes(request: Frame, schema: Schema) -> tuple[Ids, Types | None]:
    """A request's nodes, and their types where each has its own."""
    head: Any = request.head
    nodes = request.array("nodes", "int64")
    if head.node_type >= 0:
        check_types("node", schema, [head.node_type])
        return nodes, None
    types = request.optional_array("types", "int32")
    if types is None:
        if schema.ids != "global":
            raise InvalidRequest(
                "node type -1: the section types must then say each node's, for ids of this "
                "space are per type"
            )
        return nodes, None
    if len(types) != len(nodes):
        raise InvalidRequest(f"types has {len(types)} entries for {len(nodes)} nodes")
    if types.size and (types.min() < -1 or types.max() >= len(schema.node_types)):
        index = int(np.argmax((types < -1) | (types >= len(schema.node_types))))
        raise InvalidRequest(
            f"types[{index}] = {types[index]}: there are node types 0 to "
            f"{len(schema.node_types) - 1}"
        )
    return nodes, types


def decode_pagerank(schema: Schema, head: Any) -> pagerank.PagerankParams:
    """What PageRank is of."""
    if not 0 < head.alpha <= 1:
        raise InvalidRequest(f"alpha {head.alpha}: expected a probability above 0, and 1 at most")
    if not _LEAST_EPSILON <= head.epsilon <= 1:
        raise InvalidRequest(f"epsilon {head.epsilon}: expected {_LEAST_EPSILON:g} to 1")
    if not 1 <= head.top <= _MAX_WALKS:
        raise InvalidRequest(f"top {head.top}: expected 1 to {_MAX_WALKS} nodes")
    return pagerank.PagerankParams(
        edge_types=decode_edge_types(schema, head.edge_types),
        direction=decode_direction(schema, head.direction),
        uniform=head.uniform,
        alpha=head.alpha,
        epsilon=head.epsilon,
        top_k=head.top,
    )


def decode_induced_edges(schema: Schema, head: Any) -> reads.EdgeReadParams:
    """Which edges between nodes are read."""
    return reads.EdgeReadParams(
        edge_types=decode_edge_types(schema, head.edge_types),
        direction=decode_direction(schema, head.direction),
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        sort="",
    )


def decode_neighbor_read(schema: Schema, head: Any) -> reads.EdgeReadParams:
    """Which neighbors are read."""
    if head.sort not in ("", "id", "weight"):
        raise InvalidRequest(f"sort {head.sort!r}: expected nothing, id or weight")
    if head.top and head.sort:
        raise InvalidRequest(
            f"sort {head.sort!r} with top {head.top}: the heaviest neighbors come heaviest "
            "first; leave sort out"
        )
    return reads.EdgeReadParams(
        edge_types=decode_edge_types(schema, head.edge_types),
        direction=decode_direction(schema, head.direction),
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        sort=head.sort,
        top=head.top,
    )
