"""A trainer's own graphd: its rooms inside the process that wants the answers, over the storageds
of a cluster.

What a graphd would merge, number and send on is merged and numbered where it is used, so that a
batch crosses one socket instead of two, and trainers do not share a graphd's cores. Graphd's rooms
are pure functions of (version, request, seed): the arrays are those that a graphd answers with.
Where parts are, and what versions hold, a graphd tells; whatever can not be had from storageds is
for a graphd to answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from asterism_daemonkit.calls import CallContext, Handler, LocalTransport, PendingCall
from asterism_daemonkit.grpc_client import RemoteTransport
from asterism_daemonkit.malloc_tuning import keep_freed_memory
from asterism_daemonkit.tcp_client import TcpTransport
from asterism_model.prices import Limits
from asterism_proto.errors import AsterismError, Busy, Deadline, Stale, Unavailable
from asterism_proto.methods import GRAPH, Method
from asterism_proto.transport import Content
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.api.service import GraphService
from graphd.routing.dispatch import Dispatcher, StoragedPool
from graphd.routing.updates import RoutingTable
from graphd.warmup import compile_kernels

logger = logging.getLogger(__name__)

_WRITE_METHODS = frozenset(GRAPH[name].path for name in ("write", "write_once", "find_nodes"))
"""A graphd's: writes by themselves share loads there, and metad is asked what counts."""
_REFRESH_S = 1.0
"""How old routes may be. Whoever asks for what is not held any more is told so, and asks a
graphd.
"""
_CONNECT_TIMEOUT_S = 1.0
"""How long it may take to connect to a storaged for the first time: behind a firewall nobody
answers.
"""
_PAUSE_S, _MAX_PAUSE_S = 2.0, 60.0

RouteSource = Callable[[int, float], graphd_pb.GetRoutesReply]
"""(known revision, seconds): a graphd's routes and limits, or an `AsterismError`."""
Guard = Callable[[], AbstractContextManager[None]]


class InProcessGraphd:
    """Answers what can be asked of storageds.

    Parameters
    ----------
    fetch_routes : callable
        Asks a graphd for routes.
    guard : callable
        Gives the context that calls over gRPC are made in: of a process that may fork, which must
        not happen meanwhile.

    Notes
    -----
    It has no thread: whoever calls looks for news where what is known is old, so that it costs
    nothing while nobody samples, and the process may fork. It belongs to the process that made it.
    """

    def __init__(self, fetch_routes: RouteSource, guard: Guard) -> None:
        compile_kernels()
        keep_freed_memory()
        self._fetch_routes, self._guard = fetch_routes, guard
        self._routing = RoutingTable()
        self._hosts = StoragedPool(self._connect)
        api = GraphService(
            routing=self._routing,
            dispatcher=Dispatcher(self._hosts),
            space_exists=_refuse_unknown,
            is_published=_refuse_unknown,
            committed_loads=_refuse_unknown,
            metad=LocalTransport({}),
            catch_up_s=0.0,  # a graphd waits for what is not known here
        )
        self._versions = api.versions
        self._handlers: dict[str, Handler] = {
            path: handler for path, handler in api.handlers.items() if path not in _WRITE_METHODS
        }
        self._refresh_lock = threading.Lock()
        self._refresh_at = self._resume_at = 0.0
        self._pause_s = _PAUSE_S

    def supports(self, method: Method) -> bool:
        """Whether it ever answers this."""
        return method.path in self._handlers

    def invalidate_routes(self) -> None:
        """Something was done that may be news: the next call looks."""
        self._refresh_at = 0.0

    def try_call(self, method: Method, request: Content, timeout_s: float) -> Content | None:
        """The reply; None where a graphd is to be asked.

        Raises
        ------
        AsterismError
            What is wrong with the request, or Deadline.
        """
        handler, call = self._handlers.get(method.path), CallContext.with_timeout(timeout_s)
        if handler is None or time.monotonic() < self._resume_at:
            return None
        try:
            self._refresh_routes(call)
            reply = handler(request, call)
        except Deadline:
            raise
        except (Stale, Busy):
            self.invalidate_routes()
            return None
        except Unavailable as error:
            self._pause(error)
            return None
        self._pause_s = _PAUSE_S
        return reply

    def close(self) -> None:
        """Let go of all connections."""
        self._hosts.close()

    def _refresh_routes(self, call: CallContext) -> None:
        """Have news that are not old; Unavailable where there never were any. One caller looks,
        others go on with what there is.
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
            reply = self._fetch_routes(self._routing.revision, min(_REFRESH_S, call.remaining()))
            if reply.HasField("limits"):  # graphds of older releases give none
                self._versions.limits = Limits(
                    rows=reply.limits.rows,
                    memory=reply.limits.memory_bytes,
                    steps=reply.limits.steps,
                )
            if reply.HasField("desired_state"):
                # Addresses first: requests along the new routes must find their hosts.
                self._hosts.update_addresses(
                    {host.uuid: host.address for host in reply.desired_state.storaged}
                )
                self._routing.apply_reply(reply.desired_state)
        except AsterismError as error:
            if not self._routing.has_reply:
                raise Unavailable(error.message) from error
            self._refresh_at = time.monotonic() + _PAUSE_S
        finally:
            self._refresh_lock.release()

    def _pause(self, error: AsterismError) -> None:
        """Leave calls to graphds for a while, and for a longer one each time in a row; whoever
        fails beside others has nothing to add.
        """
        if time.monotonic() < self._resume_at:
            return
        self._resume_at = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _MAX_PAUSE_S)
        self.invalidate_routes()
        logger.info("storaged_unreachable", extra={"reason": error.message})

    def _connect(self, address: str) -> TcpTransport:
        """A way to a storaged, once it has been gone."""
        transport = TcpTransport(address, _ForkSafeTransport(RemoteTransport(address), self._guard))
        try:
            transport.return_connection(
                transport.take_connection(time.monotonic() + _CONNECT_TIMEOUT_S)[0]
            )
        except AsterismError as error:
            transport.close()
            raise Unavailable(
                f"storaged at {address} is not reached from here: {error.message}"
            ) from error
        return transport


class _ForkSafeTransport:
    """Calls over gRPC of a process that may fork: only the one that asks where a stream door is."""

    def __init__(self, inner: RemoteTransport, guard: Guard) -> None:
        self._inner, self._guard = inner, guard

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The reply, within ``timeout_s`` seconds, or an `AsterismError`."""
        with self._guard():
            return self._inner.call(method, request, timeout_s)

    def start(self, method: Method, request: Content, timeout_s: float) -> PendingCall:
        """Refused: a storaged whose stream door is not reached is left to graphds."""
        raise Unavailable(f"the stream door of {self._inner.address} is not reached")

    def close(self) -> None:
        """Close the channel."""
        self._inner.close()


def _refuse_unknown(*_: Any) -> NoReturn:
    raise Stale("it may have been made a moment ago; a graphd knows")
