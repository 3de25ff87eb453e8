"""SIGTERM and SIGINT of a process that serves until one of them arrives."""

from __future__ import annotations

import queue
import signal


class TerminationSignals:
    """SIGTERM and SIGINT from now on, for the main thread.

    A signal that arrives before the wait ends it at once.

    Notes
    -----
    A handler runs in the main thread, between any two of its instructions. `threading.Event.set`
    would deadlock if the main thread were inside `threading.Event.wait` and held the event's lock.
    `queue.SimpleQueue.put` is reentrant: a handler may call it at any time.
    """

    def __init__(self) -> None:
        received: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._received = received
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: received.put(number))

    def wait(self) -> None:
        """Wait until one of the signals has arrived."""
        self._received.get()
