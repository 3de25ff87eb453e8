"""Requests to the services Graph, Catalog and Heartbeats.

They are recorded at handlers in this process, and sent to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.framing import Frame
from asterism_proto.methods import Method
from asterism_proto.transport import Content
from tests.kit.fuzzing.campaign import HANG_S, Send


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A recorded request."""

    method: Method
    head: Any
    arrays: dict[str, NDArray[Any]]

    @property
    def name(self) -> str:
        """Return the name of the method."""
        return self.method.name

    @property
    def description(self) -> str:
        """Return the name of the method: there is one destination."""
        return self.method.name

    def shape(self) -> tuple[str, ...]:
        """Return the method with the fields and arrays of the request."""
        return (
            self.method.path,
            *sorted(field.name for field, _ in self.head.ListFields()),
            *sorted(self.arrays),
        )


class Recorder(LocalTransport):
    """A transport to handlers in this process that keeps the first request of each shape."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        super().__init__(handlers)
        self._recorded: dict[tuple[str, ...], Request] = {}

    @property
    def requests(self) -> list[Request]:
        """Return the recorded requests."""
        return list(self._recorded.values())

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Handle a request, and record it."""
        head, arrays = (
            (request.head, {name: np.array(array) for name, array in request.arrays.items()})
            if isinstance(request, Frame)
            else (request, {})
        )
        recorded = Request(method=method, head=head, arrays=arrays)
        self._recorded.setdefault(recorded.shape(), recorded)
        return super().call(method, request, timeout_s)


def make_sender(handlers: Mapping[str, Handler], timeout_s: float = HANG_S / 3) -> Send[Request]:
    """Return a function that sends the requests of a campaign to handlers, by method path."""
    return lambda request, changed: send(
        handlers, request.method, changed.head, changed.arrays, timeout_s
    )


def send(
    handlers: Mapping[str, Handler],
    method: Method,
    head: Any,
    arrays: Mapping[str, NDArray[Any]],
    timeout_s: float,
) -> Content:
    """Handle a request as a server does, and encode the reply."""
    data = method.pack(Frame(head, arrays) if method.is_framed else head)
    reply = handlers[method.path](method.unpack_request(data), CallContext.with_timeout(timeout_s))
    method.pack(reply)
    return reply
