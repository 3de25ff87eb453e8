"""Assemble and flatten paths of different lengths."""

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
    """Write pieces of paths into a padded array.

    Piece i is written to ``out[rows[i], columns[i]:]``, and the rest of that row is filled with -1.

    Parameters
    ----------
    indptr : int64[m + 1]
    values : int64[k] or int32[k]
        Piece i is ``values[indptr[i]:indptr[i + 1]]``.
    rows, columns : int64[m]
        Row and first column of each piece.
    out : [n, w] of the dtype of ``values``, inout

    Raises
    ------
    ValueError
        If a piece does not fit.
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
    """Concatenate the first ``indptr[i + 1] - indptr[i]`` steps of each path.

    Parameters
    ----------
    paths : int64[m, w] or int32[m, w]
    indptr : int64[m + 1]

    Returns
    -------
    dtype of ``paths``, [indptr[m]]
    """
    out = np.empty(int(indptr[-1]), paths.dtype)
    _flatten_prefixes(as_kernel_array(paths), as_kernel_array(indptr), out)
    return out


@kernel
def _pad_ends(paths: NDArray[Any], ends: NDArray[np.int64]) -> None:
    for i in range(paths.shape[0]):
        paths[i, ends[i] :] = -1


def pad_ends(paths: NDArray[Any], ends: NDArray[np.int64]) -> None:
    """Fill each path with -1 after its first ``ends[i]`` steps.

    Parameters
    ----------
    paths : int64[m, w] or int32[m, w], inout
        May be [0, 0].
    ends : int64[m]
    """
    _pad_ends(paths, as_kernel_array(ends))
