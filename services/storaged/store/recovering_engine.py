"""An engine that reopens its database once the disk has free space again.

After a write that failed because the disk is full, RocksDB refuses all writes until the database is
reopened, even if space was freed. Acknowledged writes are in its log. A write that was not
acknowledged is applied completely or not at all, and its caller received an error.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from asterism_proto.errors import Unavailable
from storaged.store.engine import ColumnFamily, Put, RocksEngine

MIN_FREE_BYTES = 8 << 20
"""Free disk space in bytes below which a reopening is not attempted."""
REOPEN_WAIT_S = 5.0
"""Seconds that a reopening waits for readers to finish."""


class EngineHandle(Protocol):
    """The part of `Engine` that a block store needs."""

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the value of a key, or None.

        Parameters
        ----------
        family : str
        key : bytes
        """

    def write(self, puts: Sequence[Put], *, durable: bool = True) -> None:
        """Apply all puts, or none.

        Parameters
        ----------
        puts : sequence of Put
        durable : bool
            Return only once the puts survive a crash. Default True.
        """

    def scan(self, family: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the keys start <= key < stop and their values, ascending.

        Parameters
        ----------
        family : str
        start : bytes
        stop : bytes or None
            None for the end of the family.
        """

    def compact(self, family: str, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Free the disk space of deleted keys.

        Parameters
        ----------
        family : str
        cancelled : callable, optional
            Polled; if it returns True, the method returns early.
        """

    def size(self) -> int:
        """Return the size on disk in bytes."""

    def checkpoint(self, path: Path) -> None:
        """Create an openable copy by hard links.

        Parameters
        ----------
        path : Path
            Folder of the copy; must not exist.
        """

    def close(self) -> None:
        """Close the database; its folder may be opened again."""


class RecoveringEngine:
    """An `EngineHandle` that reopens its database before the first write after a failed one.

    Thread-safe.

    Parameters
    ----------
    path : Path
        Folder of the database, on the disk that must have free space.
    open_database : callable
        Opens the database.
    """

    def __init__(self, path: Path, open_database: Callable[[], EngineHandle]) -> None:
        self._path, self._open_engine = path, open_database
        self._engine: EngineHandle | None = open_database()
        self._fault = ""
        self._changed = threading.Condition()
        self._users = 0
        self._reopening = False

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        with self._borrow() as engine:
            return engine.get(family, key)

    def write(self, puts: Sequence[Put], *, durable: bool = True) -> None:
        """Apply all puts, or none."""
        with self._borrow(writes=True) as engine:
            engine.write(puts, durable=durable)

    def scan(self, family: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values in order."""
        with self._borrow() as engine:
            yield from engine.scan(family, start, stop)

    def compact(self, family: str, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Free the disk space of deleted keys."""
        with self._borrow(writes=True) as engine:
            engine.compact(family, cancelled)

    def size(self) -> int:
        """Return the size on disk in bytes."""
        with self._borrow() as engine:
            return engine.size()

    def checkpoint(self, path: Path) -> None:
        """Create an openable copy by hard links."""
        with self._borrow(writes=True) as engine:
            engine.checkpoint(path)

    def close(self) -> None:
        """Close the database; its folder may be opened again."""
        if self._engine is not None:
            self._engine.close()

    @contextmanager
    def _borrow(self, *, writes: bool = False) -> Iterator[EngineHandle]:
        with self._changed:
            engine = self._ready_engine(writes)
            self._users += 1
        try:
            yield engine
        except Unavailable as error:
            if writes:
                self._fault = error.message
            raise
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def _ready_engine(self, writes: bool) -> EngineHandle:
        """Return the database, reopened if necessary; the caller holds the lock."""
        if not self._changed.wait_for(lambda: not self._reopening, REOPEN_WAIT_S):
            raise Unavailable(f"{self._path}: the database is being reopened; try again")
        if self._engine is None or (writes and self._fault):
            self._reopen()
        assert self._engine is not None
        return self._engine

    def _reopen(self) -> None:
        free = shutil.disk_usage(self._path).free
        if free < MIN_FREE_BYTES:
            raise Unavailable(
                f"{self._path}: the disk is full ({free} bytes are free); free space and try again"
            )
        self._reopening = True
        try:
            if not self._changed.wait_for(lambda: self._users == 0, REOPEN_WAIT_S):
                raise Unavailable(
                    f"{self._path}: the database cannot be reopened during a read; try again"
                )
            if self._engine is not None:
                self._engine.close()
                self._engine = None
            self._engine = self._open_engine()
            self._fault = ""
        finally:
            self._reopening = False
            self._changed.notify_all()


def open_engine(
    path: Path, families: Sequence[ColumnFamily], *, read_only: bool = False, memory_bytes: int = 0
) -> EngineHandle:
    """Open a RocksDB folder.

    A read-only folder is opened as it is; any other one recovers from a full disk.
    """
    if read_only:
        return RocksEngine(path, families, read_only=True, memory_bytes=memory_bytes)
    return RecoveringEngine(path, lambda: RocksEngine(path, families, memory_bytes=memory_bytes))
