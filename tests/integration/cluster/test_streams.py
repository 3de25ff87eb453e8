"""The binary RPC endpoint serves the same calls as gRPC.

Each call gets its own reply, even if connections are lost in between.
"""

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
from tests.kit.endpoints import METHOD, echo, endpoints, request
from tests.kit.waiting import HANG_S, wait_until

from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc import tcp_server
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.tcp_client import (
    GREETING,
    MAGIC,
    REPLY,
    REQUEST,
    TcpEndpoint,
    method_id,
    receive,
)
from asterism_daemonkit.rpc.tcp_server import TcpServer
from asterism_proto.errors import (
    ALL,
    AsterismError,
    Busy,
    Deadline,
    Internal,
    InvalidRequest,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
)
from asterism_proto.framing import DTYPES, Frame
from asterism_proto.methods import STORE
from asterism_proto.transport import MAX_MESSAGE_BYTES
from asterism_proto.v1 import storaged_pb2 as storaged_pb


def test_arrays_of_every_dtype_round_trip_on_one_connection() -> None:
    with endpoints() as server:
        for dtype in sorted(DTYPES):
            for shape in ((0,), (1,), (5,), (1000, 3)):
                array = (np.arange(np.prod(shape, dtype=int)) % 2).astype(dtype).reshape(shape)
                reply = server.transport.call(
                    METHOD,
                    Frame(storaged_pb.ReadDegreesRequest(), {"first": array, "ids": np.array([4])}),
                    10,
                )
                assert isinstance(reply, Frame)
                assert reply.arrays["first"].dtype == array.dtype
                assert reply.arrays["first"].shape == array.shape
                assert np.array_equal(reply.arrays["first"], array)
        large = np.arange(4_000_000)
        assert server.ask(*[1, 2, 3]) == [1, 2, 3]
        reply = server.transport.call(
            METHOD, Frame(storaged_pb.ReadDegreesRequest(), {"ids": large}), 10
        )
        assert isinstance(reply, Frame)
        assert np.array_equal(reply.arrays["ids"], large)
        assert set(server.transports_used) == {"stream"}
        assert server.connections() == 1


@pytest.mark.parametrize("kind", [*ALL, RuntimeError])
def test_errors_keep_their_type_and_the_connection(kind: type[Exception]) -> None:
    def handler(frame: Frame, call: CallContext) -> Frame:
        if frame.arrays["ids"].size:
            return echo(frame, call)
        raise kind("the value 7\nand a second line, ä")

    with endpoints(handler) as server:
        assert server.ask(1) == [1]
        with pytest.raises(kind if issubclass(kind, AsterismError) else Internal) as raised:
            server.ask()
        assert ("the value 7\nand a second line, ä" in str(raised.value)) == issubclass(
            kind, AsterismError
        )
        assert server.ask(2) == [2]
        assert server.connections() == 1


def test_an_error_states_the_wait_before_a_retry() -> None:
    def respond(frame: Frame, call: CallContext) -> Frame:
        raise QuotaExceeded("rows_per_s=10: used up by 'alice'", retry_after_s=0.2304)

    with endpoints(respond) as daemon:
        with pytest.raises(QuotaExceeded, match="rows_per_s=10") as caught:
            daemon.ask(1)
        assert daemon.transports_used == ["stream"]
    assert caught.value.retry_after_s == 0.231


def test_a_handler_sees_the_address_of_its_caller() -> None:
    peers: list[str] = []

    def respond(frame: Frame, call: CallContext) -> Frame:
        peers.append(call.peer())
        return echo(frame, call)

    for local in (False, True):
        with endpoints(respond, local=local) as daemon:
            assert daemon.ask(1) == [1]
    assert peers[0].startswith("127.0.0.1:")
    assert peers[1] == "unix"


