"""Output of commands: tables or one JSON document on stdout, progress and notes on stderr."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from asterism.cli.tables import TextTable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, TaskID


_UNITS = frozenset({"bytes", "files"})
_SECONDS_BETWEEN_LINES = 10.0
"""Seconds between two lines of progress, where standard error is not a terminal."""


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
        note: str = "",
    ) -> None:
        """Report `done` of `total` rows of `task`; None if the total is unknown.

        `rate` (rows per second) and `left_s` are measured unless the caller gives them. `note` says
        what the task waits for, if it does."""


class ProgressDisplay(Protocol):
    """Display of the progress of several tasks."""

    def show(self, task: str, done: int, total: int | None, texts: ProgressTexts) -> None:
        """Show the progress of a task."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProgressTexts:
    """Formatted progress of a task."""

    name: str
    rows: str
    rate: str
    left: str
    note: str


class RateMeter:
    """Measures the rate of the current phase of each task, and shows it.

    Parameters
    ----------
    display : ProgressDisplay
        Where to show it.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self, display: ProgressDisplay, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._display, self._clock = display, clock
        self._phases: dict[str, tuple[str, int, float]] = {}
        """Phase of each task, rows done when the phase began, and its start time."""
        self._done: dict[str, int] = {}
        self._updated_at = clock()

    def update(
        self,
        task: str,
        done: int,
        total: int | None,
        *,
        phase: str = "",
        rate: float = 0.0,
        left_s: float = 0.0,
        note: str = "",
    ) -> None:
        """Show the progress of a task; see `ProgressCallback`."""
        known_phase, base, since = self._phases.get(task, (phase, 0, self._updated_at))
        if known_phase != phase or done < base:
            base, since = min(done, self._done.get(task, 0)), self._updated_at
        self._done[task] = done
        self._phases[task] = (phase, base, since)
        self._updated_at = self._clock()
        seconds = self._updated_at - since
        if not rate and seconds > 0.02:
            rate = (done - base) / seconds
        if not left_s and rate and total and total > done:
            left_s = (total - done) / rate
        texts = ProgressTexts(
            name=f"{task} {phase}".rstrip(),
            rows=f"{done:,}/{total:,}" if total else f"{done:,}" if done else "",
            rate=f"{rate:,.0f} {_unit(task)}/s" if rate else "",
            left=f"{left_s:,.0f} s left" if left_s else "",
            note=note,
        )
        self._display.show(task, done, total, texts)


class _ProgressBars:
    """A bar per task at a terminal; nothing is shown before the first report."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: dict[str, TaskID] = {}
        self._activity: TaskID | None = None

    def show_activity(self, text: str) -> bool:
        """Show a line without a bar, or remove it if it is empty; False before the first bar."""
        if not self._progress.live.is_started:
            return False
        if self._activity is None:
            self._activity = self._progress.add_task(text, total=None, details="")
        self._progress.update(self._activity, description=text, visible=bool(text))
        return True

    def show(self, task: str, done: int, total: int | None, texts: ProgressTexts) -> None:
        self._progress.start()
        if task not in self._bars:
            self._bars[task] = self._progress.add_task(task, total=None, details="")
        details = texts.note or "  ".join(filter(None, (texts.rows, texts.rate, texts.left)))
        self._progress.update(
            self._bars[task],
            description=texts.name,
            completed=done,
            total=total or None,
            details=details,
        )


class ProgressLines:
    """Lines on standard error in place of bars, at most one each few seconds for each task.

    Parameters
    ----------
    clock : callable
        Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._started_at = clock, clock()
        self._shown: dict[str, tuple[float, str]] = {}

    def show(self, task: str, done: int, total: int | None, texts: ProgressTexts) -> None:
        """Print a line, unless the last one is recent; a new note is printed at once."""
        now = self._clock()
        shown_at, note = self._shown.get(task, (self._started_at, ""))
        if now - shown_at < _SECONDS_BETWEEN_LINES and texts.note in ("", note):
            return
        self._shown[task] = (now, texts.note)
        details = ", ".join(filter(None, (texts.rows, texts.rate, texts.left, texts.note)))
        print(f"{texts.name}: {details}" if details else texts.name, file=sys.stderr, flush=True)


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
        self._bars: _ProgressBars | None = None
        """Progress bars that are being shown."""

    def result(self, value: object, render: Callable[[], RenderableType]) -> None:
        """Print `value` as the JSON document of the command, or as `render` formats it."""
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
        if not sys.stderr.isatty():
            if self.as_json:
                yield _ignore_progress
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
        self._bars = _ProgressBars(progress)
        try:
            yield RateMeter(self._bars).update
        finally:
            self._bars = None
            if progress.live.is_started:
                progress.stop()

    def show_activity(self, text: str) -> bool:
        """Show a line below progress bars on a terminal, or remove it if it is empty.

        Return False if there are no bars."""
        bars = self._bars
        return bars is not None and bars.show_activity(text)


def _ignore_progress(
    task: str,
    done: int,
    total: int | None,
    *,
    phase: str = "",
    rate: float = 0.0,
    left_s: float = 0.0,
    note: str = "",
) -> None:
    """Ignore the progress of a task."""


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
