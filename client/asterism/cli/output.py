"""Output of commands: tables or one JSON document on stdout, progress and notes on stderr."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from asterism.cli.activity import ActivityLine
from asterism.cli.tables import TextTable

if TYPE_CHECKING:
    from rich.console import RenderableType
from asterism.cli.progress import (
    ProgressBars,
    ProgressCallback,
    ProgressLines,
    RateMeter,
    ignore_progress,
)


def to_json_value(value: Any) -> Any:
    """Return `value` as JSON: records become objects, arrays lists, enums their names.

    An object contains the deprecated names of a record's fields as well as the current ones."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [
            field.name
            for field in dataclasses.fields(value)
            if field.repr and not field.name.startswith("_")
        ]
        names += getattr(value, "DEPRECATED_NAMES", ())
        return {name: to_json_value(getattr(value, name)) for name in names}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if hasattr(value, "to_dict"):
        return to_json_value(value.to_dict())
    if hasattr(value, "tolist"):
        return _array_to_json(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str):
        return [to_json_value(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _array_to_json(array: Any) -> Any:
    """Return an array as lists; a float32 becomes the shortest number that denotes it.

    ``tolist`` alone would widen 26.79 of float32 to 26.790000915527344.
    """
    if getattr(getattr(array, "dtype", None), "name", "") in ("float32", "float16"):
        return array.astype("U32").astype("f8").tolist()
    return array.tolist()


class Output:
    """Standard output and standard error of a command."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._bars: ProgressBars | None = None
        """Progress bars that are being shown."""
        self._activity: ActivityLine | None = None
        """Line that is shown until there is other output."""

    def result(self, value: object, render: Callable[[], RenderableType]) -> None:
        """Print `value` as the JSON document of the command, or as `render` formats it."""
        self.end_activity()
        if self.as_json:
            print(json.dumps(to_json_value(value)))
            return
        rendered = render()
        if isinstance(rendered, str):
            print(rendered)
            return
        from rich.console import Console

        Console(highlight=False).print(rendered, soft_wrap=True)

    def print_note(self, text: str, *, dim: bool = False) -> None:
        """Print a note that is not part of the result; nothing with JSON output."""
        self.end_activity()
        if not self.as_json:
            from rich.console import Console

            Console(stderr=True, highlight=False).print(
                text, markup=False, style="dim" if dim else None, soft_wrap=True
            )

    @contextmanager
    def progress(self) -> Iterator[ProgressCallback]:
        """Show the progress of tasks until the block ends: bars at a terminal, otherwise lines.

        With JSON output there are no lines.
        """
        self.end_activity()
        if not sys.stderr.isatty():
            if self.as_json:
                yield ignore_progress
            else:
                yield RateMeter(ProgressLines()).update
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[details]}"),
        )
        progress = Progress(*columns, console=Console(stderr=True, highlight=False))
        self._bars = ProgressBars(progress)
        try:
            yield RateMeter(self._bars).update
        finally:
            self._bars = None
            if progress.live.is_started:
                progress.stop()

    @contextmanager
    def activity(self, text: str) -> Iterator[None]:
        """Show at a terminal what the block is doing, until it ends or there is other output."""
        self.end_activity()
        with ActivityLine(text) as line:
            self._activity = line
            try:
                yield
            finally:
                if self._activity is line:
                    self._activity = None

    def end_activity(self) -> None:
        """Remove the line of the current activity; the caller writes to the terminal itself."""
        activity, self._activity = self._activity, None
        if activity is not None:
            activity.end()

    def show_activity(self, text: str) -> bool:
        """Show a line below progress bars on a terminal, or remove it if it is empty.

        It takes the place of the line of an activity. Return False if there is neither."""
        activity, bars = self._activity, self._bars
        if activity is not None:
            return activity.show(text)
        return bars is not None and bars.show_activity(text)


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    optional: Sequence[str] = (),
) -> TextTable:
    """Return a table of `rows`; columns of numbers are right-aligned.

    A narrow terminal leaves out the columns in ``optional``, in this order.
    """
    return TextTable(
        title=title,
        columns=tuple(columns),
        rows=tuple(tuple(map(_format_cell, row)) for row in rows),
        optional=tuple(optional),
    )


def format_timestamp(milliseconds: int) -> str:
    """Return a time in UTC, or a dash for 0."""
    return (
        datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        if milliseconds
        else "-"
    )


def _format_cell(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.6g}"
    if isinstance(cell, Enum):
        return cell.name
    return str(cell)
