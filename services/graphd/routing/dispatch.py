"""Dispatch of requests to storageds: one call per host, all started before the first wait.

Each call gets the remaining time of the request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from google.protobuf.message import Message

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.transports import ConcurrentTransport, PendingCall
from asterism_proto.errors import (
    AsterismError,
    Conflict,
    Internal,
    InvalidRequest,
    NotFound,
    NotReady,
    Stale,
    Unavailable,
)
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE, Method
from asterism_proto.transport import Content
from graphd.routing.routes import SpaceRoute

_MAX_NAMED_PARTS = 8
"""Maximum number of partitions that a message lists."""
_CALLER_ERRORS = (InvalidRequest, NotFound, NotReady, Conflict)
"""Errors of the request itself: every storaged would refuse it, so no host is named."""


class StoragedPool:
    """Pool of storageds by uuid. Transports open on first use.

    Parameters
    ----------
    connect : callable
        Returns a transport to an address.
    """

    def __init__(self, connect: Callable[[str], ConcurrentTransport]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._addresses: dict[str, str] = {}
        self._transports: dict[str, ConcurrentTransport] = {}

    def update_addresses(self, addresses: Mapping[str, str]) -> None:
        """Replace the address of each host; close transports to addresses no longer in use."""
        with self._lock:
            self._addresses = dict(addresses)
            stale_addresses = [
                address for address in self._transports if address not in addresses.values()
            ]
            stale_transports = [self._transports.pop(address) for address in stale_addresses]
        for transport in stale_transports:
            transport.close()

    def address(self, uuid: str) -> str:
        """Return the address of a host; raise Unavailable if metad has not sent one."""
        address = self._addresses.get(uuid)
        if address is None:
            raise Unavailable(
                "their storaged has not reported to metad yet; start it, or try again in a moment"
            )
        return address

    def transport(self, uuid: str) -> ConcurrentTransport:
        """Return the transport to a host."""
        address = self.address(uuid)
        with self._lock:
            transport = self._transports.get(address)
            if transport is None:
                transport = self._transports[address] = self._connect(address)
        return transport

    def close(self) -> None:
        """Close all transports."""
        with self._lock:
            transports, self._transports = list(self._transports.values()), {}
        for transport in transports:
            transport.close()


class _CompletedCall:
    """Call that completed at once; `result` returns its reply or raises its error."""

    def __init__(self, make_call: Callable[[], Content]) -> None:
        self._reply: Content | None = None
        self._error: AsterismError | None = None
        try:
            self._reply = make_call()
        except AsterismError as error:
            self._error = error

    def result(self) -> Content:
        if self._reply is None:
            raise self._error or Internal("a call ended without a result")
        return self._reply

    def abandon(self) -> None:
        """Do nothing: the call has completed."""


class Dispatcher:
    """Send requests to the hosts of a space.

    Parameters
    ----------
    pool : StoragedPool
    on_dispatch : callable
        Called with the method name at each dispatch.

    Notes
    -----
    One failed reply fails the request: a sample without the share of a partition would be wrong.
    """

    def __init__(
        self, pool: StoragedPool, on_dispatch: Callable[[str], None] = lambda method: None
    ) -> None:
        self._pool = pool
        self._on_dispatch = on_dispatch

    def dispatch(
        self,
        name: str,
        space: SpaceRoute,
        requests: Iterable[tuple[int, Frame[Message]]],
        call: CallContext,
    ) -> list[Frame[Message]]:
        """Return the replies to (host, request) pairs, in their order.

        Raises
        ------
        AsterismError
            The first error in the order of the requests. Stale takes precedence. If a host is at
            fault and not the request, the message names its address; if the host does not respond,
            also the space and the partitions.
        """
        method = STORE[name]
        self._on_dispatch(method.name)
        host_requests = list(requests)
        pending_calls: list[tuple[int, PendingCall]] = []
        replies: list[Frame[Message]] = []
        first_error: AsterismError | None = None
        try:
            for host, request in host_requests[:-1]:
                pending_calls.append((host, self._start(method, space, host, request, call)))
            # This thread would only wait for the other calls, so it makes the last call itself.
            pending_calls += [
                (
                    host,
                    _CompletedCall(partial(self._make, method, space.hosts[host], request, call)),
                )
                for host, request in host_requests[-1:]
            ]
            while pending_calls:
                host, pending = pending_calls.pop(0)
                try:
                    reply = pending.result()
                except Stale:
                    raise
                except AsterismError as error:
                    first_error = first_error or self._with_host(error, space, host)
                    continue
                if not isinstance(reply, Frame):
                    raise Internal(
                        f"{method.name}: storaged at {self.address(space.hosts[host])} sent a "
                        "reply without a frame; run all daemons on the same release"
                    )
                replies.append(reply)
        finally:
            for _, pending in pending_calls:
                pending.abandon()
        if first_error is not None:
            raise first_error
        return replies

    def address(self, uuid: str) -> str:
        """Return the address of a host for messages, or "" if metad has not sent one."""
        try:
            return self._pool.address(uuid)
        except Unavailable:
            return ""

    def _start(
        self,
        method: Method,
        space: SpaceRoute,
        host: int,
        request: Frame[Message],
        call: CallContext,
    ) -> PendingCall:
        try:
            return self._pool.transport(space.hosts[host]).start(method, request, call.remaining())
        except AsterismError as error:
            raise self._with_host(error, space, host) from error

    def _make(
        self, method: Method, uuid: str, request: Frame[Message], call: CallContext
    ) -> Content:
        return self._pool.transport(uuid).call(method, request, call.remaining())

    def _with_host(self, error: AsterismError, space: SpaceRoute, host: int) -> AsterismError:
        """Return the same error; if a host is at fault, with the host in its message."""
        if isinstance(error, _CALLER_ERRORS):
            return error
        message, address = error.message, self.address(space.hosts[host])
        if address and address not in message:
            message = f"storaged at {address}: {message}"
        if isinstance(error, Unavailable):
            message = f"space {space.name!r}, {_parts_text(space.parts_of(host))}: {message}"
        return type(error)(message, error.place)


def _parts_text(parts: list[int]) -> str:
    listed = ", ".join(map(str, parts[:_MAX_NAMED_PARTS]))
    if len(parts) > _MAX_NAMED_PARTS:
        listed += f" and {len(parts) - _MAX_NAMED_PARTS} more"
    return f"partition{'s' if len(parts) != 1 else ''} {listed}"
