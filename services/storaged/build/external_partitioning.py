"""Split records that do not fit in memory by ranges of a key, using flat files.

The ranges are processed one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random.partition_choice import group_by_key

Records = tuple[NDArray[Any], ...]
"""Columns of equal length."""

MAX_BUCKETS = 64


@dataclass(frozen=True, slots=True)
class Bucket:
    """Records with keys in low .. high, in input order."""

    low: int
    high: int
    records: Records


class SpoolFile:
    """Records in a flat file, appended in runs and read back in the same runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("w+b")
        self._runs: list[int] = []
        self._dtypes: tuple[np.dtype[Any], ...] = ()
        self.rows = 0

    def append(self, records: Records) -> None:
        """Append records."""
        self._dtypes = tuple(column.dtype for column in records)
        for column in records:
            self._file.write(np.ascontiguousarray(column).data)
        self._runs.append(len(records[0]))
        self.rows += len(records[0])

    def read(self) -> Iterator[Records]:
        """Yield all records, run by run."""
        self._file.seek(0)
        for rows in self._runs:
            yield tuple(np.fromfile(self._file, dtype, rows) for dtype in self._dtypes)

    def remove(self) -> None:
        """Close and delete the file."""
        self._file.close()
        self._path.unlink()


def concat_records(runs: Iterable[Records]) -> Records:
    """Concatenate runs of records; return () if there are none."""
    batches = list(runs)
    if len(batches) == 1:
        return batches[0]
    return tuple(np.concatenate(columns) for columns in zip(*batches, strict=True))


def split_into_buckets(
    source: Iterable[Records],
    rows: int,
    *,
    low: int,
    high: int,
    limit: int,
    folder: Path,
    keys: tuple[int, ...] = (0,),
    span: int = 0,
) -> Iterator[Bucket]:
    """Split ``source`` by ranges of a key, and yield the ranges in ascending order.

    Parameters
    ----------
    source : iterable of Records
        At most ``rows`` records, read once, before the first bucket is yielded.
    rows : int
    low, high : int
        Bounds of the key, inclusive.
    limit : int
        Number of records that fit in memory. If all of them do, there is one bucket, and no file is
        written.
    folder : Path
        Folder for temporary files, which are all removed.
    keys : tuple of int, optional
        Indices of the columns to split by. Records that share the first key and are still too many
        are split by the next one; their buckets have equal ``low`` and ``high``. Records that share
        all keys are in one bucket, whatever their number.
    span : int, optional
        Maximum number of values of the first key in a bucket, for callers with memory per key
        value; 0 for no limit.
    """
    if rows <= limit or (low == high and len(keys) == 1):
        records = concat_records(source)
        if records and 0 < span <= high - low:
            yield from _split_by_span(Bucket(low, high, records), keys[0], span)
        elif records:
            yield Bucket(low, high, records)
        return
    if low == high:
        yield from _split_by_next_key(source, low, limit=limit, folder=folder, keys=keys)
        return
    count = min(MAX_BUCKETS, -(-rows * 5 // (4 * limit)), high - low + 1)
    width = -(-(high - low + 1) // count)
    spools = _distribute(source, count, keys[0], low, width, limit, folder)
    for i, spool in enumerate(spools):
        first = low + i * width
        if spool.rows:
            last = min(first + width - 1, high)
            yield from split_into_buckets(
                spool.read(),
                spool.rows,
                low=first,
                high=last,
                limit=limit,
                folder=folder,
                keys=keys,
                span=span,
            )
        spool.remove()


def _split_by_span(bucket: Bucket, key: int, span: int) -> Iterator[Bucket]:
    """Split a bucket into buckets with ranges of at most ``span`` keys."""
    groups = -(-(bucket.high - bucket.low + 1) // span)
    order, offsets = group_by_key(
        ((bucket.records[key].astype(np.int64) - bucket.low) // span).astype(np.int32), groups
    )
    for i in np.flatnonzero(np.diff(offsets)).tolist():
        first = bucket.low + i * span
        selected = order[offsets[i] : offsets[i + 1]]
        yield Bucket(
            first,
            min(first + span - 1, bucket.high),
            tuple(column[selected] for column in bucket.records),
        )


def _split_by_next_key(
    source: Iterable[Records], key: int, *, limit: int, folder: Path, keys: tuple[int, ...]
) -> Iterator[Bucket]:
    """Split records that share their first key by the next one, after finding its range."""
    spool = _new_spool(folder)
    low, high = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    for records in source:
        spool.append(records)
        if len(records[0]):
            low, high = (
                min(low, int(records[keys[1]].min())),
                max(high, int(records[keys[1]].max())),
            )
    for bucket in split_into_buckets(
        spool.read(), spool.rows, low=low, high=high, limit=limit, folder=folder, keys=keys[1:]
    ):
        yield Bucket(key, key, bucket.records)
    spool.remove()


def _distribute(
    source: Iterable[Records], count: int, key: int, low: int, width: int, limit: int, folder: Path
) -> list[SpoolFile]:
    spools = [_new_spool(folder) for _ in range(count)]
    for records in _batches(source, max(limit // 4, 1)):
        order, offsets = group_by_key(
            ((records[key].astype(np.int64) - low) // width).astype(np.int32), count
        )
        grouped = tuple(column[order] for column in records)
        for i, spool in enumerate(spools):
            if offsets[i] < offsets[i + 1]:
                spool.append(tuple(column[offsets[i] : offsets[i + 1]] for column in grouped))
    return spools


def _batches(source: Iterable[Records], rows: int) -> Iterator[Records]:
    """Yield the same records in larger runs, since each run is spread over many files."""
    pending: list[Records] = []
    for records in source:
        pending.append(records)
        if sum(len(piece[0]) for piece in pending) >= rows:
            yield concat_records(pending)
            pending = []
    if pending:
        yield concat_records(pending)


def _new_spool(folder: Path) -> SpoolFile:
    number = len(list(folder.glob("spool-*")))
    while (path := folder / f"spool-{number}").exists():
        number += 1
    return SpoolFile(path)
