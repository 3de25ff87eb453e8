"""Leftovers of builds, loads and spaces on storageds: kept while useful, then removed.

After removal no file and no key remains.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.task_processes import find_builds
from tests.kit.waiting import HANG_S, let_pass, wait_until

from asterism import Client, Graph
from asterism.records.catalog import Job
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.store import keys as catalog_keys
from metad.store.rocksdb_store import RocksStore
from storaged.store import keys
from storaged.store.block_store import FAMILIES
from storaged.store.engine import RocksEngine

NODES, EDGES = 20_000, 60_000
WAIT_S = HANG_S
ATTEMPTS = 20
FAST = ["--heartbeat-interval-s", "0.2", "--lease-s", "2"]


def cluster_of(keep_builds_s: float, storageds: int) -> LocalCluster:
    metad = [
        *FAST,
        "--max-attempts",
        "1",
        "--keep-builds-s",
        str(keep_builds_s),
        "--keep-versions",
        "1",
        "--retire-after-s",
        "0.2",
    ]
    return LocalCluster(
        storageds=storageds,
        flags={
            "metad": metad,
            "storaged": ["--sweep-interval-s", "0.5", "--quarantine-grace-s", "0"],
        },
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cluster_of(3600, 2) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected


def loaded_graph(client: Client, space: str) -> Graph:
    client.create_space(
        space,
        {
            "parts": 2,
            "direction": "both",
            "nodes": {"n": {"weighted": True}},
            "edges": {"n:to:n": {"weighted": True}},
        },
    )
    rng = np.random.default_rng(1)
    load = client.begin_load(space, source="generated")
    load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES))
    src, dst = rng.integers(0, NODES, EDGES), rng.integers(0, NODES, EDGES)
    load.write_edges(1, "to", src, dst, weights=rng.random(EDGES), ends_known=True)
    load.commit()
    return client.graph(space)


def pause_build(cluster: LocalCluster, name: str) -> psutil.Process:
    """Stop a storaged's build process with SIGSTOP and return it."""
    processes: list[psutil.Process] = []

    def build_found() -> bool:
        processes[:] = find_builds(cluster, name)
        return bool(processes)

    wait_until(build_found, f"{name} builds")
    processes[0].send_signal(signal.SIGSTOP)
    return processes[0]


def wait_for_state(client: Client, job_id: int, state: str) -> Job:
    wait_until(lambda: client.job(job_id).state == state, f"job {job_id} is {state}")
    return client.job(job_id)


def fail_build(cluster: LocalCluster, client: Client, graph: Graph) -> Job:
    """Start a build and kill its process; no second attempt follows."""
    job = graph.build(wait=False)
    pause_build(cluster, "storaged-0").kill()
    return wait_for_state(client, job.job_id, "FAILED")


def leftover_folders(cluster: LocalCluster, space_id: int) -> set[str]:
    """Return all build and checkpoint folders of a space, on every storaged, by any name."""
    return {
        f"{path.parents[3].name}/{path.parent.name}/{path.name}"
        for kind in ("builds", "checkpoints")
        for path in cluster.folder.glob(f"storaged-*/spaces/{space_id}/{kind}/*")
    }


def expected_folders(cluster: LocalCluster, job_id: int, storageds: int = 2) -> set[str]:
    """Return the only folders that a published build leaves."""
    return {f"storaged-{i}/builds/{job_id}" for i in range(storageds)}


def unfinished_files(folder: Path) -> list[Path]:
    """Return files that exist only while a build runs."""
    return [
        path for name in ("*.making", "*.gone", "scratch", "*-runs") for path in folder.rglob(name)
    ]


def loads_with_blocks(folder: Path, space_id: int) -> set[int]:
    """Return the loads with keys in any family of a graph database; its storaged must not run."""
    engine = RocksEngine(folder / "spaces" / str(space_id) / "graph", FAMILIES, read_only=True)
    try:
        return {
            keys.parse_block_key(raw).load_id
            for family in FAMILIES
            for raw, _ in engine.scan(family.name, b"", None)
        }
    finally:
        engine.close()


