"""Tests of calls that exclude edges: they read a graph that never had these edges.

Tables of a node depend on its own edges alone. So the results are equal, to the byte, to those of
the same call to a graph that was built without the edges, and so is their distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.distributions import checks
from tests.distributions.checks.hosts import request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.excluded_edges import ExcludedEdges
from asterism_model.schema import EdgeType, Feature, NodeType, Schema, WeightTable
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.api.service import OPERATIONS
from graphd.operators.request_context import RequestContext
from graphd.routing.excluded_edges import RoutedExclusions
from storaged import sampling as draw

USERS, ITEMS, PARTS = 12, 8, 5
USER = 0
USES, VIEWS, MADE = range(3)
"""Edge types: user:uses:item (weighted, timed, parallel), item:views:user, user:made:user."""


def _edges() -> dict[int, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    generator = np.random.default_rng(5)
    sources = {USES: USERS, VIEWS: ITEMS, MADE: USERS}
    targets = {USES: ITEMS, VIEWS: USERS, MADE: USERS}
    return {
        edge_type: (
            generator.integers(0, sources[edge_type], 90),
            generator.integers(0, targets[edge_type], 90),
            generator.integers(0, 6, 90).astype(np.float32),
        )
        for edge_type in sources
    }


def _excluded() -> ExcludedEdges:
    """Return pairs, edges by id, all edges of a node, a self loop, and edges that do not exist."""
    edges = _edges()
    entries = [(USES, int(edges[USES][0][i]), int(edges[USES][1][i]), -1) for i in range(9)]
    entries += [
        (VIEWS, int(edges[VIEWS][0][i]), int(edges[VIEWS][1][i]), i) for i in range(0, 30, 2)
    ]
    entries += [(USES, 3, item, -1) for item in range(ITEMS)]
    entries += [(MADE, node, node, -1) for node in range(USERS)]
    entries += [(MADE, int(edges[MADE][0][i]), int(edges[MADE][1][i]), i) for i in range(12)]
    entries += [(USES, 0, 0, 10**6), (VIEWS, 999, 1, -1), (USES, -1, -1, -1)]
    types, src, dst, eids = np.array(entries, np.int64).T
    return ExcludedEdges(types=types.astype(np.int32), src=src, dst=dst, eids=eids)


def _is_excluded(edge_type: int) -> NDArray[np.bool_]:
    src, dst, _ = _edges()[edge_type]
    excluded = _excluded()
    out = np.zeros(src.size, np.bool_)
    for kind, source, target, eid in zip(
        excluded.types, excluded.src, excluded.dst, excluded.eids, strict=True
    ):
        if kind == edge_type:
            out |= (src == source) & (dst == target) & ((eid < 0) | (np.arange(src.size) == eid))
    return out


@cache
def graph(placement: str, *, without: bool) -> draw.LocalVersion:
    """Return the graph, or the graph built without the excluded edges.

    Both have an index; only calls without excluded edges sample from it.
    """
    at = (Feature(name="at", dtype="int64"),)
    types = (
        EdgeType(
            src_type="user", relation="uses", dst_type="item", weighted=True, features=at, time="at"
        ),
        EdgeType(src_type="item", relation="views", dst_type="user", features=at, time="at"),
        EdgeType(
            src_type="user",
            relation="made",
            dst_type="user",
            weighted=True,
            tables=(WeightTable(name="flat", expression="sqrt(weight)"),),
        ),
    )
    edges = {}
    for edge_type, (src, dst, weights) in _edges().items():
        kept = ~_is_excluded(edge_type) if without else np.ones(src.size, np.bool_)
        edges[types[edge_type].name] = Edges(
            src=src[kept],
            dst=dst[kept],
            eids=np.flatnonzero(kept),
            weights=None if edge_type == VIEWS else weights[kept],
            times=None if edge_type == MADE else np.arange(src.size)[kept] % 40,
            extra_weights={"flat": np.sqrt(weights[kept])} if edge_type == MADE else {},
        )
    schema = Schema(
        node_types=(NodeType(name="user"), NodeType(name="item")),
        edge_types=types,
        parts=PARTS,
        placement=placement,
        direction="both",
    )
    nodes = {"user": Nodes(ids=np.arange(USERS)), "item": Nodes(ids=np.arange(ITEMS))}
    return version_of(schema, nodes, edges)


def context_of(placement: str, hosts: int, *, exclude: bool) -> RequestContext:
    """Return the context of the whole graph with exclusions, or of the graph without the edges."""
    context = request_context(graph(placement, without=not exclude), hosts)
    if not exclude:
        return context
    return replace(context, exclusions=RoutedExclusions(space=context.space, excluded=_excluded()))


def _heads() -> dict[str, tuple[str, Any, dict[str, NDArray[Any]]]]:
    """Return the method, the head and the sections of calls, by name."""
    users = np.tile(np.arange(USERS), 2)
    calls: dict[str, tuple[str, Any, dict[str, NDArray[Any]]]] = {}

    def add(name: str, head: Any, nodes: NDArray[Any], **sections: NDArray[Any]) -> None:
        method = name.split()[0]
        for direction, label in ((common_pb.OUT, "out"), (common_pb.IN, "in")):
            directed = type(head)()
            directed.CopyFrom(head)
            directed.direction = direction
            calls[f"{name} {label}"] = method, directed, {"nodes": nodes, **sections}

    for replace_draws in (True, False):
        for uniform in (True, False):
            label = f"{'replace' if replace_draws else 'distinct'} {'uniform' if uniform else ''}"
            options = {
                "seed": 3,
                "replace": replace_draws,
                "uniform": uniform,
                "want_weights": True,
                "want_edge_ids": True,
            }
            for types in ([MADE], [MADE, USES], [VIEWS, USES]):
                hop = {"edge_types": types, "node_type": USER, "count": 3}
                if types == [VIEWS, USES]:
                    hop["node_type"] = -1
                kinds = {"types": (users % 2).astype(np.int32)}
                add(
                    f"sample_neighbors {types} {label}",
                    graphd_pb.SampleNeighborsRequest(**hop, **options, want_probabilities=True),
                    users % ITEMS if hop["node_type"] < 0 else users,
                    **(kinds if hop["node_type"] < 0 else {}),
                )
            add(
                f"sample_subgraph {label}",
                graphd_pb.SampleSubgraphRequest(
                    **options,
                    fanouts=[_fanout(MADE, 2, -1), _fanout(USES, 3, 2), _fanout(VIEWS, 2, 2)],
                    node_type=USER,
                ),
                np.arange(USERS),
            )
            add(
                f"sample_subgraph one type {label}",
                graphd_pb.SampleSubgraphRequest(
                    **options, fanouts=[_fanout(MADE, 2, 3)], node_type=USER, expand_all_hops=True
                ),
                np.arange(USERS),
            )
            add(
                f"sample_subgraph times {label}",
                graphd_pb.SampleSubgraphRequest(
                    **options,
                    fanouts=[_fanout(MADE, 2, 1), _fanout(USES, 3, 2), _fanout(VIEWS, 2, -1)],
                    node_type=USER,
                    disjoint=True,
                    temporal_filter=common_pb.TemporalFilter(want_times=True),
                ),
                users,
                times=np.arange(users.size) * 2,
            )
    draws = {"seed": 4, "node_type": USER}
    add(
        "sample_neighbors weight table",
        graphd_pb.SampleNeighborsRequest(
            **draws, edge_types=[MADE], count=4, weight="flat", want_weights=True
        ),
        users,
    )
    add(
        "sample_neighbors where",
        graphd_pb.SampleNeighborsRequest(
            **draws, edge_types=[MADE], count=4, where="weight > 1", want_edge_ids=True
        ),
        users,
    )
    for last in (False, True):
        add(
            f"sample_neighbors times {'last' if last else ''}",
            graphd_pb.SampleNeighborsRequest(
                **{**draws, "node_type": -1},
                edge_types=[USES, VIEWS],
                count=3,
                want_edge_ids=True,
                temporal_filter=common_pb.TemporalFilter(want_times=True, last=last),
            ),
            users % ITEMS,
            types=(users % 2).astype(np.int32),
            times=np.arange(users.size) * 2,
        )
    hops = [graphd_pb.Hop(edge_types=[MADE], count=count) for count in (3, 2)]
    for replace_draws in (True, False):
        for uniform in (True, False):
            add(
                f"sample_fanout {replace_draws} {uniform}",
                graphd_pb.SampleFanoutRequest(
                    **draws,
                    hops=hops,
                    want_weights=True,
                    want_edge_ids=True,
                    replace=replace_draws,
                    uniform=uniform,
                ),
                users,
            )
    add(
        "sample_fanout times",
        graphd_pb.SampleFanoutRequest(
            **{**draws, "node_type": -1},
            hops=[graphd_pb.Hop(edge_types=[USES, VIEWS], count=count) for count in (3, 2)],
            want_edge_ids=True,
            replace=True,
            temporal_filter=common_pb.TemporalFilter(want_times=True),
        ),
        users % ITEMS,
        types=(users % 2).astype(np.int32),
        times=np.arange(users.size) * 2,
    )
    for label, options in (
        ("plain", {}),
        ("edge ids", {"want_edge_ids": True, "restart": 0.3}),
        ("uniform", {"uniform": True}),
        ("p and q", {"p": 0.2, "q": 3.0}),
        ("q below one", {"p": 4.0, "q": 0.5, "uniform": True}),
        ("distinct first step", {"walks": 4, "distinct_first_step": True}),
    ):
        for types in ([MADE], [MADE, USES, VIEWS]):
            add(
                f"random_walk {types} {label}",
                graphd_pb.RandomWalkRequest(
                    **draws, **options, steps=[storaged_pb.Step(edge_types=types)], length=6
                ),
                users,
            )
    for uniform in (False, True):
        add(
            f"sample_pinsage {uniform}",
            graphd_pb.SamplePinsageRequest(
                **draws,
                steps=[storaged_pb.Step(edge_types=[MADE])],
                traversals=3,
                walks=20,
                termination=0.3,
                count=4,
                uniform=uniform,
            ),
            users,
        )
    for steps in (0, 2, -1):
        for uniform in (False, True):
            add(
                f"sample_labor {steps} {uniform}",
                graphd_pb.SampleLaborRequest(
                    **draws,
                    fanouts=[_fanout(MADE, 2, 2), _fanout(USES, 2, 2), _fanout(VIEWS, 1, -1)],
                    importance_steps=steps,
                    uniform=uniform,
                    want_weights=True,
                    want_edge_ids=True,
                ),
                np.arange(USERS),
            )
    fanouts = [_fanout(MADE, 2, 2), _fanout(USES, 2, 2), _fanout(VIEWS, 1, 1)]
    for disjoint, uniform, replace_draws in (
        (False, False, False),
        (True, False, False),
        (False, True, False),
        (True, True, True),
        (False, False, True),
    ):
        add(
            f"sample_ego_subgraphs {disjoint} {uniform} {replace_draws}",
            graphd_pb.SampleEgoSubgraphsRequest(
                **draws,
                fanouts=fanouts,
                edge_types=[MADE, USES, VIEWS],
                want_edge_ids=True,
                want_weights=True,
                disjoint=disjoint,
                uniform=uniform,
                replace=replace_draws,
            ),
            np.arange(USERS),
        )
    hops = [graphd_pb.Hop(edge_types=[MADE], count=4), graphd_pb.Hop(edge_types=[MADE], count=3)]
    for uniform in (False, True):
        budgets = graphd_pb.SampleHgtRequest(
            **draws,
            counts=[graphd_pb.NodeCounts(type_id=kind, counts=[3, 3]) for kind in range(2)],
            traversed_edge_types=[MADE, USES, VIEWS],
            edge_types=[MADE, USES],
            want_edge_ids=True,
            uniform=uniform,
        )
        add(f"sample_hgt {uniform}", budgets, np.arange(3))
        layer = graphd_pb.SampleLayerRequest(
            **draws, edge_types=[MADE], count=5, want_edge_ids=True, uniform=uniform
        )
        add(f"sample_layer {uniform}", layer, np.arange(USERS))
        layers = graphd_pb.SampleLayersRequest(**draws, hops=hops, uniform=uniform)
        add(f"sample_layers {uniform}", layers, np.arange(USERS))
    reads = {"edge_types": [MADE, USES], "node_type": USER}
    for label, options in (("all", {}), ("sorted", {"sort": "weight"}), ("top", {"top": 3})):
        add(
            f"neighbors {label}",
            graphd_pb.NeighborsRequest(**reads, **options, want_weights=True, want_edge_ids=True),
            users,
        )
    add("degrees", graphd_pb.DegreesRequest(**reads), users)
    add("degrees weights", graphd_pb.DegreesRequest(**reads, weight="weight"), users)
    add("induced_subgraph", graphd_pb.InducedSubgraphRequest(**reads, want_edge_ids=True), users)
    adjacency = graphd_pb.AdjacencyRequest(edge_types=[MADE], node_type=USER, want_edge_ids=True)
    add("adjacency", adjacency, users, cols=np.arange(USERS))
    add(
        "personalized_pagerank",
        graphd_pb.PersonalizedPagerankRequest(
            edge_types=[MADE], node_type=USER, alpha=0.2, epsilon=1e-4, top=6
        ),
        np.arange(USERS),
    )
    return calls


def _fanout(edge_type: int, *counts: int) -> graphd_pb.EdgeTypeFanouts:
    return graphd_pb.EdgeTypeFanouts(edge_type=edge_type, counts=counts)


CALLS = _heads()


@pytest.mark.parametrize("name", CALLS)
def test_excluded_edges_are_as_if_never_written(name: str) -> None:
    method, head, arrays = CALLS[name]
    for placement in ("mod", "mix64"):
        expected = OPERATIONS[method](
            context_of(placement, 1, exclude=False), Frame(head, arrays)
        ).arrays
        for hosts in (1, 3):
            result = OPERATIONS[method](
                context_of(placement, hosts, exclude=True), Frame(head, arrays)
            ).arrays
            assert_equal_sections(result, expected)
    leaky = OPERATIONS[method](request_context(graph("mod", without=False)), Frame(head, arrays))
    assert any(
        not np.array_equal(leaky.arrays.get(name), array) for name, array in expected.items()
    )


def assert_equal_sections(
    result: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]
) -> None:
    assert set(result) == set(expected)
    for name, array in expected.items():
        assert result[name].dtype == array.dtype, name
        np.testing.assert_array_equal(result[name], array, err_msg=name)


HUB_EDGES, HUB_NODES = 700, 400


@cache
def hub_graph() -> draw.LocalVersion:
    """Return a graph of a node of many edges and many nodes of few."""
    generator = np.random.default_rng(9)
    others = 3 * HUB_NODES
    edge_type = EdgeType(src_type="n", relation="e", dst_type="n", weighted=True)
    edges = Edges(
        src=np.r_[np.zeros(HUB_EDGES, np.int64), generator.integers(1, HUB_NODES, others)],
        dst=generator.integers(1, HUB_NODES, HUB_EDGES + others),
        weights=np.exp(generator.normal(size=HUB_EDGES + others)).astype(np.float32),
    )
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=(edge_type,), parts=PARTS)
    return version_of(schema, {"n": Nodes(ids=np.arange(HUB_NODES))}, {"n:e:n": edges})


def hub_context(hosts: int) -> RequestContext:
    """Return a context that excludes 50 pairs of the hub and 20 pairs of other nodes."""
    context = request_context(hub_graph(), hosts)
    src, dst = _hub_pairs()
    excluded = ExcludedEdges(
        types=np.zeros(src.size, np.int32), src=src, dst=dst, eids=np.full(src.size, -1, np.int64)
    )
    return replace(context, exclusions=RoutedExclusions(space=context.space, excluded=excluded))


def _hub_pairs() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    edges = _stored_edges()
    chosen = np.r_[np.arange(50), HUB_EDGES + np.arange(20)]
    return edges[0][chosen], edges[1][chosen]


def _stored_edges() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    generator = np.random.default_rng(9)
    sources = np.r_[np.zeros(HUB_EDGES, np.int64), generator.integers(1, HUB_NODES, 3 * HUB_NODES)]
    return sources, generator.integers(1, HUB_NODES, sources.size)


def _generator_after_edges() -> np.random.Generator:
    """Return the generator of the graph's weights."""
    generator = np.random.default_rng(9)
    generator.integers(1, HUB_NODES, 3 * HUB_NODES)
    generator.integers(1, HUB_NODES, HUB_EDGES + 3 * HUB_NODES)
    return generator


