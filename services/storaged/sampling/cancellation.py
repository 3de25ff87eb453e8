"""Stop flags of kernels: a watching thread sets one once its request is to end, and kernels look at
it every few thousand steps.
"""

from __future__ import annotations

import os
import threading
from typing import Self

import numpy as np

from asterism_proto.errors import Deadline
from storaged.sampling.work_blocks import Checkpoint, no_checkpoint

_INTERVAL_S = 0.04
"""Seconds between two calls of a checkpoint while a kernel runs: each round takes the interpreter
from short requests for a moment.
"""
_IDLE_ROUNDS = 25
"""Rounds without a kernel after which the thread ends."""


class StopFlag:
    """A flag that is set once a checkpoint raises, while kernels run under it.

    Parameters
    ----------
    checkpoint : callable
        As of `Checkpoint`; it is called from another thread.

    Notes
    -----
    What a kernel leaves once the flag is set is incomplete: call `check` after each kernel, before
    its arrays are read."""

    __slots__ = ("_checkpoint", "flag")

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self.flag = np.zeros(1, np.int64)
        """int64[1], not 0 once kernels are to end."""

    def __enter__(self) -> Self:
        if self._checkpoint is not no_checkpoint:
            _watcher.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._checkpoint is not no_checkpoint:
            _watcher.remove(self)

    def poll(self) -> None:
        """Set the flag where the checkpoint raises."""
        try:
            self._checkpoint()
        except Exception:  # `check` raises it where the kernel was called
            self.flag[0] = 1

    def check(self) -> None:
        """Raise what the checkpoint raises, where the flag is set.

        Raises
        ------
        Deadline
            Where the checkpoint raises nothing any more.
        """
        if self.flag[0]:
            self._checkpoint()
            raise Deadline("the call's time is up; ask for less, or with a longer timeout")


class _StopWatcher:
    """A thread that calls the checkpoints of kernels that run: it starts with the first of them,
    and ends where there is none for a while.
    """

    def __init__(self) -> None:
        self._stops: dict[int, StopFlag] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, stop: StopFlag) -> None:
        """Watch for the end of a request."""
        self._stops[id(stop)] = stop
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                    self._thread.start()

    def remove(self, stop: StopFlag) -> None:
        """Watch it no longer."""
        self._stops.pop(id(stop), None)

    def _run(self) -> None:
        pause, idle = threading.Event(), 0
        while True:
            pause.wait(_INTERVAL_S)
            stops = list(self._stops.values())
            for stop in stops:
                stop.poll()
            idle = 0 if stops else idle + 1
            if idle >= _IDLE_ROUNDS and self._release_if_idle():
                return

    def _release_if_idle(self) -> bool:
        """Give up the place of the watching thread, unless there is a stop to watch again."""
        with self._lock:
            thread, self._thread = self._thread, None
            # A stop that was added before that found the thread here, and relies on it.
            if self._stops:
                self._thread = thread
            return self._thread is None


def _reset() -> None:
    """Start again without a thread: a forked process has none but its own."""
    global _watcher
    _watcher = _StopWatcher()


_watcher = _StopWatcher()
os.register_at_fork(after_in_child=_reset)
