"""Progress lines of a build, written about twice a second whatever the build is doing."""

from __future__ import annotations

import json
import threading
from types import TracebackType
from typing import Any, TextIO

from asterism_graphkit.compile.activity import ACTIVITY


class ProgressReporter:
    """Row counter that writes JSON lines from a separate thread.

    Kernels and RocksDB calls may take longer than a heartbeat interval.
    """

    def __init__(self, out: TextIO, interval_s: float = 0.4) -> None:
        self._out, self._interval_s = out, interval_s
        self._phase, self._done, self._total = "plan", 0, 0
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> ProgressReporter:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._finished.set()
        self._thread.join()

    def add_total(self, rows: int) -> None:
        """Add rows to the expected total."""
        with self._lock:
            self._total += rows

    def phase(self, name: str) -> None:
        """Set the current phase, in a word or two."""
        with self._lock:
            self._phase = name

    def step(self, rows: int) -> None:
        """Count rows as done."""
        with self._lock:
            self._done += rows

    @property
    def rows_done(self) -> int:
        """Rows done so far."""
        return self._done

    def write_line(self, line: dict[str, Any]) -> None:
        """Write one line."""
        with self._writing:
            self._out.write(json.dumps(line, separators=(",", ":")) + "\n")
            self._out.flush()

    def _run(self) -> None:
        """Write a line at the start, one at each interval, and one at the end.

        The last line includes work that was done after the last interval.
        """
        self._write_counts()
        while not self._finished.wait(self._interval_s):
            self._write_counts()
        self._write_counts()

    def _write_counts(self) -> None:
        with self._lock:
            line = {
                "phase": "compiling kernels" if ACTIVITY.current else self._phase,
                "rows_done": min(self._done, self._total),
                "rows_total": self._total,
            }
        self.write_line(line)
