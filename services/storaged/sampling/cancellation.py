"""Cancellation: end the work of a request soon after its deadline.

Work in Python is done block by block, with a checkpoint between two blocks (`blocks`). While
kernels run, a thread calls the checkpoint and sets a stop flag (`StopFlag`), which kernels read
every few thousand steps.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Deadline

Checkpoint = Callable[[], object]
"""Function that raises to stop a request.

If it returns the seconds left, the sizes of blocks are adapted to the time that they take.
"""
BLOCK_DRAWS = 1 << 18
"""Draws in a first block: some milliseconds."""
BLOCK_EDGES = 1 << 20
"""Edges that a block of exponential-key selections reads: some ten milliseconds."""
BLOCK_NODES = 1 << 10
"""Nodes in a first block, if the cost per node varies widely."""
_LONG_S, _SHORT_S = 0.02, 0.005


def no_checkpoint() -> None:
    """Do nothing: the checkpoint of work without a deadline."""


def blocks(
    count: int, first: int, checkpoint: Checkpoint, *, max_size: int = 1 << 62
) -> Iterator[slice]:
    """Yield slices of ``range(count)``, with a checkpoint between two of them.

    Parameters
    ----------
    count : int
    first : int
        Size of the first block. Later sizes are halved if a block takes longer than 20 ms, and
        doubled if it takes less than 5 ms.
    checkpoint : Checkpoint
        Not called if there is a single block.
    max_size : int
        Largest size of a block. Default 2^62.

    Yields
    ------
    slice
        At least one, which is empty if ``count`` is 0.
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
    """Yield slices of nodes with limited work each, with a checkpoint between two of them.

    Parameters
    ----------
    work : ndarray of int64, shape (m,)
        Work of each node.
    max_work : int
        Largest work of a slice. A node with more is a slice of its own.
    checkpoint : Checkpoint

    Yields
    ------
    slice
        At least one, which is empty if there are no nodes.
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
    """Return the number of nodes in a first block that samples ``count`` neighbors of each."""
    return min(max(BLOCK_DRAWS // max(count, 1), 1), 1 << 16)


_INTERVAL_S = 0.04
"""Seconds between two calls of a checkpoint while a kernel runs.

Each round briefly takes the interpreter away from short requests.
"""
_IDLE_ROUNDS = 25
"""Rounds without a running kernel after which the thread ends."""


class StopFlag:
    """A flag that is set once a checkpoint raises, for kernels that run in a ``with`` block.

    Parameters
    ----------
    checkpoint : Checkpoint
        Called from another thread.

    Notes
    -----
    Once the flag is set, the output of a kernel is incomplete. Call `check` after each kernel,
    before its arrays are read.
    """

    __slots__ = ("_checkpoint", "flag")

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self.flag = np.zeros(1, np.int64)
        """Flag: int64, shape (1,); nonzero if kernels must end."""

    def __enter__(self) -> Self:
        if self._checkpoint is not no_checkpoint:
            _watcher.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._checkpoint is not no_checkpoint:
            _watcher.remove(self)

    def poll(self) -> None:
        """Set the flag if the checkpoint raises."""
        try:
            self._checkpoint()
        except Exception:  # `check` raises it in the thread that called the kernel.
            self.flag[0] = 1

    def check(self) -> None:
        """Raise the checkpoint's exception if the flag is set.

        Raises
        ------
        Deadline
            The flag is set, but the checkpoint no longer raises.
        """
        if self.flag[0]:
            self._checkpoint()
            raise Deadline(
                "the timeout of the call has passed; send a smaller request, or set a longer "
                "timeout"
            )


class _StopWatcher:
    """A thread that calls the checkpoints of running kernels.

    It starts with the first kernel and ends after some rounds without one.
    """

    def __init__(self) -> None:
        self._stops: dict[int, StopFlag] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, stop: StopFlag) -> None:
        """Start to watch a flag."""
        self._stops[id(stop)] = stop
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                    self._thread.start()

    def remove(self, stop: StopFlag) -> None:
        """Stop watching a flag."""
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
        """Release the role of the watching thread, unless there is a new flag to watch."""
        with self._lock:
            thread, self._thread = self._thread, None
            # A flag that was added before this relies on the thread that it found here.
            if self._stops:
                self._thread = thread
            return self._thread is None


def _reset() -> None:
    """Start again without a thread, because a forked process has only its own."""
    global _watcher
    _watcher = _StopWatcher()


_watcher = _StopWatcher()
os.register_at_fork(after_in_child=_reset)
