"""Output of query results: tables, text formats and files."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from asterism.cli.output import format_timestamp, to_json_value
from asterism.cli.tables import TextTable
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism.records.query_result import QueryResult, Value

MAX_TABLE_ROWS = 100
"""Maximum rows of a table at a terminal."""
_TIME_SUFFIX = "_ms"
"""Suffix of columns of times in milliseconds since the epoch."""
_KINDS_WITH_TIMES = frozenset({"show", "submit", "stop", "recover"})
"""Statements about the catalog; columns of a graph may have the same suffix."""
_MAX_VECTOR_LENGTH, _SHOWN_OF_VECTOR = 4, 3
"""Elements of a list that a table at a terminal shows whole, and shows of a longer one."""
_MAX_CELL_LENGTH = 200
"""Maximum characters of a cell of a table at a terminal."""


class Format(StrEnum):
    """Output format of results."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    TSV = "tsv"


def plain_rows(result: QueryResult, limit: int | None = None) -> Iterator[Sequence[Any]]:
    """Return the rows as plain values: numbers, strings, booleans, None, and lists of these.

    A float32 is the shortest number that denotes it.
    """
    if result.length < 0:  # columns of their own lengths are one row
        return iter([[to_json_value(result.values[name]) for name in result.columns]])
    columns = (
        _plain_column(result.values[name], kind, limit)
        for name, kind in zip(result.columns, result.types, strict=True)
    )
    return zip(*columns, strict=True)


def _plain_column(value: Value, kind: str, limit: int | None) -> Iterator[Any]:
    """Return the plain values of a column, up to a number of rows."""
    if not isinstance(value, tuple):
        return iter(to_json_value(value[:limit]))
    indptr, values = value
    bounds = pairwise(indptr[: None if limit is None else limit + 1].tolist())
    rows = (values[start:stop] for start, stop in bounds)
    return (to_json_value(row.tobytes() if kind == "bytes" else row) for row in rows)


def to_json_document(result: QueryResult) -> dict[str, Any]:
    """Return a result as a JSON document."""
    return {
        "columns": list(result.columns),
        "rows": list(plain_rows(result)),
        "space": result.space,
        "version": result.version,
        "seed": result.seed,
        "took_s": result.took_s,
    }


def format_value(value: Any, null_text: str = "") -> str:
    """Return a value as a string on one line."""
    if value is None:
        return null_text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def write_result(result: QueryResult, form: Format, out: IO[str], *, for_terminal: bool) -> None:
    """Print a result; with ``for_terminal`` a table shows the first rows only."""
    if form is Format.JSON:
        out.write(json.dumps(to_json_document(result)) + "\n")
    elif form is Format.CSV:
        _write_separated(result, out, csv.writer(out, lineterminator="\n").writerow)
    elif form is Format.TSV:
        _write_separated(
            result, out, lambda row: out.write("\t".join(map(_on_one_line, row)) + "\n")
        )
    else:
        _write_table(result, out, for_terminal)


def _write_separated(
    result: QueryResult, out: IO[str], line: Callable[[Sequence[str]], object]
) -> None:
    if not result.columns:
        return
    line(list(result.columns))
    for row in plain_rows(result):
        line([format_value(value) for value in row])


def _on_one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _write_table(result: QueryResult, out: IO[str], for_terminal: bool) -> None:
    from rich.console import Console

    console = Console(
        file=out, highlight=False, markup=False, no_color=None if for_terminal else True
    )
    if result.plan:
        console.print(result.plan, soft_wrap=True)
    if result.columns:
        rows = plain_rows(result, MAX_TABLE_ROWS if for_terminal else None)
        table = build_table(
            result.columns, rows, shorten=for_terminal, has_times=result.kind in _KINDS_WITH_TIMES
        )
        console.print(table, soft_wrap=True)
        if for_terminal and len(result) > MAX_TABLE_ROWS:
            console.print(
                f"... and {len(result) - MAX_TABLE_ROWS:,} more rows; :export csv FILE has all",
                soft_wrap=True,
            )
    if result.stages:
        steps = (
            [stage.name, stage.rows if stage.rows >= 0 else None, f"{stage.took_s * 1e3:.3f}"]
            for stage in result.stages
        )
        console.print(build_table(("step", "rows", "ms"), steps, shorten=False), soft_wrap=True)


