"""System calls of daemons: recorded, held against what must be durable, made to fail, or shown
another wall clock.

The recorder is a library in C (`preload/syscalls.c`) that is compiled where it is needed and
preloaded into daemons; it needs gcc, and no rights to trace processes. What a process writes
through mapped memory it does not see."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

_CREATING_CALLS = ("create", "rename", "link")
_SOURCE = Path(__file__).with_name("preload") / "syscalls.c"


@functools.cache
def _library() -> Path:
    """The compiled library; a skip where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("system calls are recorded by a library that needs gcc to be compiled")
    target = Path(tempfile.mkdtemp(prefix="asterism-syscalls-")) / "syscalls.so"
    completed = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(target), str(_SOURCE), "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        pytest.skip(
            "the library that records system calls cannot be compiled here: "
            f"{completed.stderr.strip()}"
        )
    return target


@dataclass(frozen=True, slots=True)
class Event:
    """One call on a path below the root."""

    begin_ns: int
    """By the monotonic clock, as `time.monotonic_ns` gives it in any process."""
    end_ns: int
    pid: int
    result: int
    call: str
    """``create`` (a file or folder), ``write``, ``sync`` (of a file or folder), ``rename`` or
    ``link``.
    """
    path: str
    other: str
    """The new name of a ``rename`` or ``link``."""


class Syscalls:
    """What the processes that have `environment` do below a folder.

    Parameters
    ----------
    root : Path
        Paths below it count.
    folder : Path
        For the record and what controls the calls; not below ``root``.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root.resolve()
        self._record, self._control = folder / "syscalls.record", folder / "syscalls.control"
        self.environment = {
            "LD_PRELOAD": str(_library()),
            "SYSCALLS_ROOT": str(self._root),
            "SYSCALLS_RECORD": str(self._record),
            "SYSCALLS_CONTROL": str(self._control),
        }

    def control(self, *lines: str) -> None:
        """Let these hold from now on: ``fail ERRNO CALL TEXT``, ``wait MILLISECONDS CALL TEXT``,
        ``clock SECONDS``.
        """
        temporary = self._control.with_suffix(".making")
        temporary.write_text("\n".join(lines))
        temporary.rename(self._control)

    def events(self) -> list[Event]:
        """What was recorded until now, in the order of the ends."""
        events = []
        for line in self._record.read_text().splitlines() if self._record.exists() else ():
            begin, end, pid, result, call, path, other_path = line.split("\t")
            events.append(
                Event(int(begin), int(end), int(pid), int(result), call, path, other_path)
            )
        return sorted(events, key=lambda event: event.end_ns)


class Durability:
    """What of a recorded folder would be there after a power failure.

    A name is durable once its folder was synced after the name was made; content is durable once
    the file was synced after it was written. Calls that overlap are taken as they are worst.

    Parameters
    ----------
    events : sequence of Event
        From before anything was made.
    root : Path
        Was there before.
    """

    def __init__(self, events: Sequence[Event], root: Path) -> None:
        self._root = root.resolve()
        self._events = [event for event in events if event.result >= 0]

    def losses(self, path: Path, at_ns: int | None = None) -> list[str]:
        """Describe what a power failure at a time (now) would take of a file or folder, and of the
        folders above it.
        """
        cutoff_ns = time.monotonic_ns() if at_ns is None else at_ns
        path = path.resolve()
        problems = self._content(str(path), cutoff_ns)
        while path != self._root:
            problems += self._name(path, cutoff_ns)
            path = path.parent
        return problems

    def _content(self, path: str, cutoff_ns: int) -> list[str]:
        names = self._names(path, cutoff_ns)
        writes = [
            event.end_ns
            for event in self._events
            if event.call == "write" and event.end_ns <= names.get(event.path, 0)
        ]
        if not writes or self._synced(names, max(writes)):
            return []
        return [f"the content of {path}: not synced after it was written"]

    def _name(self, path: Path, cutoff_ns: int) -> list[str]:
        names = self._names(str(path), cutoff_ns)
        creations = [
            event
            for event in self._events
            if event.call in _CREATING_CALLS
            and event.end_ns <= names.get(event.other or event.path, 0)
        ]
        if not creations or self._synced(
            self._names(str(path.parent), cutoff_ns), creations[-1].end_ns
        ):
            return []
        return [
            f"the name {path} ({creations[-1].call}): its folder was not synced after it was made"
        ]

    def _names(self, path: str, cutoff_ns: int) -> dict[str, int]:
        """What a file or folder was called, with the folders above it, and until when: a former
        name may be another file's by now.
        """
        names = {path: cutoff_ns}
        name = path
        for event in reversed(self._events):
            if (
                event.call in ("rename", "link")
                and event.end_ns <= cutoff_ns
                and f"{name}/".startswith(f"{event.other}/")
            ):
                name = event.path + name[len(event.other) :]
                cutoff_ns = event.end_ns if event.call == "rename" else cutoff_ns
                names.setdefault(name, cutoff_ns)
        return names

    def _synced(self, names: Mapping[str, int], after: int) -> bool:
        return any(
            e.call == "sync" and e.begin_ns >= after and e.end_ns <= names.get(e.path, 0)
            for e in self._events
        )
