"""In-memory twin of the RocksDB store, for tests and for graphs that are not persisted."""

from __future__ import annotations

import threading

from asterism_proto.errors import Unavailable
from metad.store.port import Changes


class MemoryStore:
    """A `MetaStore` without persistence."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[bytes, bytes] | None = {}

    def _open(self) -> dict[bytes, bytes]:
        if self._values is None:
            raise Unavailable("the store is closed")
        return self._values

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None if there is none."""
        with self._lock:
            return self._open().get(key)

    def range(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Return all (key, value) pairs with this key prefix, by key."""
        with self._lock:
            return sorted(
                (key, value) for key, value in self._open().items() if key.startswith(prefix)
            )

    def write(self, changes: Changes) -> None:
        """Apply ``changes`` atomically."""
        with self._lock:
            values = dict(self._open())
            for key, value in changes.items():
                if value is None:
                    values.pop(key, None)
                else:
                    values[key] = value
            self._values = values

    def close(self) -> None:
        """Discard all contents."""
        with self._lock:
            self._values = None
