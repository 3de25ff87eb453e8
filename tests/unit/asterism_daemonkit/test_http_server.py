"""Tests of the HTTP server: probes, and the application that the first other request creates."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from fastapi import APIRouter
from tests.kit.waiting import HANG_S

from asterism_access.principals import Principal
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.server import HttpServer
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.grpc_server import Authenticate
from asterism_proto.errors import Unauthenticated

PROBES = ("/healthz", "/readyz", "/metrics")
MANY = 12


def _refuse(authorization: str) -> Principal:
    raise Unauthenticated("authorization: expected a credential")


class Created:
    """Routes of a server, which count how often they are created."""

    def __init__(self) -> None:
        self.times = 0

    def routers(self) -> list[APIRouter]:
        self.times += 1
        api = APIRouter()
        api.add_api_route("/own", lambda: "own", methods=["GET"])
        return [api]


@contextmanager
def served(
    created: Created,
    *,
    ready: Callable[[], list[str]] = list,
    authenticate: Authenticate | None = None,
) -> Iterator[int]:
    """Yield the port of a server."""
    server = HttpServer(
        address="127.0.0.1:0",
        daemon="toy",
        status=dict,
        ready=ready,
        flags={},
        metrics=Metrics("toy"),
        allowed_hosts=AllowedHosts(),
        routers=created.routers,
        authenticate=authenticate,
    )
    port = server.start()
    try:
        yield port
    finally:
        server.stop()


def ask(port: int, path: str, *headers: str, method: str = "GET") -> bytes:
    """Return the bytes of a reply without its date."""
    head = "\r\n".join([f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{port}", *headers])
    with socket.create_connection(("127.0.0.1", port), HANG_S) as connection:
        connection.sendall(f"{head}\r\nconnection: close\r\n\r\n".encode())
        reply = b""
        while data := connection.recv(1 << 16):
            reply += data
    return re.sub(rb"\r\ndate: [^\r]+", b"", reply)


def status_of(reply: bytes) -> int:
    return int(reply.split()[1])


@pytest.mark.parametrize("authenticate", [None, _refuse])
@pytest.mark.parametrize("reasons", [[], ["the folder /Übung is locked", "no reply from metad"]])
def test_a_probe_has_the_bytes_of_the_applications_route(
    reasons: list[str], authenticate: Authenticate | None
) -> None:
    created = Created()
    with served(created, ready=lambda: reasons, authenticate=authenticate) as port:
        probed = {path: ask(port, path) for path in PROBES}
        assert created.times == 0
        # The application replies to requests with a body, even an empty one.
        assert {path: ask(port, path, "content-length: 0") for path in PROBES} == probed
        assert created.times == 1
    assert [status_of(reply) for reply in probed.values()] == [200, 503 if reasons else 200, 200]
    if authenticate is not None:
        assert b"bung" not in probed["/readyz"]


def test_the_first_other_requests_create_one_application() -> None:
    created = Created()
    replies: list[bytes] = []
    with served(created) as port:
        threads = [
            threading.Thread(target=lambda: replies.append(ask(port, "/own"))) for _ in range(MANY)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [status_of(reply) for reply in replies] == [200] * MANY
    assert created.times == 1


def test_a_probe_of_another_method_is_refused() -> None:
    with served(Created()) as port:
        assert status_of(ask(port, "/readyz", method="HEAD")) == 405
        assert status_of(ask(port, "/readyz", "content-length: 99999999")) == 413


def test_an_error_of_readiness_is_a_typed_reply(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> list[str]:
        raise RuntimeError("the table is broken")

    with served(Created(), ready=fail) as port:
        reply = ask(port, "/readyz")
    assert status_of(reply) == 500
    assert b"Internal" in reply
    assert b"the table is broken" not in reply
    assert "call_crashed" in caplog.text


def test_a_port_opens_without_the_application() -> None:
    program = (
        "import sys, asterism_daemonkit.http.server\n"
        "print([name for name in ('fastapi', 'starlette', 'anyio') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