def build_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    shorten: bool,
    has_times: bool = False,
) -> TextTable:
    """Return the table of a result.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    rows : iterable of sequence
        Plain values.
    shorten : bool
        Shorten vectors and long texts, and fit the width of the terminal.
    has_times : bool
        Show columns of milliseconds as times in UTC.
    """
    times = {i for i, name in enumerate(columns) if has_times and name.endswith(_TIME_SUFFIX)}

    def cell(index: int, value: Any) -> str:
        if index in times and isinstance(value, int):
            return format_timestamp(value)
        if shorten and isinstance(value, list):
            return shorten_vector(value)
        text = _escape_control_characters(format_value(value, "NULL"))
        return _truncate(text, _MAX_CELL_LENGTH) if shorten else text

    return TextTable(
        title="",
        columns=tuple(
            f"{name.removesuffix(_TIME_SUFFIX)} (UTC)" if i in times else name
            for i, name in enumerate(columns)
        ),
        rows=tuple(tuple(cell(i, value) for i, value in enumerate(row)) for row in rows),
        fit_terminal=shorten,
    )


def shorten_vector(values: Sequence[Any]) -> str:
    """Return a list of at most a few elements, rounded, and its length if it has more."""
    shown = values if len(values) <= _MAX_VECTOR_LENGTH else values[:_SHOWN_OF_VECTOR]
    texts = [
        shorten_vector(value)
        if isinstance(value, list)
        else f"{value:.6g}"
        if isinstance(value, float)
        else _truncate(_escape_control_characters(format_value(value, "NULL")), _MAX_CELL_LENGTH)
        for value in shown
    ]
    more = "" if shown is values else f", … {len(values):,} values"
    return f"[{', '.join(texts)}{more}]"


def _truncate(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def _escape_control_characters(text: str) -> str:
    """Escape control characters, which would change the state of the terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


EXPORT_FORMATS = ("csv", "json", "parquet")
"""Formats of exported files."""


def export_result(result: QueryResult, form: str, path: Path) -> int:
    """Write a result to a file, completely or not at all, and return the number of rows.

    Raises
    ------
    InvalidRequest
        If the form is unknown, or the result has no columns.
    """
    if form not in EXPORT_FORMATS:
        raise InvalidRequest(f":export {form}: expected {', '.join(EXPORT_FORMATS)}, and a file")
    if not result.columns:
        raise InvalidRequest(f":export {form}: the last statement gave no table")
    if form == "parquet":
        try:
            import pyarrow.parquet as pq
        except ImportError as error:
            raise InvalidRequest(
                ":export parquet needs pyarrow: pip install 'asterism-graph[ingest]'"
            ) from error
        with _atomic_replacement(path) as file:
            table = result.to_arrow()
            pq.write_table(table, file)
            return int(table.num_rows)
    with (
        _atomic_replacement(path) as file,
        io.TextIOWrapper(file, encoding="utf-8", newline="") as out,
    ):
        return _export_json(result, out) if form == "json" else _export_csv(result, out)


def _export_csv(result: QueryResult, out: IO[str]) -> int:
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(result.columns)
    row_count = 0
    # The number of the last row is the count.
    for row_count, row in enumerate(plain_rows(result), 1):  # noqa: B007
        lines.writerow([format_value(value) for value in row])
    return row_count


def _export_json(result: QueryResult, out: IO[str]) -> int:
    """Write a list of objects, one per line."""
    row_count = 0
    for row_count, row in enumerate(plain_rows(result), 1):
        out.write(
            ("[" if row_count == 1 else ",")
            + "\n"
            + json.dumps(dict(zip(result.columns, row, strict=True)), ensure_ascii=False)
        )
    out.write("\n]\n" if row_count else "[]\n")
    return row_count


@contextmanager
def _atomic_replacement(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that replaces ``path`` if the block ends without an error."""
    target = Path(os.path.expanduser(path))
    with tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=f".{target.name}.", delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            yield file
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    temporary.chmod(0o666 & ~_umask())
    temporary.replace(target)


def _umask() -> int:
    """Return the umask of the process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
