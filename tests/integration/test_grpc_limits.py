"""The bounds of a gRPC door: full queues, large messages, long texts, hung-up channels; each is one of our errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from tests.kit.waiting import HANG_S, wait_until

from asterism.transport import GrpcTransport
from asterism_proto.errors import ALL, AsterismError, Busy, Deadline, Internal, InvalidRequest, Unavailable
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import common_pb2, metad_pb2
from daemonkit.calls import MAX_MESSAGE, Call
from daemonkit.channels import RemoteTransport
from daemonkit.metrics import Metrics
from daemonkit.server import GrpcServer

METHOD = CATALOG["describe_space"]
REQUEST = metad_pb2.SpaceRequest(space="shop")

Answer = Callable[[metad_pb2.SpaceRequest, Call], common_pb2.Space]


@contextmanager
def door(answer: Answer, *, workers: int = 2, queue: int = 8, metrics: Metrics | None = None) -> Iterator[RemoteTransport]:
    """A server of one method, and the way to it."""
    server = GrpcServer(
        address="127.0.0.1:0",
        services={METHOD.service: ({METHOD.python_name: METHOD}, {METHOD.path: answer})},
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


def ask(transport: RemoteTransport, timeout_s: float = 10) -> common_pb2.Space:
    return cast(common_pb2.Space, transport.call(METHOD, REQUEST, timeout_s))


def arrived(transport: RemoteTransport, calls: int) -> None:
    """Wait until as many calls run or wait at the server."""
    wait_until(lambda: transport.calls_there() >= calls, f"{calls} calls have arrived")  # type: ignore[attr-defined]


def raising(error: Exception) -> Answer:
    def answer(request: metad_pb2.SpaceRequest, call: Call) -> common_pb2.Space:
        raise error

    return answer


def test_a_call_beyond_the_queue_is_refused_while_those_before_it_still_wait() -> None:
    release, entered = threading.Event(), threading.Event()

    def answer(request: metad_pb2.SpaceRequest, call: Call) -> common_pb2.Space:
        entered.set()
        release.wait(HANG_S)
        return common_pb2.Space(name="shop")

    with door(answer, workers=1, queue=2) as transport:
        waiting = [transport.start(METHOD, REQUEST, 10)]
        assert entered.wait(HANG_S)
        waiting += [transport.start(METHOD, REQUEST, 10) for _ in range(2)]
        arrived(transport, 3)
        with pytest.raises(Busy, match="3 calls wait or run already; ask again"):
            ask(transport)
        release.set()
        assert [cast(common_pb2.Space, call.result()).name for call in waiting] == ["shop"] * 3
        assert ask(transport).name == "shop"


def test_metrics_count_answers_by_code_and_forget_no_call_in_flight() -> None:
    metrics = Metrics("toy")
    with door(raising(InvalidRequest("no")), metrics=metrics) as transport, pytest.raises(InvalidRequest):
        ask(transport)
    text = metrics.text().decode()
    assert 'method="DescribeSpace"' in text
    assert 'code="INVALID_ARGUMENT"' in text
    assert 'asterism_calls_in_flight{daemon="toy"} 0.0' in text


@pytest.mark.parametrize("cls", ALL)
def test_every_error_comes_through_a_real_socket_as_itself(cls: type[AsterismError]) -> None:
    with door(raising(cls("space 'größe' is not there; create it"))) as transport:
        with pytest.raises(AsterismError) as caught:
            ask(transport)
        assert type(caught.value) is cls
        assert caught.value.message == "space 'größe' is not there; create it"


def test_a_fault_of_ours_says_where_its_story_is_and_not_what_it_was(caplog: pytest.LogCaptureFixture) -> None:
    with door(raising(ZeroDivisionError("secret"))) as transport, pytest.raises(Internal) as caught:
        ask(transport)
    logged = [record for record in caplog.records if record.exc_info]
    assert len(logged) == 1
    assert str(vars(logged[0])["error_id"]) in caught.value.message
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("text", ["ö" * 50_000, "x" * 50_000, "a\nb\x00c %41"])
def test_a_text_of_any_length_and_letters_does_not_break_the_call(text: str) -> None:
    with door(raising(InvalidRequest(text))) as transport, pytest.raises(InvalidRequest) as caught:
        ask(transport)
    assert text.startswith(caught.value.message.removesuffix(" ..."))
    assert len(caught.value.message) >= min(len(text), 900)


def test_a_text_with_half_a_letter_still_arrives() -> None:
    with door(raising(InvalidRequest("file 'a\udcff.csv' is empty"))) as transport, pytest.raises(InvalidRequest, match=r"file 'a\?.csv' is empty"):
        ask(transport)


def test_messages_beyond_the_limit_are_invalid_and_not_a_reason_to_try_again() -> None:
    big = "x" * (MAX_MESSAGE + 1)
    with door(lambda request, call: common_pb2.Space(name=big)) as transport:
        with pytest.raises(InvalidRequest, match="the reply is 671088"):
            ask(transport)
        with pytest.raises(InvalidRequest, match="the request is 671088"):
            transport.call(METHOD, metad_pb2.SpaceRequest(space=big), 10)


def test_a_caller_whose_time_is_up_gets_deadline_and_the_handler_sees_it_too() -> None:
    left: list[float] = []

    def answer(request: metad_pb2.SpaceRequest, call: Call) -> common_pb2.Space:
        left.append(call.remaining())
        wait_until(lambda: not call.is_active(), "its caller has given up")
        with pytest.raises(Deadline):
            call.remaining()
        left.append(0.0)
        return common_pb2.Space()

    with door(answer) as transport:
        with pytest.raises(Deadline):
            ask(transport, 2.0)
        with pytest.raises(Deadline):
            ask(transport, 0.0)
        wait_until(lambda: len(left) == 2, "the handler has seen it")
    assert 0 < left[0] <= 2.05  # gRPC rounds deadlines up
    assert left[1:] == [0.0]


def test_nobody_at_the_address_is_unavailable_and_says_which_address() -> None:
    with door(lambda request, call: common_pb2.Space()) as transport:
        address = transport.address
        ask(transport)
    gone = RemoteTransport(address)
    with pytest.raises(Unavailable, match=address):
        ask(gone, 2)
    gone.close()


def test_a_closed_transport_dials_no_more() -> None:
    with door(lambda request, call: common_pb2.Space()) as transport:
        ask(transport)
        transport.close()
        with pytest.raises(Unavailable, match="closed"):
            ask(transport)


def test_a_caller_with_one_call_does_not_wait_behind_all_those_of_another() -> None:
    def answer(request: metad_pb2.SpaceRequest, call: Call) -> common_pb2.Space:
        time.sleep(0.05)
        return common_pb2.Space(name=request.space)

    with door(answer, workers=2, queue=100) as transport:
        heavy, light = GrpcTransport(transport.address), GrpcTransport(transport.address)
        ask(transport)
        threads = [threading.Thread(target=heavy.call, args=(METHOD, REQUEST, HANG_S)) for _ in range(40)]
        for thread in threads:
            thread.start()
        arrived(transport, 20)
        light.call(METHOD, REQUEST, HANG_S)
        assert any(thread.is_alive() for thread in threads), "in turn it would come after all of them"
        for thread in threads:
            thread.join(HANG_S)


def test_a_caller_who_fills_the_queue_leaves_another_his_share() -> None:
    release = threading.Event()

    def answer(request: metad_pb2.SpaceRequest, call: Call) -> common_pb2.Space:
        release.wait(HANG_S)
        return common_pb2.Space(name=request.space)

    with door(answer, workers=2, queue=6) as transport:
        waiting = [transport.start(METHOD, REQUEST, 10) for _ in range(8)]
        arrived(transport, 8)
        with pytest.raises(Busy, match="8 calls wait or run already"):
            ask(transport)
        other = GrpcTransport(transport.address)
        found: list[object] = []
        late = threading.Thread(target=lambda: found.append(other._send(METHOD, METHOD.pack(REQUEST), time.monotonic() + HANG_S)))  # not tried again
        late.start()
        arrived(transport, 9)
        release.set()
        late.join(HANG_S)
        assert len(found) == 1
        assert [cast(common_pb2.Space, call.result()).name for call in waiting] == ["shop"] * 8
