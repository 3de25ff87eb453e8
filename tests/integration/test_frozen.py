"""A storaged that is stopped, not ended: its host takes what it is sent, and nobody answers."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cluster import LocalCluster
from tests.kit.doors import doors, echo
from tests.kit.frozen import frozen
from tests.kit.waiting import HANG_S, QUICK_S, let_pass

import asterism
from asterism_proto.arrays import Frame
from asterism_proto.errors import Deadline, Unavailable
from daemonkit.calls import Call
from daemonkit.pulse import PATIENCE_S, PING_S
from daemonkit.streams import GREETING, MAGIC, REPLY, Door, receive

NOTICED_S = QUICK_S
"""A second of patience, six for an answer to a ping, and the client's further attempts: long before a call's time is up."""


def refused_after(graph: asterism.Graph, address: str) -> float:
    begun = time.monotonic()
    with pytest.raises(asterism.Unavailable, match=f"storaged .*{address}.* has not answered for .* stopped") as raised:
        graph.sample_edges(500, seed=8)
    assert not isinstance(raised.value, asterism.Deadline)
    return time.monotonic() - begun


def test_a_frozen_storaged_fails_calls_long_before_their_time_is_up_and_answers_again_once_it_goes_on() -> None:
    with LocalCluster(2) as cluster:
        graph = cases.load(cluster.client(timeout_s=HANG_S), "cases")
        expected = graph.sample_edges(500, seed=8).edge_ids
        daemon = cluster["storaged-1"]
        with frozen(daemon.pid):
            seconds: list[float] = []
            callers = [threading.Thread(target=lambda: seconds.append(refused_after(graph, daemon.address))) for _ in range(8)]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join()
            print(f"the first ones noticed after {sorted(seconds)} s")
            assert len(seconds) == 8
            assert max(seconds) < NOTICED_S
            again = refused_after(graph, daemon.address)
            print(f"a later one after {again} s")
            assert again < NOTICED_S
        begun = time.monotonic()
        while True:  # pings are a second apart
            with contextlib.suppress(asterism.Unavailable):
                assert np.array_equal(graph.sample_edges(500, seed=8).edge_ids, expected)
                break
            assert time.monotonic() - begun < NOTICED_S
        print(f"answered again after {time.monotonic() - begun} s")


def test_a_frozen_storaged_that_only_grpc_leads_to_is_noticed_too() -> None:
    with LocalCluster(2, flags={"storaged": ["--stream-listen", ""]}) as cluster:
        graph = cases.load(cluster.client(timeout_s=HANG_S), "cases")
        graph.sample_edges(500, seed=8)
        with frozen(cluster["storaged-1"].pid), asterism.connect(cluster.addresses, timeout_s=HANG_S) as client:
            begun = time.monotonic()
            with pytest.raises(asterism.Unavailable, match="storaged") as raised:
                client.graph("cases").sample_edges(500, seed=8)
            assert time.monotonic() - begun < NOTICED_S
            print(raised.value)


def test_a_call_may_take_long_where_the_daemon_is_there() -> None:
    def slowly(asked: Frame, call: Call) -> Frame:
        let_pass(3 * PATIENCE_S)
        return echo(asked, call)

    with doors(slowly) as found:
        assert found.ask(1, 2) == [1, 2]
        assert found.asked_over == ["stream"]


@pytest.mark.parametrize("said", [0, REPLY.size, REPLY.size + 10], ids=["nothing", "how long it is", "a part of it"])
def test_a_daemon_that_falls_silent_is_unavailable_whatever_it_said_of_its_reply(said: int) -> None:
    with doors() as found, socket.create_server(("127.0.0.1", 0)) as silent:

        def greet() -> None:
            connection, _ = silent.accept()
            receive(connection, GREETING.size, time.monotonic() + HANG_S)
            connection.sendall(GREETING.pack(MAGIC, 0, 7))
            found.grpc.stop(0)
            connection.sendall((REPLY.pack(MAGIC, 0, 100) + bytes(100))[:said])
            ended.wait(HANG_S)
            connection.close()

        ended = threading.Event()
        found.told.append(Door(silent.getsockname()[1], 7))
        thread = threading.Thread(target=greet)
        thread.start()
        begun = time.monotonic()
        with pytest.raises(Unavailable, match="has not answered") as raised:
            found.ask(1, timeout_s=60)
        assert not isinstance(raised.value, Deadline)
        first = time.monotonic() - begun
        assert PING_S < first < NOTICED_S
        begun = time.monotonic()
        with pytest.raises(Unavailable, match="has not answered"):
            found.ask(1, timeout_s=60)
        assert time.monotonic() - begun < first / 2, "known by now"
        ended.set()
        thread.join()