@pytest.mark.parametrize("replace_draws", [True, False])
@pytest.mark.parametrize("uniform", [True, False])
def test_draws_of_hubs_reject_excluded_edges(replace_draws: bool, uniform: bool) -> None:
    nodes = np.r_[np.zeros(60, np.int64), np.arange(HUB_NODES)]
    options = {"replace": replace_draws, "uniform": uniform, "seed": 5, "want_edge_ids": True}
    head = graphd_pb.SampleNeighborsRequest(
        edge_types=[0], node_type=0, count=8, want_probabilities=True, **options
    )
    first = OPERATIONS["sample_neighbors"](hub_context(1), Frame(head, {"nodes": nodes})).arrays
    for hosts in (2, 5):
        again = OPERATIONS["sample_neighbors"](hub_context(hosts), Frame(head, {"nodes": nodes}))
        assert_equal_sections(again.arrays, first)
    plain = OPERATIONS["sample_neighbors"](
        request_context(hub_graph()), Frame(head, {"nodes": nodes})
    ).arrays
    src, dst = _hub_pairs()
    excluded = set(zip(src.tolist(), dst.tolist(), strict=True))
    pairs = set(zip(np.repeat(nodes, 8).tolist(), first["ids"].reshape(-1).tolist(), strict=True))
    assert not pairs & excluded
    others = ~np.isin(nodes, src)
    np.testing.assert_array_equal(first["ids"][others], plain["ids"][others])
    assert (first["ids"][:60] >= 0).all()
    # The accepted draws of the hub are those of the whole graph.
    leaks = np.isin(plain["ids"][:60], dst[:50])
    assert leaks.any()
    for row in range(60):
        kept = plain["ids"][row][~leaks[row]]
        np.testing.assert_array_equal(first["ids"][row][: kept.size], kept)


