"""Builds on real processes that are killed, stopped or cut off from metad.

Each build ends, and every version that it publishes is complete.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import numpy as np
import psutil
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.task_processes import find_builds, has_ended
from tests.kit.waiting import HANG_S, let_pass, wait_until

from asterism import Client, Graph
from asterism.formats.rmat import rmat
from asterism.records.catalog import Job

NODES, EDGES = 150_000, 1_000_000
WAIT_S = HANG_S
POLL_INTERVAL_S = 0.05


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    client.create_space(
        "big",
        {
            "parts": 4,
            "direction": "both",
            "nodes": {"n": {"weighted": True}},
            "edges": {"n:to:n": {"weighted": True}},
        },
    )
    rng = np.random.default_rng(3)
    load = client.begin_load("big", source="generated")
    load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES))
    src, dst = rmat(3, 0, 0, EDGES, sources=NODES, targets=NODES)
    load.write_edges(1, "to", src, dst, weights=rng.random(EDGES), ends_known=True)
    load.commit()
    return client.graph("big")


def submit_build(client: Client, graph: Graph) -> Job:
    """Write a node and build without linking, so that there is time to interrupt the build."""
    graph.upsert_nodes([0], "n", weights=[float(np.random.default_rng().random())])
    return client.submit_job("big", options={"link": "no"})


def wait_for_job(client: Client, job_id: int, predicate: Callable[[Job], bool]) -> Job:
    """Return the job once it satisfies `predicate`."""
    return wait_until(
        lambda: job if predicate(job := client.job(job_id)) else None,
        lambda: f"the job is as expected: {client.job(job_id)}",
        poll_interval_s=POLL_INTERVAL_S,
    )


def wait_for_build_process(
    client: Client, cluster: LocalCluster, job_id: int, name: str
) -> psutil.Process:
    """Return the job's build process on a storaged, once it has made progress."""

    def process() -> psutil.Process | None:
        host = {h.address: h.uuid for h in client.hosts()}[cluster.daemons[name].address]
        task = next(task for task in client.job(job_id).tasks if task.host == host)
        processes = find_builds(cluster, name)
        return processes[0] if task.rows_done > 0 and processes else None

    return wait_until(
        process, f"a build of job {job_id} is under way at {name}", poll_interval_s=POLL_INTERVAL_S
    )


def assert_whole(client: Client, graph: Graph, job: Job) -> None:
    """Check that a job published a version with all rows, and sample from it."""
    assert job.state == "FINISHED", job
    manifest = client.manifest("big")
    assert manifest.version == job.version
    assert (manifest.count("NODE", 0), manifest.count("EDGE", 0)) == (NODES, EDGES)
    assert max(share.audit_tv for share in manifest.totals) <= 1e-9
    assert graph.sample_edges(100, "to", seed=1).version == job.version


def test_build_with_a_killed_process_is_retried(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    job = graph.build(wait=False)
    wait_for_build_process(client, cluster, job.job_id, "storaged-0").send_signal(signal.SIGKILL)
    finished = client.wait(job.job_id, timeout_s=WAIT_S)
    assert_whole(client, graph, finished)
    (retried,) = [task for task in finished.tasks if task.attempt > 1]
    assert "-9" in retried.causes[0]


def test_stopped_build_ends_and_a_recovered_one_finishes(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    job = submit_build(client, graph)
    child = wait_for_build_process(client, cluster, job.job_id, "storaged-1")
    version = client.describe("big").version
    client.stop_job(job.job_id)
    stopped = wait_for_job(client, job.job_id, lambda j: j.state == "STOPPED")
    assert has_ended(child)
    assert stopped.version == 0
    assert client.describe("big").version == version
    client.recover_job(job.job_id)
    assert_whole(client, graph, client.wait(job.job_id, timeout_s=WAIT_S))


def test_restarted_storaged_finishes_its_build(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    job = submit_build(client, graph)
    child = wait_for_build_process(client, cluster, job.job_id, "storaged-0")
    cluster.kill("storaged-0")
    child.wait(timeout=HANG_S)  # a build process ends with its storaged
    cluster.restart("storaged-0")
    assert_whole(client, graph, client.wait(job.job_id, timeout_s=WAIT_S))


def test_restarted_metad_accepts_the_result_of_a_running_build(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    job = submit_build(client, graph)
    wait_for_build_process(client, cluster, job.job_id, "storaged-0")
    cluster.kill("metad")
    assert len(graph.sample_nodes(100, "n").nodes) == 100  # published versions are served meanwhile
    let_pass(1.0)
    cluster.restart("metad")
    finished = client.wait(job.job_id, timeout_s=WAIT_S)
    assert_whole(client, graph, finished)


def test_space_dropped_in_mid_build_leaves_no_process_or_file(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    job = submit_build(client, graph)
    child = wait_for_build_process(client, cluster, job.job_id, "storaged-0")
    client.drop_space("big")
    child.wait(timeout=HANG_S)
    wait_until(
        lambda: list(cluster.folder.glob("storaged-*/spaces/*")) == [],
        "no folder of a space is left",
        ignored=FileNotFoundError,
    )
