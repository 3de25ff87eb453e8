"""Jobs of every kind on real processes: results, sharing, queueing, progress and stopping."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import itertools
import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.task_processes import name_of, task_processes
from tests.kit.waiting import HANG_S, wait_until

from asterism import Client
from asterism.formats.rmat import rmat
from asterism.records.catalog import Job
from asterism_model.schema import Feature, NodeType, Schema
from asterism_proto.errors import Conflict, InvalidRequest, NotFound
from storaged.store import block_store, keys
from storaged.store.block_store import Block, BlockStore

NODES, EDGES = 200_000, 1_500_000
WAIT_S = HANG_S
POLL_INTERVAL_S = 0.05
FULL_BUILD = {"link": "no"}
"""Options that disable linking, so that a build takes long enough to observe."""
COLUMNS = {
    "row": np.int64,
    "id": np.int64,
    "probability": np.float64,
    "alias_row": np.int64,
    "alias_id": np.int64,
    "weight": np.float32,
}
SCHEMA: dict[str, Any] = {
    "parts": 4,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": "float32"}}, "m": {}},
    "edges": {"n:to:n": {"weighted": True}, "n:at:m": {}},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, flags={"storaged": ["--concurrent-tasks", "2"]}) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected


def load_space(client: Client, space: str, nodes: int, edges: int) -> None:
    """Create a space and load rows with different weights, some of them 0."""
    client.create_space(space, SCHEMA)
    rng = np.random.default_rng(nodes)
    weights = rng.random(nodes, np.float32)
    weights[::7] = 0
    load = client.begin_load(space, source="generated")
    load.write_nodes(0, "n", np.arange(nodes), weights=weights, features={"x": weights})
    load.write_nodes(1, "m", np.arange(0, 3000, 3))
    src, dst = rmat(3, 0, 0, edges, sources=nodes, targets=nodes)
    edge_weights = rng.random(edges, np.float32)
    edge_weights[::11] = 0
    load.write_edges(2, "to", src, dst, weights=edge_weights, ends_known=True)
    load.write_edges(3, "at", np.arange(900), np.arange(900) * 3)
    load.commit()


def publish_space(client: Client, space: str, nodes: int, edges: int) -> None:
    """Load a space and publish its first version."""
    load_space(client, space, nodes, edges)
    job = client.wait(client.submit_job(space).job_id, timeout_s=WAIT_S)
    assert (job.state, job.version) == ("FINISHED", 1), job


@pytest.fixture(scope="module")
def big(client: Client) -> str:
    publish_space(client, "big", NODES, EDGES)
    return "big"


@pytest.fixture(scope="module")
def small(client: Client) -> str:
    publish_space(client, "small", 5_000, 20_000)
    return "small"


def run_job(client: Client, space: str, kind: str, **arguments: Any) -> Job:
    """Submit a job of this kind and return it once it has ended."""
    return client.wait(client.submit_job(space, kind, **arguments).job_id, timeout_s=WAIT_S)


def wait_for_job(client: Client, job_id: int, predicate: Callable[[Job], bool]) -> Job:
    return wait_until(
        lambda: job if predicate(job := client.job(job_id)) else None,
        lambda: f"the job is as expected: {client.job(job_id)}",
        poll_interval_s=POLL_INTERVAL_S,
    )


def image_folders(cluster: LocalCluster, space_id: int, job_id: int) -> list[Path]:
    """Return the folders of a version's images on all storageds."""
    return sorted(cluster.folder.glob(f"storaged-*/spaces/{space_id}/builds/{job_id}/parts/p*"))


