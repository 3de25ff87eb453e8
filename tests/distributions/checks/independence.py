"""Calls with one seed: every two of them draw independently, unless the documentation equates them.

The calls go through graphd's handlers, which derive the seed of each call from that of the request.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import require_independent
from tests.distributions.checks.hosts import request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.schema import EdgeType, Feature, NodeType, Schema, WeightTable
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.api import global_sampling, graph_labels, layers, negatives, neighbors, subgraphs, walks
from graphd.operators.graph_labels import GraphLabelCache
from graphd.operators.request_context import RequestContext, Sections
from graphd.routing import totals
from storaged import sampling as draw

Outcomes = NDArray[np.int64]
Call = Callable[[int, int], Outcomes]
"""(seed, n) -> outcomes 0 .. 3 at n positions."""

_A, _B = 0, 1
"""Node types."""
_X, _Y, _Z = 0, 1, 2
"""Edge types: x and y from a to a, z from b to a."""
_SIZE = 4
"""Number of nodes of each type, and of edges of each node and type: one to every node of type a."""
_ALL = "id >= 0"
"""Filter that every node and edge satisfies."""


@cache
def _version() -> draw.LocalVersion:
    """Return four nodes of each type, joined to all of type a by edges of unequal weights.

    A weight depends on the edge's type and destination only. So the distribution of a second step
    does not depend on the first one, which several calls share on purpose.
    """
    table = WeightTable(name="heavy", expression="weight * weight")
    label = Feature(name="label", kind="bytes")
    schema = Schema(
        node_types=tuple(
            NodeType(
                name=name, weighted=True, tables=(table,), features=(label,), graph_label="label"
            )
            for name in ("a", "b")
        ),
        edge_types=tuple(
            EdgeType(src_type=src, relation=name, dst_type="a", weighted=True, tables=(table,))
            for src, name in (("a", "x"), ("a", "y"), ("b", "z"))
        ),
        parts=1,
        direction="both",
    )
    ends = np.divmod(np.arange(_SIZE * _SIZE), _SIZE)
    weights = np.array([1, 2, 4, 3], np.float32)
    values = np.frombuffer(b"0123", np.uint8)
    nodes = {
        name: Nodes(
            ids=np.arange(_SIZE),
            weights=weights,
            extra_weights={"heavy": weights**2},
            features={"label": (np.arange(_SIZE + 1), values)},
        )
        for name in ("a", "b")
    }
    edges = {
        edge.name: Edges(
            src=ends[0],
            dst=ends[1],
            weights=np.roll(weights, t)[ends[1]],
            extra_weights={"heavy": np.roll(weights, t)[ends[1]] ** 2},
        )
        for t, edge in enumerate(schema.edge_types)
    }
    return version_of(schema, nodes, edges)


@cache
def _context() -> RequestContext:
    version, context = _version(), request_context(_version())
    version_totals = totals.VersionTotals(
        parts=1, part_totals=version.totals, by_weight_name=version.named_totals
    )
    return replace(context, version=replace(context.version, totals=version_totals))


def _sections(
    handler: Callable[..., Frame[Any]],
    head: Any,
    seed: int,
    sections: Sections | None = None,
    **fields: Any,
) -> Sections:
    """Return the sections of a handler's reply."""
    request = type(head)()
    request.CopyFrom(head)
    for name, value in {"seed": seed, **fields}.items():
        setattr(request, name, value)
    return dict(handler(_context(), Frame(request, sections or {})).arrays)


def _nodes(types: Iterable[int], **fields: Any) -> Call:
    head = graphd_pb.SampleNodesRequest(types=types, **fields)
    return lambda seed, n: _sections(global_sampling.sample_nodes, head, seed, count=n)["ids"]


def _edges(types: Iterable[int], **fields: Any) -> Call:
    head = graphd_pb.SampleEdgesRequest(types=types, **fields)
    return lambda seed, n: _sections(global_sampling.sample_edges, head, seed, count=n)["dst"]


def _nodes_like(node_type: int) -> Call:
    head = graphd_pb.SampleNodesLikeRequest(node_type=node_type, count=1)
    return lambda seed, n: _sections(
        global_sampling.sample_nodes_like, head, seed, {"nodes": np.zeros(n, np.int64)}
    )["ids"].reshape(-1)


def _negatives(node_type: int, excluded: int = -1) -> Call:
    head = graphd_pb.SampleNegativesRequest(types=[node_type], count=1)
    return lambda seed, n: _sections(
        negatives.sample_negatives,
        head,
        seed,
        {"indptr": np.arange(n + 1, dtype=np.int64), "excluded": np.full(n, excluded, np.int64)},
        rows=n,
    )["ids"].reshape(-1)


def _neighbors(edge_types: Iterable[int], node: int, node_type: int = _A, **fields: Any) -> Call:
    head = graphd_pb.SampleNeighborsRequest(
        edge_types=edge_types, node_type=node_type, count=1, replace=True, **fields
    )
    return lambda seed, n: _sections(
        neighbors.sample_neighbors, head, seed, {"nodes": np.full(n, node, np.int64)}
    )["ids"].reshape(-1)


