"""Storageds asked by the trainer itself: what ``asterism.connect(..., direct=True)`` stands on."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from asterism.forks import GATE
from asterism.transport import Content, GrpcTransport
from asterism_proto.arrays import Frame
from asterism_proto.errors import Deadline, Unavailable
from asterism_proto.methods import GRAPH, Method
from asterism_proto.v1 import graphd_pb2 as wire

if TYPE_CHECKING:
    from standalone.direct import Direct


def _services() -> type[Direct]:
    """What answers here; ImportError where the services are not installed."""
    try:
        from standalone.direct import Direct
    except ImportError as missing:
        raise ImportError("to ask storageds directly needs the services: pip install 'asterism[services]'") from missing
    return Direct


class DirectTransport(GrpcTransport):
    """Reads and samples of storageds themselves, everything else of graphds; needs ``asterism[services]``.

    A graphd tells where storageds are and what versions hold, and answers what these can not be asked for: while one of them is away or
    out of reach, of a version that is being replaced, in a space that was made a moment ago. The arrays are the same.

    Parameters
    ----------
    addresses, hedge
        As of `GrpcTransport`.
    """

    def __init__(self, addresses: str | Sequence[str], *, hedge: float | str | None = None) -> None:
        super().__init__(addresses, hedge=hedge)
        _services()
        self._direct: Direct | None = None
        self._home = 0
        """The process that it is of."""
        self._parents: list[Direct] = []
        """Those of the processes that this one was forked from: kept, for letting their channels go here may hang."""

    def __getstate__(self) -> dict[str, Any]:
        return {"addresses": self.addresses, "hedge": self._hedge}

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The reply, within ``timeout_s`` seconds, or an `AsterismError`."""
        deadline, direct = time.monotonic() + timeout_s, self._here()
        reply = direct.answer(method, request, timeout_s)
        if reply is not None:
            self._count(calls=1, direct=1)
            return reply
        left = deadline - time.monotonic()
        if left <= 0:
            raise Deadline(f"{method.name}: the call's time is up; give it a longer timeout")
        try:
            return super().call(method, request, left)
        finally:
            if not direct.answers(method):
                direct.changed()

    def close(self) -> None:
        """Close this process's connections."""
        with self._lock:
            direct, self._direct = self._direct, None
        if direct is not None and self._home == os.getpid():
            direct.close()
        elif direct is not None:
            self._parents.append(direct)
        super().close()

    def _here(self) -> Direct:
        with self._lock:
            if self._closed:
                raise Unavailable("this client is closed; connect again")
            if self._direct is None or self._home != os.getpid():
                if self._direct is not None:
                    self._parents.append(self._direct)
                self._direct, self._home = _services()(self._told, GATE.call), os.getpid()
            return self._direct

    def _told(self, known: int, timeout_s: float) -> wire.GetRoutesReply:
        """Return a graphd's routes, unless they are known, and its limits."""
        method = GRAPH["get_routes"]
        data = method.pack(Frame(wire.GetRoutesRequest(known_revision=known)))
        reply: Any = method.unpack_reply(self._send(method, data, time.monotonic() + timeout_s))
        routes: wire.GetRoutesReply = reply.head
        return routes
