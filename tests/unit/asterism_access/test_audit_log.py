"""Tests of the audit log on real files: rotation, full disks, slow disks and killed processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.kit.small_disk import small_disk
from tests.kit.syscalls import Durability, Syscalls
from tests.kit.waiting import HANG_S, wait_until

from asterism_access.audit_log import (
    MAX_DETAIL_CHARS,
    AuditLog,
    AuditRecord,
    TornLine,
    read_audit_log,
)
from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_proto.errors import Deadline, InvalidRequest, Unavailable

ALICE = Principal(name="alice", kind=PrincipalKind.API_KEY, credential_id="k" * 12)
MIB = 1 << 20


@contextmanager
def audit_log(
    path: Path, max_bytes: int = MIB, files: int = 3, *, required: bool = False, queue: int = 1000
) -> Iterator[tuple[AuditLog, list[bool]]]:
    """Open a log; yield it and what it reports for each record."""
    written: list[bool] = []
    log = AuditLog(
        path,
        max_bytes,
        files,
        required=required,
        queue_records=queue,
        on_record=written.append,
    )
    try:
        yield log, written
    finally:
        log.close()


def record(log: AuditLog, detail: str = "", *, seconds: float = HANG_S, **values: str) -> None:
    log.record(
        ALICE, method="DropSpace", detail=detail, deadline=time.monotonic() + seconds, **values
    )


def details(path: Path) -> list[str]:
    """Return the details of all records; fails on torn lines."""
    entries = list(read_audit_log(path))
    assert [entry for entry in entries if isinstance(entry, TornLine)] == []
    return [entry.detail for entry in entries if isinstance(entry, AuditRecord)]


def test_a_record_has_all_fields_and_a_time_in_utc(tmp_path: Path) -> None:
    with audit_log(tmp_path / "audit") as (log, _):
        record(log, "no such space", space="shop", outcome="NotFound", peer="10.0.0.1:5")
        log.record(LOCAL, method="ListSpaces", deadline=time.monotonic() + HANG_S)
        assert log.flush(HANG_S)
    first, second = map(json.loads, (tmp_path / "audit").read_text().splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {
        "principal": "alice",
        "kind": "api_key",
        "credential_id": "k" * 12,
        "peer": "10.0.0.1:5",
        "method": "DropSpace",
        "space": "shop",
        "outcome": "NotFound",
        "detail": "no such space",
    }
    assert (second["principal"], second["kind"], second["outcome"]) == ("local", "local", "OK")


@pytest.mark.parametrize(
    "text", ["a\nb\r\x00\x1b[31m\x7f", "größe \u2028 \U0001f600", "\udcff", '"}\\']
)
def test_control_characters_are_escaped_and_come_back(tmp_path: Path, text: str) -> None:
    with audit_log(tmp_path / "audit") as (log, _):
        record(log, text, space=text)
    raw = (tmp_path / "audit").read_bytes()
    assert raw.count(b"\n") == 1
    assert all(32 <= byte < 127 for byte in raw[:-1])
    assert details(tmp_path / "audit") == [text]


def test_no_credential_reaches_the_file(tmp_path: Path) -> None:
    secret = "s3cr3t-" + "x" * 36
    texts = (
        f"key ak_abcdefghij12_{secret} is revoked",
        f"ticket tk_{secret}{secret}_{secret}",
        f"token eyJhbGciOiJSUzI1NiJ9.{secret}.{secret}",
        f"authorization: Bearer {secret}",
        f'authorization: "bearer {secret}", and more',
    )
    with audit_log(tmp_path / "audit") as (log, _):
        for text in texts:
            record(log, text, space=text, peer=text)
    raw = (tmp_path / "audit").read_text()
    assert "s3cr3t" not in raw
    found = details(tmp_path / "audit")
    assert found[0] == "key ak_abcdefghij12_*** is revoked"
    assert found[4] == 'authorization: "bearer ***", and more'


def test_long_texts_are_cut(tmp_path: Path) -> None:
    with audit_log(tmp_path / "audit") as (log, _):
        record(log, "d" * 10**6, space="s" * 10**6)
    assert (tmp_path / "audit").stat().st_size < 2000
    assert details(tmp_path / "audit") == ["d" * MAX_DETAIL_CHARS]


def test_files_are_rotated_by_size_and_the_oldest_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with audit_log(path, max_bytes=1000, files=3) as (log, written):
        for number in range(50):
            record(log, f"{number:03d}")
        assert log.flush(HANG_S)
        assert written == [True] * 50
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["audit", "audit.1", "audit.2"]
    assert all((tmp_path / name).stat().st_size <= 1000 for name in names)
    kept = details(path)
    assert kept == [f"{number:03d}" for number in range(50 - len(kept), 50)]
    assert len(kept) >= 8
    assert path.stat().st_mode & 0o777 == 0o600
    with audit_log(path, max_bytes=200, files=1) as (log, _):
        for number in range(3):
            record(log, f"new {number}")
    assert [file.name for file in tmp_path.iterdir()] == ["audit"]
    assert details(path) == ["new 2"]


def test_concurrent_writers_lose_and_mix_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with audit_log(path, max_bytes=20_000, files=200, queue=50) as (log, written):

        def write(thread: int) -> None:
            for number in range(400):
                record(log, f"{thread} {number}")

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(write, range(8)))
    assert written == [True] * 3200
    found = details(path)
    for thread in range(8):
        own = [detail for detail in found if detail.startswith(f"{thread} ")]
        assert own == [f"{thread} {number}" for number in range(400)]


def test_a_log_moved_by_another_program_begins_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with audit_log(path) as (log, _):
        record(log, "before")
        log.flush(HANG_S)
        path.rename(tmp_path / "moved")
        record(log, "after")
    assert details(tmp_path / "moved") == ["before"]
    assert details(path) == ["after"]


def test_a_log_is_continued_after_a_restart(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with audit_log(tmp_path / "audit") as (log, _):
            record(log, text)
    assert details(tmp_path / "audit") == ["first", "second"]


def test_a_torn_line_is_reported_and_harms_no_other(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with audit_log(path) as (log, _):
        record(log, "before")
    with path.open("ab") as file:
        file.write(b'{"time":"2026-01-01T00:00')
    assert list(read_audit_log(path))[1:] == [TornLine(path, 2, True)]
    with audit_log(path) as (log, _):
        record(log, "after")
    before, torn, after = read_audit_log(path)
    assert torn == TornLine(path, 2, False)
    assert isinstance(before, AuditRecord)
    assert isinstance(after, AuditRecord)
    assert (before.detail, after.detail) == ("before", "after")


def test_a_number_that_a_rotation_left_out_hides_no_records(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    for suffix in ("", ".1", ".3", ".10"):  # a kill between two renames leaves such a gap
        with audit_log(tmp_path / f"of{suffix}") as (log, _):
            record(log, f"audit{suffix}")
        (tmp_path / f"of{suffix}").rename(tmp_path / f"audit{suffix}")
    (tmp_path / "audit.old").write_text("not of the log")
    assert details(path) == ["audit.10", "audit.3", "audit.1", "audit"]


WRITER = """
import sys, threading, time
from pathlib import Path
from asterism_access.audit_log import AuditLog
from asterism_access.principals import LOCAL

