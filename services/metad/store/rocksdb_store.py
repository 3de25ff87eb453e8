"""Store on RocksDB. This is the only module of metad that imports rocksdict."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from pathlib import Path

from rocksdict import DBRecoveryMode, Options, Rdict, WriteBatch, WriteOptions

from asterism_daemonkit import rocksdb_damage
from asterism_io.durable_files import make_folder
from asterism_proto.errors import Corrupt, Unavailable
from metad.store.port import Changes

logger = logging.getLogger(__name__)

_REMEDY = "restore the catalog from a snapshot"
MIN_FREE_BYTES = 8 << 20
"""Free disk space in bytes below which reopening the database is not attempted."""


class RocksStore:
    """A `MetaStore` in a folder.

    Notes
    -----
    Every write is one WriteBatch with a synced log. After a failed write (a full disk), it is
    unknown whether the write is on disk, and RocksDB accepts no further write until it is
    reopened. The store therefore raises Unavailable until the disk has free space. Then it
    reopens the database and undoes the failed write. The caller of that write received an error,
    and metad updates its memory only after a write, so memory and store agree again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._error = ""
        self._failed_keys: tuple[bytes, ...] = ()
        """Keys of a failed write."""
        self._undo_changes: dict[bytes, bytes | None] | None = None
        """Previous values of these keys; None until they have been read."""
        self._sync_options = WriteOptions()
        self._sync_options.sync = True
        make_folder(path)  # RocksDB syncs the contents of the folder, not its name
        self._closed = False
        self._db: Rdict | None = self._open_database()

    def _open_database(self) -> Rdict:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_paranoid_checks(True)
        # A torn end of the log belongs to a write that was never acknowledged. Any other damage
        # must not pass for an older state.
        options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
        options.set_max_open_files(64)
        options.set_keep_log_file_num(4)
        if damage := rocksdb_damage.damage_fault(self._path):
            raise Corrupt(f"{damage}; {_REMEDY}")
        try:
            return Rdict(str(self._path), options)
        except Exception as error:  # rocksdict raises nothing narrower
            reason = " ".join(str(error).split())
            raise Corrupt(
                f"{self._path}: the catalog cannot be opened ({reason}); stop any other metad "
                f"that has it open; otherwise check the disk and {_REMEDY}"
            ) from error

    def _usable_database(self) -> Rdict:
        if self._closed:
            raise Unavailable("the catalog is closed: metad is stopping")
        self._recover()
        if self._error:
            raise Unavailable(self._error)
        assert self._db is not None
        return self._db

    def _recover(self) -> None:
        """Reopen the database and undo a failed write, once the disk has free space."""
        if not self._error or self._closed or shutil.disk_usage(self._path).free < MIN_FREE_BYTES:
            return
        try:
            if self._undo_changes is None:
                self._read_previous_values()
            if self._db is not None:
                db, self._db = self._db, None
                with contextlib.suppress(
                    Exception
                ):  # it cannot flush; acknowledged writes are in its log
                    db.close()
            self._db = self._open_database()
            self._write_batch(self._db, self._undo_changes or {})
        except Exception as error:  # rocksdict raises nothing narrower
            self._error = (
                f"{self._path}: the catalog cannot be reopened after a failed write ({error}); "
                "free space on the disk, or check the disk"
            )
            return
        self._error, self._failed_keys, self._undo_changes = "", (), None
        logger.warning("catalog_store_reopened", extra={"path": str(self._path)})

    def _read_previous_values(self) -> None:
        """Read what the keys of a failed write had before it.

        The database in which the write failed is still open: reopened, it may contain the write."""
        assert self._db is not None
        self._undo_changes = {key: self._db.get(key) for key in self._failed_keys}

    def _write_batch(self, db: Rdict, changes: Changes) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        db.write(batch, self._sync_options)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None if there is none."""
        with self._lock:
            try:
                value: bytes | None = self._usable_database().get(key)
            except Unavailable:
                raise
            except Exception as error:  # rocksdict raises nothing narrower
                raise Corrupt(
                    f"{self._path}: {key!r} cannot be read ({error}); {_REMEDY}"
                ) from error
            return value

    def range(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Return all pairs with this key prefix, by key; Corrupt if any is unreadable."""
        pairs = []
        with self._lock:
            cursor = self._usable_database().iter()
            cursor.seek(prefix)
            while cursor.valid():
                key = bytes(cursor.key())
                if not key.startswith(prefix):
                    break
                pairs.append((key, bytes(cursor.value())))
                cursor.next()
            try:
                # An iterator ends at a corrupt block as it does at the last key; only the status
                # distinguishes the two.
                cursor.status()
            except Exception as error:  # rocksdict raises nothing narrower
                raise Corrupt(
                    f"{self._path}: the keys under {prefix!r} cannot be read ({error}); {_REMEDY}"
                ) from error
        return pairs

    def write(self, changes: Changes) -> None:
        """Apply ``changes`` atomically and durably."""
        with self._lock:
            db = self._usable_database()
            try:
                self._write_batch(db, changes)
            except Exception as error:  # rocksdict raises nothing narrower
                self._error = (
                    f"{self._path}: a write failed ({error}); free space on the disk, or check "
                    "the disk"
                )
                self._failed_keys = tuple(changes)
                with contextlib.suppress(Exception):  # the next use tries again
                    self._read_previous_values()
                raise Unavailable(self._error) from error

    def fault(self) -> str:
        """Return why the store is unavailable; empty if it is available."""
        with self._lock:
            self._recover()
            return self._error

    def close(self) -> None:
        """Flush and close the database."""
        with self._lock:
            self._closed = True
            if self._db is not None:
                # Closing may fail if a file is damaged or the disk is full. Acknowledged writes are
                # in the synced log.
                with contextlib.suppress(Exception):
                    self._db.close()
                self._db = None
