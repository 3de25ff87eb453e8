"""Map numbers to int64 keys that sort in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_TOP = np.uint64(1 << 63)
_REST = np.int64((1 << 63) - 1)


def sort_keys(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return an int64 key for each value; smaller values have smaller keys.

    Parameters
    ----------
    values : [n]
        Bools, integers or floats of at most 64 bits.

    Returns
    -------
    int64[n]
        Equal for equal values; 0.0 and -0.0 are equal. NaN has the largest key, 2^63 - 1.
    """
    if values.dtype.kind == "u":
        keys: NDArray[np.int64] = (values.astype(np.uint64) ^ _TOP).view(np.int64)
        return keys
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    bits = (values.astype(np.float64) + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    return np.where(np.isnan(values), _REST, np.where(bits < 0, bits ^ _REST, bits))
