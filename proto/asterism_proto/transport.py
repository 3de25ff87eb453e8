"""The transport of a call to a service, over a network or in this process.

Clients and daemons share this protocol, and each narrows it: `ClientTransport` in
`asterism.transport.grpc` reads large replies in pieces, `ConcurrentTransport` in
`asterism_daemonkit.calls` starts several calls at a time."""

from __future__ import annotations

from typing import Protocol

from google.protobuf.message import Message

from asterism_proto.framing import Frame
from asterism_proto.methods import Method

MAX_MESSAGE_BYTES = 64 << 20
"""Bytes of one message, in both directions."""

Content = Message | Frame[Message]
"""Content of a call: a message, or a head with arrays."""


class Transport(Protocol):
    """The way to the methods of a service."""

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Return the reply within ``timeout_s`` seconds, or raise an `AsterismError`."""

    def close(self) -> None:
        """Release connections and threads."""
