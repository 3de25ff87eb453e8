"""Backups and exports in an object store.

Restored data has the same bytes, kills leave no files, and errors name the damage and the address.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import cases, zygote
from tests.kit.cluster import LocalCluster
from tests.kit.objects import SECRET, ObjectStore
from tests.kit.waiting import HANG_S, let_pass, wait_until

from asterism import Client, InvalidRequest
from asterism.cli.exit_codes import ExitCode
from asterism_model.backup_manifest import MANIFEST_FILE, BackupManifest

LIMIT_S = HANG_S
CASES_PARTS = 2
"""Partitions of the space with every kind of data; each has 142 files."""
LARGE_PARTS = 3
LARGE_ROWS = 4500
"""Nodes of the space with large images; each has a feature of 16 kB."""
BLOCK = 8 << 20


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with ObjectStore(tmp_path_factory.mktemp("objects")) as object_store:
        yield object_store


@pytest.fixture(scope="module")
def cluster(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three storageds that log at debug level, with three spaces.

    One space has every kind of data, one few and small files, and images of the third are uploaded
    in several pieces.
    """
    folder = tmp_path_factory.mktemp("cluster")
    allowed = [f"file://{folder.parent}", store.address, "s3://no-such-bucket"]
    debug = {"storaged": ["--log-level", "DEBUG"]}
    zygote.ZYGOTE.preload("s3fs")
    with LocalCluster(
        LARGE_PARTS, 1, folder=folder, environment=store.environment, flags=debug, allowed=allowed
    ) as local_cluster:
        client = local_cluster.client()
        graph = cases.load(client, "cases", parts=CASES_PARTS)
        graph.delete_nodes(cases.person_ids()[5:10], "person")
        graph.upsert_nodes(cases.person_ids()[5:10], "person", weights=np.full(5, 0.5))
        graph.build(timeout_s=LIMIT_S)
        small_schema = {"parts": 4, "nodes": {"n": {}}, "edges": {"n:to:n": {}}}
        client.create_space("small", small_schema)
        small, nodes = client.graph("small"), np.arange(100)
        small.upsert_nodes(nodes, "n")
        small.upsert_edges(nodes, nodes[::-1], "to")
        small.build(timeout_s=LIMIT_S)
        chunk_rows, width = 900, 4000
        client.create_space(
            "large", {"parts": LARGE_PARTS, "nodes": {"n": {"features": {"x": {"shape": width}}}}}
        )
        load, rng = client.begin_load("large"), np.random.default_rng(3)
        for chunk, low in enumerate(range(0, LARGE_ROWS, chunk_rows)):
            load.write_nodes(
                chunk,
                "n",
                np.arange(low, low + chunk_rows),
                features={"x": rng.random((chunk_rows, width), np.float32)},
            )
        load.commit()
        client.graph("large").build(timeout_s=LIMIT_S)
        yield local_cluster


@pytest.fixture(scope="module")
def run(cluster: LocalCluster, store: ObjectStore) -> Callable[..., tuple[int, Any]]:
    """Return a function that runs the command with the cluster's credentials.

    The function returns the exit code, and the JSON document or the error text.
    """

    def run_command(*arguments: object) -> tuple[int, Any]:
        completed = zygote.run(
            *("asterism.cli", "--address", cluster.addresses, "--json", *arguments),
            added_environment=store.environment,
        )
        return completed.returncode, (
            json.loads(completed.stdout) if completed.stdout else completed.stderr
        )

    return run_command


Run = Callable[..., tuple[int, Any]]


def record_of(store: ObjectStore, folder: str) -> BackupManifest:
    return BackupManifest.from_bytes(store.get(f"{folder}/{MANIFEST_FILE}"))


def test_object_store_backup_restores_the_same_bytes(
    cluster: LocalCluster, store: ObjectStore, run: Run
) -> None:
    client = cluster.client()
    code, output = run("backup", "cases", f"{store.address}/cases")
    assert (code, output["version"], output["address"]) == (0, 2, f"{store.address}/cases"), output
    record = record_of(store, "cases")
    assert {f"cases/{file.path}" for file in record.files} | {f"cases/{MANIFEST_FILE}"} == set(
        store.keys("cases/")
    )
    for file in record.files:
        content = store.get(f"cases/{file.path}")
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.bytes, file.sha256), (
            file.path
        )
    assert store.uploads() == []
    heads = store.count_requests("HEAD", "cases/parts/")
    code, output = run("restore", f"{store.address}/cases", "--name", "back")
    assert (code, output["name"], output["version"]) == (0, "back", 2), output
    asked = store.count_requests("HEAD", "cases/parts/") - heads
    assert asked < len(record.files) / 4, "a small file is read by a single request"
    assert client.manifest("back").digest == client.manifest("cases").digest == record.digest
    assert cases.call_digests(client.graph("back")) == cases.call_digests(client.graph("cases"))
    write_times = store.write_times("cases/")
    let_pass(1.1)  # the clock of the store counts seconds
    assert run("backup", "cases", f"{store.address}/cases")[0] == 0
    assert store.write_times("cases/") == write_times, "what is there is not written twice"
    code, output = run("backup", "large", f"{store.address}/cases")
    assert (code, "it has one of version 2 of 'cases'" in output) == (
        ExitCode.CONFLICT,
        True,
    ), output


