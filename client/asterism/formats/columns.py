"""Conversion of file columns to numbers, lists or bytes, with a mask of unreadable rows.

Each conversion is one vectorized pass over NumPy or Arrow arrays, typed or text. Nothing is coerced
silently: 1.5 is not an id, 300 is not an int8, and a null is not a number unless a fill value is
given.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asterism import arrow_types
from asterism.dtype_ranges import overflow_mask
from asterism.formats.chunks import Array, Ids, Mask
from asterism_model import string_ids as contract
from asterism_model.string_ids import StringColumn
from asterism_proto.errors import InvalidRequest

Column: TypeAlias = Any
"""NumPy array of shape (n, ...) or ``pyarrow.Array``."""

INTEGER_PATTERN = r"^[+-]?[0-9]+$"
FLOAT_PATTERN = (
    r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
    r"|^[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
)
_INFINITE = r"^[+-]?[iI][nN][fF]"
_TRUE = pa.array(["1", "true", "True", "TRUE"])
_FALSE = pa.array(["0", "false", "False", "FALSE"])


def is_text(column: Column) -> bool:
    """Return True if a column holds strings or bytes."""
    return isinstance(column, pa.Array) and arrow_types.is_text(column.type)


def union_masks(left: Mask | None, right: Mask | None) -> Mask | None:
    """Return the union of two masks. None selects no row."""
    if left is None or right is None:
        return right if left is None else left
    return left | right


def _mask_or_none(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


def parse_numbers(
    column: Column, dtype: np.dtype[Any], fill: float | None = None, unit: str | None = None
) -> tuple[Array, Mask | None]:
    """Parse a column as numbers.

    Parameters
    ----------
    column : Column
        Numbers, booleans or text.
    dtype : numpy.dtype
        Dtype of the result. Integers must be integral and in range. Floats may be NaN or infinite,
        but no finite number may become infinite.
    fill : float, optional
        Value of nulls. Without it, a null is a bad row.
    unit : str, optional
        Unit of times, one of `asterism.time_units.UNIT_NS`. Without it, a column of times is
        refused.

    Returns
    -------
    values : ndarray of ``dtype``, shape (n,)
        Parsed numbers; 0 in bad rows.
    bad : ndarray of bool, shape (n,), or None
        Mask of the bad rows, or None if there are none.
    """
    bad_mask: Mask | None = None
    if isinstance(column, pa.Array):
        column = arrow_types.plain_array(column)
        nulls = np.asarray(column.is_null()) if column.null_count else None
        if is_text(column):
            values, bad_mask = _numbers_from_text(column, dtype)
        elif unit is not None and arrow_types.is_time(column.type):
            integers, bad_mask = arrow_types.time_integers(column, unit)
            values, outside = _numbers_from_array(integers, dtype)
            bad_mask = union_masks(bad_mask, outside)
        elif pa.types.is_decimal(column.type):
            texts, bad_mask = arrow_types.decimal_texts(column, integral=dtype.kind != "f")
            values, outside = _numbers_from_text(texts, dtype)
            bad_mask = union_masks(bad_mask, outside)
        else:
            kind = column.type
            if not (
                pa.types.is_integer(kind)
                or pa.types.is_floating(kind)
                or pa.types.is_boolean(kind)
                or pa.types.is_null(kind)
            ):
                raise InvalidRequest(
                    f"column of {kind}: expected numbers or text, for a feature of {dtype}"
                )
            column = column.cast(pa.float64()) if pa.types.is_null(kind) else column
            values, bad_mask = _numbers_from_array(
                column.fill_null(False if pa.types.is_boolean(column.type) else 0).to_numpy(
                    zero_copy_only=False
                ),
                dtype,
            )
        if nulls is not None:
            values = values if values.flags.writeable else values.copy()
            values[nulls] = 0 if fill is None else fill
            bad_mask = _mask_or_none(bad_mask & ~nulls) if bad_mask is not None else None
            bad_mask = union_masks(bad_mask, nulls if fill is None else None)
        return values, bad_mask
    return _numbers_from_array(column, dtype)


def _numbers_from_array(values: Array, dtype: np.dtype[Any]) -> tuple[Array, Mask | None]:
    if values.dtype.kind not in "iufb":
        raise InvalidRequest(
            f"column of {values.dtype}: expected numbers, for a feature of {dtype}"
        )
    if values.dtype == dtype:
        return np.ascontiguousarray(values), None
    bad_mask: Mask | None = None
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if values.dtype.kind == "f":
            # 2.0 ** 63 is exact in float64, unlike the maximum of int64.
            ok = (
                (values >= float(limits.min))
                & (values < float(limits.max) + (1 if limits.bits < 64 else 0))
                & (values == np.floor(values))
            )
            bad_mask = _mask_or_none(~ok)
        elif not np.can_cast(values.dtype, dtype):
            # Compare as Python integers: the bounds of one dtype need not fit into the other.
            minimum, maximum = int(values.min(initial=0)), int(values.max(initial=0))
            if minimum < limits.min or maximum > limits.max:
                outside = np.zeros(len(values), np.bool_)
                if minimum < limits.min:
                    outside |= values < limits.min
                if maximum > limits.max:
                    outside |= values > limits.max
                bad_mask = _mask_or_none(outside)
    elif dtype.kind == "b" and values.dtype.kind != "b":
        bad_mask = _mask_or_none((values != 0) & (values != 1))
    if bad_mask is not None:
        values = np.where(bad_mask, values.dtype.type(0), values)
    with np.errstate(over="ignore"):
        numbers: Array = np.ascontiguousarray(values.astype(dtype))
    overflow = overflow_mask(values, numbers)
    if overflow is not None:
        numbers[overflow] = 0
    return numbers, union_masks(bad_mask, overflow)


def _numbers_from_text(column: Column, dtype: np.dtype[Any]) -> tuple[Array, Mask | None]:
    """Parse numbers from strings. Nulls become 0 and are marked bad; the caller handles them."""
    text = pc.utf8_trim_whitespace(to_utf8(column))
    if dtype.kind == "b":
        is_true = pc.is_in(text, value_set=_TRUE)
        ok = pc.or_(is_true, pc.is_in(text, value_set=_FALSE))
        return np.asarray(is_true), _mask_or_none(~np.asarray(ok))
    ok = pc.fill_null(
        pc.match_substring_regex(text, FLOAT_PATTERN if dtype.kind == "f" else INTEGER_PATTERN),
        False,
    )
    if dtype.kind == "f":
        parsed = pc.if_else(ok, text, pa.scalar("0", text.type)).cast(
            pa.float32() if dtype.itemsize < 8 else pa.float64()
        )
        numbers = parsed.to_numpy(zero_copy_only=False)
        values, outside = _numbers_from_array(numbers, dtype)
        if np.isinf(numbers).any():
            written = pc.fill_null(pc.match_substring_regex(text, _INFINITE), False)
            overflow = np.isinf(numbers) & ~np.asarray(written)
            outside = union_masks(outside, _mask_or_none(overflow))
        return values, union_masks(_mask_or_none(~np.asarray(ok)), outside)
    digits = pc.replace_substring_regex(text, r"^\+", "")
    digits = pc.replace_substring_regex(digits, r"^(-?)0+([0-9])", r"\1\2")
    wide_type, max_text = (
        (pa.uint64(), "18446744073709551615")
        if dtype == np.uint64
        else (pa.int64(), "9223372036854775807")
    )
    magnitude = pc.replace_substring_regex(digits, "^-", "")
    length = pc.utf8_length(magnitude)
    fits = pc.or_(
        pc.less(length, len(max_text)),
        pc.and_(pc.equal(length, len(max_text)), pc.less_equal(magnitude, max_text)),
    )
    ok = pc.and_(ok, pc.fill_null(fits, False))
    if wide_type == pa.uint64():
        ok = pc.and_(ok, pc.fill_null(pc.invert(pc.starts_with(digits, "-")), False))
    parsed = pc.if_else(ok, digits, pa.scalar("0", digits.type)).cast(wide_type)
    values, outside = _numbers_from_array(parsed.to_numpy(zero_copy_only=False), dtype)
    return values, union_masks(_mask_or_none(~np.asarray(ok)), outside)


def to_utf8(column: Column) -> Column:
    """Return text as Arrow strings.

    Invalid UTF-8 is replaced by U+FFFD, which no number matches.
    """
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column
    try:
        return column.cast(
            pa.large_string() if pa.types.is_large_binary(column.type) else pa.string()
        )
    except pa.ArrowInvalid:
        return pa.array(
            [
                None if value is None else value.decode(errors="replace")
                for value in column.to_pylist()
            ],
            pa.string(),
        )


def parse_ids(column: Column) -> tuple[Ids, Mask | None]:
    """Parse a column as ids: int64, shape (n,), at least 0; 0 in bad rows."""
    if pa.types.is_boolean(column.type) if isinstance(column, pa.Array) else column.dtype == bool:
        raise InvalidRequest("column of bool: expected integers or text, for ids")
    values, bad = parse_numbers(column, np.dtype(np.int64))
    if len(values) and values.min() < 0:
        negative = values < 0
        values, bad = np.where(negative, 0, values), union_masks(bad, negative)
    return values, bad


def parse_names(column: Column) -> tuple[StringColumn, Mask | None]:
    """Parse a column as string ids, and return a mask of missing or invalid ones.

    Integers are converted to text.
    """
    if not isinstance(column, pa.Array):
        column = pa.array(column)
    kind = arrow_types.value_type(column.type)
    if pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        raise InvalidRequest(f"column of {kind}: expected text or integers, for names")
    texts = parse_strings(column, len(column))
    return texts, _mask_or_none(contract.invalid_mask(texts))


def parse_weights(column: Column) -> tuple[Array, Mask | None]:
    """Parse a column as weights: float32, shape (n,), finite and at least 0."""
    values, bad = parse_numbers(column, np.dtype(np.float32))
    # The comparison also detects NaN, which is outside any bounds. -0.0 counts as 0.
    ok = (values >= 0) & (values <= np.finfo(np.float32).max)
    return values, bad if ok.all() else union_masks(bad, ~ok)


def parse_strings(column: Column, rows: int) -> tuple[Ids, Array]:
    """Parse a column as bytes.

    Nulls become empty; numbers are converted to text.

    Returns
    -------
    indptr : ndarray of int64, shape (n + 1,)
        Offsets of the rows.
    values : ndarray of uint8
        Bytes of all rows.
    """
    if not isinstance(column, pa.Array):
        column = pa.array(column)
    column = arrow_types.plain_array(column)
    if not is_text(column):
        column = column.cast(pa.large_string())
    if column.null_count:
        column = column.fill_null(
            b"" if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type) else ""
        )
    is_large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, offsets, data = column.buffers()
    indptr = (
        np.frombuffer(
            offsets,
            np.int64 if is_large else np.int32,
            rows + 1,
            column.offset * (8 if is_large else 4),
        ).astype(np.int64)
        if rows
        else np.zeros(1, np.int64)
    )
    values = (
        np.frombuffer(data, np.uint8)[indptr[0] : indptr[-1]]
        if data is not None and indptr[-1]
        else np.zeros(0, np.uint8)
    )
    return indptr - indptr[0], values


def parse_lists(
    column: Column,
    dtype: np.dtype[Any],
    separator: str | None = None,
    fill: float | None = None,
) -> tuple[Ids, Array, Mask | None]:
    """Parse a column of lists, or of text to split.

    Parameters
    ----------
    column : Column
        Arrow lists (fixed-size or not), a two-dimensional array, or text if there is a separator.
    dtype : numpy.dtype
        Dtype of the values.
    separator : str, optional
        Separator of the values in text. Consecutive separators count once.
    fill : float, optional
        Value of nulls within lists. Without it, a null makes the row bad.

    Returns
    -------
    indptr : ndarray of int64, shape (n + 1,)
        Offsets of the rows.
    values : ndarray of ``dtype``
        Values of all rows.
    bad : ndarray of bool, shape (n,), or None
        Mask of the bad rows, or None if there are none.
    """
    if not isinstance(column, pa.Array):
        values, bad = parse_numbers(np.ascontiguousarray(column).reshape(-1), dtype)
        width = column.shape[1] if column.ndim == 2 else 1
        return (
            np.arange(len(column) + 1) * width,
            values,
            None
            if bad is None
            else _mask_or_none(np.asarray(bad.reshape(len(column), width).any(axis=1))),
        )
    if separator is not None:
        if not is_text(column):
            column = column.cast(pa.string())
        column = pc.split_pattern(to_utf8(column), pattern=separator)
    elif pa.types.is_null(column.type):
        column = column.cast(pa.list_(pa.null()))
    kind = column.type
    if not (arrow_types.is_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise InvalidRequest(
            f"column of {kind}: expected lists, for a feature of lists of {dtype}; set `split` "
            "for text"
        )
    lengths = (
        pc.fill_null(pc.list_value_length(column), 0)
        .to_numpy(zero_copy_only=False)
        .astype(np.int64)
    )
    items = column.flatten()
    if separator is not None:
        non_empty = np.asarray(pc.not_equal(items, ""))
        if not non_empty.all():
            item_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(non_empty)))
            starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
            lengths = np.diff(item_offsets[starts])
            items = items.filter(pa.array(non_empty))
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    values, bad_items = parse_numbers(items, dtype, fill)
    if bad_items is None:
        return indptr, values, None
    counts = np.concatenate((np.zeros(1, np.int64), np.cumsum(bad_items)))
    return indptr, values, _mask_or_none(np.diff(counts[indptr]) > 0)
