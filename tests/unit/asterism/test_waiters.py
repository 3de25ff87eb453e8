"""Tests of fair semaphores (first come, first served) and of retry budgets."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.aio.greenlets import GreenletWaiter, run_in_greenlet
from asterism.transport.hedging import HedgeDelays
from asterism.transport.retry_budget import RetryBudget
from asterism.transport.waiters import THREAD_WAITER, FairSemaphore
from asterism_proto.errors import InvalidRequest


def test_semaphore_is_granted_in_request_order() -> None:
    async def run() -> None:
        semaphore, order = FairSemaphore(GreenletWaiter()), list[int]()

        def work(number: int) -> None:
            with semaphore:
                order.append(number)

        semaphore.acquire()
        tasks = []
        for number in range(5):
            tasks.append(asyncio.ensure_future(run_in_greenlet(work, number)))
            await asyncio.sleep(0)
        assert order == []
        semaphore.release()
        await asyncio.gather(*tasks)
        assert order == [0, 1, 2, 3, 4]

    asyncio.run(run())


@pytest.mark.parametrize(
    "given_before", [False, True], ids=["while it waits", "in the moment that it is given"]
)
def test_permit_is_not_lost_with_a_cancelled_task(given_before: bool) -> None:
    async def run() -> None:
        semaphore = FairSemaphore(GreenletWaiter())
        assert semaphore.acquire()
        waiting = asyncio.ensure_future(run_in_greenlet(semaphore.acquire))
        await asyncio.sleep(0)
        if given_before:
            semaphore.release()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not given_before:
            semaphore.release()
        assert semaphore.acquire(), "it has no holder"

    asyncio.run(run())


def test_permit_after_a_timeout_goes_to_the_next() -> None:
    semaphore = FairSemaphore(THREAD_WAITER, permits=2)
    assert [semaphore.acquire(0.01) for _ in range(3)] == [True, True, False]
    semaphore.release()
    assert semaphore.acquire(0.01)


def test_concurrent_map_keeps_order_and_limit() -> None:
    active, max_active, lock = 0, 0, threading.Lock()

    def work(number: int) -> int:
        nonlocal active, max_active
        with lock:
            active += 1
            max_active = max(max_active, active)
        waiter.sleep(0.01)
        with lock:
            active -= 1
        return number * number

    for waiter in (THREAD_WAITER, GreenletWaiter()):
        max_active = 0
        results = (
            waiter.map_concurrently(work, range(10), 3)
            if waiter is THREAD_WAITER
            else asyncio.run(run_in_greenlet(waiter.map_concurrently, work, range(10), 3))
        )
        assert results == [number * number for number in range(10)]
        assert max_active == 3


def test_failure_of_one_call_cancels_the_others() -> None:
    finished: list[int] = []

    def work(number: int) -> None:
        if number == 1:
            raise InvalidRequest("the second one")
        GreenletWaiter().sleep(30)
        finished.append(number)

    with pytest.raises(InvalidRequest, match="the second one"):
        asyncio.run(run_in_greenlet(GreenletWaiter().map_concurrently, work, range(3), 3))
    assert finished == []


@given(st.text("es.", max_size=100), st.floats(0, 1), st.floats(1, 20), st.floats(0, 5))
def test_retry_budget_is_bounded_by_burst_share_and_rate(
    steps: str, share: float, burst: float, per_s: float
) -> None:
    now = 0.0
    budget = RetryBudget(share=share, burst=burst, per_s=per_s, clock=lambda: now)
    earned = spent = 0
    for step in steps:
        if step == "e":
            budget.deposit()
            earned += 1
        elif step == ".":
            now += 0.25
        else:
            spent += budget.try_withdraw()
    assert spent <= burst + share * earned + per_s * now + 1e-6


def test_reservation_waits_for_all_earlier_ones() -> None:
    budget = RetryBudget(share=0.2, burst=2, per_s=10, clock=lambda: 5.0)
    assert [budget.reserve(1.0) for _ in range(2)] == [0.0, 0.0]
    assert [round(budget.reserve(1.0) or 0, 6) for _ in range(3)] == [0.1, 0.2, 0.3]
    assert budget.reserve(0.05) is None


def test_p95_delay_needs_twenty_latencies() -> None:
    delays = HedgeDelays("p95")
    for latency in range(19):
        delays.record("read", latency)
    assert delays.delay_for("read") is None
    for latency in range(19, 100):
        delays.record("read", latency)
    assert delays.delay_for("read") == 95
    assert delays.delay_for("another") is None
    assert HedgeDelays(0.25).delay_for("any") == 0.25


@pytest.mark.parametrize("hedge", [0, -1.0, float("nan"), "p99", ""])
def test_invalid_hedge_delays_are_refused(hedge: float | str) -> None:
    with pytest.raises(InvalidRequest, match="hedge"):
        HedgeDelays(hedge)


def test_time_fills_the_budget_once() -> None:
    now = 0.0
    budget = RetryBudget(share=0.0, burst=2, per_s=1.0, clock=lambda: now)
    assert [budget.try_withdraw() for _ in range(3)] == [True, True, False]
    now = 1.0
    assert [budget.try_withdraw() for _ in range(3)] == [True, False, False]
