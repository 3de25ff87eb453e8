"""Strands: plain calls that an event loop runs, and that let go of it where they wait.

The client is written once, as functions that call and return. On an event loop such a function runs in a *strand*, a greenlet of its own:
where it would block, it hands what it waits for to the coroutine that began it, and goes on with the answer. So nothing of the client is
there twice. It is the way of SQLAlchemy's asyncio extension. This is greenlet's one door.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar, cast

from asterism.waiting import THREADS, Bell

try:
    from greenlet import getcurrent, greenlet
except ImportError as missing:
    raise ImportError("asterism.aio needs greenlet: pip install 'asterism[aio]'") from missing

Item = TypeVar("Item")
Made = TypeVar("Made")
Given = ParamSpec("Given")


class _Strand(greenlet):
    """Runs one call; what it waits for goes to its parent."""

    def __init__(self, function: Callable[..., Any]) -> None:
        driver = getcurrent()
        super().__init__(function, driver)
        self.gr_context = driver.gr_context


async def awaited(function: Callable[Given, Made], *args: Given.args, **named: Given.kwargs) -> Made:
    """What ``function`` gives, without blocking the event loop where it waits.

    Cancelled, it raises CancelledError inside ``function``, at the place where it waits.
    """
    strand = _Strand(function)
    wanted = strand.switch(*args, **named)
    while not strand.dead:
        try:
            answer = await wanted
        except BaseException:
            wanted = strand.throw(*sys.exc_info())
        else:
            wanted = strand.switch(answer)
    return cast(Made, wanted)


def wait_for(awaitable: Awaitable[Made]) -> Made:
    """What ``awaitable`` gives; within a strand only."""
    driver = getcurrent().parent
    assert driver is not None
    return cast(Made, driver.switch(awaitable))


class _LoopBell:
    """Wakes a strand."""

    __slots__ = ("_loop", "_rung", "_waiter")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = False
        self._waiter: asyncio.Future[bool] | None = None

    def ring(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake, True)
        except RuntimeError:
            return  # the loop is closed: nobody waits

    def wait(self, seconds: float | None = None) -> bool:
        if not self._rung:
            self._waiter = self._loop.create_future()
            timer = None if seconds is None else self._loop.call_later(seconds, self._wake, False)
            try:
                wait_for(self._waiter)
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        rung, self._rung = self._rung, False
        return rung

    def _wake(self, rung: bool) -> None:
        self._rung = self._rung or rung
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(rung)


class Strands:
    """Waits of a client on an event loop; in any other thread, as threads wait."""

    def inside(self) -> bool:
        """Whether the caller is a strand."""
        return isinstance(getcurrent(), _Strand)

    def may_block(self) -> bool:
        """Whether the caller is a strand, or in a thread without an event loop that runs."""
        return self.inside() or asyncio._get_running_loop() is None

    def bell(self) -> Bell:
        """One for this strand, or thread."""
        return _LoopBell() if self.inside() else THREADS.bell()

    def sleep(self, seconds: float) -> None:
        """As `asyncio.sleep`."""
        if self.inside():
            wait_for(asyncio.sleep(seconds))
        else:
            THREADS.sleep(seconds)

    def each(self, function: Callable[[Item], Made], items: Iterable[Item], at_once: int) -> list[Made]:
        """In strands of their own; where one fails, the others are cancelled."""
        if not self.inside():
            return THREADS.each(function, items, at_once)
        return wait_for(_each(function, list(items), at_once))


async def _each(function: Callable[[Item], Made], items: list[Item], at_once: int) -> list[Made]:
    made: dict[int, Made] = {}
    left: Iterator[tuple[int, Item]] = iter(enumerate(items))

    async def work() -> None:
        for at, item in left:
            made[at] = await awaited(function, item)

    workers = [asyncio.ensure_future(work()) for _ in range(min(at_once, len(items)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [made[at] for at in range(len(items))]
