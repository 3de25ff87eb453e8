"""Times as whole numbers in the same order, so that one comparison of int64 decides what is seen; and what edges weigh until each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.times import BEFORE_ALL
from graphkit.jit import kernel

Times = NDArray[np.int64]

_BEHIND_ALL = np.iinfo(np.int64).max
_TWO63 = float(1 << 63)


def keys_of(values: NDArray[Any]) -> Times:
    """int64[n] in the order of times: whole numbers are themselves, floats are by the order of their bits; equal times have equal keys."""
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    bits = (values.astype(np.float64) + 0.0).view(np.int64)  # -0 is 0
    return np.where(bits < 0, bits ^ _BEHIND_ALL, bits)


def times_of(keys: Times, *, floating: bool) -> NDArray[Any]:
    """The times that `keys_of` made keys of: int64[n], or float64[n]."""
    return np.where(keys < 0, keys ^ _BEHIND_ALL, keys).view(np.float64) if floating else keys


def limits_of(times: NDArray[Any], *, strict: bool, floating: bool) -> Times:
    """The largest key that is seen at each time.

    Parameters
    ----------
    times : int64[n] or float64[n]
        No NaN.
    strict : bool
        Edges of the time itself are not seen.
    floating : bool
        Whether the times of edges are floats. Numbers of both kinds are compared exactly.

    Returns
    -------
    int64[n]
        An edge is seen where its key is at most this; ``BEFORE_ALL`` is no edge's.
    """
    if floating and times.dtype.kind == "f":
        return keys_of(times) - np.int64(strict)
    if floating:
        near = times.astype(np.float64)
        # The largest float that is not beyond the whole number; 2^63 itself is beyond all of them.
        beyond = (near >= _TWO63) | (np.where(near >= _TWO63, 0.0, near).astype(np.int64) > times)
        near = np.where(beyond, np.nextafter(near, -np.inf), near)
        return keys_of(near) - np.where(near.astype(np.int64) == times, np.int64(strict), np.int64(0))
    if times.dtype.kind == "f":
        whole = np.ceil(times) if strict else np.floor(times)
        inside = (whole >= -_TWO63) & (whole < _TWO63)
        keys = np.where(inside, whole, 0.0).astype(np.int64)
        return np.where(inside, _before(keys, strict), np.where(whole < 0, BEFORE_ALL, _BEHIND_ALL))
    return _before(times.astype(np.int64), strict)


@kernel
def sum_rows(
    indptr: Times, first: np.int64, end: np.int64, order: NDArray[np.uint32], weights: NDArray[np.float32], out: NDArray[np.float64]
) -> None:
    """Put what the edges of each row weigh up to each place of the order.

    Parameters
    ----------
    indptr : int64[rows + 1]
    first, end : int64
        The rows.
    order, weights : uint32[slots], float32[slots]
    out : float64[slots], out

    Notes
    -----
    Neumaier's sums, each at least the one before it: an edge of weight 0 adds nothing, and none takes away.
    """
    for row in range(first, end):
        total = 0.0
        lost = 0.0
        reached = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            weight = np.float64(weights[order[at]])
            longer = total + weight
            if total >= weight:
                lost += (total - longer) + weight
            else:
                lost += (weight - longer) + total
            total = longer
            reached = max(reached, total + lost)
            out[at] = reached


def _before(keys: Times, strict: bool) -> Times:
    """The key before each, where ``strict``."""
    return np.where(keys == BEFORE_ALL, keys, keys - np.int64(strict))
