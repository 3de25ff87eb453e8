"""The newest position of metad's catalog that a daemon has followed; older catalogs are refused.

The reply to each poll has metad's position, and whether its catalog contains the position that the
daemon followed last. A daemon with a data folder stores a position before it acts on it.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import zlib
from pathlib import Path

from asterism_proto.durable import write_durably
from asterism_proto.errors import Conflict, Corrupt
from asterism_proto.v1 import metad_pb2 as pb

logger = logging.getLogger(__name__)

_SLOT_BYTES, _SLOTS = 512, 2
REMEDY = (
    "stop metad and put its newer data folder back, or list what would be given up with `asterism metad adopt --dry-run`, then run "
    "`asterism metad adopt --yes` to follow this catalog"
)


class FollowedCatalog:
    """The newest position that a daemon has followed.

    Parameters
    ----------
    file : Path or None
        The file that stores it; None keeps it in memory only.

    Raises
    ------
    Corrupt
        If the file cannot be read.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._position, self._sequence = _read(file) if file is not None and file.exists() else (pb.CatalogPosition(), 0)
        self.fault = ""
        """Why metad's last reply was refused; empty if it was accepted."""
        self.writes = 0
        """The number of positions that were stored."""

    @property
    def position(self) -> pb.CatalogPosition | None:
        """Return the newest position that was followed; None before the first."""
        return self._position if self._position.history else None

    def check(self, reply: pb.PollReply, asked: pb.CatalogPosition | None) -> None:
        """Refuse a reply of a catalog that does not contain the followed position.

        Parameters
        ----------
        reply : PollReply
        asked : CatalogPosition or None
            The position in the request. A heartbeat may have advanced it since.

        Raises
        ------
        Conflict
            With the remedy.
        """
        with self._lock:
            ours, theirs = asked or pb.CatalogPosition(), reply.position
            older = ours.term == theirs.term and theirs.revision < ours.revision
            self.fault = ""
            if theirs.history and reply.continues and not older:
                return
            if not theirs.history and not ours.history:
                return  # a metad of a release without revisions, and a daemon that never followed one
            found = f"revision {theirs.revision} of history {theirs.history}" if theirs.history else "none (a metad of an earlier release)"
            self.fault = (
                f"metad's catalog is older than what this daemon followed, or has a different history: expected revision {ours.revision} of "
                f"history {ours.history or 'none'}, found {found}; this daemon keeps serving its versions and runs no tasks: {REMEDY}"
            )
            raise Conflict(self.fault)

    def follow(self, position: pb.CatalogPosition) -> None:
        """Store a position before it is acted on."""
        with self._lock:
            ours = self._position
            advanced = (position.history, position.term) == (ours.history, ours.term) and position.revision <= ours.revision
            if position.history and not advanced:
                self._keep(position)

    def advance(self, position: pb.CatalogPosition) -> None:
        """Store a newer position of the followed catalog, from the reply to a heartbeat."""
        with self._lock:
            ours = self._position
            if self.fault or (position.history, position.term) != (ours.history, ours.term):
                return
            if position.revision > ours.revision:
                try:
                    self._keep(position)
                except OSError as error:  # nothing depends on it yet; the next heartbeat tries again
                    logger.warning("position_not_written", extra={"cause": str(error)})

    def _keep(self, position: pb.CatalogPosition) -> None:
        kept = pb.CatalogPosition(history=position.history, term=position.term, revision=position.revision)
        if self._file is not None:
            self._sequence += 1
            self._write(_slot(kept, self._sequence), self._sequence % _SLOTS)
        self.writes += 1
        self._position = kept

    def _write(self, slot: bytes, number: int) -> None:
        assert self._file is not None
        if not self._file.exists():
            write_durably(self._file, slot * _SLOTS)
            return
        # In place, which needs no free disk space; the other slot keeps the previous position.
        file = os.open(self._file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(file, slot, number * _SLOT_BYTES)
            os.fdatasync(file)
        finally:
            os.close(file)


def _slot(position: pb.CatalogPosition, sequence: int) -> bytes:
    record = {"history": position.history, "term": position.term, "revision": position.revision, "sequence": sequence}
    data = json.dumps(record).encode()
    return b"%08x %s" % (zlib.crc32(data), data.ljust(_SLOT_BYTES - 10)) + b"\n"


def _read(file: Path) -> tuple[pb.CatalogPosition, int]:
    """Return the newest position in a file and its sequence number, from the slots that are intact."""
    found: list[tuple[int, pb.CatalogPosition]] = []
    content = file.read_bytes()
    for start in range(0, len(content), _SLOT_BYTES):
        crc, _, data = content[start : start + _SLOT_BYTES].partition(b" ")
        try:
            if int(crc, 16) != zlib.crc32(data.strip()):
                continue
            record = json.loads(data)
            position = pb.CatalogPosition(history=record["history"], term=record["term"], revision=record["revision"])
            found.append((int(record["sequence"]), position))
        except (ValueError, KeyError, TypeError):
            continue
    if not found:
        raise Corrupt(
            f"{file}: cannot be read: it is what prevents an older catalog from giving orders; restore it from a backup, or remove it if metad's "
            "catalog is certainly the newest one"
        )
    sequence, position = max(found, key=lambda pair: pair[0])
    return position, sequence
