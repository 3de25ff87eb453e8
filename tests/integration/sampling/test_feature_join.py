"""Features returned with a sample equal separately requested ones, byte for byte.

They take no additional request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from tests.kit import cases

import asterism
from asterism import Graph
from asterism.records.samples import NodeFeatures

FEATURES = {"person": ["age", "name", "weight"], "paper": ["vec", "words"]}
ALL_FEATURES = ["age", "name", "weight", "vec", "words"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("along"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


def assert_features_match(
    graph: Graph,
    features: NodeFeatures | None,
    nodes: np.ndarray,
    types: Mapping[str, np.ndarray],
    names: Mapping[str, list[str]],
) -> None:
    """Assert that joined features equal those of `node_features`.

    ``types`` holds, for each possible type, a mask of the nodes of that type.
    """
    assert features is not None
    assert set(features) == set(types) & set(names)
    for name, columns in features.items():
        expected = graph.node_features(np.where(types[name], nodes, -1), names[name], name)
        assert list(columns) == names[name]
        assert cases.digest(columns) == cases.digest(expected)


def type_masks(graph: Graph, hop: Any, names: list[str]) -> dict[str, np.ndarray]:
    """Return a mask of a hop's nodes for each type that these edge types lead to."""
    dst_types = np.array(
        [graph.schema.node_type_id(edge.dst_type) for edge in graph.schema.edge_types] + [-1]
    )[hop.types]
    return {name: dst_types == graph.schema.node_type_id(name) for name in names}


def test_fanout_returns_features_of_seeds_and_every_hop(graph: Graph) -> None:
    people = np.concatenate([cases.person_ids()[:30], [-1, 12], cases.person_ids()[:5]])
    plain = graph.sample_fanout(people, ["writes", ["cites", "by"], None], [3, 2, 2], seed=4)
    sample = graph.sample_fanout(
        people, ["writes", ["cites", "by"], None], [3, 2, 2], node_features=FEATURES, seed=4
    )
    assert_features_match(
        graph, sample.features, people, {"person": np.ones(len(people), bool)}, FEATURES
    )
    for hop, same, names in zip(
        sample.hops, plain.hops, (["paper"], ["paper", "person"], ["paper", "person"]), strict=True
    ):
        assert np.array_equal(hop.nodes, same.nodes)
        assert same.features is None
        assert_features_match(
            graph, hop.features, hop.nodes, type_masks(graph, hop, names), FEATURES
        )
    vec = sample.hops[0].features["paper"]["vec"]  # type: ignore[index]  # requested
    assert isinstance(vec, np.ndarray)
    valid = sample.hops[0].nodes >= 0
    assert np.array_equal(vec[valid, 0], sample.hops[0].nodes[valid] * 3)


def test_feature_list_selects_the_features_each_type_has(graph: Graph) -> None:
    listed = graph.sample_fanout(
        [3, 40], [["cites", "by"]], [4], node_features=ALL_FEATURES, seed=4
    )
    weights = {"person": ["age", "name", "weight"], "paper": ["weight", "vec", "words"]}
    assert_features_match(
        graph, listed.features, np.array([3, 40]), {"paper": np.ones(2, bool)}, weights
    )
    assert_features_match(
        graph,
        listed.hops[0].features,
        listed.hops[0].nodes,
        type_masks(graph, listed.hops[0], ["paper", "person"]),
        weights,
    )


def test_mixed_starts_have_the_features_of_their_own_types(graph: Graph) -> None:
    person = int(cases.person_ids()[0])
    nodes, types = np.array([3, person, 3, -1]), np.array([1, 0, 0, -1])
    sample = graph.sample_fanout(nodes, [None], [2], ntype=types, node_features=FEATURES, seed=4)
    assert_features_match(
        graph, sample.features, nodes, {"person": types == 0, "paper": types == 1}, FEATURES
    )


@pytest.mark.parametrize("disjoint", [True, False])
def test_subgraph_returns_a_feature_row_for_each_node(graph: Graph, disjoint: bool) -> None:
    sample = graph.sample_subgraph(
        np.arange(0, 60, 3),
        [3, 2],
        ntype="paper",
        disjoint=disjoint,
        node_features=FEATURES,
        seed=4,
    )
    assert sample.features is not None
    assert set(sample.features) == {"person", "paper"}
    for name, nodes in sample.nodes.items():
        assert len(nodes) > 20
        assert cases.digest(sample.features[name]) == cases.digest(
            graph.node_features(nodes, FEATURES[name], name)
        )
    assert graph.sample_subgraph([3], [2], ["cites"], seed=4).features is None


def test_ids_of_a_global_space_find_their_types_features(client: asterism.Client) -> None:
    schema = {
        "ids": "global",
        "nodes": {"a": {"features": {"x": "int64"}}, "b": {"features": {"y": "float32"}}},
        "edges": {"a:to:b": {}, "b:to:a": {}},
    }
    client.create_space("global", schema)
    graph = client.graph("global")
    graph.upsert_nodes(np.arange(10), "a", features={"x": np.arange(10) * 7})
    graph.upsert_nodes(np.arange(10, 20), "b", features={"y": np.arange(10) / 4})
    graph.upsert_edges(np.arange(10), np.arange(10, 20), "a:to:b")
    graph.upsert_edges(np.arange(10, 20), np.arange(10), "b:to:a")
    graph.build()
    sample = graph.sample_fanout(
        [4, 15, 99], [None, None], [1, 1], node_features=["x", "y"], seed=1
    )
    assert sample.features is not None
    assert np.asarray(sample.features["a"]["x"]).tolist() == [28, 0, 0]
    assert np.asarray(sample.features["b"]["y"]).tolist() == [0, 1.25, 0]
    hop = sample.hops[0]
    assert hop.nodes.tolist() == [14, 5, -1]
    assert hop.features is not None
    assert np.asarray(hop.features["a"]["x"]).tolist() == [0, 35, 0]
    assert np.asarray(hop.features["b"]["y"]).tolist() == [1, 0, 0]


def test_features_need_no_further_request(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    methods: list[str] = []
    call = graph._session.transport.call
    monkeypatch.setattr(
        graph._session.transport,
        "call",
        lambda method, *rest: (methods.append(method.name), call(method, *rest))[1],
    )
    graph.sample_fanout([1, 2], ["cites"], [3], node_features=["vec"])
    graph.sample_subgraph([1, 2], [3], ["cites"], node_features=["vec"])
    assert methods == ["SampleFanout", "SampleSubgraph"]


def test_unknown_features_are_refused(graph: Graph) -> None:
    for features, error, message in (
        (["vec", "size"], asterism.NotFound, "node_features with 'size': expected a feature"),
        ({"paper": ["age"]}, asterism.NotFound, "node type 'paper' has no feature 'age'"),
        ({"book": ["age"]}, asterism.NotFound, "no node type 'book'"),
        ({"paper": ["vec", "vec"]}, asterism.InvalidRequest, "expected each name once"),
        ("vec", asterism.InvalidRequest, "node_features='vec'"),
    ):
        with pytest.raises(error, match=message):
            graph.sample_fanout([1], ["cites"], [3], node_features=features)
        with pytest.raises(error, match=message):
            graph.sample_subgraph([1], [3], ["cites"], node_features=features)