@pytest.mark.parametrize("replace_draws", [True, False])
@pytest.mark.parametrize("uniform", [True, False])
def test_subgraphs_of_hubs_reject_excluded_edges(replace_draws: bool, uniform: bool) -> None:
    head = graphd_pb.SampleSubgraphRequest(
        fanouts=[_fanout(0, 30, 5)],
        node_type=0,
        replace=replace_draws,
        uniform=uniform,
        seed=5,
        want_edge_ids=True,
        want_weights=True,
        disjoint=True,
    )
    nodes = np.r_[np.zeros(9, np.int64), np.arange(40)]
    first = OPERATIONS["sample_subgraph"](hub_context(1), Frame(head, {"nodes": nodes})).arrays
    for hosts in (2, 5):
        again = OPERATIONS["sample_subgraph"](hub_context(hosts), Frame(head, {"nodes": nodes}))
        assert_equal_sections(again.arrays, first)
    ids, rows, cols = first["nodes.0"], first["rows.0"], first["cols.0"]
    src, dst = _hub_pairs()
    excluded = set(zip(src.tolist(), dst.tolist(), strict=True))
    assert not set(zip(ids[rows].tolist(), ids[cols].tolist(), strict=True)) & excluded
    sources, targets = _stored_edges()
    np.testing.assert_array_equal(sources[first["eids.0"]], ids[rows])
    np.testing.assert_array_equal(targets[first["eids.0"]], ids[cols])
    # Every tree of the hub has 30 neighbors of it.
    assert (np.bincount(rows[np.isin(rows, first["seeds"][:9])])[first["seeds"][:9]] == 30).all()


