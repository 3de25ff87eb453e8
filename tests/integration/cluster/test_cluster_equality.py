"""Equal content, requests and seeds give equal bytes on any number of hosts."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.kit import cases, joint_cases
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_standalone.app import Standalone


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Return a graph in the session that has built it."""
    with asterism.open(tmp_path_factory.mktemp("embedded")) as client:
        yield cases.load(client, "cases")


@pytest.fixture(scope="module")
def joint(embedded: Graph) -> Graph:
    return joint_cases.load(embedded.client, "joint")


@pytest.fixture(scope="module")
def expected(embedded: Graph) -> dict[str, str]:
    return cases.call_digests(embedded)


@pytest.fixture(scope="module")
def expected_of_joint(joint: Graph) -> dict[str, str]:
    return joint_cases.call_digests(joint)


@pytest.mark.parametrize(
    "storageds",
    [
        1,
        pytest.param(2, marks=pytest.mark.slow),
        3,
        pytest.param(5, marks=pytest.mark.slow),
        8,
    ],
)
def test_every_call_gives_the_same_bytes_on_n_storageds(
    storageds: int, expected: dict[str, str], expected_of_joint: dict[str, str]
) -> None:
    with LocalCluster(storageds, graphds=2, fast=False) as cluster:
        client = cluster.client()
        results = cases.call_digests(cases.load(client, "cases"))
        joint_results = joint_cases.call_digests(joint_cases.load(client, "joint"))
        assert len({host for part in client.describe("cases").hosts for host in part}) == storageds
        direct = cluster.client(direct=True)
        direct_results = cases.call_digests(direct.graph("cases"))
        direct_joint_results = joint_cases.call_digests(direct.graph("joint"))
        assert (
            direct.traffic.direct > 0.9 * direct.traffic.calls
        )  # graphds serve the calls to the catalog, and statements
        assert "has no binary RPC endpoint" not in cluster["graphd-0"].log.read_text()
    assert {name for name in expected if results[name] != expected[name]} == set()
    assert {
        name for name in expected_of_joint if joint_results[name] != expected_of_joint[name]
    } == set()
    assert (direct_results, direct_joint_results) == (results, joint_results)


class _RecordingGraph:
    """A graph that records which of its methods are called."""

    def __init__(self, graph: Graph, methods: set[str]) -> None:
        self._graph, self._methods = graph, methods

    def __getattr__(self, name: str) -> Any:
        self._methods.add(name)
        return getattr(self._graph, name)


EXCLUDED_METHODS = {
    *(
        "upsert_nodes",
        "upsert_edges",
        "delete_nodes",
        "delete_edges",
        "build",
        "find_nodes",
    ),  # they write, or read unpublished data
    *("at", "pin", "close", "client", "schema"),  # they select the target of calls
    "explain",  # reports which host does what
    "manifest",  # reports the job that built the version, and its time
    *("node_ids", "node_names"),  # for spaces with string ids: see `test_string_ids`
}


def test_the_cases_cover_every_reading_call(embedded: Graph, joint: Graph) -> None:
    called: set[str] = set()
    for name, call in cases.calls(cast(Graph, _RecordingGraph(embedded, called))).items():
        assert call() is not None, name
    assert {
        name for name in dir(Graph) if not name.startswith("_")
    } - EXCLUDED_METHODS == called - EXCLUDED_METHODS
    called_on_joint: set[str] = set()
    for name, call in joint_cases.calls(
        cast(Graph, _RecordingGraph(joint, called_on_joint))
    ).items():
        assert call() is not None, name
    assert {name for name in called if name.startswith("sample_")} - called_on_joint == {
        "sample_nodes",
        "sample_edges",
    }  # these two look up no node types


def test_equal_seeds_give_equal_bytes_and_other_seeds_others(
    embedded: Graph, expected: dict[str, str]
) -> None:
    assert cases.call_digests(embedded) == expected
    assert not np.array_equal(
        embedded.sample_edges(50, seed=1).edge_ids, embedded.sample_edges(50, seed=2).edge_ids
    )
    fresh = embedded.sample_nodes(50)
    assert np.array_equal(embedded.sample_nodes(50, seed=fresh.seed).nodes, fresh.nodes)


@pytest.mark.parametrize("kind", ["nodes", "edges"])
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_smaller_request_gives_the_first_draws_of_a_larger(
    embedded: Graph, kind: str, replace: bool, weighted: bool
) -> None:
    def draw(n: int) -> np.ndarray:
        if kind == "nodes":
            return embedded.sample_nodes(
                n, "person", replace=replace, weighted=weighted, seed=5
            ).nodes
        return embedded.sample_edges(
            n, "writes", replace=replace, weighted=weighted, seed=5
        ).edge_ids

    all_draws = draw(390)
    for n in (0, 1, 2, 17, 200):
        assert np.array_equal(draw(n), all_draws[:n])
    if not replace:
        assert len(np.unique(all_draws)) == 390


