"""The board that daemons watch: one lock over metad's state, and a revision that grows with what they should know."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from asterism_proto.errors import Unavailable

_LOOK_S = 0.5
"""Longest single wait in `Board.wait_woken`, where a lease that ends wakes no waiter."""


class Board:
    """The revision of the desired state. Whoever reads or changes metad's state holds ``lock`` meanwhile."""

    def __init__(self, first: int) -> None:
        """Start at revision ``first``, which must be above those of every earlier process on the same store."""
        self.lock = threading.RLock()
        self._news = threading.Condition(self.lock)
        self._revision = first
        self._closed = False

    @property
    def revision(self) -> int:
        """The newest revision."""
        with self.lock:
            return self._revision

    def changed(self) -> None:
        """Something that daemons should know has changed: wake those who wait."""
        with self.lock:
            self._revision += 1
            self._news.notify_all()

    def wake(self) -> None:
        """Wake those who wait, without a new revision."""
        with self.lock:
            self._news.notify_all()

    def wait_woken(self, seconds: float) -> None:
        """Wait until something wakes, at most so long; the lock is let go of meanwhile. Unavailable at the close."""
        with self.lock:
            if self._closed:
                raise Unavailable("metad is stopping; ask again once it is back")
            self._news.wait(min(seconds, _LOOK_S))

    def wait_other(self, known: int, until: float, still_there: Callable[[], bool], on_end: Callable[[Callable[[], None]], object]) -> None:
        """Wait until the revision is not ``known``; metad does not wake for it meanwhile.

        A revision above the current one comes from a store that is gone: its holder needs the current state too.

        Parameters
        ----------
        known : int
            The revision that the caller has.
        until : float
            When to return at the latest, by time.monotonic().
        still_there : callable
            Returns whether the caller waits.
        on_end : callable
            Registers a function that is called when the caller hangs up (`daemonkit.calls.Call.on_end`).

        Raises
        ------
        Unavailable
            When metad stops.
        """
        parked = True

        def hung_up() -> None:
            if parked:  # a call that ends after its reply wakes no other waiter
                self.wake()

        on_end(hung_up)
        with self.lock:
            try:
                while self._revision == known and still_there():
                    if self._closed:
                        raise Unavailable("metad is stopping; ask again once it is back")
                    left = until - time.monotonic()
                    if left <= 0:
                        return
                    self._news.wait(left)
            finally:
                parked = False

    def close(self) -> None:
        """Send everybody home."""
        with self.lock:
            self._closed = True
            self._news.notify_all()
