"""Who a daemon is: the uuid of its folder and the number of its start. The folder is locked while the daemon lives."""

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

from asterism_proto.durable import make_folder, write_durably
from asterism_proto.errors import Conflict, Corrupt, Unavailable

NAME = "identity.json"
_LOCK = "LOCK"
_RESTORE = "restore it from a backup"
WRITE_AGAIN = (
    'write it again: {"uuid": that of the host which `asterism status --json` shows as offline, '
    '"incarnation": a larger one than there, "role": "storaged"}'
)
"""Remedy for the identity of a storaged, without which its data has no owner."""
_REMEDIES = {
    "storaged": f"{_RESTORE}, or {WRITE_AGAIN}",
    "metad": "remove the file: metad makes a new one, and the cluster is identified by its catalog",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What metad knows a daemon by."""

    uuid: str
    """Of the folder; the same for its life."""
    incarnation: int
    """Grows with every start, so that what an earlier one still says is told apart."""
    lock: int
    """File descriptor that holds the folder's lock."""
    start: int = field(default_factory=lambda: secrets.randbits(63) | 1)
    """Random number of this start: that of a copied folder has the same uuid, and may have the same incarnation."""
    copied: bool = False
    """Whether the folder is a copy that metad has not accepted yet. Its incarnation is that of the original."""
    confirm: Callable[[], None] = lambda: None
    """Called when metad has accepted the daemon: a copied folder becomes one of its own."""

    def release(self) -> None:
        """Let another daemon have the folder."""
        os.close(self.lock)


def is_open(path: Path) -> bool:
    """Whether a process that this one can see has the folder open; asked of the kernel's list, for to try the lock is to hold it."""
    try:
        inode = str((path / _LOCK).stat().st_ino)
        with open("/proc/locks") as locks:
            return any(words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode for words in map(str.split, locks) if len(words) > 5)
    except OSError:
        return False


def open_folder(path: Path, role: str, *, fenced: bool = False) -> Identity:
    """Lock the folder of a daemon, making it when missing, and return the daemon's identity.

    Parameters
    ----------
    path : Path
    role : str
    fenced : bool
        Recognize a copied folder, by the inodes that its identity records. The daemon on it keeps the incarnation of
        the original, so that metad refuses it while the original is online. `Identity.confirm` ends this.

    Raises
    ------
    Conflict
        Where another daemon has the folder open, or it belongs to another role.
    Corrupt
        Where the folder's identity can not be read.
    """
    make_folder(path)
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
            raise Conflict(
                f"data={str(path)!r}: the folder is open in another process (pid {pid}); stop that process, or give this {role} another folder"
            ) from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        file = path / NAME
        if file.exists():
            try:
                known = json.loads(file.read_text())
                found, number, owner = str(known["uuid"]), int(known["incarnation"]), str(known["role"])
                if "crc32" in known and known["crc32"] != _checksum(found, number, owner):
                    raise ValueError("its content does not have its crc32; one that was written by hand has none")
            except (ValueError, KeyError, TypeError) as error:
                raise Corrupt(f"{file}: cannot be read ({error}); {_REMEDIES.get(role, _RESTORE)}") from error
            if owner != role:
                raise Conflict(f"data={str(path)!r}: the folder belongs to a {owner}, not to a {role}; give the {role} another folder")
        else:
            known, found, number = {}, uuid.uuid4().hex, 0
        place = [os.fstat(lock).st_ino, path.stat().st_ino]
        if fenced and known.get("place", place) != place and number:
            return Identity(found, number, lock, copied=True, confirm=partial(_write, file, found, number, role, place))
        _write(file, found, number + 1, role, place)
        identity = Identity(found, number + 1, lock)
    except BaseException:
        os.close(lock)
        raise
    return identity


def _write(file: Path, uuid_: str, incarnation: int, role: str, place: list[int]) -> None:
    content = {"uuid": uuid_, "incarnation": incarnation, "role": role, "place": place, "crc32": _checksum(uuid_, incarnation, role)}
    try:
        write_durably(file, json.dumps(content).encode())
    except OSError as error:
        raise Unavailable(
            f"{file}: cannot be written ({error.strerror}); free space, or let the daemon write to {file.parent}, then start it again"
        ) from error


def _checksum(uuid_: str, incarnation: int, role: str) -> int:
    """Return the crc32 of an identity: an altered uuid would be that of a new host, which has to hold nothing."""
    return zlib.crc32(f"{uuid_} {incarnation} {role}".encode())
