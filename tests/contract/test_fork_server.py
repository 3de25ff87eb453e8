"""The fork server of tasks with real processes: start, signals and exit of children.

No process outlives its daemon.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest
from tests.kit.task_processes import has_ended
from tests.kit.waiting import HANG_S, wait_until

from storaged.tasks.fork_server import ForkServer, TaskProcess

PARENT = """
import os, sys, tempfile
from pathlib import Path
from storaged.tasks.fork_server import ForkServer
server = ForkServer()
if sys.argv[1] == "forked":
    server.fork()
elif sys.argv[1] == "forked without pidfd":
    del os.pidfd_open
    server.fork()
task = server.start_task("storaged.build", Path(sys.argv[2]), tempfile.TemporaryFile("w+"))
print(task.pid, flush=True)
if sys.argv[3] == "fork" and os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
sys.stdin.read()
server.close()
"""
"""Program of a daemon with a waiting task. A fork of it may stay, like a loader's worker."""

COMMAND = """
import sys
from storaged.tasks.fork_server import ForkServer
def execute(server):
    sys.exit("the server is executed")
ForkServer._execute = execute
from asterism.cli.app import run
sys.exit(run(["--path", "db", "load", "shop", "shop.yaml", "--create", "--build"]))
"""
"""The command `asterism`, if it could not execute a server of tasks."""
SOURCE = "nodes: {item: {id: id, files: items.csv}}"


@pytest.fixture(scope="module", autouse=True)
def forked_task_servers() -> None:
    """Execute the servers here."""


@pytest.fixture
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def errors() -> Iterator[IO[str]]:
    with tempfile.TemporaryFile("w+") as file:
        yield file


@pytest.fixture
def endless_task(tmp_path: Path) -> Path:
    """Return a task that blocks reading its file, a FIFO."""
    os.mkfifo(tmp_path / "endless.json")
    return tmp_path / "endless.json"


def last_line(task: TaskProcess) -> object:
    with task.stdout as lines:
        return json.loads(lines.readlines()[-1])


def open_files(pid: int) -> list[str]:
    """Return what the descriptors of a process refer to."""
    targets = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            targets.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return targets


def test_a_child_reports_its_end_and_its_status(
    server: ForkServer, errors: IO[str], tmp_path: Path
) -> None:
    for module in ("storaged.build", "storaged.version_tasks"):
        task = server.start_task(module, tmp_path / "absent.json", errors)
        assert "No such file" in str(last_line(task))
        assert task.wait() == 1
    errors.seek(0)
    assert errors.read() == ""


def executed_servers() -> set[psutil.Process]:
    """Return the servers that this process has executed."""
    return {
        child
        for child in psutil.Process().children()
        if "storaged.tasks.fork_server" in child.cmdline()
    }


def test_a_prepared_server_is_the_one_that_serves(
    server: ForkServer, errors: IO[str], tmp_path: Path
) -> None:
    before = executed_servers()
    server.prepare()
    server.prepare()
    (prepared,) = executed_servers() - before
    task = server.start_task("storaged.build", tmp_path / "absent.json", errors)
    task.stdout.close()
    assert task.wait() == 1
    assert prepared.is_running()
    server.close()
    assert not prepared.is_running()


def test_an_error_of_a_child_is_on_its_stderr(
    server: ForkServer, errors: IO[str], tmp_path: Path
) -> None:
    task = server.start_task("storaged.unknown", tmp_path / "task.json", errors)
    with task.stdout as lines:
        assert lines.read() == ""
    assert task.wait() == 1
    errors.seek(0)
    assert "ModuleNotFoundError" in errors.read()


def test_a_child_has_a_name_a_session_and_no_files_of_the_server(
    server: ForkServer, errors: IO[str], endless_task: Path
) -> None:
    task = server.start_task("storaged.build", endless_task, errors)
    process = psutil.Process(task.pid)
    wait_until(lambda: process.name() == "storaged.build", "the name is not set")
    assert os.getsid(task.pid) == task.pid
    files = open_files(task.pid)
    assert "/dev/null" in files
    assert os.readlink(f"/proc/self/fd/{errors.fileno()}") in files
    assert [file for file in files if file.startswith(("socket", "anon_inode"))] == []
    task.send_signal(signal.SIGKILL)
    assert task.wait() == -signal.SIGKILL
    task.stdout.close()


