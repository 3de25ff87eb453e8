"""Clients of a cluster with daemons that stop and start, and clients in other processes."""

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
from tests.kit.forking import assert_forks_draw_correctly
from tests.kit.frozen import stopped_process
from tests.kit.waiting import HANG_S, wait_until

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


def send_sample(graph: Graph, connection: Connection) -> None:
    connection.send(graph.sample_edges(50, seed=8).edge_ids)
    connection.close()


@pytest.mark.parametrize("begun", ["spawn", "forkserver"])
def test_graph_pickles_to_a_new_process_and_samples_the_same(graph: Graph, begun: str) -> None:
    context = multiprocessing.get_context(begun)
    receiver, sender = context.Pipe()
    worker = context.Process(target=send_sample, args=(graph, sender))
    worker.start()
    sender.close()
    assert receiver.poll(HANG_S), "the worker gave no answer"
    assert np.array_equal(receiver.recv(), graph.sample_edges(50, seed=8).edge_ids)
    worker.join(HANG_S)
    assert worker.exitcode == 0


def test_an_unused_client_survives_a_fork(cluster: LocalCluster) -> None:
    # Fork in a separate process, because this one uses gRPC, which makes forking unsafe.
    program = f"""
import os, asterism
client = asterism.connect({cluster.addresses!r}, timeout_s={HANG_S})
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
def test_a_client_in_use_survives_forks_with_calling_threads(
    cluster: LocalCluster, threads: int
) -> None:
    for _ in range(3):
        assert_forks_draw_correctly(cluster.addresses, threads)


def test_frozen_graphd_changes_no_sample_of_a_hedged_client(
    cluster: LocalCluster, graph: Graph
) -> None:
    expected = [graph.sample_edges(50, seed=seed).edge_ids for seed in range(20)]
    with asterism.connect(cluster.addresses, hedge=0.25, timeout_s=HANG_S) as client:
        hedged = client.graph("cases")
        with stopped_process(cluster["graphd-0"].pid):
            for seed in range(20):
                assert np.array_equal(hedged.sample_edges(50, seed=seed).edge_ids, expected[seed])
                time.sleep(0.15)  # longer than a client avoids an address
        assert client.traffic.hedges_won >= 2
        assert client.traffic.hedges <= 20


def test_a_pickled_client_keeps_the_version_it_has_seen(graph: Graph) -> None:
    version = graph.sample_nodes(1).version
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.sample_nodes(1, seed=4).version == version
    assert copy.schema == graph.schema
    copy.close()


def test_a_dead_graphd_is_skipped_and_used_after_its_restart(
    cluster: LocalCluster, graph: Graph
) -> None:
    expected = graph.sample_edges(50, seed=8).edge_ids
    cluster.kill("graphd-1")
    for _ in range(6):
        assert np.array_equal(graph.sample_edges(50, seed=8).edge_ids, expected)
    cluster.restart("graphd-1")
    cluster.kill("graphd-0")
    sample = wait_until(
        lambda: graph.sample_edges(50, seed=8), "a graphd answers", ignored=asterism.Unavailable
    )
    assert np.array_equal(sample.edge_ids, expected)
    cluster.restart("graphd-0")


def test_unreachable_partition_fails_and_names_host(cluster: LocalCluster, graph: Graph) -> None:
    expected = graph.sample_edges(500, seed=8).edge_ids
    cluster.kill("storaged-1")
    with (
        asterism.connect(cluster.addresses, timeout_s=2.0) as client,
        pytest.raises(asterism.Unavailable, match="storaged"),
    ):
        client.graph("cases").sample_edges(500, seed=8)
    cluster.restart("storaged-1")
    assert np.array_equal(graph.sample_edges(500, seed=8).edge_ids, expected)


def test_samples_continue_while_metad_is_down(cluster: LocalCluster, graph: Graph) -> None:
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
def test_invalid_addresses_are_refused(addresses: str) -> None:
    with pytest.raises(asterism.InvalidRequest, match="address"):
        asterism.connect(addresses, timeout_s=HANG_S)


def test_an_unreachable_service_is_unavailable_with_its_address() -> None:
    with (
        asterism.connect("127.0.0.1:1", timeout_s=1) as client,
        pytest.raises(
            asterism.Unavailable,
            match=r"graphd at 127.0.0.1:1 \(connection refused\); is it running there",
        ),
    ):
        client.spaces()
