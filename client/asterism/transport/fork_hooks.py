"""Fork hooks of the client: a fork waits for active gRPC calls; a child renews its locks.

gRPC can be forked only while no thread is inside one of its calls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

MAX_FORK_WAIT_S = 5.0
"""Maximum seconds that a fork waits for active calls; then it forks regardless."""


class LockOwner(Protocol):
    """Object with a lock that a forked child must replace."""

    def renew_lock(self) -> None:
        """Replace the lock by a new, unlocked one."""


class ForkGuard:
    """Counter of active calls that blocks new calls while a fork waits or happens."""

    def __init__(self) -> None:
        self._reset()
        self._lock_owners: WeakSet[LockOwner] = WeakSet()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._active_calls = 0
        self._forks = 0

    def add_lock_owner(self, owner: LockOwner) -> None:
        """Renew the lock of an object in every forked child while the object lives."""
        self._lock_owners.add(owner)

    @contextmanager
    def call_scope(self) -> Iterator[None]:
        """Count a call as active; wait first if a fork is about to happen."""
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
        """Wait until no call is active, at most `MAX_FORK_WAIT_S` seconds."""
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: not self._active_calls, MAX_FORK_WAIT_S)

    def after_fork_in_parent(self) -> None:
        """Allow calls to start again."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Reset the counter and renew locks, because the parent's threads do not exist here."""
        self._reset()
        for owner in list(self._lock_owners):
            owner.renew_lock()


FORK_GUARD = ForkGuard()

os.register_at_fork(
    before=FORK_GUARD.before_fork,
    after_in_parent=FORK_GUARD.after_fork_in_parent,
    after_in_child=FORK_GUARD.after_fork_in_child,
)
