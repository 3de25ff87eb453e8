"""Dense column that spans several files, read sequentially."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from asterism.formats import row_validation
from asterism.formats.chunks import Array, BadRow, FeatureValue, Ids, mismatch_error
from asterism.formats.csv_files import CsvOptions, CsvTable
from asterism.formats.npy_files import NpyFile, NpyTable, describe_file
from asterism.formats.parquet_files import ParquetTable, open_parquet, read_batches
from asterism.formats.parquet_files import describe_field as described_parquet
from asterism.formats.schema_file import FeatureSpec
from asterism.formats.table_reader import ColumnDescription, RowBatch, TableReader
from asterism.formats.text_files import TextFile
from asterism_model.schema import Feature
from asterism_proto.errors import InvalidRequest

_PROBE_BYTES = 1 << 20
"""Bytes of a CSV file that determine whether its values are integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """File of a piece's values from some position on, up to the next origin."""

    start: int
    """Position of the first value within the piece; negative if it lies before the piece."""
    file: str
    first_row: int
    """Row number of the value at ``start``."""
    lines: Ids | None = None
    """Row numbers of the values from ``start`` on; None if they are consecutive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPiece:
    """Consecutive rows of a column, with the positions of unreadable rows.

    ``values`` has shape (n, *shape) and zeros in unreadable rows.
    """

    values: Array
    bad_positions: Ids
    bad: tuple[BadRow, ...]
    origins: tuple[Origin, ...]
    """Files of the values, by ascending position."""
    nbytes: int = 0

    def bad_row(self, position: int, column: str, reason: Callable[[str], str]) -> BadRow:
        """Return the record of a value that is unusable, with the file that holds it."""
        origin = next(o for o in reversed(self.origins) if o.start <= position)
        offset = position - origin.start
        value = str(self.values[position].reshape(-1)[0])
        return BadRow(
            file=origin.file,
            row=origin.first_row + offset if origin.lines is None else int(origin.lines[offset]),
            column=column,
            value=value,
            reason=reason(value),
        )


class ColumnFiles:
    """Files of one feature, in order.

    Parameters
    ----------
    files : sequence of (Path, str)
        Files in order, and their names in messages.
    format : mapping
        ``{"name": "numpy" | "parquet" | "csv", "delimiter": ...}``, as in metadata.json.
    """

    def __init__(
        self, files: Sequence[tuple[Path, str]], format: Mapping[str, Any]
    ) -> None:  # the name used in metadata.json
        self.files = files
        self._name = format.get("name")
        self._delimiter = str(format.get("delimiter", ","))
        if self._name not in ("numpy", "parquet", "csv"):
            raise InvalidRequest(
                f"{files[0][1]}: format={self._name!r}: expected numpy, parquet or csv"
            )
        self._tables: list[TableReader] = []
        self._columns: list[tuple[str, ...]] = []
        kinds = [self._open(path, label) for path, label in files]
        for (_, label), kind in zip(files, kinds, strict=True):
            if kind != kinds[0]:
                raise mismatch_error(
                    label,
                    _format_description(kinds[0]),
                    _format_description(kind),
                    f"a row, as in {files[0][1]}",
                )
        self.dtype = np.dtype(kinds[0].dtype)
        self.shape = kinds[0].shape

    def _open(self, path: Path, label: str) -> ColumnDescription:
        if self._name == "numpy":
            file = NpyFile.open(path, label)
            self._tables.append(NpyTable({"value": [file]}))
            self._columns.append(("value",))
            return describe_file(file)
        if self._name == "parquet":
            self._tables.append(ParquetTable([(path, label)]))
            names, kind = _describe_parquet(path, label)
        else:
            options, kind = _describe_csv(path, label, self._delimiter)
            self._tables.append(CsvTable([(path, label)], options))
            names = options.columns
        self._columns.append(names)
        return kind

    @property
    def rows(self) -> int | None:
        """Total number of rows, or None if only reading reveals it."""
        counts = [table.rows for table in self._tables]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""
        return sum(table.nbytes for table in self._tables)

    def pieces(self, limit: int) -> Iterator[ColumnPiece]:
        """Yield the column from the beginning, in pieces of at most ``limit`` rows."""
        for table, names in zip(self._tables, self._columns, strict=True):
            width = int(np.prod(self.shape, dtype=object))
            lists = len(names) == 1 and width > 1 and self._name == "parquet"
            feature = Feature(
                name="value",
                dtype=self.dtype.name,
                shape=(width,) if lists or len(names) > 1 else self.shape,
            )
            spec = FeatureSpec(feature=feature, columns=names)
            column_types = row_validation.columns_to_read([], None, (spec,))
            for batch in table.batches(column_types, limit):
                features, collector = row_validation.read_batch(
                    batch,
                    lambda batch, sieved, spec=spec: (  # type: ignore[misc]  # a default
                        row_validation.read_features(sieved, (spec,))
                    ),
                )
                yield self._piece(collector.batch, features["value"], collector)

    def _piece(
        self, batch: RowBatch, values: FeatureValue, collector: row_validation.BadRowCollector
    ) -> ColumnPiece:
        assert isinstance(values, np.ndarray)
        values = values.reshape(batch.rows, *self.shape)
        if batch.ordinals is not None:
            all_values = np.zeros((batch.size, *self.shape), self.dtype)
            all_values[batch.ordinals] = values
            values = all_values
        return ColumnPiece(
            values=values,
            bad_positions=collector.bad_positions(),
            bad=collector.bad_rows(),
            origins=(
                Origin(start=0, file=batch.file, first_row=batch.first_row, lines=batch.lines),
            ),
            nbytes=batch.nbytes,
        )


def _format_description(kind: ColumnDescription) -> str:
    return f"{kind.dtype}{list(kind.shape)}"


def _describe_parquet(path: Path, label: str) -> tuple[tuple[str, ...], ColumnDescription]:
    """Return the columns of a file and their description as one feature.

    DGL stores the shape in the file's metadata. Without it, several columns form the second axis.
    """
    file = open_parquet(path, label)
    schema, names = file.schema_arrow, tuple(file.schema_arrow.names)
    if not names:
        raise InvalidRequest(f"{label}: expected at least one column")
    kinds = [described_parquet(label, field) for field in schema]
    if any(kind.kind in ("bytes", "text") for kind in kinds) or (
        len(kinds) > 1 and any(kind.kind != "dense" or kind.shape for kind in kinds)
    ):
        raise InvalidRequest(
            f"{label}: columns {', '.join(names)}: expected columns of numbers, or one column of "
            f"lists "
            "of numbers"
        )
    dtype = np.result_type(*(np.dtype(kind.dtype) for kind in kinds)).name
    shape: tuple[int, ...] = (len(names),) if len(names) > 1 else kinds[0].shape
    if kinds[0].kind == "ragged":
        first = next(read_batches(file, label, list(names), 1), None)
        shape = (
            len(first.column(0)[0]) if first is not None and first.column(0)[0].is_valid else 0,
        )
        dtype = np.dtype(schema.field(names[0]).type.value_type.to_pandas_dtype()).name
    declared_shape = [
        int(digits) for digits in re.findall(rb"\d+", (schema.metadata or {}).get(b"shape", b""))
    ]
    if declared_shape:
        if np.prod(declared_shape[1:], dtype=object) != np.prod(shape, dtype=object):
            raise mismatch_error(
                label, f"{declared_shape[1:]} a row (its metadata)", list(shape), ""
            )
        shape = tuple(declared_shape[1:])
    return names, ColumnDescription(kind="dense", dtype=dtype, shape=shape)


def _describe_csv(path: Path, label: str, delimiter: str) -> tuple[CsvOptions, ColumnDescription]:
    """Return options to read numbers without a header, and the column's description.

    The dtype is int64 if the first block holds only integers, otherwise float32.
    """
    with TextFile(path, label) as file:
        line = file.read_line()
        block = line + file.read(_PROBE_BYTES)
    if len(block) >= _PROBE_BYTES:
        block = block[: block.rfind(b"\n") + 1]
    width = line.rstrip(b"\r\n").count(delimiter.encode()) + 1
    names = tuple(f"column {i}" for i in range(width))
    options = CsvOptions(delimiter=delimiter, header=False, columns=names)
    text = block.replace(delimiter.encode(), b",") if len(delimiter.encode()) > 1 else block
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=arrow_csv.ReadOptions(use_threads=False, column_names=list(names)),
            parse_options=arrow_csv.ParseOptions(
                delimiter="," if len(delimiter.encode()) > 1 else delimiter
            ),
        )
        is_integer = all(pa.types.is_integer(field.type) for field in table.schema)
    except pa.ArrowInvalid:
        is_integer = False
    return options, ColumnDescription(
        kind="dense",
        dtype="int64" if is_integer else "float32",
        shape=(width,) if width > 1 else (),
    )


class ColumnReader:
    """Sequential reader of a column.

    Parameters
    ----------
    series : ColumnFiles
        Column to read.
    limit : int
        Largest number of rows to read at once.
    """

    def __init__(self, series: ColumnFiles, limit: int) -> None:
        self._series = series
        self._pieces = series.pieces(limit)
        self._buffered: list[ColumnPiece] = []
        self._count = 0
        self._rows_read = 0

    def read(self, rows: int) -> ColumnPiece:
        """Return the next rows; raise InvalidRequest if there are fewer."""
        while self._count < rows:
            piece = next(self._pieces, None)
            if piece is None:
                raise mismatch_error(
                    self._series.files[-1][1],
                    f"{self._rows_read + rows} or more",
                    self._rows_read + self._count,
                    "rows in all files of the feature",
                )
            self._buffered.append(piece)
            self._count += len(piece.values)
        values: list[Array] = []
        bad_positions: list[Ids] = []
        bad: list[BadRow] = []
        origins: list[Origin] = []
        rows_read = nbytes = 0
        while rows_read < rows:
            piece = self._buffered.pop(0)
            row_count = min(rows - rows_read, len(piece.values))
            if row_count < len(piece.values):
                piece, remainder = _split_piece(piece, row_count)
                self._buffered.insert(0, remainder)
            values.append(piece.values)
            bad_positions.append(piece.bad_positions + rows_read)
            bad.extend(piece.bad)
            origins.extend(_shifted(piece.origins, rows_read))
            nbytes += piece.nbytes
            rows_read += row_count
        self._count -= rows
        self._rows_read += rows
        joined = (
            values[0]
            if len(values) == 1
            else np.concatenate([np.zeros((0, *self._series.shape), self._series.dtype), *values])
        )
        return ColumnPiece(
            values=joined,
            bad_positions=np.concatenate([np.zeros(0, np.int64), *bad_positions]),
            bad=tuple(bad),
            origins=tuple(origins),
            nbytes=nbytes,
        )

    def finish(self) -> None:
        """Raise InvalidRequest if rows are left over."""
        remaining = self._count + sum(len(piece.values) for piece in self._pieces)
        if remaining:
            raise mismatch_error(
                self._series.files[-1][1],
                self._rows_read,
                self._rows_read + remaining,
                "rows in all files of the feature",
            )


def _split_piece(piece: ColumnPiece, rows: int) -> tuple[ColumnPiece, ColumnPiece]:
    split_at = int(np.searchsorted(piece.bad_positions, rows))
    nbytes = piece.nbytes * rows // len(piece.values)
    return (
        ColumnPiece(
            values=piece.values[:rows],
            bad_positions=piece.bad_positions[:split_at],
            bad=piece.bad[:split_at],
            origins=piece.origins,
            nbytes=nbytes,
        ),
        ColumnPiece(
            values=piece.values[rows:],
            bad_positions=piece.bad_positions[split_at:] - rows,
            bad=piece.bad[split_at:],
            origins=_shifted(piece.origins, -rows),
            nbytes=piece.nbytes - nbytes,
        ),
    )


def _shifted(origins: tuple[Origin, ...], offset: int) -> tuple[Origin, ...]:
    return tuple(replace(origin, start=origin.start + offset) for origin in origins)
