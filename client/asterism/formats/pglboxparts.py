"""Edges in part files: PGLBox's sharding tool puts each row into the part of its source, and once more into that of its destination."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pyarrow as pa

from asterism.formats import columns
from asterism.formats.chunks import Ids, Mask
from asterism.formats.csvfiles import CsvTable
from asterism.formats.tables import Batch, Described

_PART = re.compile(r"part-0*(\d+)$")
_LOOKED_AT = 4096
"""Rows of each file that tell whether rows are in it because of their destinations."""


class PartTable:
    """Files ``part-00000`` and so on, of which each gives the rows whose source is of that part; files of other names give all.

    A row whose ends are both of a part stands there twice, one right behind the other, where the tool was told that edges are symmetric: then
    every second one is left out.

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

    def describe(self, column: str) -> Described:
        """Text."""
        return Described(kind="text")

    def batches(self, wanted: Mapping[str, pa.DataType | None], limit: int) -> Iterator[Batch]:
        """As `Table.batches`."""
        twice = self._both_ways()
        for label, table in self._files:
            part = _part(label)
            runs = _Runs()
            for batch in table.batches(wanted, limit):
                yield batch if part is None else self._of_part(batch, part, runs if twice else None)

    def _both_ways(self) -> bool:
        """Whether a file has a row because of its destination."""
        for label, table in self._files:
            part = _part(label)
            for batch in islice(table.batches({"src": pa.int64()}, _LOOKED_AT), 1 if part is not None else 0):
                sources, bad = columns.ids(batch.column("src"))
                if ((sources % self._parts != part) & (True if bad is None else ~bad)).any():
                    return True
        return False

    def _of_part(self, batch: Batch, part: int, runs: _Runs | None) -> Batch:
        src, bad_src = columns.ids(batch.column("src"))
        dst, bad_dst = columns.ids(batch.column("dst"))
        mine: Mask = src % self._parts == part
        if runs is not None:
            mine &= ~((dst % self._parts == part) & (src != dst) & (runs.places(src, dst) % 2 == 1))
        bad = columns.either(bad_src, bad_dst)
        if bad is not None:
            mine |= bad  # it is told by whoever reads it
        return batch if mine.all() else _only(batch, np.flatnonzero(mine))


class _Runs:
    """Equal rows behind each other in a file, from batch to batch."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._length = 0

    def places(self, src: Ids, dst: Ids) -> Ids:
        """int64[n]: how many rows before each one, without a gap, are equal to it."""
        if not len(src):
            return src
        new = np.ones(len(src), np.bool_)
        new[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
        rows = np.arange(len(src))
        found: Ids = rows - np.maximum.accumulate(np.where(new, rows, 0))
        if self._last == (int(src[0]), int(dst[0])):
            others = np.flatnonzero(new[1:])
            found[: others[0] + 1 if len(others) else None] += self._length
        self._last, self._length = (int(src[-1]), int(dst[-1])), int(found[-1]) + 1
        return found


def _part(label: str) -> int | None:
    """Which part a file is; None of files of other names."""
    found = _PART.search(label)
    return int(found[1]) if found else None


def _only(batch: Batch, rows: Ids) -> Batch:
    again = batch.retry
    return replace(
        batch,
        rows=len(rows),
        columns={name: column.take(pa.array(rows)) if isinstance(column, pa.Array) else column[rows] for name, column in batch.columns.items()},
        ordinals=rows if batch.ordinals is None else batch.ordinals[rows],
        retry=None if again is None else lambda: _only(again(), rows),
    )
