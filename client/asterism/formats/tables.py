"""The port that every kind of file stands behind: batches of named columns, with the places that
they came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asterism.formats.chunks import BadRow, Ids
from asterism.formats.columns import Column
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """Consecutive rows of a file as columns."""

    file: str
    first_row: int
    """Of the first row that it stands for, counted as `BadRow.row`."""
    size: int
    """Rows that it stands for, those in ``bad`` included."""
    rows: int
    """Rows in ``columns``."""
    columns: Mapping[str, Column]
    ordinals: Ids | None = None
    """Which of the ``size`` rows those in ``columns`` are; None: all."""
    lines: Ids | None = None
    """Row numbers of the ``size`` rows; None: they are consecutive."""
    null_texts: tuple[str, ...] = ()
    """The texts that are nulls, where ``columns`` is raw text."""
    bad: tuple[BadRow, ...] = ()
    """Rows that have no columns at all: too short, too long."""
    nbytes: int = 0
    retry: Callable[[], RowBatch] | None = None
    """The same rows as raw text, for the slow pass that finds out which of them are bad."""

    def row_number(self, row: int) -> int:
        """The number of a row of ``columns``, for people."""
        ordinal = row if self.ordinals is None else int(self.ordinals[row])
        return self.first_row + ordinal if self.lines is None else int(self.lines[ordinal])

    def column(self, name: str) -> Column:
        """A column, its nulls being nulls."""
        values = self.columns[name]
        if not self.null_texts:
            return values
        null_set = pa.array([null_text.encode() for null_text in self.null_texts], pa.binary())
        return pc.if_else(
            pc.is_in(values, value_set=null_set), pa.scalar(None, values.type), values
        )

    def display_value(self, column: str, row: int) -> str:
        """A value, for people."""
        values = self.columns[column]
        value = values[row].as_py() if isinstance(values, pa.Array) else values[row]
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        return (
            ""
            if value is None
            else str(np.asarray(value).tolist() if isinstance(value, np.ndarray) else value)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDescription:
    """What a column holds, as far as its file says."""

    kind: str
    """``dense``, ``ragged`` or ``bytes``; ``text`` where only the reader can know."""
    dtype: str = ""
    shape: tuple[int, ...] = ()


class TableReader(Protocol):
    """Files of rows of one type."""

    @property
    def rows(self) -> int | None:
        """Rows in all, where the files say so before they are read."""

    @property
    def nbytes(self) -> int:
        """Bytes in all."""

    def describe(self, column: str) -> ColumnDescription:
        """What a column holds; InvalidRequest names a column that is not there."""

    def batches(
        self, column_types: Mapping[str, pa.DataType | None], limit: int
    ) -> Iterator[RowBatch]:
        """Batches of at most ``limit`` rows with the wanted columns, file by file.

        Parameters
        ----------
        column_types : mapping
            Column names and the Arrow type that text should be parsed to; files that have types of
            their own ignore it.
        limit : int
            Rows.
        """


def spans(rows: int, limit: int) -> Iterator[tuple[int, int]]:
    """Runs of at most ``limit`` rows that are as even as can be."""
    pieces = max(1, -(-rows // limit))
    for i in range(pieces):
        yield rows * i // pieces, rows * (i + 1) // pieces


def missing_column_error(file: str, column: str, existing: list[str]) -> InvalidRequest:
    """The error for a column that a file does not have."""
    return InvalidRequest(f"{file}: no column {column!r}; it has {', '.join(existing) or 'none'}")
