"""Tests of Unix sockets between processes of one host.

They are used if they exist and belong to the peer, and not otherwise.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from tests.kit.endpoints import endpoints

from asterism.transport.grpc import GrpcTransport
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.grpc_server import GrpcServer
from asterism_daemonkit.rpc.tcp_client import TcpEndpoint, TcpTransport
from asterism_io import unix_sockets
from asterism_proto.errors import Unavailable
from asterism_proto.methods import CATALOG, Method
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="abstract Unix sockets are Linux's")

METHOD = CATALOG["list_spaces"]
TRANSPORTS = [GrpcTransport, RemoteTransport]
Serve = Callable[[str], tuple[GrpcServer, int]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a gRPC endpoint at an address."""
    servers: list[GrpcServer] = []

    def start(address: str) -> tuple[GrpcServer, int]:
        def answer(request: Any, call: CallContext) -> Any:
            return metad_pb.SpaceList()

        server = GrpcServer(
            address=address,
            services={
                METHOD.service: (CATALOG, {method.path: answer for method in CATALOG.values()})
            },
        )
        servers.append(server)
        return server, server.start()

    yield start
    for server in servers:
        server.stop(0)


def start_loopback_server(port: int, peers: list[str]) -> grpc.Server:
    """Start an endpoint at a loopback port, which records the peers of its calls."""

    class Handler(grpc.GenericRpcHandler):
        def service(self, details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(
                lambda data, context: peers.append(context.peer()) or b""
            )

    server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((Handler(),))
    assert server.add_insecure_port(f"127.0.0.1:{port}") == port
    server.start()
    return server


def send_request(transport: Any, method: Method = METHOD) -> None:
    transport.call(method, common_pb.Empty(), 10)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_loopback_endpoint_is_reached_by_its_unix_socket(serve: Serve, host: str) -> None:
    server, port = serve(f"{host}:0")
    assert (
        unix_sockets.grpc_target(f"127.0.0.1:{port}")
        == unix_sockets.grpc_target(f"localhost:{port}")
        == f"unix-abstract:asterism:{port}"
    )
    assert unix_sockets.grpc_target(f"host:{port}") == f"host:{port}"
    server.stop(0)
    assert unix_sockets.grpc_target(f"127.0.0.1:{port}") == f"127.0.0.1:{port}"


def test_endpoint_at_another_address_has_no_unix_socket(serve: Serve) -> None:
    _, port = serve("127.0.0.2:0")
    assert unix_sockets.grpc_target(f"127.0.0.2:{port}") == f"127.0.0.2:{port}"
    assert unix_sockets.grpc_target(f"127.0.0.1:{port}") == f"127.0.0.1:{port}"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
def test_a_socket_of_another_user_is_not_trusted() -> None:
    program = """if True:
        import os, socket
        os.setuid(65534)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("\\0asterism:1")
        listener.listen()
        print("listening", flush=True)
        input()
    """
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "listening\n"
        probe = (
            "import os; from asterism_io import unix_sockets; os.setuid(65533); "
            "print(unix_sockets.grpc_target('127.0.0.1:1'), "
            "unix_sockets.connect('asterism:1', 1))"
        )
        completed = subprocess.run(
            [sys.executable, "-c", probe],
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        other.communicate("\n")
    assert completed.stdout.split() == ["127.0.0.1:1", "None"]


@pytest.mark.parametrize("make", TRANSPORTS)
def test_calls_fall_back_from_unix_socket_to_port(serve: Serve, make: Callable[[str], Any]) -> None:
    server, port = serve("127.0.0.1:0")
    transport = make(f"127.0.0.1:{port}")
    connection = unix_sockets.connect(f"asterism:{port}", 1)
    assert connection is not None
    connection.close()
    send_request(transport)
    server.stop(0)
    peers: list[str] = []
    other = start_loopback_server(port, peers)
    try:
        for _ in range(2):  # the call that detects the missing server may fail
            with contextlib.suppress(Unavailable):
                send_request(transport)
                break
        assert [peer.partition(":")[0] for peer in peers] == ["ipv4"]
    finally:
        transport.close()
        other.stop(0)


def test_streams_fall_back_from_unix_socket_to_port() -> None:
    with endpoints(local=True) as server:
        assert server.ask(1) == [1]
        assert [connection.family for connection in server.stream._connections] == [socket.AF_UNIX]
        server.announced.append(
            TcpEndpoint(server.stream.port, server.stream.key, "asterism-streams:of-another-host")
        )
        local_transport, server.transport = (
            server.transport,
            TcpTransport(server.transport.address, RemoteTransport(server.transport.address)),
        )
        try:
            assert server.ask(2) == [2]
            assert sorted(connection.family for connection in server.stream._connections) == [
                socket.AF_UNIX,
                socket.AF_INET,
            ]
            assert server.transports_used == ["stream", "stream"]
        finally:
            server.transport.close()
            server.transport = local_transport
