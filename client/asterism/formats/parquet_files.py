"""Parquet files, read in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from asterism import arrow_types
from asterism.formats.chunks import mismatch_error
from asterism.formats.table_reader import ColumnDescription, RowBatch, missing_column_error
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:  # imported when a file is opened: it brings clients of file systems
    from pyarrow import parquet


def open_parquet(path: Path, label: str) -> parquet.ParquetFile:
    """Open a file and read its footer; raise InvalidRequest if that fails."""
    from pyarrow import parquet

    try:
        # Timestamps of 96 bits, which Spark writes, have microseconds. As nanoseconds, years after
        # 2262 would overflow.
        return parquet.ParquetFile(
            path, memory_map=False, pre_buffer=False, coerce_int96_timestamp_unit="us"
        )
    except FileNotFoundError as error:
        raise InvalidRequest(f"{label}: no such file") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidRequest(f"{label}: expected a complete Parquet file ({error})") from error


def describe_field(label: str, field: pa.Field) -> ColumnDescription:
    """Describe a column of an Arrow type as a feature.

    A column of nulls, as is written where all values are missing, is described as "text": any
    feature can be read from it.
    """
    if _is_without_type(field.type):
        return ColumnDescription(kind="text")
    try:
        kind, dtype, shape = arrow_types.describe_type(field.type)
    except arrow_types.UnsupportedTypeError as error:
        raise InvalidRequest(
            f"{label}: column {field.name!r} of {field.type}: expected numbers, lists of numbers, "
            f"times or strings; {error}"
        ) from error
    return ColumnDescription(kind=kind, dtype=dtype, shape=shape)


def _is_without_type(kind: pa.DataType) -> bool:
    """Return True for nulls and lists of nulls."""
    kind = arrow_types.value_type(kind)
    return pa.types.is_null(kind) or (
        arrow_types.is_list(kind) and pa.types.is_null(kind.value_type)
    )


def find_column(label: str, schema: pa.Schema, column: str) -> pa.Field:
    """Return a column of a file; raise InvalidRequest if there is none of this name, or several."""
    positions = schema.get_all_field_indices(column)
    if not positions:
        raise missing_column_error(label, column, schema.names)
    if len(positions) > 1:
        raise InvalidRequest(
            f"{label}: expected one column {column!r}, it has {len(positions)}; rename them"
        )
    return schema.field(positions[0])


def column_names(path: Path, label: str) -> list[str]:
    """Return the names of the columns of a file."""
    return list(open_parquet(path, label).schema_arrow.names)


class ParquetTable:
    """Parquet files with the same columns.

    Parameters
    ----------
    files : sequence of (Path, str)
        Files, and their names in messages.
    """

    def __init__(self, files: Sequence[tuple[Path, str]]) -> None:
        self._files = files
        self._rows: list[int] = [
            open_parquet(path, label).metadata.num_rows for path, label in files
        ]

    @property
    def rows(self) -> int | None:
        """Total number of rows."""
        return sum(self._rows)

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""
        return sum(path.stat().st_size for path, _ in self._files)

    def describe(self, column: str) -> ColumnDescription:
        """Return the description of a column; see `TableReader.describe`."""
        first = ColumnDescription(kind="text")
        for path, label in self._files:
            schema = open_parquet(path, label).schema_arrow
            kind = describe_field(label, find_column(label, schema, column))
            if kind.kind == "text":
                continue
            if first.kind == "text":
                first = kind
            if kind != first:
                raise mismatch_error(
                    label,
                    f"{first.kind} {first.dtype}{list(first.shape)}",
                    f"{kind.kind} {kind.dtype}",
                    "as in the first file",
                )
        return first

    def batches(
        self, column_types: Mapping[str, pa.DataType | None], limit: int
    ) -> Iterator[RowBatch]:
        """Yield batches of rows; see `TableReader.batches`."""
        for path, label in self._files:
            file = open_parquet(path, label)
            for column in column_types:
                find_column(label, file.schema_arrow, column)
            total, size, row = max(file.metadata.num_rows, 1), path.stat().st_size, 0
            for batch in read_batches(file, label, list(column_types), limit):
                next_row = row + batch.num_rows
                yield RowBatch(
                    file=label,
                    first_row=row,
                    size=batch.num_rows,
                    rows=batch.num_rows,
                    columns={name: batch.column(name) for name in column_types},
                    nbytes=size * next_row // total - size * row // total,
                )
                row = next_row


def read_batches(
    file: parquet.ParquetFile, label: str, columns: list[str], limit: int
) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most ``limit`` rows; raise InvalidRequest if a page is unreadable."""
    try:
        for batch in file.iter_batches(batch_size=limit, columns=columns, use_threads=False):
            if batch.num_rows:
                yield batch
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidRequest(f"{label}: expected a complete file ({error})") from error
