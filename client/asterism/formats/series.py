"""One dense column over any number of files, read from the front as many rows at a time as are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from asterism.formats import sieve
from asterism.formats.chunks import Array, BadRow, FeatureValue, Ids, refuse
from asterism.formats.csvfiles import CsvOptions, CsvTable
from asterism.formats.npyfiles import NpyFile, NpyTable, described
from asterism.formats.parquetfiles import ParquetTable, open_parquet, read_batches
from asterism.formats.parquetfiles import described as described_parquet
from asterism.formats.spec import FeatureSpec
from asterism.formats.tables import Batch, Described, Table
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Feature

_PEEKED = 1 << 20
"""Bytes of a CSV file that say whether its values are whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Consecutive rows of a column: ``[n, *shape]``, and which of them could not be read (they hold zeros)."""

    values: Array
    bad_at: Ids
    bad: tuple[BadRow, ...]
    nbytes: int = 0


class Series:
    """A feature's files, one after the other.

    Parameters
    ----------
    files : sequence of (Path, str)
        The files in order, and what they are called in messages.
    format : mapping
        ``{"name": "numpy" | "parquet" | "csv", "delimiter": ...}``, as in metadata.json.
    """

    def __init__(self, files: Sequence[tuple[Path, str]], format: Mapping[str, Any]) -> None:  # the file format's own word
        self.files = files
        self._name = format.get("name")
        self._delimiter = str(format.get("delimiter", ","))
        if self._name not in ("numpy", "parquet", "csv"):
            raise InvalidRequest(f"{files[0][1]}: format {self._name!r}: expected numpy, parquet or csv")
        self._tables: list[Table] = []
        self._columns: list[tuple[str, ...]] = []
        kinds = [self._open(path, label) for path, label in files]
        for (_, label), kind in zip(files, kinds, strict=True):
            if kind != kinds[0]:
                raise refuse(label, _shown(kinds[0]), _shown(kind), f"a row, as in {files[0][1]}")
        self.dtype = np.dtype(kinds[0].dtype)
        self.shape = kinds[0].shape

    def _open(self, path: Path, label: str) -> Described:
        if self._name == "numpy":
            file = NpyFile.open(path, label)
            self._tables.append(NpyTable({"value": [file]}))
            self._columns.append(("value",))
            return described(file)
        if self._name == "parquet":
            self._tables.append(ParquetTable([(path, label)]))
            names, kind = _parquet_kind(path, label)
        else:
            options, kind = _csv_kind(path, label, self._delimiter)
            self._tables.append(CsvTable([(path, label)], options))
            names = options.columns
        self._columns.append(names)
        return kind

    @property
    def rows(self) -> int | None:
        """Rows in all; None where only reading tells."""
        counts = [table.rows for table in self._tables]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        return sum(table.nbytes for table in self._tables)

    def pieces(self, limit: int) -> Iterator[Piece]:
        """The column from its beginning."""
        for table, names in zip(self._tables, self._columns, strict=True):
            width = int(np.prod(self.shape, dtype=object))
            lists = len(names) == 1 and width > 1 and self._name == "parquet"
            feature = Feature(name="value", dtype=self.dtype.name, shape=(width,) if lists or len(names) > 1 else self.shape)
            spec = FeatureSpec(feature=feature, columns=names)
            wanted = sieve.wanted([], None, (spec,))
            for batch in table.batches(wanted, limit):
                read, found = sieve.sieved(batch, lambda batch, sieved, spec=spec: sieve.read_features(sieved, (spec,)))  # type: ignore[misc]  # mypy does not type a lambda's default
                yield self._piece(found.batch, read["value"], found)

    def _piece(self, batch: Batch, values: FeatureValue, found: sieve.Sieve) -> Piece:
        assert isinstance(values, np.ndarray)
        values = values.reshape(batch.rows, *self.shape)
        if batch.ordinals is not None:
            spread = np.zeros((batch.size, *self.shape), self.dtype)
            spread[batch.ordinals] = values
            values = spread
        return Piece(values=values, bad_at=found.places(), bad=found.rows(), nbytes=batch.nbytes)


def _shown(kind: Described) -> str:
    return f"{kind.dtype}{list(kind.shape)}"


def _parquet_kind(path: Path, label: str) -> tuple[tuple[str, ...], Described]:
    """The columns of a file and what they make: DGL writes the shape into the file's metadata, else columns are the second axis."""
    file = open_parquet(path, label)
    schema, names = file.schema_arrow, tuple(file.schema_arrow.names)
    if not names:
        raise InvalidRequest(f"{label}: there is no column in it")
    kinds = [described_parquet(label, schema.field(name)) for name in names]
    if any(kind.kind == "bytes" for kind in kinds) or (len(kinds) > 1 and any(kind.kind != "dense" or kind.shape for kind in kinds)):
        raise InvalidRequest(f"{label}: columns {', '.join(names)}: a feature is columns of numbers, or one column of lists of numbers")
    dtype = np.result_type(*(np.dtype(kind.dtype) for kind in kinds)).name
    shape: tuple[int, ...] = (len(names),) if len(names) > 1 else kinds[0].shape
    if kinds[0].kind == "ragged":
        first = next(read_batches(file, label, list(names), 1), None)
        shape = (len(first.column(0)[0]) if first is not None and first.column(0)[0].is_valid else 0,)
        dtype = np.dtype(schema.field(names[0]).type.value_type.to_pandas_dtype()).name
    said = [int(word) for word in re.findall(rb"\d+", (schema.metadata or {}).get(b"shape", b""))]
    if said:
        if np.prod(said[1:], dtype=object) != np.prod(shape, dtype=object):
            raise refuse(label, f"{said[1:]} a row (its metadata)", list(shape), "")
        shape = tuple(said[1:])
    return names, Described(kind="dense", dtype=dtype, shape=shape)


