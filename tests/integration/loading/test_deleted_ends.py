"""Delete and re-create the end nodes of edges while the edges are written.

Both copies of an edge are kept or removed together.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, Graph, Load

SCHEMA = {
    "parts": 5,
    "direction": "both",
    "nodes": {"n": {}, "m": {}},
    "edges": {"n:likes:m": {}, "n:knows:n": {"missing": "create"}},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=3, graphds=2) as running:
        yield running


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("ends")) as client:
        yield client


@pytest.fixture(params=["cluster", "embedded"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    if request.param == "embedded":
        yield request.getfixturevalue("local")
    else:
        with request.getfixturevalue("cluster").client() as connected:
            yield connected


@pytest.fixture
def graph(client: Client, request: pytest.FixtureRequest) -> Graph:
    name = f"s{abs(hash(request.node.name))}"
    client.create_space(name, SCHEMA)
    graph = client.graph(name)
    graph.upsert_nodes(np.arange(8), "n")
    graph.upsert_nodes(np.arange(8), "m")
    return graph


def open_load(client: Client, graph: Graph) -> Load:
    """Open a load with edges from every n to m 6 and m 7, which exist at that time."""
    load = client.begin_load(graph.space)
    load.write_edges(0, "likes", np.tile(np.arange(8), 2), np.repeat([6, 7], 8))
    return load


def edges_in_both_copies(graph: Graph, etype: str = "likes") -> list[tuple[int, int]]:
    """Return the edges of a type; check that both copies agree."""
    src_type, _, dst_type = graph.schema.edge_types[graph.schema.edge_type_id(etype)].name.split(
        ":"
    )
    out = graph.neighbors(np.arange(40), etype, ntype=src_type)
    into = graph.neighbors(np.arange(40), etype, ntype=dst_type, direction="in")
    edges = sorted(
        zip(np.repeat(np.arange(40), np.diff(out.indptr)).tolist(), out.nodes.tolist(), strict=True)
    )
    assert edges == sorted(
        zip(
            into.nodes.tolist(),
            np.repeat(np.arange(40), np.diff(into.indptr)).tolist(),
            strict=True,
        )
    )
    return edges


def test_edges_of_an_open_load_to_a_deleted_node_are_dropped(client: Client, graph: Graph) -> None:
    load = open_load(client, graph)
    graph.delete_nodes([6], "m")
    load.commit()
    assert graph.build().version == 1
    assert edges_in_both_copies(graph) == [(i, 7) for i in range(8)]


def test_edges_to_a_node_recreated_by_a_later_commit_stay(client: Client, graph: Graph) -> None:
    load = open_load(client, graph)
    graph.delete_nodes([6], "m")
    load.commit()
    graph.upsert_nodes([6], "m")
    graph.build()
    assert edges_in_both_copies(graph) == sorted(
        [(i, 6) for i in range(8)] + [(i, 7) for i in range(8)]
    )


def test_a_load_restores_nodes_deleted_before_its_commit(client: Client, graph: Graph) -> None:
    load = client.begin_load(graph.space)
    load.write_nodes(0, "m", [6, 30])
    load.write_edges(1, "likes", [0, 1, 2], [6, 6, 30])
    graph.delete_nodes([6, 30], "m")
    graph.delete_nodes([0], "n")
    load.commit()
    graph.build()
    assert edges_in_both_copies(graph) == [(1, 6), (2, 30)]


def test_a_load_that_recreates_a_node_keeps_only_later_edges(client: Client, graph: Graph) -> None:
    load = client.begin_load(graph.space)
    load.write_edges(0, "likes", [0, 1], [6, 6])
    load.delete_nodes(1, "m", [6, 7])
    load.write_nodes(2, "m", [6])
    load.write_edges(3, "likes", [2], [6])
    load.commit()
    load.commit()
    graph.build()
    assert edges_in_both_copies(graph) == [(2, 6)]


def test_repeated_commits_and_writes_keep_a_recreated_node(client: Client, graph: Graph) -> None:
    graph.delete_nodes([6], "m")
    load = client.begin_load(graph.space)
    load.write_nodes(0, "m", [6])
    assert load.commit() == load.commit()
    graph.upsert_edges([1], [6], "likes")
    graph.upsert_nodes([6], "m")
    graph.build()
    assert edges_in_both_copies(graph) == [(1, 6)]
    graph.delete_nodes([6], "m")
    graph.build()
    assert edges_in_both_copies(graph) == []


def test_concurrent_writes_and_deletes_keep_edge_copies_equal(client: Client, graph: Graph) -> None:
    errors: list[BaseException] = []

    def run(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(12):
                load = client.begin_load(graph.space)
                for chunk in range(3):
                    ids = rng.integers(0, 10, 4)
                    step = rng.integers(0, 4)
                    if step == 0:
                        load.delete_nodes(chunk, "n", ids[:1])
                    elif step == 1:
                        load.write_nodes(chunk, "n", ids)
                    else:
                        load.write_edges(chunk, "knows", ids, rng.integers(0, 10, 4))
                load.commit()
        except BaseException as error:  # the test reports any failure
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    versions = [graph.build().version]
    for thread in threads:
        thread.join(HANG_S)
    assert not errors
    versions.append(graph.build().version)
    assert versions == sorted(versions)
    edges_in_both_copies(graph, "knows")
