"""CSV in blocks of bytes that are cut at row ends.

The fast path is a typed parse of a block. A block in which that fails is parsed again as text, so that the bad rows
can be told from the good ones.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from asterism.formats.chunks import BadRow, Ids
from asterism.formats.columns import Column
from asterism.formats.tables import Batch, Described, missing_column, spans
from asterism_proto.errors import InvalidRequest

BLOCK_BYTES = 8 << 20
LONGEST_ROW = 64 << 20
UNIT_SEPARATOR = "\x1f"
"""Stands in for delimiters of several bytes, which the parser does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """How text is cut into fields."""

    delimiter: str = ","
    header: bool = True
    """Whether the first line holds names."""
    columns: tuple[str, ...] = ()
    """Names of the columns; they win over a header's."""
    quote: str = '"'
    """Empty: quotes are characters like any other."""
    nulls: tuple[str, ...] = ("",)
    encoding: str = "utf-8"
    multiline: bool = False
    """Whether quoted fields may contain line ends."""

    def __post_init__(self) -> None:
        if not self.delimiter or "\n" in self.delimiter or self.delimiter == self.quote:
            raise InvalidRequest(f"delimiter {self.delimiter!r}: expected one or more characters, no line end, not the quote")
        if len(self.quote) > 1 or not self.quote.isascii():
            raise InvalidRequest(f"quote {self.quote!r}: expected one ASCII character, or an empty string for none")
        try:
            if "\n".encode(self.encoding) != b"\n" or ",".encode(self.encoding) != b",":
                raise InvalidRequest(f"encoding {self.encoding!r}: expected one in which a line end is the byte 10, such as utf-8 or latin-1")
        except LookupError as error:
            raise InvalidRequest(f"encoding {self.encoding!r}: there is no such encoding") from error
        if not self.header and not self.columns:
            raise InvalidRequest("a CSV file without a header needs `columns`, the names of its columns")


class CsvTable:
    """CSV files with the same columns.

    Parameters
    ----------
    files : sequence of (Path, str)
        The files, and what they are called in messages.
    options : CsvOptions
        How they are cut into fields.
    block_bytes : int
        Bytes that are parsed at once.
    """

    def __init__(self, files: Sequence[tuple[Path, str]], options: CsvOptions, *, block_bytes: int = BLOCK_BYTES) -> None:
        self._files = files
        self._options = options
        self._block_bytes = block_bytes

    @property
    def rows(self) -> int | None:
        """Not known before the end."""
        return None

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        return sum(path.stat().st_size for path, _ in self._files)

    def describe(self, column: str) -> Described:
        """Text, where every file has the column."""
        for path, label in self._files:
            names = self.names(path, label)
            if column not in names:
                raise missing_column(label, column, names)
        return Described(kind="text")

    def names(self, path: Path, label: str) -> list[str]:
        """The names of a file's columns."""
        if self._options.columns:
            return list(self._options.columns)
        with path.open("rb") as file:
            line = _header_line(file, self._options)
        if not line.strip():
            raise InvalidRequest(f"{label}: expected a header line, found none")
        text = line.decode(self._options.encoding, errors="replace").rstrip("\r\n")
        if len(self._options.delimiter) > 1:
            text = text.replace(self._options.delimiter, UNIT_SEPARATOR)
        delimiter = UNIT_SEPARATOR if len(self._options.delimiter) > 1 else self._options.delimiter
        quotes = self._options.quote
        reader = (
            csv.reader([text], delimiter=delimiter, quotechar=quotes) if quotes else csv.reader([text], delimiter=delimiter, quoting=csv.QUOTE_NONE)
        )
        names = next(reader)
        for name in names:
            if names.count(name) > 1:
                raise InvalidRequest(f"{label}: the header names the column {name!r} twice; give `columns`")
        return names

    def batches(self, wanted: Mapping[str, pa.DataType | None], limit: int) -> Iterator[Batch]:
        """As `Table.batches`."""
        for path, label in self._files:
            names = self.names(path, label)
            for column in wanted:
                if column not in names:
                    raise missing_column(label, column, names)
            for block in self._blocks(path, label, names, wanted):
                yield from block.batches(limit)

    def _blocks(self, path: Path, label: str, names: list[str], wanted: Mapping[str, pa.DataType | None]) -> Iterator[_Block]:
        with path.open("rb") as file:
            line, skipped = 1, 0
            if self._options.header:
                skipped = len(_header_line(file, self._options))
                line = 2
            else:
                _skip_mark(file, self._options)
            rest = b""
            while True:
                read = file.read(self._block_bytes)
                data = rest + read if rest else read
                end = _row_end(data, self._options) if read else len(data)
                if not end and read:
                    if len(data) > LONGEST_ROW:
                        raise InvalidRequest(f"{label}: the row at line {line} is longer than {LONGEST_ROW} bytes; is a quote left open?")
                    rest = data
                    continue
                block, rest = data[:end], data[end:]
                if block:
                    yield _Block(file=label, first_line=line, data=block, names=names, wanted=wanted, options=self._options, before=skipped)
                    line += block.count(b"\n")
                    skipped = 0
                if not read:
                    return


