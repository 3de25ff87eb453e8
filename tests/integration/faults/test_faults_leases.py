"""Interrupted connections between storageds and metad, in either direction.

A storaged without a lease pauses its builds and resumes them if the task is still assigned. Further
tests check which process may use a folder or join a cluster.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.kit import zygote
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import ConsistencyMonitor, assert_settled, edges_of
from tests.kit.task_processes import find_builds, has_ended
from tests.kit.waiting import HANG_S, wait_until

from asterism import Client, Graph
from asterism.records.catalog import Job

LEASE_S = 1.5
WAIT_S = HANG_S
SCHEMA = {
    "parts": 4,
    "direction": "both",
    "nodes": {"n": {"weighted": True}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, EDGES = 20_000, 60_000
PASS = "sweep"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        storageds=2,
        proxies=True,
        faults=True,
        flags={"metad": ["--lease-s", str(LEASE_S), "--heartbeat-interval-s", "0.2"]},
    ) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    client.create_space("g", SCHEMA)
    rng = np.random.default_rng(1)
    load = client.begin_load("g")
    load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES))
    load.write_edges(
        1,
        "to",
        rng.integers(0, NODES, EDGES),
        rng.integers(0, NODES, EDGES),
        weights=rng.random(EDGES),
        ends_known=True,
    )
    load.commit()
    graph = client.graph("g")
    graph.build()
    return graph


@pytest.fixture(autouse=True)
def check_recovery(cluster: LocalCluster, client: Client, graph: Graph) -> Iterator[None]:
    before = edges_of(graph, "to")
    with ConsistencyMonitor(cluster, "g") as witness:
        yield
        for faults in cluster.faults.values():
            faults.set()
        wait_until(
            lambda: witness.answered_count > 0, "a draw was answered, during the test or after it"
        )
    assert_settled(cluster, client, ["g"])
    assert edges_of(graph, "to") == before


def start_held_build(
    cluster: LocalCluster, client: Client, graph: Graph, name: str
) -> tuple[Job, psutil.Process]:
    """Start a job, and return it with the build process, held in the middle of a pass.

    The build stays there until the fault is cleared.
    """
    faults = cluster.faults[name]
    before = len(faults.reached())
    faults.set(hold_build_in=[PASS])
    # Change a node of every partition, because a build skips unchanged partitions.
    graph.upsert_nodes(np.arange(4), "n", weights=np.random.default_rng().random(4))
    job = graph.build(wait=False)
    wait_until(lambda: len(faults.reached()) > before, "the build has come to the pass")
    child = psutil.Process(faults.reached()[-1][0])
    assert child in find_builds(cluster, name)
    assert not is_stopped(child)
    return job, child


def is_stopped(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_STOPPED)


def is_online(client: Client, cluster: LocalCluster, name: str) -> bool:
    return {host.address: host.online for host in client.hosts()}[cluster[name].address]


def assert_published(client: Client, job: Job) -> None:
    result = client.wait(job.job_id, timeout_s=WAIT_S)
    assert result.state == "FINISHED", result
    assert client.describe("g").version == result.version


@pytest.mark.parametrize(
    "cut", [{"there"}, {"back"}, {"there", "back"}], ids=["from it", "to it", "both ways"]
)
def test_build_without_lease_pauses_until_heartbeats_arrive(
    cluster: LocalCluster, client: Client, graph: Graph, cut: set[str]
) -> None:
    job, child = start_held_build(cluster, client, graph, "storaged-0")
    version = client.describe("g").version
    line = cluster.proxies["storaged-0"]
    line.blocked |= cut
    wait_until(lambda: is_stopped(child), "the build is stopped")
    assert cluster.get("storaged-0", "/status")["leased"] is False
    cluster.faults["storaged-0"].set()
    # A published version is immutable and named by its digest, so sampling needs no lease.
    assert len(graph.sample_nodes(100, "n")) == 100
    if "there" in cut:
        wait_until(
            lambda: not is_online(client, cluster, "storaged-0"),
            "metad has lost the storaged that it does not hear",
        )
    assert is_stopped(child)
    assert client.job(job.job_id).state == "RUNNING"
    line.blocked.clear()
    assert_published(client, job)
    assert client.describe("g").version == version + 1
    # The attempts are the same: an interruption repeats no work.
    assert [task.attempt for task in client.job(job.job_id).tasks] == [1, 1]


def test_frozen_storaged_does_not_report_a_stopped_attempt(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    job, child = start_held_build(cluster, client, graph, "storaged-0")
    version = client.describe("g").version
    os.kill(cluster["storaged-0"].pid, signal.SIGSTOP)
    try:
        wait_until(
            lambda: not is_online(client, cluster, "storaged-0"),
            "metad has lost the frozen storaged",
        )
        client.stop_job(job.job_id)
        # The lease of the storaged has expired, so metad need not wait for its report.
        wait_until(lambda: client.job(job.job_id).state == "STOPPED", "the job is stopped")
        cluster.faults[
            "storaged-0"
        ].set()  # the build ends while the storaged is frozen; its last line waits in the pipe
        wait_until(lambda: has_ended(child), "the build has ended")
        client.recover_job(job.job_id)
    finally:
        os.kill(cluster["storaged-0"].pid, signal.SIGCONT)
    assert_published(client, job)
    assert client.describe("g").version == version + 1
    attempts = {task.attempt for task in client.job(job.job_id).tasks}
    assert attempts == {2}, "the report of an attempt that was stopped was believed"


def test_paused_build_dies_with_its_storaged(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    job, child = start_held_build(cluster, client, graph, "storaged-1")
    child.send_signal(signal.SIGSTOP)
    cluster.kill("storaged-1")
    child.wait(timeout=HANG_S)
    cluster.faults["storaged-1"].set()
    cluster.restart("storaged-1")
    assert_published(client, job)


def test_metad_without_its_catalog_accepts_no_storaged(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    catalog = cluster.folder_of("metad") / "catalog"
    cluster["metad"].stop()
    shutil.move(catalog, catalog.with_name("kept"))
    try:
        cluster["metad"].start()
        wait_until(
            lambda: all(
                "belongs to the cluster" in cluster.missing(name)
                for name in ("storaged-0", "storaged-1")
            ),
            "both storageds are refused",
        )
        assert "catalog" in cluster.missing("storaged-0")
        # metad assigns no partitions to storageds that do not follow it.
        assert client.hosts() == [] or all(
            host.role.upper() != "STORAGED" for host in client.hosts()
        )
        assert list(cluster.folder_of("storaged-0").glob("spaces/*/builds/*/parts/*/manifest.json"))
    finally:
        cluster["metad"].stop()
        shutil.rmtree(catalog)
        shutil.move(catalog.with_name("kept"), catalog)
        cluster["metad"].start()
        cluster.wait_ready()
    graph.build()


def test_metad_that_lost_its_identity_keeps_its_catalog(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    before = cluster.get("metad", "/status")
    cluster.kill("metad")
    (cluster.folder_of("metad") / "identity.json").unlink()
    cluster.restart("metad")
    after = cluster.get("metad", "/status")
    assert after["uuid"] != before["uuid"]
    assert (after["cluster"], after["revision"] > before["revision"]) == (before["cluster"], True)
    cluster.wait_ready()  # after the restart, metad knows no storageds until they report
    client.create_space("fresh", SCHEMA)  # returns after graphd has received it
    client.drop_space("fresh")
    graph.build()


def test_storaged_does_not_start_on_data_without_identity(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    file = cluster.folder_of("storaged-1") / "identity.json"
    cluster.kill("storaged-1")
    identity = file.read_bytes()
    file.unlink()
    cluster["storaged-1"].start()
    wait_until(
        lambda: cluster["storaged-1"].exit_status() is not None, "the unknown host has ended"
    )
    assert cluster["storaged-1"].exit_status() == 2
    assert (
        f"{file}: missing, though the folder has data of the cluster"
        in cluster["storaged-1"].log.read_text().splitlines()[-1]
    )
    assert not file.exists()
    file.write_bytes(identity)
    cluster.restart("storaged-1")


@pytest.mark.parametrize("name", ["metad", "storaged-0"])
def test_second_daemon_on_a_folder_is_refused_with_owner_pid(
    cluster: LocalCluster, name: str
) -> None:
    role = name.partition("-")[0]
    ports = ("--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")
    second = zygote.run(role, "--data", cluster.folder_of(name), *ports)
    assert second.returncode == 2
    assert f"is open in another process (pid {cluster[name].pid})" in second.stderr
    assert str(Path(cluster.folder_of(name))) in second.stderr
    assert "Traceback" not in second.stderr
    assert cluster[name].is_ready()