def test_concurrent_calls_get_their_own_replies() -> None:
    with endpoints(workers=8, queue=64) as server:
        mismatches: list[list[int]] = []

        def call_many(first: int) -> None:
            mismatches.extend([first, i] for i in range(200) if server.ask(first, i) != [first, i])

        threads = [threading.Thread(target=call_many, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        assert mismatches == []
        assert len(server.transports_used) == 1600
        assert server.connections() <= 8


def test_late_reply_after_deadline_is_discarded() -> None:
    proceed, replied = threading.Event(), threading.Event()

    def handler(frame: Frame, call: CallContext) -> Frame:
        if frame.arrays["ids"][0] == 1:
            proceed.wait(HANG_S)
            replied.set()
        return echo(frame, call)

    with endpoints(handler) as server:
        server.ask(0)
        with pytest.raises(Deadline):
            server.ask(1, timeout_s=0.1)
        assert not replied.is_set()
        assert server.ask(2) == [2]
        proceed.set()
        assert replied.wait(HANG_S)
        assert [server.ask(value) for value in (3, 4, 5)] == [[3], [4], [5]]
        assert set(server.transports_used) == {"stream"}


def test_abandoned_call_gives_up_its_connection() -> None:
    with endpoints() as server:
        server.ask(0)
        server.transport.start(METHOD, request(1), 10).abandon()
        assert server.ask(2) == [2]


def test_handler_sees_that_its_caller_hung_up() -> None:
    observed: list[bool] = []
    finished = threading.Event()

    def handler(frame: Frame, call: CallContext) -> Frame:
        wait_until(lambda: not call.is_active(), "the caller has hung up")
        observed.append(call.is_active())
        finished.set()
        return echo(frame, call)

    with endpoints(handler) as server:
        server.transport.start(METHOD, request(1), 10).abandon()
        assert finished.wait(HANG_S)
        assert observed == [False]


def test_calls_work_with_over_1024_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    open_files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]

    def handler(frame: Frame, call: CallContext) -> Frame:
        call.remaining()
        return echo(frame, call)

    try:
        with endpoints(handler) as server:
            assert server.ask(1) == [1]
            assert server.transports_used == ["stream"]
    finally:
        for file in open_files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_call_beyond_the_queue_is_refused() -> None:
    release = threading.Event()

    def handler(frame: Frame, call: CallContext) -> Frame:
        release.wait(HANG_S)
        return echo(frame, call)

    with endpoints(handler, workers=1, queue=2) as server:
        waiting = [server.transport.start(METHOD, request(value), 10) for value in range(3)]
        wait_until(lambda: server.stream._slots.calls == 3, "all have arrived")
        with pytest.raises(Busy, match="all 3 slots for calls are taken; try again"):
            server.ask(9)
        release.set()
        replies = [call.result() for call in waiting]
        assert [int(reply.arrays["ids"][0]) for reply in replies if isinstance(reply, Frame)] == [
            0,
            1,
            2,
        ]


def test_moved_endpoint_is_found_again() -> None:
    with endpoints() as server:
        waiting = [server.transport.start(METHOD, request(value), 10) for value in range(4)]
        assert [call.result() is not None for call in waiting] == [True] * 4
        assert server.connections() == 4
        server.stream.stop(0)
        handlers: dict[str, Handler] = {method.path: echo for method in STORE.values()}
        new_server = TcpServer(
            address="127.0.0.1:0", methods=STORE, handlers=handlers, workers=2, queue=8
        )
        server.announced.append(TcpEndpoint(new_server.start(), new_server.key))
        call_count = len(server.transports_used)
        try:
            assert [server.ask(value) for value in range(8)] == [[value] for value in range(8)]
            assert len(server.transports_used) == call_count, (
                "neither the old endpoint nor gRPC was asked"
            )
        finally:
            new_server.stop(0)


@pytest.mark.parametrize("what", ["none", "no listener", "another daemon's"])
def test_calls_fall_back_to_grpc_without_tcp_endpoint(what: str) -> None:
    with endpoints() as server, socket.create_server(("127.0.0.1", 0)) as listener:
        connections: list[socket.socket] = []

        def accept_and_greet() -> None:
            connection, _ = listener.accept()
            connections.append(connection)
            connection.sendall(GREETING.pack(MAGIC, 0, 12345))

        if what == "none":
            server.announced.append(TcpEndpoint(0, 0))
        elif what == "no listener":
            server.stream.stop(0)
        else:
            threading.Thread(target=accept_and_greet, daemon=True).start()
            server.announced.append(TcpEndpoint(listener.getsockname()[1], 1))
        assert server.ask(1) == [1]
        assert server.ask(2) == [2]
        assert server.transports_used == ["grpc", "grpc"]
        for connection in connections:
            connection.close()


def test_stopped_daemon_is_unavailable() -> None:
    with endpoints() as server:
        server.ask(1)
        server.stream.stop(0)
        server.grpc.stop(0)
        with pytest.raises(Unavailable, match="is it running"):  # and not Deadline
            server.ask(2, timeout_s=HANG_S)


def test_connection_lost_during_reply_is_unavailable() -> None:
    with endpoints() as server, socket.create_server(("127.0.0.1", 0)) as listener:

        def send_partial_reply() -> None:
            connection, _ = listener.accept()
            with connection:
                receive(connection, GREETING.size, time.monotonic() + HANG_S)
                connection.sendall(GREETING.pack(MAGIC, 0, 3))
                receive(connection, REQUEST.size, time.monotonic() + HANG_S)
                connection.sendall(REPLY.pack(MAGIC, 0, 1000) + bytes(500))

        threading.Thread(target=send_partial_reply, daemon=True).start()
        server.announced.append(TcpEndpoint(listener.getsockname()[1], 3))
        with pytest.raises(Unavailable, match="closed the connection during a reply"):
            server.ask(1)
        server.announced.append(TcpEndpoint(server.stream.port, server.stream.key))
        assert server.ask(2) == [2]
        assert server.transports_used == ["stream"]


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2,
        GREETING.pack(MAGIC, 0, 1) + REQUEST.pack(MAGIC, method_id(METHOD.path), 10**6, 0),
        bytes(64),
        b"\xff" * 64,
        b"",
    ],
    ids=["http", "another key", "zeros", "ones", "nothing"],
)
def test_caller_without_the_key_is_disconnected(raw: bytes) -> None:
    with (
        endpoints() as server,
        socket.create_connection(("127.0.0.1", server.stream.port), timeout=HANG_S) as connection,
    ):
        connection.sendall(raw)
        with contextlib.suppress(OSError):  # the server has already closed the connection
            connection.shutdown(socket.SHUT_WR)
        received = b""
        # The server closed the connection with unread input
        with contextlib.suppress(ConnectionResetError):
            while chunk := connection.recv(4096):
                received += chunk
        assert received in (b"", GREETING.pack(MAGIC, 0, 0))
        assert server.ask(1) == [1]
        assert server.transports_used == ["stream"]


