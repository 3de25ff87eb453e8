"""Limits of a gRPC server: full queues, large messages, long texts, closed channels.

Each is reported as an Asterism error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from tests.kit.waiting import HANG_S, wait_until

from asterism.transport.grpc import GrpcTransport
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.grpc_server import GrpcServer
from asterism_proto.errors import (
    ALL,
    AsterismError,
    Busy,
    Deadline,
    Internal,
    InvalidRequest,
    Unavailable,
)
from asterism_proto.methods import CATALOG
from asterism_proto.transport import MAX_MESSAGE_BYTES
from asterism_proto.v1 import common_pb2, metad_pb2

METHOD = CATALOG["describe_space"]
REQUEST = metad_pb2.SpaceRequest(space="shop")

Handler = Callable[[metad_pb2.SpaceRequest, CallContext], common_pb2.Space]


@contextmanager
def serve_method(
    handler: Handler, *, workers: int = 2, queue: int = 8, metrics: Metrics | None = None
) -> Iterator[RemoteTransport]:
    """Serve one method and yield a transport to it."""
    server = GrpcServer(
        address="127.0.0.1:0",
        services={METHOD.service: ({METHOD.python_name: METHOD}, {METHOD.path: handler})},
        workers=workers,
        queue=queue,
        metrics=metrics,
    )
    transport = RemoteTransport(f"127.0.0.1:{server.start()}")
    transport.calls_there = lambda: server._pool.calls  # type: ignore[attr-defined]
    try:
        yield transport
    finally:
        transport.close()
        server.stop(0.1)


def describe_space(transport: RemoteTransport, timeout_s: float = 10) -> common_pb2.Space:
    return cast(common_pb2.Space, transport.call(METHOD, REQUEST, timeout_s))


def wait_for_calls(transport: RemoteTransport, calls: int) -> None:
    """Wait until at least `calls` calls run or wait at the server."""
    wait_until(lambda: transport.calls_there() >= calls, f"{calls} calls have arrived")  # type: ignore[attr-defined]


def failing_handler(error: Exception) -> Handler:
    def handler(request: metad_pb2.SpaceRequest, call: CallContext) -> common_pb2.Space:
        raise error

    return handler


def test_full_queue_refuses_calls_and_keeps_waiting_ones() -> None:
    release, entered = threading.Event(), threading.Event()

    def handler(request: metad_pb2.SpaceRequest, call: CallContext) -> common_pb2.Space:
        entered.set()
        release.wait(HANG_S)
        return common_pb2.Space(name="shop")

    with serve_method(handler, workers=1, queue=2) as transport:
        pending = [transport.start(METHOD, REQUEST, 10)]
        assert entered.wait(HANG_S)
        pending += [transport.start(METHOD, REQUEST, 10) for _ in range(2)]
        wait_for_calls(transport, 3)
        with pytest.raises(Busy, match="all 3 slots for calls are taken; try again"):
            describe_space(transport)
        release.set()
        assert [cast(common_pb2.Space, call.result()).name for call in pending] == ["shop"] * 3
        assert describe_space(transport).name == "shop"


def test_metrics_count_replies_by_code_and_calls_in_flight() -> None:
    metrics = Metrics("toy")
    with (
        serve_method(failing_handler(InvalidRequest("no")), metrics=metrics) as transport,
        pytest.raises(InvalidRequest),
    ):
        describe_space(transport)
    text = metrics.render().decode()
    assert 'method="DescribeSpace"' in text
    assert 'code="INVALID_ARGUMENT"' in text
    assert 'asterism_calls_in_flight{daemon="toy"} 0.0' in text


@pytest.mark.parametrize("cls", ALL)
def test_every_error_keeps_type_and_message_over_a_socket(cls: type[AsterismError]) -> None:
    with serve_method(failing_handler(cls("space 'größe' is not there; create it"))) as transport:
        with pytest.raises(AsterismError) as caught:
            describe_space(transport)
        assert type(caught.value) is cls
        assert caught.value.message == "space 'größe' is not there; create it"


def test_internal_error_names_its_log_id_but_not_its_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        serve_method(failing_handler(ZeroDivisionError("secret"))) as transport,
        pytest.raises(Internal) as caught,
    ):
        describe_space(transport)
    log_records = [record for record in caplog.records if record.exc_info]
    assert len(log_records) == 1
    assert str(vars(log_records[0])["error_id"]) in caught.value.message
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("text", ["ö" * 50_000, "x" * 50_000, "a\nb\x00c %41"])
def test_error_texts_of_any_length_and_characters_arrive(text: str) -> None:
    with (
        serve_method(failing_handler(InvalidRequest(text))) as transport,
        pytest.raises(InvalidRequest) as caught,
    ):
        describe_space(transport)
    assert text.startswith(caught.value.message.removesuffix(" ..."))
    assert len(caught.value.message) >= min(len(text), 900)


def test_error_text_with_a_lone_surrogate_arrives() -> None:
    with (
        serve_method(failing_handler(InvalidRequest("file 'a\udcff.csv' is empty"))) as transport,
        pytest.raises(InvalidRequest, match=r"file 'a\?.csv' is empty"),
    ):
        describe_space(transport)


def test_messages_beyond_the_limit_are_invalid_requests() -> None:
    big = "x" * (MAX_MESSAGE_BYTES + 1)
    with serve_method(lambda request, call: common_pb2.Space(name=big)) as transport:
        with pytest.raises(InvalidRequest, match="the reply has 67,108,8"):
            describe_space(transport)
        with pytest.raises(InvalidRequest, match="the request has 67,108,8"):
            transport.call(METHOD, metad_pb2.SpaceRequest(space=big), 10)


def test_expired_deadline_reaches_caller_and_handler() -> None:
    remaining_s: list[float] = []

    def handler(request: metad_pb2.SpaceRequest, call: CallContext) -> common_pb2.Space:
        remaining_s.append(call.remaining())
        wait_until(lambda: not call.is_active(), "its caller has given up")
        with pytest.raises(Deadline):
            call.remaining()
        remaining_s.append(0.0)
        return common_pb2.Space()

    with serve_method(handler) as transport:
        with pytest.raises(Deadline):
            describe_space(transport, 2.0)
        with pytest.raises(Deadline):
            describe_space(transport, 0.0)
        wait_until(lambda: len(remaining_s) == 2, "the handler has seen it")
    assert 0 < remaining_s[0] <= 2.05  # gRPC rounds deadlines up
    assert remaining_s[1:] == [0.0]


def test_unreachable_server_is_unavailable_with_its_address() -> None:
    with serve_method(lambda request, call: common_pb2.Space()) as transport:
        address = transport.address
        describe_space(transport)
    unreachable = RemoteTransport(address)
    with pytest.raises(Unavailable, match=address):
        describe_space(unreachable, 2)
    unreachable.close()


def test_closed_transport_does_not_reconnect() -> None:
    with serve_method(lambda request, call: common_pb2.Space()) as transport:
        describe_space(transport)
        transport.close()
        with pytest.raises(Unavailable, match="closed"):
            describe_space(transport)


def test_single_call_overtakes_another_clients_backlog() -> None:
    def handler(request: metad_pb2.SpaceRequest, call: CallContext) -> common_pb2.Space:
        time.sleep(0.05)
        return common_pb2.Space(name=request.space)

    with serve_method(handler, workers=2, queue=100) as transport:
        heavy, light = GrpcTransport(transport.address), GrpcTransport(transport.address)
        describe_space(transport)
        threads = [
            threading.Thread(target=heavy.call, args=(METHOD, REQUEST, HANG_S)) for _ in range(40)
        ]
        for thread in threads:
            thread.start()
        wait_for_calls(transport, 20)
        light.call(METHOD, REQUEST, HANG_S)
        assert any(thread.is_alive() for thread in threads), (
            "in turn it would come after all of them"
        )
        for thread in threads:
            thread.join(HANG_S)


def test_full_queue_still_admits_another_client() -> None:
    release = threading.Event()

    def handler(request: metad_pb2.SpaceRequest, call: CallContext) -> common_pb2.Space:
        release.wait(HANG_S)
        return common_pb2.Space(name=request.space)

    with serve_method(handler, workers=2, queue=6) as transport:
        pending = [transport.start(METHOD, REQUEST, 10) for _ in range(8)]
        wait_for_calls(transport, 8)
        with pytest.raises(Busy, match="all 8 slots for calls are taken"):
            describe_space(transport)
        other = GrpcTransport(transport.address)
        replies: list[object] = []
        late_thread = threading.Thread(
            target=lambda: replies.append(
                other._send_queued(METHOD, METHOD.pack(REQUEST), time.monotonic() + HANG_S)
            )
        )  # without retries
        late_thread.start()
        wait_for_calls(transport, 9)
        release.set()
        late_thread.join(HANG_S)
        assert len(replies) == 1
        assert [cast(common_pb2.Space, call.result()).name for call in pending] == ["shop"] * 8