def test_child_is_stopped_and_continued(
    server: ForkServer, errors: IO[str], endless_task: Path
) -> None:
    task = server.start_task("storaged.build", endless_task, errors)
    process = psutil.Process(task.pid)
    wait_until(lambda: process.name() == "storaged.build", "the child has begun")
    task.send_signal(signal.SIGSTOP)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "the child is not held")
    task.send_signal(signal.SIGCONT)
    wait_until(lambda: process.status() != psutil.STATUS_STOPPED, "the child does not go on")
    task.send_signal(signal.SIGTERM)
    assert task.wait() == -signal.SIGTERM
    task.send_signal(signal.SIGKILL)  # ignored: the process has ended
    task.stdout.close()


def test_children_run_concurrently(server: ForkServer, endless_task: Path, tmp_path: Path) -> None:
    statuses: list[int] = []

    def run() -> None:
        with tempfile.TemporaryFile("w+") as errors:
            task = server.start_task("storaged.build", tmp_path / "absent.json", errors)
            task.stdout.close()
            statuses.append(task.wait())

    with tempfile.TemporaryFile("w+") as errors:
        waiting_task = server.start_task("storaged.build", endless_task, errors)
        threads = [threading.Thread(target=run) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        assert len(statuses) == 20
        waiting_task.send_signal(signal.SIGKILL)
        assert waiting_task.wait() == -signal.SIGKILL
        waiting_task.stdout.close()


def test_killed_server_ends_its_children_and_is_replaced(
    server: ForkServer, errors: IO[str], endless_task: Path, tmp_path: Path
) -> None:
    task = server.start_task("storaged.build", endless_task, errors)
    process = psutil.Process(task.pid)
    os.kill(process.ppid(), signal.SIGKILL)
    assert task.wait() == -signal.SIGKILL
    wait_until(lambda: has_ended(process), "the child goes on without its server")
    task.stdout.close()
    next_task = server.start_task("storaged.build", tmp_path / "absent.json", errors)
    next_task.stdout.close()
    assert next_task.wait() == 1


def test_closing_ends_the_children(errors: IO[str], endless_task: Path) -> None:
    server = ForkServer()
    task = server.start_task("storaged.build", endless_task, errors)
    process = psutil.Process(task.pid)
    server.close()
    assert task.wait() == -signal.SIGKILL
    wait_until(lambda: has_ended(process), "the child goes on without its server")
    task.stdout.close()


def test_a_server_that_imports_still_ends_at_once(server: ForkServer) -> None:
    before = executed_servers()
    server.prepare()
    (prepared,) = executed_servers() - before
    server.close()
    assert not prepared.is_running()


def test_a_closed_server_stays_closed(server: ForkServer, errors: IO[str], tmp_path: Path) -> None:
    before = executed_servers()
    server.close()
    server.prepare()
    with pytest.raises(OSError, match="the fork server is closed"):
        server.start_task("storaged.build", tmp_path / "absent.json", errors)
    assert executed_servers() == before


def test_no_fork_of_a_process_with_threads() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="a fork would have only one of them"):
            ForkServer().fork()
    finally:
        stop.set()
        thread.join()


def test_a_command_forks_its_server(tmp_path: Path) -> None:
    """Its tasks need no second import of the same modules."""
    (tmp_path / "shop.yaml").write_text(SOURCE)
    (tmp_path / "items.csv").write_text("id\n1\n2\n")
    completed = subprocess.run(
        [sys.executable, "-c", COMMAND],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert "version 1 is published" in completed.stdout, completed.stderr
    assert completed.returncode == 0


@pytest.mark.parametrize("start", ["forked", "forked without pidfd", "executed"])
@pytest.mark.parametrize("beside", ["fork", "alone"])
@pytest.mark.parametrize("end", ["kill", "close"])
def test_nothing_outlives_the_daemon(start: str, beside: str, end: str, endless_task: Path) -> None:
    command = [sys.executable, "-c", PARENT, start, str(endless_task), beside]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        task = psutil.Process(int(parent.stdout.readline()))
        fork = int(parent.stdout.readline()) if beside == "fork" else 0
        server = psutil.Process(task.ppid())
        assert server.ppid() == parent.pid
        # Terminals and service managers signal the whole group. The daemon decides when its tasks
        # end.
        server.send_signal(signal.SIGINT)
        server.send_signal(signal.SIGTERM)
        assert not has_ended(server)
        if fork:
            os.kill(fork, signal.SIGSTOP)  # otherwise it would read the standard input
        if end == "kill":
            parent.kill()
        else:
            parent.stdin.close()
        wait_until(lambda: has_ended(server), "the server outlives the daemon")
        wait_until(lambda: has_ended(task), "a task outlives the daemon")
        if fork:
            os.kill(fork, signal.SIGKILL)
