"""Calls over plain connections: what daemons of one network say to each other many times a request.

A gRPC call of Python costs about half a millisecond of processors on both sides, whatever it
carries; three at a time, of a few kilobytes, take 1.4 ms. The same frames over a connection that is
held open take 0.1 ms. So the calls that only read, and that graphd makes several of for each
request, go this way where a daemon has a stream door; gRPC says where that is, carries all other
calls, and these too where there is no such door.

A connection is one caller's at a time: a request, its reply, the next. Little endian::

    greeting   u32 magic, u32 0, u64 key                            both ways; the key is what gRPC
                                                                    told
    request    u32 magic, u32 method, u64 timeout in microseconds, u64 length, then the frame
               without its envelope
    reply      u32 magic, u32 status, u64 length, then the frame; where status is not 0, the class
               of an error, a line
               feed, its text

A method is the CRC-32 of its path.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from asterism_daemonkit.calls import (
    ConcurrentTransport,
    PendingCall,
    TrafficCallback,
    ignore_traffic,
)
from asterism_daemonkit.liveness_probe import PING_TIMEOUT_S, PROBE_AFTER_S, LivenessProbe
from asterism_daemonkit.settings import split_address
from asterism_io import buffer_pool, unix_sockets
from asterism_proto import framing
from asterism_proto.errors import (
    AsterismError,
    Corrupt,
    Deadline,
    InvalidRequest,
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

TCP_METHODS = frozenset(
    method.path
    for name, method in STORE.items()
    if name not in ("write_blocks", "find_binary_endpoint")
)
"""What goes this way: calls that change nothing, so that one may be made again where a connection
broke.
"""

_MAX_IDLE = 64
"""Connections kept for the next call, per daemon."""
_GRPC_FALLBACK_S = 10.0
"""How long calls go over gRPC after a stream door could not be reached."""
_CONNECT_TIMEOUT_S = 5.0
_UNACKED_LIMIT_MS = 25_000
"""What is sent and not acknowledged for so long ends a connection: a host that is gone says
nothing.
"""


WaitCallback = Callable[[float], None]
"""Told the deadline of what waits; raises where that has become pointless."""


def method_id(path: str) -> int:
    """What a request calls the method."""
    return zlib.crc32(path.encode())


def configure_socket(connection: socket.socket) -> None:
    """Send at once; notice a host that is gone, unless it is this one."""
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
    """Do what may have to wait; tell ``on_wait`` each time that it has waited for a while."""
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
    """Send all pieces; TimeoutError past the deadline (of time.monotonic()), OSError where the
    connection is broken, what ``on_wait`` raises.
    """
    buffers = [memoryview(piece) for piece in pieces]
    while buffers:
        sent = _wait_for_io(
            connection, deadline, on_wait, partial(connection.sendmsg, buffers[:512])
        )
        while buffers and sent >= len(buffers[0]):
            sent -= len(buffers.pop(0))
        if sent:
            buffers[0] = buffers[0][sent:]


def receive(
    connection: socket.socket, length: int, deadline: float, on_wait: WaitCallback | None = None
) -> memoryview:
    """The next ``length`` bytes, aligned as arrays are; errors as of `send`, and EOFError where the
    other side hung up.
    """
    view: memoryview = buffer_pool.empty((length,), np.uint8).data
    offset = 0
    while offset < length:
        received = _wait_for_io(
            connection, deadline, on_wait, partial(connection.recv_into, view[offset:])
        )
        if not received:
            raise EOFError("the other side hung up")
        offset += received
    return view.toreadonly()


@dataclass(frozen=True, slots=True)
class TcpEndpoint:
    """Where a daemon's stream door is."""

    port: int = 0
    """0: there is none."""
    key: int = 0
    socket_name: str = ""
    """Name of the abstract Unix socket beside it, for callers of its host."""


class _BrokenConnection(Exception):
    """A connection ended before a reply began."""


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
        """Whether it went out; a connection that was closed while nobody used it breaks here."""
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
            raise Deadline(f"{self._transport.address} did not take the request in time") from error
        except OSError:
            return False
        return True

    def result(self) -> Content:
        """Its reply; made again over a new connection where one that was kept turned out to be
        closed.
        """
        try:
            return self._receive()
        except _BrokenConnection as error:
            self.abandon()
            if not self._was_used:
                raise Unavailable(
                    f"{self._transport.address} hung up ({error}); is it running?"
                ) from error
        self._connection, self._was_used = self._transport.take_connection(self._deadline, new=True)
        self._is_sent = self._send()
        try:
            return self._receive()
        except _BrokenConnection as error:
            self.abandon()
            raise Unavailable(
                f"{self._transport.address} hung up ({error}); is it running?"
            ) from error

    def _receive(self) -> Content:
        if not self._is_sent:
            raise _BrokenConnection("the connection was closed")
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
                    f"{self._transport.address} answered with magic {magic:#x} and {length} "
                    "bytes; is it of the same release?"
                )
            body = receive(
                self._connection,
                length,
                self._deadline,
                self._transport.liveness.check_waiting_call,
            )
        except TimeoutError as error:
            self.abandon()
            raise Deadline(f"{self._transport.address} did not answer in time") from error
        except (OSError, EOFError) as error:
            if reply_started:
                self.abandon()
                raise Unavailable(
                    f"{self._transport.address} hung up in the middle of a reply ({error}); "
                    "is it running?"
                ) from error
            raise _BrokenConnection(str(error)) from error
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
            raise from_status("UNKNOWN", text, reason)
        return framing.decode(body, self._method.reply, envelope=False)

    def abandon(self) -> None:
        """Hang up: what is on its way would be taken for the answer to the next call."""
        self._connection.close()


