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
from tests.distributions.checks.basis import require, require_counts, require_independent
from tests.distributions.checks.hosts import request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism.graph import Graph
from asterism_model.elements import EDGE
from asterism_model.schema import EdgeType, Feature, NodeType, Schema, WeightTable
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.api import global_sampling, graph_labels, layers, negatives, neighbors, subgraphs, walks
from graphd.operators import filters
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
_ALL_BY_INDEX = "rank >= 0"
"""Filter that every edge satisfies and that an index serves."""


def _node_weights() -> NDArray[np.float64]:
    """Return the weights of the nodes of each type."""
    return np.array([1.0, 2.0, 4.0, 3.0])


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
            EdgeType(
                src_type=src,
                relation=name,
                dst_type="a",
                weighted=True,
                tables=(table,),
                features=(Feature(name="rank", dtype="int64"), Feature(name="when", dtype="int64")),
                index=("rank",),
                time="when",
            )
            for src, name in (("a", "x"), ("a", "y"), ("b", "z"))
        ),
        parts=1,
        direction="both",
    )
    ends = np.divmod(np.arange(_SIZE * _SIZE), _SIZE)
    weights = _node_weights().astype(np.float32)
    ranks = np.arange(_SIZE * _SIZE) % 7
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
            features={"rank": ranks, "when": ranks},
            times=ranks,
        )
        for t, edge in enumerate(schema.edge_types)
    }
    return version_of(schema, nodes, edges)


@cache
def _graph() -> Graph:
    """Return a client's graph of the same version, for statements."""
    # It imports `checks.hosts`.
    from tests.kit.hosted_graph import graph_on_hosts

    return graph_on_hosts(_version())


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


def _negatives(node_type: int, excluded: int | Outcomes = -1) -> Call:
    head = graphd_pb.SampleNegativesRequest(types=[node_type], count=1)
    return lambda seed, n: _sections(
        negatives.sample_negatives,
        head,
        seed,
        {
            "indptr": np.arange(n + 1, dtype=np.int64),
            "excluded": np.broadcast_to(np.asarray(excluded, np.int64), n).copy(),
        },
        rows=n,
    )["ids"].reshape(-1)


def _neighbors(
    edge_types: Iterable[int],
    node: int,
    node_type: int = _A,
    *,
    times: bool = False,
    count: int = 1,
    **fields: Any,
) -> Call:
    """Return the first neighbor of each position; with ``times``, all edges are early enough."""
    head = graphd_pb.SampleNeighborsRequest(
        edge_types=edge_types, node_type=node_type, count=count, replace=count == 1, **fields
    )
    if times:
        head.temporal_filter.SetInParent()
    return lambda seed, n: _sections(
        neighbors.sample_neighbors, head, seed, _starts(n, node, times=times)
    )["ids"].reshape(n, count)[:, 0]


def _starts(n: int, node: int, *, times: bool) -> Sections:
    """Return the sections of n equal start nodes; with ``times``, after the times of all edges."""
    starts = {"nodes": np.full(n, node, np.int64)}
    return starts | ({"times": np.full(n, 99, np.int64)} if times else {})


_FIRST_STEP = "GO FROM $nodes OVER y BIDIRECT UNIFORM SEED $seed YIELD id($$) AS end SAMPLE [1]"
_SECOND_STEP = (
    "GO 2 STEPS FROM $nodes OVER {} BIDIRECT UNIFORM SEED $seed YIELD id($$) AS end SAMPLE [1, 1]"
)
"""Statements of steps that lead from each node to each node equally likely."""


def _both_directions(edges: str, node: int) -> Call:
    """Return the other end of an edge of either direction."""
    statement = (
        f"SAMPLE 1 NEIGHBORS FROM $nodes ON a OVER {edges} BIDIRECT SEED $seed YIELD id($$) AS end"
    )
    return _statement(statement, node)


def _statement(statement: str, node: int) -> Call:
    """Return column ``end`` of a statement's result."""
    return lambda seed, n: _ends(statement, seed, np.full(n, node))


def _ends(statement: str, seed: int, nodes: Outcomes) -> Outcomes:
    table = _graph().query(statement, {"nodes": nodes, "seed": seed})
    return np.asarray(table["end"], np.int64)


def _step_from_ends_of_step(node: int) -> Call:
    """Return the ends of a step from the nodes at which a second step starts."""
    return lambda seed, n: _ends(_FIRST_STEP, seed, _ends(_FIRST_STEP, seed, np.full(n, node)))


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


def _layer(edge_types: Iterable[int], count: int = 1, **fields: Any) -> Call:
    """Return the first candidate that each layer of one node draws."""
    head = graphd_pb.SampleLayerRequest(
        edge_types=edge_types, count=count, width=1, replace=count == 1, **fields
    )
    return lambda seed, n: _sections(
        layers.sample_layer, head, seed, {"nodes": np.zeros(n, np.int64)}
    )["ids"].reshape(n, count)[:, 0]


def _second_layer(edge_type: int) -> Call:
    head = graphd_pb.SampleLayersRequest(
        hops=[graphd_pb.Hop(edge_types=[t], count=1) for t in (_X, edge_type)],
        width=1,
        replace=True,
    )
    return lambda seed, n: _sections(
        layers.sample_layers, head, seed, {"nodes": np.zeros(n, np.int64)}
    )["ids.1"]


