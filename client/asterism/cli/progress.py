"""Progress of a command: bars at a terminal, lines elsewhere."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
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


class ProgressBars:
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
        """Show the state of a task in its bar."""
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


def ignore_progress(
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
