"""Port for calls to a service, over a network or in this process.

Clients and daemons share this protocol, and each extends it: `ClientTransport` in
`asterism.transport.grpc` reads large replies in pieces, `ConcurrentTransport` in
`asterism_daemonkit.rpc.call_context` starts several calls at a time."""

from __future__ import annotations

from typing import Protocol

from google.protobuf.message import Message

from asterism_proto.framing import Frame
from asterism_proto.methods import Method

MAX_MESSAGE_BYTES = 64 << 20
"""Maximum bytes of one message, in both directions."""

Content = Message | Frame[Message]
"""Content of a call: a message, or a head with arrays."""


class Transport(Protocol):
    """Port through which the methods of a service are called."""

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Call a method and return its reply.

        Parameters
        ----------
        method : Method
        request : message or Frame
            A `Frame` for framed methods.
        timeout_s : float
            Seconds until the deadline of the call.

        Returns
        -------
        message or Frame
            A `Frame` for framed methods.

        Raises
        ------
        AsterismError
            Error of the service or of the connection; Deadline once the time is over.
        """

    def close(self) -> None:
        """Release connections and threads."""
