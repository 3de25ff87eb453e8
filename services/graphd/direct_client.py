"""In-process graphd: a trainer runs graphd's handlers itself, over a cluster's storageds.

Merging and relabeling happen in the process that uses the results. A batch then crosses one
socket instead of two, and trainers do not share the cores of a graphd. The handlers are pure
functions of (version, request, seed), so the arrays equal those that a graphd returns. A graphd
supplies the routes and the totals of versions. It also serves every request that storageds
cannot."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from asterism_daemonkit.malloc_tuning import keep_freed_memory
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import TcpTransport
from asterism_daemonkit.rpc.transports import LocalTransport, PendingCall
from asterism_io.client_tls import TlsClient
from asterism_model.prices import Limits
from asterism_proto.errors import (
    AsterismError,
    Busy,
    Deadline,
    Forbidden,
    Stale,
    Unauthenticated,
    Unavailable,
)
from asterism_proto.methods import GRAPH, Method
from asterism_proto.transport import Content
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.service import GraphService
from graphd.kernel_warmup import compile_kernels
from graphd.routing.dispatch import Dispatcher, StoragedPool
from graphd.routing.routing_table import RoutingTable

logger = logging.getLogger(__name__)

_WRITE_METHODS = frozenset(GRAPH[name].path for name in ("write", "write_once", "find_nodes"))
"""Methods that need a graphd: small writes share loads there, and it calls metad."""
_REFRESH_S = 1.0
"""Maximum age of routes in seconds.

A request for a version that is no longer held fails with Stale and goes to a graphd.
"""
_CONNECT_TIMEOUT_S = 1.0
"""Seconds for the first connection to a storaged: a firewall may drop every packet."""
_PAUSE_S, _MAX_PAUSE_S = 2.0, 60.0

RouteSource = Callable[[int, float], graphd_pb.GetRoutesReply]
"""(known revision, seconds) -> a graphd's routes and limits, or an `AsterismError`."""
Guard = Callable[[], AbstractContextManager[None]]


