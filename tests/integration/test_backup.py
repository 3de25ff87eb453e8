"""Backups and restores on real processes: the same draws on other hosts, builds that go on, damage named, nothing lost when killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, Graph
from asterism_proto.backups import RECORD, Record

LIMIT_S = HANG_S
SECRET = "hunter2"
REFUSING = "sftp://127.0.0.1:1"
"""Nothing listens there."""


def written(client: Client, space: str) -> Graph:
    """The cases in two versions, the second with deletes and a load that bears a key; and a load after it, which no version shows."""
    graph = cases.load(client, space)
    load = client.begin_load(space, source="more.csv", resume_key="more")
    load.write_edges(0, "cites", np.arange(20), np.arange(20)[::-1].copy(), weights=np.linspace(1, 2, 20))
    load.commit()
    graph.delete_nodes(cases.person_ids()[5:10], "person")
    graph.upsert_nodes(cases.person_ids()[5:10], "person", weights=np.full(5, 0.5))
    graph.delete_edges(*(ends[30:40] for ends in cases.edges()["by"][:2]), "by")
    assert graph.build(timeout_s=LIMIT_S).version == 2
    graph.upsert_nodes([777], "paper")
    return graph


def go_on(client: Client, space: str) -> dict[str, str]:
    """More writes and a build: what any copy of the space must answer the same way afterwards."""
    graph = client.graph(space)
    again = client.begin_load(space, source="more.csv", resume_key="more")
    assert again.commit_number, "a load that is in the backup is known by its key"
    graph.upsert_edges(cases.person_ids()[50:80], np.arange(30), "writes", weights=np.linspace(5, 9, 30))
    graph.upsert_nodes([778, 779], "paper")
    graph.delete_nodes([3], "paper")
    graph.build(timeout_s=LIMIT_S)
    return cases.answers(graph)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("source")
    with LocalCluster(3, 1, folder=folder, allowed=[f"file://{folder.parent}", REFUSING]) as cluster:
        written(cluster.client(), "cases")
        yield cluster


@pytest.fixture(scope="module")
def kept(source: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backups") / "cases"
    info = source.client().backup("cases", folder, timeout_s=LIMIT_S)
    assert (info.version, info.parts, info.address) == (2, cases.PARTS, folder.as_uri())
    return folder


def test_a_space_comes_back_on_another_cluster_of_fewer_hosts_with_the_same_digest_and_bytes_and_goes_on(
    source: LocalCluster, kept: Path, tmp_path: Path
) -> None:
    here = source.client()
    expected = cases.answers(here.graph("cases"))
    there_before = here.manifest("cases")
    with LocalCluster(2, 1, folder=tmp_path) as other:
        client = other.client()
        cases.load(client, "something_else")  # spaces, loads and jobs have other ids here
        space = client.restore(kept, timeout_s=LIMIT_S)
        assert (space.name, space.version, {len(hosts) for hosts in space.hosts}) == ("cases", 2, {1})
        assert len({host for hosts in space.hosts for host in hosts}) == 2
        assert client.manifest("cases").digest == there_before.digest
        assert client.manifest("cases").totals == there_before.totals
        graph = client.graph("cases")
        assert cases.answers(graph) == expected
        assert client.verify("cases", draws=5000, seed=1).passed
        assert not graph.find_nodes([777], "paper").any(), "what no version showed is not in its backup"
        here.graph("cases").delete_nodes([777], "paper")
        assert go_on(client, "cases") == go_on(here, "cases")
        assert client.describe("cases").version == 3
        other.kill("storaged-0")
        other.restart("storaged-0")
        assert cases.answers(client.graph("cases")) == cases.answers(here.graph("cases"))
        # A restored space is kept and brought back like any other.
        client.backup("cases", tmp_path / "again", timeout_s=LIMIT_S)
        client.restore(tmp_path / "again", "third", timeout_s=LIMIT_S)
        assert client.manifest("third").digest == client.manifest("cases").digest
        with pytest.raises(asterism.Conflict, match="exists already"):
            client.restore(kept, "something_else")


def test_a_backup_that_is_there_is_not_made_twice_and_not_overwritten(source: LocalCluster, kept: Path) -> None:
    client = source.client()
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*")}
    again = client.backup("cases", kept, version=2, timeout_s=LIMIT_S)
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*")} == before
    record = Record.of((kept / RECORD).read_bytes())
    assert (again.files, again.digest) == (len(record.files), record.digest)
    assert {file.path for file in record.files} | {RECORD} == {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()}
    client.create_space("tiny", {"nodes": {"n": {}}}, if_not_exists=True)
    client.graph("tiny").upsert_nodes([1], "n")
    client.graph("tiny").build(timeout_s=LIMIT_S)
    with pytest.raises(asterism.Conflict, match="holds a backup of version 2 of 'cases'"):
        client.backup("tiny", kept)


@pytest.mark.parametrize("name", ["catalog.pb", "parts/p00003/blocks.bin", "parts/p00004/image/manifest.json", "parts/p00005/image/e0.out.nbr.bin"])
def test_a_damaged_file_is_named_and_the_restore_goes_on_once_it_is_mended(source: LocalCluster, kept: Path, name: str) -> None:
    client, space = source.client(), "damaged"
    path = kept / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 4]) + whole[len(whole) // 2 + 1 :])
    try:
        with pytest.raises(asterism.Corrupt, match=name):
            client.restore(kept, space, timeout_s=LIMIT_S)
        path.unlink()
        with pytest.raises(asterism.Corrupt, match=f"{name}: missing"):
            client.restore(kept, space, timeout_s=LIMIT_S)
        if space in {info.name for info in client.spaces()}:
            assert client.describe(space).version == 0
            with pytest.raises(asterism.NotReady, match="being restored"):
                client.graph(space).upsert_nodes([1], "paper")
            with pytest.raises(asterism.NotReady, match="being restored"):
                client.graph(space).build()
    finally:
        path.write_bytes(whole)
    assert client.restore(kept, space, timeout_s=LIMIT_S).version == 2
    client.drop_space(space)


def test_what_never_became_whole_is_no_backup(source: LocalCluster, kept: Path, tmp_path: Path) -> None:
    with pytest.raises(asterism.NotFound, match="never became whole"):
        source.client().restore(tmp_path / "nothing", "x")
    record = (kept / RECORD).read_bytes()
    (kept / RECORD).rename(kept / "aside")
    try:
        with pytest.raises(asterism.NotFound, match="never became whole"):
            source.client().restore(kept, "x")
    finally:
        (kept / "aside").rename(kept / RECORD)
    assert (kept / RECORD).read_bytes() == record
    assert "x" not in {space.name for space in source.client().spaces()}


@pytest.mark.parametrize("name", ["storaged-1", "metad"])
def test_a_backup_and_a_restore_outlive_daemons_that_are_killed(source: LocalCluster, tmp_path: Path, name: str) -> None:
    client = source.client(timeout_s=HANG_S)
    expected = cases.answers(client.graph("cases"))
    number = client.describe("cases").version
    job = client.submit_job("cases", "backup", options={"to": (tmp_path / "kept").as_uri()})
    deadline = time.monotonic() + LIMIT_S
    while not (tmp_path / "kept").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    source.kill(name)
    source.restart(name)
    done = client.wait(job.job_id, timeout_s=LIMIT_S)
    assert done.state == "FINISHED", done
    assert client.backup("cases", tmp_path / "kept", timeout_s=LIMIT_S).version == number
    space = f"killed_{name.replace('-', '_')}"
    restore = [sys.executable, "-m", "asterism.cli", "--address", source.addresses, "restore", str(tmp_path / "kept"), "--as", space, "--json"]
    waiting = subprocess.Popen(restore, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not any(job.kind == "restore" and job.space == space for job in client.jobs(limit=5)) and time.monotonic() < deadline:
        time.sleep(0.01)
    source.kill(name)
    waiting.kill()  # the client too: somebody else asks again
    waiting.communicate()
    source.restart(name)
    assert client.restore(tmp_path / "kept", space, timeout_s=LIMIT_S).version == number
    assert cases.answers(client.graph(space)) == expected
    client.drop_space(space)


def test_a_restore_that_ends_while_it_is_asked_for_again_is_found_done(source: LocalCluster, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = source.client(), source.client()
    plain = client.session.catalog

    def slowly(name: str, request: Any) -> Any:
        reply = plain(name, request)
        if name == "import_space":  # the job of whoever asked first ends before this client asks for one
            other.restore(kept, "found_done", timeout_s=LIMIT_S)
        return reply

    monkeypatch.setattr(client.session, "catalog", slowly)
    assert client.restore(kept, "found_done", timeout_s=LIMIT_S).version == 2
    assert [job.kind for job in client.jobs("found_done")] == ["restore"]
    client.drop_space("found_done")


def test_secrets_of_an_address_reach_neither_answers_nor_logs(source: LocalCluster) -> None:
    client = source.client()
    address = f"{REFUSING}/folder".replace("//", f"//me:{SECRET}@")
    with pytest.raises(asterism.Unavailable) as away:
        client.backup("cases", address)
    assert SECRET not in str(away.value)
    job = client.submit_job("cases", "backup", options={"to": address})
    job = client.wait(job.job_id, timeout_s=LIMIT_S)
    assert (job.state, job.options) == ("FAILED", {"to": "sftp://***@127.0.0.1:1/folder"})
    with pytest.raises(asterism.InvalidRequest) as refused:
        client.submit_job("cases", "backup", options={"to": f"no address:{SECRET}://me:{SECRET}@"})
    assert f"me:{SECRET}" not in str(refused.value)
    told = [
        str(job),
        str(client.jobs(limit=50)),
        json.dumps(source.get("metad", "/api/v1/jobs")),
        json.dumps(source.get("metad", f"/api/v1/jobs/{job.job_id}")),
    ]
    told += [daemon.log.read_text() for daemon in source.daemons.values()]
    assert [text for text in told if f"me:{SECRET}" in text] == []


def test_the_command_keeps_and_brings_back_and_an_embedded_folder_too(source: LocalCluster, kept: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> Any:
        command = [sys.executable, "-m", "asterism.cli", "--json", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    code, told = run("--address", source.addresses, "backup", "cases", tmp_path / "two", "--at", 2)
    assert (code, told["version"], told["parts"]) == (0, 2, cases.PARTS)
    code, told = run("--path", tmp_path / "folder", "restore", tmp_path / "two", "--as", "brought")
    assert (code, told["name"], told["version"]) == (0, "brought", 2)
    with asterism.open(tmp_path / "folder") as embedded:
        brought = cases.answers(embedded.graph("brought"))
        source.client().restore(kept, "beside", timeout_s=LIMIT_S)
        assert brought == cases.answers(source.client().graph("beside"))
        # The process is the user's own, and so is every local folder that it can write to.
        embedded.backup("brought", tmp_path / "three", timeout_s=LIMIT_S)
        embedded.restore(tmp_path / "three", "from_three", timeout_s=LIMIT_S)
        assert cases.answers(embedded.graph("from_three")) == brought
    assert run("--path", tmp_path / "folder", "restore", tmp_path / "two", "--as", "brought")[0] == 0  # it is there already
    with asterism.open(tmp_path / "folder") as embedded:
        embedded.create_space("other", {"nodes": {"n": {}}})
    assert run("--path", tmp_path / "folder", "restore", tmp_path / "two", "--as", "other")[0] == 5
    assert run("--path", tmp_path / "folder", "restore", tmp_path / "nowhere")[0] == 3


def test_times_of_edges_and_nodes_come_back_and_later_builds_know_them(source: LocalCluster, tmp_path: Path) -> None:
    client, rng = source.client(), np.random.default_rng(7)
    timed = {"features": {"when": "int32"}, "time": "when"}
    client.create_space("timed", {"parts": 3, "direction": "both", "nodes": {"n": timed}, "edges": {"n:e:n": timed}})
    graph = client.graph("timed")
    src, dst = rng.integers(0, 60, (2, 800))
    when, came = rng.integers(0, 20, 800), rng.integers(0, 20, 60)
    graph.upsert_nodes(np.arange(60), "n", features={"when": came})
    graph.upsert_edges(src[:500], dst[:500], "e", features={"when": when[:500]})
    graph.build(timeout_s=LIMIT_S)
    client.backup("timed", tmp_path / "timed", timeout_s=LIMIT_S)
    client.restore(tmp_path / "timed", "back", timeout_s=LIMIT_S)
    back = client.graph("back")
    times, count = np.arange(60) % 22 - 1, 500
    for _ in range(2):
        for direction, near, far in (("out", src[:count], dst[:count]), ("in", dst[:count], src[:count])):
            there = np.maximum(when[:count], came[far])
            asked: dict[str, Any] = {"times": times, "direction": direction, "weighted": False, "replace": False, "edge_times": True, "seed": 5}
            first, second = (of.sample_neighbors(np.arange(60), "e", 60, **asked) for of in (graph, back))
            assert cases.digest(first) == cases.digest(second)
            for node, time_ in enumerate(times.tolist()):
                mine = second.mask[node]
                assert sorted(second.nodes[node][mine].tolist()) == sorted(far[(near == node) & (there <= time_)].tolist())
        # New edges alone: when their ends came is what the backup has kept.
        for of in (graph, back):
            of.upsert_edges(src[500:], dst[500:], "e", features={"when": when[500:]})
            of.build(timeout_s=LIMIT_S)
        count = 800