@pytest.mark.parametrize("name", ["parts/p00002/blocks.bin", "parts/p00003/image/e0.out.nbr.bin"])
def test_restore_names_a_damaged_object_and_can_resume(
    store: ObjectStore, run: Run, name: str
) -> None:
    if not store.keys("damaged/"):
        assert run("backup", "small", f"{store.address}/damaged")[0] == 0
    key = f"damaged/{name}"
    content = store.get(key)
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 4
    for damage, message in (
        (lambda: store.put(key, bytes(flipped)), name),
        (lambda: store.put(key, content + b"more"), name),
        (lambda: store.put(key, content[:-1]), name),
        (lambda: store.put(key, b""), name),
        (lambda: store.delete(key), f"{name}: missing"),
    ):
        damage()
        code, output = run("restore", f"{store.address}/damaged", "--name", "mended")
        assert (code, message in output) == (ExitCode.CORRUPT, True), output
    store.put(key, content)
    code, output = run("restore", f"{store.address}/damaged", "--name", "mended")
    assert (code, output["version"]) == (0, 1), output
    assert run("space", "drop", "mended", "--yes")[0] == 0


def test_storaged_killed_during_backup_and_restore_resumes(
    cluster: LocalCluster, store: ObjectStore, run: Run
) -> None:
    client = cluster.client(timeout_s=HANG_S)
    node_ids = np.arange(0, LARGE_ROWS, 7)
    expected = cases.digest(client.graph("large").node_features(node_ids, ["x"], "n"))
    victim = _storaged_name(cluster, client, client.describe("large").hosts[1][0])
    job = client.submit_job("large", "backup", options={"to": f"{store.address}/large"})
    wait_until(
        lambda: [key for key in store.uploads() if "/p00001/" in key],
        "its part is being uploaded",
        poll_interval_s=0.002,
    )
    cluster.kill(victim)
    completed_parts = {
        key: store.modified_at(key) for key in store.keys("large/") if key.endswith("part.json")
    }
    assert "large/parts/p00001/part.json" not in completed_parts
    cluster.restart(victim)
    finished_job = client.wait(job.job_id, timeout_s=LIMIT_S)
    assert (
        finished_job.state,
        any("restarted" in cause for task in finished_job.tasks for cause in task.causes),
    ) == ("FINISHED", True), finished_job
    code, output = run("backup", "large", f"{store.address}/large")
    assert (code, output["parts"]) == (0, LARGE_PARTS), output
    assert {key: store.modified_at(key) for key in completed_parts} == completed_parts, (
        "parts that were complete are not sent again"
    )
    assert max(file.bytes for file in record_of(store, "large").files) > BLOCK
    options = {
        "from": f"{store.address}/large",
        "sha256": hashlib.sha256(store.get(f"large/{MANIFEST_FILE}")).hexdigest(),
    }
    restore = [
        sys.executable,
        "-m",
        "asterism.cli",
        "--address",
        cluster.addresses,
        "restore",
        options["from"],
        "--name",
        "fetched",
    ]
    process = subprocess.Popen(
        restore,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **store.environment},  # noqa: TID251 - inherited, with additions
    )
    space = wait_until(
        lambda: [i for i in client.spaces() if i.name == "fetched"],
        "the space is there",
        poll_interval_s=0.002,
    )[0]
    folder = cluster.folder_of(victim) / "spaces" / str(space.space_id) / "builds"
    wait_until(
        lambda: [path for path in folder.glob("*/parts/*/*") if path.stat().st_size],
        "a file of its image is there",
        poll_interval_s=0.002,
    )
    cluster.kill(victim)
    process.kill()
    process.wait()
    cluster.restart(victim)
    code, output = run("restore", options["from"], "--name", "fetched")
    assert (code, output["version"]) == (0, 1), output
    assert client.manifest("fetched").digest == client.manifest("large").digest
    assert cases.digest(client.graph("fetched").node_features(node_ids, ["x"], "n")) == expected


