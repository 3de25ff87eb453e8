"""Merge runs of rows that several hosts return into the order of the request."""

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
    """Return the size of each run in the merged order.

    Parameters
    ----------
    source : int32[m]
        Index in ``sizes`` of the host that holds each run. The runs of one host are in the merged
        order.
    sizes : sequence of int32[]
        Sizes of the runs of each host.

    Returns
    -------
    int32[m]
    """
    out = np.empty(len(source), np.int32)
    _merge_sizes(
        as_kernel_array(source), as_kernel_array(np.concatenate(sizes)), _starts(sizes), out
    )
    return out


def merge_runs(
    source: NDArray[np.int32], sizes: NDArray[np.int32], values: Sequence[NDArray[Any]]
) -> NDArray[Any]:
    """Return the values of all runs in the merged order.

    Parameters
    ----------
    source : int32[m]
        Host of each run, as in `merge_sizes`.
    sizes : int32[m]
        Result of `merge_sizes`.
    values : sequence of int64[] or float32[]
        Values of the runs of each host, concatenated.

    Returns
    -------
    int64[sum of sizes] or float32[sum of sizes]
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
