"""Client of the binary RPC endpoint: frequent calls between daemons over plain sockets.

A gRPC call in Python costs about half a millisecond of CPU time on both sides, whatever it carries;
three concurrent calls of a few kilobytes take 1.4 ms. The same frames over an open connection take
0.1 ms. Read-only calls, of which graphd makes several per request, therefore use this way if a
daemon has a binary RPC endpoint. gRPC reports the endpoint and carries all other calls, and these
too if there is no endpoint.

A connection serves one caller at a time: a request, its reply, the next request. Integers are
little endian::

    greeting   u32 magic, u32 n, u64 key                     in both directions; gRPC gave the key;
               from the client, then n bytes of a ticket; from the server, n is 0, or REFUSED if it
               closes the connection because it needs a ticket or does not accept this one
    request    u32 magic, u32 method, u64 timeout in microseconds, u64 length, then the frame
               without its envelope
    reply      u32 magic, u32 status, u64 length, then the frame; if status is not 0, the class of
               an error, a line feed, its text. The status of an error is 1, plus 256 times the
               milliseconds before which a retry is futile

A method is identified by the CRC-32 of its path."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import ssl
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from asterism_daemonkit.listening import split_address
from asterism_daemonkit.rpc.call_context import OUT_OF_TIME, waiting
from asterism_daemonkit.rpc.peer_probe import PING_TIMEOUT_S, PROBE_AFTER_S, PeerProbe
from asterism_daemonkit.rpc.transports import (
    ConcurrentTransport,
    PendingCall,
    TrafficCallback,
    ignore_traffic,
)
from asterism_io import buffer_pool, unix_sockets
from asterism_io.client_tls import TlsClient
from asterism_proto import framing
from asterism_proto.errors import (
    AsterismError,
    Corrupt,
    Deadline,
    InvalidRequest,
    Unauthenticated,
    Unavailable,
    from_status,
)
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE, Method
from asterism_proto.transport import MAX_MESSAGE_BYTES, Content
from asterism_proto.v1 import storaged_pb2 as storaged_pb

logger = logging.getLogger(__name__)

MAGIC = 0x53525341  # "ASRS"
GREETING = struct.Struct("<IIQ")
REQUEST = struct.Struct("<IIQQ")
REPLY = struct.Struct("<IIQ")

MAX_TICKET_BYTES = 8 << 10
"""Maximum bytes of the ticket after a greeting."""
REFUSED = 1
"""Second number of the greeting of a server that refuses the caller's credentials."""

TCP_METHODS = frozenset(
    method.path
    for name, method in STORE.items()
    if name not in ("write_blocks", "find_binary_endpoint", "list_log_records")
)
"""Paths of the calls that use the endpoint.

They change nothing, so a call may be repeated after its connection broke."""

_MAX_IDLE = 64
"""Maximum number of idle connections kept per daemon."""
_GRPC_FALLBACK_S = 10.0
"""Seconds for which calls use gRPC after the endpoint could not be reached."""
_CONNECT_TIMEOUT_S = 5.0
_TLS_RECORD_BYTES = 16 << 10
"""Maximum bytes of a record of TLS."""
_UNACKED_LIMIT_MS = 25_000
"""Milliseconds without acknowledgement of sent data after which a connection ends.

A lost host sends no error."""


WaitCallback = Callable[[float], None]
"""Function called with the deadline of a waiting call; raises if waiting is pointless."""


def method_id(path: str) -> int:
    """Return the number that identifies a method in requests."""
    return zlib.crc32(path.encode())


def configure_socket(connection: socket.socket) -> None:
    """Configure a socket to send without delay and to detect a lost peer host.

    Nothing is set on Unix sockets, since their peer is on this host."""
    if connection.family == socket.AF_UNIX:
        return
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", 20),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", _UNACKED_LIMIT_MS),
    ):
        option = getattr(socket, name, None)  # Linux has all of them
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _wait_for_io(
    connection: socket.socket,
    deadline: float,
    on_wait: WaitCallback | None,
    operation: Callable[[], int],
) -> int:
    """Run an operation that may block; call ``on_wait`` each time it has waited for a while."""
    while True:
        remaining_s = max(deadline - time.monotonic(), 1e-3)
        connection.settimeout(remaining_s if on_wait is None else min(remaining_s, PROBE_AFTER_S))
        try:
            return operation()
        except TimeoutError:
            if on_wait is None or time.monotonic() >= deadline:
                raise
            on_wait(deadline)


