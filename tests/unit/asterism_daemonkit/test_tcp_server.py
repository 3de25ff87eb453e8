"""Silent and slow callers of the binary endpoint: their time, and the number of connections."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import numpy as np
from tests.kit.endpoints import METHOD, request
from tests.kit.waiting import HANG_S, wait_until

from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.connection_limits import ConnectionLimits
from asterism_daemonkit.rpc.tcp_client import GREETING, MAGIC, REPLY, REQUEST, method_id
from asterism_daemonkit.rpc.tcp_server import TcpServer
from asterism_proto import framing
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from asterism_proto.v1 import storaged_pb2 as storaged_pb


def _serve(frame: Frame, call: CallContext) -> Frame:
    size = int(frame.arrays["ids"][0])
    return Frame(storaged_pb.ReadDegreesReply(), {"ids": np.zeros(size, np.int64)})


@contextmanager
def _server(limits: ConnectionLimits) -> Iterator[TcpServer]:
    handlers: dict[str, Handler] = {method.path: _serve for method in STORE.values()}
    server = TcpServer(
        address="127.0.0.1:0", methods=STORE, handlers=handlers, workers=2, queue=8, limits=limits
    )
    server.start()
    try:
        yield server
    finally:
        server.stop(0.1)


def _connect(server: TcpServer, *, greet: bool) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), HANG_S)
    if greet:
        connection.sendall(GREETING.pack(MAGIC, 0, server.key))
        assert GREETING.unpack(_read(connection, GREETING.size)) == (MAGIC, 0, server.key)
    return connection


def _read(connection: socket.socket, length: int) -> bytes:
    out = bytearray()
    while len(out) < length and (piece := connection.recv(length - len(out))):
        out += piece
    return bytes(out)


def _request(size: int, *, length: int | None = None) -> bytes:
    body = framing.encode(request(size), envelope=False)
    return REQUEST.pack(MAGIC, method_id(METHOD.path), 10**9, length or len(body)) + body


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_silence_ends_at_every_stage_of_a_connection() -> None:
    limits = ConnectionLimits(header_timeout_s=0.2, request_timeout_s=0.2, idle_timeout_s=1.0)
    with _server(limits) as server, ExitStack() as stack:
        silent = stack.enter_context(closing(_connect(server, greet=False)))
        idle = stack.enter_context(closing(_connect(server, greet=True)))
        half = stack.enter_context(closing(_connect(server, greet=True)))
        half.sendall(_request(1)[:-5])
        for connection in (silent, half, idle):
            assert _is_closed(connection)
        wait_until(lambda: len(server._connections) == 0, "no connection is left")


def test_a_reply_that_is_not_read_is_dropped() -> None:
    limits = ConnectionLimits(reply_timeout_s=0.3)
    with _server(limits) as server, closing(_connect(server, greet=True)) as slow:
        assert len(server._connections) == 1
        slow.sendall(_request(4 << 20))
        wait_until(lambda: len(server._connections) == 0, "the connection is dropped")


def test_a_copy_in_a_forked_process_keeps_no_connection_open() -> None:
    limits = ConnectionLimits(header_timeout_s=0.2)
    with _server(limits) as server, closing(_connect(server, greet=False)) as silent:
        wait_until(lambda: len(server._connections) == 1, "the connection is open")
        copy = next(iter(server._connections)).dup()  # as a fork would make one
        with closing(copy):
            assert _is_closed(silent)


def test_a_full_endpoint_drops_unused_connections() -> None:
    with _server(ConnectionLimits(stream_connections=3)) as server, ExitStack() as stack:
        first = stack.enter_context(closing(_connect(server, greet=True)))
        wait_until(lambda: len(server._connections._idle) == 1, "the first is idle")
        second = stack.enter_context(closing(_connect(server, greet=True)))
        silent = stack.enter_context(closing(_connect(server, greet=False)))
        wait_until(lambda: len(server._connections) == 3, "the endpoint is full")
        third = stack.enter_context(closing(_connect(server, greet=True)))
        assert _is_closed(silent), "one that was not greeted goes first"
        fourth = stack.enter_context(closing(_connect(server, greet=True)))
        assert _is_closed(first), "then the one that is idle for the longest time"
        for connection in (second, third, fourth):
            connection.sendall(_request(1))
            assert REPLY.unpack(_read(connection, REPLY.size))[1] == 0


def test_large_requests_beyond_the_memory_are_busy() -> None:
    with _server(ConnectionLimits(message_memory_mib=64)) as server, ExitStack() as stack:
        large, other, small = (
            stack.enter_context(closing(_connect(server, greet=True))) for _ in range(3)
        )
        large.sendall(_request(1, length=60 << 20))
        wait_until(lambda: server._message_memory.taken_bytes > 0, "the request is on its way")
        other.sendall(_request(1, length=10 << 20))
        status, length = REPLY.unpack(_read(other, REPLY.size))[1:]
        assert status & 1
        assert _read(other, length).startswith(b"Busy\nthe requests in progress take 60 MiB")
        small.sendall(_request(1))
        assert REPLY.unpack(_read(small, REPLY.size))[1] == 0
    wait_until(lambda: server._message_memory.taken_bytes == 0, "nothing is reserved")
