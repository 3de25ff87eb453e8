"""Paths: rows of steps that come in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import kernel, settled


@kernel
def _lay(indptr: NDArray[np.int64], values: NDArray[Any], rows: NDArray[np.int64], columns: NDArray[np.int64], out: NDArray[Any]) -> None:
    for i in range(rows.shape[0]):
        row, column = rows[i], columns[i]
        for k in range(indptr[i + 1] - indptr[i]):
            out[row, column + k] = values[indptr[i] + k]


def lay(indptr: NDArray[np.int64], values: NDArray[Any], rows: NDArray[np.int64], columns: NDArray[np.int64], out: NDArray[Any]) -> None:
    """Put pieces of paths in place: ``out[rows[i], columns[i]:]`` begins with piece i.

    Parameters
    ----------
    indptr : int64[m + 1]
    values : int64[k] or int32[k]
        Piece i is ``values[indptr[i]:indptr[i + 1]]``.
    rows, columns : int64[m]
    out : [n, w] of the same type, inout

    Raises
    ------
    ValueError
        Where a piece does not fit.
    """
    ends = columns + np.diff(indptr)
    if ends.size and (int(rows.min()) < 0 or int(rows.max()) >= out.shape[0] or int(columns.min()) < 0 or int(ends.max()) > out.shape[1]):
        raise ValueError(f"pieces reach to [{rows.max()}, {ends.max()}]; paths are {out.shape}")
    _lay(settled(indptr), settled(values), settled(rows), settled(columns), out)
