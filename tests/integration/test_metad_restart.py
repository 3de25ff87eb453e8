"""A metad that is killed and comes back on its folder: nothing lost, nothing given twice, and it goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests.kit.metad import Desk, edges, finished
from tests.kit.waiting import HANG_S

from asterism_proto.errors import Conflict, Corrupt
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.app import Metad
from metad.settings import MetadSettings
from metad.store import keys
from metad.store.rocks import RocksStore


class Lives:
    """One folder, and the metads that live on it one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._now_ms = 1_700_000_000_000

    def begin(self) -> Desk:
        """Another life. The store was closed, but no room of the earlier life was told: all there is, is what was written."""
        self._number += 1
        return Desk(RocksStore(self._folder / "catalog"), now_ms=self._now_ms + self._number * 60_000)


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    return Lives(tmp_path)


def test_everything_that_was_acknowledged_is_there_after_a_kill_at_any_point(lives: Lives) -> None:
    """One story, told with a kill after every step; at the end it reads as if there had been none."""
    desk = lives.begin()

    def killed() -> Desk:
        desk.store.close()
        return lives.begin()

    desk.beat("s1")
    desk.beat("s2")
    desk = killed()
    desk.create()
    desk = killed()
    load = desk.begin(resume_key="k")
    desk = killed()
    (first,) = desk.register(load, edges(0, 10))
    desk = killed()
    assert desk.register(load, edges(0, 10)) == [first]
    (second,) = desk.register(load, edges(1, 10), written=[0])
    desk = killed()
    assert [(chunk.base, chunk.written) for chunk in desk.begin(resume_key="k").chunks] == [(0, True), (10, False)]
    assert second.base == 10
    desk.register(load, written=[1])
    desk = killed()
    assert desk.commit(load).commit == 1
    desk = killed()
    assert desk.commit(load).commit == 1
    assert desk.load() == 2
    other = desk.begin()
    desk.ask("abandon_load", mpb.LoadRequest(load_id=other.load_id))
    job = desk.submit()
    orders = {uuid: desk.poll(uuid).orders[0] for uuid in ("s1", "s2")}
    desk = killed()
    assert {uuid: desk.poll(uuid).orders[0] for uuid in ("s1", "s2")} == orders
    assert desk.submit().job_id == job.job_id
    desk.beat("s1", finished(orders["s1"]))
    desk = killed()
    assert desk.poll("s1").orders[0] == orders["s1"]
    desk.beat("s2", finished(orders["s2"]))
    manifest = desk.ask("get_manifest", mpb.ManifestRequest(space="graph"))
    desk = killed()
    assert desk.ask("get_manifest", mpb.ManifestRequest(space="graph")) == manifest
    assert len(manifest.totals) == 16
    assert desk.job(job.job_id).state == pb.FINISHED
    assert list(desk.poll("s1").abandoned_loads) == [other.load_id]
    assert desk.register(desk.begin(), edges(0))[0].base == 20
    assert desk.begin().load_id > other.load_id
    assert desk.load() == 3
    desk.ask("drop_space", mpb.DropSpaceRequest(space="graph"))
    desk = killed()
    assert list(desk.ask("list_spaces", pb.Empty()).spaces) == []
    desk.store.close()


def test_a_metad_that_lost_its_folders_identity_but_not_its_catalog_repeats_no_revision_and_is_the_same_cluster(tmp_path: Path) -> None:
    now_ms, told = 1_700_000_000_000, []
    for uuid in ("first", "another", "a third"):
        desk = Desk(RocksStore(tmp_path / "catalog"), uuid=uuid, now_ms=now_ms)  # in the same second, and a clock that was set back
        now_ms -= 3_600_000
        told.append((desk.poll("s1").revision, desk.poll("s1").cluster))
        desk.beat("s1")
        desk.create(f"space{len(told)}")
        told.append((desk.poll("s1").revision, desk.poll("s1").cluster))
        desk.store.close()
    revisions = [revision for revision, _ in told]
    assert revisions == sorted(set(revisions))
    assert len({cluster for _, cluster in told}) == 1


