"""Pool of large buffers for reuse.

malloc returns memory of arrays above 32 MiB to the system as soon as they are freed, and the
system clears each page before it is written again. For features that are gathered, sent and
received, this takes longer than gathering them. Recently freed buffers are therefore kept for
the next arrays of similar size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

MIN_BYTES, MAX_BYTES = (32 << 20) + 1, 64 << 20
"""Bytes of the smallest array with pooled memory, and maximum bytes of the pool."""
_GRANULARITY = 4 << 20
"""Buffer sizes are multiples of this many bytes.

A buffer can then serve arrays that differ slightly in size."""

_free_buffers: list[NDArray[np.uint8]] = []


class _PooledBuffer:
    """Memory of an array and of its views; returns to the pool once the last of them is freed."""

    def __init__(self, raw: NDArray[np.uint8]) -> None:
        self.raw, self.__array_interface__ = raw, raw.__array_interface__

    def __del__(
        self, free_buffers: list[NDArray[np.uint8]] = _free_buffers, max_bytes: int = MAX_BYTES
    ) -> None:
        # Everything needed here is bound as a default argument. At process exit, the names of this
        # module may be gone before the last array.
        free_buffers.append(self.raw)
        try:
            while sum(raw.nbytes for raw in free_buffers.copy()) > max_bytes:
                free_buffers.pop(0)
        except IndexError:  # another thread took it
            pass


def _take_oldest() -> NDArray[np.uint8] | None:
    """Take the buffer that has been free longest; None if there is none.

    Another thread may take a buffer at the same time."""
    try:
        return _free_buffers.pop(0)
    except IndexError:
        return None


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialized array, as `numpy.empty` does, in pooled memory if possible.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype_like

    Returns
    -------
    ndarray
        Its memory returns to the pool once the array and all its views are freed.
    """
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
