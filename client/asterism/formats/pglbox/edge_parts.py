"""Edges in part files: PGLBox's sharding tool puts each row into the part of its source, and once
more into that of its destination.
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
from asterism.formats.tables import ColumnDescription, RowBatch

_PART = re.compile(r"part-0*(\d+)$")
_PROBED_ROWS = 4096
"""Rows of each file that tell whether rows are in it because of their destinations."""


class PartFilesTable:
    """Files ``part-00000`` and so on, of which each gives the rows whose source is of that part;
    files of other names give all.

    A row whose ends are both of a part stands there twice, one right behind the other, where the
    tool was told that edges are symmetric: then every second one is left out.

    Parameters
    ----------
    files : sequence of (str, CsvTable)
        Each by its name.
    parts : int
        How many parts there are: a source belongs to part ``source % parts``.
    """

    def __init__(self, files: Sequence[tuple[str, CsvTable]], parts: int) -> None:
        self._files, self._parts = files, parts

    @property
    def rows(self) -> int | None:
        """Not known before the end."""
        return None

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        return sum(table.nbytes for _, table in self._files)

    def describe(self, column: str) -> ColumnDescription:
        """Text."""
        return ColumnDescription(kind="text")

    def batches(
        self, column_types: Mapping[str, pa.DataType | None], limit: int
    ) -> Iterator[RowBatch]:
        """As `Table.batches`."""
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
        """Whether a file has a row because of its destination."""
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
            selected |= bad_mask  # it is told by whoever reads it
        return batch if selected.all() else _select_rows(batch, np.flatnonzero(selected))


class _RepeatRuns:
    """Equal rows behind each other in a file, from batch to batch."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._length = 0

    def repeat_numbers(self, src: Ids, dst: Ids) -> Ids:
        """int64[n]: how many rows before each one, without a gap, are equal to it."""
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
    """Which part a file is; None of files of other names."""
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
