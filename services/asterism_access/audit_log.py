"""Audit log: who did what, as rotated files of JSON lines.

A thread writes the records of a bounded queue. A call with a record that finds the queue full
waits for it, so that a slow disk loses no record. Written records are synchronized with the disk at
most once a second, and before a file is rotated.
"""

from __future__ import annotations

import bisect
import errno
import fcntl
import itertools
import json
import logging
import math
import os
import re
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from asterism_access.principals import Principal
from asterism_proto.errors import Deadline, InvalidRequest, Unavailable

logger = logging.getLogger(__name__)

OK = "OK"
"""Outcome of a call that succeeded."""
MAX_DETAIL_CHARS = 1000
MAX_NAME_CHARS = 256
QUEUE_RECORDS = 10_000
SYNC_INTERVAL_S = 1.0
_RETRY_INTERVAL_S = 1.0
"""Seconds between two attempts to write required records while the disk is full."""
_BATCH_RECORDS = 1000
_MODE = 0o600
_SECRETS = re.compile(
    r"(?P<key>ak_[\w-]{12}_)[\w-]{20,}"
    r"|(?P<ticket>tk_|ss_)[\w-]{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    r"|(?P<bearer>\b[Bb]earer +)[^\s\"\\]+"
)
"""Credentials: API keys, tickets, sessions, tokens, and what follows ``Bearer``."""

RecordCallback = Callable[[bool], None]
"""Function called once for each record: with True when it is written, False if it is lost."""


def ignore_record(is_written: bool) -> None:
    """Ignore a record; the default `RecordCallback`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One line of the audit log."""

    time: str
    """RFC 3339, UTC, with milliseconds."""
    principal: str = ""
    kind: str = ""
    """Kind of the principal, such as ``api_key``."""
    credential_id: str = ""
    """Public part of the credential."""
    peer: str = ""
    """Address of the caller."""
    method: str = ""
    space: str = ""
    outcome: str = OK
    """``OK``, or the class of the error."""
    detail: str = ""
    """Message of the error, or what was changed; never a secret."""

    def to_line(self) -> bytes:
        """Return the record as a line of ASCII, with escaped control characters."""
        text = json.dumps(asdict(self), separators=(",", ":")).replace("\x7f", "\\u007f")
        return _SECRETS.sub(_mask, text).encode() + b"\n"


def _mask(match: re.Match[str]) -> str:
    """Return what remains of a credential: its public part."""
    return f"{match['key'] or match['ticket'] or match['bearer'] or ''}***"


class AuditLog:
    """Rotated files of JSON lines with one record each. Thread-safe.

    If the disk is full, a record goes to the daemon's own log, and counts as lost; or, with
    ``required``, it waits until the disk has space again.

    Parameters
    ----------
    path : Path
        File that is written. Older files have the same name and ``.1`` (the newest), ``.2`` and so
        on. All are readable for the owner only. If another program moves the file away, a new one
        is begun.
    max_bytes : int
        Size at which the file is rotated.
    files : int
        Number of files, with the one that is written; the oldest is removed.
    required : bool, default False
        True if changes must be refused while records cannot be written; see `check_writable`.
    queue_records : int
        Records that may wait for the disk.
    on_record : callable
        Called for each record, with whether it was written.

    Raises
    ------
    InvalidRequest
        If the file cannot be written, or another process writes it.
    """

    def __init__(
        self,
        path: Path,
        max_bytes: int,
        files: int,
        *,
        required: bool = False,
        queue_records: int = QUEUE_RECORDS,
        on_record: RecordCallback = ignore_record,
    ) -> None:
        self.path = path
        self._required, self._limit, self._on_record = required, queue_records, on_record
        self._changed = threading.Condition()
        """Guards what follows; notified when records come, are completed, or none will come."""
        self._queue: deque[bytes] = deque()
        self._accepted = self._completed = 0
        """Numbers of records that were queued, and that are written or lost."""
        self._closing = False
        self._faults: dict[str, str] = {}
        """Reason of the last failure of each step; empty if it succeeded afterwards."""
        self._fault = ""
        self._writer = _Writer(path, max_bytes, files)
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self._thread.start()

    def record(
        self,
        principal: Principal,
        *,
        method: str,
        deadline: float,
        space: str = "",
        outcome: str = OK,
        detail: str = "",
        peer: str = "",
    ) -> None:
        """Queue a record; wait if the queue is full.

        Parameters
        ----------
        principal : Principal
            Who made the call.
        method : str
            Name or path of the method.
        deadline : float
            Time on the clock of time.monotonic() until which to wait.
        space : str
            Graph space; empty if the call has none.
        outcome : str
            `OK`, or the name of the error's class.
        detail : str
            Text of which the first `MAX_DETAIL_CHARS` are kept. Credentials in it are masked.
        peer : str
            Address of the caller.

        Raises
        ------
        Deadline
            If the queue is full until the deadline. The daemon's own log has the record.
        Unavailable
            If the log is closed.
        """
        line = AuditRecord(
            time=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            principal=principal.name[:MAX_NAME_CHARS],
            kind=principal.kind.value,
            credential_id=principal.credential_id[:MAX_NAME_CHARS],
            peer=peer[:MAX_NAME_CHARS],
            method=method[:MAX_NAME_CHARS],
            space=space[:MAX_NAME_CHARS],
            outcome=outcome,
            detail=detail[:MAX_DETAIL_CHARS],
        ).to_line()
        with self._changed:
            if self._accepted - self._completed >= self._limit and not self._closing:
                self._changed.wait_for(
                    lambda: self._accepted - self._completed < self._limit or self._closing,
                    max(deadline - time.monotonic(), 0.0),
                )
            is_full = self._accepted - self._completed >= self._limit
            if not self._closing and not is_full:
                self._queue.append(line)
                self._accepted += 1
                if len(self._queue) == 1:
                    self._changed.notify_all()
                return
        self._lose([line], self._fault or ("queue full" if is_full else "closed"))
        if self._closing:
            raise Unavailable("the audit log is closed: this daemon is stopping")
        raise Deadline(
            f"audit_file={str(self.path)!r}: {self._limit} records wait for the disk"
            f"{f' ({self._fault})' if self._fault else ''}, so the call was not recorded in time; "
            "free space on the disk of the daemon, or use a faster one"
        )

    def check_writable(self) -> None:
        """Check, before a change, that its record can be written.

        Raises
        ------
        Unavailable
            If records are required, and the last attempt to write one failed.
        """
        if self._required and self._fault:
            raise Unavailable(
                f"audit_file={str(self.path)!r}: cannot be written ({self._fault}), and "
                "audit_required=true refuses changes meanwhile; free space on the daemon's disk"
            )

    @property
    def fault(self) -> str:
        """Reason for which records cannot be written now; empty if they can."""
        return self._fault

    def flush(self, timeout_s: float) -> bool:
        """Wait until all records so far are written or lost; return False if it takes too long."""
        with self._changed:
            target = self._accepted
            return self._changed.wait_for(lambda: self._completed >= target, timeout_s)

    def close(self, timeout_s: float = 10.0) -> None:
        """Write what is queued and close the file. Further calls have no effect."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        """Write records until the log is closed; the thread of the log."""
        pending: list[bytes] = []
        sync_at, synced_at = math.inf, -math.inf
        while True:
            with self._changed:
                if pending:  # they could not be written
                    self._changed.wait_for(lambda: self._closing, _RETRY_INTERVAL_S)
                else:
                    self._changed.wait_for(
                        lambda: self._queue or self._closing,
                        None if sync_at == math.inf else max(sync_at - time.monotonic(), 0.0),
                    )
                    batch = min(len(self._queue), _BATCH_RECORDS)
                    pending = [self._queue.popleft() for _ in range(batch)]
                closing = self._closing
            if pending:
                pending = self._write(pending, give_up=closing or not self._required)
                sync_at = min(sync_at, synced_at + SYNC_INTERVAL_S)
            done = closing and not pending and not self._queue
            if done or time.monotonic() >= sync_at:
                is_synced, synced_at = self._sync(), time.monotonic()
                sync_at = math.inf if is_synced else synced_at + SYNC_INTERVAL_S
            if done:
                self._writer.close()
                return

    def _sync(self) -> bool:
        try:
            self._writer.sync()
        except OSError as error:
            self._set_faults(sync=_reason(error))
            return False
        self._set_faults(sync="")
        return True

    def _write(self, lines: list[bytes], *, give_up: bool) -> list[bytes]:
        """Write records and return those to try again; without ``give_up`` none is lost."""
        written = self._writer.write(lines)
        self._set_faults(write=self._writer.fault)
        rest = lines[written:]
        for _ in range(written):
            self._on_record(True)
        completed = written
        if rest and give_up:
            self._lose(rest, self._fault)
            completed, rest = len(lines), []
        with self._changed:
            self._completed += completed
            self._changed.notify_all()
        return rest

    def _lose(self, lines: list[bytes], cause: str) -> None:
        for line in lines:
            self._on_record(False)
            logger.error(
                "audit_record_lost", extra={"cause": cause, "record": line.decode().rstrip()}
            )

    def _set_faults(self, **faults: str) -> None:
        """Set the faults of some steps, and log when the first begins and the last ends."""
        before = self._fault
        self._faults.update(faults)
        self._fault = next(filter(None, self._faults.values()), "")
        if self._fault and not before:
            logger.error("audit_log_failed", extra={"file": str(self.path), "cause": self._fault})
        elif before and not self._fault:
            logger.warning("audit_log_recovered", extra={"file": str(self.path)})


class _Writer:
    """Files of an audit log. Used by one thread at a time."""

    def __init__(self, path: Path, max_bytes: int, files: int) -> None:
        self._path, self._max_bytes, self._files = path, max_bytes, files
        self.fault = ""
        """Reason for which the last attempt to write failed; empty if it succeeded."""
        self._rotate_at = max_bytes
        self._separator = b""
        """Line feed if the file ends with a torn line."""
        try:
            self._file, self._size = self._open()
            self._sync_folder()
        except OSError as error:
            raise InvalidRequest(
                f"audit_file={str(path)!r}: {_reason(error)}; expected a file that this daemon can "
                "write, and no other process does"
            ) from error

    def write(self, lines: list[bytes]) -> int:
        """Append lines, and return the number of those written; `fault` has the reason."""
        self.fault, written = "", 0
        try:
            self._follow_moves()
            while written < len(lines):
                fitting = _fitting(lines[written:], self._rotate_at - self._size)
                if not fitting and self._size:
                    self._rotate()
                    continue
                batch = lines[written : written + max(fitting, 1)]
                self._append(b"".join(batch))
                written += len(batch)
        except OSError as error:
            self.fault = _reason(error)
        return written

    def sync(self) -> None:
        """Synchronize the file with the disk."""
        _fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _append(self, data: bytes) -> None:
        """Append data, or nothing if the disk is full."""
        view = memoryview(self._separator + data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            self._remove_torn_lines()
            raise
        self._size += len(self._separator) + len(data)
        self._separator = b""

    def _remove_torn_lines(self) -> None:
        """Remove what a failed write has appended; if that fails, end its last line later."""
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            self._separator = b"\n"

    def _open(self) -> tuple[int, int]:
        """Open the file, lock it and return it with its size; a torn last line is ended."""
        file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            if stat.S_ISREG(os.fstat(file).st_mode):  # not a pipe or terminal, which is shared
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                os.write(file, b"\n")
                size += 1
        except OSError:
            os.close(file)
            raise
        return file, size

    def _follow_moves(self) -> None:
        """Begin a new file if the current one was moved or removed by another program."""
        try:
            if os.path.samestat(os.stat(self._path), os.fstat(self._file)):
                return
        except FileNotFoundError:
            pass
        self._replace()

    def _rotate(self) -> None:
        """Give every file the next number, and begin a new one.

        If that fails, the current file grows on, and the next attempt is after a tenth of the
        size."""
        try:
            self.sync()
            self._shift()
            self._replace()
            self._rotate_at = self._max_bytes
        except OSError as error:
            self._rotate_at = self._size + max(self._max_bytes // 10, _BATCH_RECORDS)
            logger.error(
                "audit_log_not_rotated", extra={"file": str(self._path), "cause": _reason(error)}
            )

    def _shift(self) -> None:
        numbered = [_numbered(self._path, number) for number in range(self._files)]
        for number in itertools.count(self._files):  # of a larger number of files, earlier
            if not (extra := _numbered(self._path, number)).exists():
                break
            extra.unlink()
        numbered[-1].unlink(missing_ok=True)
        for older, newer in itertools.pairwise(reversed(numbered)):
            if newer.exists():
                newer.rename(older)

    def _replace(self) -> None:
        file, size = self._open()
        os.close(self._file)
        self._file, self._size, self._separator = file, size, b""
        self._sync_folder()

    def _sync_folder(self) -> None:
        """Make the names of new and renamed files durable."""
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            _fsync(folder)
        finally:
            os.close(folder)


@dataclass(frozen=True, slots=True)
class TornLine:
    """Line that is not a record, because a process or machine stopped while it was written."""

    file: Path
    line: int
    """Number of the line in its file, from 1."""
    is_last: bool
    """True if it is the last line, without a line feed, so that it may still be written."""


def read_audit_log(path: Path) -> Iterator[AuditRecord | TornLine]:
    """Yield the records of an audit log, oldest first; a `TornLine` in place of a torn one.

    If files are rotated meanwhile, some records may be missing or come twice.

    Raises
    ------
    InvalidRequest
        If the file of the log cannot be read.
    """
    older = _rotated_files(path)
    for file in [*older, path]:
        try:
            with file.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    yield _parse(line) or TornLine(file, number, not line.endswith(b"\n"))
        except OSError as error:
            if older and isinstance(error, FileNotFoundError):  # it is being rotated
                continue
            raise InvalidRequest(
                f"path={str(file)!r}: {_reason(error)}; expected the file of an audit log"
            ) from error


def _rotated_files(path: Path) -> list[Path]:
    """Return the numbered files of a log, oldest first.

    A number is missing if a process ended while it rotated the files."""
    prefix = f"{path.name}."
    try:
        names = os.listdir(path.parent)
    except OSError:  # the file of the log cannot be read either
        return []
    numbers = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    return [
        _numbered(path, number)
        for number in sorted(
            (int(text) for text in numbers if text.isdecimal() and int(text)), reverse=True
        )
    ]


def _parse(line: bytes) -> AuditRecord | None:
    try:
        values = json.loads(line)
        return AuditRecord(
            **{field.name: str(values.get(field.name, "")) for field in fields(AuditRecord)}
        )
    except (ValueError, AttributeError):
        return None


def _fsync(file: int) -> None:
    """Synchronize a file or folder, if it is of a kind that can be."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # pipes, and folders of some file systems
            raise


def _fitting(lines: list[bytes], size: int) -> int:
    """Return how many of the first lines have at most ``size`` bytes together."""
    return bisect.bisect_right(list(itertools.accumulate(map(len, lines))), size)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
