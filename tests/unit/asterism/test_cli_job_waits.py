"""Tests of waiting for jobs: hosts that are offline, deadlines, interruptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asterism.cli.context import CommandContext
from asterism.cli.interruption import CommandInterrupted
from asterism.cli.job_waits import JobWatch, wait_for_job
from asterism.cli.output import Output
from asterism_proto.errors import Deadline, NotFound, Unavailable


def command(*, path: Path | None = None, address: str | None = None) -> CommandContext:
    return CommandContext(address=address, path=path, timeout_s=30.0, output=Output(as_json=True))


def job(rows: int, *hosts: str, state: str = "RUNNING") -> Any:
    tasks = [SimpleNamespace(host=host, state=state, phase="edges") for host in hosts]
    return SimpleNamespace(
        job_id=7,
        kind="build",
        space="shop",
        state=state,
        rows_done=rows,
        rows_total=100,
        rows_per_s=5.0,
        eta_s=9.0,
        tasks=tasks,
    )


class Service:
    """A client with hosts that are online or not, and jobs that never end."""

    def __init__(self, **online: bool) -> None:
        self.online = online
        self.calls = 0
        self.ending: BaseException = Deadline("the time is up")

    def hosts(self) -> list[Any]:
        self.calls += 1
        return [
            SimpleNamespace(uuid=name, address=f"{name}:9779", online=online, role="STORAGED")
            for name, online in self.online.items()
        ]

    def wait(self, job_id: int, *, timeout_s: float, on_progress: Callable[[Any], None]) -> Any:
        on_progress(job(40, "a", "b"))
        raise self.ending


class Progress:
    def __init__(self) -> None:
        self.now = 0.0
        self.updates: list[tuple[str, int, str, float]] = []

    def clock(self) -> float:
        return self.now

    def __call__(self, task: str, done: int, total: int | None, **options: Any) -> None:
        self.updates.append((task, done, options["note"], options["left_s"]))


def test_a_stalled_job_names_the_hosts_that_it_waits_for() -> None:
    service, progress = Service(a=True, b=False, c=False), Progress()
    watch = JobWatch(service, progress, progress.clock)  # type: ignore[arg-type]
    for second, rows in ((0, 10), (2, 20), (4, 20), (5.5, 20), (6, 20), (9, 20), (10, 30)):
        progress.now = second
        watch(job(rows, "a", "b"))
    waits = "waits for b:9779 (offline)"
    assert [note for _, _, note, _ in progress.updates] == ["", "", "", waits, waits, waits, ""]
    assert [left for _, _, _, left in progress.updates][2:5] == [9.0, 0.0, 0.0]
    assert service.calls == 2


def test_a_job_that_makes_progress_asks_for_no_hosts() -> None:
    service, progress = Service(a=False), Progress()
    watch = JobWatch(service, progress, progress.clock)  # type: ignore[arg-type]
    for second in range(20):
        progress.now = second
        watch(job(second, "a"))
    assert service.calls == 0


def test_a_deadline_says_that_the_job_continues() -> None:
    service = Service()
    with pytest.raises(Deadline) as raised:
        wait_for_job(command(address="db:9669"), service, 7, 0.0)  # type: ignore[arg-type]
    assert raised.value.message == (
        "--total-timeout=0: job 7 has not ended (it is RUNNING, 40 of 100 rows); job 7 continues: "
        "`asterism --address db:9669 job wait 7` waits for it, "
        "`asterism --address db:9669 job stop 7` stops it"
    )


def test_a_deadline_of_a_single_call_is_not_that_of_the_job() -> None:
    with pytest.raises(Deadline, match=r"^the time is up$"):
        wait_for_job(command(), Service(), 7, 60.0)  # type: ignore[arg-type]


def test_a_lost_connection_says_that_the_job_continues() -> None:
    service = Service()
    service.ending = Unavailable("no answer from graphd at a:1")
    with pytest.raises(
        Unavailable, match=r"^no answer from graphd at a:1; job 7 continues: "
    ) as raised:
        wait_for_job(command(), service, 7, 60.0)  # type: ignore[arg-type]
    assert type(raised.value) is Unavailable


def test_an_interrupted_wait_says_how_to_resume(tmp_path: Path) -> None:
    service = Service()
    service.ending = KeyboardInterrupt()
    with pytest.raises(CommandInterrupted) as raised:
        wait_for_job(command(), service, 7, 60.0)  # type: ignore[arg-type]
    assert str(raised.value) == (
        "interrupted; job 7 continues: `asterism job wait 7` waits for it, "
        "`asterism job stop 7` stops it"
    )
    with pytest.raises(
        CommandInterrupted, match=r"continues when the folder is open again: `asterism --path"
    ):
        wait_for_job(command(path=tmp_path), service, 7, 60.0)  # type: ignore[arg-type]


def test_other_errors_of_a_wait_are_unchanged() -> None:
    service = Service()
    service.ending = NotFound("there is no job 7")
    with pytest.raises(NotFound, match=r"^there is no job 7$"):
        wait_for_job(command(), service, 7, 60.0)  # type: ignore[arg-type]
