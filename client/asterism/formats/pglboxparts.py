"""Edges in part files: PGLBox's sharding tool puts each row into the part of its source, and once more into that of its destination."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from asterism.formats import columns
from asterism.formats.csvfiles import CsvTable
from asterism.formats.tables import Batch, Described

_PART = re.compile(r"part-0*(\d+)$")


class PartTable:
    """Files ``part-00000`` and so on, of which each gives the rows whose source is of that part; files of other names give all.

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
        for label, table in self._files:
            part = _PART.search(label)
            for batch in table.batches(wanted, limit):
                yield batch if part is None else self._of_part(batch, int(part[1]))

    def _of_part(self, batch: Batch, part: int) -> Batch:
        sources, bad = columns.ids(batch.column("src"))
        mine = sources % self._parts == part
        if bad is not None:
            mine |= bad  # it is told by whoever reads it
        if mine.all():
            return batch
        rows = np.flatnonzero(mine)
        again = batch.retry
        return replace(
            batch,
            rows=len(rows),
            columns={name: column.take(pa.array(rows)) if isinstance(column, pa.Array) else column[rows] for name, column in batch.columns.items()},
            ordinals=rows if batch.ordinals is None else batch.ordinals[rows],
            retry=None if again is None else lambda: self._of_part(again(), part),
        )
