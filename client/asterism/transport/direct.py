"""Storageds asked by the trainer itself: what ``asterism.connect(..., direct=True)`` stands on."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from asterism.extras import required
from asterism.transport.fork_guard import FORK_GUARD
from asterism.transport.grpc import GrpcTransport
from asterism_proto.errors import Deadline, Unavailable
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH, Method
from asterism_proto.transport import Content
from asterism_proto.v1 import graphd_pb2 as graphd_pb

if TYPE_CHECKING:
    from graphd.in_process import InProcessGraphd


def _import_direct() -> type[InProcessGraphd]:
    """Return the graphd that runs in this process; MissingExtra without the server's packages."""
    with required("server", "asterism.connect(direct=True)"):
        from graphd.in_process import InProcessGraphd
    return InProcessGraphd


class DirectTransport(GrpcTransport):
    """Reads and samples of storageds themselves, everything else of graphds; needs
    ``asterism-graph[server]``.

    A graphd tells where storageds are and what versions hold, and answers what these can not be
    asked for: while one of them is away or out of reach, of a version that is being replaced, in a
    space that was made a moment ago. The arrays are the same.

    Parameters
    ----------
    addresses, hedge
        As of `GrpcTransport`.
    """

    def __init__(self, addresses: str | Sequence[str], *, hedge: float | str | None = None) -> None:
        super().__init__(addresses, hedge=hedge)
        _import_direct()
        self._direct: InProcessGraphd | None = None
        self._direct_pid = 0
        """The process that it is of."""
        self._parents: list[InProcessGraphd] = []
        """Those of the processes that this one was forked from: kept, for letting their channels go
        here may hang.
        """

    def __getstate__(self) -> dict[str, Any]:
        return {"addresses": self.addresses, "hedge": self._hedge}

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The reply, within ``timeout_s`` seconds, or an `AsterismError`."""
        deadline, direct = time.monotonic() + timeout_s, self._process_local()
        reply = direct.try_call(method, request, timeout_s)
        if reply is not None:
            self._count(calls=1, direct=1)
            return reply
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise Deadline(f"{method.name}: the call's time is up; give it a longer timeout")
        try:
            return super().call(method, request, remaining)
        finally:
            if not direct.supports(method):
                direct.invalidate_routes()

    def close(self) -> None:
        """Close this process's connections."""
        with self._lock:
            direct, self._direct = self._direct, None
        if direct is not None and self._direct_pid == os.getpid():
            direct.close()
        elif direct is not None:
            self._parents.append(direct)
        super().close()

    def _process_local(self) -> InProcessGraphd:
        with self._lock:
            if self._closed:
                raise Unavailable("this client is closed; connect again")
            if self._direct is None or self._direct_pid != os.getpid():
                if self._direct is not None:
                    self._parents.append(self._direct)
                self._direct, self._direct_pid = (
                    _import_direct()(self._fetch_routes, FORK_GUARD.call_scope),
                    os.getpid(),
                )
            return self._direct

    def _fetch_routes(self, known_revision: int, timeout_s: float) -> graphd_pb.GetRoutesReply:
        """Return a graphd's routes, unless they are known, and its limits."""
        method = GRAPH["get_routes"]
        data = method.pack(Frame(graphd_pb.GetRoutesRequest(known_revision=known_revision)))
        reply = method.unpack_reply(self._send_queued(method, data, time.monotonic() + timeout_s))
        assert isinstance(reply, Frame)
        return reply.with_head(graphd_pb.GetRoutesReply).head