log = AuditLog(Path(sys.argv[1]), 200_000, 1000, queue_records=100)

def write(thread):
    number = 0
    while True:
        log.record(LOCAL, method="m", detail=f"{thread} {number}", deadline=time.monotonic() + 600)
        number += 1

for thread in range(4):
    threading.Thread(target=write, args=(thread,)).start()
"""


def test_a_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
    try:
        wait_until((tmp_path / "audit.3").exists, "three files are full")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_S)
    entries = list(read_audit_log(path))
    torn = [entry for entry in entries if isinstance(entry, TornLine)]
    assert torn in ([], entries[-1:])
    numbers: dict[str, int] = {}
    for entry in entries:
        if isinstance(entry, AuditRecord):
            thread, number = entry.detail.split()
            assert int(number) == numbers.get(thread, -1) + 1, "no record is missing between others"
            numbers[thread] = int(number)
    with audit_log(path, max_bytes=10 * MIB, files=1000) as (log, _):
        record(log, "after the kill")
    last = list(read_audit_log(path))[-1]
    assert isinstance(last, AuditRecord)
    assert last.detail == "after the kill"


DURABLE_WRITER = """
import sys, time
from pathlib import Path
from asterism_access.audit_log import AuditLog
from asterism_access.principals import LOCAL

log = AuditLog(Path(sys.argv[1]), 5000, 4)
for number in range(100):
    log.record(LOCAL, method="m", detail=f"{number}", deadline=time.monotonic() + 600)
    time.sleep(0.002)
