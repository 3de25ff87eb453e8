"""Requests that a client sends: retries, hedged requests to a second graphd, cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.kit import requests
from tests.kit.requests import (
    READ,
    WRITE,
    answer_after,
    answer_never,
    answer_with_error,
    stub_graphd,
)
from tests.kit.waiting import HANG_S

from asterism.aio.connections import GREENLET_WAITER
from asterism.aio.greenlets import run_in_greenlet
from asterism.transport.direct import DirectTransport
from asterism.transport.grpc import HEDGED_METHODS, NON_IDEMPOTENT_METHODS, GrpcTransport
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.grpc_server import GrpcServer
from asterism_proto.errors import Busy, Deadline, NotFound, Unavailable
from asterism_proto.framing import Frame
from asterism_proto.methods import ACCESS, CATALOG, GRAPH


def timed_call(
    transport: GrpcTransport, method: requests.Method = READ, timeout_s: float = 10
) -> float:
    started = time.monotonic()
    transport.call(method, requests.request(method), timeout_s)
    return time.monotonic() - started


def set_first_address(transport: GrpcTransport, index: int) -> GrpcTransport:
    """Make the next call start with this address."""
    transport._stub(READ.path)
    transport._next_address = index
    return transport


def test_retries_of_many_callers_do_not_overload_a_busy_service() -> None:
    callers, calls_per_caller = 40, 10

    def call() -> None:
        for _ in range(calls_per_caller):
            with contextlib.suppress(Busy, Deadline):
                timed_call(transport, timeout_s=0.5)

    with stub_graphd(lambda _: answer_with_error(Busy("too much"))) as graphd:
        transport = GrpcTransport(graphd.address)
        started = time.monotonic()
        threads = [threading.Thread(target=call) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - started
        traffic = transport.traffic
        transport.close()
    calls = callers * calls_per_caller
    assert traffic.calls == calls
    assert len(graphd.calls) <= traffic.requests <= calls + traffic.retries
    assert 100 <= traffic.retries <= 100 + 0.2 * calls + 10 * seconds + 1


def test_a_single_caller_retries_until_it_succeeds() -> None:
    failures = iter([Busy("once"), Unavailable("twice"), Busy("three times")])

    def answer(call: object) -> None:
        for error in failures:
            raise error

    with stub_graphd(lambda _: answer) as graphd:
        transport = GrpcTransport(graphd.address)
        timed_call(transport)
        assert graphd.calls == ["read"] * 4
        assert transport.traffic.retries == 3
        transport.close()


def test_slow_read_is_hedged_and_the_loser_cancelled() -> None:
    with stub_graphd(answer_never) as silent, stub_graphd() as quick:
        transport = set_first_address(GrpcTransport([silent.address, quick.address], hedge=0.05), 0)
        assert 0.05 < timed_call(transport) < 3
        assert silent.hung_up.wait(HANG_S), "the request that lost was not cancelled"
        traffic = transport.traffic
        assert (
            traffic.calls,
            traffic.requests,
            traffic.hedges,
            traffic.hedges_won,
            traffic.retries,
        ) == (1, 2, 1, 1, 0)
        assert timed_call(transport) < 1, "an address that lost is passed over for a while"
        assert (len(silent.calls), len(quick.calls)) == (1, 2)
        transport.close()


def test_reads_are_sent_once_in_time_or_without_hedging() -> None:
    with (
        stub_graphd(lambda _: answer_after(0.2)) as one,
        stub_graphd(lambda _: answer_after(0.2)) as other,
    ):
        for hedge in (None, 5.0, "p95"):
            transport = GrpcTransport([one.address, other.address], hedge=hedge)
            timed_call(transport)
            assert (transport.traffic.requests, transport.traffic.hedges) == (1, 0)
            transport.close()


def test_a_call_that_writes_is_never_sent_twice() -> None:
    with stub_graphd(lambda _: answer_after(0.3)) as slow, stub_graphd() as quick:
        transport = set_first_address(GrpcTransport([slow.address, quick.address], hedge=0.01), 0)
        timed_call(transport, WRITE)
        assert (slow.calls, quick.calls) == (["write"], [])
        transport.close()


def test_a_write_with_a_lost_answer_is_not_sent_again() -> None:
    with stub_graphd(lambda _: answer_with_error(Unavailable("lost"))) as graphd:
        transport = GrpcTransport(graphd.address)
        with pytest.raises(Unavailable, match="lost"):
            timed_call(transport, WRITE)
        assert graphd.calls == ["write"]
        transport.close()


@contextlib.contextmanager
def graphd_that_loses_answers() -> Iterator[tuple[str, list[str]]]:
    """Serve every method; each call arrives, and its answer is lost. Yield address and paths."""
    arrived: list[str] = []

    def handler(path: str) -> Callable[[Any, CallContext], Any]:
        def lose(message: Any, call: CallContext) -> Any:
            arrived.append(path)
            raise Unavailable("lost")

        return lose

    groups = [{method.python_name: method for method in group.values()} for group in SERVICES]
    server = GrpcServer(
        address="127.0.0.1:0",
        services={
            next(iter(methods.values())).service: (
                methods,
                {method.path: handler(method.path) for method in methods.values()},
            )
            for methods in groups
        },
        workers=4,
        queue=16,
    )
    try:
        yield f"127.0.0.1:{server.start()}", arrived
    finally:
        server.stop(0.1)


SERVICES = (GRAPH, CATALOG, ACCESS)
METHOD_OF_PATH = {method.path: method for group in SERVICES for method in group.values()}


@pytest.mark.parametrize("transport_class", [GrpcTransport, DirectTransport])
def test_no_change_is_sent_again_after_a_lost_answer(
    transport_class: type[GrpcTransport],
) -> None:
    with graphd_that_loses_answers() as (address, arrived):
        transport = transport_class(address)
        for path in sorted(NON_IDEMPOTENT_METHODS):
            method = METHOD_OF_PATH[path]
            arrived.clear()
            content: Any = Frame(method.request()) if method.is_framed else method.request()
            with pytest.raises(Unavailable, match="lost"):
                transport.call(method, content, 10)
            assert [sent for sent in arrived if sent != GRAPH["get_routes"].path] == [path]
        arrived.clear()
        with pytest.raises(Unavailable, match="lost"):
            transport.call(READ, requests.request(READ), 10)
        assert len(arrived) > 1
        transport.close()


def test_only_calls_that_read_may_be_hedged() -> None:
    changing = {"write", "write_once", "query"}
    assert {GRAPH[name].path for name in GRAPH.keys() - changing} | {
        CATALOG[name].path for name in CATALOG if name.startswith(("get_", "list_", "describe_"))
    } == HEDGED_METHODS
    assert not HEDGED_METHODS & {
        CATALOG[name].path
        for name in (
            "create_space",
            "submit_job",
            "pin_version",
            "renew_pin",
            "export_space",
            "import_space",
        )
    }


def test_hedges_are_at_most_a_tenth_of_the_calls_beyond_ten() -> None:
    with (
        stub_graphd(lambda _: answer_after(0.02)) as one,
        stub_graphd(lambda _: answer_after(0.02)) as other,
    ):
        transport = GrpcTransport([one.address, other.address], hedge=0.001)
        for _ in range(60):
            # Addresses that lose are skipped for a while; without this reset no call could be
            # hedged.
            transport._cooldown_ends.clear()
            timed_call(transport)
        assert 10 <= transport.traffic.hedges <= 16
        transport.close()


def test_the_hedging_delay_follows_observed_latency() -> None:
    with (
        stub_graphd(lambda _: answer_after(0.03)) as one,
        stub_graphd(lambda _: answer_after(0.03)) as other,
    ):
        transport = GrpcTransport([one.address, other.address], hedge="p95")
        for _ in range(19):
            timed_call(transport)
        assert transport._delays is not None
        assert transport._delays.delay_for(READ.path) is None
        assert transport.traffic.hedges == 0
        timed_call(transport)
        delay = transport._delays.delay_for(READ.path)
        assert delay is not None
        assert 0.03 <= delay < 1
        transport.close()


def test_final_error_ends_a_hedged_call_and_a_transient_does_not() -> None:
    with (
        stub_graphd(lambda _: answer_with_error(NotFound("no such space"))) as one,
        stub_graphd(answer_never) as other,
    ):
        transport = set_first_address(GrpcTransport([one.address, other.address], hedge=0.05), 1)
        with pytest.raises(NotFound, match="no such space"):
            timed_call(transport)
        transport.close()
    with (
        stub_graphd(lambda _: answer_after(0.4)) as slow,
        stub_graphd(lambda _: answer_with_error(Busy("full"))) as full,
    ):
        transport = set_first_address(GrpcTransport([slow.address, full.address], hedge=0.05), 0)
        assert timed_call(transport) >= 0.4
        assert (
            transport.traffic.hedges,
            transport.traffic.hedges_won,
            transport.traffic.retries,
        ) == (1, 0, 0)
        transport.close()


def test_a_cancelled_task_cancels_its_request() -> None:
    async def run() -> None:
        task = asyncio.ensure_future(run_in_greenlet(timed_call, transport))
        assert await asyncio.to_thread(graphd.call_arrived.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(graphd.hung_up.wait, 5), "the request went on"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await run_in_greenlet(timed_call, transport)

    with stub_graphd(answer_never) as graphd:
        transport = GrpcTransport(graphd.address, waits=GREENLET_WAITER)
        asyncio.run(run())
        transport.close()


def test_waits_retries_and_hedges_do_not_block_the_event_loop() -> None:
    async def run() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        clock = asyncio.ensure_future(tick())
        seconds = await run_in_greenlet(timed_call, set_first_address(transport, 0))
        with pytest.raises(Busy):
            await run_in_greenlet(timed_call, busy, READ, 1.0)
        clock.cancel()
        assert seconds >= 0.3
        assert ticks > 2

    with (
        stub_graphd(answer_never) as silent,
        stub_graphd() as quick,
        stub_graphd(lambda _: answer_with_error(Busy("full"))) as full,
    ):
        transport = GrpcTransport([silent.address, quick.address], hedge=0.3, waits=GREENLET_WAITER)
        busy = GrpcTransport(full.address, waits=GREENLET_WAITER)
        asyncio.run(run())
        assert (transport.traffic.hedges_won, busy.traffic.retries > 1) == (1, True)
        transport.close()
        busy.close()


def test_thousand_calls_of_one_loop_queue_in_the_client() -> None:
    peak = active = 0
    lock = threading.Lock()

    def answer(call: object) -> None:
        nonlocal peak, active
        with lock:
            active += 1
            peak = max(peak, active)
        time.sleep(0.002)
        with lock:
            active -= 1

    async def run() -> None:
        await asyncio.gather(*(run_in_greenlet(timed_call, transport) for _ in range(1000)))
        with pytest.raises(Deadline, match="time"):
            await asyncio.gather(
                *(run_in_greenlet(timed_call, transport, READ, 0.1) for _ in range(1000))
            )

    with stub_graphd(lambda _: answer, workers=100, queue=0) as graphd:  # would refuse a 101st call
        transport = GrpcTransport(graphd.address, waits=GREENLET_WAITER)
        asyncio.run(run())
        assert transport.traffic.retries == 0
        assert 10 < peak <= 64
        transport.close()
