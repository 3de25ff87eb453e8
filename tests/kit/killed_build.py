"""``python -m tests.kit.killed_build TASK.json STEP EVENTS``: a build that kills itself in the middle of a step.

It is `storaged.build` itself; only what it does is counted: blocks of tables, rows appended to files, values read. After so
many of them within the step it sends itself SIGKILL. With EVENTS -1 it lives, and says how many events each step had.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from storaged import children
from storaged.build import __main__ as build
from storaged.build.progress import Progress
from storaged.store.image_writer import Appended
from storaged.store.tables import TableWriter


class Mortal:
    """Counts the events of the step under way."""

    def __init__(self, step: str, events: int) -> None:
        self._step, self._events = step, events
        self._at, self._seen = "", 0

    def counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """``method``, and then an event."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            out = method(*args, **kwargs)
            self._seen += 1
            self._die_where_told()
            return out

        return wrapped

    def told(self, say: Callable[..., None]) -> Callable[..., None]:
        """``say``, noting which step begins."""

        def wrapped(progress: Progress, line: dict[str, Any]) -> None:
            if line.get("is") == "done" and self._events < 0:
                line = {**line, "events": self._seen}
            say(progress, line)
            if line.get("is") == "begun":
                self._at, self._seen = f"{line['part']}/{line['step']}", 0
            self._die_where_told()

        return wrapped

    def phased(self, phase: Callable[..., None]) -> Callable[..., None]:
        """``phase``; that of sealing the part is no step, but counts as one."""

        def wrapped(progress: Progress, name: str) -> None:
            phase(progress, name)
            if name == "seal":
                self._at, self._seen = name, 0
            self._die_where_told()

        return wrapped

    def _die_where_told(self) -> None:
        if self._at == self._step and self._seen >= self._events >= 0:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    mortal = Mortal(sys.argv[2], int(sys.argv[3]))
    for owner, name in ((TableWriter, "_put"), (Appended, "append"), (Progress, "step")):
        setattr(owner, name, mortal.counted(getattr(owner, name)))
    Progress.say = mortal.told(Progress.say)  # type: ignore[method-assign]
    Progress.phase = mortal.phased(Progress.phase)  # type: ignore[method-assign]
    raise SystemExit(children.main(sys.argv[1:2], build.run))
