"""Arrow types: the feature that a column of each type becomes, and conversion to basic arrays.

Times become integers of one unit since 1970-01-01 00:00 UTC, whatever the unit of their column, so
that files and frames with different units agree. Nothing is rounded: a time that is not an integer
in the unit is marked as bad.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from asterism.time_units import UNIT_NS, rescale
from asterism_proto.framing import DTYPES

Mask = NDArray[np.bool_]

_NUMPY_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}
_MAX_INT64_DIGITS = 18
"""Most digits of a decimal that always fits int64."""
_WIDEST_DECIMAL = pa.decimal256(76, 0)


class ArrowFeature(NamedTuple):
    """Feature that a column becomes."""

    kind: str
    """``dense``, ``ragged`` or ``bytes``."""
    dtype: str = ""
    shape: tuple[int, ...] = ()


class UnsupportedTypeError(ValueError):
    """Reason why a column of a type cannot become a feature."""


def _has_type(kind: pa.DataType, *names: str) -> bool:
    """Return True if one of the tests of `pyarrow.types` holds; older releases lack some."""
    return any(getattr(pa.types, f"is_{name}", lambda _: False)(kind) for name in names)


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary or run-end encoded type."""
    while _has_type(kind, "dictionary", "run_end_encoded"):
        kind = kind.value_type
    return kind


def is_text(kind: pa.DataType) -> bool:
    """Return True for strings and bytes of any layout."""
    return _has_type(
        kind,
        "string",
        "large_string",
        "string_view",
        "binary",
        "large_binary",
        "binary_view",
        "fixed_size_binary",
    )


def is_time(kind: pa.DataType) -> bool:
    """Return True for timestamps, dates, times of day and durations."""
    return _has_type(kind, "timestamp", "date", "time", "duration")


def is_list(kind: pa.DataType) -> bool:
    """Return True for lists of variable length."""
    return _has_type(kind, "list", "large_list", "list_view", "large_list_view")


def describe_type(kind: pa.DataType) -> ArrowFeature:
    """Return the feature that a column of a type becomes.

    Parameters
    ----------
    kind : pyarrow.DataType

    Returns
    -------
    ArrowFeature

    Raises
    ------
    UnsupportedTypeError
        Columns of the type cannot be features; the message has the reason.
    """
    kind = value_type(kind)
    if is_text(kind):
        return ArrowFeature("bytes")
    if dtype := _scalar_dtype(kind):
        return ArrowFeature("dense", dtype)
    is_fixed = _has_type(kind, "fixed_size_list")
    if is_fixed or is_list(kind):
        item = _scalar_dtype(kind.value_type)
        if not item or is_time(value_type(kind.value_type)):
            raise UnsupportedTypeError(f"lists hold numbers, not {kind.value_type}")
        if is_fixed:
            return ArrowFeature("dense", item, (kind.list_size,))
        return ArrowFeature("ragged", "int64" if np.dtype(item).kind in "iu" else "float32")
    raise UnsupportedTypeError(_refusal(kind))


def _scalar_dtype(kind: pa.DataType) -> str:
    """Return the dtype of a number, boolean or time; "" for other types."""
    kind = value_type(kind)
    if is_time(kind):
        return "int64"
    if _has_type(kind, "decimal"):
        return "int64" if kind.scale == 0 and kind.precision <= _MAX_INT64_DIGITS else "float64"
    name = _NUMPY_NAMES.get(str(kind), str(kind))
    return name if name in DTYPES else ""


def _refusal(kind: pa.DataType) -> str:
    if _has_type(kind, "struct", "union", "map"):
        return "nested values are no feature; write each field as a column of its own"
    if _has_type(kind, "null"):
        return "all values are missing, and without a type; give the column a type"
    if _has_type(kind, "interval"):
        return "months and days differ in length; write a duration"
    if isinstance(kind, pa.BaseExtensionType):
        return f"an extension type; cast the column to its storage, {kind.storage_type}"
    return "a feature is numbers, lists of numbers, times or strings"


def plain_array(column: pa.Array) -> pa.Array:
    """Return a column without encodings: dictionaries decoded, strings in their usual layout."""
    if _has_type(column.type, "run_end_encoded"):
        column = pc.run_end_decode(column)
    if _has_type(column.type, "dictionary"):
        column = pa.DictionaryArray.from_arrays(
            column.indices, plain_array(column.dictionary)
        ).dictionary_decode()
    if _has_type(column.type, "string_view"):
        return _cast_view(column, pa.large_string())
    if _has_type(column.type, "binary_view"):
        return _cast_view(column, pa.large_binary())
    if _has_type(column.type, "fixed_size_binary"):
        return column.cast(pa.large_binary())
    return column


def _cast_view(column: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:  # pyarrow before 19
        return pa.array(column.to_pylist(), kind)


def python_value(column: pa.Array, row: int) -> Any:
    """Return a value as a Python object, and a time as text."""
    if is_time(value_type(column.type)):  # Python's datetimes have no nanoseconds.
        return plain_array(column.slice(row, 1)).cast(pa.string())[0].as_py()
    return column[row].as_py()


def time_integers(column: pa.Array, unit: str) -> tuple[NDArray[np.int64], Mask | None]:
    """Return times as integers.

    Parameters
    ----------
    column : pyarrow.Array
        Timestamps, dates, times of day or durations.
    unit : {"d", "s", "ms", "us", "ns"}
        Unit of the result.

    Returns
    -------
    values : ndarray of int64, shape (n,)
        Timestamps and dates (midnight) since 1970-01-01 00:00 UTC, times of day since midnight,
        durations; 0 for nulls and bad rows. A timestamp without a time zone is taken as UTC.
    bad : ndarray of bool, shape (n,), or None
        Mask of the times that are not an int64 in the unit, or None if there are none.
    """
    kind = column.type
    own_unit = "d" if pa.types.is_date32(kind) else "ms" if _has_type(kind, "date64") else kind.unit
    narrow = pa.types.is_date32(kind) or pa.types.is_time32(kind)
    integers = column.view(pa.int32() if narrow else pa.int64()).cast(pa.int64()).fill_null(0)
    return rescale(integers.to_numpy(zero_copy_only=False), UNIT_NS[own_unit], UNIT_NS[unit])


def decimal_texts(column: pa.Array, *, integral: bool) -> tuple[pa.Array, Mask | None]:
    """Return decimals as texts of numbers.

    Parameters
    ----------
    column : pyarrow.Array
        Decimals.
    integral : bool
        Return integers, and mark values with a fraction as bad.

    Returns
    -------
    texts : pyarrow.Array
        Strings; null where the column is.
    bad : ndarray of bool, shape (n,), or None
        Mask of the values with a fraction, or None if there are none.
    """
    if not integral:
        return column.cast(pa.string()), None
    truncated = pc.cast(
        column, options=pc.CastOptions(_WIDEST_DECIMAL, allow_decimal_truncate=True)
    )
    has_fraction = np.asarray(pc.fill_null(pc.not_equal(pc.trunc(column), column), False))
    return truncated.cast(pa.string()), has_fraction if has_fraction.any() else None
