"""Greenlets that run plain calls on an event loop and yield to it where they wait.

The client is written once, as functions that call and return. On an event loop, such a function
runs in a greenlet: where it would block, it passes an awaitable to the coroutine that started it,
and resumes with the result. SQLAlchemy's asyncio extension works in the same way. Only this module
imports greenlet.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar, cast

from asterism.extras import required
from asterism.transport.waiters import THREAD_WAITER, Event

with required("aio", "asterism.aio"):
    from greenlet import getcurrent, greenlet

Item = TypeVar("Item")
Value = TypeVar("Value")
Params = ParamSpec("Params")


class _CallGreenlet(greenlet):
    """Greenlet of one call; awaitables go to its parent."""

    def __init__(self, function: Callable[..., Any]) -> None:
        driver = getcurrent()
        super().__init__(function, driver)
        self.gr_context = driver.gr_context


async def run_in_greenlet(
    function: Callable[Params, Value], *args: Params.args, **kwargs: Params.kwargs
) -> Value:
    """Run ``function`` in a greenlet, without blocking the event loop where it waits.

    Cancellation raises CancelledError inside ``function``, at the point where it waits.

    Parameters
    ----------
    function : callable
        Function of the client.
    *args, **kwargs
        Its arguments.

    Returns
    -------
    value
        Result of the function.
    """
    call_greenlet = _CallGreenlet(function)
    yielded = call_greenlet.switch(*args, **kwargs)
    while not call_greenlet.dead:
        try:
            value = await yielded
        except BaseException:
            yielded = call_greenlet.throw(*sys.exc_info())
        else:
            yielded = call_greenlet.switch(value)
    return cast(Value, yielded)


def await_from_greenlet(awaitable: Awaitable[Value]) -> Value:
    """Wait for an awaitable and return its result; only inside such a greenlet."""
    driver = getcurrent().parent
    assert driver is not None
    return cast(Value, driver.switch(awaitable))


class _LoopEvent:
    """Event that wakes a greenlet."""

    __slots__ = ("_is_set", "_loop", "_waiter")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_set = False
        self._waiter: asyncio.Future[bool] | None = None

    def set(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake, True)
        except RuntimeError:
            return  # The loop is closed, so no greenlet can be waiting.

    def wait(self, seconds: float | None = None) -> bool:
        if not self._is_set:
            self._waiter = self._loop.create_future()
            timer = None if seconds is None else self._loop.call_later(seconds, self._wake, False)
            try:
                await_from_greenlet(self._waiter)
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        was_set, self._is_set = self._is_set, False
        return was_set

    def _wake(self, is_set: bool) -> None:
        self._is_set = self._is_set or is_set
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(is_set)


class GreenletWaiter:
    """Waiter for clients on an event loop; in other threads it waits as threads do."""

    def in_greenlet(self) -> bool:
        """Return True if the caller runs in such a greenlet."""
        return isinstance(getcurrent(), _CallGreenlet)

    def may_block(self) -> bool:
        """Return True in such a greenlet, or in a thread without a running event loop."""
        return self.in_greenlet() or asyncio._get_running_loop() is None

    def event(self) -> Event:
        """Return an event for the current greenlet or thread."""
        return _LoopEvent() if self.in_greenlet() else THREAD_WAITER.event()

    def sleep(self, seconds: float) -> None:
        """Sleep for some seconds without blocking the event loop."""
        if self.in_greenlet():
            await_from_greenlet(asyncio.sleep(seconds))
        else:
            THREAD_WAITER.sleep(seconds)

    def map_concurrently(
        self, function: Callable[[Item], Value], items: Iterable[Item], max_concurrent: int
    ) -> list[Value]:
        """Apply ``function`` to all items in greenlets; if one fails, cancel the rest."""
        if not self.in_greenlet():
            return THREAD_WAITER.map_concurrently(function, items, max_concurrent)
        return await_from_greenlet(_map_concurrently(function, list(items), max_concurrent))


async def _map_concurrently(
    function: Callable[[Item], Value], items: list[Item], max_concurrent: int
) -> list[Value]:
    results: dict[int, Value] = {}
    remaining: Iterator[tuple[int, Item]] = iter(enumerate(items))

    async def work() -> None:
        for index, item in remaining:
            results[index] = await run_in_greenlet(function, item)

    workers = [asyncio.ensure_future(work()) for _ in range(min(max_concurrent, len(items)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [results[index] for index in range(len(items))]
