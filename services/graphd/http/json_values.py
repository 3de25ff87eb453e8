"""Conversion of arrays to values that JSON can represent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAX_DIGITS = 9
"""Significant decimal digits that identify every float32."""
_POWERS_OF_TEN = np.array([float(10**power) for power in range(23)])
"""Powers of ten that float64 represents exactly."""
_MAX_POWER = 12
"""Largest exponent of values that are converted as a whole array, by exact powers of ten."""


def plain_values(array: NDArray[Any]) -> list[Any]:
    """Return an array as nested lists of numbers and texts.

    A float32 becomes the number with the fewest digits that reads as the same float32, such as
    26.79 and not 26.790000915527344. NaN and infinite numbers become None.
    """
    if array.dtype.kind != "f":
        return list(array.tolist())
    values = array if array.dtype == np.float64 else shortest_decimals(array)
    finite = np.isfinite(values)
    if finite.all():
        return list(values.tolist())
    cells = values.astype(object)
    cells[~finite] = None
    return list(cells.tolist())


def shortest_decimals(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return the float64 nearest to the shortest decimal that identifies each float32.

    Parameters
    ----------
    array : ndarray of float32 or float16, any shape

    Returns
    -------
    ndarray of float64, same shape
        Python and JSON print it with the digits of that decimal.
    """
    exact = array.astype(np.float64)
    decimals = exact.reshape(-1).copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.floor(np.log10(np.abs(decimals)))
    pending = np.flatnonzero(np.isfinite(powers) & (np.abs(powers) <= _MAX_POWER))
    others = np.flatnonzero(np.isfinite(powers) & (np.abs(powers) > _MAX_POWER))
    decimals[others] = [float(str(value)) for value in array.reshape(-1)[others]]
    for digits in range(1, _MAX_DIGITS + 1):
        value = exact.reshape(-1)[pending]
        shift = (digits - 1 - powers[pending]).astype(np.int64)
        scale = _POWERS_OF_TEN[np.abs(shift)]
        rounded = np.where(
            shift >= 0, np.rint(value * scale) / scale, np.rint(value / scale) * scale
        )
        with np.errstate(over="ignore"):
            matches = rounded.astype(array.dtype) == value
        decimals[pending[matches]] = rounded[matches]
        pending = pending[~matches]
        if not pending.size:
            break
    return decimals.reshape(array.shape)
