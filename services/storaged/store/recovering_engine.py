"""An engine that reopens its database once the disk has room again.

After a write that failed for want of room RocksDB refuses every other one until it is closed and
opened again, however much room there is by then. What was acknowledged is in its log; what was not
is all there or not at all, and whoever wrote it was told that it failed."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from asterism_proto.errors import Unavailable
from storaged.store.engine import Family, Put, RocksEngine

MIN_FREE_BYTES = 8 << 20
"""Below this it is not worth while to open the database again."""
REOPEN_WAIT_S = 5.0
"""How long a reopening waits for readers to leave."""


class EngineHandle(Protocol):
    """What a store of blocks needs of an `Engine`."""

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""

    def write(self, puts: Sequence[Put], *, durable: bool = True) -> None:
        """Apply all or nothing; with ``durable`` it survives a crash once this returns."""

    def scan(self, family: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in start <= key < stop, ascending; ``stop`` None is the end."""

    def compact(self, family: str, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Give the space of what was deleted back; returns early where it is cancelled."""

    def size(self) -> int:
        """Bytes that it takes on disk."""

    def checkpoint(self, path: Path) -> None:
        """An openable copy at ``path`` (which must not exist), by hard links."""

    def close(self) -> None:
        """Let go of the folder."""


class RecoveringEngine:
    """A `EngineHandle` over another one, which it opens anew before the first write after one that
    failed.

    Parameters
    ----------
    path : Path
        Where the database is: the disk that must have room.
    open_database : callable
        Opens it.
    """

    def __init__(self, path: Path, open_database: Callable[[], EngineHandle]) -> None:
        self._path, self._open_engine = path, open_database
        self._engine: EngineHandle | None = open_database()
        self._fault = ""
        self._changed = threading.Condition()
        self._users = 0
        self._reopening = False

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""
        with self._borrow() as engine:
            return engine.get(family, key)

    def write(self, puts: Sequence[Put], *, durable: bool = True) -> None:
        """Apply all or nothing."""
        with self._borrow(writes=True) as engine:
            engine.write(puts, durable=durable)

    def scan(self, family: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in order."""
        with self._borrow() as engine:
            yield from engine.scan(family, start, stop)

    def compact(self, family: str, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Give the space of what was deleted back."""
        with self._borrow(writes=True) as engine:
            engine.compact(family, cancelled)

    def size(self) -> int:
        """Bytes that it takes on disk."""
        with self._borrow() as engine:
            return engine.size()

    def checkpoint(self, path: Path) -> None:
        """An openable copy by hard links."""
        with self._borrow(writes=True) as engine:
            engine.checkpoint(path)

    def close(self) -> None:
        """Let go of the folder."""
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
        """The database as it is to be used; the lock is held."""
        if not self._changed.wait_for(lambda: not self._reopening, REOPEN_WAIT_S):
            raise Unavailable(f"{self._path} is being opened anew; try again")
        if self._engine is None or (writes and self._fault):
            self._reopen()
        assert self._engine is not None
        return self._engine

    def _reopen(self) -> None:
        free = shutil.disk_usage(self._path).free
        if free < MIN_FREE_BYTES:
            raise Unavailable(
                f"{self._path}: the disk is full ({free} bytes are left); free space and do "
                "it again"
            )
        self._reopening = True
        try:
            if not self._changed.wait_for(lambda: self._users == 0, REOPEN_WAIT_S):
                raise Unavailable(
                    f"{self._path} can not be opened anew while it is read; try again"
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
    path: Path, families: Sequence[Family], *, read_only: bool = False, memory_bytes: int = 0
) -> EngineHandle:
    """RocksDB in a folder: one that may be read only as it is, another so that it recovers from a
    full disk.
    """
    if read_only:
        return RocksEngine(path, families, read_only=True, memory_bytes=memory_bytes)
    return RecoveringEngine(path, lambda: RocksEngine(path, families, memory_bytes=memory_bytes))
