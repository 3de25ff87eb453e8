"""Change feed: one lock over metad's state, and the revision of the desired state.

Daemons watch the revision with long polls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from asterism_proto.errors import Unavailable


class ChangeFeed:
    """Revision of the desired state, and the lock that guards all state of metad.

    Hold ``lock`` while reading or changing metad's state."""

    def __init__(self, first_revision: int) -> None:
        """Start at ``first_revision``.

        It must exceed the revisions of every earlier process on the same store."""
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._revision = first_revision
        self._closed = False

    @property
    def revision(self) -> int:
        """Newest revision."""
        with self.lock:
            return self._revision

    def advance(self) -> None:
        """Begin a new revision after a change that daemons must see, and wake all waiters."""
        with self.lock:
            self._revision += 1
            self._changed.notify_all()

    def wake_waiters(self) -> None:
        """Wake all waiters without a new revision."""
        with self.lock:
            self._changed.notify_all()

    def wait_for_wakeup(self, seconds: float) -> None:
        """Wait for a wake-up, at most ``seconds``; the lock is released meanwhile.

        Raises
        ------
        Unavailable
            If the feed is closed.
        """
        with self.lock:
            if self._closed:
                raise Unavailable("metad is stopping; try again when it has restarted")
            self._changed.wait(seconds)

    def wait_for_change(
        self,
        known_revision: int,
        deadline: float,
        is_active: Callable[[], bool],
        on_end: Callable[[Callable[[], None]], object],
    ) -> None:
        """Wait until the revision differs from ``known_revision``.

        A revision above the current one comes from a store that is gone: its holder needs the
        current state too.

        Parameters
        ----------
        known_revision : int
            The revision that the caller has.
        deadline : float
            Latest time to return, by time.monotonic().
        is_active : callable
            Returns whether the caller still waits.
        on_end : callable
            Registers a function to call when the caller hangs up
            (`asterism_daemonkit.rpc.call_context.CallContext.on_end`).

        Raises
        ------
        Unavailable
            If metad stops.
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
                        raise Unavailable("metad is stopping; try again when it has restarted")
                    remaining_s = deadline - time.monotonic()
                    if remaining_s <= 0:
                        return
                    self._changed.wait(remaining_s)
            finally:
                is_waiting = False

    def close(self) -> None:
        """Close the feed and wake all waiters; further waits raise Unavailable."""
        with self.lock:
            self._closed = True
            self._changed.notify_all()
