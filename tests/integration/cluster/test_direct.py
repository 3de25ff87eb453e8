"""Direct clients, which call storageds, return the same results while daemons come and go."""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cases_clusters import cases_cluster
from tests.kit.cluster import LocalCluster
from tests.kit.forking import assert_forks_draw_correctly
from tests.kit.frozen import stopped_process
from tests.kit.waiting import HANG_S, wait_until

import asterism
import asterism.aio
from asterism import Graph
from asterism_standalone.app import Standalone


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cases_cluster(3, 2) as running:
        yield running


@pytest.fixture
def graph(cluster: LocalCluster) -> Iterator[Graph]:
    with cluster.client(direct=True) as client:
        yield client.graph("cases")


def edges(graph: Graph) -> np.ndarray:
    return graph.sample_edges(200, seed=8).edge_ids


def wait_until_direct(graph: Graph) -> None:
    """Wait until storageds have served a call directly.

    Calls go through graphd at first: connections must be opened, and the graphd that sends routes
    must know a new version.
    """
    wait_until(
        lambda: edges(graph).size and graph.client.traffic.direct, "storageds are asked directly"
    )


def test_only_samples_bypass_graphd(cluster: LocalCluster, graph: Graph) -> None:
    via_graphd = cluster.client().graph("cases")
    wait_until_direct(graph)
    before = graph.client.traffic
    for seed in range(10):
        assert np.array_equal(
            graph.sample_nodes(100, seed=seed).nodes, via_graphd.sample_nodes(100, seed=seed).nodes
        )
    traffic = graph.client.traffic
    assert traffic.direct == before.direct + 10
    statement = "SAMPLE 3 VERTICES ON person YIELD id SEED 5"
    assert graph.query(statement).rows() == via_graphd.query(statement).rows()
    assert graph.client.traffic.direct == traffic.direct


def test_samples_continue_while_every_graphd_is_down(cluster: LocalCluster, graph: Graph) -> None:
    expected = edges(graph)
    for name in ("graphd-0", "graphd-1"):
        cluster.kill(name)
    try:
        deadline = time.monotonic() + 3  # longer than routes are valid without a refresh
        while time.monotonic() < deadline:
            assert np.array_equal(edges(graph), expected)
    finally:
        for name in ("graphd-0", "graphd-1"):
            cluster.daemons[name].start()
        cluster.wait_ready()


def test_the_builder_sees_its_version_at_once_and_others_soon(
    cluster: LocalCluster, graph: Graph
) -> None:
    other = cluster.client(direct=True).graph("cases")
    seen_versions = [other.sample_nodes(1).version]
    version = graph.build().version
    assert graph.sample_nodes(1).version == version > seen_versions[0]

    def sees_version() -> bool:
        seen_versions.append(other.sample_nodes(1).version)
        return seen_versions[-1] >= version

    wait_until(sees_version, f"version {version} is seen", poll_interval_s=0.0)
    assert seen_versions[-1] == version
    assert seen_versions == sorted(seen_versions)


def test_spaces_that_others_create_and_drop_are_seen(cluster: LocalCluster, graph: Graph) -> None:
    edges(graph)
    creator, direct = cluster.client(), graph.client

    def sees_space(nodes: int) -> bool:
        try:
            sample = direct.graph("fleeting").sample_nodes(nodes, replace=False, seed=1)
        except (asterism.NotFound, asterism.InvalidRequest):  # of the earlier space with this name
            return False
        assert sorted(sample.nodes.tolist()) == list(range(nodes))
        return True

    for nodes in (5, 7):
        creator.create_space("fleeting", {"nodes": {"n": {}}, "parts": 2})
        created = creator.graph("fleeting")
        created.upsert_nodes(np.arange(nodes), "n")
        created.build()
        wait_until(
            lambda nodes=nodes: sees_space(nodes), "the direct client knows the space that was made"
        )  # type: ignore[misc]
        creator.drop_space("fleeting")

    def sees_drop() -> bool:
        try:
            direct.graph("fleeting").sample_nodes(1)
        except asterism.NotFound as error:
            return "fleeting" in str(error)
        return False

    wait_until(sees_drop, "storageds and routes know that the space is dropped")


@pytest.mark.parametrize("version", [77, 0])
def test_an_unknown_version_gives_the_same_error_as_graphd(
    cluster: LocalCluster, graph: Graph, version: int
) -> None:
    errors = []
    for target in (graph, cluster.client().graph("cases")):
        with pytest.raises(asterism.AsterismError) as raised:
            target.sample_nodes(1, version=version)
        errors.append((type(raised.value), str(raised.value)))
    assert errors[0] == errors[1]


def test_an_invalid_request_gives_the_same_error_as_graphd(
    cluster: LocalCluster, graph: Graph
) -> None:
    errors = []
    for target in (graph, cluster.client().graph("cases")):
        with pytest.raises(asterism.AsterismError) as raised:
            target.sample_nodes(1 << 40)
        errors.append((type(raised.value), str(raised.value)))
    assert errors[0] == errors[1]


def test_a_dead_storaged_is_reported_and_used_after_its_restart(
    cluster: LocalCluster, graph: Graph
) -> None:
    expected = edges(graph)
    cluster.kill("storaged-1")
    with (
        asterism.connect(cluster.addresses, timeout_s=2.0, direct=True) as client,
        pytest.raises(asterism.Unavailable, match="storaged"),
    ):
        edges(client.graph("cases"))
    with pytest.raises(asterism.Unavailable, match="storaged"):
        graph.sample_edges(200, seed=9)
    cluster.restart("storaged-1")
    assert np.array_equal(edges(graph), expected)
    before = graph.client.traffic.direct

    def is_direct() -> bool:
        assert np.array_equal(edges(graph), expected)
        return graph.client.traffic.direct > before

    wait_until(is_direct, "storageds are asked directly again", poll_interval_s=0.1)


