"""Map times to int64 keys in the same order, and sum edge weights in time order.

With such keys, one int64 comparison decides whether an edge is visible.
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
    """Return int64[n] keys in the order of the times; equal times have equal keys.

    Integers are their own keys. The key of a float is made of its bits.
    """
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    bits = (values.astype(np.float64) + 0.0).view(np.int64)  # -0 is 0
    return np.where(bits < 0, bits ^ _AFTER_ALL, bits)


def decode_times(keys: Times, *, is_float: bool) -> NDArray[Any]:
    """Return the times of the keys that `encode_times` made: int64[n] or float64[n]."""
    return np.where(keys < 0, keys ^ _AFTER_ALL, keys).view(np.float64) if is_float else keys


def limit_keys(times: NDArray[Any], *, strict: bool, is_float: bool) -> Times:
    """Return the largest key that is visible at each time.

    Parameters
    ----------
    times : int64[n] or float64[n]
        Without NaN.
    strict : bool
        Whether edges at exactly the given time are excluded.
    is_float : bool
        Whether the times of the edges are floats. Integers and floats are compared exactly.

    Returns
    -------
    int64[n]
        An edge is visible if its key is at most this value. No edge has the key ``MIN_TIME``.
    """
    if is_float and times.dtype.kind == "f":
        return encode_times(times) - np.int64(strict)
    if is_float:
        rounded = times.astype(np.float64)
        # The largest float that is not greater than the integer. No integer reaches 2^63.
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
    """Compute running sums of the weights of each row in the given order.

    Parameters
    ----------
    indptr : int64[rows + 1]
    first, end : int64
        Range of rows.
    order, weights : uint32[slots], float32[slots]
        Edge at each position of the order; weight of each edge.
    out : float64[slots], out
        Sum of the weights of the row up to and including each position.

    Notes
    -----
    Neumaier's compensated summation. Each sum is made at least as large as the sum before it, so
    that an edge of weight 0 adds nothing and rounding never decreases a sum.
    """
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
    """Return the preceding key of each key if ``strict``, else the keys."""
    return np.where(keys == MIN_TIME, keys, keys - np.int64(strict))