def _second_hop(edge_type: int) -> Call:
    head = graphd_pb.SampleFanoutRequest(
        hops=[graphd_pb.Hop(edge_types=[t], count=1) for t in (_X, edge_type)], replace=True
    )
    return lambda seed, n: _sections(
        neighbors.sample_fanout, head, seed, {"nodes": np.zeros(n, np.int64)}
    )["ids.1"]


def _step(edge_types: Iterable[int], node: int, node_type: int = _A, **fields: Any) -> Call:
    """Return the node after the last of ``length`` steps."""
    head = graphd_pb.RandomWalkRequest(
        steps=[storaged_pb.Step(edge_types=[t]) for t in edge_types], node_type=node_type, **fields
    )
    head.length = len(head.steps)
    return lambda seed, n: _sections(
        walks.random_walk, head, seed, {"nodes": np.full(n, node, np.int64)}
    )["nodes"][:, -1]


def _ends_of_walks(node: int) -> Call:
    """Return 1 for walks that end before their second traversal, according to visits."""
    head = graphd_pb.SamplePinsageRequest(
        steps=[storaged_pb.Step(edge_types=[_X])], traversals=2, walks=1, termination=0.5, count=2
    )
    return lambda seed, n: (
        _sections(walks.sample_pinsage, head, seed, {"nodes": np.full(n, node, np.int64)})[
            "counts"
        ].sum(axis=1)
        == 1
    ).astype(np.int64)


def _restarts(node: int) -> Call:
    """Return 1 for walks that restart in their first step."""
    head = graphd_pb.RandomWalkRequest(
        steps=[storaged_pb.Step(edge_types=[_Y])], length=1, restart=0.5
    )
    return lambda seed, n: (
        _sections(walks.random_walk, head, seed, {"nodes": np.full(n, node, np.int64)})["types"][
            :, 0
        ]
        < 0
    ).astype(np.int64)


def _layer(edge_types: Iterable[int], **fields: Any) -> Call:
    head = graphd_pb.SampleLayerRequest(
        edge_types=edge_types, count=1, width=1, replace=True, **fields
    )
    return lambda seed, n: _sections(
        layers.sample_layer, head, seed, {"nodes": np.zeros(n, np.int64)}
    )["ids"]


def _second_layer(edge_type: int) -> Call:
    head = graphd_pb.SampleLayersRequest(
        hops=[graphd_pb.Hop(edge_types=[t], count=1) for t in (_X, edge_type)],
        width=1,
        replace=True,
    )
    return lambda seed, n: _sections(
        layers.sample_layers, head, seed, {"nodes": np.zeros(n, np.int64)}
    )["ids.1"]


def _tree(edge_type: int, node: int = 0, **fields: Any) -> Call:
    """Return the neighbor of each root of a disjoint subgraph."""
    head = graphd_pb.SampleSubgraphRequest(
        fanouts=[graphd_pb.EdgeTypeFanouts(edge_type=edge_type, counts=[1])],
        replace=True,
        disjoint=True,
        **fields,
    )
    end = "rows" if head.direction == common_pb.IN else "cols"

    def outcomes(seed: int, n: int) -> Outcomes:
        sections = _sections(
            subgraphs.sample_subgraph, head, seed, {"nodes": np.full(n, node, np.int64)}
        )
        ends: Outcomes = sections[f"nodes.{_A}"][sections[f"{end}.{edge_type}"]]
        return ends

    return outcomes


def _labels() -> Call:
    cache_of_labels = GraphLabelCache()

    def handler(context: RequestContext, request: Frame[Any]) -> Frame[Any]:
        return graph_labels.sample_graph_labels(context, request, cache_of_labels)

    head = graphd_pb.SampleGraphLabelsRequest()
    zero = np.uint8(ord("0"))
    return lambda seed, n: (_sections(handler, head, seed, count=n)["labels.values"] - zero).astype(
        np.int64
    )


