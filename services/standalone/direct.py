"""A trainer's own graphd: its rooms inside the process that wants the answers, over the storageds of a cluster.

What a graphd would merge, number and send on is merged and numbered where it is used, so that a batch crosses one socket
instead of two, and trainers do not share a graphd's cores. Graphd's rooms are pure functions of (version, request, seed):
the arrays are those that a graphd answers with. Where parts are, and what versions hold, a graphd tells; whatever can not
be had from storageds is for a graphd to answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from asterism_proto.errors import AsterismError, Busy, Deadline, Stale, Unavailable
from asterism_proto.methods import GRAPH, Method
from asterism_proto.prices import Limits
from asterism_proto.v1 import graphd_pb2 as wire
from daemonkit.calls import Call, Content, Handler, LocalTransport, Pending
from daemonkit.channels import RemoteTransport
from daemonkit.streams import StreamTransport
from graphd.api import GraphApi
from graphd.fanout import Fanout, Hosts
from graphd.news import News
from graphd.warm import warm
from standalone.memory import keep_freed

logger = logging.getLogger(__name__)

_WRITES = frozenset(("write", "write_once", "find_nodes"))
"""A graphd's: writes by themselves share loads there, and metad is asked what counts."""
_LOOK_S = 1.0
"""How old routes may be. Whoever asks for what is not held any more is told so, and asks a graphd."""
_REACH_S = 1.0
"""How long it may take to connect to a storaged for the first time: behind a firewall nobody answers."""
_REST_S, _LONGEST_REST_S = 2.0, 60.0

Told = Callable[[int, float], wire.GetRoutesReply]
"""(known revision, seconds): a graphd's routes and limits, or an `AsterismError`."""
Guard = Callable[[], AbstractContextManager[None]]


class Direct:
    """Answers what can be asked of storageds.

    Parameters
    ----------
    told : callable
        Asks a graphd for routes.
    guard : callable
        Gives the context that calls over gRPC are made in: of a process that may fork, which must not happen meanwhile.

    Notes
    -----
    It has no thread: whoever calls looks for news where what is known is old, so that it costs nothing while nobody samples, and
    the process may fork. It belongs to the process that made it.
    """

    def __init__(self, told: Told, guard: Guard) -> None:
        warm()
        keep_freed()
        self._told, self._guard = told, guard
        self._news = News()
        self._hosts = Hosts(self._connect)
        self._api = api = GraphApi(
            news=self._news,
            fanout=Fanout(self._hosts),
            exists=_unknown,
            published=_unknown,
            committed=_unknown,
            metad=LocalTransport({}),
            catch_up_s=0.0,  # a graphd waits for what is not known here
        )
        self._handlers: dict[str, Handler] = {
            method.path: getattr(api, name) for name, method in GRAPH.items() if name not in _WRITES and hasattr(api, name)
        }
        self._looking = threading.Lock()
        self._look_at = self._rest_until = 0.0
        self._rest_s = _REST_S

    def answers(self, method: Method) -> bool:
        """Whether it ever answers this."""
        return method.path in self._handlers

    def changed(self) -> None:
        """Something was done that may be news: the next call looks."""
        self._look_at = 0.0

    def answer(self, method: Method, request: Content, timeout_s: float) -> Content | None:
        """The reply; None where a graphd is to be asked.

        Raises
        ------
        AsterismError
            What is wrong with the request, or Deadline.
        """
        handler, call = self._handlers.get(method.path), Call.within(timeout_s)
        if handler is None or time.monotonic() < self._rest_until:
            return None
        try:
            self._look(call)
            reply = handler(request, call)
        except Deadline:
            raise
        except (Stale, Busy):
            self.changed()
            return None
        except Unavailable as error:
            self._rest(error)
            return None
        self._rest_s = _REST_S
        return reply

    def close(self) -> None:
        """Let go of all connections."""
        self._hosts.close()

    def _look(self, call: Call) -> None:
        """Have news that are not old; Unavailable where there never were any. One caller looks, others go on with what there is."""
        known = self._news.heard
        if known and time.monotonic() < self._look_at:
            return
        if not self._looking.acquire(blocking=not known, timeout=-1 if known else call.remaining()):
            return
        try:
            if time.monotonic() < self._look_at:
                return
            self._look_at = time.monotonic() + _LOOK_S
            reply = self._told(self._news.revision, min(_LOOK_S, call.remaining()))
            if reply.HasField("limits"):  # graphds of older releases give none
                self._api.limits = Limits(rows=reply.limits.rows, memory=reply.limits.memory_bytes, steps=reply.limits.steps)
            if reply.HasField("told"):
                # Addresses first: requests along the new routes must find their hosts.
                self._hosts.know({host.uuid: host.address for host in reply.told.storaged})
                self._news.apply(reply.told)
        except AsterismError as error:
            if not self._news.heard:
                raise Unavailable(error.message) from error
            self._look_at = time.monotonic() + _REST_S
        finally:
            self._looking.release()

    def _rest(self, error: AsterismError) -> None:
        """Leave calls to graphds for a while, and for a longer one each time in a row; whoever fails beside others has nothing to add."""
        if time.monotonic() < self._rest_until:
            return
        self._rest_until = time.monotonic() + self._rest_s
        self._rest_s = min(2 * self._rest_s, _LONGEST_REST_S)
        self.changed()
        logger.info("storageds_not_reached", extra={"reason": error.message})

    def _connect(self, address: str) -> StreamTransport:
        """A way to a storaged, once it has been gone."""
        transport = StreamTransport(address, _Guarded(RemoteTransport(address), self._guard))
        try:
            transport.give_back(transport.connection(time.monotonic() + _REACH_S)[0])
        except AsterismError as error:
            transport.close()
            raise Unavailable(f"storaged at {address} is not reached from here: {error.message}") from error
        return transport


class _Guarded:
    """Calls over gRPC of a process that may fork: only the one that asks where a stream door is."""

    def __init__(self, inner: RemoteTransport, guard: Guard) -> None:
        self._inner, self._guard = inner, guard

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The reply, within ``timeout_s`` seconds, or an `AsterismError`."""
        with self._guard():
            return self._inner.call(method, request, timeout_s)

    def start(self, method: Method, request: Content, timeout_s: float) -> Pending:
        """Refused: a storaged whose stream door is not reached is left to graphds."""
        raise Unavailable(f"the stream door of {self._inner.address} is not reached")

    def close(self) -> None:
        """Close the channel."""
        self._inner.close()


def _unknown(*_: Any) -> NoReturn:
    raise Stale("it may have been made a moment ago; a graphd knows")