sys.stdin.read()
"""


def test_records_survive_a_power_failure_a_second_later(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    root.mkdir()
    calls = Syscalls(root, tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", DURABLE_WRITER, str(root / "audit")],
        stdin=subprocess.PIPE,
        env={**os.environ, **calls.environment},  # noqa: TID251
    )

    def losses() -> list[str]:
        durability = Durability(calls.events(), root)
        return [loss for file in root.iterdir() for loss in durability.losses(file)]

    try:
        wait_until(
            lambda: (root / "audit.3").exists() and details(root / "audit")[-1:] == ["99"],
            "all records are written",
            ignored=AssertionError,
        )
        wait_until(lambda: not losses(), lambda: f"nothing is lost: {losses()}")
    finally:
        process.communicate(timeout=HANG_S)
    syncs = [event for event in calls.events() if event.call == "sync"]
    rotations = [event for event in calls.events() if event.other.endswith("audit.1")]
    seconds = (syncs[-1].end_ns - syncs[0].begin_ns) / 1e9
    assert len(syncs) <= 3 * len(rotations) + seconds + 4, "one a second, apart from rotations"


def test_a_log_is_readable_in_the_middle_of_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with audit_log(path) as (log, _):
        record(log, "before")
    path.rename(tmp_path / "audit.1")
    assert details(path) == ["before"]


def test_two_processes_do_not_share_a_file(tmp_path: Path) -> None:
    with (
        audit_log(tmp_path / "audit"),
        pytest.raises(InvalidRequest, match=r"audit_file=.*expected a file that this daemon"),
    ):
        AuditLog(tmp_path / "audit", MIB, 1)
    for path in (tmp_path, tmp_path / "missing" / "audit"):
        with pytest.raises(InvalidRequest, match="audit_file="):
            AuditLog(path, MIB, 1)
    with pytest.raises(InvalidRequest, match="expected the file of an audit log"):
        list(read_audit_log(tmp_path / "none"))


def test_a_call_waits_for_a_slow_disk_up_to_its_deadline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)  # accepts 64 KiB, and more as they are read
    pipe = os.open(path, os.O_RDWR)
    log = AuditLog(path, MIB, 1, queue_records=5)
    number = -1
    with pytest.raises(Deadline, match=r"5 records wait for the disk.*not recorded in time"):  # noqa: PT012
        for number in range(1000):
            record(log, f"{number} {'x' * 500}", seconds=0.2)
    (lost,) = [vars(r) for r in caplog.records if r.getMessage() == "audit_record_lost"]
    assert json.loads(lost["record"])["detail"].startswith(f"{number} ")
    waiting = threading.Thread(target=record, args=(log, "waits"))
    waiting.start()
    lines = b""
    while b"waits" not in lines:
        lines += os.read(pipe, 1 << 16)
    waiting.join(HANG_S)
    assert not waiting.is_alive()
    log.close()
    os.close(pipe)
    assert f'"{number - 1} '.encode() in lines
    assert f'"{number} '.encode() not in lines


def test_a_full_disk_loses_records_into_the_daemons_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit"
    path.symlink_to("/dev/full")  # every write raises the kernel's ENOSPC
    with audit_log(path) as (log, written):
        record(log, "one")
        record(log, "two")
        assert log.flush(HANG_S)
        assert written == [False, False]
        assert "no space left" in log.fault
        log.check_writable()
        lost = [vars(r) for r in caplog.records if r.getMessage() == "audit_record_lost"]
        assert [json.loads(entry["record"])["detail"] for entry in lost] == ["one", "two"]
        path.unlink()
        record(log, "three")
        assert log.flush(HANG_S)
        assert (written, log.fault) == ([False, False, True], "")
    assert details(path) == ["three"]


def test_two_daemons_may_write_to_one_device(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    path.symlink_to("/dev/null")
    with audit_log(path) as (first, _), audit_log(path) as (second, _):
        for log in (first, second):
            record(log, "one")
            assert log.flush(HANG_S)
            assert not log.fault


def test_required_records_wait_for_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    path.symlink_to("/dev/full")
    with audit_log(path, required=True, queue=2) as (log, written):
        log.check_writable()
        record(log, "one")
        record(log, "two")
        wait_until(lambda: log.fault, "a write has failed")
        with pytest.raises(Unavailable, match=r"audit_required=true refuses changes"):
            log.check_writable()
        with pytest.raises(Deadline):
            record(log, "three", seconds=0.05)
        path.unlink()
        record(log, "four")
        assert log.flush(HANG_S)
        wait_until(lambda: not log.fault, "the log has recovered")
        log.check_writable()
    assert details(path) == ["one", "two", "four"]
    assert written == [False, True, True, True]


def test_a_disk_that_fills_in_the_middle_tears_no_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        path = disk.path / "audit"
        with audit_log(path, max_bytes=10 * MIB, required=True, queue=10_000) as (log, _):
            for number in range(4000):
                record(log, f"{number} {'x' * 200}")
            wait_until(lambda: log.fault, "the disk is full")
            assert len(details(path)) < 4000
            subprocess.run(["mount", "-o", "remount,size=8m", str(disk.path)], check=True)
            assert log.flush(HANG_S)
        assert [int(detail.split()[0]) for detail in details(path)] == list(range(4000))


def test_a_closed_log_takes_no_records(tmp_path: Path) -> None:
    with audit_log(tmp_path / "audit") as (log, written):
        record(log, "in time")
        log.close()
        log.close()
        with pytest.raises(Unavailable, match="closed"):
            record(log, "late")
        assert written == [True, False]
    assert details(tmp_path / "audit") == ["in time"]
