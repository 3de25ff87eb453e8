"""Compaction that does not block other threads.

A manual RocksDB compaction holds the GIL until it ends. Options therefore make the background
threads do the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GARBAGE, _EAGER_GARBAGE = 0.25, 0.01
"""Garbage share above which blob files are rewritten: normally, and during a compaction."""
_TRIGGER, _EAGER_TRIGGER = "4", "1"
"""Number of unmerged files that triggers a background merge.

The first is RocksDB's default; the second applies during a compaction.
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
    """Flush a column family, then have background threads merge its files.

    Blob files with garbage are rewritten.

    Parameters
    ----------
    family : rocksdict.Rdict
        The column family.
    folder : Path
        Folder of the database.
    cancelled : callable
        Polled every 50 ms. If it returns True, this function returns; RocksDB completes a running
        compaction.
    blobs : bool
        True for a family that stores values in blob files.
    """
    family.flush(True)
    family.set_options({_FILES: _EAGER_TRIGGER, **({_BLOBS: str(_EAGER_GARBAGE)} if blobs else {})})
    try:
        _wait_for_merge(family, cancelled)
    finally:
        family.set_options({_FILES: _TRIGGER, **({_BLOBS: str(GARBAGE)} if blobs else {})})
    _purge_files(family, folder, cancelled, blobs=blobs)


def _wait_for_merge(family: Any, cancelled: Callable[[], bool]) -> None:
    """Wait until all files are merged and blob files have hardly any garbage.

    Also returns when no compaction has run for a while.
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
    """Have RocksDB delete files that are no longer referenced.

    RocksDB defers the deletion of files that were being read when they were merged until its next
    job, which may be much later. An iterator that is the last user of a state also deletes them.
    Setting options, even to the same values, starts a new state.
    """
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
