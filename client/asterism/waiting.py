"""How a client waits: for a while, for a word from another thread, for its turn, for several calls side by side.

A client's code is written once, as plain calls. Where it waits it asks a `Waits`: the one here blocks its thread, the one of `asterism.aio`
lets an event loop run meanwhile.
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
Made = TypeVar("Made")


class Bell(Protocol):
    """A word from one thread to another, that something has happened."""

    def ring(self) -> None:
        """Wake whoever waits, or will wait next; from any thread."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a ring, for so long at most; whether there was one. It counts once."""


class Waits(Protocol):
    """Whoever knows how to wait here. It holds nothing, and may be pickled."""

    def inside(self) -> bool:
        """Whether the caller must not block its thread."""

    def may_block(self) -> bool:
        """Whether nobody is kept from their work by a caller that blocks its thread, or is a strand."""

    def bell(self) -> Bell:
        """One that the caller will wait for."""

    def sleep(self, seconds: float) -> None:
        """Go on after so many seconds."""

    def each(self, function: Callable[[Item], Made], items: Iterable[Item], at_once: int) -> list[Made]:
        """What ``function`` gives for each, in their order, so many calls at a time; the first error, where there is one."""


class _ThreadBell:
    """Wakes a thread."""

    __slots__ = ("_rung",)

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, seconds: float | None = None) -> bool:
        rung = self._rung.wait(seconds)
        self._rung.clear()
        return rung


class Threads:
    """Waits by blocking the thread."""

    def inside(self) -> bool:
        """Never: a thread may be blocked."""
        return False

    def may_block(self) -> bool:
        """Always."""
        return True

    def bell(self) -> Bell:
        """An event."""
        return _ThreadBell()

    def sleep(self, seconds: float) -> None:
        """As `time.sleep`."""
        time.sleep(seconds)

    def each(self, function: Callable[[Item], Made], items: Iterable[Item], at_once: int) -> list[Made]:
        """In threads of their own."""
        wanted = list(items)
        if len(wanted) < 2:
            return [function(item) for item in wanted]
        pool = ThreadPoolExecutor(min(at_once, len(wanted)), thread_name_prefix="asterism")
        try:
            return list(pool.map(function, wanted))
        finally:
            pool.shutdown(cancel_futures=True)


THREADS = Threads()


class Turns:
    """A lock, or several places, that is waited for as everything here is: first come, first served.

    Parameters
    ----------
    waits : Waits
        How.
    places : int
        How many may have one at a time.

    Examples
    --------
    >>> turns = Turns(THREADS)
    >>> turns.take(), turns.take(0.01)
    (True, False)
    >>> turns.give()
    """

    def __init__(self, waits: Waits, places: int = 1) -> None:
        self._waits = waits
        self._places = places
        self._guard = threading.Lock()
        self._queue: deque[Bell] = deque()

    def take(self, seconds: float | None = None) -> bool:
        """Wait for a place, so long at most; whether it was given."""
        with self._guard:
            if self._places:
                self._places -= 1
                return True
            bell = self._waits.bell()
            self._queue.append(bell)
        try:
            return bell.wait(seconds) or self._left(bell)
        except BaseException:
            if self._left(bell):
                self.give()
            raise

    def give(self) -> None:
        """Give a place back: to whoever has waited for longest."""
        with self._guard:
            if self._queue:
                self._queue.popleft().ring()
            else:
                self._places += 1

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.give()

    def _left(self, bell: Bell) -> bool:
        """Wait no more; whether the place was given in that moment."""
        with self._guard:
            if bell in self._queue:
                self._queue.remove(bell)
                return False
        return True