def test_failed_build_is_kept_until_a_later_one_is_published(
    cluster: LocalCluster, client: Client
) -> None:
    graph = loaded_graph(client, "superseded")
    space_id = client.describe("superseded").space_id
    failed_job = fail_build(cluster, client, graph)
    failed_folders = {
        f"storaged-0/builds/{failed_job.job_id}",
        f"storaged-0/checkpoints/{failed_job.job_id}",
    }
    let_pass(1.5)  # three collections
    assert failed_folders <= leftover_folders(cluster, space_id), "it can be recovered from there"
    graph.upsert_nodes([0], "n", weights=[2.0])
    published = graph.build()
    wait_until(
        lambda: leftover_folders(cluster, space_id) == expected_folders(cluster, published.job_id),
        "only the published version is left",
        ignored=FileNotFoundError,
    )
    wait_until(
        lambda: unfinished_files(cluster.folder) == [],
        "no file is unfinished",
        ignored=FileNotFoundError,
    )


def test_recovered_build_resumes_from_its_checkpoint(cluster: LocalCluster, client: Client) -> None:
    graph = loaded_graph(client, "recovered")
    space_id = client.describe("recovered").space_id
    job = graph.build(wait=False)
    pause_build(cluster, "storaged-1")
    client.stop_job(job.job_id)
    wait_for_state(client, job.job_id, "STOPPED")
    checkpoint = cluster.folder / f"storaged-1/spaces/{space_id}/checkpoints/{job.job_id}"
    inode = checkpoint.stat().st_ino
    let_pass(1.5)
    client.recover_job(job.job_id)
    process = pause_build(cluster, "storaged-1")
    assert checkpoint.stat().st_ino == inode, "the same input"
    process.send_signal(signal.SIGCONT)
    assert client.wait(job.job_id, timeout_s=WAIT_S).state == "FINISHED"
    wait_until(
        lambda: leftover_folders(cluster, space_id) == expected_folders(cluster, job.job_id),
        "only the recovered version is left",
        ignored=FileNotFoundError,
    )


def test_old_versions_are_deleted_with_their_stat_databases(
    cluster: LocalCluster, client: Client
) -> None:
    graph = loaded_graph(client, "old")
    space_id = client.describe("old").space_id
    first = graph.build()
    assert list(cluster.folder.glob(f"storaged-*/spaces/{space_id}/builds/{first.job_id}/stat"))
    graph.upsert_nodes([0], "n", weights=[3.0])
    second = graph.build()
    wait_until(
        lambda: leftover_folders(cluster, space_id) == expected_folders(cluster, second.job_id),
        "only the second version is left",
        ignored=FileNotFoundError,
    )
    assert graph.sample_nodes(10, seed=1).version == 2


def test_space_dropped_during_a_build_leaves_no_files(
    cluster: LocalCluster, client: Client
) -> None:
    graph, other = loaded_graph(client, "dropped"), loaded_graph(client, "spared")
    space_id = client.describe("dropped").space_id
    graph.build()
    graph.upsert_nodes([0], "n", weights=[4.0])
    job = graph.build(wait=False)
    pause_build(cluster, "storaged-0")
    other_job = other.build(wait=False)
    client.drop_space("dropped")
    assert client.job(job.job_id).state == "STOPPED"
    assert client.wait(other_job.job_id, timeout_s=WAIT_S).state == "FINISHED"
    wait_until(
        lambda: list(cluster.folder.glob(f"storaged-*/spaces/{space_id}*")) == [],
        "no folder of the dropped space is left",
        ignored=FileNotFoundError,
    )


def test_restarted_storaged_removes_dropped_data(cluster: LocalCluster, client: Client) -> None:
    doomed, kept_graph = loaded_graph(client, "doomed"), loaded_graph(client, "kept")
    space_id, kept_id = client.describe("doomed").space_id, client.describe("kept").space_id
    doomed.build()
    version = kept_graph.build()
    load = client.begin_load("kept")
    load.write_nodes(0, "n", np.arange(NODES, NODES + 5000), weights=np.ones(5000))
    abandoned_id = load.load_id
    cluster.kill("storaged-1")
    client.drop_space("doomed")
    load.abandon()
    let_pass(1.0)
    assert list(cluster.folder.glob(f"storaged-1/spaces/{space_id}"))
    wait_until(
        lambda: not list(cluster.folder.glob(f"storaged-0/spaces/{space_id}*")),
        "storaged-0 has removed the dropped space",
        ignored=FileNotFoundError,
    )
    cluster.restart("storaged-1")
    wait_until(
        lambda: list(cluster.folder.glob(f"storaged-*/spaces/{space_id}*")) == [],
        "no folder of the dropped space is left",
        ignored=FileNotFoundError,
    )
    assert leftover_folders(cluster, kept_id) == expected_folders(cluster, version.job_id)
    wait_until(
        lambda: (
            client.session.catalog("get_load", metad_pb.LoadRequest(load_id=abandoned_id)).purged
        ),
        "the abandoned load is settled",
    )
    assert kept_graph.sample_nodes(5, seed=1).version == 1
    for name in ("storaged-0", "storaged-1"):
        cluster[name].stop()
        assert abandoned_id not in loads_with_blocks(cluster.folder / name, kept_id)
        assert len(loads_with_blocks(cluster.folder / name, kept_id)) == 1
    for name in ("storaged-0", "storaged-1"):
        cluster[name].start()
    cluster.wait_ready()