def _skip_mark(file: BinaryIO, options: CsvOptions) -> None:
    """Step over UTF-8's byte order mark."""
    if codecs.lookup(options.encoding).name.startswith("utf-8") and file.read(3) != codecs.BOM_UTF8:
        file.seek(0)


def _header_line(file: BinaryIO, options: CsvOptions) -> bytes:
    _skip_mark(file, options)
    return file.readline()


def _row_end(data: bytes, options: CsvOptions) -> int:
    """How many bytes of ``data`` are whole rows."""
    if not options.multiline or not options.quote or options.quote.encode() not in data:
        return data.rfind(b"\n") + 1
    ends = _row_ends(data, options)
    return int(ends[-1]) + 1 if len(ends) else 0


def _row_ends(data: bytes, options: CsvOptions) -> Ids:
    """Where rows end: at line ends, except those between quotes."""
    array = np.frombuffer(data, np.uint8)
    line_ends: Ids = np.flatnonzero(array == 10)
    if not options.multiline or not options.quote:
        return line_ends
    quotes = np.flatnonzero(array == ord(options.quote))
    outside: Ids = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
    return outside


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parsed:
    columns: Mapping[str, Column]
    rows: int
    null: tuple[str, ...]
    bad_ordinals: list[int]
    bad_texts: list[tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Whole rows of one file."""

    file: str
    first_line: int
    data: bytes
    names: list[str]
    wanted: Mapping[str, pa.DataType | None]
    options: CsvOptions
    before: int
    """Bytes of the file before the block that no other block stands for."""

    def batches(self, limit: int) -> Iterator[Batch]:
        """The rows, typed where that is possible."""
        try:
            parsed = self._parse(typed=True)
        except pa.ArrowInvalid:
            yield from self._cut(self._parse(typed=False), limit)
            return
        text: list[list[Batch]] = []

        def again(at: int) -> Batch:
            if not text:
                text.append(list(self._cut(self._parse(typed=False), limit)))
            return text[0][at]

        for at, batch in enumerate(self._cut(parsed, limit)):
            yield replace(batch, retry=lambda at=at: again(at))  # type: ignore[misc]  # mypy does not type a lambda's default

    def _parse(self, *, typed: bool) -> _Parsed:
        data, delimiter = self._prepared()
        bad: list[tuple[int, int, str]] = []

        def skip(row: arrow_csv.InvalidRow) -> str:
            bad.append((row.number - 1, row.actual_columns, row.text))
            return "skip"

        # Text keeps its markers, so that a rejected value is shown as it stands in the file.
        types = {name: (kind or pa.string()) if typed else pa.binary() for name, kind in self.wanted.items()}
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data),
                read_options=arrow_csv.ReadOptions(use_threads=False, column_names=self.names, block_size=max(len(data) + 1, 64)),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, quote_char=self.options.quote or False, newlines_in_values=self.options.multiline, invalid_row_handler=skip
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types, include_columns=list(types), null_values=list(self.options.nulls), strings_can_be_null=typed
                ),
            )
        except pa.ArrowInvalid as error:
            if typed:
                raise
            raise InvalidRequest(f"{self.file}: the rows from line {self.first_line} on are no CSV ({error})") from error
        columns = {name: _one(table.column(name), types[name]) for name in types}
        return _Parsed(
            columns=columns,
            rows=table.num_rows,
            null=() if typed else self.options.nulls,
            bad_ordinals=[ordinal for ordinal, _, _ in bad],
            bad_texts=[(found, text) for _, found, text in bad],
        )

    def _prepared(self) -> tuple[bytes, str]:
        """The bytes as UTF-8 with a delimiter of one byte."""
        data, delimiter = self.data, self.options.delimiter
        if codecs.lookup(self.options.encoding).name not in ("utf-8", "utf-8-sig", "ascii"):
            try:
                data = data.decode(self.options.encoding).encode()
            except UnicodeDecodeError as error:
                raise InvalidRequest(f"{self.file}: after line {self.first_line}: {error}; give its `encoding`") from error
        if len(delimiter.encode()) == 1:
            return data, delimiter
        if UNIT_SEPARATOR.encode() in data:
            raise InvalidRequest(f"{self.file}: a delimiter of several bytes ({delimiter!r}) needs text without the byte 0x1f")
        return data.replace(delimiter.encode(), UNIT_SEPARATOR.encode()), UNIT_SEPARATOR

    def _cut(self, parsed: _Parsed, limit: int) -> Iterator[Batch]:
        size = parsed.rows + len(parsed.bad_ordinals)
        lines = self._lines(size)
        kept = np.delete(np.arange(size), parsed.bad_ordinals) if parsed.bad_ordinals else None
        raw = self.before + len(self.data)
        if not size:
            return
        for start, stop in spans(size, limit):
            low, high = (start, stop) if kept is None else (int(x) for x in np.searchsorted(kept, (start, stop)))
            yield Batch(
                file=self.file,
                first_row=self.first_line + start,
                size=stop - start,
                rows=high - low,
                columns={name: column.slice(low, high - low) for name, column in parsed.columns.items()},
                null=parsed.null,
                ordinals=None if kept is None else kept[low:high] - start,
                lines=None if lines is None else lines[start:stop],
                bad=tuple(
                    self._misshapen(found, text, self.first_line + ordinal if lines is None else int(lines[ordinal]))
                    for ordinal, (found, text) in zip(parsed.bad_ordinals, parsed.bad_texts, strict=True)
                    if start <= ordinal < stop
                ),
                nbytes=raw * stop // size - raw * start // size,
            )

    def _misshapen(self, found: int, text: str, line: int) -> BadRow:
        shown = text.replace(UNIT_SEPARATOR, self.options.delimiter)
        column = self.names[found] if found < len(self.names) else ""
        return BadRow(file=self.file, row=line, column=column, value=shown, reason=f"expected {len(self.names)} columns, found {found}")

    def _lines(self, size: int) -> Ids | None:
        """The line on which each row begins; None where every line is a row."""
        if self.data.count(b"\n") + (not self.data.endswith(b"\n")) == size:
            return None
        ends = _row_ends(self.data, self.options)
        if not self.data.endswith(b"\n"):
            ends = np.append(ends, len(self.data))
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
        array = np.frombuffer(self.data, np.uint8)
        lengths = ends - starts
        empty = (lengths == 0) | ((lengths == 1) & (array[np.minimum(starts, len(array) - 1)] == 13))
        lines = self.first_line + np.searchsorted(np.flatnonzero(array == 10), starts[~empty])
        # Where quotes are used in a way that only the parser understands, lines are as near as can be told.
        return lines if len(lines) == size else np.linspace(lines[0], lines[-1], size).astype(np.int64) if len(lines) else None


def _one(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)
