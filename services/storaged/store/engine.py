"""Access to RocksDB: ordered families of bytes. The only module that imports rocksdict.

`memory_engine` is a twin that keeps the same contract.

Properties of RocksDB and rocksdict on which this module depends:

* rocksdict needs ``raw_mode`` everywhere, and the names of all column families at open.
* Its ``items()`` ends silently at a corrupt block. Scans use ``iter()`` and check ``status()`` at
  the end.
* Disk space is freed when a family is dropped and no batch or handle refers to it, and by
  compactions. A manual compaction holds the GIL until it ends, so `compact` has background threads
  do it.
* Large sorted runs bypass the memtables: an SST file is written and moved in, several times faster
  than puts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import rocksdict

from asterism_daemonkit import rocksdb_damage
from asterism_io.durable_files import make_folder
from asterism_proto.errors import (
    AsterismError,
    Conflict,
    Corrupt,
    Internal,
    InvalidRequest,
    Unavailable,
)
from storaged.store.compaction import GARBAGE, compact_family

MIB = 1 << 20
CACHE_BYTES = 32 * MIB
WRITE_BUFFER_BYTES = 64 * MIB
BULK_BYTES = 4 * MIB
"""Largest run in bytes that is written as plain puts; a separate file would cost more."""

Put = tuple[str, bytes, bytes | None]
"""(family, key, value); a value of None deletes the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFamily:
    """Configuration of a column family."""

    name: str
    compressed: bool = False
    """Compress values with LZ4."""
    blobs: bool = False
    """Store large values in blob files, so that compactions move keys only."""
    cached: bool = True
    """Read through the block cache of the process."""


class BulkWriter(Protocol):
    """Writer of a sorted run, which is invisible until `finish`."""

    def put(self, key: bytes, value: bytes) -> None:
        """Append a value.

        Parameters
        ----------
        key : bytes
            Key, strictly greater than the previous one.
        value : bytes

        Raises
        ------
        InvalidRequest
            The keys do not ascend.
        """

    def finish(self) -> None:
        """Make the run visible; an ingested file is durable, and puts are after `Engine.flush`."""


class Engine(Protocol):
    """Storage of ordered families of keys and values.

    Every method raises `Corrupt` for bytes that fail their checksum, `Unavailable` for a full or
    failing disk, and `Conflict` for a folder that another process holds.
    """

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the value of a key.

        Parameters
        ----------
        family : str
        key : bytes

        Returns
        -------
        bytes or None
            None if the key does not exist.
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
        """Iterate over a range of keys, ascending.

        Parameters
        ----------
        family : str
        start : bytes
            First key of the range.
        stop : bytes or None
            End of the range, exclusive; None for the end of the family.

        Yields
        ------
        key : bytes
        value : bytes
        """

    def bulk_writer(self, family: str, keep_path: Path | None = None) -> BulkWriter:
        """Return a writer of a sorted run, which is added to a family as a whole.

        Parameters
        ----------
        family : str
        keep_path : Path, optional
            Also keep the run at this path, for `ingest_file`, if it has a key.

        Returns
        -------
        BulkWriter
        """

    def ingest_file(self, family: str, run: Path) -> None:
        """Add a run that was kept to a family, without copying it.

        Parameters
        ----------
        family : str
        run : Path
            The file. None of its keys may exist in the family.

        Raises
        ------
        Unavailable
            The file does not exist.
        Corrupt
            The file is not a run.
        """

    def delete_range(self, family: str, start: bytes, stop: bytes) -> None:
        """Delete the keys from ``start`` (inclusive) to ``stop`` (exclusive).

        `compact` frees their disk space.

        Parameters
        ----------
        family : str
        start, stop : bytes
        """

    def drop(self, family: str) -> None:
        """Empty a family and free its disk space now.

        Parameters
        ----------
        family : str
        """

    def flush(self) -> None:
        """Write to disk all data that was written without a log."""

    def compact(self, family: str, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Free the disk space of deleted keys. Reads and writes continue meanwhile.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _SharedBuffers:
    """Memory shared by the databases of a process: a block cache and a write-buffer manager."""

    cache: Any
    buffers: Any
    buffer_bytes: int


@cache
def _shared_buffers(memory_bytes: int) -> _SharedBuffers:
    """Return RocksDB's memory in this process.

    It is at most a quarter of ``memory_bytes``; 0 selects the limits of a daemon.
    """
    share = memory_bytes // 16 if memory_bytes else WRITE_BUFFER_BYTES
    cache_bytes, buffer_bytes = min(CACHE_BYTES, share), min(WRITE_BUFFER_BYTES, share)
    buffers = rocksdict.WriteBufferManager(2 * buffer_bytes, False)
    return _SharedBuffers(
        cache=rocksdict.Cache(cache_bytes), buffers=buffers, buffer_bytes=buffer_bytes
    )


def _options(family: ColumnFamily | None, memory: _SharedBuffers) -> Any:
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_write_buffer_size(memory.buffer_bytes)
    options.set_write_buffer_manager(memory.buffers)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    # A torn end of the log is a write that was never acknowledged. Any other damage must not be
    # taken for an older state.
    options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.tolerate_corrupted_tail_records())
    options.set_max_open_files(256)
    kind = rocksdict.DBCompressionType
    compression = kind.lz4() if family is not None and family.compressed else kind.none()
    options.set_compression_type(compression)
    table = rocksdict.BlockBasedOptions()
    if family is None or family.cached:
        table.set_block_cache(memory.cache)
    else:
        table.disable_cache()
    table.set_bloom_filter(10, False)
    options.set_block_based_table_factory(table)
    if family is not None and family.blobs:
        options.set_enable_blob_files(True)
        options.set_min_blob_size(16 << 10)
        options.set_blob_compression_type(compression)
        options.set_enable_blob_gc(True)
        options.set_blob_gc_age_cutoff(1.0)
        options.set_blob_gc_force_threshold(GARBAGE)
    return options