def test_leases_get_a_full_term_after_a_restart(lives: Lives) -> None:
    desk = lives.begin()
    desk.beat("s1")
    desk.store.close()
    desk = lives.begin()
    desk.passes(4.9)
    assert [host.online for host in desk.ask("list_hosts", pb.Empty()).hosts] == [True]
    desk.passes(0.2)
    assert [host.online for host in desk.ask("list_hosts", pb.Empty()).hosts] == [False]
    desk.store.close()
    desk = lives.begin()
    assert [host.online for host in desk.ask("list_hosts", pb.Empty()).hosts] == [False]
    desk.store.close()


def test_revisions_grow_over_restarts(lives: Lives) -> None:
    desk = lives.begin()
    desk.beat("s1")
    for name in "abcdef":
        desk.create(name)
    known = desk.poll("s1").revision
    desk.store.close()
    desk = lives.begin()
    assert desk.poll("s1", known=known, wait_s=HANG_S).revision > known
    desk.store.close()


def test_retries_and_stops_under_way_go_on_after_a_restart(lives: Lives) -> None:
    desk = lives.begin()
    for uuid in ("s1", "s2"):
        desk.beat(uuid)
    desk.create()
    desk.create("other")
    desk.load()
    desk.load("other")
    failing, stopping = desk.submit(), desk.submit("other")
    order = next(order for order in desk.poll("s1").orders if order.job_id == failing.job_id)
    running = [mpb.TaskReport(task_id=o.task_id, attempt=1, state=pb.RUNNING) for o in desk.poll("s1").orders if o.job_id == stopping.job_id]
    desk.beat("s1", mpb.TaskReport(task_id=order.task_id, attempt=1, state=pb.FAILED, cause="disk full"), *running)
    desk.ask("stop_job", mpb.JobRequest(job_id=stopping.job_id))
    desk.store.close()
    desk = lives.begin()
    desk.beat("s1")
    desk.beat("s2")
    assert desk.job(stopping.job_id).state == pb.STOPPED
    desk.passes(2)
    again = desk.poll("s1").orders[0]
    assert (again.task_id, again.attempt) == (order.task_id, 2)
    assert list(desk.job(failing.job_id).tasks[0].causes) == ["attempt 1: disk full"]
    desk.store.close()


def test_two_metads_do_not_share_a_folder(tmp_path: Path) -> None:
    settings = MetadSettings(data=tmp_path / "m", listen="127.0.0.1:0", http_listen="127.0.0.1:0")
    first = Metad(settings)
    try:
        with pytest.raises(Conflict):
            Metad(settings)
    finally:
        first.stop()
    Metad(settings).stop()


def test_a_metad_process_starts_ends_on_sigterm_and_survives_sigkill(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def start() -> tuple[subprocess.Popen[bytes], int]:
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "metad", "--data", str(tmp_path / "m"), "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"],
                stdout=out,
                stderr=out,
            )
        deadline = time.monotonic() + HANG_S
        while "http_port=" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return process, int(log.read_text().split("http_port=")[1].split()[0])

    for number, how in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGTERM), start=1):
        process, port = start()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=HANG_S) as reply:
            assert f'"incarnation":{number}' in reply.read().decode()
        process.send_signal(how)
        assert process.wait(HANG_S) == (0 if how is signal.SIGTERM else -signal.SIGKILL)


def test_a_catalog_that_is_not_what_was_published_is_refused_and_lets_go_of_its_folder(lives: Lives, tmp_path: Path) -> None:
    desk = lives.begin()
    desk.beat("s1")
    desk.create()
    desk.load()
    desk.submit()
    desk.build("s1")
    ((key, value),) = desk.store.range(keys.VERSIONS)
    desk.store.write({key: value.replace(b"image-0", b"image-9")})
    desk.store.close()
    for _ in range(2):
        with pytest.raises(Corrupt, match=f"{tmp_path / 'catalog'}: .*space 1, version 1.*restore the catalog from a snapshot"):
            Metad(MetadSettings(data=tmp_path))
