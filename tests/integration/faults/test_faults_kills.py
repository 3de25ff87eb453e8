"""Kills in every pass of a build, kills of metad during publication, and clock jumps.

Nothing is lost, and the builds equal undisturbed ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import ConsistencyMonitor, assert_settled, edges_of
from tests.kit.waiting import HANG_S, wait_until

from asterism import Client
from asterism.records.catalog import Job

LEASE_S = 1.5
WAIT_S = HANG_S
SCHEMA = {
    "parts": 4,
    "direction": "both",
    "nodes": {
        "n": {
            "weighted": True,
            "features": {
                "x": {"dtype": "float32", "shape": [2]},
                "tags": {"kind": "ragged", "dtype": "int64"},
            },
        }
    },
    "edges": {"n:to:n": {"weighted": True, "features": {"when": "int64"}}},
}
NODES, EDGES = 3_000, 9_000
KILLS = 8
"""Kills in one job; metad fails a job that loses its storaged too often."""
PASSES = (
    "nodes n",
    "features n",
    "B1",
    "B2, B3",
    "sweep",
    "merge",
    "audit",
    "out edges n:to:n",
    "in edges n:to:n",
    "features n:to:n",
    "seal",
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    flags = {"metad": ["--lease-s", str(LEASE_S), "--heartbeat-interval-s", "0.2"]}
    with LocalCluster(storageds=2, faults=True, flags=flags) as running:
        with running.client() as client:
            for space in ("calm", "struck"):
                client.create_space(space, SCHEMA)
                fill(client, space, 0)
                assert client.graph(space).build().version == 1
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    """Yield a client while a monitor checks the struck space; check both spaces at the end."""
    with cluster.client() as connected:
        with ConsistencyMonitor(cluster, "struck") as witness:
            yield connected
        for faults in cluster.faults.values():
            faults.set()
        assert witness.answered_count > 0
        assert_settled(cluster, connected, ["calm", "struck"])


def fill(client: Client, space: str, seed: int) -> int:
    """Load nodes and edges, and return the commit number."""
    rng = np.random.default_rng(seed)
    load = client.begin_load(space)
    tags = np.arange(NODES + 1, dtype=np.int64)
    features = {"x": rng.random((NODES, 2), np.float32), "tags": (tags, rng.integers(0, 9, NODES))}
    load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES), features=features)
    src, dst = rng.integers(0, NODES, EDGES), rng.integers(0, NODES, EDGES)
    load.write_edges(
        1,
        "to",
        src,
        dst,
        weights=rng.random(EDGES),
        features={"when": np.arange(EDGES)},
        ends_known=True,
    )
    return load.commit()


def wait_finished(client: Client, job: Job) -> Job:
    result = client.wait(job.job_id, timeout_s=WAIT_S)
    assert result.state == "FINISHED", result
    return result


def has_ended(client: Client, job: Job) -> bool:
    return client.job(job.job_id).state not in ("QUEUE", "RUNNING")


def image_manifests(cluster: LocalCluster, client: Client, space: str) -> dict[str, bytes]:
    """Return the image manifests of the current version: sizes and checksums of every file."""
    version = client.manifest(space)
    manifests = {}
    for name in ("storaged-0", "storaged-1"):
        parts = (
            cluster.folder_of(name)
            / "spaces"
            / str(version.space_id)
            / "builds"
            / str(version.job_id)
            / "parts"
        )
        manifests.update(
            {path.parent.name: path.read_bytes() for path in parts.glob("*/manifest.json")}
        )
    assert len(manifests) == SCHEMA["parts"]
    return manifests


def assert_same_as_calm(cluster: LocalCluster, client: Client) -> None:
    """Check that a disturbed build equals an undisturbed one of the same data, byte for byte."""
    assert image_manifests(cluster, client, "struck") == image_manifests(cluster, client, "calm")
    calm, struck = client.manifest("calm"), client.manifest("struck")
    assert struck.totals == calm.totals
    assert edges_of(client.graph("struck"), "to") == edges_of(client.graph("calm"), "to")


def test_builds_killed_in_every_pass_give_the_same_bytes(
    cluster: LocalCluster, client: Client
) -> None:
    faults, remaining = cluster.faults["storaged-0"], list(PASSES)
    for number in range(4):
        for space in ("calm", "struck"):
            fill(client, space, 100 + number)
        wait_finished(client, client.graph("calm").build(wait=False))
        version = client.describe("struck").version
        faults.set(hold_build_in=remaining)
        before = len(faults.reached())
        job = client.submit_job("struck")
        for _ in range(KILLS):
            wait_until(
                lambda was=before, job=job: len(faults.reached()) > was or has_ended(client, job),
                f"the build has come to one of {remaining}",
            )  # type: ignore[misc]
            if len(faults.reached()) == before:
                break
            cluster.kill("storaged-0")
            assert client.describe("struck").version == version, (
                "a half-built version was published"
            )
            remaining.remove(faults.reached()[-1][1])
            faults.set(hold_build_in=remaining)
            # The build may reach the next pass before the restart returns
            before = len(faults.reached())
            cluster.restart("storaged-0")
        faults.set()
        assert wait_finished(client, job).version == version + 1
        assert_same_as_calm(cluster, client)
        if not remaining:
            return
    pytest.fail(f"no build came to {remaining}")


@pytest.mark.parametrize("when", ["before", "after"])
def test_metad_killed_around_publication_publishes_once(
    cluster: LocalCluster, client: Client, when: str
) -> None:
    for space in ("calm", "struck"):
        fill(client, space, 200)
    wait_finished(client, client.graph("calm").build(wait=False))
    version = client.describe("struck").version
    cluster.faults["metad"].set(**{f"die_{when}_write_of": "1/version/"})
    job = client.submit_job("struck")
    wait_until(lambda: cluster["metad"].exit_status() is not None, "metad has ended")
    assert cluster["metad"].exit_status() == -9
    cluster.faults["metad"].set()
    cluster.restart("metad")
    assert wait_finished(client, job).version == version + 1
    assert client.describe("struck").version == version + 1
    assert [v.version for v in client.versions("struck")].count(version + 1) == 1
    assert_same_as_calm(cluster, client)


@pytest.mark.parametrize("ahead_s", [30 * 86400, -30 * 86400], ids=["forwards", "backwards"])
def test_wall_clock_jump_of_a_month_ends_no_lease_or_job(
    cluster: LocalCluster, client: Client, ahead_s: int
) -> None:
    for space in ("calm", "struck"):
        fill(client, space, 300)
    wait_finished(client, client.graph("calm").build(wait=False))
    faults = cluster.faults["storaged-0"]
    before = len(faults.reached())
    faults.set(hold_build_in=["sweep"])
    job = client.submit_job("struck")
    wait_until(lambda: len(faults.reached()) > before, "the build has come to the pass")
    for name in ("metad", "graphd-0"):
        cluster.faults[name].set(wall_ahead_s=ahead_s)
    faults.set(hold_build_in=["sweep"], wall_ahead_s=ahead_s)
    begun = time.monotonic()
    while time.monotonic() - begun < 1.5 * LEASE_S:
        assert all(
            host.online
            for host in client.hosts()
            if host.address in {cluster[name].address for name in ("storaged-0", "storaged-1")}
        )
        assert cluster.get("storaged-0", "/status")["leased"] is True
        time.sleep(0.05)
    faults.set(wall_ahead_s=ahead_s)
    result = wait_finished(client, job)
    assert [task.attempt for task in result.tasks] == [1, 1]
    assert len(client.graph("struck").sample_nodes(10)) == 10
    for name in cluster.faults:
        cluster.faults[name].set()
    assert_same_as_calm(cluster, client)