def test_a_call_to_a_frozen_storaged_ends_at_its_deadline(cluster: LocalCluster) -> None:
    with asterism.connect(cluster.addresses, timeout_s=2.0, direct=True) as client:
        graph = client.graph("cases")
        expected = edges(graph)
        with stopped_process(cluster["storaged-2"].pid), pytest.raises(asterism.Unavailable):
            edges(graph)
        wait_until(
            lambda: np.array_equal(edges(graph), expected),
            "the storaged answers again",
            ignored=asterism.Unavailable,
        )


def test_unreachable_storageds_are_reached_through_graphd(tmp_path: Path) -> None:
    service = Standalone(tmp_path / "served")
    service.start()
    try:
        endpoints = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        with (
            asterism.connect(endpoints.address, direct=True, timeout_s=HANG_S) as client,
            asterism.connect(endpoints.address, timeout_s=HANG_S) as via_graphd,
        ):
            graph = cases.load(client, "cases")
            assert np.array_equal(edges(graph), edges(via_graphd.graph("cases")))
            assert client.traffic.direct == 0
    finally:
        service.stop()


def test_writes_and_builds_work_with_a_direct_client(cluster: LocalCluster) -> None:
    with cluster.client(direct=True) as client:
        client.create_space("written", {"nodes": {"n": {}}, "edges": {"n:to:n": {}}, "parts": 3})
        graph = client.graph("written")
        graph.upsert_nodes([1, 2, 3], "n")
        graph.upsert_edges([1, 2], [2, 3], "to")
        graph.build()
        assert graph.neighbors([1, 2, 3], "to").nodes.tolist() == [2, 3]
        client.drop_space("written")


def send_sample(graph: Graph, connection: Connection) -> None:
    wait_until_direct(graph)
    before = graph.client.traffic.direct
    connection.send((edges(graph), graph.client.traffic.direct - before))
    connection.close()


@pytest.mark.parametrize("begun", ["spawn", "forkserver"])
def test_graph_pickles_to_a_new_process_and_samples_directly(graph: Graph, begun: str) -> None:
    context = multiprocessing.get_context(begun)
    receiver, sender = context.Pipe()
    expected = edges(graph)
    worker = context.Process(target=send_sample, args=(graph, sender))
    worker.start()
    sender.close()
    assert receiver.poll(HANG_S), "the worker gave no answer"
    edge_ids, direct = receiver.recv()
    assert np.array_equal(edge_ids, expected)
    assert direct == 1
    worker.join(HANG_S)
    assert worker.exitcode == 0


@pytest.mark.parametrize("threads", [0, 4])
def test_a_client_in_use_survives_forks_with_calling_threads(
    cluster: LocalCluster, threads: int
) -> None:
    assert_forks_draw_correctly(
        cluster.addresses, threads, direct=True, pause_s=0.4
    )  # some forks happen during a refresh of the routes


def test_an_event_loop_calls_storageds_from_threads(cluster: LocalCluster, graph: Graph) -> None:
    async def draws() -> list[np.ndarray]:
        async with asterism.aio.connect(
            cluster.addresses, space="cases", direct=True
        ) as async_graph:
            while not async_graph.client.traffic.direct:
                await async_graph.sample_edges(200, seed=8)
            before = async_graph.client.traffic.direct
            samples = await asyncio.gather(
                *(async_graph.sample_edges(200, seed=8) for _ in range(20))
            )
            assert async_graph.client.traffic.direct == before + 20
            assert cluster["graphd-0"].address in repr(async_graph.client)
            return [sample.edge_ids for sample in samples]

    expected = edges(graph)
    assert all(np.array_equal(found, expected) for found in asyncio.run(draws()))


def test_a_missing_extra_is_named_in_the_error() -> None:
    program = (
        "import sys, asterism; sys.modules['numba'] = None; "
        "asterism.connect('localhost:9669', direct=True)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S
    )
    assert completed.returncode == 1
    assert "pip install 'asterism-graph[server]'" in completed.stderr.splitlines()[-1]


def test_a_closed_client_says_so_and_may_be_closed_again(cluster: LocalCluster) -> None:
    client = asterism.connect(cluster.addresses, direct=True, timeout_s=HANG_S)
    graph = client.graph("cases")
    edges(graph)
    client.close()
    with pytest.raises(asterism.Unavailable, match="closed"):
        edges(graph)
    client.close()


def test_an_unreachable_service_is_unavailable_with_its_address() -> None:
    with (
        asterism.connect("127.0.0.1:1", timeout_s=1, direct=True) as client,
        pytest.raises(
            asterism.Unavailable,
            match=r"graphd at 127.0.0.1:1 \(connection refused\); is it running",
        ),
    ):
        client.spaces()


def test_direct_clients_have_the_limits_of_graphds() -> None:
    """The limits come with graphd's routes; a storaged alone would accept the request."""
    with LocalCluster(
        storageds=1, graphds=1, flags={"graphd": ["--request-rows-limit", "100"]}
    ) as cluster:
        cases.load(cluster.client(), "cases")
        with cluster.client(direct=True) as client:
            graph = client.graph("cases")
            wait_until(
                lambda: graph.sample_nodes(100, seed=8).nodes.size and client.traffic.direct,
                "storageds are asked directly",
            )
            before = client.traffic.direct
            with pytest.raises(asterism.InvalidRequest, match="at most 100 rows per request"):
                graph.sample_nodes(101, seed=8)
            assert graph.sample_nodes(100, seed=9).nodes.size == 100
            assert client.traffic.direct > before
