"""Builds stopped in each of their passes, or with their space dropped.

The build ends at once. It resumes at the same pass, or leaves no files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import psutil
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import assert_settled, edges_of
from tests.kit.task_processes import find_builds
from tests.kit.waiting import HANG_S, wait_until

from asterism import Client, Conflict, NotFound

WAIT_S = HANG_S
SCHEMA = {
    "parts": 1,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": "float32"}}},
    "edges": {"n:to:n": {"weighted": True, "features": {"when": "int64"}}},
}
MANY, FEW = 270_000, 600
"""Row counts above and below the number after which a build records each step separately."""
STEPS = {
    "nodes n": (0, ""),
    "B1": (1, "n0.table.scan"),
    "B2, B3": (2, "n0.table.classify"),
    "sweep": (3, "n0.table.sweep"),
    "merge": (4, "n0.table.merge"),
    "audit": (5, "n0.table.audit"),
    "features n": (7, "n0.features"),
    "out edges n:to:n": (8, "e0.out.edges"),
    "in edges n:to:n": (12, "e0.in.edges"),
    "features n:to:n": (22, "e0.features"),
    "seal": (23, ""),
}
"""Each pass in order: the number of steps completed before it, and the name of its step."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=1, faults=True, flags={"storaged": ["--log-json"]}) as running:
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected
        cluster.faults["storaged-0"].set()
        assert_settled(cluster, connected, [space.name for space in connected.spaces()])


def fill(client: Client, space: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    load = client.begin_load(space)
    load.write_nodes(
        0,
        "n",
        np.arange(rows),
        weights=rng.random(rows),
        features={"x": rng.random(rows, np.float32)},
    )
    ends = rng.integers(0, rows, rows), rng.integers(0, rows, rows)
    load.write_edges(
        1,
        "to",
        *ends,
        weights=rng.random(rows),
        features={"when": np.arange(rows)},
        ends_known=True,
    )
    load.commit()


def resume_points(cluster: LocalCluster, job_id: int) -> list[tuple[int, str]]:
    events = [
        json.loads(line)
        for line in cluster["storaged-0"].log.read_text().splitlines()
        if '"task_resumed"' in line
    ]
    return [(event["kept"], event["at"]) for event in events if event["job"] == job_id]


def hold_in_pass(
    cluster: LocalCluster, client: Client, job_id: int, passes: list[str]
) -> tuple[psutil.Process, str]:
    """Return the build, held in the first of these passes that it reaches, and the pass."""
    faults = cluster.faults["storaged-0"]
    before = len(faults.reached())
    faults.set(hold_build_in=passes)
    wait_until(
        lambda: len(faults.reached()) > before,
        lambda: f"job {job_id} has come to one of {passes}: {client.job(job_id)}",
    )
    pid, name = faults.reached()[-1]
    return psutil.Process(pid), name


def test_build_stopped_in_any_pass_resumes_in_that_pass(
    cluster: LocalCluster, client: Client
) -> None:
    client.create_space("stopped", SCHEMA)
    fill(client, "stopped", MANY)
    cluster.faults["storaged-0"].set(hold_build_in=list(STEPS))
    job = client.submit_job("stopped")
    remaining = list(STEPS)
    while remaining:
        child, name = hold_in_pass(cluster, client, job.job_id, remaining)
        assert name == remaining.pop(0)
        client.stop_job(job.job_id)
        wait_until(
            lambda: client.job(job.job_id).ended, "the job has ended"
        )  # the pass is held, so only the stop can end it
        stopped = client.job(job.job_id)
        assert (stopped.state, [task.state for task in stopped.tasks], stopped.version) == (
            "STOPPED",
            ["STOPPED"],
            0,
        )
        assert find_builds(cluster) == [], "the host gave its word and works on"
        assert not child.is_running()
        cluster.faults["storaged-0"].set(hold_build_in=remaining)
        client.recover_job(job.job_id)
    result = client.wait(job.job_id, timeout_s=WAIT_S)
    assert (result.state, result.version) == ("FINISHED", 1)
    assert [task.attempt for task in result.tasks] == [len(STEPS) + 1]
    # Steps completed before the pass are not repeated, and all later steps run.
    assert resume_points(cluster, job.job_id) == [step for step in STEPS.values() if step[1]]
    manifest = client.manifest("stopped")
    assert (manifest.count("NODE", 0), manifest.count("EDGE", 0)) == (MANY, MANY)


def test_space_dropped_in_any_build_pass_leaves_nothing(
    cluster: LocalCluster, client: Client
) -> None:
    ids = []
    for name in STEPS:
        client.create_space("dropped", SCHEMA)
        ids.append(client.describe("dropped").space_id)
        fill(client, "dropped", FEW)
        cluster.faults["storaged-0"].set(hold_build_in=[name])
        job = client.submit_job("dropped")
        child, _ = hold_in_pass(cluster, client, job.job_id, [name])
        client.drop_space("dropped")
        assert client.job(job.job_id).state == "STOPPED"
        wait_until(lambda child=child: not child.is_running(), "its build has ended")  # type: ignore[misc]
        assert client.job(job.job_id).cause == "space 'dropped' was dropped"
        with pytest.raises(NotFound, match="dropped"):
            client.describe("dropped")
        with pytest.raises(Conflict, match="was dropped; there is nothing to continue"):
            client.recover_job(job.job_id)
    cluster.faults["storaged-0"].set()
    client.create_space("dropped", SCHEMA)
    ids.append(client.describe("dropped").space_id)
    assert len(set(ids)) == len(ids)
    fill(client, "dropped", FEW)
    assert client.graph("dropped").build(timeout_s=WAIT_S).version == 1
    assert len(edges_of(client.graph("dropped"), "to")) == FEW


def test_space_dropped_while_its_build_is_queued_is_not_built(
    cluster: LocalCluster, client: Client
) -> None:
    for space in ("first", "waiting"):
        client.create_space(space, SCHEMA)
        fill(client, space, FEW)
    job = client.submit_job("first")
    child, _ = hold_in_pass(cluster, client, job.job_id, ["sweep"])
    waiting = client.submit_job("waiting")
    wait_until(
        lambda: client.job(waiting.job_id).tasks[0].phase == "waits for a slot",
        "it waits for a slot",
    )
    client.drop_space("waiting")
    wait_until(lambda: len(cluster.get("storaged-0", "/status")["builds"]) == 1, "it builds")
    assert client.job(waiting.job_id).state == "STOPPED"
    assert child.is_running()
    cluster.faults["storaged-0"].set()
    assert client.wait(job.job_id, timeout_s=WAIT_S).state == "FINISHED"
