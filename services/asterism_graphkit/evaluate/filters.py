"""Evaluate filters over blocks of columns in the arithmetic of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model.filters.syntax import (
    ColumnOperand,
    Connective,
    Constant,
    Literal,
    Predicate,
    Term,
)

Mask = NDArray[np.bool_]
_FEW_VALUES = 8
"""Number of values up to which one comparison for each takes less time than a search."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RaggedColumn:
    """A column that holds a list of values for each row."""

    indptr: NDArray[np.int64]
    """Offsets of the lists, int64[rows + 1]; the first may be other than 0."""
    values: NDArray[Any]
    """Concatenated lists; uint8 for texts."""


ColumnValues = NDArray[Any] | RaggedColumn


def evaluate_filter(
    predicate: Predicate,
    read: Callable[[ColumnOperand], ColumnValues],
    rows: int,
    precomputed: Callable[[Term], Mask | None] = lambda _: None,
) -> Mask:
    """Return a mask of the rows that satisfy a filter.

    Parameters
    ----------
    predicate : Predicate
        Result of `asterism_model.filters.binding.bind`.
    read : callable
        Returns the values of a column, [rows]: numbers or lists.
    rows : int
    precomputed : callable, optional
        Returns the mask of a term that is known without its columns, or None.

    Returns
    -------
    bool[rows]

    Notes
    -----
    A comparison gives the result of NumPy, between a column and a Python number or between two
    columns. Comparisons with NaN are false except ``!=``, and ``not`` is the complement. A column
    of float32 is compared with the float32 value of a number. Integers are compared exactly with
    integers, and bools are 0 and 1. ``is null`` selects NaN in numeric columns, and empty texts and
    lists.
    """
    if isinstance(predicate, Constant):
        return np.full(rows, predicate.value)
    if isinstance(predicate, Connective):
        if predicate.operator == "not":
            return ~evaluate_filter(predicate.operands[0], read, rows, precomputed)
        join = np.logical_and if predicate.operator == "and" else np.logical_or
        return reduce(
            lambda left, each: join(left, evaluate_filter(each, read, rows, precomputed), out=left),
            predicate.operands[1:],
            evaluate_filter(predicate.operands[0], read, rows, precomputed),
        )
    mask = precomputed(predicate)
    if mask is not None:
        return mask
    left = read(predicate.left)
    return (
        _compare_ragged(predicate, left)
        if isinstance(left, RaggedColumn)
        else _compare_numbers(predicate, left, read)
    )


def _compare_numbers(
    term: Term, left: NDArray[Any], read: Callable[[ColumnOperand], ColumnValues]
) -> Mask:
    right = [
        operand.value if isinstance(operand, Literal) else read(operand) for operand in term.right
    ]
    mask: Mask
    if left.dtype == np.bool_:
        # NumPy cannot compare booleans with integers beyond int64.
        left = left.astype(np.int64)
    with np.errstate(all="ignore"):
        match term.operator:
            case "null":
                mask = np.isnan(left) if left.dtype.kind == "f" else np.zeros(left.size, np.bool_)
            case "in":
                mask = _is_listed(left, right)
            case "between":
                mask = (left >= right[0]) & (left <= right[1])
            case operator:
                mask = np.asarray(COMPARISONS[operator](left, right[0]), np.bool_)
    return mask


def _is_listed(left: NDArray[Any], values: list[Any]) -> Mask:
    """Return a mask of the values that equal one of some others."""
    mask = np.zeros(left.size, np.bool_)
    if len(values) <= _FEW_VALUES or left.dtype.kind not in "iu" or set(map(type, values)) != {int}:
        for value in values:
            mask |= left == value
        return mask
    limits = np.iinfo(left.dtype)
    listed = np.unique(
        np.array([value for value in values if limits.min <= value <= limits.max], left.dtype)
    )
    if listed.size:
        candidates = np.flatnonzero((left >= listed[0]) & (left <= listed[-1]))
        numbers = left[candidates]
        mask[candidates] = listed[np.searchsorted(listed, numbers)] == numbers
    return mask


def _compare_ragged(term: Term, left: RaggedColumn) -> Mask:
    lengths = np.diff(left.indptr)
    if term.operator == "null":
        return np.asarray(lengths == 0)
    mask = np.zeros(lengths.size, np.bool_)
    for operand in term.right:
        if isinstance(operand, Literal):
            text = np.frombuffer(str(operand.value).encode("utf-8", "surrogatepass"), np.uint8)
            same_length = np.flatnonzero(lengths == text.size)
            positions = left.indptr[same_length, None] + np.arange(text.size)
            mask[same_length[(left.values[positions] == text).all(axis=1)]] = True
    return ~mask if term.operator == "!=" else mask


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
"""NumPy functions of the comparison operators; callers suppress NumPy's warnings."""
