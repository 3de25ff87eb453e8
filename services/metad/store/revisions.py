"""A store that numbers its writes: the revision of the catalog, which only grows.

The number of a write is stored with it, so a copy of the store has the number of the moment when
it was taken. It is never below an assigned identifier. `metad.catalog.position_history` relies on
that when it skips the identifiers of a branch that was given up."""

from __future__ import annotations

import threading

from metad.store import keys
from metad.store.port import Changes, MetaStore
from metad.wire import record_encoding


class RevisionedStore:
    """A `MetaStore` over another one that stores a revision with each write.

    Parameters
    ----------
    store : MetaStore
        Underlying store. If it was written before revisions were counted, the revision starts at
        its highest assigned identifier.
    """

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        stored_revision = record_encoding.decode_number(store.get(keys.REVISION))
        self._revision = max(
            stored_revision,
            *(record_encoding.decode_number(store.get(key)) for key in keys.COUNTERS),
        )

    @property
    def revision(self) -> int:
        """Number of the last write."""
        return self._revision

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None if there is none."""
        return self._store.get(key)

    def range(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Return all (key, value) pairs with this key prefix, by key."""
        return self._store.range(prefix)

    def write(self, changes: Changes) -> None:
        """Apply ``changes`` atomically and durably under the next revision."""
        self.write_at(changes, 0)

    def write_at(self, changes: Changes, minimum: int) -> None:
        """Apply ``changes`` under the next revision, or under ``minimum`` if that is larger."""
        assigned_ids = [
            int(value) for key in keys.COUNTERS if (value := changes.get(key)) is not None
        ]
        with self._lock:
            revision = max(self._revision + 1, minimum, *assigned_ids)
            self._store.write({**changes, keys.REVISION: record_encoding.encode_number(revision)})
            self._revision = revision

    def close(self) -> None:
        """Close the store."""
        self._store.close()
