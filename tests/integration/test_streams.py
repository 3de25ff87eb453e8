"""The stream door: the same calls as over gRPC, each answered by its own reply, whatever happens to connections between."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
import time

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cluster import LocalCluster
from tests.kit.doors import METHOD, doors, echo, request
from tests.kit.waiting import HANG_S, wait_until

from asterism_proto.arrays import DTYPES, Frame
from asterism_proto.errors import ALL, AsterismError, Busy, Deadline, Internal, InvalidRequest, Unavailable
from asterism_proto.methods import STORE
from asterism_proto.v1 import storaged_pb2 as pb
from daemonkit.calls import MAX_MESSAGE, Call, Handler
from daemonkit.metrics import Metrics
from daemonkit.stream_door import StreamDoor
from daemonkit.streams import GREETING, MAGIC, REPLY, REQUEST, Door, number, receive


def test_arrays_of_every_type_come_back_as_they_were_over_one_connection() -> None:
    with doors() as there:
        for dtype in sorted(DTYPES):
            for shape in ((0,), (1,), (5,), (1000, 3)):
                array = (np.arange(np.prod(shape, dtype=int)) % 2).astype(dtype).reshape(shape)
                reply = there.transport.call(METHOD, Frame(pb.ReadDegreesRequest(), {"first": array, "ids": np.array([4])}), 10)
                assert isinstance(reply, Frame)
                assert reply.arrays["first"].dtype == array.dtype
                assert reply.arrays["first"].shape == array.shape
                assert np.array_equal(reply.arrays["first"], array)
        large = np.arange(4_000_000)
        assert there.ask(*[1, 2, 3]) == [1, 2, 3]
        reply = there.transport.call(METHOD, Frame(pb.ReadDegreesRequest(), {"ids": large}), 10)
        assert isinstance(reply, Frame)
        assert np.array_equal(reply.arrays["ids"], large)
        assert set(there.asked_over) == {"stream"}
        assert there.connections() == 1


@pytest.mark.parametrize("kind", [*ALL, RuntimeError])
def test_an_error_is_what_it_was_and_the_connection_goes_on(kind: type[Exception]) -> None:
    def answer(asked: Frame, call: Call) -> Frame:
        if asked.arrays["ids"].size:
            return echo(asked, call)
        raise kind("the value 7\nand a second line, ä")

    with doors(answer) as there:
        assert there.ask(1) == [1]
        with pytest.raises(kind if issubclass(kind, AsterismError) else Internal) as raised:
            there.ask()
        assert ("the value 7\nand a second line, ä" in str(raised.value)) == issubclass(kind, AsterismError)
        assert there.ask(2) == [2]
        assert there.connections() == 1


def test_calls_at_the_same_time_each_get_their_own_reply() -> None:
    with doors(workers=8, queue=64) as there:
        wrong: list[list[int]] = []

        def many(first: int) -> None:
            wrong.extend([first, i] for i in range(200) if there.ask(first, i) != [first, i])

        threads = [threading.Thread(target=many, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        assert wrong == []
        assert len(there.asked_over) == 1600
        assert there.connections() <= 8


def test_a_call_that_takes_too_long_is_a_deadline_and_its_late_reply_is_nobody_elses() -> None:
    go_on, answered = threading.Event(), threading.Event()

    def answer(asked: Frame, call: Call) -> Frame:
        if asked.arrays["ids"][0] == 1:
            go_on.wait(HANG_S)
            answered.set()
        return echo(asked, call)

    with doors(answer) as there:
        there.ask(0)
        with pytest.raises(Deadline):
            there.ask(1, timeout_s=0.1)
        assert not answered.is_set()
        assert there.ask(2) == [2]
        go_on.set()
        assert answered.wait(HANG_S)
        assert [there.ask(value) for value in (3, 4, 5)] == [[3], [4], [5]]
        assert set(there.asked_over) == {"stream"}


def test_a_call_that_is_abandoned_takes_its_connection_with_it() -> None:
    with doors() as there:
        there.ask(0)
        there.transport.start(METHOD, request(1), 10).abandon()
        assert there.ask(2) == [2]


def test_a_handler_is_told_that_its_caller_hung_up() -> None:
    seen: list[bool] = []
    over = threading.Event()

    def answer(asked: Frame, call: Call) -> Frame:
        until = time.monotonic() + HANG_S
        while call.is_active() and time.monotonic() < until:
            time.sleep(0.01)
        seen.append(call.is_active())
        over.set()
        return echo(asked, call)

    with doors(answer) as there:
        there.transport.start(METHOD, request(1), 10).abandon()
        assert over.wait(HANG_S)
        assert seen == [False]


def test_a_daemon_with_more_than_a_thousand_open_files_answers_as_any_other() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]

    def answer(asked: Frame, call: Call) -> Frame:
        call.remaining()
        return echo(asked, call)

    try:
        with doors(answer) as there:
            assert there.ask(1) == [1]
            assert there.asked_over == ["stream"]
    finally:
        for file in held:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_call_beyond_the_queue_is_refused() -> None:
    release = threading.Event()

    def answer(asked: Frame, call: Call) -> Frame:
        release.wait(HANG_S)
        return echo(asked, call)

    with doors(answer, workers=1, queue=2) as there:
        waiting = [there.transport.start(METHOD, request(value), 10) for value in range(3)]
        wait_until(lambda: there.stream._calls == 3, "all have arrived")
        with pytest.raises(Busy, match="3 calls wait or run already; ask again"):
            there.ask(9)
        release.set()
        replies = [call.result() for call in waiting]
        assert [int(reply.arrays["ids"][0]) for reply in replies if isinstance(reply, Frame)] == [0, 1, 2]


def test_a_door_that_was_opened_anew_elsewhere_is_found_again() -> None:
    with doors() as there:
        waiting = [there.transport.start(METHOD, request(value), 10) for value in range(4)]
        assert [call.result() is not None for call in waiting] == [True] * 4
        assert there.connections() == 4
        there.stream.stop(0)
        handlers: dict[str, Handler] = {method.path: echo for method in STORE.values()}
        other = StreamDoor(address="127.0.0.1:0", methods=STORE, handlers=handlers, workers=2, queue=8)
        there.told.append(Door(other.start(), other.key))
        asked = len(there.asked_over)
        try:
            assert [there.ask(value) for value in range(8)] == [[value] for value in range(8)]
            assert len(there.asked_over) == asked, "neither the old door nor gRPC was asked"
        finally:
            other.stop(0)


@pytest.mark.parametrize("what", ["none", "nobody listens", "somebody else's"])
def test_calls_go_over_grpc_where_there_is_no_stream_door(what: str) -> None:
    with doors() as there, socket.create_server(("127.0.0.1", 0)) as other:
        said: list[socket.socket] = []

        def stranger() -> None:
            connection, _ = other.accept()
            said.append(connection)
            connection.sendall(GREETING.pack(MAGIC, 0, 12345))

        if what == "none":
            there.told.append(Door(0, 0))
        elif what == "nobody listens":
            there.stream.stop(0)
        else:
            threading.Thread(target=stranger, daemon=True).start()
            there.told.append(Door(other.getsockname()[1], 1))
        assert there.ask(1) == [1]
        assert there.ask(2) == [2]
        assert there.asked_over == ["grpc", "grpc"]
        for connection in said:
            connection.close()


def test_a_daemon_that_is_gone_is_unavailable() -> None:
    with doors() as there:
        there.ask(1)
        there.stream.stop(0)
        there.grpc.stop(0)
        with pytest.raises(Unavailable, match="is it running"):  # and not Deadline
            there.ask(2, timeout_s=HANG_S)


def test_a_connection_that_breaks_in_the_middle_of_a_reply_is_unavailable_and_no_answer() -> None:
    with doors() as there, socket.create_server(("127.0.0.1", 0)) as torn:

        def begin_a_reply() -> None:
            connection, _ = torn.accept()
            with connection:
                receive(connection, GREETING.size, time.monotonic() + HANG_S)
                connection.sendall(GREETING.pack(MAGIC, 0, 3))
                receive(connection, REQUEST.size, time.monotonic() + HANG_S)
                connection.sendall(REPLY.pack(MAGIC, 0, 1000) + bytes(500))

        threading.Thread(target=begin_a_reply, daemon=True).start()
        there.told.append(Door(torn.getsockname()[1], 3))
        with pytest.raises(Unavailable, match="hung up in the middle"):
            there.ask(1)
        there.told.append(Door(there.stream.port, there.stream.key))
        assert there.ask(2) == [2]
        assert there.asked_over == ["stream"]


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2,
        GREETING.pack(MAGIC, 0, 1) + REQUEST.pack(MAGIC, number(METHOD.path), 10**6, 0),
        bytes(64),
        b"\xff" * 64,
        b"",
    ],
    ids=["http", "another key", "zeros", "ones", "nothing"],
)
def test_whoever_does_not_know_the_key_is_hung_up_on(raw: bytes) -> None:
    with doors() as there, socket.create_connection(("127.0.0.1", there.stream.port), timeout=HANG_S) as stranger:
        stranger.sendall(raw)
        with contextlib.suppress(OSError):  # hung up on already
            stranger.shutdown(socket.SHUT_WR)
        heard = b""
        with contextlib.suppress(ConnectionResetError):  # there was more to read than a greeting
            while got := stranger.recv(4096):
                heard += got
        assert heard in (b"", GREETING.pack(MAGIC, 0, 0))
        assert there.ask(1) == [1]
        assert there.asked_over == ["stream"]


@pytest.mark.parametrize(
    ("head", "body", "goes_on"),
    [
        (REQUEST.pack(1, number(METHOD.path), 10**6, 8), bytes(8), False),
        (REQUEST.pack(MAGIC, number(METHOD.path), 10**6, MAX_MESSAGE + 1), b"", False),
        (REQUEST.pack(MAGIC, 77, 10**6, 8), bytes(8), True),
        (REQUEST.pack(MAGIC, number(STORE["write_blocks"].path), 10**6, 8), bytes(8), True),
        (REQUEST.pack(MAGIC, number(METHOD.path), 10**6, 8), bytes(8), True),
        (REQUEST.pack(MAGIC, number(METHOD.path), 10**6, 0), b"", True),
    ],
    ids=["magic", "length", "method", "a method that writes", "no frame", "empty"],
)
def test_a_request_that_is_none_is_refused_with_a_typed_error(head: bytes, body: bytes, goes_on: bool) -> None:
    with doors() as there, socket.create_connection(("127.0.0.1", there.stream.port), timeout=HANG_S) as caller:
        caller.sendall(GREETING.pack(MAGIC, 0, there.stream.key))
        assert GREETING.unpack(receive(caller, GREETING.size, time.monotonic() + HANG_S)) == (MAGIC, 0, there.stream.key)
        for _ in range(2 if goes_on else 1):
            caller.sendall(head + body)
            magic, status, length = (int.from_bytes(bytes(receive(caller, size, time.monotonic() + HANG_S)), "little") for size in (4, 4, 8))
            assert (magic, status) == (MAGIC, 1)
            assert bytes(receive(caller, length, time.monotonic() + HANG_S)).split(b"\n")[0] in (b"InvalidRequest", b"NotFound")
        if not goes_on:
            with contextlib.suppress(ConnectionResetError):  # its body was not read
                assert caller.recv(1) == b""
        assert there.asked_over == []


def test_messages_too_large_for_one_are_refused_on_either_side() -> None:
    def answer(asked: Frame, call: Call) -> Frame:
        return Frame(pb.ReadDegreesReply(), {"ids": np.zeros(MAX_MESSAGE // 8, np.float64)})

    with doors(answer) as there:
        with pytest.raises(InvalidRequest, match=r"the reply is \d+ bytes"):
            there.ask(1)
        with pytest.raises(InvalidRequest, match=r"the request is \d+ bytes"):
            there.transport.call(METHOD, Frame(pb.ReadDegreesRequest(), {"ids": np.zeros(MAX_MESSAGE // 8, np.float64)}), 10)


def test_metrics_count_answers_by_code_and_forget_no_call_in_flight() -> None:
    metrics = Metrics("toy")
    with doors(metrics=metrics) as there:
        there.ask(1)
        with pytest.raises(InvalidRequest):
            there.transport.call(METHOD, Frame(pb.ReadDegreesRequest(), {"ids": np.zeros(MAX_MESSAGE // 8, np.float64)}), 10)
        time.sleep(0.05)
    text = metrics.text().decode()
    assert 'asterism_calls_total{code="OK",daemon="toy",method="ReadDegrees"} 1.0' in text
    assert 'asterism_calls_in_flight{daemon="toy"} 0.0' in text


def test_a_cluster_answers_the_same_with_and_without_stream_doors() -> None:
    found = []
    for flags in ({}, {"storaged": ["--stream-listen", ""]}):
        with LocalCluster(2, 1, flags=flags) as cluster:
            graph = cases.load(cluster.client(), "cases")
            found.append(cases.answers(graph))
            logs = cluster["graphd-0"].log.read_text()
            assert ("has no stream door" in logs) == bool(flags)
    assert found[0] == found[1]
