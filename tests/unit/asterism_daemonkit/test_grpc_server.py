"""Tests of the gRPC endpoint over real sockets, with a small service."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.kit.waiting import HANG_S, wait_until

from asterism.transport.grpc import GrpcTransport
from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.grpc_server import GrpcServer, principal_of
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto import errors
from asterism_proto.framing import Frame
from asterism_proto.methods import CATALOG, GRAPH
from asterism_proto.transport import Transport
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

CATALOG_SERVICE, GRAPH_SERVICE = "asterism.v1.Catalog", "asterism.v1.Graph"
Serve = Callable[..., RemoteTransport]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a server with one handler and returns a transport to it.

    The handler serves every method of Catalog and Graph.
    """
    running: list[Any] = []

    def start(handler: Handler, **options: Any) -> RemoteTransport:
        services = {
            CATALOG_SERVICE: (CATALOG, {m.path: handler for m in CATALOG.values()}),
            GRAPH_SERVICE: (GRAPH, {m.path: handler for m in GRAPH.values()}),
        }
        server = GrpcServer(address="127.0.0.1:0", services=services, **options)
        transport = RemoteTransport(f"127.0.0.1:{server.start()}")
        server.set_serving(True)
        running.append((server, transport))
        return transport

    yield start
    for server, transport in running:
        transport.close()
        server.stop(0)


def test_frame_round_trips_remotely_and_locally(serve: Serve) -> None:
    reply = Frame(
        graphd_pb.SampleNodesReply(version=7),
        {"ids": np.arange(-1, 5000), "types": np.zeros(3, np.int32)},
    )
    handler: Handler = lambda request, call: reply  # noqa: E731 - a handler is a function of two
    method = GRAPH["sample_nodes"]
    request = Frame(graphd_pb.SampleNodesRequest(space="s"))
    for transport in (serve(handler), LocalTransport({method.path: handler})):
        result = cast(Frame, transport.call(method, request, 5))
        assert result.head == reply.head
        assert {name: array.tolist() for name, array in result.arrays.items()} == {
            name: array.tolist() for name, array in reply.arrays.items()
        }
        assert cast(Frame, transport.start(method, request, 5).result()).head == reply.head


@pytest.mark.parametrize("kind", errors.ALL)
def test_every_error_keeps_its_type_and_message(
    serve: Serve, kind: type[errors.AsterismError]
) -> None:
    def handler(request: object, call: CallContext) -> common_pb.Empty:
        raise kind(f"the value 7 of {kind.__name__} is wrong")

    with pytest.raises(kind) as excinfo:
        serve(handler).call(CATALOG["list_spaces"], common_pb.Empty(), 5)
    assert type(excinfo.value) is kind
    assert excinfo.value.message == f"the value 7 of {kind.__name__} is wrong"


def test_crash_is_internal_with_an_id_and_without_details(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    def handler(request: object, call: CallContext) -> common_pb.Empty:
        raise KeyError("a secret")

    with pytest.raises(errors.Internal) as excinfo:
        serve(handler).call(CATALOG["list_spaces"], common_pb.Empty(), 5)
    assert "secret" not in excinfo.value.message
    (record,) = [record for record in caplog.records if record.getMessage() == "call_crashed"]
    assert vars(record)["error_id"] in excinfo.value.message


def test_a_request_beyond_memory_is_busy_and_the_server_goes_on(serve: Serve) -> None:
    transport = serve(
        lambda request, call: common_pb.Job(job_id=len(np.ones(1 << 56 if request.job_id else 1)))
    )
    for _ in range(2):
        with pytest.raises(
            errors.Busy, match=r"not enough memory for the request \(Unable to allocate"
        ):
            transport.call(CATALOG["get_job"], metad_pb.JobRequest(job_id=1), HANG_S)
        assert (
            cast(
                common_pb.Job, transport.call(CATALOG["get_job"], metad_pb.JobRequest(), HANG_S)
            ).job_id
            == 1
        )


def test_caller_deadline_reaches_the_handler(serve: Serve) -> None:
    remaining_s: list[float] = []

    def handler(request: object, call: CallContext) -> common_pb.Empty:
        remaining_s.append(call.remaining())
        return common_pb.Empty()

    serve(handler).call(CATALOG["drop_space"], metad_pb.DropSpaceRequest(), HANG_S)
    assert HANG_S / 2 < remaining_s[0] < HANG_S + 1


def test_a_call_that_takes_too_long_ends_with_deadline(serve: Serve) -> None:
    released = threading.Event()

    def handler(request: object, call: CallContext) -> common_pb.Empty:
        released.wait(HANG_S)
        return common_pb.Empty()

    with pytest.raises(errors.Deadline):
        serve(handler).call(CATALOG["drop_space"], metad_pb.DropSpaceRequest(), 0.3)
    released.set()


def test_call_beyond_the_queue_limit_is_busy(serve: Serve) -> None:
    released, entered = threading.Event(), threading.Semaphore(0)

    def handler(request: object, call: CallContext) -> common_pb.Empty:
        entered.release()
        released.wait(HANG_S)
        return common_pb.Empty()

    transport = serve(handler, workers=4, queue=-2)
    # Used three times.
    send = lambda: transport.call(CATALOG["drop_space"], metad_pb.DropSpaceRequest(), 10)  # noqa: E731
    with ThreadPoolExecutor(2) as pool:
        pending_calls = [pool.submit(send) for _ in range(2)]
        assert all(entered.acquire(timeout=HANG_S) for _ in range(2))
        with pytest.raises(errors.Busy, match="again in 100 ms"):
            send()
        released.set()
        assert [call.result() for call in pending_calls] == [common_pb.Empty()] * 2
    assert send() == common_pb.Empty()


def test_unreachable_address_is_unavailable_and_named() -> None:
    transport = RemoteTransport("127.0.0.1:1")
    with pytest.raises(errors.Unavailable, match=r"127\.0\.0\.1:1"):
        transport.call(CATALOG["list_spaces"], common_pb.Empty(), 2)
    transport.close()


def test_health_reports_the_daemon_status(serve: Serve) -> None:
    transport = serve(lambda request, call: common_pb.Empty())
    with grpc.insecure_channel(transport.address) as channel:
        response = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service=GRAPH_SERVICE), timeout=HANG_S
        )
    assert response.status == health_pb2.HealthCheckResponse.SERVING