def _storaged_name(cluster: LocalCluster, client: Client, uuid: str) -> str:
    address = next(host.address for host in client.hosts() if host.uuid == uuid)
    return next(name for name, daemon in cluster.daemons.items() if daemon.address == address)


def test_tables_exported_to_an_object_store_are_identical(
    cluster: LocalCluster, store: ObjectStore, tmp_path: Path
) -> None:
    client = cluster.client()
    local_job = client.wait(
        client.submit_job("cases", "export-tables", options={"to": f"file://{tmp_path}/t"}).job_id,
        timeout_s=LIMIT_S,
    )
    remote_job = client.wait(
        client.submit_job(
            "cases", "export-tables", options={"to": f"{store.address}/tables"}
        ).job_id,
        timeout_s=LIMIT_S,
    )
    assert (local_job.state, remote_job.state) == ("FINISHED", "FINISHED"), remote_job
    folder = f"tables/cases-v2-job{remote_job.job_id}"
    expected_keys = {f"{folder}/manifest-{task.host}.json" for task in remote_job.tasks}
    for task in remote_job.tasks:
        assert task.result is not None
        assert task.result.folder == f"{store.address}/cases-v2-job{remote_job.job_id}".replace(
            "kept/", "kept/tables/"
        )
        for file in task.result.files:
            content = store.get(f"{folder}/{file.path}")
            assert (len(content), hashlib.sha256(content).hexdigest()) == (file.bytes, file.sha256)
            assert (
                content
                == (tmp_path / "t" / f"cases-v2-job{local_job.job_id}" / file.path).read_bytes()
            )
            expected_keys.add(f"{folder}/{file.path}")
    assert expected_keys == set(store.keys("tables/"))
    assert not any(key.startswith("tables/") for key in store.uploads())


def test_secrets_stay_hidden_and_missing_buckets_are_named(
    cluster: LocalCluster, store: ObjectStore, run: Run
) -> None:
    client = cluster.client()
    buckets = store.buckets()
    code, output = run("backup", "cases", "s3://no-such-bucket/x")
    assert (code, "no-such-bucket" in output) == (ExitCode.UNAVAILABLE, True), output
    for kind in ("backup", "export-tables"):
        job = client.wait(
            client.submit_job("cases", kind, options={"to": "s3://no-such-bucket/x"}).job_id,
            timeout_s=LIMIT_S,
        )
        assert (job.state, "the bucket or folder for it does not exist" in job.cause) == (
            "FAILED",
            True,
        ), job
        assert all(task.attempt <= 1 for task in job.tasks), (
            "another attempt would come to the same"
        )
    assert store.buckets() == buckets, "no request creates a bucket"
    address = f"s3://AKIAME:{SECRET}@kept/x"
    code, output = run("backup", "cases", address)
    assert (code, "takes no user and password" in output) == (ExitCode.USAGE, True), output
    texts = [output]
    for kind in ("backup", "export-tables"):
        with pytest.raises(InvalidRequest, match="without user and password") as caught:
            client.submit_job("cases", kind, options={"to": address})
        texts.append(str(caught.value))
    texts += [str(client.jobs(limit=100)), json.dumps(cluster.get("metad", "/api/v1/jobs"))]
    texts += [daemon.log.read_text() for daemon in cluster.daemons.values()]
    assert "DEBUG" in json.dumps(cluster.get("storaged-0", "/flags")), (
        "the storageds say all that they can"
    )
    for secret in (SECRET, store.environment["AWS_ACCESS_KEY_ID"], "AWS4-HMAC", "AKIAME"):
        assert [text for text in texts if secret in text] == [], secret


MEASURING_PROGRAM = """
import resource, sys, tempfile
from asterism_io.remote_storage import RemoteFolder
folder = RemoteFolder(sys.argv[1])
def pieces(n):
    for i in range(n):
        yield bytes([i % 251]) * (1 << 20)
for file in (folder.write("small", pieces(24)), folder.put("empty", b"")):
    assert sum(map(len, folder.read_pieces(file))) == file.bytes
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
file = folder.write("large", pieces(144))
assert sum(map(len, folder.read_pieces(file))) == 144 << 20
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_large_file_is_transferred_in_constant_memory(store: ObjectStore) -> None:
    environment = {**os.environ, **store.environment}  # noqa: TID251 - as above
    command = [sys.executable, "-c", MEASURING_PROGRAM, f"{store.address}/measured"]
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, env=environment, check=False
    )
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) < 32, "MiB more for six times the bytes"
    for key in store.keys("measured/"):
        store.delete(key)
