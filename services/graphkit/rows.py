"""Rows of bytes: gathered from where they lie, and put where they belong, each copied as one piece of memory whatever it is made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto import spare
from graphkit.jit import CHECKED, copy_at, kernel, prefetch_at, register, settled

_AHEAD = 8
_LINE, _LINES = np.uint64(64), np.int64(8)
"""Bytes of a cache line, and how many of a row are asked for beforehand: the memory's own prefetcher goes on from there."""


@kernel
def _gather(of: NDArray[np.int32], rows: NDArray[np.int64], bases: NDArray[np.uint64], width: np.int64, out: NDArray[np.uint8]) -> None:
    n = rows.shape[0]
    if CHECKED:
        register(out)
    to, across = np.uint64(out.ctypes.data), np.uint64(width)
    lines = min((width + np.int64(63)) // np.int64(64), _LINES)
    for i in range(n):
        if i + _AHEAD < n and rows[i + _AHEAD] >= 0:
            line = bases[of[i + _AHEAD]] + np.uint64(rows[i + _AHEAD]) * across
            for _ in range(lines):
                prefetch_at(line)
                line += _LINE
        if rows[i] >= 0:
            copy_at(to + np.uint64(i) * across, bases[of[i]] + np.uint64(rows[i]) * across, width)
        else:
            out[i * width : (i + 1) * width] = 0


@kernel
def _scatter(at: NDArray[np.int64], values: NDArray[np.uint8], width: np.int64, out: NDArray[np.uint8]) -> None:
    if CHECKED:
        register(out)
        register(values)
    to, source, across = np.uint64(out.ctypes.data), np.uint64(values.ctypes.data), np.uint64(width)
    for i in range(at.shape[0]):
        copy_at(to + np.uint64(at[i]) * across, source + np.uint64(i) * across, width)


@kernel
def _scatter_one(at: NDArray[np.int64], values: NDArray[Any], out: NDArray[Any]) -> None:
    for i in range(at.shape[0]):
        out[at[i]] = values[i]


def gathered(of: NDArray[np.int32], rows: NDArray[np.int64], bases: NDArray[np.uint64], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Rows of several columns, in the order in which they are asked for.

    Parameters
    ----------
    of : int32[n]
        Which column each row is of.
    rows : int64[n]
        -1 gives zeros.
    bases : uint64[k]
        Address of each column, [rows, *shape] of ``dtype``; any where no row is asked of it.
    shape : tuple of int
        Of a row.

    Returns
    -------
    dtype[n, *shape]
    """
    out = spare.empty((len(rows), *shape), dtype)
    width = out.dtype.itemsize * math.prod(shape)
    if out.size:
        _gather(settled(of), settled(rows), settled(bases), np.int64(width), out.reshape(-1).view(np.uint8))
    return out


def put_rows(out: NDArray[Any], rows: NDArray[np.int64], values: NDArray[Any]) -> None:
    """``out[rows] = values``, for rows within ``out``, which is contiguous.

    Raises
    ------
    ValueError
        Where ``values`` are not as many, as wide and of the same dtype.
    """
    if values.shape != (len(rows), *out.shape[1:]) or values.dtype != out.dtype:
        raise ValueError(f"values are {values.dtype}{list(values.shape)}, for {len(rows)} rows of {out.dtype}{list(out.shape[1:])}")
    across = math.prod(out.shape[1:])
    width = out.dtype.itemsize * across
    if not width or not len(rows):
        return
    own = settled(rows)
    piece = {4: np.uint32, 8: np.uint64}.get(width)
    if piece is not None and out.ctypes.data % width == 0:
        _scatter_one(own, settled(values).reshape(-1).view(piece), out.reshape(-1).view(piece))
    else:
        _scatter(own, settled(values).reshape(-1).view(np.uint8), np.int64(width), out.reshape(-1).view(np.uint8))
