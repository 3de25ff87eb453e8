"""Clients of a cluster whose daemons come and go; clients in other processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import numpy as np
import pytest
from tests.kit.cases_clusters import cases_cluster
from tests.kit.cluster import LocalCluster
from tests.kit.forking import check_forks
from tests.kit.frozen import frozen
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cases_cluster(2, 2) as running:
        yield running


@pytest.fixture
def graph(cluster: LocalCluster) -> Iterator[Graph]:
    with cluster.client() as client:
        yield client.graph("cases")


def draw(graph: Graph, answer: Connection) -> None:
    answer.send(graph.sample_edges(50, seed=8).edge_ids)
    answer.close()


@pytest.mark.parametrize("begun", ["spawn", "forkserver"])
def test_a_graph_goes_to_a_process_that_is_begun_anew_and_draws_the_same(graph: Graph, begun: str) -> None:
    context = multiprocessing.get_context(begun)
    here, there = context.Pipe()
    worker = context.Process(target=draw, args=(graph, there))
    worker.start()
    there.close()
    assert here.poll(HANG_S), "the worker gave no answer"
    assert np.array_equal(here.recv(), graph.sample_edges(50, seed=8).edge_ids)
    worker.join(HANG_S)
    assert worker.exitcode == 0


def test_a_client_that_has_not_called_yet_crosses_a_fork(cluster: LocalCluster) -> None:
    # In a process of its own: gRPC is in use in this one, and forking then is another matter.
    program = f"""
import os, asterism
client = asterism.connect({cluster.addresses!r})
children = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if len(client.graph("cases").sample_nodes(5, seed=1)) == 5 else 1)
    children.append(pid)
assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
assert len(client.graph("cases").sample_nodes(5, seed=1)) == 5
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=HANG_S)


@pytest.mark.parametrize("threads", [0, 4])
def test_a_client_that_is_in_use_crosses_a_fork_with_and_without_threads_that_call(cluster: LocalCluster, threads: int) -> None:
    for _ in range(3):
        check_forks(cluster.addresses, threads)


def test_a_graphd_that_is_frozen_costs_a_hedged_client_a_moment_and_changes_no_draw(cluster: LocalCluster, graph: Graph) -> None:
    expected = [graph.sample_edges(50, seed=seed).edge_ids for seed in range(20)]
    with asterism.connect(cluster.addresses, hedge=0.25) as client:
        hedged = client.graph("cases")
        with frozen(cluster["graphd-0"].pid):
            for seed in range(20):
                assert np.array_equal(hedged.sample_edges(50, seed=seed).edge_ids, expected[seed])
                time.sleep(0.15)  # for longer than an address is passed over
        assert client.traffic.hedges_won >= 2
        assert client.traffic.hedges <= 20


def test_a_copied_client_keeps_what_it_has_seen(graph: Graph) -> None:
    version = graph.sample_nodes(1).version
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.sample_nodes(1, seed=4).version == version
    assert copy.schema == graph.schema
    copy.close()


def test_a_graphd_that_dies_is_passed_over_and_used_again_later(cluster: LocalCluster, graph: Graph) -> None:
    expected = graph.sample_edges(50, seed=8).edge_ids
    cluster.kill("graphd-1")
    for _ in range(6):
        assert np.array_equal(graph.sample_edges(50, seed=8).edge_ids, expected)
    cluster.restart("graphd-1")
    cluster.kill("graphd-0")
    until = time.monotonic() + HANG_S
    while True:
        try:
            assert np.array_equal(graph.sample_edges(50, seed=8).edge_ids, expected)
            break
        except asterism.Unavailable:
            assert time.monotonic() < until
    cluster.restart("graphd-0")


def test_a_part_that_nobody_answers_for_fails_the_request_and_names_the_host(cluster: LocalCluster, graph: Graph) -> None:
    expected = graph.sample_edges(500, seed=8).edge_ids
    cluster.kill("storaged-1")
    with asterism.connect(cluster.addresses, timeout_s=2.0) as client, pytest.raises(asterism.Unavailable, match="storaged"):
        client.graph("cases").sample_edges(500, seed=8)
    cluster.restart("storaged-1")
    assert np.array_equal(graph.sample_edges(500, seed=8).edge_ids, expected)


def test_metad_may_restart_under_a_client_and_samples_go_on_meanwhile(cluster: LocalCluster, graph: Graph) -> None:
    cluster.kill("metad")
    assert len(graph.sample_nodes(10, seed=1)) == 10
    cluster.restart("metad")
    assert graph.client.describe("cases").version == graph.sample_nodes(10, seed=1).version
    assert graph.build().version > 1


def test_a_call_ends_at_its_deadline(cluster: LocalCluster) -> None:
    with asterism.connect(cluster["graphd-0"].address, timeout_s=1.5) as client:
        graph = client.graph("cases")
        pids = [cluster[name].pid for name in ("storaged-0", "storaged-1")]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(asterism.Unavailable):
                graph.sample_nodes(100, "person", weighted=False)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


def test_a_closed_client_says_so() -> None:
    client = asterism.connect("127.0.0.1:1", timeout_s=1)
    client.close()
    with pytest.raises(asterism.Unavailable, match="closed"):
        client.spaces()


@pytest.mark.parametrize("addresses", ["", ",", "host:port", "host:0", "host:70000", ":9669"])
def test_addresses_that_are_none_are_refused(addresses: str) -> None:
    with pytest.raises(asterism.InvalidRequest, match="address"):
        asterism.connect(addresses)


def test_a_service_that_is_not_there_is_unavailable_and_its_address_named() -> None:
    with asterism.connect("127.0.0.1:1", timeout_s=1) as client, pytest.raises(asterism.Unavailable, match=r"127.0.0.1:1: .*is it running there"):
        client.spaces()
