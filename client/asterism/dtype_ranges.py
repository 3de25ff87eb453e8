"""Ranges of dtypes: numbers that a dtype can hold, and overflow to infinity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def overflow_mask(values: NDArray[Any], converted: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return a mask of the finite numbers that became infinite in another dtype.

    Parameters
    ----------
    values : ndarray of numbers
        Numbers.
    converted : ndarray of the same shape
        The numbers in another dtype.

    Returns
    -------
    ndarray of bool or None
        None if there are no such numbers.
    """
    if converted.dtype.kind != "f" or np.can_cast(values.dtype, converted.dtype):
        return None
    infinite: NDArray[np.bool_] = np.isinf(converted)
    if infinite.any() and values.dtype.kind == "f":
        infinite &= np.isfinite(values)
    return infinite if infinite.any() else None


def number_fits(value: float, dtype: str) -> bool:
    """Return True if a dtype can hold a number: in its range, and integral for an integer."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return value in (0, 1)
    if kind in "iu":
        limits = np.iinfo(dtype)
        is_integral = not isinstance(value, float) or value.is_integer()
        return is_integral and limits.min <= value <= limits.max
    try:
        number = float(value)
    except OverflowError:
        return False
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.dtype(dtype).type(number))) or not np.isfinite(number)
