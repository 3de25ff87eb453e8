"""Port of file readers: batches of named columns with their row numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asterism import arrow_types
from asterism.formats.chunks import BadRow, Ids
from asterism.formats.columns import Column
from asterism_proto.errors import InvalidRequest

_MAX_NAMES_CHARS = 1000
"""Characters of the existing names in an error about a missing column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """Consecutive rows of a file, as columns."""

    file: str
    """Name of the file in messages."""
    first_row: int
    """Number of the first row that the batch stands for, as in `BadRow.row`."""
    size: int
    """Number of rows that the batch stands for, including those in ``bad``."""
    rows: int
    """Number of rows in ``columns``."""
    columns: Mapping[str, Column]
    """Columns by name."""
    ordinals: Ids | None = None
    """Positions of the rows in ``columns`` among the ``size`` rows; None if no row is missing."""
    lines: Ids | None = None
    """Row numbers of the ``size`` rows; None if they are consecutive."""
    null_texts: tuple[str, ...] = ()
    """Texts that represent nulls, if ``columns`` holds raw text."""
    bad: tuple[BadRow, ...] = ()
    """Rows without columns, because they are too short or too long."""
    nbytes: int = 0
    """Bytes of input that the batch covers."""
    retry: Callable[[], RowBatch] | None = None
    """Function that returns the same rows as raw text, to identify bad rows in a slower pass."""

    def row_number(self, row: int) -> int:
        """Return the row number, for messages, of a row in ``columns``."""
        ordinal = row if self.ordinals is None else int(self.ordinals[row])
        return self.first_row + ordinal if self.lines is None else int(self.lines[ordinal])

    def column(self, name: str) -> Column:
        """Return a column with null texts replaced by nulls."""
        values = self.columns[name]
        if not self.null_texts:
            return values
        null_set = pa.array([null_text.encode() for null_text in self.null_texts], pa.binary())
        return pc.if_else(
            pc.is_in(values, value_set=null_set), pa.scalar(None, values.type), values
        )

    def display_value(self, column: str, row: int) -> str:
        """Return a value as text for messages."""
        values = self.columns[column]
        value = (
            arrow_types.python_value(values, row) if isinstance(values, pa.Array) else values[row]
        )
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        return (
            ""
            if value is None
            else str(np.asarray(value).tolist() if isinstance(value, np.ndarray) else value)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDescription:
    """Content of a column, as far as its file states it."""

    kind: str
    """``dense``, ``ragged`` or ``bytes``; ``text`` if only the reader can decide."""
    dtype: str = ""
    shape: tuple[int, ...] = ()


class TableReader(Protocol):
    """Port of files with rows of one type."""

    @property
    def rows(self) -> int | None:
        """Total number of rows, or None if only reading reveals it."""

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""

    def describe(self, column: str) -> ColumnDescription:
        """Return the description of a column.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        ColumnDescription

        Raises
        ------
        InvalidRequest
            There is no such column.
        """

    def batches(
        self, column_types: Mapping[str, pa.DataType | None], limit: int
    ) -> Iterator[RowBatch]:
        """Yield batches of rows with the requested columns, file by file.

        Parameters
        ----------
        column_types : mapping
            Names of columns, and the Arrow type to which text is parsed. Typed files ignore the
            types.
        limit : int
            Largest number of rows per batch.

        Yields
        ------
        RowBatch
        """


def spans(rows: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield row ranges of at most ``limit`` rows, as even as possible."""
    pieces = max(1, -(-rows // limit))
    for i in range(pieces):
        yield rows * i // pieces, rows * (i + 1) // pieces


def missing_column_error(file: str, column: str, existing: list[str]) -> InvalidRequest:
    """Return the error for a column that a file does not have."""
    names = ", ".join(existing) or "none"
    if len(names) > _MAX_NAMES_CHARS:
        names = f"{len(existing)} others, from {existing[0][:_MAX_NAMES_CHARS]!r} on"
    return InvalidRequest(f"{file}: expected a column {column!r}, it has {names}")