def _tree(
    edge_type: int, node: int = 0, *, times: bool = False, count: int = 1, **fields: Any
) -> Call:
    """Return the first neighbor of each root of a disjoint subgraph."""
    head = graphd_pb.SampleSubgraphRequest(
        fanouts=[graphd_pb.EdgeTypeFanouts(edge_type=edge_type, counts=[count])],
        replace=count == 1,
        disjoint=True,
        **fields,
    )
    if times:
        head.temporal_filter.SetInParent()
    end = "rows" if head.direction == common_pb.IN else "cols"

    def outcomes(seed: int, n: int) -> Outcomes:
        sections = _sections(subgraphs.sample_subgraph, head, seed, _starts(n, node, times=times))
        ends: Outcomes = sections[f"nodes.{_A}"][sections[f"{end}.{edge_type}"]]
        return ends.reshape(n, count)[:, 0]

    return outcomes


def _ego(edge_type: int, node: int, **fields: Any) -> Call:
    """Return the node that each ego subgraph has beside its root, or the root."""
    head = graphd_pb.SampleEgoSubgraphsRequest(
        fanouts=[graphd_pb.EdgeTypeFanouts(edge_type=edge_type, counts=[1])],
        edge_types=[edge_type],
        replace=True,
        disjoint=True,
        **fields,
    )

    def outcomes(seed: int, n: int) -> Outcomes:
        sections = _sections(
            subgraphs.sample_ego_subgraphs, head, seed, _starts(n, node, times=False)
        )
        last = np.searchsorted(sections[f"trees.{_A}"], np.arange(n), side="right") - 1
        ends: Outcomes = sections[f"nodes.{_A}"][last]
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
    "neighbors of 0 by x, by index": _neighbors([_X], 0, where=_ALL_BY_INDEX),
    "neighbors of 1 by x, by index": _neighbors([_X], 1, where=_ALL_BY_INDEX),
    "neighbors of 0 by y, by index": _neighbors([_Y], 0, where=_ALL_BY_INDEX),
    "neighbors of 0 by x by index, against the edges": _neighbors(
        [_X], 0, where=_ALL_BY_INDEX, direction=common_pb.IN
    ),
    "different neighbors of 2 by x": _neighbors([_X], 2, count=2),
    "different neighbors of 3 by x": _neighbors([_X], 3, count=2),
    "different neighbors of 2 by y": _neighbors([_Y], 2, count=2),
    "different neighbors of 2 by x, against the edges": _neighbors(
        [_X], 2, count=2, direction=common_pb.IN
    ),
    "neighbors of 0 of b by z until a time": _neighbors([_Z], 0, _B, times=True),
    "neighbors of 1 of b by z until a time": _neighbors([_Z], 1, _B, times=True),
    "neighbors of 0 by y until a time, against the edges": _neighbors(
        [_Y], 0, times=True, direction=common_pb.IN
    ),
    "neighbors of 3 by y, in both directions": _both_directions("y", 3),
    "neighbors of 1 by y, in both directions": _both_directions("y", 1),
    "a step of a statement from the ends of another by y": _step_from_ends_of_step(2),
    "a second step of a statement by x": _statement(_SECOND_STEP.format("x"), 2),
    "a second step of a statement by y": _statement(_SECOND_STEP.format("y"), 2),
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
    "different layers by z": _layer([_Z], 2, node_type=_B),
    "different layers by z, against the edges": _layer([_Z], 2, direction=common_pb.IN),
    "second layers by x": _second_layer(_X),
    "second layers by y": _second_layer(_Y),
    "trees of 0 by x": _tree(_X),
    "trees of 1 by x": _tree(_X, 1),
    "trees of 0 by y": _tree(_Y),
    "trees of 0 by x, uniformly": _tree(_X, uniform=True),
    "trees of 0 by x, against the edges": _tree(_X, direction=common_pb.IN),
    "trees of 3 by x of different neighbors": _tree(_X, 3, count=2),
    "trees of 2 by y of different neighbors": _tree(_Y, 2, count=2),
    "trees of 3 by y until a time": _tree(_Y, 3, times=True),
    "trees of 1 by y until a time": _tree(_Y, 1, times=True),
    "ego subgraphs of 2 by x": _ego(_X, 2),
    "ego subgraphs of 2 by x, against the edges": _ego(_X, 2, direction=common_pb.IN),
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
    request = graphd_pb.SampleNeighborsRequest(where=_ALL_BY_INDEX)
    plan = filters.with_filter(_context(), EDGE, [_X], request).filter_plan
    require(plan == "index on rank (range)", f"where {_ALL_BY_INDEX}: {plan}")
    outcomes = {name: call(5, n) for name, call in CALLS.items()}
    _require_pairs_independent(outcomes)
    for name in _EXCLUDED:
        excluded = outcomes[name]
        _require_distribution_without(
            excluded, _negatives(_A, excluded)(5, n), f"negatives other than {name}"
        )


_EXCLUDED = ("nodes of a", "nodes like a", "neighbors of 0 by x", "a step from 0 by x")
"""Calls with draws that `sample_negatives` excludes under the same seed."""


def _require_distribution_without(excluded: Outcomes, drawn: Outcomes, label: str) -> None:
    """Require draws by weight among the nodes of type a except those of another call."""
    weights = _node_weights()
    shares = np.tile(weights, (_SIZE, 1))
    np.fill_diagonal(shares, 0)
    shares /= shares.sum(axis=1, keepdims=True)
    counts = np.bincount(excluded, minlength=_SIZE)
    pairs = np.bincount(excluded * _SIZE + drawn, minlength=_SIZE * _SIZE)
    require_counts(pairs, (counts[:, None] * shares).reshape(-1), label)


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
