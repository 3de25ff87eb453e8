"""Large memory that is used again.

What malloc takes for arrays of more than 32 MiB it gives back to the system as soon as they are let
go, and the system clears each page before it is written to again: of features that are gathered,
sent and received that takes more time than to gather them. What was let go last is kept here for
the next array of about its size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

MIN_BYTES, MAX_BYTES = (32 << 20) + 1, 64 << 20
"""Bytes of the least array whose memory is kept, and of all that is."""
_GRANULARITY = 4 << 20
"""Memory is taken in multiples of so many bytes, for arrays that are not quite as large as those
before them.
"""

_free_buffers: list[NDArray[np.uint8]] = []


class _PooledBuffer:
    """Memory that an array is in, and the views of it: when the last of them has gone it is spare
    again.
    """

    def __init__(self, raw: NDArray[np.uint8]) -> None:
        self.raw, self.__array_interface__ = raw, raw.__array_interface__

    def __del__(
        self, free_buffers: list[NDArray[np.uint8]] = _free_buffers, max_bytes: int = MAX_BYTES
    ) -> None:
        # What it needs it has: when a process ends, the names of this module may be gone before the
        # last array.
        free_buffers.append(self.raw)
        try:
            while sum(raw.nbytes for raw in free_buffers.copy()) > max_bytes:
                free_buffers.pop(0)
        except IndexError:  # another thread took it
            pass


def _take_oldest() -> NDArray[np.uint8] | None:
    """Take what has been spare for longest; another thread may have been faster."""
    try:
        return _free_buffers.pop(0)
    except IndexError:
        return None


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """As `numpy.empty`, in memory that was used before where there is some that is large enough."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if not MIN_BYTES <= size <= MAX_BYTES:
        return np.empty(shape, kind)
    raw = _take_oldest()
    while raw is not None and raw.nbytes < size:
        raw = _take_oldest()
    buffer = _PooledBuffer(
        np.empty(-(-size // _GRANULARITY) * _GRANULARITY, np.uint8) if raw is None else raw
    )
    return np.asarray(buffer)[:size].view(kind).reshape(shape)
