"""Output of commands: tables or one JSON document on stdout, progress and notes on stderr."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, TaskID


_UNITS = frozenset({"bytes", "files"})


class ProgressCallback(Protocol):
    """Callback that receives the progress of a task."""

    def __call__(
        self,
        task: str,
        done: int,
        total: int | None,
        *,
        phase: str = "",
        rate: float = 0.0,
        left_s: float = 0.0,
    ) -> None:
        """Report `done` of `total` rows of `task`; None if the total is unknown.

        `rate` (rows per second) and `left_s` are measured unless the caller gives them."""


class _ProgressBars:
    """A progress bar per task, with the rate of its current phase."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: dict[str, TaskID] = {}
        self._phases: dict[str, tuple[str, int, float]] = {}
        """Phase of each task, rows done when the phase began, and its start time."""
        self._done: dict[str, int] = {}
        self._updated_at = time.monotonic()
        self._activity: TaskID | None = None

    def show_activity(self, text: str) -> bool:
        """Show a line without numbers, or remove it if it is empty; False without a terminal."""
        if not self._progress.console.is_terminal:
            return False
        if self._activity is None:
            self._activity = self._progress.add_task(text, total=None, rows="", rate="", left="")
        self._progress.update(self._activity, description=text, visible=bool(text))
        return True

    def update(
        self,
        task: str,
        done: int,
        total: int | None,
        *,
        phase: str = "",
        rate: float = 0.0,
        left_s: float = 0.0,
    ) -> None:
        if task not in self._bars:
            self._bars[task] = self._progress.add_task(task, total=None, rows="", rate="", left="")
        known_phase, base, since = self._phases.get(task, (phase, 0, self._updated_at))
        if known_phase != phase or done < base:
            base, since = min(done, self._done.get(task, 0)), self._updated_at
        self._done[task] = done
        self._phases[task] = (phase, base, since)
        self._updated_at = time.monotonic()
        seconds = self._updated_at - since
        if not rate and seconds > 0.02:
            rate = (done - base) / seconds
        if not left_s and rate and total and total > done:
            left_s = (total - done) / rate
        self._progress.update(
            self._bars[task],
            description=f"{task} {phase}".rstrip(),
            completed=done,
            total=total or None,
            rows=f"{done:,}/{total:,}" if total else f"{done:,}" if done else "",
            rate=f"{rate:,.0f} {_unit(task)}/s" if rate else "",
            left=f"{left_s:,.0f} s left" if left_s else "",
        )


def _unit(task: str) -> str:
    """Return the unit of a task, which is the last word of its name, or rows."""
    last_word = task.rpartition(" ")[2]
    return last_word if last_word in _UNITS else "rows"


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
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str):
        return [to_json_value(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class Output:
    """Standard output and standard error of a command."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._bars: _ProgressBars | None = None
        """Progress bars that are being shown."""

    def result(self, value: object, render: Callable[[], RenderableType]) -> None:
        """Print `value` as the JSON document of the command, or as `render` formats it."""
        if self.as_json:
            print(json.dumps(to_json_value(value)))
            return
        from rich.console import Console

        Console(highlight=False).print(render())

    def print_note(self, text: str) -> None:
        """Print a note that is not part of the result; nothing with JSON output."""
        if not self.as_json:
            from rich.console import Console

            Console(stderr=True, highlight=False).print(text)

    @contextmanager
    def progress(self) -> Iterator[ProgressCallback]:
        """Show progress bars with rows, rate and remaining time, until the block ends."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console(stderr=True, highlight=False)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            *(
                TextColumn(f"{{task.fields[{name}]}}", justify="right")
                for name in ("rows", "rate", "left")
            ),
        )
        with Progress(
            *columns, console=console, disable=self.as_json and not console.is_terminal
        ) as progress:
            self._bars = _ProgressBars(progress)
            try:
                yield self._bars.update
            finally:
                self._bars = None

    def show_activity(self, text: str) -> bool:
        """Show a line below progress bars on a terminal, or remove it if it is empty.

        Return False if there are none."""
        bars = self._bars
        return bars is not None and bars.show_activity(text)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> RenderableType:
    """Return a table of `rows`; columns of numbers are right-aligned."""
    from rich import box
    from rich.table import Table

    all_rows = [list(row) for row in rows]
    result = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, name in enumerate(columns):
        is_numeric = bool(all_rows) and all(isinstance(row[i], int | float) for row in all_rows)
        result.add_column(name, justify="right" if is_numeric else "left", overflow="fold")
    for row in all_rows:
        result.add_row(*(_format_cell(cell) for cell in row))
    return result


def format_timestamp(milliseconds: int) -> str:
    """Return a time in UTC, or a dash for 0."""
    return (
        datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        if milliseconds
        else "-"
    )


def _format_cell(cell: object) -> str:
    from rich.markup import escape

    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.6g}"
    if isinstance(cell, Enum):
        return cell.name
    return escape(str(cell))
