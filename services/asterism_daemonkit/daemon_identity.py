"""Identity of a daemon: the uuid of its folder and the number of its start.

The folder is locked while the daemon runs."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from asterism_io.durable_files import make_folder, write_durably
from asterism_proto.errors import Conflict, Corrupt, Unavailable

FILE_NAME = "identity.json"
_LOCK = "LOCK"
_RESTORE_REMEDY = "restore it from a backup"
REWRITE_REMEDY = (
    'write it again: {"uuid": that of the host which `asterism status --json` shows as offline, '
    '"incarnation": a larger one than there, "role": "storaged"}'
)
"""Remedy for a damaged identity of a storaged; without identity, its data has no owner."""
_REMEDIES = {
    "storaged": f"{_RESTORE_REMEDY}, or {REWRITE_REMEDY}",
    "metad": "remove the file: metad writes a new one, and the cluster keeps the id in its catalog",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity by which metad knows a daemon."""

    uuid: str
    """UUID of the folder; it never changes."""
    incarnation: int
    """Number that grows with every start, to recognize messages of earlier starts."""
    lock_fd: int
    """File descriptor that holds the folder's lock."""
    start_id: int = field(default_factory=lambda: secrets.randbits(63) | 1)
    """Random number of this start.

    A daemon on a copied folder has the same uuid and may have the same incarnation, but not this
    number."""
    is_copy: bool = False
    """True if the folder is a copy that metad has not accepted yet.

    Its incarnation is that of the original."""
    confirm: Callable[[], None] = lambda: None
    """Function to call once metad has accepted the daemon.

    A copied folder then gets an incarnation of its own."""

    def release(self) -> None:
        """Release the lock on the folder."""
        os.close(self.lock_fd)


def is_folder_open(path: Path) -> bool:
    """Return whether a process visible to this one has the folder open.

    The kernel's list of locks is read, because trying the lock would take it."""
    try:
        inode = str((path / _LOCK).stat().st_ino)
        with open("/proc/locks") as locks:
            return any(
                fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode
                for fields in map(str.split, locks)
                if len(fields) > 5
            )
    except OSError:
        return False


def open_folder(path: Path, role: str, *, fenced: bool = False) -> Identity:
    """Lock the folder of a daemon, creating it if missing, and return the daemon's identity.

    Parameters
    ----------
    path : Path
    role : str
    fenced : bool, default False
        Recognize a copied folder by the inodes that its identity records. The daemon on it keeps
        the incarnation of the original, so metad refuses it while the original is online.
        `Identity.confirm` ends this state.

    Returns
    -------
    Identity

    Raises
    ------
    Conflict
        If another daemon has the folder open, or it belongs to another role.
    Corrupt
        If the folder's identity cannot be read.
    """
    make_folder(path)
    lock_fd = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.pread(lock_fd, 32, 0).decode(errors="replace").strip() or "unknown"
            raise Conflict(
                f"data={str(path)!r}: the folder is open in another process (pid {pid}); "
                f"stop that process, or use another folder"
            ) from error
        os.ftruncate(lock_fd, 0)
        os.pwrite(lock_fd, str(os.getpid()).encode(), 0)
        file = path / FILE_NAME
        if file.exists():
            try:
                record = json.loads(file.read_text())
                folder_uuid, incarnation, owner_role = (
                    str(record["uuid"]),
                    int(record["incarnation"]),
                    str(record["role"]),
                )
                if "crc32" in record and record["crc32"] != _checksum(
                    folder_uuid, incarnation, owner_role
                ):
                    raise ValueError(
                        "expected content that matches its crc32; a file written by hand has no "
                        "crc32"
                    )
            except (ValueError, KeyError, TypeError) as error:
                raise Corrupt(
                    f"{file}: cannot be read ({error}); {_REMEDIES.get(role, _RESTORE_REMEDY)}"
                ) from error
            if owner_role != role:
                raise Conflict(
                    f"data={str(path)!r}: the folder belongs to a {owner_role}, not to a "
                    f"{role}; give the {role} another folder"
                )
        else:
            record, folder_uuid, incarnation = {}, uuid.uuid4().hex, 0
        inodes = [os.fstat(lock_fd).st_ino, path.stat().st_ino]
        if fenced and record.get("place", inodes) != inodes and incarnation:
            return Identity(
                folder_uuid,
                incarnation,
                lock_fd,
                is_copy=True,
                confirm=partial(_write_identity, file, folder_uuid, incarnation, role, inodes),
            )
        _write_identity(file, folder_uuid, incarnation + 1, role, inodes)
        identity = Identity(folder_uuid, incarnation + 1, lock_fd)
    except BaseException:
        os.close(lock_fd)
        raise
    return identity


def _write_identity(file: Path, uuid_: str, incarnation: int, role: str, inodes: list[int]) -> None:
    content = {
        "uuid": uuid_,
        "incarnation": incarnation,
        "role": role,
        "place": inodes,
        "crc32": _checksum(uuid_, incarnation, role),
    }
    try:
        write_durably(file, json.dumps(content).encode())
    except OSError as error:
        raise Unavailable(
            f"{file}: cannot be written ({error.strerror}); free space, or let the daemon "
            f"write to {file.parent}, then start it again"
        ) from error


def _checksum(uuid_: str, incarnation: int, role: str) -> int:
    """Return the crc32 of an identity.

    It detects an altered uuid, which would make the folder that of a new host without data."""
    return zlib.crc32(f"{uuid_} {incarnation} {role}".encode())
