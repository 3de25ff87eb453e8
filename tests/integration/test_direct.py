"""Clients that ask storageds themselves: the same answers, whatever comes and goes meanwhile."""

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
from tests.kit.forking import check_forks
from tests.kit.frozen import frozen
from tests.kit.waiting import HANG_S, wait_until

import asterism
import asterism.aio
from asterism import Graph
from standalone.app import Standalone


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


def reached(graph: Graph) -> None:
    """Until storageds have answered: not of a version that is new to the graphd which tells routes, nor before connections are made."""
    wait_until(lambda: edges(graph).size and graph.client.traffic.direct, "storageds are asked directly")


def test_samples_do_not_pass_a_graphd_and_everything_else_does(cluster: LocalCluster, graph: Graph) -> None:
    through = cluster.client().graph("cases")
    reached(graph)
    before = graph.client.traffic
    for seed in range(10):
        assert np.array_equal(graph.sample_nodes(100, seed=seed).nodes, through.sample_nodes(100, seed=seed).nodes)
    traffic = graph.client.traffic
    assert traffic.direct == before.direct + 10
    statement = "SAMPLE 3 VERTICES ON person YIELD id SEED 5"
    assert graph.query(statement).rows() == through.query(statement).rows()
    assert graph.client.traffic.direct == traffic.direct


def test_samples_go_on_while_no_graphd_is_there(cluster: LocalCluster, graph: Graph) -> None:
    expected = edges(graph)
    for name in ("graphd-0", "graphd-1"):
        cluster.kill(name)
    try:
        until = time.monotonic() + 3  # beyond the age at which routes are looked for
        while time.monotonic() < until:
            assert np.array_equal(edges(graph), expected)
    finally:
        for name in ("graphd-0", "graphd-1"):
            cluster.daemons[name].start()
        cluster.wait_ready()


def test_whoever_builds_sees_what_was_built_at_once_and_others_soon(cluster: LocalCluster, graph: Graph) -> None:
    other = cluster.client(direct=True).graph("cases")
    seen = [other.sample_nodes(1).version]
    built = graph.build().version
    assert graph.sample_nodes(1).version == built > seen[0]
    until = time.monotonic() + HANG_S
    while seen[-1] < built and time.monotonic() < until:
        seen.append(other.sample_nodes(1).version)
    assert seen[-1] == built
    assert seen == sorted(seen)


def test_spaces_that_others_make_and_drop_are_seen(cluster: LocalCluster, graph: Graph) -> None:
    edges(graph)
    maker, direct = cluster.client(), graph.client

    def seen(nodes: int) -> bool:
        try:
            drawn = direct.graph("fleeting").sample_nodes(nodes, replace=False, seed=1)
        except (asterism.NotFound, asterism.InvalidRequest):  # of the space of that name before
            return False
        assert sorted(drawn.nodes.tolist()) == list(range(nodes))
        return True

    for nodes in (5, 7):
        maker.create_space("fleeting", {"nodes": {"n": {}}, "parts": 2})
        made = maker.graph("fleeting")
        made.upsert_nodes(np.arange(nodes), "n")
        made.build()
        wait_until(lambda nodes=nodes: seen(nodes), "the direct client knows the space that was made")  # type: ignore[misc]
        maker.drop_space("fleeting")

    def refused() -> bool:
        try:
            direct.graph("fleeting").sample_nodes(1)
        except asterism.NotFound as error:
            return "fleeting" in str(error)
        return False

    wait_until(refused, "storageds and routes know that the space is dropped")


@pytest.mark.parametrize("version", [77, 0])
def test_a_version_that_is_none_is_refused_in_the_same_words(cluster: LocalCluster, graph: Graph, version: int) -> None:
    words = []
    for asked in (graph, cluster.client().graph("cases")):
        with pytest.raises(asterism.AsterismError) as raised:
            asked.sample_nodes(1, version=version)
        words.append((type(raised.value), str(raised.value)))
    assert words[0] == words[1]


def test_what_is_wrong_with_a_request_is_said_in_the_same_words(cluster: LocalCluster, graph: Graph) -> None:
    words = []
    for asked in (graph, cluster.client().graph("cases")):
        with pytest.raises(asterism.AsterismError) as raised:
            asked.sample_nodes(1 << 40)
        words.append((type(raised.value), str(raised.value)))
    assert words[0] == words[1]


def test_a_storaged_that_dies_is_told_of_and_asked_again_later(cluster: LocalCluster, graph: Graph) -> None:
    expected = edges(graph)
    cluster.kill("storaged-1")
    with asterism.connect(cluster.addresses, timeout_s=2.0, direct=True) as client, pytest.raises(asterism.Unavailable, match="storaged"):
        edges(client.graph("cases"))
    with pytest.raises(asterism.Unavailable, match="storaged"):
        graph.sample_edges(200, seed=9)
    cluster.restart("storaged-1")
    assert np.array_equal(edges(graph), expected)
    before, until = graph.client.traffic.direct, time.monotonic() + HANG_S
    while graph.client.traffic.direct == before and time.monotonic() < until:
        assert np.array_equal(edges(graph), expected)
        time.sleep(0.1)
    assert graph.client.traffic.direct > before


