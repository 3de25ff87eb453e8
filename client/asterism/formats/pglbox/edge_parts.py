"""Edges in PGLBox's part files, in which rows may appear twice.

PGLBox's sharding tool writes each row into the part of its source and, for symmetric edges, also
into the part of its destination.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pyarrow as pa

from asterism.formats import columns
from asterism.formats.chunks import Ids, Mask
from asterism.formats.csv_files import CsvTable
from asterism.formats.table_reader import ColumnDescription, RowBatch

_PART = re.compile(r"part-0*(\d+)$")
_PROBED_ROWS = 4096
"""Number of rows per file that are checked for copies made for their destinations."""


class PartFilesTable:
    """Table of files ``part-00000`` and so on, without the copies made for destinations.

    A part file yields only the rows with a source in its part. Files with other names yield all
    rows. If edges are symmetric, the tool writes a row with both ends in one part twice in
    succession; every second one is then left out.

    Parameters
    ----------
    files : sequence of (str, CsvTable)
        Files with their names.
    parts : int
        Number of parts: a source belongs to part ``source % parts``.
    """

    def __init__(self, files: Sequence[tuple[str, CsvTable]], parts: int) -> None:
        self._files, self._parts = files, parts

    @property
    def rows(self) -> int | None:
        """None, because the number of rows is unknown before the end."""
        return None

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""
        return sum(table.nbytes for _, table in self._files)

    def describe(self, column: str) -> ColumnDescription:
        """Return the kind "text"."""
        return ColumnDescription(kind="text")

    def batches(
        self, column_types: Mapping[str, pa.DataType | None], limit: int
    ) -> Iterator[RowBatch]:
        """Yield batches of rows; see `TableReader.batches`."""
        has_copies = self._has_destination_copies()
        for label, table in self._files:
            part = _part_number(label)
            runs = _RepeatRuns()
            for batch in table.batches(column_types, limit):
                yield (
                    batch
                    if part is None
                    else self._rows_of_part(batch, part, runs if has_copies else None)
                )

    def _has_destination_copies(self) -> bool:
        """Return True if a file has a row only because of its destination."""
        for label, table in self._files:
            part = _part_number(label)
            for batch in islice(
                table.batches({"src": pa.int64()}, _PROBED_ROWS), 1 if part is not None else 0
            ):
                sources, bad_mask = columns.parse_ids(batch.column("src"))
                if (
                    (sources % self._parts != part) & (True if bad_mask is None else ~bad_mask)
                ).any():
                    return True
        return False

    def _rows_of_part(self, batch: RowBatch, part: int, runs: _RepeatRuns | None) -> RowBatch:
        src, bad_src = columns.parse_ids(batch.column("src"))
        dst, bad_dst = columns.parse_ids(batch.column("dst"))
        selected: Mask = src % self._parts == part
        if runs is not None:
            selected &= ~(
                (dst % self._parts == part)
                & (src != dst)
                & (runs.repeat_numbers(src, dst) % 2 == 1)
            )
        bad_mask = columns.union_masks(bad_src, bad_dst)
        if bad_mask is not None:
            selected |= bad_mask  # reported by the reader of the rows
        return batch if selected.all() else _select_rows(batch, np.flatnonzero(selected))


class _RepeatRuns:
    """Counter of consecutive equal rows of a file, across batches."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._length = 0

    def repeat_numbers(self, src: Ids, dst: Ids) -> Ids:
        """Return the number of equal rows directly before each row; int64, shape (n,)."""
        if not len(src):
            return src
        is_new = np.ones(len(src), np.bool_)
        is_new[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
        rows = np.arange(len(src))
        repeat_numbers: Ids = rows - np.maximum.accumulate(np.where(is_new, rows, 0))
        if self._last == (int(src[0]), int(dst[0])):
            later_starts = np.flatnonzero(is_new[1:])
            repeat_numbers[: later_starts[0] + 1 if len(later_starts) else None] += self._length
        self._last, self._length = (int(src[-1]), int(dst[-1])), int(repeat_numbers[-1]) + 1
        return repeat_numbers


def _part_number(label: str) -> int | None:
    """Return the part number of a file name, or None for other names."""
    match = _PART.search(label)
    return int(match[1]) if match else None


def _select_rows(batch: RowBatch, rows: Ids) -> RowBatch:
    retry = batch.retry
    return replace(
        batch,
        rows=len(rows),
        columns={
            name: column.take(pa.array(rows)) if isinstance(column, pa.Array) else column[rows]
            for name, column in batch.columns.items()
        },
        ordinals=rows if batch.ordinals is None else batch.ordinals[rows],
        retry=None if retry is None else lambda: _select_rows(retry(), rows),
    )