def _csv_kind(path: Path, label: str, delimiter: str) -> tuple[CsvOptions, Described]:
    """The options to read numbers without a header; whole where the first block holds only whole numbers, else float32."""
    try:
        with path.open("rb") as file:
            line = file.readline()
            block = line + file.read(_PEEKED)
    except FileNotFoundError as error:
        raise InvalidRequest(f"{label}: there is no such file") from error
    if len(block) >= _PEEKED:
        block = block[: block.rfind(b"\n") + 1]
    width = line.rstrip(b"\r\n").count(delimiter.encode()) + 1
    names = tuple(f"column {i}" for i in range(width))
    options = CsvOptions(delimiter=delimiter, header=False, columns=names)
    text = block.replace(delimiter.encode(), b",") if len(delimiter.encode()) > 1 else block
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=arrow_csv.ReadOptions(use_threads=False, column_names=list(names)),
            parse_options=arrow_csv.ParseOptions(delimiter="," if len(delimiter.encode()) > 1 else delimiter),
        )
        whole = all(pa.types.is_integer(field.type) for field in table.schema)
    except pa.ArrowInvalid:
        whole = False
    return options, Described(kind="dense", dtype="int64" if whole else "float32", shape=(width,) if width > 1 else ())


class Reader:
    """A column read from the front.

    Parameters
    ----------
    series : Series
        The column.
    rows : int or None
        How many rows it must have in all.
    limit : int
        Rows that are read at once.
    """

    def __init__(self, series: Series, limit: int) -> None:
        self._series = series
        self._pieces = series.pieces(limit)
        self._held: list[Piece] = []
        self._count = 0
        self._taken = 0

    def take(self, rows: int) -> Piece:
        """The next rows; InvalidRequest where there are fewer."""
        while self._count < rows:
            piece = next(self._pieces, None)
            if piece is None:
                raise refuse(
                    self._series.files[-1][1], f"{self._taken + rows} or more", self._taken + self._count, "rows in all files of the feature"
                )
            self._held.append(piece)
            self._count += len(piece.values)
        values: list[Array] = []
        at: list[Ids] = []
        bad: list[BadRow] = []
        got = nbytes = 0
        while got < rows:
            piece = self._held.pop(0)
            use = min(rows - got, len(piece.values))
            if use < len(piece.values):
                piece, rest = _halves(piece, use)
                self._held.insert(0, rest)
            values.append(piece.values)
            at.append(piece.bad_at + got)
            bad.extend(piece.bad)
            nbytes += piece.nbytes
            got += use
        self._count -= rows
        self._taken += rows
        joined = values[0] if len(values) == 1 else np.concatenate([np.zeros((0, *self._series.shape), self._series.dtype), *values])
        return Piece(values=joined, bad_at=np.concatenate([np.zeros(0, np.int64), *at]), bad=tuple(bad), nbytes=nbytes)

    def finish(self) -> None:
        """InvalidRequest where rows are left over."""
        left = self._count + sum(len(piece.values) for piece in self._pieces)
        if left:
            raise refuse(self._series.files[-1][1], self._taken, self._taken + left, "rows in all files of the feature")


def _halves(piece: Piece, rows: int) -> tuple[Piece, Piece]:
    cut = int(np.searchsorted(piece.bad_at, rows))
    nbytes = piece.nbytes * rows // len(piece.values)
    return (
        Piece(values=piece.values[:rows], bad_at=piece.bad_at[:cut], bad=piece.bad[:cut], nbytes=nbytes),
        Piece(values=piece.values[rows:], bad_at=piece.bad_at[cut:] - rows, bad=piece.bad[cut:], nbytes=piece.nbytes - nbytes),
    )
