"""Recorder of daemons' system calls, which can also make them fail.

It checks durability and can shift the wall clock. The recorder is a C library
(`preload/syscalls.c`) that is compiled on demand and preloaded into daemons. It needs gcc, and no
rights to trace processes. It does not record writes through mapped memory.
"""

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
    """Return the compiled library; skip the test if there is no compiler."""
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
    """One system call on a path below the root."""

    begin_ns: int
    """Start on the monotonic clock, as `time.monotonic_ns` returns it in any process."""
    end_ns: int
    pid: int
    result: int
    call: str
    """``create`` (a file or folder), ``write``, ``sync`` (of a file or folder), ``rename`` or
    ``link``.
    """
    path: str
    other: str
    """New name of a ``rename`` or ``link``."""


class Syscalls:
    """Record of the system calls below a folder, of processes with `environment`.

    Parameters
    ----------
    root : Path
        Folder below which system calls are recorded.
    folder : Path
        Folder for the record and the control file; not below ``root``.
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
        """Replace the control lines.

        They are ``fail ERRNO CALL TEXT``, ``wait MILLISECONDS CALL TEXT`` or ``clock SECONDS``.
        """
        temporary = self._control.with_suffix(".making")
        temporary.write_text("\n".join(lines))
        temporary.rename(self._control)

    def events(self) -> list[Event]:
        """Return the events recorded so far, ordered by their ends."""
        events = []
        for line in self._record.read_text().splitlines() if self._record.exists() else ():
            begin, end, pid, result, call, path, other_path = line.split("\t")
            events.append(
                Event(int(begin), int(end), int(pid), int(result), call, path, other_path)
            )
        return sorted(events, key=lambda event: event.end_ns)


class Durability:
    """Content of a recorded folder that would survive a power failure.

    A name is durable once its folder was synced after the name was created; content is durable once
    the file was synced after the write. For overlapping calls, the worst order is assumed.

    Parameters
    ----------
    events : sequence of Event
        Events since before anything in the folder was created.
    root : Path
        The recorded folder, which existed before.
    """

    def __init__(self, events: Sequence[Event], root: Path) -> None:
        self._root = root.resolve()
        self._events = [event for event in events if event.result >= 0]

    def losses(self, path: Path, at_ns: int | None = None) -> list[str]:
        """Describe the losses of a power failure at a time (default: now) for a path.

        The path is a file or folder; its parent folders count too.
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
        """Return the names of a path and its parent folders, and the time until which each was
        valid.

        A former name may belong to another file by now.
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
