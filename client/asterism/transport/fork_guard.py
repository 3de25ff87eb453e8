"""Fork hooks of the client: a fork waits for gRPC calls under way; a child renews its locks.

gRPC can be forked only while no thread is inside a call of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

MAX_FORK_WAIT_S = 5.0
"""The longest time that a fork waits for calls under way; then it forks all the same."""


class LockOwner(Protocol):
    """An object with a lock that a forked child needs as well."""

    def renew_lock(self) -> None:
        """Replace the lock by one that is free."""


class ForkGuard:
    """Count calls under way, and start none while a fork waits or happens."""

    def __init__(self) -> None:
        self._reset()
        self._lock_owners: WeakSet[LockOwner] = WeakSet()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._active_calls = 0
        self._forks = 0

    def add_lock_owner(self, owner: LockOwner) -> None:
        """Renew the lock of an object in every child that is forked while the object lives."""
        self._lock_owners.add(owner)

    @contextmanager
    def call_scope(self) -> Iterator[None]:
        """Count one call, once no fork is about to happen."""
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
        """Wait until no call is under way."""
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: not self._active_calls, MAX_FORK_WAIT_S)

    def after_fork_in_parent(self) -> None:
        """Let calls start again."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Forget the parent's calls and locks: the child has none of the parent's threads."""
        self._reset()
        for owner in list(self._lock_owners):
            owner.renew_lock()


FORK_GUARD = ForkGuard()

os.register_at_fork(
    before=FORK_GUARD.before_fork,
    after_in_parent=FORK_GUARD.after_fork_in_parent,
    after_in_child=FORK_GUARD.after_fork_in_child,
)
