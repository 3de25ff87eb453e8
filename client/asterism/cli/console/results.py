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
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from asterism.cli.output import to_json_value
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism.records.query_result import QueryResult

MAX_TABLE_ROWS = 100
"""Maximum rows of a table at a terminal."""
_UNLIMITED_WIDTH = 10_000
"""Width of tables that are not printed at a terminal."""
_MAX_CELL_LENGTH = 200
"""Maximum characters of a cell of a table at a terminal."""


class Format(StrEnum):
    """Output format of results."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    TSV = "tsv"


def plain_rows(result: QueryResult) -> Iterator[list[Any]]:
    """Return the rows as plain values: numbers, strings, booleans, None, and lists of these."""
    return ([to_json_value(value) for value in row] for row in result)


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
        file=out,
        highlight=False,
        width=None if for_terminal else _UNLIMITED_WIDTH,
        no_color=None if for_terminal else True,
    )
    if result.plan:
        console.print(result.plan, markup=False, soft_wrap=True)
    if result.columns:
        rows = plain_rows(result)
        console.print(
            _build_table(
                result.columns,
                islice(rows, MAX_TABLE_ROWS) if for_terminal else rows,
                _MAX_CELL_LENGTH if for_terminal else None,
            )
        )
        if for_terminal and len(result) > MAX_TABLE_ROWS:
            console.print(
                f"... and {len(result) - MAX_TABLE_ROWS:,} more rows; :export csv FILE has all",
                markup=False,
            )
    if result.stages:
        steps = (
            [stage.name, stage.rows if stage.rows >= 0 else None, f"{stage.took_s * 1e3:.3f}"]
            for stage in result.stages
        )
        console.print(_build_table(("step", "rows", "ms"), steps, None))


def _build_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], max_length: int | None
) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    all_rows = list(rows)
    table = Table(box=box.SIMPLE_HEAD)
    for index, name in enumerate(columns):
        is_numeric = bool(all_rows) and all(
            isinstance(row[index], int | float) and not isinstance(row[index], bool)
            for row in all_rows
        )
        table.add_column(
            Text(name),
            justify="right" if is_numeric else "left",
            overflow="fold",
            no_wrap=max_length is None,
        )
    for row in all_rows:
        table.add_row(
            *(
                Text(_truncate(_escape_control_characters(format_value(value, "NULL")), max_length))
                for value in row
            )
        )
    return table


def _truncate(text: str, max_length: int | None) -> str:
    return text if max_length is None or len(text) <= max_length else text[: max_length - 1] + "…"


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
    target = path.expanduser()
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
