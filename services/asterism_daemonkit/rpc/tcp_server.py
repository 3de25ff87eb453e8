"""Server of the binary RPC endpoint: serves the calls of `asterism_daemonkit.rpc.tcp_client`.

Each connection has a thread of its own."""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext

from asterism_access.principals import LOCAL, Principal
from asterism_daemonkit.listening import listen
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.connection_limits import DEFAULT_LIMITS, ConnectionLimits
from asterism_daemonkit.rpc.fair_pool import FairSlots, ShareSource, equal_share, turn_of
from asterism_daemonkit.rpc.grpc_server import MAX_TIMEOUT_S, Authenticate, typed_error
from asterism_daemonkit.rpc.message_memory import MessageMemory
from asterism_daemonkit.rpc.tcp_client import (
    GREETING,
    MAGIC,
    MAX_TICKET_BYTES,
    REFUSED,
    REPLY,
    REQUEST,
    TCP_METHODS,
    configure_socket,
    method_id,
    receive,
    send,
)
from asterism_daemonkit.tls import DaemonTls
from asterism_io import unix_sockets
from asterism_proto import framing
from asterism_proto.errors import (
    AsterismError,
    Busy,
    Internal,
    InvalidRequest,
    NotFound,
)
from asterism_proto.framing import Frame
from asterism_proto.methods import Method
from asterism_proto.transport import MAX_MESSAGE_BYTES

logger = logging.getLogger(__name__)

_MAX_WAIT_MS = (1 << 24) - 1
"""Longest wait that the status of a reply can state."""
_VERIFY_INTERVAL_S = 1.0
"""Seconds after which the ticket of a connection is verified again, at its next request."""


class _Caller:
    """Caller of a connection, by the ticket that came with its greeting."""

    def __init__(self, ticket: memoryview, authenticate: Authenticate | None) -> None:
        self._authorization = f"Bearer {bytes(ticket).decode(errors='replace')}"
        self._authenticate = authenticate
        self._principal: Principal | None = LOCAL
        self._verify_at = 0.0

    def principal(self) -> Principal | None:
        """Return the principal; None if the ticket is not accepted, or no longer."""
        if self._authenticate is not None and time.monotonic() >= self._verify_at:
            try:
                self._principal = self._authenticate(self._authorization)
            except AsterismError as error:
                logger.info("ticket_refused", extra={"reason": error.message})
                self._principal = None
            self._verify_at = time.monotonic() + _VERIFY_INTERVAL_S
        return self._principal


class _Connections:
    """Open connections of a server, with those that wait for their caller.

    Parameters
    ----------
    most : int
        Connections that are open at a time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open: dict[socket.socket, bool] = {}
        """Whether the connection was greeted; oldest first."""
        self._idle: dict[socket.socket, None] = {}
        """Greeted connections between two requests; idle for the longest time first."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[socket.socket]:
        with self._lock:
            return iter(list(self._open))

    def add(self, connection: socket.socket) -> bool:
        """Add a connection; return False if there are too many.

        A connection that was not greeted, or else the one that is idle for the longest time, makes
        place for a new one: its owner opens another when needed.
        """
        with self._lock:
            if len(self._open) >= self._most:
                unused = next((other for other, greeted in self._open.items() if not greeted), None)
                unused = next(iter(self._idle), None) if unused is None else unused
                if unused is None:
                    return False
                self._remove(unused)
                _shut_down(unused)  # its own thread closes it
            self._open[connection] = False
        return True

    def replace(self, connection: socket.socket, encrypted: socket.socket) -> None:
        """Replace a connection by its encrypted form."""
        with self._lock:
            if connection in self._open:
                del self._open[connection]
                self._open[encrypted] = False

    def greeted(self, connection: socket.socket) -> None:
        """Note that the greeting of a connection is complete."""
        with self._lock:
            if connection in self._open:
                self._open[connection] = True

    def set_idle(self, connection: socket.socket, idle: bool) -> None:
        """Note whether a connection waits for its next request."""
        with self._lock:
            if not idle:
                self._idle.pop(connection, None)
            elif connection in self._open:
                self._idle[connection] = None

    def discard(self, connection: socket.socket) -> None:
        """Remove a connection and close it."""
        with self._lock:
            self._remove(connection)
        _shut_down(connection)  # a forked process may hold a copy, which would keep it open
        connection.close()

    def shut_down(self) -> None:
        """End all connections."""
        with self._lock:
            for connection in self._open:
                _shut_down(connection)

    def _remove(self, connection: socket.socket) -> None:
        self._open.pop(connection, None)
        self._idle.pop(connection, None)