def test_late_block_of_an_abandoned_load_is_removed(cluster: LocalCluster, client: Client) -> None:
    """Write a block where a write in flight at that moment would leave it."""
    loaded_graph(client, "late")
    space_id = client.describe("late").space_id
    load = client.begin_load("late")
    load.write_nodes(0, "n", np.arange(10), weights=np.ones(10))
    name = "storaged-0"
    cluster[name].stop()
    path = cluster.folder / name / "spaces" / str(space_id) / "graph"
    engine = RocksEngine(path, FAMILIES)
    late_blocks = [
        (family.name, raw, value)
        for family in FAMILIES
        for raw, value in engine.scan(family.name, b"", None)
        if keys.parse_block_key(raw).load_id == load.load_id
    ]
    engine.close()
    assert late_blocks
    load.abandon()
    cluster.restart(name)
    wait_until(
        lambda: (
            client.session.catalog("get_load", metad_pb.LoadRequest(load_id=load.load_id)).purged
        ),
        "the abandoned load is settled",
    )
    cluster[name].stop()
    assert load.load_id not in loads_with_blocks(cluster.folder / name, space_id)
    engine = RocksEngine(path, FAMILIES)
    engine.write(late_blocks)
    engine.close()
    assert load.load_id in loads_with_blocks(cluster.folder / name, space_id)
    cluster.restart(name)
    wait_until(
        lambda: "abandoned_loads_found" in cluster[name].log.read_text(),
        f"{name} has found the dead load",
    )
    for _ in range(
        ATTEMPTS
        # One of the next collections removes the block. The database can be inspected only while
        # its storaged is stopped.
    ):
        let_pass(1.0)
        cluster[name].stop()
        is_removed = load.load_id not in loads_with_blocks(cluster.folder / name, space_id)
        cluster.restart(name)
        if is_removed:
            break
    assert is_removed


@pytest.mark.parametrize("ending", ["FAILED", "STOPPED"])
def test_unrecovered_build_expires_across_metad_restarts(ending: str) -> None:
    with cluster_of(6, 1) as cluster, cluster.client() as client:
        graph = loaded_graph(client, "lapsed")
        if ending == "FAILED":
            job = fail_build(cluster, client, graph)
        else:
            job = graph.build(wait=False)
            pause_build(cluster, "storaged-0")
            client.stop_job(job.job_id)
            wait_for_state(client, job.job_id, "STOPPED")
        assert leftover_folders(cluster, 1) == {
            f"storaged-0/builds/{job.job_id}",
            f"storaged-0/checkpoints/{job.job_id}",
        }
        cluster.kill("metad")
        cluster.restart("metad")
        wait_until(
            lambda: leftover_folders(cluster, 1) == set(),
            "the expired build has left nothing",
            ignored=FileNotFoundError,
        )
        assert time.time() * 1000 >= client.job(job.job_id).finished_ms + 6000
        wait_until(
            lambda: unfinished_files(cluster.folder) == [],
            "no file is unfinished",
            ignored=FileNotFoundError,
        )
        client.recover_job(job.job_id)  # an expired build can still be recovered: it starts over
        assert client.wait(job.job_id, timeout_s=WAIT_S).state == "FINISHED"
        wait_until(
            lambda: leftover_folders(cluster, 1) == expected_folders(cluster, job.job_id, 1),
            "only the recovered version is left",
            ignored=FileNotFoundError,
        )
        client.drop_space("lapsed")
        wait_until(
            lambda: list(cluster.folder.glob("storaged-*/spaces/*")) == [],
            "no folder of a space is left",
            ignored=FileNotFoundError,
        )
        cluster["metad"].stop()
        store = RocksStore(cluster.folder / "metad" / "catalog")
        kinds = (
            catalog_keys.SPACES,
            catalog_keys.LOADS,
            catalog_keys.CHUNKS,
            catalog_keys.COMMITS,
            catalog_keys.BASES,
        )
        assert [
            store.range(kind)
            for kind in (*kinds, catalog_keys.VERSIONS, catalog_keys.RESULTS, catalog_keys.PINS)
        ] == [[]] * 8
        store.close()