def test_calls_are_counted_by_method_and_code(serve: Serve) -> None:
    metrics = Metrics("testd")

    def handler(request: object, call: CallContext) -> common_pb.Empty:
        raise errors.NotFound("no such space")

    with pytest.raises(errors.NotFound):
        serve(handler, metrics=metrics).call(CATALOG["drop_space"], metad_pb.DropSpaceRequest(), 5)
    assert (
        b'asterism_calls_total{code="NOT_FOUND",daemon="testd",method="DropSpace"} 1.0'
        in metrics.render()
    )


def test_a_client_retries_no_earlier_than_the_server_asks(serve: Serve) -> None:
    called_at: list[float] = []

    def handler(request: object, call: CallContext) -> metad_pb.SpaceList:
        called_at.append(time.monotonic())
        if len(called_at) == 1:
            raise errors.QuotaExceeded("calls_per_s=1: used up", retry_after_s=0.3)
        return metad_pb.SpaceList()

    client = GrpcTransport(serve(handler).address)
    client.call(CATALOG["list_spaces"], common_pb.Empty(), HANG_S)
    client.close()
    assert called_at[1] - called_at[0] >= 0.3, "the first back-off is 0.05 s at most"


def test_callers_with_backlogs_take_turns() -> None:
    release, order = threading.Event(), list[str]()

    def handler(request: metad_pb.SpaceRequest, call: CallContext) -> common_pb.Space:
        order.append(request.space)
        release.wait(HANG_S)
        return common_pb.Space()

    method = CATALOG["describe_space"]
    server = GrpcServer(
        address="127.0.0.1:0",
        services={CATALOG_SERVICE: ({"describe_space": method}, {method.path: handler})},
        workers=1,
    )
    with grpc.insecure_channel(f"127.0.0.1:{server.start()}") as channel:
        calls = []
        for number, name in enumerate(["first", *["greedy"] * 6, *["small"] * 3], 1):
            data = metad_pb.SpaceRequest(space=name).SerializeToString()
            stub = channel.unary_unary(method.path)
            calls.append(stub.future(data, timeout=HANG_S, metadata=((errors.CALLER_KEY, name),)))
            wait_until(lambda at=number: server._pool.calls == at, "the call waits or runs")  # type: ignore[misc]
        release.set()
        for call in calls:
            call.result()
    server.stop(0)
    assert order == ["first", *["greedy", "small"] * 3, *["greedy"] * 3]


def test_a_handler_sees_the_address_of_its_caller(serve: Serve) -> None:
    peers: list[str] = []

    def handler(request: object, call: CallContext) -> common_pb.Empty:
        peers.append(call.peer())
        return common_pb.Empty()

    address = serve(handler).address
    with grpc.insecure_channel(address) as channel:
        channel.unary_unary(CATALOG["drop_space"].path)(b"", timeout=HANG_S)
    assert peers[0].startswith("ipv4:127.0.0.1:")


def _authenticate(authorization: str) -> Principal:
    """Return the principal of ``Bearer <kind> <name>``."""
    words = authorization.split()
    if len(words) != 3 or words[0] != "Bearer":
        raise errors.Unauthenticated("authorization: expected 'Bearer' and a credential")
    return Principal(name=words[2], kind=PrincipalKind(words[1]))


