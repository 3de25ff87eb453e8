"""Columns that the names of folders hold, as Hive and Spark write them: ``dt=2024-01-01/``.

A reader of files adds them where a description names them. All rows of a file have one value.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path, PurePath
from urllib.parse import unquote

import pyarrow as pa

from asterism import arrow_types
from asterism.formats.file_patterns import Files
from asterism.formats.table_reader import (
    ColumnDescription,
    RowBatch,
    TableReader,
    missing_column_error,
)
from asterism_proto.errors import InvalidRequest

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""Value that stands for null in the name of a folder."""
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

PartitionValues = Mapping[str, str | None]
"""Values of one file by column; None is null."""


def partition_values(label: str, nulls: Collection[str] = ()) -> PartitionValues:
    """Return the values in the names of a file's folders.

    Parameters
    ----------
    label : str
        Name of the file, from the folder of its description on.
    nulls : collection of str
        Texts that stand for null, besides Hive's.

    Raises
    ------
    InvalidRequest
        Two folders have the same column.
    """
    values: dict[str, str | None] = {}
    for folder in PurePath(label).parts[:-1]:
        name, equals, text = map(unquote, folder.partition("="))
        if not name or not equals:
            continue
        if name in values:
            raise InvalidRequest(
                f"{label}: expected one folder for the column {name!r}, it has two; rename one"
            )
        values[name] = None if text == _NULL or text in nulls else text
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartitionedFile:
    """File in folders that hold columns."""

    label: str
    reader: TableReader
    names: Collection[str]
    """Columns in the file itself."""
    values: PartitionValues


class PartitionedTable:
    """Files of one format, with the columns in the names of their folders.

    Integers and, unless ``dates`` is False, dates are columns of these types if all folders of the
    column have such values; others are text. A column that is read as text keeps the text of the
    folders, such as ``01``.

    Parameters
    ----------
    files : sequence of (Path, str)
        Files, and their names in messages.
    open_files : callable
        Returns the reader of some files.
    names_of : callable
        Returns the names of the columns in a file.
    dates : bool
        True to read dates as dates.
    nulls : collection of str
        Texts that stand for null.
    """

    def __init__(
        self,
        files: Files,
        open_files: Callable[[Files], TableReader],
        names_of: Callable[[Path, str], Sequence[str]],
        *,
        dates: bool,
        nulls: Collection[str] = (),
    ) -> None:
        self._files = [
            _PartitionedFile(
                label=label,
                reader=open_files(((path, label),)),
                names=names_of(path, label),
                values=partition_values(label, nulls),
            )
            for path, label in files
        ]
        self._together, self._dates = open_files(files), dates
        self._columns = {name for file in self._files for name in file.values}

    @property
    def rows(self) -> int | None:
        """Total number of rows; see `TableReader.rows`."""
        return self._together.rows

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""
        return self._together.nbytes

    def describe(self, column: str) -> ColumnDescription:
        """Return the description of a column; see `TableReader.describe`."""
        if column not in self._columns:
            return self._together.describe(column)
        for file in self._files:
            if column not in file.values:
                raise missing_column_error(file.label, column, [*file.values, *file.names])
        kind = self._arrow_type(column)
        if pa.types.is_null(kind):
            return ColumnDescription(kind="text")
        feature, dtype, shape = arrow_types.describe_type(kind)
        return ColumnDescription(kind=feature, dtype=dtype, shape=shape)

    def batches(
        self, column_types: Mapping[str, pa.DataType | None], limit: int
    ) -> Iterator[RowBatch]:
        """Yield batches of rows; see `TableReader.batches`."""
        for file in self._files:
            folder_types = {
                name: self._requested_type(name, kind)
                for name, kind in column_types.items()
                if name in file.values
            }
            # Columns that are in the file too are compared as text.
            file_types = {
                name: pa.string() if name in folder_types else kind
                for name, kind in column_types.items()
                if name not in folder_types or name in file.names
            }
            if not file_types:  # the rows must be counted
                file_types = {next(iter(file.names), ""): pa.string()}
            for batch in file.reader.batches(file_types, limit):
                yield _with_columns(batch, file, folder_types)

    def _arrow_type(self, column: str) -> pa.DataType:
        """Return the type of a column by the values of all files."""
        texts = {file.values.get(column) for file in self._files} - {None}
        if not texts:
            return pa.null()
        if all(_INTEGER.fullmatch(text or "") for text in texts):
            return pa.int64()
        return pa.date32() if self._dates and all(map(_is_date, texts)) else pa.string()

    def _requested_type(self, column: str, kind: pa.DataType | None) -> pa.DataType:
        if kind is not None and arrow_types.is_text(kind):
            return pa.string()
        return self._arrow_type(column)


def _is_date(text: str | None) -> bool:
    if text is None or not _DATE.fullmatch(text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _with_columns(
    batch: RowBatch, file: _PartitionedFile, folder_types: Mapping[str, pa.DataType]
) -> RowBatch:
    """Return a batch with the columns of folders; those of the file must agree."""
    columns = dict(batch.columns)
    for name, kind in folder_types.items():
        value = file.values[name]
        if name in columns:
            _check_values(batch, file.label, name, value)
        if batch.null_texts:  # the batch holds raw text
            kind = pa.binary()
        columns[name] = pa.repeat(_scalar(value, kind), batch.rows)
    retry = batch.retry
    return replace(
        batch,
        columns=columns,
        retry=None if retry is None else lambda: _with_columns(retry(), file, folder_types),
    )


def _scalar(value: str | None, kind: pa.DataType) -> pa.Scalar:
    if value is None or pa.types.is_null(kind):
        return pa.scalar(None, kind)
    return pa.scalar(value, pa.string()).cast(kind)


def _check_values(batch: RowBatch, label: str, name: str, expected: str | None) -> None:
    """Raise InvalidRequest if a column of a file has other values than its folder."""
    column = batch.column(name)
    if not isinstance(column, pa.Array):
        column = pa.array(column)
    encoded = arrow_types.plain_array(column).dictionary_encode(null_encoding="encode")
    for code, value in enumerate(encoded.dictionary.to_pylist()):
        if not _is_same(value, expected):
            row = encoded.indices.to_pylist().index(code)
            found = value.decode(errors="replace") if isinstance(value, bytes) else value
            raise InvalidRequest(
                f"{label}: row {batch.row_number(row)}: column {name!r}: expected "
                f"{'null' if expected is None else expected}, as in the name of its folder, found "
                f"{'null' if found is None else found}; repair the file, or rename the folder"
            )


def _is_same(value: object, expected: str | None) -> bool:
    """Return True if a value is that of a folder's name: the same text, number or date."""
    if value is None or expected is None:
        return value is None and expected is None
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    if text == expected or (isinstance(value, bool) and text.lower() == expected.lower()):
        return True
    try:
        return Decimal(text) == Decimal(expected)
    except InvalidOperation:
        return False