@pytest.mark.parametrize("uniform", [True, False])
def test_walks_from_hubs_reject_excluded_edges(uniform: bool) -> None:
    nodes = np.r_[np.zeros(1500, np.int64), np.arange(HUB_NODES)]
    head = graphd_pb.RandomWalkRequest(
        steps=[storaged_pb.Step(edge_types=[0])],
        length=3,
        node_type=0,
        uniform=uniform,
        seed=5,
        restart=0.2,
    )
    first = OPERATIONS["random_walk"](hub_context(1), Frame(head, {"nodes": nodes})).arrays
    for hosts in (2, 5):
        again = OPERATIONS["random_walk"](hub_context(hosts), Frame(head, {"nodes": nodes}))
        assert_equal_sections(again.arrays, first)
    src, dst = _hub_pairs()
    excluded = set(zip(src.tolist(), dst.tolist(), strict=True))
    walks, types = first["nodes"], first["types"]
    taken = types >= 0
    pairs = zip(walks[:, :-1][taken].tolist(), walks[:, 1:][taken].tolist(), strict=True)
    assert not set(pairs) & excluded
    sources, targets = _stored_edges()
    weights = np.exp(_generator_after_edges().normal(size=sources.size)).astype(np.float32)
    remaining = (sources == 0) & ~np.isin(targets, dst[:50])
    expected = np.bincount(
        targets[remaining], None if uniform else weights[remaining], minlength=HUB_NODES
    )
    steps = walks[:1500, 1][types[:1500, 0] >= 0]
    checks.require_counts(
        np.bincount(steps, minlength=HUB_NODES),
        expected / expected.sum() * steps.size,
        "first steps",
    )


def test_fewer_draws_of_a_hub_are_the_first_of_more() -> None:
    nodes = np.zeros(40, np.int64)
    few, many = (
        OPERATIONS["sample_neighbors"](
            hub_context(1),
            Frame(
                graphd_pb.SampleNeighborsRequest(
                    edge_types=[0], node_type=0, count=count, replace=True, seed=5
                ),
                {"nodes": nodes},
            ),
        ).arrays["ids"]
        for count in (3, 60)
    )
    np.testing.assert_array_equal(few, many[:, :3])
