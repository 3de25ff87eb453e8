"""CSV reader that works on blocks of bytes, each of which ends at the end of a row.

A block is first parsed with the requested types. If that fails, it is parsed again as text, to
separate bad rows from good ones.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from asterism.formats import csv_lines
from asterism.formats.chunks import BadRow, Ids
from asterism.formats.columns import Column
from asterism.formats.tables import ColumnDescription, RowBatch, missing_column_error, spans
from asterism.formats.text_files import input_position, open_text
from asterism_proto.errors import InvalidRequest

BLOCK_BYTES = 8 << 20
MAX_ROW_BYTES = 64 << 20
_USUAL_DELIMITERS = ("\t", ",", ";", "|", " ")
_UTF8 = ("utf-8", "utf-8-sig", "ascii")
UNIT_SEPARATOR = "\x1f"
"""Replacement for multi-byte delimiters, which the parser does not support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """Options for splitting text into fields."""

    delimiter: str = ","
    """Text between two fields, one or more characters."""
    header: bool = True
    """True if the first line holds column names."""
    columns: tuple[str, ...] = ()
    """Column names; they take precedence over a header."""
    quote: str = '"'
    """Quote character; empty if quotes have no special meaning."""
    nulls: tuple[str, ...] = ("",)
    """Texts that represent a null."""
    encoding: str = "utf-8"
    """Encoding of the files; line ends must be the byte 10."""
    multiline: bool = False
    """True if quoted fields may contain line ends."""

    def __post_init__(self) -> None:
        if not self.delimiter or "\n" in self.delimiter or self.delimiter == self.quote:
            raise InvalidRequest(
                f"delimiter={self.delimiter!r}: expected one or more characters, no line "
                "end, not the quote"
            )
        if len(self.quote) > 1 or not self.quote.isascii():
            raise InvalidRequest(
                f"quote={self.quote!r}: expected one ASCII character, or an empty string for none"
            )
        try:
            if "\n".encode(self.encoding) != b"\n" or ",".encode(self.encoding) != b",":
                raise InvalidRequest(
                    f"encoding={self.encoding!r}: expected one in which a line end is the "
                    "byte 10, such as utf-8 or latin-1"
                )
        except LookupError as error:
            raise InvalidRequest(
                f"encoding={self.encoding!r}: expected an encoding of Python, such as utf-8"
            ) from error
        if not self.header and not self.columns:
            raise InvalidRequest(
                "columns: expected the names of the columns, because the CSV file has no header"
            )


