"""Newest catalog position that a daemon has followed; older catalogs are refused.

The reply to each poll has metad's position, and whether its catalog contains the position that
the daemon followed last. A daemon with a data folder stores a position before it acts on it."""

from __future__ import annotations

import json
import logging
import os
import threading
import zlib
from pathlib import Path

from asterism_io.durable_files import write_durably
from asterism_proto.errors import Conflict, Corrupt
from asterism_proto.v1 import metad_pb2 as metad_pb

logger = logging.getLogger(__name__)

_SLOT_BYTES, _SLOTS = 512, 2
REMEDY = (
    "stop metad and put its newer data folder back, or list what would be lost with `asterism "
    "metad adopt --dry-run`, then run `asterism metad adopt --yes` to follow this catalog"
)


class CatalogPositionStore:
    """The newest catalog position that a daemon has followed.

    Parameters
    ----------
    file : Path or None
        File that stores the position; None keeps it in memory only.

    Raises
    ------
    Corrupt
        If the file cannot be read.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._position, self._sequence = (
            _read_slots(file)
            if file is not None and file.exists()
            else (metad_pb.CatalogPosition(), 0)
        )
        self.fault = ""
        """Reason why metad's last reply was refused; empty if it was accepted."""
        self.writes = 0
        """Number of positions that were stored."""

    @property
    def position(self) -> metad_pb.CatalogPosition | None:
        """Newest position that was followed; None before the first."""
        return self._position if self._position.history else None

    def check(
        self, reply: metad_pb.PollReply, followed_position: metad_pb.CatalogPosition | None
    ) -> None:
        """Refuse a reply of a catalog that does not contain the followed position.

        Parameters
        ----------
        reply : PollReply
        followed_position : CatalogPosition or None
            The position in the request. A heartbeat may have advanced it since.

        Raises
        ------
        Conflict
            With the remedy.
        """
        with self._lock:
            followed, received = followed_position or metad_pb.CatalogPosition(), reply.position
            is_older = followed.term == received.term and received.revision < followed.revision
            self.fault = ""
            if received.history and reply.contains_position and not is_older:
                return
            if not received.history and not followed.history:
                # metad is of a release without revisions, and this daemon has followed no catalog
                # yet
                return
            actual = (
                f"revision {received.revision} of history {received.history}"
                if received.history
                else "none (a metad of an earlier release)"
            )
            self.fault = (
                "metad's catalog is older than what this daemon followed, or has a "
                f"different history: expected revision {followed.revision} of "
                f"history {followed.history or 'none'}, found {actual}; this daemon keeps "
                f"serving its versions and runs no tasks: {REMEDY}"
            )
            raise Conflict(self.fault)

    def follow(self, position: metad_pb.CatalogPosition) -> None:
        """Store a position before it is acted on."""
        with self._lock:
            current = self._position
            already_followed = (position.history, position.term) == (
                current.history,
                current.term,
            ) and position.revision <= current.revision
            if position.history and not already_followed:
                self._store(position)

    def advance(self, position: metad_pb.CatalogPosition) -> None:
        """Store a newer position of the followed catalog, from the reply to a heartbeat."""
        with self._lock:
            current = self._position
            if self.fault or (position.history, position.term) != (current.history, current.term):
                return
            if position.revision > current.revision:
                try:
                    self._store(position)
                except OSError as error:  # nothing depends on it yet; the next heartbeat retries
                    logger.warning("catalog_position_not_written", extra={"cause": str(error)})

    def _store(self, position: metad_pb.CatalogPosition) -> None:
        stored_position = metad_pb.CatalogPosition(
            history=position.history, term=position.term, revision=position.revision
        )
        if self._file is not None:
            self._sequence += 1
            self._write_slot(_encode_slot(stored_position, self._sequence), self._sequence % _SLOTS)
        self.writes += 1
        self._position = stored_position

    def _write_slot(self, slot: bytes, index: int) -> None:
        assert self._file is not None
        if not self._file.exists():
            write_durably(self._file, slot * _SLOTS)
            return
        # In place, which needs no free disk space; the other slot keeps the previous position.
        fd = os.open(self._file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(fd, slot, index * _SLOT_BYTES)
            os.fdatasync(fd)
        finally:
            os.close(fd)


def _encode_slot(position: metad_pb.CatalogPosition, sequence: int) -> bytes:
    record = {
        "history": position.history,
        "term": position.term,
        "revision": position.revision,
        "sequence": sequence,
    }
    data = json.dumps(record).encode()
    return b"%08x %s" % (zlib.crc32(data), data.ljust(_SLOT_BYTES - 10)) + b"\n"


def _read_slots(file: Path) -> tuple[metad_pb.CatalogPosition, int]:
    """Return the newest position in a file and its sequence number, from the intact slots."""
    positions: list[tuple[int, metad_pb.CatalogPosition]] = []
    content = file.read_bytes()
    for start in range(0, len(content), _SLOT_BYTES):
        crc, _, data = content[start : start + _SLOT_BYTES].partition(b" ")
        try:
            if int(crc, 16) != zlib.crc32(data.strip()):
                continue
            record = json.loads(data)
            position = metad_pb.CatalogPosition(
                history=record["history"], term=record["term"], revision=record["revision"]
            )
            positions.append((int(record["sequence"]), position))
        except (ValueError, KeyError, TypeError):
            continue
    if not positions:
        raise Corrupt(
            f"{file}: cannot be read: it prevents an older catalog from assigning tasks; restore "
            "it from a backup, or remove it if metad's catalog is certainly the newest one"
        )
    sequence, position = max(positions, key=lambda pair: pair[0])
    return position, sequence
