"""Tests of the client's fork hooks, called in the order of a fork."""

from __future__ import annotations

import threading

from asterism.client_state import Session
from asterism.transport.fork_hooks import ForkGuard
from asterism.transport.grpc import GrpcTransport


def test_child_does_not_wait_for_calls_of_the_parent() -> None:
    guard = ForkGuard()
    guard.call_scope().__enter__()  # in a thread that the child does not have
    guard.after_fork_in_child()
    guard.before_fork()
    assert guard._active_calls == 0


def test_parent_starts_calls_after_the_fork() -> None:
    guard = ForkGuard()
    guard.before_fork()
    started = threading.Event()

    def call() -> None:
        with guard.call_scope():
            started.set()

    thread = threading.Thread(target=call)
    thread.start()
    assert not started.is_set()
    guard.after_fork_in_parent()
    thread.join()
    assert started.is_set()


def test_child_has_free_locks_where_the_parent_held_some() -> None:
    guard, transport = ForkGuard(), GrpcTransport("127.0.0.1:1")
    session = Session(transport, 1.0)
    guard.add_lock_owner(transport)
    guard.add_lock_owner(session)
    transport._lock.acquire()
    session._lock.acquire()
    guard.after_fork_in_child()
    assert not transport._lock.locked()
    assert not session._lock.locked()
