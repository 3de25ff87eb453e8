"""A metad that is killed and restarts on its folder.

Nothing is lost, no id is assigned twice, and work continues.
"""

from __future__ import annotations

import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest
from tests.kit import zygote
from tests.kit.metad import InProcessMetad, edge_chunk, finished_report
from tests.kit.waiting import HANG_S, wait_until

from asterism_proto.errors import Conflict, Corrupt
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.app import Metad
from metad.settings import MetadSettings
from metad.store import keys
from metad.store.rocksdb_store import RocksStore


class MetadRestarts:
    """A folder, and a sequence of metads that run on it one after another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._now_ms = 1_700_000_000_000

    def next_desk(self) -> InProcessMetad:
        """Start the next metad.

        Only the store of the earlier one was closed, so the new one has only what was written.
        """
        self._number += 1
        return InProcessMetad(
            RocksStore(self._folder / "catalog"), now_ms=self._now_ms + self._number * 60_000
        )


@pytest.fixture
def restarts(tmp_path: Path) -> MetadRestarts:
    return MetadRestarts(tmp_path)


def test_acknowledged_changes_survive_a_kill_at_any_step(restarts: MetadRestarts) -> None:
    """A sequence of changes gives the same result if metad is killed after every step."""
    desk = restarts.next_desk()

    def restarted() -> InProcessMetad:
        desk.store.close()
        return restarts.next_desk()

    desk.heartbeat("s1")
    desk.heartbeat("s2")
    desk = restarted()
    desk.create()
    desk = restarted()
    load = desk.begin(resume_key="k")
    desk = restarted()
    (first,) = desk.register(load, edge_chunk(0, 10))
    desk = restarted()
    assert desk.register(load, edge_chunk(0, 10)) == [first]
    (second,) = desk.register(load, edge_chunk(1, 10), written=[0])
    desk = restarted()
    assert [
        (chunk.first_edge_id, chunk.written) for chunk in desk.begin(resume_key="k").chunks
    ] == [
        (0, True),
        (10, False),
    ]
    assert second.first_edge_id == 10
    desk.register(load, written=[1])
    desk = restarted()
    assert desk.commit(load).commit == 1
    desk = restarted()
    assert desk.commit(load).commit == 1
    assert desk.load() == 2
    other = desk.begin()
    desk.ask("abandon_load", metad_pb.LoadRequest(load_id=other.load_id))
    job = desk.submit()
    orders = {uuid: desk.poll(uuid).task_assignments[0] for uuid in ("s1", "s2")}
    desk = restarted()
    assert {uuid: desk.poll(uuid).task_assignments[0] for uuid in ("s1", "s2")} == orders
    assert desk.submit().job_id == job.job_id
    desk.heartbeat("s1", finished_report(orders["s1"]))
    desk = restarted()
    assert desk.poll("s1").task_assignments[0] == orders["s1"]
    desk.heartbeat("s2", finished_report(orders["s2"]))
    manifest = desk.ask("get_manifest", metad_pb.ManifestRequest(space="graph"))
    desk = restarted()
    assert desk.ask("get_manifest", metad_pb.ManifestRequest(space="graph")) == manifest
    assert len(manifest.totals) == 16
    assert desk.job(job.job_id).state == common_pb.FINISHED
    assert list(desk.poll("s1").abandoned_loads) == [other.load_id]
    assert desk.register(desk.begin(), edge_chunk(0))[0].first_edge_id == 20
    assert desk.begin().load_id > other.load_id
    assert desk.load() == 3
    desk.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    desk = restarted()
    assert list(desk.ask("list_spaces", common_pb.Empty()).spaces) == []
    desk.store.close()


def test_new_identity_keeps_the_cluster_and_rising_revisions(tmp_path: Path) -> None:
    now_ms, polled = 1_700_000_000_000, []
    for uuid in ("first", "another", "a third"):
        desk = InProcessMetad(
            RocksStore(tmp_path / "catalog"), uuid=uuid, now_ms=now_ms
        )  # in the same second, and with a clock set back
        now_ms -= 3_600_000
        polled.append((desk.poll("s1").revision, desk.poll("s1").cluster))
        desk.heartbeat("s1")
        desk.create(f"space{len(polled)}")
        polled.append((desk.poll("s1").revision, desk.poll("s1").cluster))
        desk.store.close()
    revisions = [revision for revision, _ in polled]
    assert revisions == sorted(set(revisions))
    assert len({cluster for _, cluster in polled}) == 1


def test_leases_get_a_full_term_after_a_restart(restarts: MetadRestarts) -> None:
    desk = restarts.next_desk()
    desk.heartbeat("s1")
    desk.store.close()
    desk = restarts.next_desk()
    desk.advance_clock(5.9)
    assert [host.online for host in desk.ask("list_hosts", common_pb.Empty()).hosts] == [True]
    desk.advance_clock(0.2)
    assert [host.online for host in desk.ask("list_hosts", common_pb.Empty()).hosts] == [False]
    desk.store.close()
    desk = restarts.next_desk()
    assert [host.online for host in desk.ask("list_hosts", common_pb.Empty()).hosts] == [False]
    desk.store.close()


def test_revisions_grow_over_restarts(restarts: MetadRestarts) -> None:
    desk = restarts.next_desk()
    desk.heartbeat("s1")
    for name in "abcdef":
        desk.create(name)
    revision = desk.poll("s1").revision
    desk.store.close()
    desk = restarts.next_desk()
    assert desk.poll("s1", known_revision=revision, wait_s=HANG_S).revision > revision
    desk.store.close()


def test_retries_and_stops_continue_after_a_restart(restarts: MetadRestarts) -> None:
    desk = restarts.next_desk()
    for uuid in ("s1", "s2"):
        desk.heartbeat(uuid)
    desk.create()
    desk.create("other")
    desk.load()
    desk.load("other")
    failing, stopping = desk.submit(), desk.submit("other")
    order = next(
        order for order in desk.poll("s1").task_assignments if order.job_id == failing.job_id
    )
    running = [
        metad_pb.TaskReport(task_id=o.task_id, attempt=1, state=common_pb.RUNNING)
        for o in desk.poll("s1").task_assignments
        if o.job_id == stopping.job_id
    ]
    desk.heartbeat(
        "s1",
        metad_pb.TaskReport(
            task_id=order.task_id, attempt=1, state=common_pb.FAILED, cause="disk full"
        ),
        *running,
    )
    desk.ask("stop_job", metad_pb.JobRequest(job_id=stopping.job_id))
    desk.store.close()
    desk = restarts.next_desk()
    desk.heartbeat("s1")
    desk.heartbeat("s2")
    assert desk.job(stopping.job_id).state == common_pb.STOPPED
    desk.advance_clock(2)
    retried = desk.poll("s1").task_assignments[0]
    assert (retried.task_id, retried.attempt) == (order.task_id, 2)
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


def test_a_waiting_metad_stops_without_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metad = Metad(
        MetadSettings(data=tmp_path / "m", listen="127.0.0.1:0", http_listen="127.0.0.1:0")
    )
    metad.start()
    metad.open_ports()
    maintenance, feed = metad.components.maintenance, metad.components.change_feed
    wait_until(
        lambda: maintenance._ticked_revision == feed.revision,
        "maintenance waits for the next check",
    )
    metad.stop()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_metad_ends_on_sigterm_and_survives_sigkill(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def start() -> tuple[zygote.ForkedProcess | subprocess.Popen[bytes], int]:
        ports = ("--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")
        with log.open("wb") as out:
            process = zygote.start("metad", "--data", tmp_path / "m", *ports, output=out)

        def has_port() -> bool:
            assert process.poll() is None, log.read_text()
            return "http_port=" in log.read_text()

        wait_until(has_port, "metad has logged its port")
        return process, int(log.read_text().split("http_port=")[1].split()[0])

    for number, signal_number in enumerate(
        (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM), start=1
    ):
        process, port = start()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=HANG_S) as reply:
            assert f'"incarnation":{number}' in reply.read().decode()
        process.send_signal(signal_number)
        assert process.wait(HANG_S) == (0 if signal_number is signal.SIGTERM else -signal.SIGKILL)


def test_altered_catalog_is_refused_and_unlocks_its_folder(
    restarts: MetadRestarts, tmp_path: Path
) -> None:
    desk = restarts.next_desk()
    desk.heartbeat("s1")
    desk.create()
    desk.load()
    desk.submit()
    desk.build("s1")
    ((key, value),) = desk.store.range(keys.VERSIONS)
    desk.store.write({key: value.replace(b"image-0", b"image-9")})
    desk.store.close()
    for _ in range(2):
        with pytest.raises(
            Corrupt,
            match=(
                f"{tmp_path / 'catalog'}: .*space 1, version 1.*restore the catalog from a snapshot"
            ),
        ):
            Metad(MetadSettings(data=tmp_path))
