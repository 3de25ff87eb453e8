"""Quarantine: keep removed folders for a grace period, then delete them.

``<data>/quarantine/<entry>/data`` is the folder itself, moved there by one rename. ``entry.json``
next to it records its origin and the reason. An entry is deleted when its grace period is over. The
period counts only the seconds that a storaged runs on the folder, so a jump of the wall clock does
not end it. The oldest entries are deleted earlier while all entries together exceed a limit or the
disk is low on free space. Files that are hard links to files of a served version count in full,
although deleting them frees nothing.

``python -m storaged.quarantine --data FOLDER list`` shows the entries. ``restore ENTRY`` moves one
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

from asterism_daemonkit.daemon_identity import is_folder_open
from asterism_io.durable_files import write_durably
from asterism_proto.errors import AsterismError, Conflict, NotFound
from storaged.paths import DataPaths, used_bytes

logger = logging.getLogger(__name__)

DELETING_SUFFIX = ".gone"
"""Suffix of folders that are being deleted."""
DATA_FOLDER, ENTRY_FILE = "data", "entry.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineEntry:
    """A quarantined folder."""

    name: str
    origin: str
    """Original path, relative to the data folder."""
    reason: str
    quarantined_ms: int
    """Time of the removal by the wall clock, in milliseconds since the epoch."""
    bytes: int
    running_s: float = -1.0
    """Running time in seconds at the removal; -1 if an old release did not record it."""


class RunningTime:
    """The seconds that storageds have run on a folder, over all starts.

    Parameters
    ----------
    file : Path
        File that stores the running time and its checksum.
    monotonic : callable, optional
        Monotonic clock in seconds.
    """

    def __init__(self, file: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file, self._monotonic = file, monotonic
        self._earlier_s, self._started = self._read(), monotonic()

    def now(self) -> float:
        """Return the running time in seconds."""
        return self._earlier_s + self._monotonic() - self._started

    def save(self) -> None:
        """Record the running time.

        Time that was not recorded before a kill does not count, so entries stay longer.
        """
        content = f"{self.now():.0f}"
        with contextlib.suppress(OSError):  # A full disk.
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
    paths : DataPaths
    grace_s : float
        Age in seconds at which an entry is deleted.
    limit_bytes : int
        Size of all entries together; above it, the oldest are deleted early.
    free_bytes : int
        While the disk has fewer bytes free, the oldest entries are deleted early.
    now : callable, optional
        Wall clock, in seconds since the epoch.
    monotonic : callable, optional
        Monotonic clock in seconds.
    """

    def __init__(
        self,
        paths: DataPaths,
        *,
        grace_s: float,
        limit_bytes: int,
        free_bytes: int,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._running = RunningTime(paths.running_time, monotonic)
        self._paths, self._now = paths, now
        self._grace_s, self._limit_bytes, self._free_bytes = grace_s, limit_bytes, free_bytes
        self._lock = threading.Lock()
        self._pending_deletes: list[Path] = []
        """Folders to delete at the next `purge`, renamed so that nothing opens them."""
        self._entries = {entry.name: self._with_age(entry) for entry in _entries(paths)}

    def _with_age(self, entry: QuarantineEntry) -> QuarantineEntry:
        """Return an entry with a known age.

        If its age is unknown or lies in the future, the grace period starts at this start.
        """
        has_known_age = 0 <= entry.running_s <= self._running.now()
        return entry if has_known_age else replace(entry, running_s=self._running.now())

    def entries(self) -> list[QuarantineEntry]:
        """Return the entries, oldest first."""
        with self._lock:
            return sorted(
                self._entries.values(), key=lambda entry: (entry.running_s, entry.quarantined_ms)
            )

    def close(self) -> None:
        """Record the running time."""
        self._running.save()

    def add(self, path: Path, reason: str) -> None:
        """Move a folder into quarantine by one rename.

        If the disk is low on free space, delete the folder at the next `purge` instead.
        """
        if not self._is_disk_low():
            try:
                self.add_copy(path, reason, lambda target: path.rename(target))
                return
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
        deleting = path.with_name(path.name + DELETING_SUFFIX)
        shutil.rmtree(deleting, ignore_errors=True)
        path.rename(deleting)
        logger.info(
            "folder_removed",
            extra={
                "path": str(path),
                "reason": reason,
                "cause": "the disk has less than quarantine_free_mib free",
            },
        )
        with self._lock:
            self._pending_deletes.append(deleting)

    def add_copy(
        self, origin: Path, reason: str, write_content: Callable[[Path], object]
    ) -> QuarantineEntry:
        """Add an entry as a copy of ``origin``; ``write_content`` writes it to the given path."""
        with self._lock:
            relative = origin.relative_to(self._paths.data)
            now_ms = int(self._now() * 1000)
            name = f"{now_ms}-{'-'.join(relative.parts)}"
            while (folder := self._paths.quarantine / name).exists():
                name += "+"
            folder.mkdir(parents=True)
            entry = QuarantineEntry(
                name=name,
                origin=str(relative),
                reason=reason,
                quarantined_ms=now_ms,
                bytes=0,
                running_s=self._running.now(),
            )
            write_durably(folder / ENTRY_FILE, json.dumps(asdict(entry)).encode())
            write_content(folder / DATA_FOLDER)
            _sync(origin.parent)
            self._entries[name] = _with_size(folder, entry)
            logger.info(
                "folder_quarantined", extra={"path": str(origin), "entry": name, "reason": reason}
            )
            return self._entries[name]

    def restore(self, path: Path) -> bool:
        """Move the newest entry of ``path`` back, if there is one and the path is free."""
        with self._lock:
            origin = str(path.relative_to(self._paths.data))
            entry = max(
                (e for e in self._entries.values() if e.origin == origin),
                key=lambda e: (e.running_s, e.quarantined_ms),
                default=None,
            )
            if entry is None or path.exists():
                return False
            _restore(self._paths, entry)
            del self._entries[entry.name]
            logger.info("folder_restored", extra={"path": str(path), "entry": entry.name})
            return True

    def purge(self) -> list[QuarantineEntry]:
        """Delete the entries that are due and folders without data; return the deleted entries."""
        deleted = []
        self._running.save()
        with self._lock:
            pending, self._pending_deletes = self._pending_deletes, []
        for path in pending:
            shutil.rmtree(path, ignore_errors=True)
        for folder in _children(self._paths.quarantine):
            if not (folder / DATA_FOLDER).exists():
                with self._lock:  # An entry may be under construction.
                    empty = folder.name not in self._entries and not (folder / DATA_FOLDER).exists()
                if empty:
                    shutil.rmtree(folder, ignore_errors=True)
        while (entry := self._next_expired()) is not None:
            self._delete(entry)
            deleted.append(entry)
        return deleted

    def _next_expired(self) -> QuarantineEntry | None:
        entries = self.entries()
        if not entries:
            return None
        oldest = entries[0]
        is_expired = self._running.now() >= oldest.running_s + self._grace_s
        exceeds_limit = sum(entry.bytes for entry in entries) > self._limit_bytes
        return oldest if is_expired or exceeds_limit or self._is_disk_low() else None

    def _is_disk_low(self) -> bool:
        return shutil.disk_usage(self._paths.data).free < self._free_bytes

    def _delete(self, entry: QuarantineEntry) -> None:
        folder = self._paths.quarantine / entry.name
        with self._lock:
            if self._entries.pop(entry.name, None) is None:
                return
            # From here on it is no entry any more, even after a crash during the deletion.
            (folder / DATA_FOLDER).rename(folder / "gone")
        shutil.rmtree(folder, ignore_errors=True)
        logger.info("quarantine_entry_deleted", extra={"entry": entry.name, "bytes": entry.bytes})


def _entries(paths: DataPaths) -> list[QuarantineEntry]:
    entries = []
    for folder in _children(paths.quarantine):
        if not (folder / DATA_FOLDER).exists():
            continue
        try:
            entry = QuarantineEntry(**json.loads((folder / ENTRY_FILE).read_text()))
        except (OSError, ValueError, TypeError):
            # The folder stays: without its record, neither its age nor its origin is known.
            logger.warning("quarantine_entry_unreadable", extra={"path": str(folder / ENTRY_FILE)})
            continue
        entries.append(_with_size(folder, entry))
    return sorted(entries, key=lambda entry: entry.quarantined_ms)


def _with_size(folder: Path, entry: QuarantineEntry) -> QuarantineEntry:
    return replace(entry, name=folder.name, bytes=used_bytes(folder / DATA_FOLDER))


def _restore(paths: DataPaths, entry: QuarantineEntry) -> None:
    folder, origin = paths.quarantine / entry.name, paths.data / entry.origin
    origin.parent.mkdir(parents=True, exist_ok=True)
    (folder / DATA_FOLDER).rename(origin)
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
    parser = argparse.ArgumentParser(
        prog="python -m storaged.quarantine",
        description="List or restore quarantined folders.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the data folder of a storaged")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="show the entries, oldest first")
    commands.add_parser(
        "restore", help="move an entry back to where it was; its storaged must not run"
    ).add_argument("entry")
    options = parser.parse_args(arguments)
    paths = DataPaths(options.data)
    try:
        if options.command == "list":
            for entry in _entries(paths):
                print(json.dumps(asdict(entry)))
        else:
            _restore_entry(paths, options.entry)
    except AsterismError as error:
        print(f"quarantine: {error.message}", file=sys.stderr)
        return 2
    return 0


def _restore_entry(paths: DataPaths, name: str) -> None:
    if is_folder_open(paths.data):
        raise Conflict(
            f"data={str(paths.data)!r}: expected a folder that no process has open; stop its "
            "storaged, then restore"
        )
    entry = next((entry for entry in _entries(paths) if entry.name == name), None)
    if entry is None:
        raise NotFound(
            f"entry={name!r}: expected an entry of {paths.quarantine}; list them with `python -m "
            f"storaged.quarantine --data {paths.data} list`"
        )
    if (paths.data / entry.origin).exists():
        raise Conflict(
            f"entry={name!r}: its place {paths.data / entry.origin} is taken; move that "
            f"folder out of {paths.data}, then restore"
        )
    _restore(paths, entry)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
