"""Line at a terminal that says what a command is doing, while it has nothing else to show."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

_DELAY_S, _TICK_S = 1.0, 0.25
_MAX_COLUMNS = 200


class ActivityLine:
    """Line on standard error with an activity and its seconds, from one second on.

    The block that it wraps shows nothing else. At its end, the line is removed. Where standard
    error is not a terminal, nothing is shown. Enter an object once.

    Parameters
    ----------
    activity : str
        What the command is doing, such as ``opening graphs``.
    stream : TextIO, optional
        Terminal; default ``sys.stderr``.
    delay_s : float
        Seconds before the line appears. Default 1.
    """

    def __init__(
        self, activity: str, *, stream: TextIO | None = None, delay_s: float = _DELAY_S
    ) -> None:
        self._activity, self._delay_s = activity, delay_s
        self._stream = sys.stderr if stream is None else stream
        self._details = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        # `sys.stderr` is None in a process that started with it closed.
        if self._stream is not None and self._stream.isatty():
            self._thread = threading.Thread(target=self._run, name="activity", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def show(self, details: str) -> bool:
        """Show other text in place of the activity, or the activity again if it is empty.

        Return False if nothing will be shown: there is no terminal, or the line has ended.
        """
        self._details = details
        return self._thread is not None

    def end(self) -> None:
        """Remove the line; idempotent. No thread is left, so that the process may fork."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        started_s = time.monotonic()
        is_shown = False
        try:
            pause_s = self._delay_s
            while not self._ended.wait(pause_s):
                pause_s, is_shown = _TICK_S, True
                seconds = time.monotonic() - started_s
                text = self._details or f"{self._activity}: {seconds:.0f} s"
                self._stream.write(f"\r\x1b[K{text[: _columns(self._stream) - 1]}")
                self._stream.flush()
            if is_shown:
                self._stream.write("\r\x1b[K")
                self._stream.flush()
        except (OSError, ValueError):  # the terminal is closed
            pass


def _columns(stream: TextIO) -> int:
    """Return the width of a terminal: longer lines could not be removed."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or _MAX_COLUMNS
    except (OSError, ValueError):
        return _MAX_COLUMNS