class InProcessGraphd:
    """Serve the requests that need storageds only.

    Parameters
    ----------
    fetch_routes : callable
        Requests routes from a graphd.
    guard : callable
        Returns the context in which calls over gRPC are made. A process that may fork must not
        fork meanwhile.
    tls : TlsClient, optional
        TLS of the connections to storageds. Default: none.

    Notes
    -----
    This class has no thread: the caller of a request refreshes the routes if they are old. It
    therefore costs nothing while no request is made, and the process may fork. An instance
    belongs to the process that created it.
    """

    def __init__(
        self, fetch_routes: RouteSource, guard: Guard, *, tls: TlsClient | None = None
    ) -> None:
        compile_kernels()
        keep_freed_memory()
        self._fetch_routes, self._guard, self._tls = fetch_routes, guard, tls
        self._routing = RoutingTable()
        self._hosts = StoragedPool(self._connect)
        api = GraphService(
            routing=self._routing,
            dispatcher=Dispatcher(self._hosts),
            space_exists=_refuse_unknown,
            is_published=_refuse_unknown,
            committed_loads=_refuse_unknown,
            metad=LocalTransport({}),
            catch_up_s=0.0,  # a graphd waits for versions that are unknown here
        )
        self._versions = api.versions
        self._handlers: dict[str, Handler] = {
            path: handler for path, handler in api.handlers.items() if path not in _WRITE_METHODS
        }
        self._refresh_lock = threading.Lock()
        self._refresh_at = self._resume_at = 0.0
        self._ticket = ""
        """Credential of this process for storageds; empty if they need none."""
        self._renew_ticket_at = 0.0
        self._pause_s = _PAUSE_S

    def supports(self, method: Method) -> bool:
        """Return True if this object can serve the method."""
        return method.path in self._handlers

    def invalidate_routes(self) -> None:
        """Make the next call refresh the routes, after an action that may have changed them."""
        self._refresh_at = 0.0

    def call_context(self, timeout_s: float) -> CallContext:
        """Return the context of a call that ends ``timeout_s`` from now.

        The time in which this process compiles kernels does not count."""
        return CallContext.with_timeout(timeout_s)

    def try_call(self, method: Method, request: Content, call: CallContext) -> Content | None:
        """Return the reply, or None if the request must go to a graphd.

        Raises
        ------
        AsterismError
            If the request is wrong or not permitted, or Deadline.
        """
        handler = self._handlers.get(method.path)
        if handler is None or time.monotonic() < self._resume_at:
            return None
        try:
            self._refresh_routes(call)
            ticket = self._ticket
            try:
                reply = handler(request, call)
            except Unauthenticated:
                self._replace_ticket(ticket, call)
                reply = handler(request, call)
        except Deadline:
            raise
        except (Stale, Busy, Forbidden):
            self._renew_ticket_at = 0.0  # roles may have changed since the ticket was issued
            self.invalidate_routes()
            return None
        except Unavailable as error:
            self._pause(error)
            return None
        self._pause_s = _PAUSE_S
        return reply

    def close(self) -> None:
        """Close all connections."""
        self._hosts.close()

    def _refresh_routes(self, call: CallContext) -> None:
        """Refresh routes that are old; raise Unavailable if there have never been any.

        One caller refreshes; concurrent callers continue with the routes at hand.
        """
        has_routes = self._routing.has_reply
        if has_routes and time.monotonic() < self._refresh_at:
            return
        if not self._refresh_lock.acquire(
            blocking=not has_routes, timeout=-1 if has_routes else call.remaining()
        ):
            return
        try:
            if time.monotonic() < self._refresh_at:
                return
            self._refresh_at = time.monotonic() + _REFRESH_S
            self._apply_routes(
                self._fetch_routes(self._routing.revision, min(_REFRESH_S, call.remaining()))
            )
        except AsterismError as error:
            if not self._routing.has_reply:
                raise Unavailable(error.message) from error
            self._refresh_at = time.monotonic() + _PAUSE_S
        finally:
            self._refresh_lock.release()

    def _replace_ticket(self, refused: str, call: CallContext) -> None:
        """Fetch routes with a new ticket, unless another thread has replaced the refused one.

        Raises
        ------
        Unauthenticated
            If a graphd does not accept the credentials of this process.
        Unavailable
            If no graphd sends routes.
        """
        if not self._refresh_lock.acquire(timeout=call.remaining()):
            return
        try:
            if self._ticket == refused:
                self._renew_ticket_at = 0.0
                self._apply_routes(self._fetch_routes(self._routing.revision, call.remaining()))
        except Unauthenticated:
            raise
        except AsterismError as error:
            raise Unavailable(error.message) from error
        finally:
            self._refresh_lock.release()

    def _apply_routes(self, reply: graphd_pb.GetRoutesReply) -> None:
        if reply.HasField("limits"):  # graphds of older releases give none
            self._versions.limits = Limits(
                rows=reply.limits.rows,
                memory=reply.limits.memory_bytes,
                steps=reply.limits.steps,
            )
        # A ticket is kept for half of its validity, so that storageds verify few of them.
        if not self._ticket or time.monotonic() >= self._renew_ticket_at:
            self._ticket = reply.ticket
            self._renew_ticket_at = time.monotonic() + reply.ticket_s / 2
        if reply.HasField("desired_state"):
            # Addresses first: requests along the new routes must find their hosts.
            self._hosts.update_addresses(
                {host.uuid: host.address for host in reply.desired_state.storaged}
            )
            self._routing.apply_reply(reply.desired_state)

    def _pause(self, error: AsterismError) -> None:
        """Send calls to graphds for a while, and twice as long after each failure in a row.

        A failure during a pause does not extend it.
        """
        if time.monotonic() < self._resume_at:
            return
        self._resume_at = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _MAX_PAUSE_S)
        self.invalidate_routes()
        logger.info("storaged_unreachable", extra={"reason": error.message})

    def _connect(self, address: str) -> TcpTransport:
        """Return a transport to a storaged, after one successful connection."""
        transport = TcpTransport(
            address,
            _ForkSafeTransport(
                RemoteTransport(
                    address, role="storaged", tls=self._tls, credentials=self._current_ticket
                ),
                self._guard,
            ),
            tls=self._tls,
            credentials=self._current_ticket,
        )
        try:
            transport.return_connection(
                transport.take_connection(time.monotonic() + _CONNECT_TIMEOUT_S)[0]
            )
        except Unauthenticated:
            transport.close()
            raise
        except AsterismError as error:
            transport.close()
            raise Unavailable(
                f"storaged at {address} cannot be reached from this process: {error.message}"
            ) from error
        return transport

    def _current_ticket(self) -> str:
        return self._ticket


class _ForkSafeTransport:
    """gRPC transport for a process that may fork: it only looks up binary RPC endpoints."""

    def __init__(self, inner: RemoteTransport, guard: Guard) -> None:
        self._inner, self._guard = inner, guard

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Return the reply within ``timeout_s`` seconds, or raise an `AsterismError`."""
        with self._guard():
            return self._inner.call(method, request, timeout_s)

    def start(self, method: Method, request: Content, timeout_s: float) -> PendingCall:
        """Raise Unavailable: without a reachable binary RPC endpoint, requests go to graphds."""
        raise Unavailable(
            f"the binary RPC endpoint of storaged at {self._inner.address} cannot be reached"
        )

    def close(self) -> None:
        """Close the channel."""
        self._inner.close()


def _refuse_unknown(*_: Any) -> NoReturn:
    raise Stale("a process that reads storageds directly has no catalog; a graphd has")
