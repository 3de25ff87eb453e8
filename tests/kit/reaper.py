"""Reaper: a process that ends all leftovers of a test process, however that one ended.

`start` adds a mark to this process's environment, which all descendants inherit: daemons, their
children, trainers, browsers, also those in their own sessions. The reaper waits for this process to
end, even by SIGKILL. It then kills every process with the mark, with all descendants, and runs the
commands that were registered with `on_end`, because containers of a Docker engine are not
descendants.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

MARK = "ASTERISM_TEST_RUN"
"""Environment variable with the tokens of all test processes among a process's ancestors."""
_SWEEPS_S = 60.0
"""Seconds that the reaper searches for processes that start while it kills others."""
_COMMAND_S = 300.0


class Process(NamedTuple):
    """One entry of the process table."""

    pid: int
    parent: int
    started: int
    """Start time in clock ticks since boot."""


class Reaper:
    """The running reaper of this process."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        """File descriptor that the reaper reads from."""

    @contextmanager
    def on_end(self, *command: str) -> Iterator[None]:
        """Have the reaper run a command if this process ends inside the block."""
        key = uuid.uuid4().hex
        self._send({"add": key, "command": command})
        try:
            yield
        finally:
            self._send({"remove": key})

    def _send(self, message: dict[str, object]) -> None:
        os.write(self._messages, json.dumps(message).encode() + b"\n")


_running: list[Reaper] = []


def start() -> Reaper:
    """Start the reaper of this process, or return the one that runs."""
    if not _running:
        token = uuid.uuid4().hex
        command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), token]
        # In its own session: a signal to the test run's process group must not end it. Its own
        # environment has no mark of this process.
        read, write = os.pipe()
        # The child inherits this environment.
        environment = {name: value for name, value in os.environ.items() if name != MARK}  # noqa: TID251
        os.posix_spawn(
            sys.executable,
            command,
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, read, 0)],
            setsid=True,
        )
        os.close(read)
        # Children inherit the mark.
        os.environ[MARK] = ":".join([*filter(None, [os.environ.get(MARK)]), token])  # noqa: TID251
        _running.append(Reaper(write))
    return _running[0]


def processes() -> list[Process]:
    """Return the process table."""
    table = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                table.append(Process(int(name), int(fields[1]), int(fields[19])))
    return table


def find_marked(token: str) -> set[int]:
    """Return the ids of all processes with a token in their environment and descendants.

    Reapers, which have commands to run, are excluded.
    """
    table = [process for process in processes() if not _is_reaper(process.pid)]
    marked_pids = {
        process.pid for process in table if token.encode() in _read(process.pid, "environ")
    }
    return _with_descendants(marked_pids, table) - {os.getpid()}


def _is_reaper(pid: int) -> bool:
    return __file__.encode() in _read(pid, "cmdline").split(b"\0")[1:4]


def _with_descendants(pids: set[int], table: Sequence[Process]) -> set[int]:
    while True:
        children = {process.pid for process in table if process.parent in pids} - pids
        if not children:
            return pids
        pids = pids | children


def _read(pid: int, file_name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{file_name}").read_bytes()
    except OSError:
        return b""


def _find_orphans(cmdline: bytes, started_after: int) -> set[int]:
    """Return the orphans that the test process forked without exec.

    They have its command line, and the same process adopted them as this one.
    """
    if not cmdline:
        return set()
    reaper_parent = os.getppid()
    return {
        p.pid
        for p in processes()
        if p.parent == reaper_parent
        and p.started > started_after
        and _read(p.pid, "cmdline") == cmdline
    }


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _wait(parent: int) -> list[list[str]]:
    """Wait for the test process to end; return the commands registered by then."""
    try:
        pidfd = os.pidfd_open(parent)
    except ProcessLookupError:
        return []
    end_poll, message_poll = select.poll(), select.poll()
    for poll in (end_poll, message_poll):
        poll.register(0, select.POLLIN)
    end_poll.register(pidfd, select.POLLIN)
    data = b""
    while os.getppid() == parent and pidfd not in (ready_fds := dict(end_poll.poll())):
        if 0 in ready_fds:
            data += (received := os.read(0, 1 << 16))
            if not received:  # the pipe is closed, but the process may live for a moment
                end_poll.unregister(0)
    while message_poll.poll(0) and (received := os.read(0, 1 << 16)):
        data += received
    commands: dict[str, list[str]] = {}
    for line in data.splitlines():
        message = json.loads(line)
        if "add" in message:
            commands[message["add"]] = message["command"]
        else:
            commands.pop(message["remove"], None)
    return list(commands.values())


def main(parent: int, token: str) -> None:
    """Wait for the test process to end, then end its leftovers."""
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    cmdline = _read(parent, "cmdline")
    started = next((process.started for process in processes() if process.pid == parent), 0)
    commands = _wait(parent)
    deadline = time.monotonic() + _SWEEPS_S
    while (
        remaining := find_marked(token) | _find_orphans(cmdline, started)
    ) and time.monotonic() < deadline:
        _kill(remaining)
        time.sleep(0.02)
    for command in commands:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_COMMAND_S,
                check=False,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
