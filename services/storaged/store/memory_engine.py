"""In-memory twin of the engine, with the same contract; used by tests of the layers above."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from asterism_proto.errors import Conflict, InvalidRequest, Unavailable
from storaged.store.engine import ColumnFamily, Put


class MemoryEngine:
    """An engine of sorted lists without a disk. A checkpoint is a copy, stored by its path."""

    def __init__(self, families: Sequence[ColumnFamily]) -> None:
        self._values: dict[str, dict[bytes, bytes]] = {family.name: {} for family in families}
        self._keys: dict[str, list[bytes]] = {family.name: [] for family in families}
        self.checkpoints: dict[Path, Mapping[str, Mapping[bytes, bytes]]] = {}
        self.runs: dict[Path, Sequence[tuple[bytes, bytes]]] = {}
        """Runs that were kept, by path."""

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        return self._values[family].get(key)

    def write(self, puts: Sequence[Put], *, durable: bool = True) -> None:
        """Apply all puts; memory is as durable as its process."""
        for family, key, value in puts:
            if value is None:
                self.delete_range(family, key, key + b"\0")
                continue
            if key not in self._values[family]:
                insort(self._keys[family], key)
            self._values[family][key] = bytes(value)

    def scan(self, family: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values as they were when the scan began."""
        keys = self._keys[family]
        values = self._values[family]
        end = len(keys) if stop is None else bisect_left(keys, stop)
        yield from [(key, values[key]) for key in keys[bisect_left(keys, start) : end]]

    def bulk_writer(self, family: str, keep_path: Path | None = None) -> _MemoryBulkWriter:
        """Return a writer of a sorted run."""
        return _MemoryBulkWriter(self, family, keep_path)

    def ingest_file(self, family: str, run: Path) -> None:
        """Add a run of ``runs`` to a family."""
        if run not in self.runs:
            raise Unavailable(f"{run}: no such run; build the table again")
        self.write([(family, key, value) for key, value in self.runs[run]])

    def delete_range(self, family: str, start: bytes, stop: bytes) -> None:
        """Delete a range of keys."""
        keys = self._keys[family]
        low, high = bisect_left(keys, start), bisect_left(keys, stop)
        for key in keys[low:high]:
            del self._values[family][key]
        del keys[low:high]

    def drop(self, family: str) -> None:
        """Empty a family."""
        self._keys[family].clear()
        self._values[family].clear()

    def flush(self) -> None:
        """Do nothing: no write is deferred."""

    def compact(self, family: str, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Do nothing: deletes free their memory at once."""

    def size(self) -> int:
        """Return the size of keys and values in bytes."""
        return sum(
            len(key) + len(value)
            for values in self._values.values()
            for key, value in values.items()
        )

    def checkpoint(self, path: Path) -> None:
        """Store a copy of the families in ``checkpoints``."""
        if path in self.checkpoints:
            raise Conflict(f"checkpoint {path}: the folder exists already")
        self.checkpoints[path] = {name: dict(values) for name, values in self._values.items()}

    def close(self) -> None:
        """Do nothing: no resource is held."""


class _MemoryBulkWriter:
    def __init__(self, engine: MemoryEngine, family: str, keep_path: Path | None) -> None:
        self._engine, self._family, self._keep_path = engine, family, keep_path
        self._pending: list[tuple[bytes, bytes]] = []

    def put(self, key: bytes, value: bytes) -> None:
        if self._pending and key <= self._pending[-1][0]:
            raise InvalidRequest(
                f"a sorted run requires ascending keys; {key.hex()} follows "
                f"{self._pending[-1][0].hex()}"
            )
        self._pending.append((key, value))

    def finish(self) -> None:
        self._engine.write([(self._family, key, value) for key, value in self._pending])
        if self._keep_path is not None and self._pending:
            self._engine.runs[self._keep_path] = self._pending
        self._pending = []