def test_results_match_the_graph_that_was_written(embedded: Graph) -> None:
    people = cases.person_ids()
    src, dst, weights = cases.edges()["writes"]
    sample = embedded.sample_edges(300, "writes", seed=3)
    assert np.array_equal(src[sample.edge_ids], sample.src)
    assert np.array_equal(weights[sample.edge_ids], sample.weights)
    neighbors = embedded.sample_neighbors(people[:50], "writes", 8, edge_ids=True, seed=3)
    assert neighbors.edge_ids is not None
    assert neighbors.weights is not None
    valid = neighbors.mask
    assert np.array_equal(dst[neighbors.edge_ids[valid]], neighbors.nodes[valid])
    assert np.array_equal(
        src[neighbors.edge_ids[valid]], np.repeat(people[:50], 8).reshape(50, 8)[valid]
    )
    assert (neighbors.weights[valid] > 0).all()
    reverse = embedded.neighbors(np.arange(cases.PAPERS), "writes", direction="in", sort="id")
    order = np.lexsort((np.arange(len(src)), src, dst))
    assert np.array_equal(reverse.nodes, src[order])
    assert np.array_equal(reverse.edge_ids, order)
    features = embedded.node_features([people[7], 4, people[0]], ["name", "age"], "person")
    assert [bytes(row) for row in cases.rows_of(features["name"])] == [
        b"person 7",
        b"",
        b"person 0",
    ]
    assert cases.rows_of(features["age"]) == [7, 0, 0]
    scanned = np.concatenate([batch.ids for batch in embedded.scan_nodes("person", rows=7)])
    assert sorted(scanned.tolist()) == sorted(people.tolist())


def test_a_second_writer_of_an_open_folder_is_refused(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "one"), pytest.raises(asterism.Conflict, match="open"):
        asterism.open(tmp_path / "one")


def test_a_reopened_folder_gives_the_same_bytes(tmp_path: Path, expected: dict[str, str]) -> None:
    with asterism.open(cases.copy_built_graph(tmp_path / "again")) as client:
        assert cases.call_digests(client.graph("cases")) == expected


def test_a_standalone_serves_the_same_bytes_over_the_network(tmp_path: Path) -> None:
    service = Standalone(tmp_path / "served")
    service.start()
    try:
        endpoints = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        with urllib.request.urlopen(
            f"http://{endpoints.http_address}/readyz", timeout=HANG_S
        ) as reply:
            assert reply.status == 200
        with urllib.request.urlopen(
            f"http://{endpoints.http_address}/api/v1/spaces", timeout=HANG_S
        ) as reply:
            assert reply.status == 200
        with asterism.connect(endpoints.address, timeout_s=HANG_S) as client:
            remote_answers = cases.call_digests(cases.load(client, "cases"))
        with asterism.Client(LocalTransport(service.handlers)) as local_client:
            assert cases.call_digests(local_client.graph("cases")) == remote_answers
    finally:
        service.stop()
        service.stop()


def test_readers_of_a_folder_being_written_get_the_same_bytes(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    with pytest.raises(asterism.NotFound, match="mode 'w'"):
        asterism.open(tmp_path / "shared", mode="r")
    with (
        asterism.open(cases.copy_built_graph(tmp_path / "shared")) as writer,
        asterism.open(tmp_path / "shared", mode="r") as one,
        asterism.open(tmp_path / "shared", mode="r") as two,
    ):
        assert (
            cases.call_digests(one.graph("cases"))
            == cases.call_digests(two.graph("cases"))
            == expected
        )
        with pytest.raises(asterism.InvalidRequest, match="open for reading"):
            one.graph("cases").upsert_nodes([1], "paper")
        writer.graph("cases").upsert_nodes([1000], "paper")
        assert writer.graph("cases").build().version == 2
        assert one.graph("cases").sample_nodes(1).version == 1
        assert [space.name for space in one.spaces()] == ["cases"]
        assert one.manifest("cases").count("NODE", 1) == cases.PAPERS
    with asterism.open(tmp_path / "shared", mode="r") as later_reader:
        assert [version.version for version in later_reader.versions("cases")] == [2, 1]
        assert later_reader.graph("cases").sample_nodes(1).version == 2
        with pytest.raises(asterism.NotFound, match="version 9"):
            later_reader.graph("cases").sample_nodes(1, version=9)
