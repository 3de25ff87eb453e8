"""Connections of the HTTP port: their number, and the time that a silent or slow caller gets.

uvicorn limits none of it: a caller that sends half of a request, or never reads the reply, would
hold its connection forever.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from asterism_daemonkit.rpc.connection_limits import ConnectionLimits

MAX_HEADER_BYTES = 64 << 10
"""Maximum size of a request's head, in bytes."""
_MAX_LOOK_S = 5.0
"""Most seconds between two looks at the connections."""
_HEAD, _BODY, _REPLY, _SERVED = "head", "body", "reply", "served"
"""What a connection waits for: the head or rest of a request, its caller, or its route."""


class HttpConnections:
    """Open connections of one HTTP server. All methods run in its event loop.

    Parameters
    ----------
    limits : ConnectionLimits
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._timeouts_s = {
            _HEAD: limits.header_timeout_s,
            _BODY: limits.request_timeout_s,
            _REPLY: limits.reply_timeout_s,
        }
        self._look_s = min(min(self._timeouts_s.values()) / 4, _MAX_LOOK_S)
        self._open: dict[_Connection, None] = {}
        """Open connections, oldest first."""
        self._is_looking = False

    def __len__(self) -> int:
        return len(self._open)

    def protocol(
        self,
        config: Config,
        server_state: object,
        app_state: object,
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> H11Protocol:
        """Return the protocol of a new connection, as uvicorn calls it."""
        return _Connection(self, config, server_state, app_state, _loop)

    def add(self, connection: _Connection) -> bool:
        """Add a connection; return False if there are too many.

        The oldest connection that has sent no complete request makes place for a new one.
        """
        if len(self._open) >= self._limits.http_connections:
            oldest = next((other for other in self._open if other.waits_for == _HEAD), None)
            if oldest is None:
                return False
            self.discard(oldest)
            oldest.transport.abort()
        self._open[connection] = None
        if not self._is_looking:
            self._is_looking = True
            connection.loop.call_later(self._look_s, self._look, connection.loop)
        return True

    def discard(self, connection: _Connection) -> None:
        """Remove a connection that ends."""
        self._open.pop(connection, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connections of silent callers; again after a while, while there are any."""
        now = time.monotonic()
        for connection in list(self._open):
            waits_for = connection.waits_for
            state = (waits_for, connection.cycle)
            if state != connection.state:
                connection.state, connection.since = state, now
            elif now - connection.since >= self._timeouts_s.get(waits_for, float("inf")):
                connection.transport.abort()
        self._is_looking = bool(self._open)
        if self._is_looking:
            loop.call_later(self._look_s, self._look, loop)


class _Connection(H11Protocol):
    """Connection that the server's `HttpConnections` count and close."""

    def __init__(
        self,
        connections: HttpConnections,
        config: Config,
        server_state: object,
        app_state: object,
        _loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)  # type: ignore[arg-type]
        self._own_connections = connections
        self.state: tuple[str, object] = (_HEAD, None)
        """What the connection waited for at the last look, and the request that it served."""
        self.since = time.monotonic()
        """Time since when the connection waits for that."""

    @property
    def waits_for(self) -> str:
        """What the connection waits for."""
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            return _REPLY
        if self.conn.their_state is h11.SEND_BODY:
            return _BODY
        if self.cycle is None or self.cycle.response_complete:
            return _HEAD
        return _SERVED

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        if not self._own_connections.add(self):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._own_connections.discard(self)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP, and end the request that is served meanwhile."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.abort()
                return
        with contextlib.suppress(h11.LocalProtocolError):  # the connection is closing already
            super().send_400_response(msg)

    def _should_upgrade(self) -> bool:
        """Return False: no other protocol is spoken, and uvicorn would log each request for one."""
        return False
