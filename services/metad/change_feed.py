"""The board that daemons watch: one lock over metad's state, and a revision that grows with what
they should know.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from asterism_proto.errors import Unavailable


class ChangeFeed:
    """The revision of the desired state. Whoever reads or changes metad's state holds ``lock``
    meanwhile.
    """

    def __init__(self, first_revision: int) -> None:
        """Start at revision ``first_revision``, which must be above those of every earlier process
        on the same store.
        """
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._revision = first_revision
        self._closed = False

    @property
    def revision(self) -> int:
        """The newest revision."""
        with self.lock:
            return self._revision

    def advance(self) -> None:
        """Something that daemons should know has changed: wake those who wait."""
        with self.lock:
            self._revision += 1
            self._changed.notify_all()

    def wake_waiters(self) -> None:
        """Wake those who wait, without a new revision."""
        with self.lock:
            self._changed.notify_all()

    def wait_for_wakeup(self, seconds: float) -> None:
        """Wait until something wakes, at most so long; the lock is let go of meanwhile. Unavailable
        at the close.
        """
        with self.lock:
            if self._closed:
                raise Unavailable("metad is stopping; ask again once it is back")
            self._changed.wait(seconds)

    def wait_for_change(
        self,
        known_revision: int,
        deadline: float,
        is_active: Callable[[], bool],
        on_end: Callable[[Callable[[], None]], object],
    ) -> None:
        """Wait until the revision is not ``known_revision``; metad does not wake for it meanwhile.

        A revision above the current one comes from a store that is gone: its holder needs the
        current state too.

        Parameters
        ----------
        known_revision : int
            The revision that the caller has.
        deadline : float
            When to return at the latest, by time.monotonic().
        is_active : callable
            Returns whether the caller waits.
        on_end : callable
            Registers a function that is called when the caller hangs up
            (`asterism_daemonkit.calls.CallContext.on_end`).

        Raises
        ------
        Unavailable
            When metad stops.
        """
        is_waiting = True

        def on_hang_up() -> None:
            if is_waiting:  # a call that ends after its reply wakes no other waiter
                self.wake_waiters()

        on_end(on_hang_up)
        with self.lock:
            try:
                while self._revision == known_revision and is_active():
                    if self._closed:
                        raise Unavailable("metad is stopping; ask again once it is back")
                    remaining_s = deadline - time.monotonic()
                    if remaining_s <= 0:
                        return
                    self._changed.wait(remaining_s)
            finally:
                is_waiting = False

    def close(self) -> None:
        """Send everybody home."""
        with self.lock:
            self._closed = True
            self._changed.notify_all()
