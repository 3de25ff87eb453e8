"""Ownership records of graph databases, which detect a misplaced folder.

RocksDB opens any folder that holds a database. Without a record, a folder put in the place of
another one would accept writes that belong elsewhere. A folder that was moved to another space,
storaged or cluster is therefore refused.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

from asterism_io.durable_files import make_folder, write_durably
from asterism_proto.errors import Conflict, Corrupt

OWNER_FILE = "owner.json"
"""File in the folder of a graph database; RocksDB ignores files of foreign kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseOwner:
    """The space, storaged and cluster that a graph database belongs to."""

    cluster: str
    host: str
    """uuid of the storaged."""
    space_id: int

    def __str__(self) -> str:
        """Return the owner in the form used by error messages."""
        return (
            f"space {self.space_id} of storaged {self.host} in cluster {self.cluster or '(none)'}"
        )


def claim(folder: Path, owner: DatabaseOwner) -> None:
    """Record the owner of a graph database, or compare it with the recorded one.

    Parameters
    ----------
    folder : Path
        Folder of the database; created if missing.
    owner : DatabaseOwner
        Owner that the folder is opened for.

    Raises
    ------
    Conflict
        The folder belongs to another owner.
    Corrupt
        The record is unreadable.
    """
    file = folder / OWNER_FILE
    recorded_owner = _read(file)
    if recorded_owner is None:
        with contextlib.suppress(OSError):  # A full disk: the next start records the owner.
            make_folder(folder)
            write_durably(file, json.dumps({**asdict(owner), "crc32": _checksum(owner)}).encode())
    elif recorded_owner != owner:
        raise Conflict(
            f"{folder}: the database belongs to {recorded_owner}, not to {owner}; move it back "
            "and put this space's own folder here; if it was put here on purpose (a copy of a "
            f"replica), remove {file}"
        )


def _read(file: Path) -> DatabaseOwner | None:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        record = json.loads(content)
        owner = DatabaseOwner(
            cluster=str(record["cluster"]),
            host=str(record["host"]),
            space_id=int(record["space_id"]),
        )
        if record["crc32"] != _checksum(owner):
            raise ValueError("its checksum differs")
    except (ValueError, KeyError, TypeError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise Corrupt(
            f"{file}: cannot be read ({cause}); if the folder is certainly this space's own, "
            "remove the file"
        ) from error
    return owner


def _checksum(owner: DatabaseOwner) -> int:
    return zlib.crc32(str(owner).encode())
