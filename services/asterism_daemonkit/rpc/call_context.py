"""Calls as handlers see them: remaining time, and whether the caller still waits.

A handler is a plain function ``(request, call) -> reply``. Both request and reply are a `Frame`
for framed methods and a message otherwise (`asterism_proto.methods`). The same function serves
gRPC (`asterism_daemonkit.rpc.grpc_server`) and callers in the same process
(`asterism_daemonkit.rpc.transports.LocalTransport`), so both return the same bytes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from asterism_access.principals import LOCAL, Principal
from asterism_proto.errors import Deadline
from asterism_proto.transport import Content

OUT_OF_TIME = "the timeout of the call has passed; send a smaller request, or set a longer timeout"
"""Message of `Deadline` where nothing more is known."""
_excluded_s: Callable[[], float] = float
"""Function that returns the seconds, so far, that do not count towards deadlines."""


_request_principal: ContextVar[Principal] = ContextVar("request_principal", default=LOCAL)
_request_peer: ContextVar[Callable[[], str]] = ContextVar("request_peer", default=str)
_request_turn: ContextVar[RunningTurn | None] = ContextVar("request_turn", default=None)


def exclude_from_deadlines(seconds: Callable[[], float]) -> None:
    """Do not count some time of this process towards the deadlines of calls.

    Parameters
    ----------
    seconds : callable
        Returns the excluded seconds since the process started. It never decreases.
    """
    global _excluded_s
    _excluded_s = seconds


@dataclass(frozen=True, slots=True)
class CallContext:
    """Context of one call."""

    deadline: float
    """Deadline on the clock of time.monotonic(); every call has one."""
    is_active: Callable[[], bool] = field(default=lambda: True)
    """Function that returns False once the caller has hung up."""
    on_end: Callable[[Callable[[], None]], object] = field(default=lambda _: None)
    """Function that registers a callback for the end of the call, including a hang-up.

    The callback runs in another thread. Local calls do not hang up."""
    excluded_s: float = field(default_factory=lambda: _excluded_s())
    """Excluded seconds when the call started; see `exclude_from_deadlines`."""
    principal: Principal = LOCAL
    """Caller, as the server authenticated it. Calls within the process are `LOCAL`."""
    peer: Callable[[], str] = field(default_factory=lambda: _request_peer.get())
    """Function that returns the address of the caller; empty for calls within the process.

    Default: the caller of the HTTP request that this code serves."""

    @classmethod
    def with_timeout(cls, seconds: float, principal: Principal = LOCAL) -> CallContext:
        """Return the context of a principal's call that ends ``seconds`` from now."""
        return cls(time.monotonic() + seconds, principal=principal)

    def remaining(self) -> float:
        """Return the seconds left; Deadline if there are none or the caller hung up."""
        remaining_s = self.deadline - time.monotonic() + _excluded_s() - self.excluded_s
        if remaining_s <= 0 or not self.is_active():
            raise Deadline(OUT_OF_TIME)
        return remaining_s


class RunningTurn(Protocol):
    """Turn of the call that a thread runs; see `asterism_daemonkit.rpc.fair_pool`."""

    def pause(self) -> None:
        """Let another call start, because this one waits and needs no processor."""

    def resume(self) -> None:
        """Continue; this does not wait for a turn."""


class _ThreadState(threading.local):
    turn: RunningTurn | None = None


_thread = _ThreadState()


def exchange_running_turn(turn: RunningTurn | None) -> RunningTurn | None:
    """Set the turn of the call that this thread runs, and return the one before."""
    before, _thread.turn = _thread.turn, turn
    return before


@contextmanager
def waiting() -> Iterator[None]:
    """Wait for something other than the processor, such as a reply of another daemon.

    Other calls may start meanwhile. Outside of a call with a turn, this has no effect."""
    turn, _thread.turn = _thread.turn, None
    if turn is None:
        with _request_waiting():
            yield
        return
    turn.pause()
    try:
        yield
    finally:
        turn.resume()
        _thread.turn = turn


@contextmanager
def _request_waiting() -> Iterator[None]:
    """Wait in a thread of a route; see `serving_turn`."""
    turn = _request_turn.get()
    if turn is None:
        yield
        return
    token = _request_turn.set(None)
    turn.pause()
    try:
        yield
    finally:
        turn.resume()
        _request_turn.reset(token)


@contextmanager
def serving_turn(turn: RunningTurn) -> Iterator[None]:
    """Serve an HTTP request with a turn; threads that its route starts pause it (`waiting`)."""
    token = _request_turn.set(turn)
    try:
        yield
    finally:
        _request_turn.reset(token)


def current_principal() -> Principal:
    """Return the caller of the HTTP request that this code serves; `LOCAL` outside of one."""
    return _request_principal.get()


def current_peer() -> str:
    """Return the address of the caller of the HTTP request that this code serves, or empty."""
    return _request_peer.get()()


@contextmanager
def serving(principal: Principal, peer: Callable[[], str] = str) -> Iterator[None]:
    """Serve an HTTP request of a principal; threads that its route starts see it too.

    Parameters
    ----------
    principal : Principal
    peer : callable
        Returns the address of the caller.
    """
    principal_token, peer_token = _request_principal.set(principal), _request_peer.set(peer)
    try:
        yield
    finally:
        _request_peer.reset(peer_token)
        _request_principal.reset(principal_token)


Handler = Callable[..., Content]
"""Function ``(request, call) -> reply``."""
