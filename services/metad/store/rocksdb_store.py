"""The store on RocksDB: the only module of metad that knows rocksdict."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from pathlib import Path

from rocksdict import DBRecoveryMode, Options, Rdict, WriteBatch, WriteOptions

from asterism_daemonkit import rocksdb_files
from asterism_io.durable_files import make_folder
from asterism_proto.errors import Corrupt, Unavailable
from metad.store.port import Changes

logger = logging.getLogger(__name__)

_REMEDY = "restore the catalog from a snapshot"
MIN_FREE_BYTES = 8 << 20
"""Below this it is not worth while to open the database again."""


class RocksStore:
    """A `MetaStore` in a folder.

    Notes
    -----
    Every write is one WriteBatch with a synced log. A write that fails (a full disk) leaves it open
    whether it is on disk, and RocksDB takes no other one until it is opened anew. So the store
    answers nothing from then on, until the disk has room: then it is opened anew and the write
    undone. Its caller was told that it failed, and metad's memory, which takes a change on after
    its write only, is what the store says again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._error = ""
        self._undo_changes: dict[bytes, bytes | None] = {}
        """What the keys of a write that failed had before."""
        self._sync_options = WriteOptions()
        self._sync_options.sync = True
        make_folder(path)  # RocksDB syncs what is in it, not its name
        self._closed = False
        self._db: Rdict | None = self._open_database()

    def _open_database(self) -> Rdict:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_paranoid_checks(True)
        # A torn end of the log is a write that nobody was told of. Anything else wrong in it must
        # not pass for an older state.
        options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
        options.set_max_open_files(64)
        options.set_keep_log_file_num(4)
        if damage := rocksdb_files.damage_fault(self._path):
            raise Corrupt(f"{damage}; {_REMEDY}")
        try:
            return Rdict(str(self._path), options)
        except Exception as error:  # rocksdict raises nothing narrower
            reason = " ".join(str(error).split())
            raise Corrupt(
                f"{self._path}: the catalog cannot be opened ({reason}); stop another metad "
                f"that has it open, else check the disk and {_REMEDY}"
            ) from error

    def _usable_database(self) -> Rdict:
        if self._closed:
            raise Unavailable("the store is closed")
        self._recover()
        if self._error:
            raise Unavailable(self._error)
        assert self._db is not None
        return self._db

    def _recover(self) -> None:
        """Get over a write that failed, once there is room: the database anew, and that write
        undone.
        """
        if (
            not self._error
            or self._closed
            or not self._undo_changes
            or shutil.disk_usage(self._path).free < MIN_FREE_BYTES
        ):
            return
        try:
            if self._db is not None:
                db, self._db = self._db, None
                with contextlib.suppress(
                    Exception
                ):  # it can not flush; what was acknowledged is in its log
                    db.close()
            self._db = self._open_database()
            self._write_batch(self._db, self._undo_changes)
        except Exception as error:  # rocksdict raises nothing narrower
            self._error = (
                f"{self._path}: it can not be opened anew after a write that failed "
                f"({error}); make room on the disk"
            )
            return
        self._error, self._undo_changes = "", {}
        logger.warning("catalog_repaired", extra={"path": str(self._path)})

    def _write_batch(self, db: Rdict, changes: Changes) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        db.write(batch, self._sync_options)

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``; None if there is none."""
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
        """Every (key, value) whose key begins with ``prefix``, by key; Corrupt rather than a part
        of them.
        """
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
                # A corrupt block ends an iteration as the end of the keys does; only the status
                # tells them apart.
                cursor.status()
            except Exception as error:  # rocksdict raises nothing narrower
                raise Corrupt(
                    f"{self._path}: the keys under {prefix!r} cannot be read ({error}); {_REMEDY}"
                ) from error
        return pairs

    def write(self, changes: Changes) -> None:
        """Make ``changes``, together and durably."""
        with self._lock:
            db = self._usable_database()
            try:
                self._write_batch(db, changes)
            except Exception as error:  # rocksdict raises nothing narrower
                self._error = f"{self._path}: a write failed ({error}); make room on the disk"
                with contextlib.suppress(
                    Exception
                ):  # where it can not be read either, a restart reads what there is
                    self._undo_changes = {key: db.get(key) for key in changes}
                raise Unavailable(self._error) from error

    def fault(self) -> str:
        """Why the store answers nothing now; empty where it does, again or still."""
        with self._lock:
            self._recover()
            return self._error

    def close(self) -> None:
        """Flush and let go of the folder."""
        with self._lock:
            self._closed = True
            if self._db is not None:
                # It may fail where a file is damaged or the disk is full. Acknowledged writes are
                # in the synced log.
                with contextlib.suppress(Exception):
                    self._db.close()
                self._db = None
