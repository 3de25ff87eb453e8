"""Graph labels: graphs that span partitions and types, sampled uniformly and looked up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.bodies import assert_follows_weights
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Client, Graph

SCHEMA: dict[str, Any] = {
    "parts": 5,
    "placement": "mix64",
    "nodes": {
        "atom": {"features": {"of": "bytes", "charge": "int64"}, "graph_label": "of"},
        "ring": {"features": {"in": "bytes"}, "graph_label": "in"},
        "solvent": {},
    },
    "edges": {"atom:bond:atom": {}},
}
GRAPHS = 60


def molecules() -> dict[bytes, tuple[list[int], list[int]]]:
    """Return the atoms and rings of each molecule.

    Label i has i + 1 atoms, and every third label a ring. The longest labels share a prefix.
    """
    members, atom = {}, 0
    for i in range(GRAPHS):
        label = b"benzene and a long tail " * (i % 3) + str(i).encode()
        members[label] = (list(range(atom, atom + i + 1)), [1000 + i] if i % 3 == 0 else [])
        atom += i + 1
    members[b"alone"] = ([], [77])
    return members


def load(client: Client) -> Graph:
    """Load the molecules, and atoms that belong to no molecule."""
    client.create_space("molecules", SCHEMA)
    graph = client.graph("molecules")
    for label, (atoms, rings) in molecules().items():
        graph.upsert_nodes(atoms, "atom", features={"of": [label] * len(atoms)})
        graph.upsert_nodes(rings, "ring", features={"in": [label] * len(rings)})
    graph.upsert_nodes([100_000, 100_001], "atom")
    graph.build()
    return graph


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("labels")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    return load(client)


def test_graph_labels_are_sampled_uniformly(graph: Graph) -> None:
    labels = sorted(molecules())
    sample = graph.sample_graph_labels(20_000, seed=1)
    assert_follows_weights(
        np.array([labels.index(label) for label in sample.labels]), np.ones(len(labels))
    )
    assert graph.sample_graph_labels(7, seed=1).labels == sample.labels[:7]
    assert graph.sample_graph_labels(0).labels == ()
    assert graph.replay(graph.sample_graph_labels(9).token).labels


def test_graph_nodes_come_from_all_parts_and_types(graph: Graph) -> None:
    expected = molecules()
    labels = [*expected, b"no such", b"", next(iter(expected))]
    result = graph.graph_nodes(labels)
    assert len(result) == len(labels)
    for row, label in enumerate(labels):
        atoms, rings = expected.get(label, ([], []))
        assert result[row].tolist() == [*atoms, *rings]
        types = result.types[result.indptr[row] : result.indptr[row + 1]]
        assert types.tolist() == [0] * len(atoms) + [1] * len(rings)
    assert graph.graph_nodes(["alone"])[0].tolist() == [77]
    assert len(graph.graph_nodes([])) == 0


def test_deleted_or_rewritten_nodes_follow_their_latest_label(client: Client) -> None:
    client.create_space("moving", SCHEMA)
    graph = client.graph("moving")
    graph.upsert_nodes([1, 2, 3, 4], "atom", features={"of": ["a", "a", "b", "c"]})
    assert graph.build().version == 1
    graph.upsert_nodes([2], "atom", features={"of": ["b"]})
    graph.delete_nodes([4], "atom")
    graph.upsert_nodes([5], "atom", features={"of": ["new"]})
    assert graph.build().version == 2
    assert [graph.graph_nodes(["a", "b", "c", "new"])[row].tolist() for row in range(4)] == [
        [1],
        [2, 3],
        [],
        [5],
    ]
    assert set(graph.sample_graph_labels(200, seed=2).labels) == {b"a", b"b", b"new"}
    assert set(graph.sample_graph_labels(200, seed=2, version=1).labels) == {b"a", b"b", b"c"}
    assert graph.graph_nodes(["c"], version=1)[0].tolist() == [4]


def test_any_number_of_hosts_gives_the_same(graph: Graph) -> None:
    expected = graph.sample_graph_labels(500, seed=3).labels
    with LocalCluster(3) as cluster:
        other = load(cluster.client())
        assert other.sample_graph_labels(500, seed=3).labels == expected
        assert cases.digest(other.graph_nodes(expected)) == cases.digest(
            graph.graph_nodes(expected)
        )


def test_missing_or_invalid_graph_labels_are_refused(client: Client) -> None:
    client.create_space("plain", {"nodes": {"n": {}}})
    plain = client.graph("plain")
    plain.upsert_nodes([1], "n")
    plain.build()
    with pytest.raises(asterism.InvalidRequest, match="declares a graph_label"):
        plain.sample_graph_labels(1)
    with pytest.raises(asterism.InvalidRequest, match="declares a graph_label"):
        plain.graph_nodes(["a"])
    client.create_space("unlabelled", SCHEMA)
    unlabelled = client.graph("unlabelled")
    unlabelled.upsert_nodes([1], "atom")
    unlabelled.build()
    with pytest.raises(asterism.NotFound, match="no node with a graph label"):
        unlabelled.sample_graph_labels(1)
    assert unlabelled.graph_nodes(["a"])[0].tolist() == []
    with pytest.raises(
        asterism.InvalidRequest, match="'charge': expected a feature of kind bytes, found dense"
    ):
        client.create_space(
            "wrong", {"nodes": {"n": {"features": {"charge": "int64"}, "graph_label": "charge"}}}
        )
    with pytest.raises(asterism.NotFound, match="'missing'"):
        client.create_space("wrong", {"nodes": {"n": {"graph_label": "missing"}}})
    with pytest.raises(asterism.InvalidRequest, match="expected a list"):
        plain.graph_nodes("a")
