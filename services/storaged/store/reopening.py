"""A database that is opened anew once its disk has room again.

After a write that failed for want of room RocksDB refuses every other one until it is closed and opened again, however
much room there is by then. What was acknowledged is in its log; what was not is all there or not at all, and whoever
wrote it was told that it failed.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from asterism_proto.errors import Unavailable
from storaged.store.engine import Family, Put, RocksEngine

ROOM_BYTES = 8 << 20
"""Below this it is not worth while to open the database again."""
PATIENCE_S = 5.0
"""How long a reopening waits for readers to leave."""


class Keep(Protocol):
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


class Reopening:
    """A `Keep` over another one, which it opens anew before the first write after one that failed.

    Parameters
    ----------
    path : Path
        Where the database is: the disk that must have room.
    opened : callable
        Opens it.
    """

    def __init__(self, path: Path, opened: Callable[[], Keep]) -> None:
        self._path, self._opened = path, opened
        self._keep: Keep | None = opened()
        self._fault = ""
        self._news = threading.Condition()
        self._users = 0
        self._reopening = False

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""
        with self._using() as keep:
            return keep.get(family, key)

    def write(self, puts: Sequence[Put], *, durable: bool = True) -> None:
        """Apply all or nothing."""
        with self._using(writes=True) as keep:
            keep.write(puts, durable=durable)

    def scan(self, family: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in order."""
        with self._using() as keep:
            yield from keep.scan(family, start, stop)

    def compact(self, family: str, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Give the space of what was deleted back."""
        with self._using(writes=True) as keep:
            keep.compact(family, cancelled)

    def size(self) -> int:
        """Bytes that it takes on disk."""
        with self._using() as keep:
            return keep.size()

    def checkpoint(self, path: Path) -> None:
        """An openable copy by hard links."""
        with self._using(writes=True) as keep:
            keep.checkpoint(path)

    def close(self) -> None:
        """Let go of the folder."""
        if self._keep is not None:
            self._keep.close()

    @contextmanager
    def _using(self, *, writes: bool = False) -> Iterator[Keep]:
        with self._news:
            keep = self._ready(writes)
            self._users += 1
        try:
            yield keep
        except Unavailable as error:
            if writes:
                self._fault = error.message
            raise
        finally:
            with self._news:
                self._users -= 1
                self._news.notify_all()

    def _ready(self, writes: bool) -> Keep:
        """The database as it is to be used; the lock is held."""
        if not self._news.wait_for(lambda: not self._reopening, PATIENCE_S):
            raise Unavailable(f"{self._path} is being opened anew; try again")
        if self._keep is None or (writes and self._fault):
            self._reopen()
        assert self._keep is not None
        return self._keep

    def _reopen(self) -> None:
        free = shutil.disk_usage(self._path).free
        if free < ROOM_BYTES:
            raise Unavailable(f"{self._path}: the disk is full ({free} bytes are left); free space and do it again")
        self._reopening = True
        try:
            if not self._news.wait_for(lambda: self._users == 0, PATIENCE_S):
                raise Unavailable(f"{self._path} can not be opened anew while it is read; try again")
            if self._keep is not None:
                self._keep.close()
                self._keep = None
            self._keep = self._opened()
            self._fault = ""
        finally:
            self._reopening = False
            self._news.notify_all()


def opened(path: Path, families: Sequence[Family], *, read_only: bool = False, memory_bytes: int = 0) -> Keep:
    """RocksDB in a folder: one that may be read only as it is, another so that it recovers from a full disk."""
    if read_only:
        return RocksEngine(path, families, read_only=True, memory_bytes=memory_bytes)
    return Reopening(path, lambda: RocksEngine(path, families, memory_bytes=memory_bytes))
