"""Compaction that lets others work: the background does it, asked by options, for a manual one holds the GIL to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GARBAGE, _EAGER_GARBAGE = 0.25, 0.01
"""Share of garbage in blob files beyond which they are written anew: all the time, and while a compaction is asked for."""
_TRIGGER, _EAGER_TRIGGER = "4", "1"
"""Unmerged files beyond which the background merges them: RocksDB's own number, and while a compaction is asked for."""
_FILES, _BLOBS = "level0_file_num_compaction_trigger", "blob_garbage_collection_force_threshold"
_LOOKED_AT = ("num-files-at-level0", "num-running-compactions", "compaction-pending", "total-blob-file-size", "live-blob-file-garbage-size")
_LOOK_S, _QUIET_LOOKS, _PURGE_LOOKS = 0.05, 10, 60


def merge(column: Any, folder: Path, cancelled: Callable[[], bool], *, blobs: bool) -> None:
    """Flush a column family, and have the background merge all its files, and rewrite blob files that hold garbage.

    Parameters
    ----------
    column : rocksdict.Rdict
        Of the family.
    folder : Path
        Of the database.
    cancelled : callable
        Looked at every 50 ms: returns then; what the background has begun it ends by itself.
    blobs : bool
        Whether it is this family that keeps values in blob files.
    """
    column.flush(True)
    column.set_options({_FILES: _EAGER_TRIGGER, **({_BLOBS: str(_EAGER_GARBAGE)} if blobs else {})})
    try:
        _settle(column, cancelled)
    finally:
        column.set_options({_FILES: _TRIGGER, **({_BLOBS: str(GARBAGE)} if blobs else {})})
    _remove(column, folder, cancelled, blobs=blobs)


def _settle(column: Any, cancelled: Callable[[], bool]) -> None:
    """Wait until no file of the family is unmerged and its blob files hold hardly any garbage, or nothing happens any more."""
    merged, quiet = False, 0
    while not cancelled() and quiet < _QUIET_LOOKS:
        time.sleep(_LOOK_S)
        fresh, running, pending, total, garbage = (int(column.property_value(f"rocksdb.{name}") or 0) for name in _LOOKED_AT)
        merged = merged or fresh == 0
        quiet = 0 if running or pending else quiet + 1
        if merged and not running and garbage <= _EAGER_GARBAGE * total:
            return


def _remove(column: Any, folder: Path, cancelled: Callable[[], bool], *, blobs: bool) -> None:
    """Have files removed that nothing names any more.

    RocksDB leaves those that somebody read as they were merged to its next job, which may be a long time off. An iterator that ends as the last
    one of a state removes them too; options that are set, the same ones, begin a new state.
    """
    for _ in range(_PURGE_LOOKS):
        needless = len(list(folder.glob("*.sst"))) > len(column.live_files())
        if blobs and len(list(folder.glob("*.blob"))) > int(column.property_value("rocksdb.num-blob-files") or 0):
            needless = True
        if cancelled() or not needless:
            return
        last = column.iter()
        column.set_options({_FILES: _TRIGGER})
        del last
        time.sleep(_LOOK_S)
