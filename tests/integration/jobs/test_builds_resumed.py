"""Builds on real daemons, killed inside a partition, resume after the last finished step."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator

import numpy as np
import psutil
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, wait_until

from asterism import Client, Graph

NODES, EDGES = 300_000, 300_000
WAIT_S = HANG_S
STEPS_BEFORE_IN_EDGES = 11
"""Number of build steps before the in-edges.

Seven steps are for the nodes: rows, weight statistics and five passes. Four are for the out-edges:
sorted, narrow, alias rows, packed.
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=1, faults=True, flags={"storaged": ["--log-json"]}) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    client.create_space(
        "g",
        {
            "parts": 1,
            "direction": "both",
            "nodes": {"n": {"weighted": True}},
            "edges": {"n:to:n": {"weighted": True}},
        },
    )
    rng = np.random.default_rng(3)
    load = client.begin_load("g", source="generated")
    load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES))
    ends = rng.integers(0, NODES, EDGES), rng.integers(0, NODES, EDGES)
    load.write_edges(1, "to", *ends, weights=rng.random(EDGES), ends_known=True)
    load.commit()
    return client.graph("g")


def kill_the_child(
    cluster: LocalCluster, client: Client, job_id: int, child: psutil.Process
) -> None:
    child.send_signal(signal.SIGKILL)


def kill_storaged(
    cluster: LocalCluster, client: Client, job_id: int, child: psutil.Process
) -> None:
    cluster.kill("storaged-0")
    child.wait(timeout=HANG_S)
    cluster.restart("storaged-0")


def stop_and_recover(
    cluster: LocalCluster, client: Client, job_id: int, child: psutil.Process
) -> None:
    client.stop_job(job_id)
    wait_until(lambda: client.job(job_id).state == "STOPPED", "the job is stopped")
    client.recover_job(job_id)


def resumed_steps(cluster: LocalCluster, job_id: int) -> list[tuple[int, str]]:
    """Return (steps kept, step resumed at) for each resumed attempt at a job.

    The values come from storaged's log.
    """
    events = [
        json.loads(line)
        for line in cluster.daemons["storaged-0"].log.read_text().splitlines()
        if '"task_resumed"' in line
    ]
    return [(event["kept"], event["at"]) for event in events if event["job"] == job_id]


@pytest.mark.parametrize("end", [kill_the_child, kill_storaged, stop_and_recover])
def test_interrupted_build_resumes_after_its_last_step(
    cluster: LocalCluster,
    client: Client,
    graph: Graph,
    end: Callable[[LocalCluster, Client, int, psutil.Process], None],
) -> None:
    graph.upsert_nodes([0], "n", weights=[float(np.random.default_rng().random())])
    faults = cluster.faults["storaged-0"]
    before = len(faults.reached())
    faults.set(hold_build_in=["in edges n:to:n"])
    job = client.submit_job("g", options={"link": "no"})  # a linked unit has no step to interrupt
    wait_until(lambda: len(faults.reached()) > before, "the build has come to the next pass")
    end(cluster, client, job.job_id, psutil.Process(faults.reached()[-1][0]))
    faults.set()
    finished = client.wait(job.job_id, timeout_s=WAIT_S)
    assert finished.state == "FINISHED"
    assert resumed_steps(cluster, job.job_id) == [(STEPS_BEFORE_IN_EDGES, "e0.in.edges")]
    manifest = client.manifest("g")
    assert (manifest.version, manifest.count("NODE", 0), manifest.count("EDGE", 0)) == (
        finished.version,
        NODES,
        EDGES,
    )
