"""Silent and slow callers of the gRPC port: others are served, and silence ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.kit.hostile import http2
from tests.kit.waiting import HANG_S, wait_until

from asterism_access.principals import LOCAL, Principal
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.connection_limits import ConnectionLimits
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.grpc_server import GrpcServer
from asterism_daemonkit.rpc.message_memory import MessageMemory
from asterism_daemonkit.rpc.silent_callers import SilentCallers
from asterism_proto import errors
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

METHOD = CATALOG["describe_space"]
HEALTH = "/grpc.health.v1.Health/Check"
SHORT = ConnectionLimits(request_timeout_s=0.3, reply_timeout_s=0.3, header_timeout_s=0.5)
LONG = ConnectionLimits(request_timeout_s=HANG_S, reply_timeout_s=HANG_S)
Serve = Callable[..., tuple[GrpcServer, str]]


def _describe(request: metad_pb.SpaceRequest, call: CallContext) -> common_pb.Space:
    return common_pb.Space(name="x" * int(request.space or 1))


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a server and returns it with its address."""
    servers: list[GrpcServer] = []

    def start(
        limits: ConnectionLimits,
        *,
        workers: int = 2,
        queue: int = 6,
        authenticate: Callable[[str], Principal] | None = None,
    ) -> tuple[GrpcServer, str]:
        server = GrpcServer(
            address="127.0.0.1:0",
            services={METHOD.service: ({"describe_space": METHOD}, {METHOD.path: _describe})},
            workers=workers,
            queue=queue,
            limits=limits,
            authenticate=authenticate,
        )
        servers.append(server)
        address = f"127.0.0.1:{server.start()}"
        server.set_serving(True)
        return server, address

    yield start
    for server in servers:
        server.stop(0)


def _ask(address: str, size: int = 1) -> int:
    transport = RemoteTransport(address)
    try:
        reply = transport.call(METHOD, metad_pb.SpaceRequest(space=str(size)), HANG_S)
    finally:
        transport.close()
    assert isinstance(reply, common_pb.Space)
    return len(reply.name)


def _begin_calls(address: str, path: str, count: int) -> http2.Connection:
    """Begin calls without a message."""
    connection = http2.Connection(address, HANG_S)
    headers = http2.call_headers(path, None)
    for number in range(1, 2 * count, 2):
        connection.send(http2.frame(http2.HEADERS, headers, flags=4, stream=number))
    return connection


def test_calls_without_a_message_hold_no_worker(serve: Serve) -> None:
    server, address = serve(LONG)
    silent = _begin_calls(address, METHOD.path, 6)
    wait_until(lambda: server._pool.admitted == 6, "the calls have arrived")
    assert _ask(address) == 1
    silent.close()
    wait_until(lambda: server._pool.admitted == 0, "the calls have ended with their connection")


def test_a_call_without_its_message_ends_in_time(serve: Serve) -> None:
    server, address = serve(SHORT)
    silent = _begin_calls(address, METHOD.path, 8)
    found: dict[int, str] = {}
    while len(found) < 8 and silent.is_open:
        silent._read(found)
    assert len(found) == 8
    wait_until(lambda: server._pool.admitted == 0, "no thread waits")
    silent.close()


def test_health_checks_without_a_message_delay_no_other(serve: Serve) -> None:
    _, address = serve(LONG)
    silent = _begin_calls(address, HEALTH, 20)
    with grpc.insecure_channel(address) as channel:
        reply = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=HANG_S
        )
        updates = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert next(updates).status == health_pb2.HealthCheckResponse.SERVING
        updates.cancel()
    assert reply.status == health_pb2.HealthCheckResponse.SERVING
    silent.close()


def test_a_call_without_credentials_is_refused_before_its_message(serve: Serve) -> None:
    def authenticate(authorization: str) -> Principal:
        if not authorization:
            raise errors.Unauthenticated("authorization: expected 'Bearer' and a credential")
        return LOCAL

    _, address = serve(LONG, authenticate=authenticate)
    silent = _begin_calls(address, METHOD.path, 20)
    found: dict[int, str] = {}
    while len(found) < 20 and silent.is_open:
        silent._read(found)
    assert set(found.values()) == {"UNAUTHENTICATED"}
    silent.close()


def test_a_call_without_any_message_is_an_invalid_request(serve: Serve) -> None:
    _, address = serve(LONG)
    connection = http2.Connection(address, HANG_S)
    calls = [http2.Call(http2.call_headers(METHOD.path, None), b"")]
    assert connection.statuses(calls) == ["INVALID_ARGUMENT"]
    connection.close()


def test_a_reply_that_is_not_taken_is_dropped(serve: Serve) -> None:
    """The caller gives no window for data, and no deadline."""
    server, address = serve(SHORT)
    connection = http2.Connection(address, HANG_S)
    connection.send(http2.settings([(4, 0)]))
    data = metad_pb.SpaceRequest(space="100000").SerializeToString()
    call = http2.Call(http2.call_headers(METHOD.path, None), http2.message(data))
    assert connection.statuses([call])[0] in ("RESET", "CANCELLED")
    wait_until(lambda: not server._silent_callers._waiting, "nothing is watched")
    assert _ask(address, 100_000) == 100_000
    connection.close()


def test_connections_beyond_the_limit_are_closed(serve: Serve) -> None:
    _, address = serve(ConnectionLimits(grpc_connections=1))
    first = http2.Connection(address, HANG_S)
    call = http2.Call(http2.call_headers(METHOD.path, None), http2.message(b""))
    assert first.statuses([call]) == ["OK"]
    second = http2.Connection(address, HANG_S)
    assert second.statuses([call]) == ["CLOSED"]
    assert first.statuses([call]) == ["OK"]
    first.close()
    second.close()


def test_a_connection_that_does_not_speak_http2_is_closed(serve: Serve) -> None:
    _, address = serve(SHORT)
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), HANG_S) as silent:
        silent.sendall(http2.PREFACE[:5])
        while silent.recv(4096):
            pass


def test_a_compressed_message_is_limited_like_another(serve: Serve) -> None:
    _, address = serve(LONG)
    with grpc.insecure_channel(
        address,
        options=[("grpc.max_send_message_length", -1)],
        compression=grpc.Compression.Gzip,
    ) as channel:
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary(METHOD.path)(bytes(70 << 20), timeout=HANG_S)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert _ask(address) == 1


def test_waits_end_at_their_time_only() -> None:
    watch, ended = SilentCallers(0.01), threading.Event()
    watch.start()
    with watch.waiting(pytest.fail, HANG_S):
        watch.enter(ended.set, 0.05)
        assert ended.wait(HANG_S)
    wait_until(lambda: not watch._waiting, "nothing waits")
    wait_until(lambda: not watch._has_calls.is_set(), "the thread sleeps")
    watch.stop()


def test_large_messages_beyond_the_memory_are_busy() -> None:
    memory, large = MessageMemory(10 << 20), 6 << 20
    with (
        memory.reserve(large),
        memory.reserve(1000),
        memory.reserve(4 << 20),
        pytest.raises(errors.Busy, match="take 10 MiB, of at most 10; try again"),
        memory.reserve(2 << 20),
    ):
        pass
    assert memory.taken_bytes == 0
    with memory.reserve(20 << 20):  # a single one always passes
        assert memory.taken_bytes == 20 << 20
