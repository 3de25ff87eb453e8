"""A call as handlers see it: what is left of its time, and whether anybody still waits.

A handler is a plain function ``(request, call) -> reply``, where both are a `Frame` for framed
methods and a message otherwise (`asterism_proto.methods`). The same function answers gRPC
(`asterism_daemonkit.grpc_server`) and in-process callers (`LocalTransport`), so that both give the
same bytes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from asterism_proto.errors import Deadline, NotFound
from asterism_proto.methods import Method
from asterism_proto.transport import Content, Transport


@dataclass(frozen=True, slots=True)
class CallContext:
    """The circumstances of one call."""

    deadline: float
    """On time.monotonic()'s clock; every call has one."""
    is_active: Callable[[], bool] = field(default=lambda: True)
    """False once the caller hung up."""
    on_end: Callable[[Callable[[], None]], object] = field(default=lambda _: None)
    """Register a function to call once the call has ended, by a hang-up too; from another thread.
    Local calls do not hang up.
    """

    @classmethod
    def with_timeout(cls, seconds: float) -> CallContext:
        """A call that ends ``seconds`` from now."""
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left; Deadline when there are none, or when the caller hung up."""
        remaining_s = self.deadline - time.monotonic()
        if remaining_s <= 0 or not self.is_active():
            raise Deadline("the call's time is up; ask for less, or with a longer timeout")
        return remaining_s


Handler = Callable[..., Content]
"""``(request, call) -> reply``."""


TrafficCallback = Callable[[str, int, int], None]
"""Told of each call that was answered: its method, bytes sent, bytes received."""


def ignore_traffic(method: str, sent: int, received: int) -> None:
    """A tally that nobody reads."""


class PendingCall(Protocol):
    """A call under way."""

    def result(self) -> Content:
        """Its reply, or its `AsterismError`; waits for it."""

    def abandon(self) -> None:
        """Nobody will ask for its result."""


class ConcurrentTransport(Transport, Protocol):
    """A transport that sends calls to several hosts before the first reply is read."""

    def start(self, method: Method, request: Content, timeout_s: float) -> PendingCall:
        """Send a call and return at once; its reply is read with `PendingCall.result`."""


class _LocalCall:
    """A local call: made when its result is asked for, for there is nobody to overlap with."""

    def __init__(self, run: Callable[[], Content]) -> None:
        self._run = run

    def result(self) -> Content:
        return self._run()

    def abandon(self) -> None:
        """It was not begun."""


class LocalTransport:
    """Calls to handlers in this process: no bytes are made, no socket is touched."""

    piece_bytes = 40 << 20
    """Of an answer that a client asks for in pieces: as large as replies allow, for a piece is put
    together with a copy.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        """By method path."""

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The handler's own reply, or its own error."""
        handler = self._handlers.get(method.path)
        if handler is None:
            raise NotFound(f"{method.path}: this service does not answer it")
        return handler(request, CallContext.with_timeout(timeout_s))

    def start(self, method: Method, request: Content, timeout_s: float) -> PendingCall:
        """The same call, made when its result is asked for."""
        return _LocalCall(lambda: self.call(method, request, timeout_s))

    def close(self) -> None:
        """Nothing is held."""


def handlers_of(methods: Mapping[str, Method], *apis: object) -> dict[str, Handler]:
    """The handlers of a service by path: the methods that bear the table's names, of the first of
    ``apis`` that has one.
    """
    return {
        method.path: getattr(next((api for api in apis if hasattr(api, name)), apis[-1]), name)
        for name, method in methods.items()
    }
