"""End of gRPC calls that wait for a silent caller: for its message, or until it takes the reply."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SilentCallers:
    """Calls that wait for their caller, each with the time at which it is cancelled.

    A thread looks at them while there are any, and sleeps otherwise. Entering and leaving take
    about a microsecond.

    Parameters
    ----------
    interval_s : float
        Seconds between two looks.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[float, Callable[[], object]]] = {}
        """Time of the end, and function that cancels the call, by the number of a wait."""
        self._has_calls = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._watch, name="silent-callers", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._has_calls.set()

    def enter(self, cancel: Callable[[], object], seconds: float) -> int:
        """Return the number of a wait that is cancelled after some seconds."""
        number = next(self._numbers)
        self._waiting[number] = (time.monotonic() + seconds, cancel)
        if not self._has_calls.is_set():
            self._has_calls.set()
        return number

    def leave(self, number: int) -> None:
        """End a wait."""
        self._waiting.pop(number, None)

    @contextmanager
    def waiting(self, cancel: Callable[[], object], seconds: float) -> Iterator[None]:
        """Cancel a call if the body of the statement takes longer."""
        number = self.enter(cancel, seconds)
        try:
            yield
        finally:
            self.leave(number)

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self._has_calls.wait()
            self._stopped.wait(self._interval_s)
            now = time.monotonic()
            # a copy: callers enter and leave meanwhile
            for number, (until, cancel) in list(self._waiting.items()):
                if now >= until:
                    self.leave(number)
                    with contextlib.suppress(Exception):  # the call has ended
                        cancel()
            if not self._waiting:
                self._has_calls.clear()
                if self._waiting:  # entered just now
                    self._has_calls.set()
