"""Interfaces of transports between daemons, and the transport to handlers in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from asterism_access.principals import LOCAL, Principal
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_proto.errors import NotFound
from asterism_proto.methods import Method
from asterism_proto.transport import Content, Transport


def _local_principal() -> Principal:
    return LOCAL


TrafficCallback = Callable[[str, int, int], None]
"""Function called after each completed call with method, bytes sent and bytes received."""


def ignore_traffic(method: str, sent: int, received: int) -> None:
    """Ignore the traffic of a call; the default `TrafficCallback`."""


class PendingCall(Protocol):
    """A call in progress."""

    def result(self) -> Content:
        """Wait for the reply and return it, or raise its `AsterismError`."""

    def abandon(self) -> None:
        """Cancel the call and discard its reply."""


class ConcurrentTransport(Transport, Protocol):
    """A transport that can start a call without waiting for its reply: several hosts work."""

    def start(self, method: Method, request: Content, timeout_s: float) -> PendingCall:
        """Send a call and return at once.

        Parameters
        ----------
        method : Method
        request : message or Frame
        timeout_s : float
            Seconds until the deadline of the call.

        Returns
        -------
        PendingCall
            Read the reply with `PendingCall.result`.
        """


class DelegatingTransport(Transport, Protocol):
    """A transport that can make calls on behalf of a principal."""

    def on_behalf_of(self, principal: Principal) -> Transport:
        """Return a transport over the same connection for calls of a principal."""


class _LocalCall:
    """A local call, executed when its result is requested: it waits for no other host."""

    def __init__(self, run: Callable[[], Content]) -> None:
        self._run = run

    def result(self) -> Content:
        return self._run()

    def abandon(self) -> None:
        """No-op: the call has not started."""


class LocalTransport:
    """Calls to handlers in this process, without serialization or sockets.

    Parameters
    ----------
    handlers : mapping
        Handlers by method path.
    principal : callable, optional
        Returns the caller, such as `current_principal` in routes of HTTP. Default: `LOCAL`.
    """

    prices_requests = False
    piece_bytes = 40 << 20
    """Bytes of one piece of a reply that a client requests in pieces.

    As large as replies allow, because each piece is assembled with a copy."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        principal: Callable[[], Principal] = _local_principal,
    ) -> None:
        self._handlers = handlers
        """Handlers by method path."""
        self._principal = principal

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Return the handler's own reply, or raise its own error."""
        handler = self._handlers.get(method.path)
        if handler is None:
            raise NotFound(f"method={method.path}: this service does not have it")
        return handler(request, CallContext.with_timeout(timeout_s, self._principal()))

    def on_behalf_of(self, principal: Principal) -> LocalTransport:
        """Return a transport to the same handlers for the forwarded calls of a principal."""
        forwarded = replace(principal, is_forwarded=True)
        return LocalTransport(self._handlers, lambda: forwarded)

    def start(self, method: Method, request: Content, timeout_s: float) -> PendingCall:
        """Return a pending call that runs when its result is requested."""
        return _LocalCall(lambda: self.call(method, request, timeout_s))

    def close(self) -> None:
        """No-op: local calls own no resources."""


def handlers_of(methods: Mapping[str, Method], *apis: object) -> dict[str, Handler]:
    """Return the handlers of a service by method path.

    A method is served by the first of ``apis`` that has an attribute with its name."""
    return {
        method.path: getattr(next((api for api in apis if hasattr(api, name)), apis[-1]), name)
        for name, method in methods.items()
    }
