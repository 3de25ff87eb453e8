"""Waiting of a client: sleeps, events, fair locks and concurrent calls.

The client is written once, as plain calls. Where it waits, it uses a `Waiter`. The one in this
module blocks its thread; the one of `asterism.aio` lets an event loop run meanwhile.
"""

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
    """Signal from one thread to another that something has happened."""

    def set(self) -> None:
        """Wake the current or next waiter. Thread-safe."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a signal and reset it.

        Parameters
        ----------
        seconds : float, optional
            Maximum wait. None: no limit.

        Returns
        -------
        bool
            True if there was a signal.
        """


class Waiter(Protocol):
    """Implementation of waiting. Stateless; can be pickled."""

    def in_greenlet(self) -> bool:
        """Return True if the caller must not block its thread."""

    def may_block(self) -> bool:
        """Return True if the caller may wait: it blocks no event loop, or it is a greenlet.

        Callers that must not wait, such as a representation in a notebook's loop, skip their
        request.
        """

    def event(self) -> Event:
        """Return an event for the caller to wait on."""

    def sleep(self, seconds: float) -> None:
        """Suspend the caller.

        Parameters
        ----------
        seconds : float
            Duration.
        """

    def map_concurrently(
        self, function: Callable[[Item], Value], items: Iterable[Item], max_concurrent: int
    ) -> list[Value]:
        """Apply a function to items concurrently.

        Parameters
        ----------
        function : callable
            Function of one item.
        items : iterable
            Its arguments.
        max_concurrent : int
            Maximum number of calls at a time.

        Returns
        -------
        list
            Results in the order of the items. The first error, if any, is raised instead.
        """


class _ThreadEvent:
    """Event that wakes a thread."""

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
    """Waiter that blocks its thread."""

    def in_greenlet(self) -> bool:
        """Return False: a thread may be blocked."""
        return False

    def may_block(self) -> bool:
        """Return True."""
        return True

    def event(self) -> Event:
        """Return an event that wakes a thread."""
        return _ThreadEvent()

    def sleep(self, seconds: float) -> None:
        """Sleep for some seconds."""
        time.sleep(seconds)

    def map_concurrently(
        self, function: Callable[[Item], Value], items: Iterable[Item], max_concurrent: int
    ) -> list[Value]:
        """Apply ``function`` to all items in threads."""
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
    """Lock or semaphore with first-come, first-served order, which waits through a `Waiter`.

    Parameters
    ----------
    waiter : Waiter
        Implementation of waiting.
    permits : int, default 1
        Number of holders at a time.

    Examples
    --------
    >>> semaphore = FairSemaphore(THREAD_WAITER)
    >>> semaphore.acquire(), semaphore.acquire(0.01)
    (True, False)
    >>> semaphore.release()
    """

    def __init__(self, waiter: Waiter, permits: int = 1) -> None:
        self._waiter = waiter
        self._permits = permits
        self._guard = threading.Lock()
        self._queue: deque[Event] = deque()

    def acquire(self, seconds: float | None = None) -> bool:
        """Wait for a permit.

        Parameters
        ----------
        seconds : float, optional
            Maximum wait. None: no limit.

        Returns
        -------
        bool
            True if a permit was acquired.
        """
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
        """Release a permit; the longest-waiting caller gets it."""
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
        """Leave the queue; return True if the permit was granted at that moment."""
        with self._guard:
            if event in self._queue:
                self._queue.remove(event)
                return False
        return True