def _shut_down(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # not SSLSocket.shutdown, which would let the connection's thread read plain bytes
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


class TcpServer:
    """Server for the calls of one service on a port.

    Parameters
    ----------
    address : str
        host:port; port 0 picks a free one.
    methods : mapping of name to Method
    handlers : mapping of path to handler
    workers : int
        Calls that run at a time.
    queue : int
        Calls that may wait for their turn. A further call is Busy, unless its principal has less
        than its share.
    cores : int
        Calls that compute at a time while several principals call, and each of them may have one
        beyond that. Default: there is no limit below ``workers``.
    metrics : Metrics, optional
        Counts calls.
    tls : DaemonTls, optional
        Certificates of the port. Default: the port is not encrypted.
    share_of : callable
        Returns the weight of the turns of a principal with some name; by default 1.
    authenticate : callable, optional
        Returns the principal of an authorization text, or raises Unauthenticated. Connections
        then need a ticket. Default: every caller is `LOCAL`.
    limits : ConnectionLimits
        Limits of the port's connections.
    """

    def __init__(
        self,
        *,
        address: str,
        methods: Mapping[str, Method],
        handlers: Mapping[str, Handler],
        workers: int,
        queue: int,
        cores: int = 0,
        metrics: Metrics | None = None,
        tls: DaemonTls | None = None,
        share_of: ShareSource = equal_share,
        authenticate: Authenticate | None = None,
        limits: ConnectionLimits = DEFAULT_LIMITS,
    ) -> None:
        self._address, self._tls, self._authenticate = address, tls, authenticate
        self._limits = limits
        self._methods = {
            method_id(method.path): (method, handlers[method.path])
            for method in methods.values()
            if method.path in TCP_METHODS
        }
        self._slots = FairSlots(workers, queue, cores=cores)
        self._share_of = share_of
        self._metrics = metrics
        self._connections = _Connections(limits.stream_connections)
        self._message_memory = MessageMemory(limits.message_memory_mib << 20)
        self._listeners: list[socket.socket] = []
        self._stopping = False
        self.key = secrets.randbits(64)
        self.port = 0
        self.socket_name = ""
        """Name of the abstract Unix socket for callers on this host; empty if there is none."""

    def start(self) -> int:
        """Open the port and return its number; Unavailable if it is taken."""
        self._listeners = [listen(self._address)]
        self.port = self._listeners[0].getsockname()[1]
        # With TLS, nothing is reachable without it, on this host either.
        if (
            self._tls is None
            and (unix_listener := unix_sockets.listen(f"asterism-streams:{secrets.token_hex(8)}"))
            is not None
        ):
            self._listeners.append(unix_listener)
            self.socket_name = unix_listener.getsockname()[1:].decode()
        for listener in self._listeners:
            threading.Thread(
                target=self._accept, args=(listener,), name="binary-endpoint", daemon=True
            ).start()
        return self.port

    def stop(self, grace_s: float) -> None:
        """Accept no more calls, give running ones ``grace_s`` seconds, then close connections."""
        self._stopping = True
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        deadline = time.monotonic() + grace_s
        while self._slots.calls and time.monotonic() < deadline:
            time.sleep(0.01)
        self._connections.shut_down()

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping:
            try:
                connection, _ = listener.accept()
            except OSError as error:
                if self._stopping:
                    return
                logger.warning("connection_not_accepted", extra={"reason": str(error)})
                time.sleep(0.1)  # out of file descriptors, until some are closed
                continue
            if not self._connections.add(connection):  # callers fall back to gRPC
                connection.close()
                continue
            try:
                threading.Thread(
                    target=self._serve, args=(connection,), name="stream", daemon=True
                ).start()
            except (
                RuntimeError,
                MemoryError,
            ) as error:  # no memory for a thread; callers fall back to gRPC
                logger.warning("connection_not_accepted", extra={"reason": str(error)})
                self._connections.discard(connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            configure_socket(connection)
            deadline = time.monotonic() + self._limits.header_timeout_s
            if self._tls is not None:
                connection = self._encrypt(connection, self._tls)
            magic, ticket_bytes, key = GREETING.unpack(receive(connection, GREETING.size, deadline))
            if magic != MAGIC or key != self.key or ticket_bytes > MAX_TICKET_BYTES:
                send(connection, [GREETING.pack(MAGIC, 0, 0)], deadline)
                return
            caller = _Caller(receive(connection, ticket_bytes, deadline), self._authenticate)
            if caller.principal() is None:
                send(connection, [GREETING.pack(MAGIC, REFUSED, 0)], deadline)
                return
            self._connections.greeted(connection)
            send(connection, [GREETING.pack(MAGIC, 0, self.key)], deadline)
            while not self._stopping and self._answer(connection, caller):
                pass
        except (OSError, EOFError):
            pass  # the caller is gone, or was silent for too long
        # no memory for the request; the caller finds the connection closed
        except MemoryError as error:
            logger.warning("memory_exhausted", extra={"cause": str(error)})
        finally:
            self._connections.discard(connection)

    def _encrypt(self, connection: socket.socket, tls: DaemonTls) -> ssl.SSLSocket:
        """Return the connection after a handshake, which its own thread waits for."""
        context = tls.server_context()
        connection.settimeout(self._limits.header_timeout_s)
        encrypted = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        self._connections.replace(connection, encrypted)
        try:
            encrypted.do_handshake()
        except BaseException:
            self._connections.discard(encrypted)
            raise
        return encrypted

    def _answer(self, connection: socket.socket, caller: _Caller) -> bool:
        """Serve the next request; return whether another may follow on this connection."""
        self._connections.set_idle(connection, True)
        head = receive(connection, REQUEST.size, time.monotonic() + self._limits.idle_timeout_s)
        self._connections.set_idle(connection, False)
        principal = caller.principal()
        if principal is None:  # its owner connects again, with another ticket
            return False
        started_at = time.monotonic()
        magic, method_number, timeout_us, length = REQUEST.unpack(head)
        deadline = started_at + min(timeout_us / 1e6, MAX_TIMEOUT_S)
        if magic != MAGIC or length > MAX_MESSAGE_BYTES:
            error = InvalidRequest(
                f"not a request: magic {magic:#x}, {length:,} bytes (at most "
                f"{MAX_MESSAGE_BYTES:,}); run all daemons on the same release"
            )
            send(connection, _error_reply(error), started_at + self._limits.reply_timeout_s)
            return False  # the start of the next request is unknown
        try:
            with self._message_memory.reserve(length):
                reply = self._serve_request(connection, principal, method_number, length, deadline)
        except Busy as error:  # before the request was received
            send(connection, _error_reply(error), started_at + self._limits.reply_timeout_s)
            return False
        send(connection, reply, time.monotonic() + self._limits.reply_timeout_s)
        return True

    def _serve_request(
        self,
        connection: socket.socket,
        principal: Principal,
        method_number: int,
        length: int,
        deadline: float,
    ) -> list[bytes | memoryview]:
        """Receive a request of some length and return the reply."""
        started_at = time.monotonic()
        body = receive(
            connection, length, min(deadline, started_at + self._limits.request_timeout_s)
        )
        name, code = "unknown", "OK"
        try:
            entry = self._methods.get(method_number)
            if entry is None:
                raise NotFound(
                    f"method {method_number:#x}: not served by this endpoint; run all daemons on "
                    "the same release"
                )
            name = entry[0].name
            call = CallContext(
                deadline,
                lambda: not _has_hung_up(connection),
                principal=principal,
                peer=lambda: _peer_name(connection),
            )
            turn = turn_of(call.principal, self._share_of)
            with self._in_flight(), self._slots.slot(turn, call):
                reply = self._reply(*entry, body, call)
        except Exception as error:
            asterism_error = typed_error(error)
            code, reply = asterism_error.code, _error_reply(asterism_error)
        if self._metrics is not None:
            self._metrics.count_call(name, code, time.monotonic() - started_at)
        return reply

    def _in_flight(self) -> AbstractContextManager[object]:
        return (
            nullcontext() if self._metrics is None else self._metrics.in_flight.track_inprogress()
        )

    def _reply(
        self, method: Method, handler: Handler, body: memoryview, call: CallContext
    ) -> list[bytes | memoryview]:
        reply = handler(framing.decode(body, method.request, envelope=False), call)
        if not isinstance(reply, Frame):
            raise Internal(f"{method.name}: the handler returned no frame")
        data = framing.encode_pieces(reply, envelope=False)
        length = sum(len(piece) for piece in data)
        if length > MAX_MESSAGE_BYTES:
            raise InvalidRequest(
                f"the reply has {length:,} bytes: expected at most {MAX_MESSAGE_BYTES:,}; split "
                "the request"
            )
        return [REPLY.pack(MAGIC, 0, length), *data]


def _error_reply(error: AsterismError) -> list[bytes | memoryview]:
    raw = f"{type(error).__name__}\n{error.message}".encode(errors="replace")
    wait_ms = min(math.ceil(error.retry_after_s * 1e3), _MAX_WAIT_MS)
    return [REPLY.pack(MAGIC, 1 | wait_ms << 8, len(raw)), raw]


def _peer_name(connection: socket.socket) -> str:
    """Return the address of the other end; ``unix`` for a Unix socket."""
    try:
        peer = connection.getpeername()
    except OSError:  # it has hung up
        return ""
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "unix"


def _has_hung_up(connection: socket.socket) -> bool:
    """Return whether the caller closed its end: the socket is readable and at its end."""
    # not select(), which supports only the first 1024 file descriptors of a process
    poller = select.poll()
    try:
        if isinstance(connection, ssl.SSLSocket):  # cannot look at bytes without taking them
            poller.register(connection, select.POLLRDHUP)
            return bool(poller.poll(0))
        poller.register(connection, select.POLLIN)
        return bool(poller.poll(0)) and not connection.recv(1, socket.MSG_PEEK)
    except (OSError, ValueError):
        return True
