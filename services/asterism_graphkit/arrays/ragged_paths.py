"""Paths: rows of steps that come in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, kernel


@kernel
def _write_pieces(
    indptr: NDArray[np.int64],
    values: NDArray[Any],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    out: NDArray[Any],
) -> None:
    for i in range(rows.shape[0]):
        path, column, size = out[rows[i]], columns[i], indptr[i + 1] - indptr[i]
        piece = values[indptr[i] : indptr[i + 1]]
        for k in range(size):
            path[column + k] = piece[k]
        path[column + size :] = -1


def write_pieces(
    indptr: NDArray[np.int64],
    values: NDArray[Any],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    out: NDArray[Any],
) -> None:
    """Put pieces of paths in place: ``out[rows[i], columns[i]:]`` is piece i, and -1 behind it.

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
    if ends.size and (
        int(rows.min()) < 0
        or int(rows.max()) >= out.shape[0]
        or int(columns.min()) < 0
        or int(ends.max()) > out.shape[1]
    ):
        raise ValueError(f"pieces reach to [{rows.max()}, {ends.max()}]; paths are {out.shape}")
    _write_pieces(
        as_kernel_array(indptr),
        as_kernel_array(values),
        as_kernel_array(rows),
        as_kernel_array(columns),
        out,
    )


@kernel
def _flatten_prefixes(paths: NDArray[Any], indptr: NDArray[np.int64], out: NDArray[Any]) -> None:
    for i in range(paths.shape[0]):
        first, path = indptr[i], paths[i]
        for k in range(indptr[i + 1] - first):
            out[first + k] = path[k]


def flatten_prefixes(paths: NDArray[Any], indptr: NDArray[np.int64]) -> NDArray[Any]:
    """The first ``indptr[i + 1] - indptr[i]`` steps of each path, one path behind another; of paths
    [m, w], int64 or int32.
    """
    out = np.empty(int(indptr[-1]), paths.dtype)
    _flatten_prefixes(as_kernel_array(paths), as_kernel_array(indptr), out)
    return out


@kernel
def _pad_ends(paths: NDArray[Any], ends: NDArray[np.int64]) -> None:
    for i in range(paths.shape[0]):
        paths[i, ends[i] :] = -1


def pad_ends(paths: NDArray[Any], ends: NDArray[np.int64]) -> None:
    """Put -1 behind the first ``ends[i]`` steps of each path; of paths [m, w] or [0, 0], int64 or
    int32.
    """
    _pad_ends(paths, as_kernel_array(ends))
