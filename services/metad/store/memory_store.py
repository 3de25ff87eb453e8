"""The store's twin in memory: what RocksDB should do, in a dict. For tests and for graphs that
nobody keeps.
"""

from __future__ import annotations

import threading

from asterism_proto.errors import Unavailable
from metad.store.port import Changes


class MemoryStore:
    """A `MetaStore` that forgets everything with its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[bytes, bytes] | None = {}

    def _open(self) -> dict[bytes, bytes]:
        if self._values is None:
            raise Unavailable("the store is closed")
        return self._values

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``; None if there is none."""
        with self._lock:
            return self._open().get(key)

    def range(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Every (key, value) whose key begins with ``prefix``, by key."""
        with self._lock:
            return sorted(
                (key, value) for key, value in self._open().items() if key.startswith(prefix)
            )

    def write(self, changes: Changes) -> None:
        """Make ``changes``, together."""
        with self._lock:
            values = dict(self._open())
            for key, value in changes.items():
                if value is None:
                    values.pop(key, None)
                else:
                    values[key] = value
            self._values = values

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values = None
