"""Silent and slow callers of the HTTP port: their time, and the number of connections."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Body
from tests.kit.waiting import HANG_S, wait_until

from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.server import HttpServer
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.connection_limits import ConnectionLimits

HOST = b"Host: localhost\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
SHORT = ConnectionLimits(header_timeout_s=0.3, request_timeout_s=0.3, reply_timeout_s=0.3)


def _router() -> APIRouter:
    api = APIRouter()

    @api.post("/echo")
    def echo(body: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        return body

    @api.get("/large")
    def large() -> dict[str, str]:
        return {"text": "x" * (32 << 20)}

    return api


@contextmanager
def _server(limits: ConnectionLimits) -> Iterator[tuple[HttpServer, int]]:
    server = HttpServer(
        address="127.0.0.1:0",
        daemon="toy",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("toy"),
        allowed_hosts=AllowedHosts(()),
        routers=lambda: [_router()],
        limits=limits,
    )
    try:
        yield server, server.start()
    finally:
        server.stop()


def _connect(port: int, data: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), HANG_S)
    connection.sendall(data)
    return connection


def _read_all(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    out = bytearray()
    try:
        while piece := connection.recv(1 << 20):
            out += piece
    except ConnectionResetError:
        pass
    return bytes(out)


@pytest.mark.parametrize(
    "data",
    [b"", b"GET /healthz HT", HEALTH[:-2], POST + b"Content-Length: 10\r\n\r\n{"],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
def test_half_a_request_ends_with_its_time(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with _server(SHORT) as (server, port), closing(_connect(port, data)) as silent:
        assert _read_all(silent) == b""
        wait_until(lambda: len(server._connections) == 0, "no connection is left")
        with closing(_connect(port, HEALTH)) as other:
            assert other.recv(12) == b"HTTP/1.1 200"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_caller_that_hangs_up_is_no_error_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with _server(ConnectionLimits()) as (server, port):
        _connect(port, POST + b"Content-Length: 10\r\n\r\n{").close()
        _connect(port, POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n").close()
        with closing(_connect(port, HEALTH)) as other:
            assert other.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: len(server._connections) <= 1, "the others have ended")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_reply_that_is_not_read_is_dropped() -> None:
    with _server(SHORT) as (server, port):
        request = b"GET /large HTTP/1.1\r\n" + HOST + b"\r\n"
        with closing(_connect(port, request)) as slow:
            wait_until(lambda: len(server._connections) == 1, "it is served")
            wait_until(lambda: len(server._connections) == 0, "its connection is dropped")
            assert len(_read_all(slow)) < 32 << 20


def test_a_full_port_drops_the_oldest_silent_connection() -> None:
    with _server(ConnectionLimits(http_connections=4)) as (server, port), ExitStack() as stack:
        idle = [stack.enter_context(closing(_connect(port))) for _ in range(4)]
        wait_until(lambda: len(server._connections) == 4, "the port is full")
        with closing(_connect(port, HEALTH)) as other:
            assert other.recv(12) == b"HTTP/1.1 200"
            assert _read_all(idle[0]) == b""
            assert len(server._connections) == 4


def test_large_heads_and_other_protocols_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    upgrade = HEALTH[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with _server(ConnectionLimits()) as (_, port):
        with closing(_connect(port, upgrade)) as other:
            assert other.recv(12) == b"HTTP/1.1 200"
        caplog.clear()
        for _ in range(5):
            connection = socket.create_connection(("127.0.0.1", port), HANG_S)
            with closing(connection):
                try:
                    connection.sendall(HEALTH[:-2] + b"X: " + b"a" * (1 << 20))
                except ConnectionError:
                    continue
                assert _read_all(connection)[:12] in (b"HTTP/1.1 400", b"")
    events = [record for record in caplog.records if record.getMessage() == "http_request_invalid"]
    assert len(events) <= 2, "one per second"
