"""Who a daemon is: the uuid of its folder and the number of its start. The folder is locked while
the daemon lives.
"""

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
"""Remedy for the identity of a storaged, without which its data has no owner."""
_REMEDIES = {
    "storaged": f"{_RESTORE_REMEDY}, or {REWRITE_REMEDY}",
    "metad": "remove the file: metad makes a new one, and the cluster is identified by its catalog",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What metad knows a daemon by."""

    uuid: str
    """Of the folder; the same for its life."""
    incarnation: int
    """Grows with every start, so that what an earlier one still says is told apart."""
    lock_fd: int
    """File descriptor that holds the folder's lock."""
    start_id: int = field(default_factory=lambda: secrets.randbits(63) | 1)
    """Random number of this start: that of a copied folder has the same uuid, and may have the same
    incarnation.
    """
    is_copy: bool = False
    """Whether the folder is a copy that metad has not accepted yet. Its incarnation is that of the
    original.
    """
    confirm: Callable[[], None] = lambda: None
    """Called when metad has accepted the daemon: a copied folder becomes one of its own."""

    def release(self) -> None:
        """Let another daemon have the folder."""
        os.close(self.lock_fd)


def is_folder_open(path: Path) -> bool:
    """Whether a process that this one can see has the folder open; asked of the kernel's list, for
    to try the lock is to hold it.
    """
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
    """Lock the folder of a daemon, making it when missing, and return the daemon's identity.

    Parameters
    ----------
    path : Path
    role : str
    fenced : bool
        Recognize a copied folder, by the inodes that its identity records. The daemon on it keeps
        the incarnation of the original, so that metad refuses it while the original is online.
        `Identity.confirm` ends this.

    Raises
    ------
    Conflict
        Where another daemon has the folder open, or it belongs to another role.
    Corrupt
        Where the folder's identity can not be read.
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
                f"stop that process, or give this {role} another folder"
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
                        "its content does not have its crc32; one that was written by hand has none"
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
    """Return the crc32 of an identity: an altered uuid would be that of a new host, which has to
    hold nothing.
    """
    return zlib.crc32(f"{uuid_} {incarnation} {role}".encode())