class CsvTable:
    """CSV files with the same columns.

    Parameters
    ----------
    files : sequence of (Path, str)
        Files, and their names in messages.
    options : CsvOptions
        Options for splitting lines into fields.
    block_bytes : int, default 8388608
        Bytes to parse at once.
    """

    def __init__(
        self,
        files: Sequence[tuple[Path, str]],
        options: CsvOptions,
        *,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._files = files
        self._options = options
        self._block_bytes = block_bytes

    @property
    def rows(self) -> int | None:
        """None, because the number of rows is unknown before the end."""
        return None

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""
        return sum(path.stat().st_size for path, _ in self._files)

    def describe(self, column: str) -> ColumnDescription:
        """Return the kind "text", after checking that every file has the column."""
        for path, label in self._files:
            names = self.names(path, label)
            line = self._first_line(path, label)
            self._check_delimiter(label, line, names, column)
            if column not in names:
                raise missing_column_error(label, column, names)
        return ColumnDescription(kind="text")

    def _first_line(self, path: Path, label: str) -> str:
        with open_text(path, label) as file:
            line = _header_line(file, self._options)
        return line.decode(self._options.encoding, errors="replace").rstrip("\r\n")

    def _check_delimiter(self, label: str, line: str, names: list[str], column: str) -> None:
        """Raise InvalidRequest if not the delimiter but another one splits the first line.

        It splits a header into names with the column, and a row into as many fields as there are
        columns.
        """
        if self._options.delimiter in line or (len(names) == 1 and column in names):
            return
        for other in _USUAL_DELIMITERS:
            fields = [field.strip(self._options.quote or None) for field in line.split(other)]
            if (
                column in fields
                if self._options.header and not self._options.columns
                else len(fields) == len(names) and (other != " " or "".join(fields).isdigit())
            ):
                shown = "\\t" if other == "\t" else other
                raise InvalidRequest(
                    f"{label}: expected the delimiter {self._options.delimiter!r} in the first "
                    f"line, found {line.count(other)} of {other!r}; set "
                    f'`csv: {{delimiter: "{shown}"}}`'
                )

    def names(self, path: Path, label: str) -> list[str]:
        """Return the column names of a file."""
        if self._options.columns:
            return list(self._options.columns)
        with open_text(path, label) as file:
            line = _header_line(file, self._options)
        if len(line) >= MAX_ROW_BYTES:
            raise InvalidRequest(
                f"{label}: expected a header line of less than {MAX_ROW_BYTES} bytes; name the "
                "`columns` if the file has no header"
            )
        if not line.strip():
            raise InvalidRequest(f"{label}: expected a header line, found none")
        text = line.decode(self._options.encoding, errors="replace").rstrip("\r\n")
        if len(self._options.delimiter) > 1:
            text = text.replace(self._options.delimiter, UNIT_SEPARATOR)
        delimiter = UNIT_SEPARATOR if len(self._options.delimiter) > 1 else self._options.delimiter
        quotes = self._options.quote
        reader = (
            csv.reader([text], delimiter=delimiter, quotechar=quotes)
            if quotes
            else csv.reader([text], delimiter=delimiter, quoting=csv.QUOTE_NONE)
        )
        names = next(reader)
        for name in names:
            if names.count(name) > 1:
                raise InvalidRequest(
                    f"{label}: expected different names in the header, {name!r} is there twice; "
                    f"set `columns`"
                )
        return names

    def batches(
        self, column_types: Mapping[str, pa.DataType | None], limit: int
    ) -> Iterator[RowBatch]:
        """Yield batches of rows; see `TableReader.batches`."""
        for path, label in self._files:
            names = self.names(path, label)
            for column in column_types:
                if column not in names:
                    raise missing_column_error(label, column, names)
            for block in self._blocks(path, label, names, column_types):
                yield from block.batches(limit)

    def _blocks(
        self,
        path: Path,
        label: str,
        names: list[str],
        column_types: Mapping[str, pa.DataType | None],
    ) -> Iterator[_Block]:
        with open_text(path, label) as file:
            consumed = 0
            line, skipped = 1, 0
            if self._options.header:
                skipped = len(_header_line(file, self._options))
                line = 2
            else:
                _skip_byte_order_mark(file, self._options)
            incomplete = b""
            while True:
                new_data = file.read(self._block_bytes)
                position = input_position(file)
                data = incomplete + new_data if incomplete else new_data
                end = _row_end(data, self._options) if new_data else len(data)
                if not end and new_data:
                    if len(data) > MAX_ROW_BYTES:
                        raise InvalidRequest(
                            f"{label}: the row at line {line} is longer than {MAX_ROW_BYTES} "
                            "bytes; close an open quote"
                        )
                    incomplete = data
                    continue
                if (
                    not new_data
                    and self._options.multiline
                    and self._options.quote
                    and data.count(self._options.quote.encode()) % 2
                ):
                    raise InvalidRequest(
                        f"{label}: a quote that is opened at or after line {line} is not "
                        "closed by the file's end"
                    )
                block, incomplete = data[:end], data[end:]
                if block:
                    yield _Block(
                        file=label,
                        first_line=line,
                        data=block,
                        names=names,
                        column_types=column_types,
                        options=self._options,
                        rows_before=skipped,
                        input_bytes=None if position is None else position - consumed,
                    )
                    consumed = position or 0
                    line += block.count(b"\n")
                    skipped = 0
                if not new_data:
                    return


def _skip_byte_order_mark(file: BinaryIO, options: CsvOptions) -> None:
    """Skip a UTF-8 byte order mark."""
    if codecs.lookup(options.encoding).name.startswith("utf-8") and file.read(3) != codecs.BOM_UTF8:
        file.seek(0)


def _header_line(file: BinaryIO, options: CsvOptions) -> bytes:
    _skip_byte_order_mark(file, options)
    return file.readline(MAX_ROW_BYTES)


def _row_end(data: bytes, options: CsvOptions) -> int:
    """Return the number of bytes of ``data`` that form complete rows."""
    if not options.multiline or options.quote.encode() not in data:
        return data.rfind(b"\n") + 1
    ends = csv_lines.row_ends(data[: data.rfind(b"\n") + 1], options.quote)
    return int(ends[-1]) + 1 if len(ends) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParsedBlock:
    """Columns of a block, and the rows with a wrong number of fields."""

    columns: Mapping[str, Column]
    rows: int
    null_texts: tuple[str, ...]
    bad_ordinals: list[int]
    bad_texts: list[tuple[int, str]]

    @property
    def size(self) -> int:
        return self.rows + len(self.bad_ordinals)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Complete rows of one file."""

    file: str
    first_line: int
    data: bytes
    names: list[str]
    column_types: Mapping[str, pa.DataType | None]
    options: CsvOptions
    rows_before: int
    """Bytes of the file before this block that no other block accounts for."""
    input_bytes: int | None = None
    """Bytes of a compressed file that the block accounts for; None for a plain file."""
    text_checked: bool = False
    """True if the parser can report every row that is too short or too long."""
    replaced_rows: Mapping[int, BadRow] = field(default_factory=dict)
    """Bad rows by line number.
    Their lines hold placeholders with a wrong number of columns."""

    def batches(self, limit: int) -> Iterator[RowBatch]:
        """Yield the rows, typed if possible."""
        if not self.text_checked and not self._is_text():
            yield from self._without_misshapen_rows().batches(limit)
            return
        parsed, typed = self._parsed()
        if not self.options.multiline and not self._row_count_agrees(parsed.size):
            yield from self._without_open_quotes().batches(limit)
            return
        if not typed:
            yield from self._row_batches(parsed, limit)
            return
        text: list[list[RowBatch]] = []

        def reread(index: int) -> RowBatch:
            if not text:
                text.append(list(self._row_batches(self._parse(typed=False), limit)))
            return text[0][index]

        for index, batch in enumerate(self._row_batches(parsed, limit)):
            # Mypy does not infer types of a lambda's defaults.
            yield replace(batch, retry=lambda at=index: reread(at))  # type: ignore[misc]

    def _parsed(self) -> tuple[_ParsedBlock, bool]:
        try:
            return self._parse(typed=True), True
        except pa.ArrowInvalid:
            return self._parse(typed=False), False

    def _row_count_agrees(self, size: int) -> bool:
        """Return True if the parser found one row per nonblank line.

        Otherwise a quote was left open.
        """
        return (
            self._lines(size) is None
            or len(csv_lines.row_lines(self.data, csv_lines.line_ends(self.data))) == size
        )

    def _without_open_quotes(self) -> _Block:
        """Replace lines with an open quote.

        The parser would take everything after the quote as one field.
        """
        lines = csv_lines.open_quotes(self.data, self.options.quote).tolist()
        lines = [line for line in lines if self.first_line + line not in self.replaced_rows]
        if not lines:
            raise InvalidRequest(
                f"{self.file}: the rows from line {self.first_line} on cannot be "
                "separated; set `quote: ''` if quotes have no meaning there"
            )
        return self._without(
            lines,
            ["a quote is left open; `multiline: true` allows line ends within quotes"] * len(lines),
        )

    def _is_text(self) -> bool:
        """Return True if the block is valid text.

        The parser passes rejected rows to a callback as text, and invalid text would abort it.
        """
        if self.data.isascii() or codecs.lookup(self.options.encoding).name not in _UTF8:
            return True
        try:
            self.data.decode()
        except UnicodeDecodeError:
            return False
        return True

    def _without_misshapen_rows(self) -> _Block:
        """Replace rows that are too short or too long, found in a copy with valid text."""
        copy = replace(self, data=self.data.decode(errors="replace").encode())
        parsed = copy._parse(typed=False)
        lines = copy._lines(parsed.size)
        if parsed.bad_ordinals and self.options.multiline:
            raise InvalidRequest(
                f"{self.file}: expected text in rows of one length, found bytes that are no text, "
                f"line "
                f"ends within quotes and rows of other lengths after line {self.first_line}"
            )
        bad_lines = [
            ordinal if lines is None else int(lines[ordinal]) - self.first_line
            for ordinal in parsed.bad_ordinals
        ]
        repaired = self._without(
            bad_lines,
            [
                f"expected {len(self.names)} columns, found {column_count}"
                for column_count, _ in parsed.bad_texts
            ],
        )
        return replace(repaired, text_checked=True)

    def _without(self, lines: list[int], reasons: list[str]) -> _Block:
        placeholder = b"x" if len(self.names) > 1 else b"x" + self.options.delimiter.encode() + b"x"
        data, originals = csv_lines.replace_lines(self.data, lines, placeholder)
        bad_rows = dict(self.replaced_rows)
        for line, reason, text in zip(lines, reasons, originals, strict=True):
            row = self.first_line + line
            bad_rows[row] = BadRow(
                file=self.file,
                row=row,
                column="",
                value=text.decode(errors="replace"),
                reason=reason,
            )
        return replace(self, data=data, replaced_rows=bad_rows)

    def _parse(self, *, typed: bool) -> _ParsedBlock:
        data, delimiter = self._parser_input()
        bad_rows: list[tuple[int, int, str]] = []

        def skip(row: arrow_csv.InvalidRow) -> str:
            bad_rows.append((row.number - 1, row.actual_columns, row.text))
            return "skip"

        # Binary columns keep null markers, so that a rejected value is shown as in the file.
        types = {
            name: (kind or pa.string()) if typed else pa.binary()
            for name, kind in self.column_types.items()
        }
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data),
                read_options=arrow_csv.ReadOptions(
                    use_threads=False, column_names=self.names, block_size=max(len(data) + 1, 64)
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter,
                    quote_char=self.options.quote or False,
                    newlines_in_values=self.options.multiline,
                    invalid_row_handler=skip,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=list(self.options.nulls),
                    strings_can_be_null=typed,
                ),
            )
        except pa.ArrowInvalid as error:
            if typed:
                raise
            raise InvalidRequest(
                f"{self.file}: the rows from line {self.first_line} on are no CSV ({error})"
            ) from error
        columns = {name: _combined_array(table.column(name), types[name]) for name in types}
        return _ParsedBlock(
            columns=columns,
            rows=table.num_rows,
            null_texts=() if typed else self.options.nulls,
            bad_ordinals=[ordinal for ordinal, _, _ in bad_rows],
            bad_texts=[(column_count, text) for _, column_count, text in bad_rows],
        )

    def _parser_input(self) -> tuple[bytes, str]:
        """Return the data as UTF-8 with a single-byte delimiter."""
        data, delimiter = self.data, self.options.delimiter
        if codecs.lookup(self.options.encoding).name not in _UTF8:
            try:
                data = data.decode(self.options.encoding).encode()
            except UnicodeDecodeError as error:
                raise InvalidRequest(
                    f"{self.file}: after line {self.first_line}: {error}; set its `encoding`"
                ) from error
        if len(delimiter.encode()) == 1:
            return data, delimiter
        if UNIT_SEPARATOR.encode() in data:
            raise InvalidRequest(
                f"{self.file}: a delimiter of several bytes ({delimiter!r}) needs text "
                "without the byte 0x1f"
            )
        return data.replace(delimiter.encode(), UNIT_SEPARATOR.encode()), UNIT_SEPARATOR

    def _row_batches(self, parsed: _ParsedBlock, limit: int) -> Iterator[RowBatch]:
        size = parsed.size
        lines = self._lines(size)
        kept_rows = np.delete(np.arange(size), parsed.bad_ordinals) if parsed.bad_ordinals else None
        total_bytes = self.input_bytes
        if total_bytes is None:
            total_bytes = self.rows_before + len(self.data)
        if not size:
            return
        for start, stop in spans(size, limit):
            low, high = (
                (start, stop)
                if kept_rows is None
                else (int(x) for x in np.searchsorted(kept_rows, (start, stop)))
            )
            yield RowBatch(
                file=self.file,
                first_row=self.first_line + start,
                size=stop - start,
                rows=high - low,
                columns={
                    name: column.slice(low, high - low) for name, column in parsed.columns.items()
                },
                null_texts=parsed.null_texts,
                ordinals=None if kept_rows is None else kept_rows[low:high] - start,
                lines=None if lines is None else lines[start:stop],
                bad=tuple(
                    self._misshapen_row(
                        column_count,
                        text,
                        self.first_line + ordinal if lines is None else int(lines[ordinal]),
                    )
                    for ordinal, (column_count, text) in zip(
                        parsed.bad_ordinals, parsed.bad_texts, strict=True
                    )
                    if start <= ordinal < stop
                ),
                nbytes=total_bytes * stop // size - total_bytes * start // size,
            )

    def _misshapen_row(self, column_count: int, text: str, line: int) -> BadRow:
        if line in self.replaced_rows:
            return self.replaced_rows[line]
        value = text.replace(UNIT_SEPARATOR, self.options.delimiter)
        column = self.names[column_count] if column_count < len(self.names) else ""
        return BadRow(
            file=self.file,
            row=line,
            column=column,
            value=value,
            reason=f"expected {len(self.names)} columns, found {column_count}",
        )

    def _lines(self, size: int) -> Ids | None:
        """Return the line of each row, or None if every line is a row."""
        if self.data.count(b"\n") + (not self.data.endswith(b"\n")) == size:
            return None
        ends = csv_lines.row_ends(self.data, self.options.quote if self.options.multiline else "")
        lines = self.first_line + csv_lines.row_lines(self.data, ends)
        # If only the parser understands the quoting, line numbers are interpolated.
        return (
            lines
            if len(lines) == size or not len(lines)
            else np.linspace(lines[0], lines[-1], size).astype(np.int64)
        )


def _combined_array(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else pa.array([], kind)
    )