def send(
    connection: socket.socket,
    pieces: Iterable[bytes | memoryview],
    deadline: float,
    on_wait: WaitCallback | None = None,
) -> None:
    """Send all pieces. Exceptions of ``on_wait`` are passed on.

    Raises
    ------
    TimeoutError
        Past the deadline, which is on the clock of time.monotonic().
    OSError
        If the connection is broken.
    """
    is_tls = isinstance(connection, ssl.SSLSocket)  # has no sendmsg
    buffers = [memoryview(piece) for piece in (_join_small(pieces) if is_tls else pieces)]
    while buffers:
        sent = _wait_for_io(
            connection,
            deadline,
            on_wait,
            partial(connection.send, buffers[0])
            if is_tls
            else partial(connection.sendmsg, buffers[:512]),
        )
        while buffers and sent >= len(buffers[0]):
            sent -= len(buffers.pop(0))
        if sent:
            buffers[0] = buffers[0][sent:]


def _join_small(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yield all pieces, with small neighbors joined: each piece becomes a record of TLS."""
    small: list[bytes | memoryview] = []
    size = 0
    for piece in pieces:
        if size + len(piece) > _TLS_RECORD_BYTES and small:
            yield b"".join(small)
            small, size = [], 0
        if len(piece) >= _TLS_RECORD_BYTES:
            yield piece
        elif len(piece):
            small.append(piece)
            size += len(piece)
    if small:
        yield b"".join(small)


def receive(
    connection: socket.socket, length: int, deadline: float, on_wait: WaitCallback | None = None
) -> memoryview:
    """Return the next ``length`` bytes, read-only, in a buffer aligned for arrays.

    Raises
    ------
    EOFError
        If the peer closed the connection.
    TimeoutError, OSError
        As for `send`.
    """
    view: memoryview = buffer_pool.empty((length,), np.uint8).data
    offset = 0
    while offset < length:
        received = _wait_for_io(
            connection, deadline, on_wait, partial(connection.recv_into, view[offset:])
        )
        if not received:
            raise EOFError("connection closed")
        offset += received
    return view.toreadonly()


@dataclass(frozen=True, slots=True)
class TcpEndpoint:
    """Location of a daemon's binary RPC endpoint."""

    port: int = 0
    """TCP port; 0 if there is no endpoint."""
    key: int = 0
    socket_name: str = ""
    """Name of the abstract Unix socket for callers on the same host."""


class _BrokenConnection(Exception):
    """A connection ended before a reply began."""


def _cause(error: Exception) -> str:
    """Return the cause of a failed connection without the number of the error."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, socket.gaierror):
        return "host name not found"
    return ((isinstance(error, OSError) and error.strerror) or str(error)).lower()


class _SentCall:
    """A call that was sent."""

    def __init__(
        self,
        transport: TcpTransport,
        method: Method,
        data: Sequence[bytes | memoryview],
        deadline: float,
    ) -> None:
        self._transport, self._method, self._data, self._deadline = (
            transport,
            method,
            data,
            deadline,
        )
        self._connection, self._was_used = transport.take_connection(deadline)
        self._is_sent = self._send()

    def _send(self) -> bool:
        """Send the request; return False if the connection turned out to be closed."""
        head = REQUEST.pack(
            MAGIC,
            method_id(self._method.path),
            max(int((self._deadline - time.monotonic()) * 1e6), 1),
            sum(len(piece) for piece in self._data),
        )
        try:
            send(
                self._connection,
                [head, *self._data],
                self._deadline,
                self._transport.liveness.check_waiting_call,
            )
        except Unavailable:
            self.abandon()
            raise
        except TimeoutError as error:
            self.abandon()
            raise Deadline(
                f"{self._transport.peer} did not accept the request in time; send a smaller "
                "request, or set a longer timeout"
            ) from error
        except OSError:
            return False
        return True

    def result(self) -> Content:
        """Return the reply.

        If a reused connection turns out to be closed, the call is repeated over a new one."""
        try:
            with waiting():
                return self._receive()
        except _BrokenConnection as error:
            self.abandon()
            if not self._was_used:
                raise self._transport.connection_error(error) from error
        self._connection, self._was_used = self._transport.take_connection(self._deadline, new=True)
        self._is_sent = self._send()
        try:
            with waiting():
                return self._receive()
        except _BrokenConnection as error:
            self.abandon()
            raise self._transport.connection_error(error) from error

    def _receive(self) -> Content:
        if not self._is_sent:
            raise _BrokenConnection("connection closed")
        reply_started = False
        try:
            magic, status, length = REPLY.unpack(
                receive(
                    self._connection,
                    REPLY.size,
                    self._deadline,
                    self._transport.liveness.check_waiting_call,
                )
            )
            reply_started = True
            if magic != MAGIC or length > MAX_MESSAGE_BYTES:
                raise Corrupt(
                    f"{self._transport.peer} sent a reply of another format (magic {magic:#x}, "
                    f"{length:,} bytes); run all daemons on the same release"
                )
            body = receive(
                self._connection,
                length,
                self._deadline,
                self._transport.liveness.check_waiting_call,
            )
        except TimeoutError as error:
            self.abandon()
            raise Deadline(
                f"no answer from {self._transport.peer} in time; send a smaller request, or set a "
                "longer timeout"
            ) from error
        except (OSError, EOFError) as error:
            if reply_started:
                self.abandon()
                raise Unavailable(
                    f"{self._transport.peer} closed the connection during a reply "
                    f"({_cause(error)}); is it running there?"
                ) from error
            raise _BrokenConnection(_cause(error)) from error
        except (Corrupt, Unavailable):
            self.abandon()
            raise
        self._transport.liveness.record_reply()
        self._transport.return_connection(self._connection)
        self._transport.on_traffic(
            self._method.name, sum(len(piece) for piece in self._data), length
        )
        if status:
            reason, _, text = bytes(body).decode(errors="replace").partition("\n")
            raise from_status("UNKNOWN", text, reason, retry_after_s=(status >> 8) / 1e3)
        return framing.decode(body, self._method.reply, envelope=False)

    def abandon(self) -> None:
        """Close the connection: a late reply would be taken for the reply to the next call."""
        self._connection.close()


class TcpTransport:
    """Transport of calls to one storaged, over its binary RPC endpoint or else over gRPC.

    Parameters
    ----------
    address : str
        host:port of the gRPC server.
    grpc : ConcurrentTransport
        Carries calls over gRPC.
    on_traffic : callable
        Called after each completed call over the endpoint.
    tls : TlsClient, optional
        TLS of the connections. Default: none.
    credentials : callable, optional
        Returns the ticket of a new connection. Default: connections have no ticket.
    """

    def __init__(
        self,
        address: str,
        grpc: ConcurrentTransport,
        on_traffic: TrafficCallback = ignore_traffic,
        *,
        tls: TlsClient | None = None,
        credentials: Callable[[], str] | None = None,
    ) -> None:
        self._tls, self._credentials = tls, credentials
        self.address = address
        self.peer = f"storaged at {address}"
        """Name of the daemon in messages."""
        self.on_traffic = on_traffic
        self._host = split_address(address)[0].strip("[]")
        self._grpc = grpc
        self._lock = threading.Lock()
        self._idle_connections: list[socket.socket] = []
        self._pid = os.getpid()
        self._endpoint: TcpEndpoint | None = None
        self._retry_at = 0.0
        self._closed = False
        self.liveness = PeerProbe(self.peer, self._ping)

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Return the reply within ``timeout_s`` seconds, or raise an `AsterismError`."""
        return self.start(method, request, timeout_s).result()

    def start(self, method: Method, request: Content, timeout_s: float) -> PendingCall:
        """Send a call and return at once."""
        deadline = time.monotonic() + timeout_s
        if timeout_s <= 0:
            raise Deadline(OUT_OF_TIME)
        if method.path in TCP_METHODS and isinstance(request, Frame):
            self.liveness.check_new_call(deadline)
        if (
            method.path in TCP_METHODS
            and isinstance(request, Frame)
            and self._is_reachable(deadline)
        ):
            data = framing.encode_pieces(request, envelope=False)
            length = sum(len(piece) for piece in data)
            if length > MAX_MESSAGE_BYTES:
                raise InvalidRequest(
                    f"the request has {length:,} bytes: expected at most {MAX_MESSAGE_BYTES:,}; "
                    "split it"
                )
            return _SentCall(self, method, data, deadline)
        return self._grpc.start(method, request, deadline - time.monotonic())

    def close(self) -> None:
        """Close all connections; running calls end with Unavailable."""
        with self._lock:
            self._closed = True
            idle, self._idle_connections = self._idle_connections, []
        for connection in idle:
            connection.close()
        self._grpc.close()

    def take_connection(self, deadline: float, *, new: bool = False) -> tuple[socket.socket, bool]:
        """Return a connection for exclusive use, and whether it was used before."""
        if not new:
            with self._lock:
                if self._pid != os.getpid():
                    self._idle_connections, self._pid = (
                        [],
                        os.getpid(),
                    )  # connections of the parent of a fork belong to the parent
                if self._idle_connections:
                    return self._idle_connections.pop(), True
        else:  # the other idle connections are from before the restart of the daemon too
            with self._lock:
                idle, self._idle_connections = self._idle_connections, []
            for connection in idle:
                connection.close()
            self._endpoint = None
        return self._connect(deadline), False

    def connection_error(self, cause: Exception) -> Unavailable:
        """Return the error of a call that found its connection closed."""
        return Unavailable(f"no answer from {self.peer} ({cause}); is it running there?")

    def return_connection(self, connection: socket.socket) -> None:
        """Keep a connection for the next call."""
        with self._lock:
            if not self._closed and len(self._idle_connections) < _MAX_IDLE:
                self._idle_connections.append(connection)
                return
        connection.close()

    def _is_reachable(self, deadline: float) -> bool:
        """Return whether calls can use the endpoint.

        They can if a connection is idle, or if one can be opened."""
        with self._lock:
            if self._idle_connections and self._pid == os.getpid():
                return True
        if time.monotonic() < self._retry_at:
            return False
        try:
            self.return_connection(self._connect(deadline))
        except (Deadline, Unauthenticated):
            raise
        except AsterismError as error:
            if self.liveness.is_silent:
                raise
            self._retry_at = time.monotonic() + _GRPC_FALLBACK_S
            logger.info(
                "binary_endpoint_unreachable",
                extra={"address": self.address, "reason": error.message},
            )
            return False
        return True

    def _connect(self, deadline: float) -> socket.socket:
        endpoint, started_at = self._endpoint or self._find_endpoint(deadline), time.monotonic()
        try:
            return self._open(endpoint, deadline)
        except Unavailable:
            try:
                latest = self._find_endpoint(min(deadline, time.monotonic() + PING_TIMEOUT_S))
            except Deadline:
                if time.monotonic() >= deadline:
                    raise
                raise self.liveness.record_silence(started_at) from None
            if endpoint == latest:
                raise
            return self._open(latest, deadline)

    def _find_endpoint(self, deadline: float) -> TcpEndpoint:
        reply = self._grpc.call(
            STORE["find_binary_endpoint"],
            storaged_pb.FindBinaryEndpointRequest(),
            deadline - time.monotonic(),
        )
        if not isinstance(reply, storaged_pb.FindBinaryEndpointReply) or not reply.port:
            raise Unavailable(f"{self.peer} has no binary RPC endpoint")
        self._endpoint = TcpEndpoint(reply.port, reply.handshake_key, reply.unix_socket)
        return self._endpoint

    def _ping(self, seconds: float) -> bool:
        """Return whether the daemon is alive.

        True if the endpoint sends its greeting, its host refuses the connection, or gRPC
        replies. True also if no endpoint is known."""
        endpoint, deadline = self._endpoint, time.monotonic() + seconds
        if endpoint is None:
            return True
        try:
            with self._dial(endpoint, seconds) as connection:
                send(connection, [GREETING.pack(MAGIC, 0, endpoint.key)], deadline)
                receive(connection, GREETING.size, deadline)
        except (ConnectionError, EOFError):
            pass  # the waiting call sees the error on its own connection
        except OSError as error:
            with contextlib.suppress(AsterismError):
                self._find_endpoint(
                    time.monotonic() + seconds / 4
                )  # the daemon may have restarted with another endpoint
                return True
            logger.warning(
                "binary_endpoint_unresponsive",
                extra={"address": self.address, "reason": str(error)},
            )
            return False
        return True

    def _dial(self, endpoint: TcpEndpoint, seconds: float) -> socket.socket:
        """Connect to an endpoint; without TLS, by its Unix socket if that is on this host."""
        if self._tls is None:
            connection = unix_sockets.connect(endpoint.socket_name, seconds)
            if connection is not None:
                return connection
        started_at = time.monotonic()
        connection = socket.create_connection((self._host, endpoint.port), timeout=seconds)
        configure_socket(connection)
        if self._tls is None:
            return connection
        remaining_s = max(started_at + seconds - time.monotonic(), 1e-3)
        return self._tls.wrap(connection, self._host, remaining_s)

    def _greeting(self, endpoint: TcpEndpoint) -> list[bytes | memoryview]:
        ticket = b"" if self._credentials is None else self._credentials().encode()
        return [GREETING.pack(MAGIC, len(ticket), endpoint.key), ticket]

    def _open(self, endpoint: TcpEndpoint, deadline: float) -> socket.socket:
        connect_deadline = min(deadline, time.monotonic() + _CONNECT_TIMEOUT_S)
        connection: socket.socket | None = None
        try:
            connection = self._dial(endpoint, max(connect_deadline - time.monotonic(), 1e-3))
            send(connection, self._greeting(endpoint), connect_deadline)
            greeting = GREETING.unpack(receive(connection, GREETING.size, connect_deadline))
        except (OSError, EOFError) as error:
            with contextlib.suppress(OSError):
                if connection is not None:
                    connection.close()
            raise Unavailable(
                f"no answer from {self.peer}, binary RPC port {endpoint.port} ({_cause(error)}); "
                "is it running there?"
            ) from error
        if greeting != (MAGIC, 0, endpoint.key):
            connection.close()
            if greeting[:2] == (MAGIC, REFUSED):
                raise Unauthenticated(
                    f"{self.peer} does not accept the credentials of this process; set the same "
                    "cluster_key_file for all daemons, and check the clocks of their hosts"
                )
            raise Unavailable(
                f"{self.peer}: another process listens on its former binary RPC port "
                f"{endpoint.port}; the daemon may have restarted: try again"
            )
        return connection
