"""Build that kills itself in the middle of a step.

``python -m tests.kit.killed_build TASK.json STEP EVENTS`` runs `storaged.build` and counts events:
blocks of tables, rows appended to files, values read. After EVENTS events within the step it sends
itself SIGKILL. With EVENTS -1 it finishes, and prints the number of events of each step.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from storaged.build import __main__ as build
from storaged.build.progress import ProgressReporter
from storaged.store.alias_table_store import AliasTableWriter
from storaged.store.image_writer import AppendFile
from storaged.tasks import task_process


class KillSwitch:
    """Counts the events of the current step."""

    def __init__(self, step: str, events: int) -> None:
        self._step, self._events = step, events
        self._current_step, self._seen = "", 0

    def count_calls(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``method`` so that each call counts as an event."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            self._seen += 1
            self._kill_if_reached()
            return result

        return wrapped

    def track_steps(self, report: Callable[..., None]) -> Callable[..., None]:
        """Wrap ``report`` to record which step begins."""

        def wrapped(progress: ProgressReporter, line: dict[str, Any]) -> None:
            if line.get("is") == "done" and self._events < 0:
                line = {**line, "events": self._seen}
            report(progress, line)
            if line.get("is") == "begun":
                self._current_step, self._seen = f"{line['part']}/{line['step']}", 0
            self._kill_if_reached()

        return wrapped

    def track_phases(self, phase: Callable[..., None]) -> Callable[..., None]:
        """Wrap ``phase`` to count the sealing of a partition, which is a phase, as a step."""

        def wrapped(progress: ProgressReporter, name: str) -> None:
            phase(progress, name)
            if name == "seal":
                self._current_step, self._seen = name, 0
            self._kill_if_reached()

        return wrapped

    def _kill_if_reached(self) -> None:
        if self._current_step == self._step and self._seen >= self._events >= 0:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    kill_switch = KillSwitch(sys.argv[2], int(sys.argv[3]))
    for owner, name in (
        (AliasTableWriter, "_put"),
        (AppendFile, "append"),
        (ProgressReporter, "step"),
    ):
        setattr(owner, name, kill_switch.count_calls(getattr(owner, name)))
    ProgressReporter.write_line = kill_switch.track_steps(ProgressReporter.write_line)  # type: ignore[method-assign]
    ProgressReporter.phase = kill_switch.track_phases(ProgressReporter.phase)  # type: ignore[method-assign]
    raise SystemExit(task_process.main(sys.argv[1:2], build.run))