def test_a_call_ends_at_its_deadline_while_a_storaged_says_nothing(cluster: LocalCluster) -> None:
    with asterism.connect(cluster.addresses, timeout_s=2.0, direct=True) as client:
        graph = client.graph("cases")
        expected = edges(graph)
        with frozen(cluster["storaged-2"].pid), pytest.raises(asterism.Unavailable):
            edges(graph)
        until = time.monotonic() + HANG_S
        while True:
            try:
                assert np.array_equal(edges(graph), expected)
                break
            except asterism.Unavailable:
                assert time.monotonic() < until


def test_storageds_that_are_not_reached_are_left_to_whoever_does(tmp_path: Path) -> None:
    service = Standalone(tmp_path / "served")
    service.start()
    try:
        doors = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        with asterism.connect(doors.address, direct=True) as client, asterism.connect(doors.address) as through:
            graph = cases.load(client, "cases")
            assert np.array_equal(edges(graph), edges(through.graph("cases")))
            assert client.traffic.direct == 0
    finally:
        service.stop()


def test_writes_and_builds_go_through(cluster: LocalCluster) -> None:
    with cluster.client(direct=True) as client:
        client.create_space("written", {"nodes": {"n": {}}, "edges": {"n:to:n": {}}, "parts": 3})
        graph = client.graph("written")
        graph.upsert_nodes([1, 2, 3], "n")
        graph.upsert_edges([1, 2], [2, 3], "to")
        graph.build()
        assert graph.neighbors([1, 2, 3], "to").nodes.tolist() == [2, 3]
        client.drop_space("written")


def draw(graph: Graph, answer: Connection) -> None:
    reached(graph)
    before = graph.client.traffic.direct
    answer.send((edges(graph), graph.client.traffic.direct - before))
    answer.close()


@pytest.mark.parametrize("begun", ["spawn", "forkserver"])
def test_a_graph_goes_to_a_process_that_is_begun_anew_and_asks_storageds_there(graph: Graph, begun: str) -> None:
    context = multiprocessing.get_context(begun)
    here, there = context.Pipe()
    expected = edges(graph)
    worker = context.Process(target=draw, args=(graph, there))
    worker.start()
    there.close()
    assert here.poll(HANG_S), "the worker gave no answer"
    found, direct = here.recv()
    assert np.array_equal(found, expected)
    assert direct == 1
    worker.join(HANG_S)
    assert worker.exitcode == 0


@pytest.mark.parametrize("threads", [0, 4])
def test_a_client_that_is_in_use_crosses_a_fork_with_and_without_threads_that_call(cluster: LocalCluster, threads: int) -> None:
    check_forks(cluster.addresses, threads, direct=True, pause_s=0.4)  # some forks happen while routes are looked for


def test_an_event_loop_asks_storageds_from_threads(cluster: LocalCluster, graph: Graph) -> None:
    async def draws() -> list[np.ndarray]:
        async with asterism.aio.connect(cluster.addresses, space="cases", direct=True) as held:
            while not held.client.traffic.direct:
                await held.sample_edges(200, seed=8)
            before = held.client.traffic.direct
            found = await asyncio.gather(*(held.sample_edges(200, seed=8) for _ in range(20)))
            assert held.client.traffic.direct == before + 20
            assert cluster["graphd-0"].address in repr(held.client)
            return [sample.edge_ids for sample in found]

    expected = edges(graph)
    assert all(np.array_equal(found, expected) for found in asyncio.run(draws()))


def test_a_trainer_without_the_services_is_told_what_to_install() -> None:
    program = "import sys, asterism; sys.modules['numba'] = None; asterism.connect('localhost:9669', direct=True)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S)
    assert ended.returncode == 1
    assert "pip install 'asterism[services]'" in ended.stderr.splitlines()[-1]


def test_a_closed_client_says_so_and_may_be_closed_again(cluster: LocalCluster) -> None:
    client = asterism.connect(cluster.addresses, direct=True)
    graph = client.graph("cases")
    edges(graph)
    client.close()
    with pytest.raises(asterism.Unavailable, match="closed"):
        edges(graph)
    client.close()


def test_a_service_that_is_not_there_is_unavailable_and_its_address_named() -> None:
    with (
        asterism.connect("127.0.0.1:1", timeout_s=1, direct=True) as client,
        pytest.raises(asterism.Unavailable, match=r"127.0.0.1:1: .*is it running"),
    ):
        client.spaces()


def test_direct_clients_have_the_limits_of_graphds() -> None:
    """graphd gives them with its routes: a storaged would answer."""
    with LocalCluster(storageds=1, graphds=1, flags={"graphd": ["--request-rows-limit", "100"]}) as cluster:
        cases.load(cluster.client(), "cases")
        with cluster.client(direct=True) as client:
            graph = client.graph("cases")
            wait_until(lambda: graph.sample_nodes(100, seed=8).nodes.size and client.traffic.direct, "storageds are asked directly")
            before = client.traffic.direct
            with pytest.raises(asterism.InvalidRequest, match="at most 100 rows per request"):
                graph.sample_nodes(101, seed=8)
            assert graph.sample_nodes(100, seed=9).nodes.size == 100
            assert client.traffic.direct > before
