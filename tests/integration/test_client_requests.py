"""What a client sends: how often it tries again, when it asks a second graphd, and what it cancels."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import pytest
from tests.kit import requests
from tests.kit.requests import READ, WRITE, door, never, raising, slowly
from tests.kit.waiting import HANG_S

from asterism.aio.opening import STRANDS
from asterism.aio.strands import awaited
from asterism.transport import HEDGED, GrpcTransport
from asterism_proto.errors import Busy, Deadline, NotFound, Unavailable
from asterism_proto.methods import CATALOG, GRAPH


def ask(transport: GrpcTransport, method: requests.Method = READ, timeout_s: float = 10) -> float:
    begun = time.monotonic()
    transport.call(method, requests.request(method), timeout_s)
    return time.monotonic() - begun


def turned(transport: GrpcTransport, place: int) -> GrpcTransport:
    """The next call goes to this address first."""
    transport._stub(READ.path)
    transport._turn = place
    return transport


def test_retries_of_many_callers_do_not_multiply_what_a_busy_service_is_asked() -> None:
    callers, each = 40, 10

    def call() -> None:
        for _ in range(each):
            with contextlib.suppress(Busy, Deadline):
                ask(transport, timeout_s=0.5)

    with door(lambda _: raising(Busy("too much"))) as found:
        transport = GrpcTransport(found.address)
        begun = time.monotonic()
        threads = [threading.Thread(target=call) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begun
        traffic = transport.traffic
        transport.close()
    calls = callers * each
    assert traffic.calls == calls
    assert len(found.asked) <= traffic.requests <= calls + traffic.retries
    assert 100 <= traffic.retries <= 100 + 0.2 * calls + 10 * seconds + 1


def test_a_lone_caller_still_tries_again_until_it_is_answered() -> None:
    failures = iter([Busy("once"), Unavailable("twice"), Busy("three times")])

    def answer(call: object) -> None:
        for error in failures:
            raise error

    with door(lambda _: answer) as found:
        transport = GrpcTransport(found.address)
        ask(transport)
        assert found.asked == ["read"] * 4
        assert transport.traffic.retries == 3
        transport.close()


def test_a_read_that_takes_long_is_asked_of_another_graphd_and_the_slow_one_is_hung_up_on() -> None:
    with door(never) as silent, door() as quick:
        transport = turned(GrpcTransport([silent.address, quick.address], hedge=0.05), 0)
        assert 0.05 < ask(transport) < 3
        assert silent.hung_up.wait(HANG_S), "the request that lost was not cancelled"
        told = transport.traffic
        assert (told.calls, told.requests, told.hedges, told.hedges_won, told.retries) == (1, 2, 1, 1, 0)
        assert ask(transport) < 1, "an address that lost is passed over for a while"
        assert (len(silent.asked), len(quick.asked)) == (1, 2)
        transport.close()


def test_a_read_that_is_answered_in_time_is_asked_once_and_so_is_every_one_by_default() -> None:
    with door(lambda _: slowly(0.2)) as one, door(lambda _: slowly(0.2)) as other:
        for hedge in (None, 5.0, "p95"):
            transport = GrpcTransport([one.address, other.address], hedge=hedge)
            ask(transport)
            assert (transport.traffic.requests, transport.traffic.hedges) == (1, 0)
            transport.close()


def test_a_call_that_changes_something_is_never_asked_twice() -> None:
    with door(lambda _: slowly(0.3)) as slow, door() as quick:
        transport = turned(GrpcTransport([slow.address, quick.address], hedge=0.01), 0)
        ask(transport, WRITE)
        assert (slow.asked, quick.asked) == (["write"], [])
        transport.close()


def test_only_calls_that_read_may_be_hedged() -> None:
    changing = {"write", "write_once", "query"}
    assert {GRAPH[name].path for name in GRAPH.keys() - changing} | {
        CATALOG[name].path for name in CATALOG if name.startswith(("get_", "list_", "describe_"))
    } == HEDGED
    assert not HEDGED & {CATALOG[name].path for name in ("create_space", "submit_job", "pin_version", "renew_pin", "export_space", "import_space")}


def test_second_requests_are_at_most_a_tenth_of_the_calls_beyond_ten() -> None:
    with door(lambda _: slowly(0.02)) as one, door(lambda _: slowly(0.02)) as other:
        transport = GrpcTransport([one.address, other.address], hedge=0.001)
        for _ in range(60):
            transport._resting.clear()  # an address that loses is passed over, and nobody could be asked twice
            ask(transport)
        assert 10 <= transport.traffic.hedges <= 16
        transport.close()


def test_the_delay_of_a_hedge_follows_what_answers_take() -> None:
    with door(lambda _: slowly(0.03)) as one, door(lambda _: slowly(0.03)) as other:
        transport = GrpcTransport([one.address, other.address], hedge="p95")
        for _ in range(19):
            ask(transport)
        assert transport._delays is not None
        assert transport._delays.of(READ.path) is None
        assert transport.traffic.hedges == 0
        ask(transport)
        delay = transport._delays.of(READ.path)
        assert delay is not None
        assert 0.03 <= delay < 1
        transport.close()


def test_an_error_that_is_an_answer_is_given_at_once_and_one_that_may_pass_waits_for_the_other_graphd() -> None:
    with door(lambda _: raising(NotFound("no such space"))) as one, door(never) as other:
        transport = turned(GrpcTransport([one.address, other.address], hedge=0.05), 1)
        with pytest.raises(NotFound, match="no such space"):
            ask(transport)
        transport.close()
    with door(lambda _: slowly(0.4)) as slow, door(lambda _: raising(Busy("full"))) as full:
        transport = turned(GrpcTransport([slow.address, full.address], hedge=0.05), 0)
        assert ask(transport) >= 0.4
        assert (transport.traffic.hedges, transport.traffic.hedges_won, transport.traffic.retries) == (1, 0, 0)
        transport.close()


def test_a_task_that_is_cancelled_hangs_up() -> None:
    async def run() -> None:
        task = asyncio.ensure_future(awaited(ask, transport))
        assert await asyncio.to_thread(found.came.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(found.hung_up.wait, 5), "the request went on"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await awaited(ask, transport)

    with door(never) as found:
        transport = GrpcTransport(found.address, waits=STRANDS)
        asyncio.run(run())
        transport.close()


def test_an_event_loop_goes_on_while_calls_wait_try_again_and_are_hedged() -> None:
    async def run() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        clock = asyncio.ensure_future(tick())
        took = await awaited(ask, turned(transport, 0))
        with pytest.raises(Busy):
            await awaited(ask, busy, READ, 1.0)
        clock.cancel()
        assert took >= 0.3
        assert ticks > 2

    with door(never) as silent, door() as quick, door(lambda _: raising(Busy("full"))) as full:
        transport = GrpcTransport([silent.address, quick.address], hedge=0.3, waits=STRANDS)
        busy = GrpcTransport(full.address, waits=STRANDS)
        asyncio.run(run())
        assert (transport.traffic.hedges_won, busy.traffic.retries > 1) == (1, True)
        transport.close()
        busy.close()


def test_a_thousand_calls_of_one_loop_wait_for_their_turns_and_not_at_the_door() -> None:
    most = now = 0
    lock = threading.Lock()

    def answer(call: object) -> None:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.002)
        with lock:
            now -= 1

    async def run() -> None:
        await asyncio.gather(*(awaited(ask, transport) for _ in range(1000)))
        with pytest.raises(Deadline, match="time"):
            await asyncio.gather(*(awaited(ask, transport, READ, 0.1) for _ in range(1000)))

    with door(lambda _: answer, workers=100, queue=0) as found:  # a hundred and first would be refused
        transport = GrpcTransport(found.address, waits=STRANDS)
        asyncio.run(run())
        assert transport.traffic.retries == 0
        assert 10 < most <= 64
        transport.close()