class TcpTransport:
    """Calls to one storaged: over connections to its stream door where it has one, else over gRPC.

    Parameters
    ----------
    address : str
        host:port of its gRPC door.
    grpc : ConcurrentTransport
        Calls over that.
    on_traffic : callable
        Told of each call that was answered over a connection.
    """

    def __init__(
        self, address: str, grpc: ConcurrentTransport, on_traffic: TrafficCallback = ignore_traffic
    ) -> None:
        self.address = address
        self.on_traffic = on_traffic
        self._host = split_address(address)[0].strip("[]")
        self._grpc = grpc
        self._lock = threading.Lock()
        self._idle_connections: list[socket.socket] = []
        self._pid = os.getpid()
        self._endpoint: TcpEndpoint | None = None
        self._retry_at = 0.0
        self._closed = False
        self.liveness = LivenessProbe(f"the stream door of {address}", self._ping)

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The reply, within ``timeout_s`` seconds, or an `AsterismError`."""
        return self.start(method, request, timeout_s).result()

    def start(self, method: Method, request: Content, timeout_s: float) -> PendingCall:
        """Send a call and come back at once."""
        deadline = time.monotonic() + timeout_s
        if timeout_s <= 0:
            raise Deadline(
                f"{method.path}: the call's time is up; ask for less, or with a longer timeout"
            )
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
                    f"{method.path}: the request is {length} bytes, a message at most "
                    f"{MAX_MESSAGE_BYTES}; ask in smaller pieces"
                )
            return _SentCall(self, method, data, deadline)
        return self._grpc.start(method, request, deadline - time.monotonic())

    def close(self) -> None:
        """Let go of all connections; calls under way end with Unavailable."""
        with self._lock:
            self._closed = True
            idle, self._idle_connections = self._idle_connections, []
        for connection in idle:
            connection.close()
        self._grpc.close()

    def take_connection(self, deadline: float, *, new: bool = False) -> tuple[socket.socket, bool]:
        """A connection of the caller's own, and whether it was used before."""
        if not new:
            with self._lock:
                if self._pid != os.getpid():
                    self._idle_connections, self._pid = (
                        [],
                        os.getpid(),
                    )  # those of the process that this one was forked from stay its own
                if self._idle_connections:
                    return self._idle_connections.pop(), True
        else:  # the others are as old: the daemon was started anew
            with self._lock:
                idle, self._idle_connections = self._idle_connections, []
            for connection in idle:
                connection.close()
            self._endpoint = None
        return self._connect(deadline), False

    def return_connection(self, connection: socket.socket) -> None:
        """Keep a connection for the next call."""
        with self._lock:
            if not self._closed and len(self._idle_connections) < _MAX_IDLE:
                self._idle_connections.append(connection)
                return
        connection.close()

    def _is_reachable(self, deadline: float) -> bool:
        """Whether calls go over connections: there is one, or one could be made."""
        with self._lock:
            if self._idle_connections and self._pid == os.getpid():
                return True
        if time.monotonic() < self._retry_at:
            return False
        try:
            self.return_connection(self._connect(deadline))
        except Deadline:
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
            raise Unavailable(f"{self.address} has no stream door")
        self._endpoint = TcpEndpoint(reply.port, reply.handshake_key, reply.unix_socket)
        return self._endpoint

    def _ping(self, seconds: float) -> bool:
        """Whether the stream door greets, or its host says that nobody is there, or gRPC answers;
        True also where no door is known.
        """
        endpoint, deadline = self._endpoint, time.monotonic() + seconds
        if endpoint is None:
            return True
        try:
            with self._dial(endpoint, seconds) as connection:
                send(connection, [GREETING.pack(MAGIC, 0, endpoint.key)], deadline)
                receive(connection, GREETING.size, deadline)
        except (ConnectionError, EOFError):
            pass  # whoever waits will see it on its own connection
        except OSError as error:
            with contextlib.suppress(AsterismError):
                self._find_endpoint(
                    time.monotonic() + seconds / 4
                )  # it may have been started anew, elsewhere
                return True
            logger.warning(
                "binary_endpoint_unresponsive",
                extra={"address": self.address, "reason": str(error)},
            )
            return False
        return True

    def _dial(self, endpoint: TcpEndpoint, seconds: float) -> socket.socket:
        """A connection to where a door is: by its Unix socket where that is on this host."""
        connection = unix_sockets.connect(endpoint.socket_name, seconds)
        if connection is None:
            connection = socket.create_connection((self._host, endpoint.port), timeout=seconds)
        configure_socket(connection)
        return connection

    def _open(self, endpoint: TcpEndpoint, deadline: float) -> socket.socket:
        connect_deadline = min(deadline, time.monotonic() + _CONNECT_TIMEOUT_S)
        target = f"the stream door of {self.address} (port {endpoint.port})"
        connection: socket.socket | None = None
        try:
            connection = self._dial(endpoint, max(connect_deadline - time.monotonic(), 1e-3))
            send(connection, [GREETING.pack(MAGIC, 0, endpoint.key)], connect_deadline)
            greeting = GREETING.unpack(receive(connection, GREETING.size, connect_deadline))
        except (OSError, EOFError) as error:
            with contextlib.suppress(OSError):
                if connection is not None:
                    connection.close()
            raise Unavailable(f"{target} does not answer ({error}); is it running?") from error
        if greeting != (MAGIC, 0, endpoint.key):
            connection.close()
            raise Unavailable(f"{target} is somebody else's; was the daemon started anew?")
        return connection
