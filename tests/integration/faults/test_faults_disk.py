"""A full disk: builds fail with the cause, writes are refused, acknowledged data survives.

After space is freed, the cluster continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import ConsistencyMonitor, assert_settled, edges_of
from tests.kit.small_disk import SmallDisk, small_disk
from tests.kit.waiting import HANG_S, wait_until

import asterism
from asterism import Client, Graph
from asterism.records.catalog import Job

WAIT_S = HANG_S
SCHEMA = {
    "parts": 3,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": {"dtype": "float32", "shape": [4]}}}},
    "edges": {"n:to:n": {"weighted": True, "features": {"when": "int64"}}},
}
NODES, EDGES = 6_000, 40_000
PASSES = ("nodes n", "B1", "sweep", "merge", "out edges n:to:n", "features n:to:n", "seal")
"""Passes that write mapped, appended or copied files or database files, or that sync."""
OTHER_PASSES = ("features n", "B2, B3", "audit", "in edges n:to:n")


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallDiskCluster:
    """A cluster with one storaged on a small disk of its own."""

    cluster: LocalCluster
    disk: SmallDisk
    client: Client
    graph: Graph


@pytest.fixture(scope="module")
def disk_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDiskCluster]:
    mount = tmp_path_factory.mktemp("disk")
    with (
        small_disk(mount, 160) as disk,
        LocalCluster(
            storageds=1,
            faults=True,
            flags={"metad": ["--max-attempts", "1"]},
            data={"storaged-0": mount / "data"},
        ) as cluster,
        cluster.client() as client,
    ):
        client.create_space("g", SCHEMA)
        graph = client.graph("g")
        fill(client, 4)
        graph.build()
        yield SmallDiskCluster(cluster=cluster, disk=disk, client=client, graph=graph)


def fill(client: Client, seed: int) -> list[tuple[int, int]]:
    """Load all nodes again, and new edges; return the ends of the edges."""
    rng = np.random.default_rng(seed)
    load = client.begin_load("g")
    load.write_nodes(
        0,
        "n",
        np.arange(NODES),
        weights=rng.random(NODES),
        features={"x": rng.random((NODES, 4), np.float32)},
    )
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
    load.commit()
    return list(zip(src.tolist(), dst.tolist(), strict=True))


def edge_ends(graph: Graph) -> list[tuple[int, int]]:
    return sorted((src, dst) for src, dst, _ in edges_of(graph, "to"))


@pytest.fixture(autouse=True)
def check_recovery(disk_cluster: SmallDiskCluster) -> Iterator[None]:
    with ConsistencyMonitor(disk_cluster.cluster, "g") as witness:
        yield
    disk_cluster.cluster.faults["storaged-0"].set()
    disk_cluster.disk.empty()
    assert witness.answered_count > 0
    assert_settled(disk_cluster.cluster, disk_cluster.client, ["g"])


@pytest.mark.parametrize(
    "passes",
    [PASSES, pytest.param(OTHER_PASSES, marks=pytest.mark.slow)],
    ids=["most", "the others"],
)
def test_build_on_full_disk_fails_in_any_pass_and_recovers(
    disk_cluster: SmallDiskCluster, passes: tuple[str, ...]
) -> None:
    client, disk, faults = (
        disk_cluster.client,
        disk_cluster.disk,
        disk_cluster.cluster.faults["storaged-0"],
    )
    expected, remaining = edge_ends(disk_cluster.graph), list(passes)
    pid = disk_cluster.cluster["storaged-0"].pid
    for number in range(4):
        version = client.describe("g").version
        expected = sorted(expected + fill(client, 5 + number))
        faults.set(hold_build_in=remaining)
        job = disk_cluster.graph.build(wait=False)
        while True:
            before = len(faults.reached())
            wait_until(
                lambda was=before, job=job: len(faults.reached()) > was or has_ended(client, job),
                f"the build has come to one of {remaining}",
            )  # type: ignore[misc]
            if len(faults.reached()) == before:
                break
            name = faults.reached()[-1][1]
            remaining.remove(name)
            disk.fill()
            faults.set()
            failed = client.wait(job.job_id, timeout_s=WAIT_S)
            assert failed.state == "FAILED", (name, failed)
            assert "the disk is full" in failed.tasks[0].causes[-1], (name, failed)
            assert disk_cluster.cluster["storaged-0"].pid == pid
            assert disk_cluster.cluster["storaged-0"].exit_status() is None
            assert client.describe("g").version == version
            assert len(disk_cluster.graph.sample_nodes(100, "n")) == 100
            disk.empty()
            faults.set(hold_build_in=remaining)
            client.recover_job(job.job_id)
        assert client.job(job.job_id).state == "FINISHED"
        assert client.describe("g").version == version + 1
        assert edge_ends(disk_cluster.graph) == expected
        if not remaining:
            return
    pytest.fail(f"no build came to {remaining}")


def has_ended(client: Client, job: Job) -> bool:
    return client.job(job.job_id).state not in ("QUEUE", "RUNNING")


def test_full_disk_refuses_writes_and_keeps_acknowledged_ones(
    disk_cluster: SmallDiskCluster,
) -> None:
    client, disk = disk_cluster.client, disk_cluster.disk
    before = edge_ends(disk_cluster.graph)
    acknowledged: list[tuple[int, int]] = []
    load = client.begin_load("g")
    refused = 0
    for chunk in range(12):
        ends = [(chunk, chunk + 1 + i) for i in range(2000)]
        src, dst = np.array(ends).T

        def write(chunk: int = chunk, src: np.ndarray = src, dst: np.ndarray = dst) -> None:
            load.write_edges(
                chunk,
                "to",
                src,
                dst,
                weights=np.ones(len(src)),
                features={"when": src},
                ends_known=True,
            )

        if chunk in (3, 7):
            disk.fill()
            with pytest.raises(asterism.Unavailable, match="the disk is full"):
                write()
            refused += 1
            assert disk_cluster.cluster["storaged-0"].exit_status() is None
            disk.empty()
        write()
        acknowledged += ends
    load.commit()
    assert refused == 2
    disk_cluster.graph.build(timeout_s=WAIT_S)
    assert edge_ends(disk_cluster.graph) == sorted(before + acknowledged)


def begin_loads_until_refused(client: Client) -> asterism.Unavailable:
    """Begin loads until metad cannot write any more, and return its error.

    metad's log may have some space left, so several loads may succeed.
    """
    for _ in range(10_000):
        try:
            client.begin_load("g")
        except asterism.Unavailable as error:
            return error
    pytest.fail("metad writes to a full disk")


def test_metad_recovers_from_full_disk_without_refused_writes(tmp_path: Path) -> None:
    mount = tmp_path / "disk"
    with (
        small_disk(mount, 48) as disk,
        LocalCluster(storageds=1, data={"metad": mount / "data"}) as cluster,
        cluster.client(timeout_s=5.0) as client,
    ):
        client.create_space("g", SCHEMA)
        fill(client, 1)
        graph = client.graph("g")
        graph.build(timeout_s=WAIT_S)
        pid = cluster["metad"].pid
        for round_ in range(2):
            name = f"kept{round_}"
            load = client.begin_load("g")
            disk.fill()
            refused = begin_loads_until_refused(client)
            assert "free space on the disk" in refused.message
            space_names = {space.name for space in client.spaces()}
            with pytest.raises(asterism.Unavailable, match="free space on the disk"):
                client.create_space(name, SCHEMA)
            with pytest.raises(asterism.Unavailable, match="free space on the disk"):
                load.commit()
            assert "free space on the disk" in cluster.missing("metad")
            assert len(graph.sample_nodes(100, "n")) == 100
            disk.empty()
            wait_until(lambda: cluster.missing("metad") == "", "metad is ready")
            assert {space.name for space in client.spaces()} == space_names
            load.commit()
            client.create_space(name, SCHEMA)
            assert graph.build(timeout_s=WAIT_S).state == "FINISHED"
        assert (cluster["metad"].pid, cluster["metad"].exit_status()) == (pid, None)
        space_ids = {space.name: space.space_id for space in client.spaces()}
        jobs = [(job.job_id, job.state, job.version) for job in client.jobs()]
        cluster.kill("metad")
        cluster.restart("metad")
        assert {space.name: space.space_id for space in client.spaces()} == space_ids
        assert [(job.job_id, job.state, job.version) for job in client.jobs()] == jobs


def test_storaged_exits_with_cause_when_started_on_full_disk(
    disk_cluster: SmallDiskCluster,
) -> None:
    expected = edges_of(disk_cluster.graph, "to")
    daemon = disk_cluster.cluster["storaged-0"]
    disk_cluster.cluster.kill("storaged-0")
    disk_cluster.disk.fill()
    daemon.start()
    wait_until(lambda: daemon.exit_status() is not None, "the daemon has ended")
    assert daemon.exit_status() == 2
    last_line = daemon.log.read_text().splitlines()[-1]
    assert "identity.json: cannot be written (No space left on device); free space" in last_line
    disk_cluster.disk.empty()
    disk_cluster.cluster.restart("storaged-0")
    assert edges_of(disk_cluster.graph, "to") == expected
