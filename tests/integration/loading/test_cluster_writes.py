"""Writes are durable at once and visible after the next build; loads resume.

Versions only move forward.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, wait_until

import asterism
from asterism import Client, Graph

SMALL = {
    "parts": 4,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": "float32", "note": "bytes"}}},
    "edges": {
        "n:likes:n": {"weighted": True, "features": {"when": "int64"}},
        "n:knows:n": {"edges": "unique", "weighted": True},
        "n:finds:n": {"missing": "create"},
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, graphds=2) as running:
        yield running


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("writes")) as client:
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
    client.create_space(name, SMALL)
    graph = client.graph(name)
    graph.upsert_nodes(
        np.arange(10),
        "n",
        weights=np.arange(1, 11),
        features={"x": np.arange(10), "note": [f"n{i}" for i in range(10)]},
    )
    graph.upsert_edges(
        [0, 0, 1, 2],
        [1, 2, 2, 0],
        "likes",
        weights=[1, 2, 3, 4],
        features={"when": [10, 20, 30, 40]},
    )
    return graph


def edges_of(graph: Graph, node: int, etype: str = "likes") -> list[tuple[int, float]]:
    neighbors = graph.neighbors([node], etype)
    assert neighbors.weights is not None
    return list(zip(neighbors.nodes.tolist(), neighbors.weights.tolist(), strict=True))


def test_writes_become_visible_with_a_build(graph: Graph) -> None:
    with pytest.raises(asterism.NotReady, match="no published version; submit a build"):
        graph.sample_nodes(1)
    job = graph.build()
    assert (job.state, job.version) == ("FINISHED", 1)
    assert edges_of(graph, 0) == [(1, 1.0), (2, 2.0)]
    assert graph.edge_features([1, 3], "when", "likes")["when"].tolist() == [20, 40]
    assert graph.sample_nodes(3, "n").version == 1


def test_the_next_build_shows_changes_and_keeps_the_old_version(graph: Graph) -> None:
    graph.build()
    graph.upsert_nodes([3, 10], "n", weights=[0.5, 7], features={"x": [33, 100]})
    graph.delete_edges([0], [1], "likes")
    graph.delete_nodes([2], "n")
    graph.upsert_edges([0], [10], "likes", weights=[9])
    assert edges_of(graph, 0) == [(1, 1.0), (2, 2.0)]
    assert graph.build().version == 2
    assert edges_of(graph, 0) == [(10, 9.0)]
    assert edges_of(graph, 2) == edges_of(graph, 1) == []
    assert graph.neighbors([2, 10], "likes", direction="in").nodes.tolist() == [0]
    assert sorted(graph.sample_nodes(10, "n", replace=False).nodes.tolist()) == [
        0,
        1,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
    ]
    assert graph.node_features([3, 10, 2], ["x", "weight"])["x"].tolist() == [33, 100, 0]
    old = graph.neighbors([0], "likes", version=1)
    assert (old.nodes.tolist(), old.version) == ([1, 2], 1)


def test_upserts_replace_unique_edges_and_add_multi_edges(graph: Graph) -> None:
    graph.upsert_edges([0, 1], [5, 5], "knows", weights=[1, 2])
    graph.upsert_edges([0], [5], "knows", weights=[8])
    graph.upsert_edges([0], [1], "likes", weights=[8])
    graph.build()
    assert edges_of(graph, 0, "knows") == [(5, 8.0)]
    assert edges_of(graph, 0) == [(1, 1.0), (1, 8.0), (2, 2.0)]


def test_edge_to_unknown_node_is_refused_or_creates_the_node(graph: Graph) -> None:
    with pytest.raises(asterism.InvalidRequest, match=r"dst\[1\] = 77: there is no 'n' node"):
        graph.upsert_edges([0, 1], [1, 77], "likes")
    graph.upsert_edges([0, 500], [77, 1], "finds")
    assert graph.find_nodes([77, 500, 78, 3], "n").tolist() == [True, True, False, True]
    graph.build()
    assert edges_of(graph, 0, "finds") == [(77, 1.0)]
    assert graph.node_features([77, 3], ["weight", "x"])["weight"].tolist() == [1.0, 4.0]


def test_an_interrupted_load_resumes_where_it_stopped(client: Client, graph: Graph) -> None:
    def write_chunks(load: asterism.Load, stop: int) -> None:
        load.write_nodes(0, "n", np.arange(20, 30), weights=np.ones(10))
        for i in range(1, stop):
            assert load.write_edges(i, "likes", [20], [20 + i], weights=[i]) == 3 + i

    load = client.begin_load(graph.space, source="first", resume_key="key")
    write_chunks(load, 3)
    resumed = client.begin_load(graph.space, source="second", resume_key="key")
    assert resumed.load_id == load.load_id
    # The confirmation of the last chunk travels with the next registration, which never came. The
    # chunk is sent again.
    assert {0, 1} <= resumed.written <= {0, 1, 2}
    with pytest.raises(asterism.Conflict):
        resumed.write_edges(1, "likes", [20], [29], weights=[1])
    write_chunks(resumed, 5)
    assert resumed.written == {0, 1, 2, 3, 4}
    commit = resumed.commit()
    assert commit > 0
    graph.build()
    assert edges_of(graph, 20) == [(21, 1.0), (22, 2.0), (23, 3.0), (24, 4.0)]


def test_rows_of_an_abandoned_load_are_never_visible(client: Client, graph: Graph) -> None:
    load = client.begin_load(graph.space)
    load.write_nodes(0, "n", [900], weights=[1])
    assert load.find_nodes("n", [900, 901]).tolist() == [True, False]
    assert graph.find_nodes([900], "n").tolist() == [False]
    load.abandon()
    graph.build()
    assert graph.find_nodes([900], "n").tolist() == [False]
    assert 900 not in graph.sample_nodes(10, "n", replace=False).nodes


def test_a_chunk_larger_than_a_message_is_written_in_pieces(client: Client) -> None:
    name = f"wide{time.time_ns()}"
    client.create_space(
        name,
        {"parts": 4, "nodes": {"n": {"features": {"v": {"dtype": "float32", "shape": [4096]}}}}},
    )
    rows = 5000  # 82 MB
    values = np.broadcast_to(np.arange(rows, dtype=np.float32)[:, None], (rows, 4096))
    load = client.begin_load(name)
    assert load.write_nodes(0, "n", np.arange(rows), features={"v": values}) == rows
    load.commit()
    graph = client.graph(name)
    graph.build()
    some = np.array([0, 1, 1535, 1536, 4999])
    assert graph.node_features(some, "v")["v"][:, 7].tolist() == some.tolist()
    assert sum(len(batch) for batch in graph.scan_nodes("n", "v")) == rows
    client.drop_space(name)


def test_every_graphd_serves_a_new_version_within_a_second(cluster: LocalCluster) -> None:
    with (
        asterism.connect(cluster["graphd-0"].address, timeout_s=HANG_S) as one,
        asterism.connect(cluster["graphd-1"].address, timeout_s=HANG_S) as two,
    ):
        graph = cases.load(one, "soon")
        job = one.submit_job("soon")
        served: dict[str, float] = {}

        def watch(name: str, client: Client) -> None:
            wait_until(
                lambda: client.graph("soon").sample_nodes(1).version >= 2,
                f"{name} serves version 2",
            )
            served[name] = time.monotonic()

        watchers = [
            threading.Thread(target=watch, args=pair) for pair in (("one", one), ("two", two))
        ]
        for thread in watchers:
            thread.start()
        wait_until(lambda: one.job(job.job_id).state == "FINISHED", "the job has finished")
        published = time.monotonic()
        for thread in watchers:
            thread.join(HANG_S)
        assert max(served.values()) - published < 1.0
        assert graph.sample_nodes(1).version == 2


def test_invalid_requests_are_refused_with_the_value(graph: Graph) -> None:
    graph.build()
    for call, error, message in (
        (
            lambda: graph.sample_nodes(11, replace=False),
            asterism.InvalidRequest,
            "11 different nodes were requested; 10 can be drawn by weight",
        ),
        (
            lambda: graph.sample_edges(1, "finds"),
            asterism.NotFound,
            "nothing to draw from 'n:finds:n'",
        ),
        (
            lambda: graph.sample_nodes(1, version=44),
            asterism.NotFound,
            "version 44 .* is not served; those that are: 1",
        ),
        (
            lambda: graph.sample_nodes(10**9),
            asterism.InvalidRequest,
            "count=1000000000 .* split the request",
        ),
        (lambda: graph.sample_neighbors([0], "hates", 2), asterism.NotFound, "'hates'.*n:likes:n"),
        (
            lambda: graph.node_features([0], "y", "n"),
            asterism.NotFound,
            "no feature 'y'; it has x, note",
        ),
        (lambda: graph.sample_neighbors([0], "likes", -1), asterism.InvalidRequest, "n=-1"),
        (
            lambda: graph.upsert_nodes([1], "n", weights=[-1.0]),
            asterism.InvalidRequest,
            r"weights\[0\]=-1.0",
        ),
        (
            lambda: graph.upsert_nodes([1], "n", features={"x": ["a"]}),
            asterism.InvalidRequest,
            "feature 'x'",
        ),
        (lambda: graph.sample_fanout([0], ["likes"], [2, 3]), asterism.InvalidRequest, r"\[2, 3\]"),
    ):
        with pytest.raises(error, match=message):
            call()  # type: ignore[no-untyped-call]


def test_a_dropped_and_recreated_space_is_empty(client: Client, graph: Graph) -> None:
    graph.build()
    client.drop_space(graph.space)
    with pytest.raises(asterism.NotFound, match=graph.space):
        client.describe(graph.space)
    client.create_space(graph.space, SMALL)
    with pytest.raises(asterism.NotReady):
        client.graph(graph.space).sample_nodes(1)


def test_a_stopped_cluster_leaves_no_process(tmp_path: Path) -> None:
    with LocalCluster(storageds=1, folder=tmp_path) as cluster:
        processes = [daemon.process for daemon in cluster.daemons.values()]
        cluster.kill("storaged-0")
        with asterism.connect(cluster.addresses, timeout_s=5) as client:
            assert client.spaces() == []
    assert all(process is not None and process.returncode is not None for process in processes)


def test_edge_to_a_missing_node_is_refused_and_builds_continue(client: Client) -> None:
    client.create_space(
        "ends", {"parts": 4, "direction": "both", "nodes": {"n": {}}, "edges": {"n:likes:n": {}}}
    )
    graph = client.graph("ends")
    graph.upsert_nodes([1, 2], "n")
    load = client.begin_load("ends", source="test")
    with pytest.raises(asterism.InvalidRequest, match=r"dst\[1\] = 99: there is no 'n' node"):
        load.write_edges(0, "likes", [1, 1], [2, 99])
    load.abandon()
    graph.upsert_edges([1], [2], "likes")
    graph.build()
    assert graph.neighbors([1], "likes").nodes.tolist() == [2]
