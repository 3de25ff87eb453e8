"""How a client waits: for a while, for a word from another thread, for its turn, for several calls
side by side.

A client's code is written once, as plain calls. Where it waits it asks a `Waiter`: the one here
blocks its thread, the one of `asterism.aio` lets an event loop run meanwhile."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


class Event(Protocol):
    """A word from one thread to another, that something has happened."""

    def set(self) -> None:
        """Wake whoever waits, or will wait next; from any thread."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a ring, for so long at most; whether there was one. It counts once."""


class Waiter(Protocol):
    """Whoever knows how to wait here. It holds nothing, and may be pickled."""

    def in_greenlet(self) -> bool:
        """Whether the caller must not block its thread."""

    def may_block(self) -> bool:
        """Whether nobody is kept from their work by a caller that blocks its thread, or is a
        strand.
        """

    def event(self) -> Event:
        """One that the caller will wait for."""

    def sleep(self, seconds: float) -> None:
        """Go on after so many seconds."""

    def map_concurrently(
        self, function: Callable[[Item], Value], items: Iterable[Item], max_concurrent: int
    ) -> list[Value]:
        """What ``function`` gives for each, in their order, so many calls at a time; the first
        error, where there is one.
        """


class _ThreadEvent:
    """Wakes a thread."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def wait(self, seconds: float | None = None) -> bool:
        was_set = self._event.wait(seconds)
        self._event.clear()
        return was_set


class ThreadWaiter:
    """Waits by blocking the thread."""

    def in_greenlet(self) -> bool:
        """Never: a thread may be blocked."""
        return False

    def may_block(self) -> bool:
        """Always."""
        return True

    def event(self) -> Event:
        """An event."""
        return _ThreadEvent()

    def sleep(self, seconds: float) -> None:
        """As `time.sleep`."""
        time.sleep(seconds)

    def map_concurrently(
        self, function: Callable[[Item], Value], items: Iterable[Item], max_concurrent: int
    ) -> list[Value]:
        """In threads of their own."""
        item_list = list(items)
        if len(item_list) < 2:
            return [function(item) for item in item_list]
        pool = ThreadPoolExecutor(
            min(max_concurrent, len(item_list)), thread_name_prefix="asterism"
        )
        try:
            return list(pool.map(function, item_list))
        finally:
            pool.shutdown(cancel_futures=True)


THREAD_WAITER = ThreadWaiter()


class FairSemaphore:
    """A lock, or several places, that is waited for as everything here is: first come, first
    served.

    Parameters
    ----------
    waiter : Waiter
        How.
    permits : int
        How many may have one at a time.

    Examples
    --------
    >>> turns = Turns(THREADS)
    >>> turns.take(), turns.take(0.01)
    (True, False)
    >>> turns.give()
    """

    def __init__(self, waiter: Waiter, permits: int = 1) -> None:
        self._waiter = waiter
        self._permits = permits
        self._guard = threading.Lock()
        self._queue: deque[Event] = deque()

    def acquire(self, seconds: float | None = None) -> bool:
        """Wait for a place, so long at most; whether it was given."""
        with self._guard:
            if self._permits:
                self._permits -= 1
                return True
            event = self._waiter.event()
            self._queue.append(event)
        try:
            return event.wait(seconds) or self._withdraw(event)
        except BaseException:
            if self._withdraw(event):
                self.release()
            raise

    def release(self) -> None:
        """Give a place back: to whoever has waited for longest."""
        with self._guard:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._permits += 1

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _withdraw(self, event: Event) -> bool:
        """Wait no more; whether the place was given in that moment."""
        with self._guard:
            if event in self._queue:
                self._queue.remove(event)
                return False
        return True
