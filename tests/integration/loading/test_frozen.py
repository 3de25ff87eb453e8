"""A storaged stopped by SIGSTOP: its host accepts data, but no reply comes."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cluster import LocalCluster
from tests.kit.endpoints import echo, endpoints
from tests.kit.frozen import stopped_process
from tests.kit.waiting import HANG_S, QUICK_S, let_pass

import asterism
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.peer_probe import PING_TIMEOUT_S, PROBE_AFTER_S
from asterism_daemonkit.rpc.tcp_client import GREETING, MAGIC, REPLY, TcpEndpoint, receive
from asterism_proto.errors import Deadline, Unavailable
from asterism_proto.framing import Frame

DETECTION_S = QUICK_S
"""Time limit of detection, far below a call's deadline.

A call waits one second, then six for a ping reply; the client's retries add to that.
"""


def seconds_until_refused(graph: asterism.Graph, address: str) -> float:
    begun = time.monotonic()
    with pytest.raises(
        asterism.Unavailable, match=f"no answer from storaged at {address} for .* suspended"
    ) as raised:
        graph.sample_edges(500, seed=8)
    assert not isinstance(raised.value, asterism.Deadline)
    return time.monotonic() - begun


def test_frozen_storaged_fails_calls_early_and_recovers() -> None:
    with LocalCluster(2) as cluster:
        graph = cases.load(cluster.client(timeout_s=HANG_S), "cases")
        expected = graph.sample_edges(500, seed=8).edge_ids
        daemon = cluster["storaged-1"]
        with stopped_process(daemon.pid):
            seconds: list[float] = []
            callers = [
                threading.Thread(
                    target=lambda: seconds.append(seconds_until_refused(graph, daemon.address))
                )
                for _ in range(8)
            ]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join()
            print(f"the first ones noticed after {sorted(seconds)} s")
            assert len(seconds) == 8
            assert max(seconds) < DETECTION_S
            later = seconds_until_refused(graph, daemon.address)
            print(f"a later one after {later} s")
            assert later < DETECTION_S
        begun = time.monotonic()
        while True:  # pings are a second apart
            with contextlib.suppress(asterism.Unavailable):
                assert np.array_equal(graph.sample_edges(500, seed=8).edge_ids, expected)
                break
            assert time.monotonic() - begun < DETECTION_S
        print(f"answered again after {time.monotonic() - begun} s")


def test_frozen_storaged_is_noticed_over_grpc_alone() -> None:
    with LocalCluster(2, flags={"storaged": ["--stream-listen", ""]}) as cluster:
        graph = cases.load(cluster.client(timeout_s=HANG_S), "cases")
        graph.sample_edges(500, seed=8)
        with (
            stopped_process(cluster["storaged-1"].pid),
            asterism.connect(cluster.addresses, timeout_s=HANG_S) as client,
        ):
            begun = time.monotonic()
            with pytest.raises(asterism.Unavailable, match="storaged") as raised:
                client.graph("cases").sample_edges(500, seed=8)
            assert time.monotonic() - begun < DETECTION_S
            print(raised.value)


def test_slow_call_succeeds_while_the_daemon_is_alive() -> None:
    def echo_slowly(request: Frame, call: CallContext) -> Frame:
        let_pass(3 * PROBE_AFTER_S)
        return echo(request, call)

    with endpoints(echo_slowly) as daemon:
        assert daemon.ask(1, 2) == [1, 2]
        assert daemon.transports_used == ["stream"]


@pytest.mark.parametrize(
    "said", [0, REPLY.size, REPLY.size + 10], ids=["nothing", "how long it is", "a part of it"]
)
def test_daemon_that_stalls_in_mid_reply_is_unavailable(said: int) -> None:
    with endpoints() as daemon, socket.create_server(("127.0.0.1", 0)) as silent:

        def greet() -> None:
            connection, _ = silent.accept()
            receive(connection, GREETING.size, time.monotonic() + HANG_S)
            connection.sendall(GREETING.pack(MAGIC, 0, 7))
            daemon.grpc.stop(0)
            connection.sendall((REPLY.pack(MAGIC, 0, 100) + bytes(100))[:said])
            finished.wait(HANG_S)
            connection.close()

        finished = threading.Event()
        daemon.announced.append(TcpEndpoint(silent.getsockname()[1], 7))
        thread = threading.Thread(target=greet)
        thread.start()
        begun = time.monotonic()
        with pytest.raises(Unavailable, match=r"no answer from .* for .* suspended") as raised:
            daemon.ask(1, timeout_s=60)
        assert not isinstance(raised.value, Deadline)
        first = time.monotonic() - begun
        assert PING_TIMEOUT_S < first < DETECTION_S
        begun = time.monotonic()
        with pytest.raises(Unavailable, match=r"no answer from .* for .* suspended"):
            daemon.ask(1, timeout_s=60)
        assert time.monotonic() - begun < first / 2, "known by now"
        finished.set()
        thread.join()
