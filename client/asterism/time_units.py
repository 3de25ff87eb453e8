"""Units of times in loaded columns, and conversion between them without rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest

UNIT_NS = {
    "d": 86_400 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
"""Length of each unit in nanoseconds."""
DEFAULT_UNIT = "us"
_NUMPY_NS = {
    "W": 7 * UNIT_NS["d"],
    "D": UNIT_NS["d"],
    "h": 3600 * UNIT_NS["s"],
    "m": 60 * UNIT_NS["s"],
    **UNIT_NS,
}
_MAX = np.iinfo(np.int64).max


def check_unit(label: str, unit: object) -> str:
    """Return a unit, or raise InvalidRequest."""
    if not isinstance(unit, str) or unit not in UNIT_NS:
        raise InvalidRequest(f"{label}={unit!r}: expected one of {', '.join(UNIT_NS)}")
    return unit


def rescale(
    values: NDArray[np.int64], from_ns: int, to_ns: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Convert integers of one unit to another.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
    from_ns, to_ns : int
        Lengths of both units in nanoseconds; one is a multiple of the other.

    Returns
    -------
    values : ndarray of int64, shape (n,)
        Converted integers; 0 in bad rows.
    bad : ndarray of bool, shape (n,), or None
        Mask of the values that are no int64 in the new unit, or None if there are none.
    """
    if from_ns == to_ns:
        return values, None
    if from_ns > to_ns:
        factor = from_ns // to_ns
        bad = (values > _MAX // factor) | (values < -(_MAX // factor))
        scaled = np.where(bad, 0, values) * factor
    else:
        factor = to_ns // from_ns
        scaled = values // factor
        bad = scaled * factor != values
        scaled[bad] = 0
    return scaled, bad if bad.any() else None


def numpy_time_integers(
    values: NDArray[Any], unit: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return NumPy's datetimes or timedeltas as integers.

    Parameters
    ----------
    values : ndarray of datetime64 or timedelta64
    unit : str
        Unit of the result, one of `UNIT_NS`.

    Returns
    -------
    values : ndarray of int64
        Integers since 1970-01-01 00:00 UTC, or durations; 0 where missing or bad.
    missing : ndarray of bool
        Mask of NaT.
    bad : ndarray of bool, or None
        Mask of the values that are no int64 in the unit, or None if there are none.

    Raises
    ------
    InvalidRequest
        The dtype has a unit that is no fixed number of nanoseconds.
    """
    own_unit, step = np.datetime_data(values.dtype)
    if own_unit not in _NUMPY_NS:
        raise InvalidRequest(
            f"{values.dtype}: expected a unit from weeks to nanoseconds; convert it, as by "
            "astype('datetime64[s]')"
        )
    missing = np.isnat(values)
    integers = np.where(missing, 0, values.astype(np.int64)) * step
    scaled, bad = rescale(integers, _NUMPY_NS[own_unit], UNIT_NS[unit])
    return scaled, missing, bad
