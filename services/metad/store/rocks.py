"""The store on RocksDB: the only module of metad that knows rocksdict."""

from __future__ import annotations

import threading
from pathlib import Path

from rocksdict import DBRecoveryMode, Options, Rdict, WriteBatch, WriteOptions

from asterism_proto.errors import Corrupt, Unavailable
from metad.store.port import Changes


class RocksStore:
    """A `MetaStore` in a folder.

    Notes
    -----
    Every write is one WriteBatch with a synced log. A write that fails (a full disk) leaves it open whether it is on
    disk, so the store answers nothing from then on: metad's memory and its store must not drift apart, and a restart
    reads what there is.
    """

    def __init__(self, path: Path) -> None:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_paranoid_checks(True)
        # A torn end of the log is a write that nobody was told of. Anything else wrong in it must not pass for an older state.
        options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
        options.set_max_open_files(64)
        options.set_keep_log_file_num(4)
        self._path = path
        self._lock = threading.RLock()
        self._broken = ""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db: Rdict | None = Rdict(str(path), options)
        except Exception as error:  # rocksdict raises nothing narrower
            raise Corrupt(f"{path}: the catalog can not be opened: {error}; is another metad on the folder, or the disk at fault?") from error
        self._durably = WriteOptions()
        self._durably.sync = True

    def _open(self) -> Rdict:
        if self._db is None:
            raise Unavailable("the store is closed")
        if self._broken:
            raise Unavailable(self._broken)
        return self._db

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``; None if there is none."""
        with self._lock:
            try:
                value: bytes | None = self._open().get(key)
            except Unavailable:
                raise
            except Exception as error:  # rocksdict raises nothing narrower
                raise Corrupt(f"{self._path}: {key!r} can not be read: {error}") from error
            return value

    def range(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Every (key, value) whose key begins with ``prefix``, by key; Corrupt rather than a part of them."""
        found = []
        with self._lock:
            cursor = self._open().iter()
            cursor.seek(prefix)
            while cursor.valid():
                key = bytes(cursor.key())
                if not key.startswith(prefix):
                    break
                found.append((key, bytes(cursor.value())))
                cursor.next()
            try:
                # A corrupt block ends an iteration as the end of the keys does; only the status tells them apart.
                cursor.status()
            except Exception as error:  # rocksdict raises nothing narrower
                raise Corrupt(f"{self._path}: the keys under {prefix!r} can not be read: {error}") from error
        return found

    def write(self, changes: Changes) -> None:
        """Make ``changes``, together and durably."""
        batch = WriteBatch(raw_mode=True)
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        with self._lock:
            db = self._open()
            try:
                db.write(batch, self._durably)
            except Exception as error:  # rocksdict raises nothing narrower
                self._broken = f"{self._path}: a write failed ({error}); make room on the disk and restart metad"
                raise Unavailable(self._broken) from error

    def fault(self) -> str:
        """Why the store answers nothing any more; empty while it does."""
        return self._broken

    def close(self) -> None:
        """Flush and let go of the folder."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None