def flip_bit(path: Path, offset: int) -> None:
    """Flip one bit of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
        file.flush()
        os.fsync(file.fileno())


# Audits.


def test_audit_finds_published_rows_and_no_error(
    cluster: LocalCluster, client: Client, small: str
) -> None:
    job = run_job(client, small, "audit")
    assert (job.state, job.cause, job.version, job.target_version) == ("FINISHED", "", 0, 1)
    manifest = client.manifest(small, 1)
    results = [task.result for task in job.tasks if task.result is not None]
    assert len(results) == 2
    for element, type_id in (("NODE", 0), ("NODE", 1), ("EDGE", 0), ("EDGE", 1)):
        audits = [
            audit
            for result in results
            for audit in result.audit
            if (audit.element, audit.type_id) == (element, type_id)
        ]
        assert sum(audit.count for audit in audits) == manifest.count(element, type_id)
        assert sum(audit.weight for audit in audits) == pytest.approx(
            manifest.weight(element, type_id), rel=1e-12
        )
        assert max(audit.table_tv for audit in audits) <= 1e-15
        assert max(audit.row_tv for audit in audits) <= 1e-14
    rows = sum(
        audit.alias_rows for result in results for audit in result.audit if audit.element == "EDGE"
    )
    assert (
        rows == 2 * 5_000
    )  # of the weighted type: each node once as a source, once as a destination
    on_disk = [
        file.stat().st_size
        for part in image_folders(cluster, manifest.space_id, manifest.job_id)
        for file in part.glob("*.bin")
    ]
    assert (
        sum(result.files_read for result in results),
        sum(result.bytes_read for result in results),
    ) == (len(on_disk), sum(on_disk))
    assert job.rows_done == job.rows_total > 5_000 + 20_000


@pytest.mark.parametrize(
    "name",
    [
        "n0.weights",
        "n0.table.hot",
        "n0.c0.values",
        "e0.out.nbr",
        "e0.in.eid",
        "e0.out.cold",
        "e1.src_row",
    ],
)
def test_flipped_bit_fails_the_audit_and_names_the_file(
    cluster: LocalCluster, client: Client, small: str, name: str
) -> None:
    manifest = client.manifest(small, 1)
    path = image_folders(cluster, manifest.space_id, manifest.job_id)[2] / f"{name}.bin"
    flip_bit(path, path.stat().st_size // 2)
    try:
        job = run_job(client, small, "audit", version=1)
    finally:
        flip_bit(path, path.stat().st_size // 2)
    assert job.state == "FAILED"
    assert f"{path.parent.name}/{name}.bin: mebibyte 0 does not match its checksum" in job.cause
    failed = next(task for task in job.tasks if task.state == "FAILED")
    assert failed.attempt == 1, "another attempt would have found the same"
    assert [cause.partition(":")[0] for cause in failed.causes] == ["attempt 1"]
    recovered = client.recover_job(job.job_id)
    assert client.wait(recovered.job_id, timeout_s=WAIT_S).state == "FINISHED"


def test_an_audit_names_a_torn_manifest_and_a_missing_file(
    cluster: LocalCluster, client: Client, small: str
) -> None:
    manifest = client.manifest(small, 1)
    folder = image_folders(cluster, manifest.space_id, manifest.job_id)[1]
    for file, message in (("manifest.json", "digest"), ("e0.out.indptr.bin", "missing")):
        path = folder / file
        content = path.read_bytes()
        path.unlink()
        if file == "manifest.json":
            path.write_bytes(content.replace(b'"part":', b'"part": '))
        job = run_job(client, small, "audit")
        path.write_bytes(content)
        assert job.state == "FAILED"
        assert message in job.cause
    assert run_job(client, small, "audit").state == "FINISHED"


def test_audit_of_a_missing_version_is_refused(client: Client, small: str) -> None:
    with pytest.raises(NotFound, match="version 9"):
        client.submit_job(small, "audit", version=9)
    with pytest.raises(InvalidRequest, match="does not read a version"):
        client.submit_job(small, "compact", version=1)
    with pytest.raises(InvalidRequest, match="speed"):
        client.submit_job(small, "export-tables", options={"speed": "9"})


# Exports.


def test_exported_tables_match_the_published_version(
    cluster: LocalCluster, client: Client, small: str
) -> None:
    job = run_job(
        client,
        small,
        "export-tables",
        options={"format": "csv,parquet", "to": f"file://{cluster.folder}/out"},
    )
    assert job.state == "FINISHED", job.cause
    manifest = client.manifest(small)
    tables: dict[tuple[str, int, int], Any] = {}
    for task in job.tasks:
        assert task.result is not None
        folder = Path(task.result.folder.removeprefix("file://"))
        export_manifest = json.loads((folder / f"manifest-{task.host}.json").read_text())
        assert (
            export_manifest["space"],
            export_manifest["version"],
            export_manifest["digest"],
        ) == (small, 1, manifest.digest)
        for file, entry in zip(task.result.files, export_manifest["files"], strict=True):
            path = folder / file.path
            assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256 == entry["sha256"]
            assert (path.stat().st_size, file.rows) == (file.bytes, entry["rows"])
            table = (pyarrow.csv.read_csv if file.format == "csv" else pyarrow.parquet.read_table)(
                path
            )
            assert table.column_names == list(COLUMNS)
            columns = {
                name: table[name].to_numpy().astype(dtype) for name, dtype in COLUMNS.items()
            }
            assert table.num_rows == file.rows
            first_columns = tables.setdefault((file.element, file.type_id, file.part), columns)
            for name, column in columns.items():
                assert np.array_equal(column, first_columns[name]), (
                    f"{name} of {file.path} differs between the formats"
                )
    assert {(element, type_id) for element, type_id, _ in tables} == {
        ("NODE", 0),
        ("NODE", 1),
        ("EDGE", 0),
        ("EDGE", 1),
    }
    for total in manifest.totals:
        columns = tables[total.element, total.type_id, total.part]
        assert columns["row"].size == total.positive
        assert columns["weight"].astype(np.float64).sum() == pytest.approx(total.weight, rel=1e-12)
        probabilities = columns["probability"] + np.bincount(
            columns["alias_row"], 1 - columns["probability"], columns["row"].size
        )
        expected = columns["weight"].astype(np.float64) / total.weight * columns["row"].size
        assert np.abs(probabilities - expected).sum() / columns["row"].size <= 1e-12
        assert np.array_equal(columns["id"][columns["alias_row"]], columns["alias_id"])
    nodes = np.sort(np.concatenate([tables["NODE", 1, part]["id"] for part in range(4)]))
    assert np.array_equal(nodes, np.arange(0, 3000, 3))


def test_tables_without_an_address_stay_in_local_folders(
    cluster: LocalCluster, client: Client, small: str
) -> None:
    job = run_job(client, small, "export-tables", options={"format": "csv"})
    assert (job.state, dict(job.options)) == ("FINISHED", {"format": "csv"})
    files = {
        path.name
        for path in cluster.folder.glob(f"storaged-*/exports/small-v1-job{job.job_id}/*.csv")
    }
    assert files == {
        f"p{part:05d}-{kind}-weight.csv" for part in range(4) for kind in ("n0", "n1", "e0", "e1")
    }
    (path,) = cluster.folder.glob(
        f"storaged-*/exports/small-v1-job{job.job_id}/p00001-n0-weight.csv"
    )
    with path.open() as lines:
        assert all(int(line["id"]) % 4 == 1 for line in csv.DictReader(lines))
    assert all(
        task.result is None or task.result.files == ()
        for past_job in client.jobs(small)
        for task in past_job.tasks
    )


# Compactions.


def test_compaction_reports_sizes_and_keeps_the_version(
    cluster: LocalCluster, client: Client, small: str
) -> None:
    digest = client.manifest(small).digest
    job = run_job(client, small, "compact")
    assert job.state == "FINISHED", job.cause
    space_id = client.describe(small).space_id
    for task in job.tasks:
        assert task.result is not None
        assert 0 < task.result.bytes_after <= task.result.bytes_before * 1.05 + 100_000
    bytes_on_disk = sum(
        file.stat().st_size for file in cluster.folder.glob(f"storaged-*/spaces/{space_id}/graph/*")
    )
    assert bytes_on_disk == pytest.approx(
        sum(task.result.bytes_after for task in job.tasks if task.result), rel=0.2, abs=200_000
    )
    assert client.manifest(small).digest == digest
    assert run_job(client, small, "audit").state == "FINISHED"


def test_compaction_reclaims_overwritten_blocks(tmp_path: Path) -> None:
    store = BlockStore.open(
        tmp_path / "graph",
        Schema(
            node_types=(NodeType(name="n", features=(Feature(name="x", shape=(64,)),)),), parts=1
        ),
    )
    rng = np.random.default_rng(5)
    for _ in range(8):  # the same load sent repeatedly: each replay replaces the one before
        arrays = {"ids": np.arange(20_000), "f:x": rng.random((20_000, 64), np.float32)}
        store.write(
            [Block(load_id=1, chunk=0, kind=block_store.NODES, type_id=0, part=0, arrays=arrays)]
        )
    for family in store.families:
        store.compact(family, lambda: False)
    refs = store.refs(0, (block_store.NODES | keys.COLUMNS,), 0, (1,))
    assert sum(ref.rows for ref in refs) == 20_000
    assert sum(ref.size for ref in refs) <= store.size() <= 1.6 * sum(ref.size for ref in refs), (
        "the ghosts of replays take space"
    )
    features = np.concatenate([store.read(ref)["f:x"] for ref in refs])
    assert np.array_equal(features, arrays["f:x"])
    store.close()


# Sharing and queueing.


def test_concurrent_identical_submits_share_one_job(
    cluster: LocalCluster, client: Client, small: str
) -> None:
    """A stopped storaged keeps the first job running."""
    os.killpg(cluster["storaged-1"].pid, signal.SIGSTOP)
    try:
        submissions: list[tuple[str, dict[str, Any]]] = [
            ("build", {}),
            ("audit", {}),
            ("audit", {"version": 1}),
            ("export-tables", {"options": {"format": "csv"}}),
            ("export-tables", {"options": {"format": "parquet"}}),
            ("export-tables", {}),
            ("compact", {}),
        ]
        with ThreadPoolExecutor(50) as pool:
            for kind, arguments in submissions:
                ids = list(
                    pool.map(
                        lambda _, k=kind, a=arguments: client.submit_job(small, k, **a).job_id,
                        range(50),
                    )
                )
                assert len(set(ids)) == 1, (kind, arguments)
        active_jobs = client.jobs(small, ("QUEUE", "RUNNING"))
        # Version 0 means the current one, 1. The default export format is Parquet.
        assert [job.kind for job in reversed(active_jobs)] == [
            "build",
            "audit",
            "export-tables",
            "export-tables",
            "compact",
        ]
        assert [job.state for job in reversed(active_jobs)] == [
            "RUNNING",
            "QUEUE",
            "QUEUE",
            "QUEUE",
            "QUEUE",
        ]
    finally:
        os.killpg(cluster["storaged-1"].pid, signal.SIGCONT)
    for job in reversed(active_jobs):
        assert client.wait(job.job_id, timeout_s=WAIT_S).state == "FINISHED"
    finished_jobs = [client.job(job.job_id) for job in reversed(active_jobs)]
    assert all(
        one.finished_ms <= other.started_ms for one, other in itertools.pairwise(finished_jobs)
    ), "two jobs of a space at once"


def test_submit_after_an_acknowledged_write_starts_a_new_job(
    cluster: LocalCluster, client: Client, small: str
) -> None:
    block_store = client.graph(small)
    os.killpg(cluster["storaged-1"].pid, signal.SIGSTOP)
    try:
        first = {
            kind: client.submit_job(small, kind).job_id for kind in ("build", "audit", "compact")
        }
    finally:
        os.killpg(cluster["storaged-1"].pid, signal.SIGCONT)
    block_store.upsert_nodes([3], "n", weights=[2.5])
    second = {kind: client.submit_job(small, kind).job_id for kind in first}
    assert not set(first.values()) & set(second.values())
    built = client.wait(second["build"], timeout_s=WAIT_S)
    assert built.state == "FINISHED"
    assert built.watermark > client.job(first["build"]).watermark
    for job_id in (*first.values(), *second.values()):
        assert client.wait(job_id, timeout_s=WAIT_S).state == "FINISHED"


def test_a_small_space_does_not_wait_for_a_large_one(client: Client, big: str, small: str) -> None:
    client.graph(big).upsert_nodes([0], "n", weights=[0.25])
    large = client.submit_job(big, options=FULL_BUILD)
    audit = run_job(client, small, "audit")
    built = client.wait(large.job_id, timeout_s=WAIT_S)
    assert (audit.state, built.state) == ("FINISHED", "FINISHED")
    assert built.started_ms <= audit.started_ms < audit.finished_ms < built.finished_ms


# Progress and stopping.


def submit_and_stop(client: Client, space: str, kind: str, fraction: float) -> Job:
    """Submit a job and stop it once `fraction` of its rows is done.

    A job that ends earlier is submitted again.
    """
    while True:
        client.graph(space).upsert_nodes(
            [2], "n", weights=[float(np.random.default_rng().random()) + 1]
        )
        job = client.submit_job(space, kind, options=FULL_BUILD if kind == "build" else {})
        with contextlib.suppress(Conflict):  # it has finished
            wait_for_job(
                client,
                job.job_id,
                lambda job: job.ended or job.rows_done >= fraction * job.rows_total,
            )
            client.stop_job(job.job_id)
            return job


def test_running_job_reports_row_rate_and_remaining_time(
    cluster: LocalCluster, client: Client, big: str
) -> None:
    client.graph(big).upsert_nodes([1], "n", weights=[0.5])
    job = client.submit_job(big, options=FULL_BUILD)
    snapshots: list[tuple[float, Job]] = []
    client.wait(
        job.job_id,
        timeout_s=WAIT_S,
        on_progress=lambda job: snapshots.append((time.monotonic(), job)),
    )
    ended_at = snapshots[-1][0]
    with_rate = [(seen_at, snapshot) for seen_at, snapshot in snapshots if snapshot.rows_per_s > 0]
    assert with_rate
    assert all(snapshot.rows_done <= snapshot.rows_total for _, snapshot in snapshots)
    estimates = [
        (snapshot.eta_s, ended_at - seen_at)
        for seen_at, snapshot in with_rate
        if snapshot.eta_s > 0
    ]
    assert estimates
    assert min(abs(estimate - actual) for estimate, actual in estimates) < 5.0
    with urllib.request.urlopen(
        f"http://{cluster['metad'].http_address}/api/v1/jobs/{job.job_id}", timeout=HANG_S
    ) as reply:
        assert json.load(reply)["progress"]["rows_per_s"] is None, "nothing runs any more"


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("build", 0.0),
        ("build", 0.1),
        ("build", 0.6),
        ("audit", 0.0),
        ("audit", 0.5),
        ("export-tables", 0.0),
        ("export-tables", 0.5),
        ("compact", 0.0),
    ],
)
def test_job_stops_at_any_point(
    cluster: LocalCluster, client: Client, big: str, kind: str, after: float
) -> None:
    job = submit_and_stop(client, big, kind, after)
    stopped = wait_for_job(client, job.job_id, lambda job: job.ended)
    assert stopped.state == "STOPPED"
    assert {task.state for task in stopped.tasks} <= {"STOPPED", "FINISHED"}
    busy = [
        name_of(process) for i in range(2) for process in task_processes(cluster, f"storaged-{i}")
    ]
    assert busy == [], "a host gave its word and works on"
    assert not list(cluster.folder.glob(f"storaged-*/exports/big-v*-job{job.job_id}"))
    client.recover_job(job.job_id)
    assert client.wait(job.job_id, timeout_s=WAIT_S).state == "FINISHED"


def test_task_waiting_for_a_slot_can_be_stopped(tmp_path: Path) -> None:
    with LocalCluster(storageds=1) as cluster, cluster.client() as client:
        load_space(client, "long", NODES, EDGES // 2)
        publish_space(client, "short", 1_000, 1_000)
        large_job, waiting_job = (
            client.submit_job("long", options=FULL_BUILD),
            client.submit_job("short", "audit"),
        )
        wait_for_job(
            client, waiting_job.job_id, lambda job: job.tasks[0].phase == "waits for a slot"
        )
        client.stop_job(waiting_job.job_id)
        assert wait_for_job(client, waiting_job.job_id, lambda job: job.ended).state == "STOPPED"
        assert client.job(large_job.job_id).state == "RUNNING"
        assert client.wait(large_job.job_id, timeout_s=WAIT_S).state == "FINISHED"
