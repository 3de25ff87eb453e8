"""Report of kernels that are compiled while a user waits, on standard error.

A call that needs a kernel for the first time on a machine compiles it, which takes seconds. They do
not count towards the deadline of the call.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from asterism_daemonkit.rpc.call_context import exclude_from_deadlines
from asterism_graphkit.compile.activity import ACTIVITY

Display = Callable[[str], bool]
"""Function that shows a line, or removes it if the line is empty; False if it cannot."""

_DELAY_S, _TICK_S, _IDLE_S = 0.7, 0.1, 0.5
_NOTE = (
    "asterism: compiling kernels, once for this machine; `asterism warm` compiles all in advance"
)


class CompileReport:
    """Report of the compilations of this process.

    Parameters
    ----------
    display : Display, optional
        Asked first. By default, and where it returns False, a terminal shows a line while kernels
        are being compiled, and another standard error receives a single line.
    """

    def __init__(self, display: Display = lambda _: False) -> None:
        self.display = display
        self._thread: threading.Thread | None = None
        self._is_shown = self._is_noted = False
        self._started_s = self._total_s = 0.0

    def note_activity(self) -> None:
        """Update the clock and the display; a listener of `ACTIVITY`."""
        if ACTIVITY.current:
            self._started_s = self._started_s or time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="kernels", daemon=True)
                self._thread.start()
        elif self._started_s:
            self._total_s, self._started_s = self.seconds(), 0.0
            self._hide()

    def seconds(self) -> float:
        """Return the seconds that this process has spent on compilation so far."""
        started_s = self._started_s
        return self._total_s + (time.monotonic() - started_s if started_s else 0.0)

    def _run(self) -> None:
        """Show the compilations until there have been none for a while."""
        pause, began_s, idle_s = threading.Event(), self._total_s, 0.0
        compiled = ACTIVITY.compiled
        while idle_s < _IDLE_S:
            pause.wait(_TICK_S)
            kernel, seconds = ACTIVITY.current, self.seconds() - began_s
            idle_s = 0.0 if kernel else idle_s + _TICK_S
            if kernel and seconds >= _DELAY_S:
                self._show(
                    f"compiling kernels, once for this machine: {ACTIVITY.compiled - compiled} "
                    f"in {seconds:.0f} s, now {kernel.rpartition('.')[2]}"
                )
            if not ACTIVITY.current:  # it may have ended since it was shown
                self._hide()

    def _show(self, text: str) -> None:
        self._is_shown = True
        if self.display(text):
            return
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif not self._is_noted:
            self._is_noted = True
            print(_NOTE, file=sys.stderr, flush=True)

    def _hide(self) -> None:
        if self._is_shown:
            self._is_shown = False
            if not self.display("") and sys.stderr.isatty():
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)


REPORT = CompileReport()
"""The report of this process, once `install` was called."""


def install() -> None:
    """Report compilations of this process from now on; idempotent."""
    if REPORT.note_activity not in ACTIVITY.listeners:
        ACTIVITY.listeners.append(REPORT.note_activity)
        exclude_from_deadlines(REPORT.seconds)
