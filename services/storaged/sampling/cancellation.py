"""Cancellation: how the work of a request ends soon after its deadline.

Work in Python goes block by block, with a checkpoint between two of them (`blocks`). While kernels
run, a thread calls the checkpoint and sets a stop flag (`StopFlag`), which kernels read every few
thousand steps."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Deadline

Checkpoint = Callable[[], object]
"""Raises where a request is to stop. Where it returns the seconds left, blocks are fitted to the
time that they take.
"""
BLOCK_DRAWS = 1 << 18
"""Draws of a first block: some milliseconds."""
BLOCK_EDGES = 1 << 20
"""Edges that a block of races looks at: some ten milliseconds."""
BLOCK_NODES = 1 << 10
"""Nodes of a first block, where one of them may take many times what others take."""
_LONG_S, _SHORT_S = 0.02, 0.005


def no_checkpoint() -> None:
    """Return: a checkpoint of work without a deadline."""


def blocks(
    count: int, first: int, checkpoint: Checkpoint, *, max_size: int = 1 << 62
) -> Iterator[slice]:
    """Yield slices of ``range(count)``, with a checkpoint between each two of them.

    Parameters
    ----------
    count : int
    first : int
        Size of the first block. Later ones are halved or doubled where they take longer than 20 ms
        or less than 5 ms.
    max_size : int
        Size of the largest block.
    checkpoint : callable
        As of `Checkpoint`. It is not called where there is one block only.

    Yields
    ------
    slice
        At least one: of nothing, where ``count`` is 0.
    """
    size = max(first, 1)
    if count <= size:
        yield slice(0, count)
        return
    begin, remaining_before = 0, checkpoint()
    while begin < count:
        end = min(begin + size, count)
        yield slice(begin, end)
        begin = end
        if begin < count:
            remaining_now = checkpoint()
            if isinstance(remaining_before, float) and isinstance(remaining_now, float):
                elapsed = remaining_before - remaining_now
                size = (
                    max(size // 2, 1)
                    if elapsed > _LONG_S
                    else min(2 * size, max_size)
                    if elapsed < _SHORT_S
                    else size
                )
            remaining_before = remaining_now


def blocks_by_work(
    work: NDArray[np.int64], max_work: int, checkpoint: Checkpoint
) -> Iterator[slice]:
    """Yield slices of nodes that take at most so much work together, or of one node that takes
    more; with a checkpoint between each two.

    Parameters
    ----------
    work : int64[m]
        Of each node.
    max_work : int
    checkpoint : callable
        As of `Checkpoint`.

    Yields
    ------
    slice
        At least one: of nothing, where there is no node.
    """
    ends = np.cumsum(work)
    begin = 0
    while True:
        completed = int(ends[begin - 1]) if begin else 0
        end = max(
            int(np.searchsorted(ends, completed + max_work, side="right")),
            min(begin + 1, work.size),
        )
        yield slice(begin, end)
        begin = end
        if begin >= work.size:
            return
        checkpoint()


def nodes_per_block(count: int) -> int:
    """Return the nodes of a first block, where each draws ``count`` neighbors."""
    return min(max(BLOCK_DRAWS // max(count, 1), 1), 1 << 16)


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
