"""Backup and restore on real processes: equal samples, more builds, damage, kills."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import cases, zygote
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, wait_until

import asterism
from asterism import Client, Graph
from asterism_model.backup_manifest import MANIFEST_FILE, BackupManifest

LIMIT_S = HANG_S
PARTS = 6
"""Partitions of the space that is backed up; each has 142 files."""
CONTENT_CALLS = (
    *("scan of nodes", "scan of nodes by name", "scan of edges", "scan of edges by name"),
    *("scan of plain edges", "node features", "paper features", "edge features"),
    *("nodes", "edges", "fanout", "fanout against the edges", "walks", "statement"),
)
"""Calls of `cases.calls` that read rows of every type, and some that sample."""
SECRET = "hunter2"
REFUSING_ADDRESS = "sftp://127.0.0.1:1"
"""Address on which no server listens."""


def write_two_versions(client: Client, space: str) -> Graph:
    """Write the test cases as two versions, and one load after them that no version contains.

    The second version has deletes and a load with a resume key.
    """
    graph = cases.load(client, space, parts=PARTS)
    load = client.begin_load(space, source="more.csv", resume_key="more")
    load.write_edges(
        0, "cites", np.arange(20), np.arange(20)[::-1].copy(), weights=np.linspace(1, 2, 20)
    )
    load.commit()
    graph.delete_nodes(cases.person_ids()[5:10], "person")
    graph.upsert_nodes(cases.person_ids()[5:10], "person", weights=np.full(5, 0.5))
    graph.delete_edges(*(ends[30:40] for ends in cases.edges()["by"][:2]), "by")
    assert graph.build(timeout_s=LIMIT_S).version == 2
    graph.upsert_nodes([777], "paper")
    return graph


def content_digests(client: Client, space: str) -> dict[str, str]:
    """Return digests of some calls, after an audit has compared every file with its checksums.

    `cases.call_digests` reads the same files in more ways.
    """
    job = client.submit_job(space, "audit")
    assert client.wait(job.job_id, timeout_s=LIMIT_S).state == "FINISHED"
    calls = cases.calls(client.graph(space))
    return {name: cases.digest(calls[name]()) for name in CONTENT_CALLS}


def continue_writing(client: Client, space: str) -> dict[str, str]:
    """Write more data and build; return digests that any copy of the space must reproduce."""
    graph = client.graph(space)
    resumed_load = client.begin_load(space, source="more.csv", resume_key="more")
    assert resumed_load.commit_number, "a load that is in the backup is known by its key"
    graph.upsert_edges(
        cases.person_ids()[50:80], np.arange(30), "writes", weights=np.linspace(5, 9, 30)
    )
    graph.upsert_nodes([778, 779], "paper")
    graph.delete_nodes([3], "paper")
    graph.build(timeout_s=LIMIT_S)
    return cases.call_digests(graph)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("source")
    with LocalCluster(
        3, 1, folder=folder, allowed=[f"file://{folder.parent}", REFUSING_ADDRESS]
    ) as cluster:
        write_two_versions(cluster.client(), "cases")
        yield cluster


@pytest.fixture(scope="module")
def backup_folder(source: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backups") / "cases"
    info = source.client().backup("cases", folder, timeout_s=LIMIT_S)
    assert (info.version, info.parts, info.address) == (2, PARTS, folder.as_uri())
    return folder


@pytest.fixture(scope="module")
def expected(source: LocalCluster, backup_folder: Path) -> dict[str, str]:
    """Digests of every call on the version that was backed up."""
    return cases.call_digests(source.client().graph("cases"))


def test_restore_on_fewer_hosts_is_identical_and_continues(
    source: LocalCluster, backup_folder: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    source_client = source.client()
    source_manifest = source_client.manifest("cases")
    with LocalCluster(2, 1, folder=tmp_path) as other_cluster:
        client = other_cluster.client()
        # So that spaces, loads and jobs have other ids here.
        client.create_space("something_else", {"nodes": {"n": {}}})
        load = client.begin_load("something_else")
        load.write_nodes(0, "n", np.array([1]))
        load.commit()
        client.graph("something_else").build(timeout_s=LIMIT_S)
        space = client.restore(backup_folder, timeout_s=LIMIT_S)
        assert (space.name, space.version, {len(hosts) for hosts in space.hosts}) == (
            "cases",
            2,
            {1},
        )
        assert len({host for hosts in space.hosts for host in hosts}) == 2
        assert client.manifest("cases").digest == source_manifest.digest
        assert client.manifest("cases").totals == source_manifest.totals
        graph = client.graph("cases")
        assert cases.call_digests(graph) == expected
        assert not graph.find_nodes([777], "paper").any(), (
            "what no version showed is not in its backup"
        )
        source_client.graph("cases").delete_nodes([777], "paper")
        continued = continue_writing(source_client, "cases")
        assert continue_writing(client, "cases") == continued
        assert client.describe("cases").version == 3
        content = content_digests(client, "cases")
        other_cluster.kill("storaged-0")
        other_cluster.restart("storaged-0")
        assert content_digests(client, "cases") == content
        # A restored space can be backed up and restored like any other.
        client.backup("cases", tmp_path / "again", timeout_s=LIMIT_S)
        client.restore(tmp_path / "again", "third", timeout_s=LIMIT_S)
        assert client.manifest("third").digest == client.manifest("cases").digest
        with pytest.raises(asterism.Conflict, match="exists already"):
            client.restore(backup_folder, "something_else")


def test_existing_backup_is_neither_rewritten_nor_overwritten(
    source: LocalCluster, backup_folder: Path
) -> None:
    client = source.client()
    before = {path: path.stat().st_mtime_ns for path in backup_folder.rglob("*")}
    second = client.backup("cases", backup_folder, version=2, timeout_s=LIMIT_S)
    assert {path: path.stat().st_mtime_ns for path in backup_folder.rglob("*")} == before
    record = BackupManifest.from_bytes((backup_folder / MANIFEST_FILE).read_bytes())
    assert (second.files, second.digest) == (len(record.files), record.digest)
    assert {file.path for file in record.files} | {MANIFEST_FILE} == {
        str(path.relative_to(backup_folder)) for path in backup_folder.rglob("*") if path.is_file()
    }
    client.create_space("tiny", {"nodes": {"n": {}}}, if_not_exists=True)
    client.graph("tiny").upsert_nodes([1], "n")
    client.graph("tiny").build(timeout_s=LIMIT_S)
    with pytest.raises(asterism.Conflict, match="it has one of version 2 of 'cases'"):
        client.backup("tiny", backup_folder)


@pytest.mark.parametrize(
    "name",
    [
        "catalog.pb",
        "parts/p00003/blocks.bin",
        "parts/p00004/image/manifest.json",
        "parts/p00005/image/e0.out.nbr.bin",
    ],
)
def test_damaged_file_is_named_and_restore_resumes_once_repaired(
    source: LocalCluster, backup_folder: Path, name: str
) -> None:
    client, space = source.client(), "damaged"
    path = backup_folder / name
    content = path.read_bytes()
    path.write_bytes(
        content[: len(content) // 2]
        + bytes([content[len(content) // 2] ^ 4])
        + content[len(content) // 2 + 1 :]
    )
    try:
        with pytest.raises(asterism.Corrupt, match=name):
            client.restore(backup_folder, space, timeout_s=LIMIT_S)
        path.unlink()
        with pytest.raises(asterism.Corrupt, match=f"{name}: missing"):
            client.restore(backup_folder, space, timeout_s=LIMIT_S)
        if space in {info.name for info in client.spaces()}:
            assert client.describe(space).version == 0
            with pytest.raises(asterism.NotReady, match="being restored"):
                client.graph(space).upsert_nodes([1], "paper")
            with pytest.raises(asterism.NotReady, match="being restored"):
                client.graph(space).build()
    finally:
        path.write_bytes(content)
    assert client.restore(backup_folder, space, timeout_s=LIMIT_S).version == 2
    client.drop_space(space)


def test_incomplete_backup_is_not_found(
    source: LocalCluster, backup_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(asterism.NotFound, match="expected a finished backup"):
        source.client().restore(tmp_path / "nothing", "x")
    record = (backup_folder / MANIFEST_FILE).read_bytes()
    (backup_folder / MANIFEST_FILE).rename(backup_folder / "aside")
    try:
        with pytest.raises(asterism.NotFound, match="expected a finished backup"):
            source.client().restore(backup_folder, "x")
    finally:
        (backup_folder / "aside").rename(backup_folder / MANIFEST_FILE)
    assert (backup_folder / MANIFEST_FILE).read_bytes() == record
    assert "x" not in {space.name for space in source.client().spaces()}


@pytest.mark.parametrize("name", ["storaged-1", "metad"])
def test_backup_and_restore_survive_killed_daemons(
    source: LocalCluster, tmp_path: Path, name: str
) -> None:
    client = source.client(timeout_s=HANG_S)
    expected = content_digests(client, "cases")
    version = client.describe("cases").version
    job = client.submit_job("cases", "backup", options={"to": (tmp_path / "kept").as_uri()})
    wait_until((tmp_path / "kept").exists, "the backup has begun", poll_interval_s=0.002)
    source.kill(name)
    source.restart(name)
    finished = client.wait(job.job_id, timeout_s=LIMIT_S)
    assert finished.state == "FINISHED", finished
    assert client.backup("cases", tmp_path / "kept", timeout_s=LIMIT_S).version == version
    space = f"killed_{name.replace('-', '_')}"
    restore = [
        sys.executable,
        "-m",
        "asterism.cli",
        "--address",
        source.addresses,
        "restore",
        str(tmp_path / "kept"),
        "--name",
        space,
        "--json",
    ]
    process = subprocess.Popen(restore, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(
        lambda: any(job.kind == "restore" and job.space == space for job in client.jobs(limit=5)),
        "the restore has begun",
    )
    source.kill(name)
    process.kill()  # the client too: another client repeats the request
    process.communicate()
    source.restart(name)
    assert client.restore(tmp_path / "kept", space, timeout_s=LIMIT_S).version == version
    assert client.manifest(space).digest == client.manifest("cases").digest
    assert content_digests(client, space) == expected
    client.drop_space(space)


def test_repeated_restore_returns_one_that_finished_meanwhile(
    source: LocalCluster, backup_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = source.client(), source.client()
    original_catalog = client.session.catalog

    def catalog_with_concurrent_restore(name: str, request: Any) -> Any:
        reply = original_catalog(name, request)
        if name == "import_space":  # the first client's job ends before this client requests one
            other.restore(backup_folder, "found_done", timeout_s=LIMIT_S)
        return reply

    monkeypatch.setattr(client.session, "catalog", catalog_with_concurrent_restore)
    assert client.restore(backup_folder, "found_done", timeout_s=LIMIT_S).version == 2
    assert [job.kind for job in client.jobs("found_done")] == ["restore"]
    client.drop_space("found_done")


def test_secrets_of_an_address_reach_neither_responses_nor_logs(source: LocalCluster) -> None:
    client = source.client()
    address = f"{REFUSING_ADDRESS}/folder".replace("//", f"//me:{SECRET}@")
    with pytest.raises(asterism.Unavailable) as unavailable:
        client.backup("cases", address)
    assert SECRET not in str(unavailable.value)
    job = client.submit_job("cases", "backup", options={"to": address})
    job = client.wait(job.job_id, timeout_s=LIMIT_S)
    assert (job.state, job.options) == ("FAILED", {"to": "sftp://***@127.0.0.1:1/folder"})
    with pytest.raises(asterism.InvalidRequest) as invalid:
        client.submit_job("cases", "backup", options={"to": f"no address:{SECRET}://me:{SECRET}@"})
    assert f"me:{SECRET}" not in str(invalid.value)
    outputs = [
        str(job),
        str(client.jobs(limit=50)),
        json.dumps(source.get("metad", "/api/v1/jobs")),
        json.dumps(source.get("metad", f"/api/v1/jobs/{job.job_id}")),
    ]
    outputs += [daemon.log.read_text() for daemon in source.daemons.values()]
    assert [text for text in outputs if f"me:{SECRET}" in text] == []


def test_commands_and_embedded_folders_back_up_and_restore(
    source: LocalCluster, expected: dict[str, str], tmp_path: Path
) -> None:
    def run(*arguments: object) -> Any:
        completed = zygote.run("asterism.cli", "--json", *arguments)
        return completed.returncode, json.loads(
            completed.stdout
        ) if completed.stdout else completed.stderr

    code, report = run(
        "--address", source.addresses, "backup", "cases", tmp_path / "two", "--graph-version", 2
    )
    assert (code, report["version"], report["parts"]) == (0, 2, PARTS)
    code, report = run(
        "--path", tmp_path / "folder", "restore", tmp_path / "two", "--name", "brought"
    )
    assert (code, report["name"], report["version"]) == (0, "brought", 2)
    with asterism.open(tmp_path / "folder") as embedded:
        assert cases.call_digests(embedded.graph("brought")) == expected
        with pytest.raises(asterism.InvalidRequest, match="outside of the data folder"):
            embedded.backup("brought", tmp_path / "folder", timeout_s=LIMIT_S)
        assert not (tmp_path / "folder" / MANIFEST_FILE).exists()
        assert embedded.verify("brought", draws=5000, seed=1).passed
        # The process runs as the user, so it may write to every local folder that the user may.
        embedded.backup("brought", tmp_path / "three", timeout_s=LIMIT_S)
        embedded.restore(tmp_path / "three", "from_three", timeout_s=LIMIT_S)
        assert cases.call_digests(embedded.graph("from_three")) == expected
    assert (
        run("--path", tmp_path / "folder", "restore", tmp_path / "two", "--name", "brought")[0] == 0
    )  # the space exists already
    with asterism.open(tmp_path / "folder") as embedded:
        embedded.create_space("other", {"nodes": {"n": {}}})
    other = ("restore", tmp_path / "two", "--name", "other")
    assert run("--path", tmp_path / "folder", *other)[0] == 5
    assert run("--path", tmp_path / "folder", "restore", tmp_path / "nowhere")[0] == 3


def test_restore_keeps_edge_and_node_times_for_later_builds(
    source: LocalCluster, tmp_path: Path
) -> None:
    client, rng = source.client(), np.random.default_rng(7)
    timed = {"features": {"when": "int32"}, "time": "when"}
    client.create_space(
        "timed", {"parts": 3, "direction": "both", "nodes": {"n": timed}, "edges": {"n:e:n": timed}}
    )
    graph = client.graph("timed")
    src, dst = rng.integers(0, 60, (2, 800))
    edge_times, node_times = rng.integers(0, 20, 800), rng.integers(0, 20, 60)
    graph.upsert_nodes(np.arange(60), "n", features={"when": node_times})
    graph.upsert_edges(src[:500], dst[:500], "e", features={"when": edge_times[:500]})
    graph.build(timeout_s=LIMIT_S)
    client.backup("timed", tmp_path / "timed", timeout_s=LIMIT_S)
    client.restore(tmp_path / "timed", "back", timeout_s=LIMIT_S)
    restored = client.graph("back")
    times, count = np.arange(60) % 22 - 1, 500
    for _ in range(2):
        for direction, start_nodes, end_nodes in (
            ("out", src[:count], dst[:count]),
            ("in", dst[:count], src[:count]),
        ):
            visible_from = np.maximum(edge_times[:count], node_times[end_nodes])
            options: dict[str, Any] = {
                "times": times,
                "direction": direction,
                "weighted": False,
                "replace": False,
                "edge_times": True,
                "seed": 5,
            }
            first, second = (
                target.sample_neighbors(np.arange(60), "e", 60, **options)
                for target in (graph, restored)
            )
            assert cases.digest(first) == cases.digest(second)
            for node, time_ in enumerate(times.tolist()):
                valid = second.mask[node]
                assert sorted(second.nodes[node][valid].tolist()) == sorted(
                    end_nodes[(start_nodes == node) & (visible_from <= time_)].tolist()
                )
        # Write edges only: the times of their end nodes come from the backup.
        for target in (graph, restored):
            target.upsert_edges(src[500:], dst[500:], "e", features={"when": edge_times[500:]})
            target.build(timeout_s=LIMIT_S)
        count = 800
