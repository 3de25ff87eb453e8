"""Gather and scatter rows of any element type as runs of bytes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    CHECK_BOUNDS,
    as_kernel_array,
    copy_at,
    kernel,
    prefetch_at,
    register,
)
from asterism_io import buffer_pool

_AHEAD = 8
_LINE, _LINES = np.uint64(64), np.int64(8)
"""Bytes of a cache line, and the most cache lines of a row that are prefetched.

The hardware prefetcher takes over after the first lines of a long row.
"""


@kernel
def _gather(
    column_of: NDArray[np.int32],
    rows: NDArray[np.int64],
    bases: NDArray[np.uint64],
    width: np.int64,
    out: NDArray[np.uint8],
) -> None:
    n = rows.shape[0]
    if CHECK_BOUNDS:
        register(out)
    target, stride = np.uint64(out.ctypes.data), np.uint64(width)
    lines = min((width + np.int64(63)) // np.int64(64), _LINES)
    for i in range(n):
        if i + _AHEAD < n and rows[i + _AHEAD] >= 0:
            line = bases[column_of[i + _AHEAD]] + np.uint64(rows[i + _AHEAD]) * stride
            for _ in range(lines):
                prefetch_at(line)
                line += _LINE
        if rows[i] >= 0:
            copy_at(
                target + np.uint64(i) * stride,
                bases[column_of[i]] + np.uint64(rows[i]) * stride,
                width,
            )
        else:
            out[i * width : (i + 1) * width] = 0


@kernel
def _scatter(
    rows: NDArray[np.int64], values: NDArray[np.uint8], width: np.int64, out: NDArray[np.uint8]
) -> None:
    if CHECK_BOUNDS:
        register(out)
        register(values)
    target, source, stride = (
        np.uint64(out.ctypes.data),
        np.uint64(values.ctypes.data),
        np.uint64(width),
    )
    for i in range(rows.shape[0]):
        copy_at(target + np.uint64(rows[i]) * stride, source + np.uint64(i) * stride, width)


@kernel
def _scatter_one(rows: NDArray[np.int64], values: NDArray[Any], out: NDArray[Any]) -> None:
    for i in range(rows.shape[0]):
        out[rows[i]] = values[i]


def gather_rows(
    column_of: NDArray[np.int32],
    rows: NDArray[np.int64],
    bases: NDArray[np.uint64],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> NDArray[Any]:
    """Gather rows of several columns in the given order.

    Parameters
    ----------
    column_of : int32[n]
        Index of the column that holds each row.
    rows : int64[n]
        Row within its column. -1 gives a row of zeros.
    bases : uint64[k]
        Address of each column, an array [rows, *shape] of ``dtype``. The address of a column that
        no row refers to may have any value.
    shape : tuple of int
        Shape of one row.
    dtype : numpy.dtype
        Element type of the columns.

    Returns
    -------
    dtype[n, *shape]
        Memory from the buffer pool.
    """
    out = buffer_pool.empty((len(rows), *shape), dtype)
    width = out.dtype.itemsize * math.prod(shape)
    if out.size:
        _gather(
            as_kernel_array(column_of),
            as_kernel_array(rows),
            as_kernel_array(bases),
            np.int64(width),
            out.reshape(-1).view(np.uint8),
        )
    return out


def scatter_rows(out: NDArray[Any], rows: NDArray[np.int64], values: NDArray[Any]) -> None:
    """Write ``values`` into rows of ``out``: ``out[rows] = values``.

    Parameters
    ----------
    out : ndarray, shape (m, ...), inout
        Contiguous.
    rows : int64[n]
        Rows of ``out``. Indices are not checked.
    values : ndarray, shape (n, ...)
        Rows of the shape and dtype of the rows of ``out``.

    Raises
    ------
    ValueError
        If the shape or the dtype of ``values`` does not match.
    """
    if values.shape != (len(rows), *out.shape[1:]) or values.dtype != out.dtype:
        raise ValueError(
            f"values are {values.dtype}{list(values.shape)}, for {len(rows)} rows of "
            f"{out.dtype}{list(out.shape[1:])}"
        )
    values_per_row = math.prod(out.shape[1:])
    width = out.dtype.itemsize * values_per_row
    if not width or not len(rows):
        return
    positions = as_kernel_array(rows)
    element_type = {4: np.uint32, 8: np.uint64}.get(width)
    if element_type is not None and out.ctypes.data % width == 0:
        _scatter_one(
            positions,
            as_kernel_array(values).reshape(-1).view(element_type),
            out.reshape(-1).view(element_type),
        )
    else:
        _scatter(
            positions,
            as_kernel_array(values).reshape(-1).view(np.uint8),
            np.int64(width),
            out.reshape(-1).view(np.uint8),
        )
