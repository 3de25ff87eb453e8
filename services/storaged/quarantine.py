"""Quarantine: keeps folders that metad ordered removed for a grace period before they are deleted.

``<data>/quarantine/<entry>/data`` is the folder itself, moved there by one rename; ``entry.json``
beside it records its origin and the reason. An entry is deleted when its grace period is over,
which is counted in seconds that a storaged has run on the folder: no jump of the wall clock ends it.
The oldest entries are deleted earlier while all entries together exceed a limit or the disk is
short of room. Files that are hard links to files of a served version count in full, although
deleting them frees nothing.

``python -m storaged.quarantine --data FOLDER list`` shows the entries; ``restore ENTRY`` moves one
back while no storaged has the folder open.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import logging
import os
import shutil
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from asterism_proto.durable import write_durably
from asterism_proto.errors import AsterismError, Conflict, NotFound
from daemonkit.identity import is_open
from storaged.folders import Folders, used_bytes

logger = logging.getLogger(__name__)

GONE = ".gone"
"""Suffix of folders that are being deleted."""
DATA, ENTRY = "data", "entry.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A quarantined folder."""

    name: str
    origin: str
    """Its original path, relative to the data folder."""
    reason: str
    quarantined_ms: int
    """By the wall clock."""
    bytes: int
    running_s: float = -1.0
    """Running time at which it was quarantined; -1: by a release that did not record it."""


