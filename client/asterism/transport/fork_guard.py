"""A gate that calls go through and that a fork waits at: gRPC can be forked only while no thread is
inside a call of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MAX_FORK_WAIT_S = 5.0
"""What a fork waits for calls under way; then it forks all the same."""


class _ForkGuard:
    """Counts who is inside a call, and lets nobody in while a fork waits or happens."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._active_calls = 0
        self._forks = 0

    @contextmanager
    def call_scope(self) -> Iterator[None]:
        """Be inside, where no fork is about to happen."""
        with self._changed:
            self._changed.wait_for(lambda: not self._forks)
            self._active_calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._active_calls -= 1
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until nobody is inside."""
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: not self._active_calls, MAX_FORK_WAIT_S)

    def after_fork(self) -> None:
        """The fork has happened, in the parent."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()


FORK_GUARD = _ForkGuard()

# A child has none of its parent's threads: nobody is inside, whatever the gate says.
os.register_at_fork(
    before=FORK_GUARD.before_fork,
    after_in_parent=FORK_GUARD.after_fork,
    after_in_child=FORK_GUARD.__init__,  # type: ignore[misc]
)
