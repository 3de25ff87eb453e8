"""Turns are given first come, first served, and none is lost; budgets let through what they say."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.aio.strands import Strands, awaited
from asterism.budgets import Budget, Delays
from asterism.waiting import THREADS, Turns
from asterism_proto.errors import InvalidRequest


def test_turns_are_given_in_the_order_of_those_who_ask() -> None:
    async def run() -> None:
        turns, order = Turns(Strands()), list[int]()

        def work(number: int) -> None:
            with turns:
                order.append(number)

        turns.take()
        tasks = []
        for number in range(5):
            tasks.append(asyncio.ensure_future(awaited(work, number)))
            await asyncio.sleep(0)
        assert order == []
        turns.give()
        await asyncio.gather(*tasks)
        assert order == [0, 1, 2, 3, 4]

    asyncio.run(run())


@pytest.mark.parametrize("given_before", [False, True], ids=["while it waits", "in the moment that it is given"])
def test_a_turn_is_not_lost_with_a_task_that_is_cancelled(given_before: bool) -> None:
    async def run() -> None:
        turns = Turns(Strands())
        assert turns.take()
        waiting = asyncio.ensure_future(awaited(turns.take))
        await asyncio.sleep(0)
        if given_before:
            turns.give()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not given_before:
            turns.give()
        assert turns.take(), "nobody has it"

    asyncio.run(run())


def test_a_turn_that_does_not_come_in_time_is_none_and_goes_to_the_next() -> None:
    turns = Turns(THREADS, places=2)
    assert [turns.take(0.01) for _ in range(3)] == [True, True, False]
    turns.give()
    assert turns.take(0.01)


def test_what_is_done_for_each_is_in_order_and_so_many_at_a_time() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def work(number: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        waits.sleep(0.01)
        with lock:
            now -= 1
        return number * number

    for waits in (THREADS, Strands()):
        most = 0
        made = waits.each(work, range(10), 3) if waits is THREADS else asyncio.run(awaited(waits.each, work, range(10), 3))
        assert made == [number * number for number in range(10)]
        assert most == 3


def test_one_that_fails_ends_the_others() -> None:
    seen: list[int] = []

    def work(number: int) -> None:
        if number == 1:
            raise InvalidRequest("the second one")
        Strands().sleep(30)
        seen.append(number)

    with pytest.raises(InvalidRequest, match="the second one"):
        asyncio.run(awaited(Strands().each, work, range(3), 3))
    assert seen == []


@given(st.text("es.", max_size=100), st.floats(0, 1), st.floats(1, 20), st.floats(0, 5))
def test_a_budget_lets_through_no_more_than_its_burst_a_share_of_calls_and_so_many_a_second(
    steps: str, share: float, burst: float, per_s: float
) -> None:
    now = 0.0
    budget = Budget(share=share, burst=burst, per_s=per_s, clock=lambda: now)
    earned = spent = 0
    for step in steps:
        if step == "e":
            budget.earn()
            earned += 1
        elif step == ".":
            now += 0.25
        else:
            spent += budget.spend()
    assert spent <= burst + share * earned + per_s * now + 1e-6


def test_who_reserves_waits_for_as_long_as_all_before_take() -> None:
    budget = Budget(share=0.2, burst=2, per_s=10, clock=lambda: 5.0)
    assert [budget.reserve(1.0) for _ in range(2)] == [0.0, 0.0]
    assert [round(budget.reserve(1.0) or 0, 6) for _ in range(3)] == [0.1, 0.2, 0.3]
    assert budget.reserve(0.05) is None


def test_delays_are_95_of_a_hundred_answers_and_nothing_is_known_before_twenty() -> None:
    delays = Delays("p95")
    for took in range(19):
        delays.note("read", took)
    assert delays.of("read") is None
    for took in range(19, 100):
        delays.note("read", took)
    assert delays.of("read") == 95
    assert delays.of("another") is None
    assert Delays(0.25).of("any") == 0.25


@pytest.mark.parametrize("hedge", [0, -1.0, float("nan"), "p99", ""])
def test_delays_that_are_none_are_refused(hedge: float | str) -> None:
    with pytest.raises(InvalidRequest, match="hedge"):
        Delays(hedge)