_UNSORTED_PROPERTIES = "properties unsorted"
"""RocksDB's message for a table with a damaged block of properties.

The message does not name the table, and suspects the ``MANIFEST``.
"""
_REMEDY = "restore the folder from a replica or a backup, or load the data and build again"


def _typed_error(error: Exception, path: Path) -> AsterismError:
    """Return the typed error for a message of RocksDB."""
    text = " ".join(str(error).split())
    if "No space left" in text or "SpaceLimit" in text:
        return Unavailable(f"{path}: the disk is full ({text}); free space and try again")
    if "lock" in text.lower() and "IO error" in text:
        return Conflict(f"{path} is open in another process ({text})")
    if _UNSORTED_PROPERTIES in text:
        return Corrupt(f"{path}: properties of a table (*.sst) are damaged ({text}); {_REMEDY}")
    if "Corruption" in text or "checksum" in text.lower() or "No such file" in text:
        return Corrupt(f"{path}: {text}; {_REMEDY}")
    if "IO error" in text:
        return Unavailable(f"{path}: {text}")
    return Internal(f"{path}: {text}")


class RocksEngine:
    """An engine on a RocksDB folder.

    ``memory_bytes`` bounds RocksDB's memory; engines of a process with the same value share it.
    """

    def __init__(
        self,
        path: Path,
        families: Sequence[ColumnFamily],
        *,
        read_only: bool = False,
        memory_bytes: int = 0,
    ) -> None:
        self.path, self._buffers = path, _shared_buffers(memory_bytes)
        self._families = {family.name: family for family in families}
        access = (
            rocksdict.AccessType.read_only(False)
            if read_only
            else rocksdict.AccessType.read_write()
        )
        if not read_only:
            make_folder(path)  # RocksDB syncs the content of the folder, but not its name.
        self._runs = path.with_name(path.name + "-runs")
        self._run = 0
        if self._runs.exists() and not read_only:
            shutil.rmtree(self._runs)
        if damage := rocksdb_damage.damage_fault(path, writable=not read_only):
            raise Corrupt(f"{damage}; {_REMEDY}")
        family_options = {name: self.options(family) for name, family in self._families.items()}
        try:
            self._db: Any = rocksdict.Rdict(
                str(path), self.options(None), column_families=family_options, access_type=access
            )
        except Exception as error:
            raise _typed_error(error, path) from error
        self._columns: dict[str, Any] = {
            name: self._db.get_column_family(name) for name in family_options
        }
        self._durable, self._unlogged = rocksdict.WriteOptions(), rocksdict.WriteOptions()
        self._durable.sync = True
        # A property, although its stub declares a method.
        self._unlogged.disable_wal = True  # type: ignore[method-assign, assignment]

    def options(self, family: ColumnFamily | None) -> Any:
        """Return RocksDB's options of a family, or of the database for None."""
        return _options(family, self._buffers)

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        try:
            value: bytes | None = self._columns[family].get(key)
        except Exception as error:
            raise _typed_error(error, self.path) from error
        return value

    def write(self, puts: Sequence[Put], *, durable: bool = True) -> None:
        """Apply all puts, or none."""
        batch = rocksdict.WriteBatch(raw_mode=True)
        handles = {
            name: self._db.get_column_family_handle(name)
            for name in {family for family, _, _ in puts}
        }
        try:
            for family, key, value in puts:
                if value is None:
                    batch.delete(key, handles[family])
                else:
                    batch.put(key, value, handles[family])
            self._db.write(batch, self._durable if durable else self._unlogged)
        except Exception as error:
            raise _typed_error(error, self.path) from error
        finally:
            # The traceback of an error may live long; a handle in it would keep the database open.
            handles.clear()

    def scan(self, family: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values in order; raise Corrupt if the iterator stops before the end."""
        try:
            cursor = self._columns[family].iter()
            cursor.seek(start)
            while cursor.valid():
                key = cursor.key()
                if stop is not None and key >= stop:
                    break
                yield key, cursor.value()
                cursor.next()
            cursor.status()
        except AsterismError:
            raise
        except Exception as error:
            raise _typed_error(error, self.path) from error

    def bulk_writer(self, family: str, keep_path: Path | None = None) -> _RocksBulkWriter:
        """Return a writer of a sorted run.

        The run becomes an ingested file, or puts if it is small and not kept.
        """
        return _RocksBulkWriter(self, family, self._new_run(), keep_path)

    def ingest_file(self, family: str, run: Path) -> None:
        """Add a kept SST file to a family by a hard link."""
        link = self._new_run()
        try:
            os.link(run, link)
        except OSError as error:
            raise Unavailable(f"{run}: {error}; build the table again") from error
        self.ingest(family, link, shared=True)

    def ingest(self, family: str, file: Path, *, shared: bool = False) -> None:
        """Add a finished SST file to a family.

        A ``shared`` file has other names, under which it stays unchanged.
        """
        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(True)
        # If its keys were used before, RocksDB wants to write into the file. A shared file is then
        # copied first.
        options.set_allow_global_seqno(not shared)
        try:
            self._columns[family].ingest_external_file([str(file)], options)
        except Exception as error:
            if not shared or "seqno" not in str(error):
                raise _typed_error(error, self.path) from error
            copy = self._new_run()
            shutil.copyfile(file, copy)
            self.ingest(family, copy)
        file.unlink(missing_ok=True)

    def _new_run(self) -> Path:
        self._runs.mkdir(exist_ok=True)
        self._run += 1
        return self._runs / f"{self._run}.sst"

    def delete_range(self, family: str, start: bytes, stop: bytes) -> None:
        """Delete a range of keys."""
        try:
            self._columns[family].delete_range(start, stop)
        except Exception as error:
            raise _typed_error(error, self.path) from error

    def drop(self, family: str) -> None:
        """Drop the column family and create it again; its files go with its last handle."""
        try:
            del self._columns[family]
            self._db.drop_column_family(family)
            self._columns[family] = self._db.create_column_family(
                family, self.options(self._families[family])
            )
        except Exception as error:
            raise _typed_error(error, self.path) from error

    def flush(self) -> None:
        """Flush every family and wait."""
        try:
            for column in self._columns.values():
                column.flush(True)
        except Exception as error:
            raise _typed_error(error, self.path) from error

    def compact(self, family: str, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Flush, then have background threads merge all files of the family, also blob files."""
        try:
            compact_family(
                self._columns[family], self.path, cancelled, blobs=self._families[family].blobs
            )
        except Exception as error:
            raise _typed_error(error, self.path) from error

    def size(self) -> int:
        """Return the total size of the files, including those shared with a checkpoint."""
        total = 0
        for file in self.path.iterdir():
            # A compaction may remove files at any time.
            with contextlib.suppress(FileNotFoundError):
                total += file.stat().st_size
        return total

    def checkpoint(self, path: Path) -> None:
        """Create a RocksDB checkpoint."""
        if path.exists():
            raise Conflict(f"checkpoint {path}: the folder exists already")
        make_folder(path.parent)
        try:
            rocksdict.Checkpoint(self._db).create_checkpoint(str(path))
        except Exception as error:
            raise _typed_error(error, self.path) from error

    def close(self) -> None:
        """Close every handle; the folder may be opened again at once."""
        self._columns.clear()
        # On a full disk it cannot flush while closing. Durable data is in the log or was flushed,
        # or its flush has failed before.
        with contextlib.suppress(Exception):
            self._db.close()
        self._db = None
        shutil.rmtree(self._runs, ignore_errors=True)


class _RocksBulkWriter:
    def __init__(
        self, engine: RocksEngine, family: str, file: Path, keep_path: Path | None
    ) -> None:
        self._engine, self._family, self._file, self._keep_path = engine, family, file, keep_path
        self._pending: list[tuple[bytes, bytes]] = []
        self._size = 0
        self._last = b""
        self._writer: Any = None

    def put(self, key: bytes, value: bytes) -> None:
        if key <= self._last:
            raise InvalidRequest(
                f"a sorted run requires ascending keys; {key.hex()} follows {self._last.hex()}"
            )
        self._last = key
        if self._writer is None:
            self._pending.append((key, value))
            self._size += len(value)
            if self._size > BULK_BYTES or self._keep_path is not None:
                self._spill()
            return
        try:
            self._writer[key] = value
        except Exception as error:
            raise _typed_error(error, self._engine.path) from error

    def _spill(self) -> None:
        try:
            self._writer = rocksdict.SstFileWriter(
                self._engine.options(self._engine._families[self._family])
            )
            self._writer.open(str(self._file))
            for key, value in self._pending:
                self._writer[key] = value
        except Exception as error:
            raise _typed_error(error, self._engine.path) from error
        self._pending.clear()

    def finish(self) -> None:
        if self._writer is None:
            if self._pending:
                self._engine.write(
                    [(self._family, key, value) for key, value in self._pending], durable=False
                )
                self._pending.clear()
            return
        try:
            self._writer.finish()
        except Exception as error:
            raise _typed_error(error, self._engine.path) from error
        self._writer = None
        if self._keep_path is not None:
            make_folder(self._keep_path.parent)
            self._keep_path.unlink(missing_ok=True)
            os.link(self._file, self._keep_path)
        self._engine.ingest(self._family, self._file, shared=self._keep_path is not None)