class RunningTime:
    """Seconds that storageds have run on a folder, over all starts.

    Parameters
    ----------
    file : Path
    monotonic : callable, optional
    """

    def __init__(self, file: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file, self._monotonic = file, monotonic
        self._before_s, self._began = self._read(), monotonic()

    def now(self) -> float:
        """Return the running time."""
        return self._before_s + self._monotonic() - self._began

    def save(self) -> None:
        """Record it. What was not recorded before a kill is not counted: entries stay longer."""
        content = f"{self.now():.0f}"
        with contextlib.suppress(OSError):  # a full disk
            write_durably(self._file, f"{content} {zlib.crc32(content.encode())}".encode())

    def _read(self) -> float:
        try:
            content, _, checksum = self._file.read_text().partition(" ")
            return float(content) if int(checksum) == zlib.crc32(content.encode()) else 0.0
        except (OSError, ValueError):
            return 0.0


class Quarantine:
    """The quarantine of a data folder. Thread-safe.

    Parameters
    ----------
    folders : Folders
    grace_s : float
        Age at which an entry is deleted.
    limit_bytes : int
        Size of all entries together; above it, the oldest are deleted early.
    free_bytes : int
        While the disk has less free, the oldest entries are deleted early.
    now : callable, optional
        Seconds since the epoch.
    monotonic : callable, optional
        Seconds of a clock that is never set.
    """

    def __init__(
        self,
        folders: Folders,
        *,
        grace_s: float,
        limit_bytes: int,
        free_bytes: int,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._running = RunningTime(folders.running, monotonic)
        self._folders, self._now = folders, now
        self._grace_s, self._limit_bytes, self._free_bytes = grace_s, limit_bytes, free_bytes
        self._lock = threading.Lock()
        self._doomed: list[Path] = []
        """Folders to delete at the next `purge`, renamed so that nothing opens them."""
        self._entries = {entry.name: self._dated(entry) for entry in _entries(folders)}

    def _dated(self, entry: Entry) -> Entry:
        """An entry whose age is known: one of no age, or of a time to come, is as old as this start."""
        known = 0 <= entry.running_s <= self._running.now()
        return entry if known else replace(entry, running_s=self._running.now())

    def entries(self) -> list[Entry]:
        """Return the entries, oldest first."""
        with self._lock:
            return sorted(self._entries.values(), key=lambda entry: (entry.running_s, entry.quarantined_ms))

    def close(self) -> None:
        """Record how long this storaged has run."""
        self._running.save()

    def take(self, path: Path, reason: str) -> None:
        """Move a folder into quarantine by one rename, or, on a disk short of room, delete it at the next `purge`."""
        if not self._short():
            try:
                self.fill(path, reason, lambda place: path.rename(place))
                return
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
        gone = path.with_name(path.name + GONE)
        shutil.rmtree(gone, ignore_errors=True)
        path.rename(gone)
        logger.info("folder_removed", extra={"path": str(path), "reason": reason, "cause": "the disk has less than quarantine_free_mib free"})
        with self._lock:
            self._doomed.append(gone)

    def fill(self, origin: Path, reason: str, make: Callable[[Path], object]) -> Entry:
        """Add an entry that ``make`` writes to the path that it is given, as a copy of ``origin``."""
        with self._lock:
            relative = origin.relative_to(self._folders.data)
            now_ms = int(self._now() * 1000)
            name = f"{now_ms}-{'-'.join(relative.parts)}"
            while (folder := self._folders.quarantine / name).exists():
                name += "+"
            folder.mkdir(parents=True)
            entry = Entry(name=name, origin=str(relative), reason=reason, quarantined_ms=now_ms, bytes=0, running_s=self._running.now())
            write_durably(folder / ENTRY, json.dumps(asdict(entry)).encode())
            make(folder / DATA)
            _sync(origin.parent)
            self._entries[name] = _measured(folder, entry)
            logger.info("folder_quarantined", extra={"path": str(origin), "entry": name, "reason": reason})
            return self._entries[name]

    def put_back(self, path: Path) -> bool:
        """Move the newest entry of ``path`` back to its place, if there is one and the place is free."""
        with self._lock:
            origin = str(path.relative_to(self._folders.data))
            found = max((e for e in self._entries.values() if e.origin == origin), key=lambda e: (e.running_s, e.quarantined_ms), default=None)
            if found is None or path.exists():
                return False
            _restore(self._folders, found)
            del self._entries[found.name]
            logger.info("folder_restored", extra={"path": str(path), "entry": found.name})
            return True

    def purge(self) -> list[Entry]:
        """Delete the entries that are due and folders without data; return the deleted entries."""
        gone = []
        self._running.save()
        with self._lock:
            doomed, self._doomed = self._doomed, []
        for path in doomed:
            shutil.rmtree(path, ignore_errors=True)
        for folder in _children(self._folders.quarantine):
            if not (folder / DATA).exists():
                with self._lock:  # an entry is being made
                    empty = folder.name not in self._entries and not (folder / DATA).exists()
                if empty:
                    shutil.rmtree(folder, ignore_errors=True)
        while (entry := self._due()) is not None:
            self._unlink(entry)
            gone.append(entry)
        return gone

    def _due(self) -> Entry | None:
        entries = self.entries()
        if not entries:
            return None
        oldest = entries[0]
        over = self._running.now() >= oldest.running_s + self._grace_s
        crowded = sum(entry.bytes for entry in entries) > self._limit_bytes
        return oldest if over or crowded or self._short() else None

    def _short(self) -> bool:
        return shutil.disk_usage(self._folders.data).free < self._free_bytes

    def _unlink(self, entry: Entry) -> None:
        folder = self._folders.quarantine / entry.name
        with self._lock:
            if self._entries.pop(entry.name, None) is None:
                return
            # From here on it is not an entry, even after a crash during the deletion.
            (folder / DATA).rename(folder / "gone")
        shutil.rmtree(folder, ignore_errors=True)
        logger.info("quarantine_unlinked", extra={"entry": entry.name, "bytes": entry.bytes})


def _entries(folders: Folders) -> list[Entry]:
    found = []
    for folder in _children(folders.quarantine):
        if not (folder / DATA).exists():
            continue
        try:
            entry = Entry(**json.loads((folder / ENTRY).read_text()))
        except (OSError, ValueError, TypeError):
            # Kept: without its record, neither its age nor its origin is known.
            logger.warning("quarantine_entry_unreadable", extra={"path": str(folder / ENTRY)})
            continue
        found.append(_measured(folder, entry))
    return sorted(found, key=lambda entry: entry.quarantined_ms)


def _measured(folder: Path, entry: Entry) -> Entry:
    return replace(entry, name=folder.name, bytes=used_bytes(folder / DATA))


def _restore(folders: Folders, entry: Entry) -> None:
    folder, origin = folders.quarantine / entry.name, folders.data / entry.origin
    origin.parent.mkdir(parents=True, exist_ok=True)
    (folder / DATA).rename(origin)
    _sync(origin.parent)
    shutil.rmtree(folder, ignore_errors=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def main(arguments: Sequence[str]) -> int:
    """List the entries of a data folder's quarantine, or restore one.

    The exit status is 0, or 2 with the cause on stderr.
    """
    parser = argparse.ArgumentParser(prog="python -m storaged.quarantine", description="List or restore quarantined folders.")
    parser.add_argument("--data", type=Path, required=True, help="the data folder of a storaged")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="show the entries, oldest first")
    commands.add_parser("restore", help="move an entry back to where it was; its storaged must not run").add_argument("entry")
    chosen = parser.parse_args(arguments)
    folders = Folders(chosen.data)
    try:
        if chosen.command == "list":
            for entry in _entries(folders):
                print(json.dumps(asdict(entry)))
        else:
            _restore_by_hand(folders, chosen.entry)
    except AsterismError as error:
        print(f"quarantine: {error.message}", file=sys.stderr)
        return 2
    return 0


def _restore_by_hand(folders: Folders, name: str) -> None:
    if is_open(folders.data):
        raise Conflict(f"data={str(folders.data)!r}: expected a folder that no process has open; stop its storaged, then restore")
    entry = next((entry for entry in _entries(folders) if entry.name == name), None)
    if entry is None:
        raise NotFound(
            f"entry={name!r}: expected an entry of {folders.quarantine}; `python -m storaged.quarantine --data {folders.data} list` shows them"
        )
    if (folders.data / entry.origin).exists():
        raise Conflict(f"entry={name!r}: its place {folders.data / entry.origin} is taken; move that folder out of {folders.data}, then restore")
    _restore(folders, entry)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
