"""The order of numbers as whole numbers: what sorts them by ranges of a key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_TOP = np.uint64(1 << 63)
_REST = np.int64((1 << 63) - 1)


def sort_keys(values: NDArray[Any]) -> NDArray[np.int64]:
    """A whole number for each value, that is less where the value is.

    Parameters
    ----------
    values : [n]
        Bools, whole numbers or floats of at most 64 bits.

    Returns
    -------
    int64[n]
        Equal for equal values, 0.0 and -0.0 among them. NaN has the largest, 2^63 - 1.
    """
    if values.dtype.kind == "u":
        keys: NDArray[np.int64] = (values.astype(np.uint64) ^ _TOP).view(np.int64)
        return keys
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    bits = (values.astype(np.float64) + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    return np.where(np.isnan(values), _REST, np.where(bits < 0, bits ^ _REST, bits))
