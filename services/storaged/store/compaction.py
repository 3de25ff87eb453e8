"""Compaction that lets others work: the background does it, asked by options, for a manual one
holds the GIL to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GARBAGE, _EAGER_GARBAGE = 0.25, 0.01
"""Share of garbage in blob files beyond which they are written anew: all the time, and while a
compaction is asked for.
"""
_TRIGGER, _EAGER_TRIGGER = "4", "1"
"""Unmerged files beyond which the background merges them: RocksDB's own number, and while a
compaction is asked for.
"""
_FILES, _BLOBS = "level0_file_num_compaction_trigger", "blob_garbage_collection_force_threshold"
_PROPERTIES = (
    "num-files-at-level0",
    "num-running-compactions",
    "compaction-pending",
    "total-blob-file-size",
    "live-blob-file-garbage-size",
)
_POLL_S, _IDLE_POLLS, _PURGE_POLLS = 0.05, 10, 60


def compact_family(
    family: Any, folder: Path, cancelled: Callable[[], bool], *, blobs: bool
) -> None:
    """Flush a column family, and have the background merge all its files, and rewrite blob files
    that hold garbage.

    Parameters
    ----------
    family : rocksdict.Rdict
        Of the family.
    folder : Path
        Of the database.
    cancelled : callable
        Looked at every 50 ms: returns then; what the background has begun it ends by itself.
    blobs : bool
        Whether it is this family that keeps values in blob files.
    """
    family.flush(True)
    family.set_options({_FILES: _EAGER_TRIGGER, **({_BLOBS: str(_EAGER_GARBAGE)} if blobs else {})})
    try:
        _wait_for_merge(family, cancelled)
    finally:
        family.set_options({_FILES: _TRIGGER, **({_BLOBS: str(GARBAGE)} if blobs else {})})
    _purge_files(family, folder, cancelled, blobs=blobs)


def _wait_for_merge(family: Any, cancelled: Callable[[], bool]) -> None:
    """Wait until no file of the family is unmerged and its blob files hold hardly any garbage, or
    nothing happens any more.
    """
    merged, idle_polls = False, 0
    while not cancelled() and idle_polls < _IDLE_POLLS:
        time.sleep(_POLL_S)
        unmerged, running, pending, total, garbage = (
            int(family.property_value(f"rocksdb.{name}") or 0) for name in _PROPERTIES
        )
        merged = merged or unmerged == 0
        idle_polls = 0 if running or pending else idle_polls + 1
        if merged and not running and garbage <= _EAGER_GARBAGE * total:
            return


def _purge_files(family: Any, folder: Path, cancelled: Callable[[], bool], *, blobs: bool) -> None:
    """Have files removed that nothing names any more.

    RocksDB leaves those that somebody read as they were merged to its next job, which may be a long
    time off. An iterator that ends as the last one of a state removes them too; options that are
    set, the same ones, begin a new state."""
    for _ in range(_PURGE_POLLS):
        has_garbage = len(list(folder.glob("*.sst"))) > len(family.live_files())
        if blobs and len(list(folder.glob("*.blob"))) > int(
            family.property_value("rocksdb.num-blob-files") or 0
        ):
            has_garbage = True
        if cancelled() or not has_garbage:
            return
        iterator = family.iter()
        family.set_options({_FILES: _TRIGGER})
        del iterator
        time.sleep(_POLL_S)
