"""Times as whole numbers in the same order, so that one comparison of int64 decides what is seen;
and what edges weigh until each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import kernel
from asterism_model.schema.time_columns import MIN_TIME

Times = NDArray[np.int64]

_AFTER_ALL = np.iinfo(np.int64).max
_TWO63 = float(1 << 63)


def encode_times(values: NDArray[Any]) -> Times:
    """int64[n] in the order of times: whole numbers are themselves, floats are by the order of
    their bits; equal times have equal keys.
    """
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    bits = (values.astype(np.float64) + 0.0).view(np.int64)  # -0 is 0
    return np.where(bits < 0, bits ^ _AFTER_ALL, bits)


def decode_times(keys: Times, *, is_float: bool) -> NDArray[Any]:
    """The times that `encode_times` made keys of: int64[n], or float64[n]."""
    return np.where(keys < 0, keys ^ _AFTER_ALL, keys).view(np.float64) if is_float else keys


def limit_keys(times: NDArray[Any], *, strict: bool, is_float: bool) -> Times:
    """The largest key that is seen at each time.

    Parameters
    ----------
    times : int64[n] or float64[n]
        No NaN.
    strict : bool
        Edges of the time itself are not seen.
    is_float : bool
        Whether the times of edges are floats. Numbers of both kinds are compared exactly.

    Returns
    -------
    int64[n]
        An edge is seen where its key is at most this; ``MIN_TIME`` is no edge's.
    """
    if is_float and times.dtype.kind == "f":
        return encode_times(times) - np.int64(strict)
    if is_float:
        rounded = times.astype(np.float64)
        # The largest float that is not beyond the whole number; 2^63 itself is beyond all of them.
        overshoots = (rounded >= _TWO63) | (
            np.where(rounded >= _TWO63, 0.0, rounded).astype(np.int64) > times
        )
        rounded = np.where(overshoots, np.nextafter(rounded, -np.inf), rounded)
        return encode_times(rounded) - np.where(
            rounded.astype(np.int64) == times, np.int64(strict), np.int64(0)
        )
    if times.dtype.kind == "f":
        integral = np.ceil(times) if strict else np.floor(times)
        in_range = (integral >= -_TWO63) & (integral < _TWO63)
        keys = np.where(in_range, integral, 0.0).astype(np.int64)
        return np.where(
            in_range, _before(keys, strict), np.where(integral < 0, MIN_TIME, _AFTER_ALL)
        )
    return _before(times.astype(np.int64), strict)


@kernel
def running_weight_sums(
    indptr: Times,
    first: np.int64,
    end: np.int64,
    order: NDArray[np.uint32],
    weights: NDArray[np.float32],
    out: NDArray[np.float64],
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
    Neumaier's sums, each at least the one before it: an edge of weight 0 adds nothing, and none
    takes away."""
    for row in range(first, end):
        total = 0.0
        compensation = 0.0
        running_max = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            weight = np.float64(weights[order[at]])
            new_total = total + weight
            if total >= weight:
                compensation += (total - new_total) + weight
            else:
                compensation += (weight - new_total) + total
            total = new_total
            running_max = max(running_max, total + compensation)
            out[at] = running_max


def _before(keys: Times, strict: bool) -> Times:
    """The key before each, where ``strict``."""
    return np.where(keys == MIN_TIME, keys, keys - np.int64(strict))