def _caller(request: object, call: CallContext) -> common_pb.Space:
    """Handle DescribeSpace: return the name of the caller."""
    return common_pb.Space(name=call.principal.name)


def _name_of_caller(transport: Transport) -> str:
    reply = transport.call(CATALOG["describe_space"], metad_pb.SpaceRequest(), HANG_S)
    assert isinstance(reply, common_pb.Space)
    return reply.name


def test_handlers_get_the_caller_that_the_server_accepts(serve: Serve) -> None:
    address = serve(_caller, authenticate=_authenticate).address
    assert _name_of_caller(serve(_caller)) == LOCAL.name
    alice = RemoteTransport(address, credentials=lambda: "api_key alice")
    assert _name_of_caller(alice) == "alice"
    for credentials in (None, lambda: "", lambda: "nonsense"):
        stranger = RemoteTransport(address, credentials=credentials)
        with pytest.raises(errors.Unauthenticated, match="authorization: expected 'Bearer'"):
            _name_of_caller(stranger)
        stranger.close()
    alice.close()


def test_two_credentials_in_one_call_are_refused() -> None:
    metadata = [(errors.AUTHORIZATION_KEY, f"Bearer api_key {name}") for name in ("a", "b")]
    with pytest.raises(errors.Unauthenticated, match="expected one credential, not 2"):
        principal_of(metadata, _authenticate)


def test_only_a_daemon_forwards_calls_of_other_principals(serve: Serve) -> None:
    address = serve(_caller, authenticate=_authenticate).address
    alice = Principal(name="alice", kind=PrincipalKind.API_KEY)
    graphd = RemoteTransport(address, credentials=lambda: "daemon graphd")
    assert _name_of_caller(graphd) == "graphd"
    assert _name_of_caller(graphd.on_behalf_of(alice)) == "alice"
    bob = RemoteTransport(address, credentials=lambda: "api_key bob")
    with pytest.raises(errors.Forbidden, match="expected a daemon of the cluster"):
        _name_of_caller(bob.on_behalf_of(alice))
    graphd.close()
    bob.close()


def test_health_is_open_and_reflection_needs_a_principal(serve: Serve) -> None:
    address = serve(_caller, authenticate=_authenticate).address
    with grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        with pytest.raises(grpc.RpcError) as refused:
            next(stub.ServerReflectionInfo(iter([request]), timeout=HANG_S))
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        metadata = ((errors.AUTHORIZATION_KEY, "Bearer api_key alice"),)
        reply = next(stub.ServerReflectionInfo(iter([request]), timeout=HANG_S, metadata=metadata))
        assert GRAPH_SERVICE in {entry.name for entry in reply.list_services_response.service}


def test_a_slow_check_of_a_token_delays_no_other_call(serve: Serve) -> None:
    """The thread that takes all calls does not wait for the keys of an issuer."""
    asked, released = threading.Event(), threading.Event()

    def authenticate(authorization: str) -> Principal:
        if authorization.count(".") == 2:
            asked.set()
            released.wait(HANG_S)
            return Principal(name="tess", kind=PrincipalKind.TOKEN)
        return _authenticate(authorization)

    address = serve(_caller, authenticate=authenticate).address
    token = RemoteTransport(address, credentials=lambda: "a.b.c")
    key = RemoteTransport(address, credentials=lambda: "api_key alice")
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(_name_of_caller, token)
        assert asked.wait(HANG_S)
        assert _name_of_caller(key) == "alice"
        released.set()
        assert slow.result() == "tess"
    token.close()
    key.close()


def test_shares_are_by_principal_whatever_name_a_caller_sends(serve: Serve) -> None:
    released, entered = threading.Event(), threading.Semaphore(0)

    def handler(request: object, call: CallContext) -> common_pb.Space:
        entered.release()
        released.wait(HANG_S)
        return common_pb.Space(name=call.principal.name)

    transport = serve(handler, authenticate=_authenticate, workers=4, queue=-2)
    clients = {name: RemoteTransport(transport.address) for name in ("greedy", "modest")}

    def send(name: str, caller: str) -> object:
        metadata = (
            (errors.AUTHORIZATION_KEY, f"Bearer api_key {name}"),
            (errors.CALLER_KEY, caller),
        )
        method, request = CATALOG["describe_space"], metad_pb.SpaceRequest()
        return clients[name].call_with_metadata(method, request, HANG_S, metadata)

    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(send, "greedy", caller) for caller in ("a", "b")]
        assert all(entered.acquire(timeout=HANG_S) for _ in range(2))
        with pytest.raises(errors.Busy):
            send("greedy", "c")
        calls.append(pool.submit(send, "modest", "a"))
        assert entered.acquire(timeout=HANG_S)
        released.set()
        assert [call.result() for call in calls] == [
            common_pb.Space(name=name) for name in ("greedy", "greedy", "modest")
        ]
    for client in clients.values():
        client.close()