@pytest.mark.parametrize(
    ("head", "body", "goes_on"),
    [
        (REQUEST.pack(1, method_id(METHOD.path), 10**6, 8), bytes(8), False),
        (REQUEST.pack(MAGIC, method_id(METHOD.path), 10**6, MAX_MESSAGE_BYTES + 1), b"", False),
        (REQUEST.pack(MAGIC, 77, 10**6, 8), bytes(8), True),
        (REQUEST.pack(MAGIC, method_id(STORE["write_blocks"].path), 10**6, 8), bytes(8), True),
        (REQUEST.pack(MAGIC, method_id(METHOD.path), 10**6, 8), bytes(8), True),
        (REQUEST.pack(MAGIC, method_id(METHOD.path), 10**6, 0), b"", True),
    ],
    ids=["magic", "length", "method", "a method that writes", "no frame", "empty"],
)
def test_malformed_request_gets_a_typed_error(head: bytes, body: bytes, goes_on: bool) -> None:
    with (
        endpoints() as server,
        socket.create_connection(("127.0.0.1", server.stream.port), timeout=HANG_S) as connection,
    ):
        connection.sendall(GREETING.pack(MAGIC, 0, server.stream.key))
        assert GREETING.unpack(receive(connection, GREETING.size, time.monotonic() + HANG_S)) == (
            MAGIC,
            0,
            server.stream.key,
        )
        for _ in range(2 if goes_on else 1):
            connection.sendall(head + body)
            magic, status, length = (
                int.from_bytes(
                    bytes(receive(connection, size, time.monotonic() + HANG_S)), "little"
                )
                for size in (4, 4, 8)
            )
            assert (magic, status) == (MAGIC, 1)
            assert bytes(receive(connection, length, time.monotonic() + HANG_S)).split(b"\n")[
                0
            ] in (b"InvalidRequest", b"NotFound")
        if not goes_on:
            with contextlib.suppress(ConnectionResetError):  # the server did not read the body
                assert connection.recv(1) == b""
        assert server.transports_used == []


