"""Columns with types that features do not have: times, decimals, and columns of Arrow."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from asterism.time_units import UNIT_NS, numpy_time_integers
from asterism_proto.errors import InvalidRequest

Values = NDArray[Any] | tuple[NDArray[np.int64], NDArray[np.uint8]]
"""Numbers, shape (n, ...), or strings as offsets and UTF-8 bytes."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


@runtime_checkable
class ForeignColumn(Protocol):
    """Port of a column that is converted only if it is loaded."""

    def convert(self, description: str, missing: Any, unit: str | None) -> Values:
        """Return the values.

        Parameters
        ----------
        description : str
            Description of the column, for error messages.
        missing : optional
            Replacement for missing values. None: missing values are rejected.
        unit : str or None
            Unit of times. None: times are rejected.

        Returns
        -------
        ndarray, or (ndarray of int64, ndarray of uint8)
        """


def missing_error(description: str, missing: NDArray[np.bool_]) -> InvalidRequest:
    """Return the error for missing values without a replacement."""
    return InvalidRequest(
        f"{description}, row {int(np.argmax(missing))}: expected a value, found a missing one "
        f"({int(missing.sum()) - 1} more); pass a replacement with `fill`"
    )


def required_unit(description: str, unit: str | None) -> str:
    """Return the unit of times, or raise InvalidRequest where times have no meaning."""
    if unit is None:
        raise InvalidRequest(f"{description}: expected numbers, found times; convert them")
    return unit


def unit_error(description: str, row: int, value: object, unit: str) -> InvalidRequest:
    """Return the error for a time that is not an int64 in the unit."""
    return InvalidRequest(
        f"{description}, row {row}, value {value}: expected an int64 in the unit {unit!r}; choose "
        f"another with `time_unit`, one of {', '.join(UNIT_NS)}"
    )


def fill_missing(
    description: str, values: NDArray[Any], is_missing: NDArray[np.bool_] | None, missing: Any
) -> NDArray[Any]:
    """Return values with a replacement where they are missing."""
    if is_missing is None or not is_missing.any():
        return values
    if missing is None:
        raise missing_error(description, is_missing)
    fill = np.asarray(missing)
    if fill.dtype.kind not in "biuf" or fill.ndim:
        raise InvalidRequest(f"{description}: fill={missing!r}: expected a number")
    with np.errstate(invalid="ignore", over="ignore"):
        fits = fill.astype(values.dtype) == fill
        dtype = values.dtype if fits else np.result_type(values.dtype, fill.dtype)
        result = values.astype(dtype)
        if not np.array_equal(result.astype(values.dtype)[~is_missing], values[~is_missing]):
            raise InvalidRequest(
                f"{description}: fill={missing!r}: expected a value of {values.dtype}, because "
                f"{dtype} would round the column"
            )
    result[is_missing] = fill
    return result


def times_to_integers(
    description: str, values: NDArray[Any], missing: Any, unit: str | None
) -> NDArray[Any]:
    """Return NumPy's datetimes or timedeltas as int64 in a unit.

    Raises
    ------
    InvalidRequest
        A time is missing without a replacement, or is not an int64 in the unit.
    """
    unit = required_unit(description, unit)
    try:
        integers, is_missing, bad = numpy_time_integers(values, unit)
    except InvalidRequest as error:
        raise InvalidRequest(f"{description}: {error}") from error
    if bad is not None:
        row = int(np.argmax(bad.reshape(len(values), -1).any(axis=1)))
        raise unit_error(description, row, values[row], unit)
    return fill_missing(description, integers, is_missing, missing)


def objects_to_numbers(
    description: str, items: Sequence[Any], missing: Any, unit: str | None
) -> NDArray[Any] | None:
    """Return Python's decimals as float64, and dates, datetimes and timedeltas as int64.

    Dates are their midnight, UTC; datetimes without a time zone are UTC. None stands for other
    values.
    """
    kinds = {type(item) for item in items if item is not None}
    if kinds and all(issubclass(kind, decimal.Decimal) for kind in kinds):
        decimals = np.array([0.0 if item is None else float(item) for item in items])
        return fill_missing(description, decimals, np.array([x is None for x in items]), missing)
    if not kinds or not all(issubclass(kind, datetime.date | datetime.timedelta) for kind in kinds):
        return None
    unit = required_unit(description, unit)
    # NaT of pandas is a datetime that differs from itself.
    is_missing = np.array([item is None or bool(item != item) for item in items])
    if is_missing.any() and missing is None:
        raise missing_error(description, is_missing)
    result = np.zeros(len(items), np.int64)
    for row, item in enumerate(items):
        if is_missing[row]:
            continue
        value, rest = divmod(_nanoseconds(item), UNIT_NS[unit])
        if rest or not -(1 << 63) <= value < 1 << 63:
            raise unit_error(description, row, item, unit)
        result[row] = value
    return fill_missing(description, result, is_missing, missing)


def _nanoseconds(item: datetime.date | datetime.timedelta) -> int:
    # Only classes of pandas have nanoseconds.
    extra = int(getattr(item, "nanosecond", getattr(item, "nanoseconds", 0)))
    if isinstance(item, datetime.timedelta):
        return item // _MICROSECOND * 1000 + extra
    if not isinstance(item, datetime.datetime):
        return (item.toordinal() - _EPOCH.toordinal()) * UNIT_NS["d"]
    aware = item if item.tzinfo is not None else item.replace(tzinfo=datetime.UTC)
    return (aware - _EPOCH) // _MICROSECOND * 1000 + extra
