"""CSV reader that works on blocks of bytes, each of which ends at the end of a row.

A block is first parsed with the requested types. If that fails, it is parsed again as text, to
separate bad rows from good ones.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from asterism.formats import csv_lines
from asterism.formats.chunks import BadRow, Ids
from asterism.formats.columns import Column, is_text
from asterism.formats.table_reader import ColumnDescription, RowBatch, missing_column_error, spans
from asterism.formats.text_files import UTF8_NAMES, TextFile
from asterism_proto.errors import InvalidRequest

BLOCK_BYTES = 8 << 20
MAX_ROW_BYTES = 64 << 20
_USUAL_DELIMITERS = ("\t", ",", ";", "|", " ")
UNIT_SEPARATOR = "\x1f"
"""Replacement for multi-byte delimiters, which the parser does not support."""
_RETURN_REASON = "a carriage return (CR) within the line and outside of quotes"


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
        if (
            not self.delimiter
            or set(self.delimiter) & set("\r\n")
            or (self.quote and self.quote in self.delimiter)
        ):
            raise InvalidRequest(
                f"delimiter={self.delimiter!r}: expected one or more characters, no line "
                "end, not the quote"
            )
        if len(self.quote) > 1 or not self.quote.isascii() or self.quote in tuple("\r\n"):
            raise InvalidRequest(
                f"quote={self.quote!r}: expected one ASCII character, or an empty string for none"
            )
        try:
            if "\n".encode(self.encoding) != b"\n" or ",".encode(self.encoding) != b",":
                raise InvalidRequest(
                    f"encoding={self.encoding!r}: expected one in which a line end is the "
                    "byte 10, such as utf-8 or latin-1"
                )
        except (LookupError, ValueError) as error:
            raise InvalidRequest(
                f"encoding={self.encoding!r}: expected an encoding of Python, such as utf-8"
            ) from error
        if not self.header and not self.columns:
            raise InvalidRequest(
                "columns: expected the names of the columns, because the CSV file has no header"
            )
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise InvalidRequest(
                    f"columns={list(self.columns)}: expected different names, {name!r} is there "
                    "twice"
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
        with TextFile(path, label, self._options.encoding) as file:
            line = file.read_line()
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
        with TextFile(path, label, self._options.encoding) as file:
            line = file.read_line()
        if not line.strip():
            raise InvalidRequest(f"{label}: expected a header line, found none")
        names = _split_header(
            label,
            line.decode(self._options.encoding, errors="replace").rstrip("\r\n"),
            self._options,
        )
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
        with TextFile(path, label, self._options.encoding) as file:
            consumed = 0
            line, skipped = 1, file.mark_bytes
            if self._options.header:
                skipped += len(file.read_line())
                line = 2
            incomplete = b""
            while True:
                new_data = file.read(self._block_bytes)
                position = file.input_position
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


def _split_header(label: str, text: str, options: CsvOptions) -> list[str]:
    """Return the column names in a header line; quotes have the meaning of `csv.reader`."""
    delimiter, quote = options.delimiter, options.quote
    names: list[str] = []
    start = 0
    while True:
        name, end = "", start
        if quote and text.startswith(quote, start):
            name, end = _quoted_text(label, text, start, quote)
        stop = text.find(delimiter, end)
        stop = len(text) if stop < 0 else stop
        unquoted = text[end:stop]
        if "\r" in unquoted:
            raise InvalidRequest(
                f"{label}: column name {unquoted!r}: expected lines that end with LF or CR LF, "
                "found CR within the header; convert the line ends, or set `columns`"
            )
        names.append(name + unquoted)
        if stop == len(text):
            return names
        start = stop + len(delimiter)


def _quoted_text(label: str, text: str, start: int, quote: str) -> tuple[str, int]:
    """Return the text within the quotes that open at ``start``, and the end of the quotes."""
    pieces: list[str] = []
    begin = start + 1
    while (end := text.find(quote, begin)) >= 0:
        pieces.append(text[begin:end])
        if not text.startswith(quote, end + 1):
            return "".join(pieces), end + 1
        pieces.append(quote)
        begin = end + 2
    raise InvalidRequest(
        f"{label}: a quote is left open in the header; close it, or set `quote: ''` if quotes "
        "have no meaning there"
    )


def _row_end(data: bytes, options: CsvOptions) -> int:
    """Return the number of bytes of ``data`` that form complete rows."""
    if not options.multiline or not options.quote or options.quote.encode() not in data:
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
    returns_checked: bool = False
    """True if no CR is left that the parser would take for the end of a row."""
    replaced_rows: Mapping[int, BadRow] = field(default_factory=dict)
    """Bad rows by line number.
    Their lines hold placeholders with a wrong number of columns."""

    def batches(self, limit: int) -> Iterator[RowBatch]:
        """Yield the rows, typed if possible."""
        if not self.returns_checked:
            returns = csv_lines.lines_with_returns(
                self.data, self.options.quote, multiline=self.options.multiline
            ).tolist()
            if returns:
                yield from self._without_returns(returns).batches(limit)
                return
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
            parsed = self._parse(typed=True)
        except pa.ArrowInvalid:
            return self._parse(typed=False), False
        return (self._parse(typed=False), False) if self._needs_text(parsed) else (parsed, True)

    def _needs_text(self, parsed: _ParsedBlock) -> bool:
        """Return True if typed columns hide what the text was.

        The parser takes 1e39 for an infinite float32, and 0xFF for an integer.
        """
        kinds = [column.type for column in parsed.columns.values()]
        if any(map(pa.types.is_integer, kinds)) and (b"0x" in self.data or b"0X" in self.data):
            return True
        return any(
            pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py()
            for column in parsed.columns.values()
        )

    def _row_count_agrees(self, size: int) -> bool:
        """Return True if the parser found one row per nonblank line.

        Otherwise a quote was left open.
        """
        return (
            self._lines(size) is None
            or len(csv_lines.row_lines(self.data, csv_lines.line_ends(self.data))) == size
        )

    def _without_returns(self, lines: list[int]) -> _Block:
        """Replace lines with a CR outside of quotes, where the parser would end a row."""
        if self.options.multiline:
            raise InvalidRequest(
                f"{self.file}: line {self.first_line + lines[0]}: {_RETURN_REASON}"
            )
        return replace(self._without(lines, [_RETURN_REASON] * len(lines)), returns_checked=True)

    def _without_open_quotes(self) -> _Block:
        """Replace lines with an open quote.

        The parser would take everything after the quote as one field.
        """
        lines = (
            csv_lines.open_quotes(self.data, self.options.quote).tolist()
            if self.options.quote
            else []
        )
        lines = [line for line in lines if self.first_line + line not in self.replaced_rows]
        if lines:
            return self._without(
                lines,
                ["a quote is left open; `multiline: true` allows line ends within quotes"]
                * len(lines),
            )
        # A CR after a quote within a field, which opens nothing.
        lines = csv_lines.lines_with_returns(self.data, "", multiline=False).tolist()
        if not lines:
            raise InvalidRequest(
                f"{self.file}: the rows from line {self.first_line} on cannot be separated; set "
                "`quote: ''` if quotes have no meaning there"
            )
        return self._without(lines, [_RETURN_REASON] * len(lines))

    def _is_text(self) -> bool:
        """Return True if the block is valid text.

        The parser passes rejected rows to a callback as text, and invalid text would abort it.
        """
        if self.data.isascii() or codecs.lookup(self.options.encoding).name not in UTF8_NAMES:
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
        if delimiter != self.options.delimiter:
            columns = {name: self._with_delimiter(column) for name, column in columns.items()}
        return _ParsedBlock(
            columns=columns,
            rows=table.num_rows,
            null_texts=() if typed else self.options.nulls,
            bad_ordinals=[ordinal for ordinal, _, _ in bad_rows],
            bad_texts=[(column_count, text) for _, column_count, text in bad_rows],
        )

    def _with_delimiter(self, column: Column) -> Column:
        """Return text with the delimiter where it stood within quotes."""
        if not is_text(column):
            return column
        return pc.replace_substring(
            column, pattern=UNIT_SEPARATOR, replacement=self.options.delimiter
        )

    def _parser_input(self) -> tuple[bytes, str]:
        """Return the data as UTF-8 with a single-byte delimiter."""
        data, delimiter = self.data, self.options.delimiter
        if codecs.lookup(self.options.encoding).name not in UTF8_NAMES:
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
