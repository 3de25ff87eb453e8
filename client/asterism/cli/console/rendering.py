"""What a statement gave, as a table for people, as text for programs, and as files."""

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

from asterism.cli.output import plain
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism.querying import Result

SHOWN = 100
"""Rows that a table at a terminal has."""
_WIDE = 10_000
"""Columns of a page that nobody looks at."""
_CELL = 200
"""Characters of a cell that a table at a terminal has."""


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    TSV = "tsv"


def rows_of(result: Result) -> Iterator[list[Any]]:
    """The rows as plain values: numbers, texts, truths, None, and lists of these."""
    return ([plain(value) for value in row] for row in result)


def document(result: Result) -> dict[str, Any]:
    """A result as JSON has it."""
    return {
        "columns": list(result.columns),
        "rows": list(rows_of(result)),
        "space": result.space,
        "version": result.version,
        "seed": result.seed,
        "took_s": result.took_s,
    }


def word(value: Any, nothing: str = "") -> str:
    """A value as one word of a line."""
    if value is None:
        return nothing
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def write(result: Result, form: Format, out: IO[str], *, people: bool) -> None:
    """Print a result; a table for ``people`` at a terminal has its first rows only."""
    if form is Format.JSON:
        out.write(json.dumps(document(result)) + "\n")
    elif form is Format.CSV:
        _separated(result, out, csv.writer(out, lineterminator="\n").writerow)
    elif form is Format.TSV:
        _separated(result, out, lambda row: out.write("\t".join(map(_on_one_line, row)) + "\n"))
    else:
        _table(result, out, people)


def _separated(result: Result, out: IO[str], line: Callable[[Sequence[str]], object]) -> None:
    if not result.columns:
        return
    line(list(result.columns))
    for row in rows_of(result):
        line([word(value) for value in row])


def _on_one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _table(result: Result, out: IO[str], people: bool) -> None:
    from rich.console import Console

    console = Console(file=out, highlight=False, width=None if people else _WIDE, no_color=None if people else True)
    if result.plan:
        console.print(result.plan, markup=False, soft_wrap=True)
    if result.columns:
        rows = rows_of(result)
        console.print(_drawn(result.columns, islice(rows, SHOWN) if people else rows, _CELL if people else None))
        if people and len(result) > SHOWN:
            console.print(f"... and {len(result) - SHOWN:,} more rows; :export csv FILE has all", markup=False)
    if result.stages:
        steps = ([stage.name, stage.rows if stage.rows >= 0 else None, f"{stage.took_s * 1e3:.3f}"] for stage in result.stages)
        console.print(_drawn(("step", "rows", "ms"), steps, None))


def _drawn(columns: Sequence[str], rows: Iterable[Sequence[Any]], longest: int | None) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = list(rows)
    table = Table(box=box.SIMPLE_HEAD)
    for at, name in enumerate(columns):
        numeric = bool(made) and all(isinstance(row[at], int | float) and not isinstance(row[at], bool) for row in made)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold", no_wrap=longest is None)
    for row in made:
        table.add_row(*(Text(_cut(_visible(word(value, "NULL")), longest)) for value in row))
    return table


def _cut(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"


def _visible(text: str) -> str:
    """A text in which nothing moves a terminal's cursor, or changes its colours."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


EXPORTS = ("csv", "json", "parquet")
"""What files are written as."""


def export(result: Result, form: str, path: Path) -> int:
    """Write a result to a file, whole or not at all: how many rows it has.

    Raises
    ------
    InvalidRequest
        For another form than these, or a result that has no columns.
    """
    if form not in EXPORTS:
        raise InvalidRequest(f":export {form}: expected {', '.join(EXPORTS)}, and a file")
    if not result.columns:
        raise InvalidRequest(f":export {form}: the last statement gave no table")
    if form == "parquet":
        try:
            import pyarrow.parquet as pq
        except ImportError as error:
            raise InvalidRequest(":export parquet needs pyarrow: pip install 'asterism[ingest]'") from error
        with _replacing(path) as file:
            table = result.to_arrow()
            pq.write_table(table, file)
            return int(table.num_rows)
    with _replacing(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as out:
        return _lines(result, out) if form == "json" else _csv(result, out)


def _csv(result: Result, out: IO[str]) -> int:
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(result.columns)
    counted = 0
    for counted, row in enumerate(rows_of(result), 1):  # noqa: B007  # the last one's number is how many there are
        lines.writerow([word(value) for value in row])
    return counted


def _lines(result: Result, out: IO[str]) -> int:
    """One list of objects, a line each."""
    counted = 0
    for counted, row in enumerate(rows_of(result), 1):
        out.write(("[" if counted == 1 else ",") + "\n" + json.dumps(dict(zip(result.columns, row, strict=True)), ensure_ascii=False))
    out.write("\n]\n" if counted else "[]\n")
    return counted


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` where the block ends without an error."""
    wanted = path.expanduser()
    with tempfile.NamedTemporaryFile(dir=wanted.parent, prefix=f".{wanted.name}.", delete=False) as file:
        made = Path(file.name)
        try:
            yield file
        except BaseException:
            made.unlink(missing_ok=True)
            raise
    made.chmod(0o666 & ~_umask())
    made.replace(wanted)


def _umask() -> int:
    """The process's mask of modes, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
