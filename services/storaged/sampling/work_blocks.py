"""Blocks of work between checks of the deadline, so that a request stops soon after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

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