CALLS: dict[str, Call] = {
    "nodes of a": _nodes([_A]),
    "nodes of b": _nodes([_B]),
    "nodes of both types": _nodes([]),
    "nodes of a, uniformly": _nodes([_A], uniform=True),
    "nodes of a by name": _nodes([_A], weight="heavy"),
    "nodes of a, filtered": _nodes([_A], where=_ALL),
    "edges of x": _edges([_X]),
    "edges of y": _edges([_Y]),
    "edges of x, uniformly": _edges([_X], uniform=True),
    "nodes like a": _nodes_like(_A),
    "nodes like b": _nodes_like(_B),
    "negatives of a but one": _negatives(_A, excluded=0),
    "negatives of b": _negatives(_B),
    "neighbors of 0 by x": _neighbors([_X], 0),
    "neighbors of 1 by x": _neighbors([_X], 1),
    "neighbors of 0 by y": _neighbors([_Y], 0),
    "neighbors of 0 by x, uniformly": _neighbors([_X], 0, uniform=True),
    "neighbors of 0 by x, against the edges": _neighbors([_X], 0, direction=common_pb.IN),
    "neighbors of 0 by x by name": _neighbors([_X], 0, weight="heavy"),
    "neighbors of 0 by x, filtered": _neighbors([_X], 0, where="src.id >= 0"),
    "neighbors of 0 of a by x or z": _neighbors([_X, _Z], 0),
    "neighbors of 0 of b by x or z": _neighbors([_X, _Z], 0, _B),
    "neighbors of neighbors by x": _second_hop(_X),
    "neighbors of neighbors by y": _second_hop(_Y),
    "a step from 0 by x": _step([_X], 0),
    "a step from 1 by x": _step([_X], 1),
    "a step from 0 by y": _step([_Y], 0),
    "a step from 0 by x, uniformly": _step([_X], 0, uniform=True),
    "a step from 0 by x, against the edges": _step([_X], 0, direction=common_pb.IN),
    "a second step by x": _step([_X, _X], 0),
    "a second step by y": _step([_X, _Y], 0),
    "a biased second step by x": _step([_X, _X], 0, p=0.5, q=2.0),
    "a different first step from 0 by x": _step([_X], 0, walks=1, distinct_first_step=True),
    "a different first step from 0 by y": _step([_Y], 0, walks=1, distinct_first_step=True),
    "ends of walks from 0": _ends_of_walks(0),
    "ends of walks from 1": _ends_of_walks(1),
    "restarts from 0": _restarts(0),
    "restarts from 1": _restarts(1),
    "layers by x": _layer([_X]),
    "layers by y": _layer([_Y]),
    "layers by x, uniformly": _layer([_X], uniform=True),
    "layers by x, against the edges": _layer([_X], direction=common_pb.IN),
    "second layers by x": _second_layer(_X),
    "second layers by y": _second_layer(_Y),
    "trees of 0 by x": _tree(_X),
    "trees of 1 by x": _tree(_X, 1),
    "trees of 0 by y": _tree(_Y),
    "trees of 0 by x, uniformly": _tree(_X, uniform=True),
    "trees of 0 by x, against the edges": _tree(_X, direction=common_pb.IN),
    "graph labels": _labels(),
}
"""Calls with a draw at each of n positions."""


def _first(call: Call) -> Callable[[int], int]:
    return lambda seed: int(call(seed, 1)[0])


def _labor(edge_type: int, **fields: Any) -> Callable[[int], int]:
    """Return the first edge that LABOR keeps of node 0, or 0."""
    head = graphd_pb.SampleLaborRequest(
        fanouts=[graphd_pb.EdgeTypeFanouts(edge_type=edge_type, counts=[2])], **fields
    )

    def outcome(seed: int) -> int:
        sections = _sections(subgraphs.sample_labor, head, seed, {"nodes": np.zeros(1, np.int64)})
        ends = sections.get(f"cols.{edge_type}", np.zeros(0, np.int32))
        return int(sections[f"nodes.{_A}"][ends].max(initial=0))

    return outcome


def _budgets(edge_type: int, **fields: Any) -> Callable[[int], int]:
    """Return the node of type a that a layer by budgets draws around node 0 of type b or a."""
    head = graphd_pb.SampleHgtRequest(
        counts=[graphd_pb.NodeCounts(type_id=_A, counts=[1])],
        traversed_edge_types=[edge_type],
        edge_types=[edge_type],
        node_type=_A,
        **fields,
    )
    return lambda seed: int(
        _sections(subgraphs.sample_hgt, head, seed, {"nodes": np.zeros(1, np.int64)})[
            f"nodes.{_A}"
        ][1]
    )


SINGLE_CALLS: dict[str, Callable[[int], int]] = {
    "nodes of a": _first(_nodes([_A])),
    "neighbors of 0 by x": _first(_neighbors([_X], 0)),
    "trees of 0 by x": _first(_tree(_X)),
    "layers by x": _first(_layer([_X])),
    "LABOR by x": _labor(_X),
    "LABOR by x, uniformly": _labor(_X, uniform=True),
    "budgets by x": _budgets(_X),
    "budgets by y": _budgets(_Y),
    "budgets by x, uniformly": _budgets(_X, uniform=True),
}
"""Calls that share their variates among nodes, and some others, with one outcome per seed."""


def calls_with_one_seed_are_independent(scale: float) -> None:
    """Draws at one position of any two calls with the same seed are independent."""
    n = int(max(250, 3000 * scale))
    outcomes = {name: call(5, n) for name, call in CALLS.items()}
    _require_pairs_independent(outcomes)


def single_draws_with_one_seed_are_independent(scale: float) -> None:
    """The first draws of any two calls are independent over seeds."""
    n = int(max(250, 400 * scale))
    outcomes = {
        name: np.array([call(seed) for seed in range(n)]) for name, call in SINGLE_CALLS.items()
    }
    _require_pairs_independent(outcomes)


def _require_pairs_independent(outcomes: dict[str, Outcomes]) -> None:
    for (one, first), (other, second) in itertools.combinations(outcomes.items(), 2):
        require_independent(first, second, _SIZE, f"{one} and {other}")
