"""Merges of runs: what several hosts say of their own rows, put into the order of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, kernel


@kernel
def _merge_sizes(
    source: NDArray[np.int32],
    sizes: NDArray[np.int32],
    next_rows: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    for i in range(source.shape[0]):
        out[i] = sizes[next_rows[source[i]]]
        next_rows[source[i]] += 1


@kernel
def _merge_runs(
    source: NDArray[np.int32],
    sizes: NDArray[np.int32],
    values: NDArray[Any],
    starts: NDArray[np.int64],
    out: NDArray[Any],
) -> None:
    position = np.int64(0)
    for i in range(source.shape[0]):
        start = starts[source[i]]
        for k in range(sizes[i]):
            out[position + k] = values[start + k]
        position += sizes[i]
        starts[source[i]] = start + sizes[i]


def _starts(pieces: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    out = np.zeros(len(pieces), np.int64)
    np.cumsum([len(piece) for piece in pieces[:-1]], out=out[1:])
    return out


def merge_sizes(source: NDArray[np.int32], sizes: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The size of each run of the whole.

    Parameters
    ----------
    source : int32[m]
        Whose each run is: a position in ``sizes``. Everybody's runs are in the order of the whole.
    sizes : sequence of int32[]
        Of each one's runs.
    """
    out = np.empty(len(source), np.int32)
    _merge_sizes(
        as_kernel_array(source), as_kernel_array(np.concatenate(sizes)), _starts(sizes), out
    )
    return out


def merge_runs(
    source: NDArray[np.int32], sizes: NDArray[np.int32], values: Sequence[NDArray[Any]]
) -> NDArray[Any]:
    """The runs of the whole.

    Parameters
    ----------
    source : int32[m]
        As of `merge_sizes`.
    sizes : int32[m]
        From it.
    values : sequence of int64[] or float32[]
        Everybody's runs, one after another.
    """
    joined = np.concatenate(values)
    out = np.empty_like(joined)
    _merge_runs(
        as_kernel_array(source),
        as_kernel_array(sizes),
        as_kernel_array(joined),
        _starts(values),
        out,
    )
    return out