def test_oversized_messages_are_refused_on_either_side() -> None:
    def handler(frame: Frame, call: CallContext) -> Frame:
        return Frame(
            storaged_pb.ReadDegreesReply(), {"ids": np.zeros(MAX_MESSAGE_BYTES // 8, np.float64)}
        )

    with endpoints(handler) as server:
        with pytest.raises(InvalidRequest, match=r"the reply has [\d,]+ bytes"):
            server.ask(1)
        with pytest.raises(InvalidRequest, match=r"the request has [\d,]+ bytes"):
            server.transport.call(
                METHOD,
                Frame(
                    storaged_pb.ReadDegreesRequest(),
                    {"ids": np.zeros(MAX_MESSAGE_BYTES // 8, np.float64)},
                ),
                10,
            )


def test_metrics_count_replies_by_code_and_calls_in_flight() -> None:
    metrics = Metrics("toy")
    with endpoints(metrics=metrics) as server:
        server.ask(1)
        with pytest.raises(InvalidRequest):
            server.transport.call(
                METHOD,
                Frame(
                    storaged_pb.ReadDegreesRequest(),
                    {"ids": np.zeros(MAX_MESSAGE_BYTES // 8, np.float64)},
                ),
                10,
            )
        time.sleep(0.05)
    text = metrics.render().decode()
    assert 'asterism_calls_total{code="OK",daemon="toy",method="ReadDegrees"} 1.0' in text
    assert 'asterism_calls_in_flight{daemon="toy"} 0.0' in text


def test_cluster_results_do_not_depend_on_tcp_endpoints() -> None:
    """The endpoints serve the storageds of `test_cluster_equality`, with the same results."""
    with LocalCluster(2, 1, flags={"storaged": ["--stream-listen", ""]}, fast=False) as cluster:
        results = cases.call_digests(cases.load(cluster.client(), "cases"))
        assert "has no binary RPC endpoint" in cluster["graphd-0"].log.read_text()
    assert results == cases.embedded_digests()


class _Tickets:
    """Tickets of one caller: the newest is accepted, others have expired."""

    def __init__(self) -> None:
        self.newest = "tk_1"
        self.callers: list[str] = []

    def authenticate(self, authorization: str) -> Principal:
        if authorization != f"Bearer {self.newest}":
            raise Unauthenticated("ticket of 'alice': expired; get another")
        return Principal(name=self.newest, kind=PrincipalKind.TICKET)

    def respond(self, frame: Frame, call: CallContext) -> Frame:
        self.callers.append(call.principal.name)
        return echo(frame, call)


def test_a_connection_has_the_caller_of_its_ticket() -> None:
    tickets = _Tickets()
    with endpoints(
        tickets.respond, authenticate=tickets.authenticate, credentials=lambda: tickets.newest
    ) as server:
        assert server.ask(1) == [1]
        assert server.ask(2) == [2]
        assert (tickets.callers, server.transports_used) == (["tk_1"] * 2, ["stream"] * 2)


def test_an_expired_ticket_ends_a_connection_at_its_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp_server, "_VERIFY_INTERVAL_S", 0.0)
    tickets = _Tickets()
    with endpoints(
        tickets.respond, authenticate=tickets.authenticate, credentials=lambda: tickets.newest
    ) as server:
        assert server.ask(1) == [1]
        tickets.newest = "tk_2"
        assert server.ask(2) == [2]
        assert (tickets.callers, server.transports_used) == (["tk_1", "tk_2"], ["stream"] * 2)
        wait_until(lambda: server.connections() == 1, "the old connection to close")


@pytest.mark.parametrize("ticket", ["", "tk_other", "t" * 8193])
def test_without_an_accepted_ticket_no_call_is_served(ticket: str) -> None:
    tickets = _Tickets()
    with endpoints(
        tickets.respond, authenticate=tickets.authenticate, credentials=lambda: ticket
    ) as server:
        with pytest.raises(Unauthenticated, match=r"ticket of 'alice': expired|does not accept"):
            server.ask(1)
        assert server.transports_used == []
        wait_until(lambda: server.connections() == 0, "refused connections to close")


def test_a_server_without_access_control_ignores_tickets() -> None:
    tickets = _Tickets()
    with endpoints(tickets.respond, credentials=lambda: "tk_any") as server:
        assert server.ask(1) == [1]
        assert (tickets.callers, server.transports_used) == ([LOCAL.name], ["stream"])
