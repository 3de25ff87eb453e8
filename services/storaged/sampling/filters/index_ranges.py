"""Resolution of a filter against a column index into row ranges, by bisection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.sort_keys import sort_keys
from asterism_graphkit.evaluate.filters import COMPARISONS
from asterism_graphkit.operators import graph_labels
from asterism_model.filters.syntax import Connective, Constant, Literal, Predicate, Term, iter_terms
from storaged.store.column_index import ColumnIndex
from storaged.store.image import EdgeImage, NodeImage

RowRuns = list[tuple[int, int]]
"""(first row, end) of each range of rows; ascending and disjoint."""


def can_resolve(index: ColumnIndex, predicate: Predicate) -> bool:
    """Return whether a filter only compares the column of an index with constants."""
    all_terms = list(iter_terms(predicate))
    return bool(all_terms) and all(
        str(term.left) == index.column
        and all(isinstance(operand, Literal) for operand in term.right)
        and _supports(index, term)
        for term in all_terms
    )


def _supports(index: ColumnIndex, term: Term) -> bool:
    return (
        index.kind != "hash"
        or term.operator in ("==", "!=", "in", "null")
        or not _has_strings(term)
    )


def _has_strings(term: Term) -> bool:
    return any(
        isinstance(operand, Literal) and isinstance(operand.value, str) for operand in term.right
    )


def resolve_runs(index: ColumnIndex, image: NodeImage | EdgeImage, predicate: Predicate) -> RowRuns:
    """Return the ranges of an index's rows that match a filter.

    Parameters
    ----------
    index : ColumnIndex
    image : NodeImage or EdgeImage
        The indexed type.
    predicate : Predicate
        Filter that `can_resolve` accepts for the index.

    Returns
    -------
    list of (int, int)
        Positions in the order of the index.
    """
    column = (
        image.columns.get(next(iter(iter_terms(predicate))).left.name)
        if index.kind == "hash"
        else None
    )
    strings = (
        None
        if column is None or column.indptr is None
        else _StringIndex(index=index, indptr=column.indptr, values=column.values)
    )
    runs = _resolve(index.values, strings, predicate, index.values.size)
    if index.kind == "range":
        return runs
    return [(int(index.bounds[low]), int(index.bounds[high])) for low, high in runs]


def key_runs(predicate: Predicate, dtype: np.dtype[Any]) -> list[tuple[int, int]]:
    """Return the values of a dtype that match a filter on one column of it.

    They are found by bisection over all values of the dtype, with the comparisons that a scan uses,
    so they are right for every row.

    Returns
    -------
    list of (int, int)
        First and last key of each run, as encoded by
        `asterism_graphkit.arrays.sort_keys.sort_keys`.
    """
    domain = ValueDomain(dtype)
    return [
        (int(sort_keys(domain[low : low + 1])[0]), int(sort_keys(domain[high - 1 : high])[0]))
        for low, high in _resolve(domain, None, predicate, domain.size)
    ]


@dataclass(frozen=True, slots=True)
class ValueDomain:
    """All values of a dtype in order, NaN last, with the interface of an array."""

    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Number of values."""
        if self.dtype.kind == "f":
            return 2 * self._infinity + 2
        return 2 if self.dtype.kind == "b" else 1 << 8 * self.dtype.itemsize

    def __getitem__(self, key: slice) -> NDArray[Any]:
        """Return the value at the start of a slice, shape (1,)."""
        position: int = key.start
        if self.dtype.kind != "f":
            minimum = 0 if self.dtype.kind == "b" else int(np.iinfo(self.dtype).min)
            return np.array([minimum + position], self.dtype)
        if position == self.size - 1:
            return np.array([np.nan], self.dtype)
        # Values below 0 count downwards from 0; -0.0 is the same as 0.0.
        bits = position - self._infinity
        value = np.array([abs(bits)], f"u{self.dtype.itemsize}").view(self.dtype)
        return -value if bits < 0 else value

    @property
    def _infinity(self) -> int:
        """Bits of infinity, which equal the number of values from 0 up to it."""
        return int(np.array([np.inf], self.dtype).view(f"u{self.dtype.itemsize}")[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _StringIndex:
    """The strings of an index by equality."""

    index: ColumnIndex
    indptr: NDArray[np.int64]
    values: NDArray[np.uint8]


def _resolve(
    values: NDArray[Any] | ValueDomain,
    strings: _StringIndex | None,
    predicate: Predicate,
    size: int,
) -> RowRuns:
    if isinstance(predicate, Constant):
        return [(0, size)] if predicate.value and size else []
    if isinstance(predicate, Term):
        return (
            _number_runs(values, predicate, size)
            if strings is None
            else _string_runs(strings, predicate, size)
        )
    operand_runs = [_resolve(values, strings, operand, size) for operand in predicate.operands]
    if predicate.operator == "not":
        return _complement(operand_runs[0], size)
    return (
        reduce(_intersection, operand_runs)
        if predicate.operator == "and"
        else _union([run for runs in operand_runs for run in runs])
    )


def _number_runs(values: NDArray[Any] | ValueDomain, term: Term, size: int) -> RowRuns:
    """Return the ranges of sorted values that match a term; NaN is last."""
    non_nan_count = (
        _first_true(lambda position: bool(np.isnan(values[position : position + 1])[0]), size)
        if values.dtype.kind == "f"
        else size
    )
    constants = [operand.value for operand in term.right if isinstance(operand, Literal)]

    def first_position(operator: str, constant: object) -> int:
        """Return the number of values before the first one for which a comparison holds.

        It is the comparison that a scan uses.
        """
        compared = COMPARISONS[operator]
        with np.errstate(all="ignore"):
            return _first_true(
                lambda position: bool(compared(values[position : position + 1], constant)[0]),
                non_nan_count,
            )

    def equal_range(constant: object) -> tuple[int, int]:
        return first_position(">=", constant), first_position(">", constant)

    match term.operator:
        case "null":
            return _nonempty([(non_nan_count, size)])
        case "in":
            return _union([equal_range(constant) for constant in constants])
        case "between":
            return _nonempty(
                [(first_position(">=", constants[0]), first_position(">", constants[1]))]
            )
        case "==":
            return _nonempty([equal_range(constants[0])])
        case "!=":
            return _complement(_nonempty([equal_range(constants[0])]), size)
        case "<":
            return _nonempty([(0, first_position(">=", constants[0]))])
        case "<=":
            return _nonempty([(0, first_position(">", constants[0]))])
        case operator:
            return _nonempty([(first_position(operator, constants[0]), non_nan_count)])


def _string_runs(string_index: _StringIndex, term: Term, size: int) -> RowRuns:
    """Return the groups of equal strings that match a term."""
    index, indptr, values = string_index.index, string_index.indptr, string_index.values
    constants = (
        [b""]
        if term.operator == "null"
        else [
            str(operand.value).encode("utf-8", "surrogatepass")
            for operand in term.right
            if isinstance(operand, Literal)
        ]
    )
    groups = []
    for constant in constants:
        hashed = graph_labels.hash_strings(
            np.array([0, len(constant)], np.int64), np.frombuffer(constant, np.uint8), 0, 1
        )[0]
        for group in range(*np.searchsorted(index.values, [hashed, hashed + 1]).tolist()):
            row = int(index.rows[index.bounds[group]])
            if values[indptr[row] : indptr[row + 1]].tobytes() == constant:
                groups.append((group, group + 1))
    return _complement(_union(groups), size) if term.operator == "!=" else _union(groups)


def _first_true(holds: Callable[[int], bool], size: int) -> int:
    """Return the first position from which ``holds`` is true."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _nonempty(runs: Sequence[tuple[int, int]]) -> RowRuns:
    return [(low, high) for low, high in runs if low < high]


def _union(runs: Sequence[tuple[int, int]]) -> RowRuns:
    out: RowRuns = []
    for low, high in sorted(_nonempty(runs)):
        if out and low <= out[-1][1]:
            out[-1] = out[-1][0], max(high, out[-1][1])
        else:
            out.append((low, high))
    return out


def _complement(runs: RowRuns, size: int) -> RowRuns:
    ends = [0, *(end for run in runs for end in run), size]
    return _nonempty(list(zip(ends[::2], ends[1::2], strict=True)))


def _intersection(left: RowRuns, right: RowRuns) -> RowRuns:
    out, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low < high:
            out.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return out


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return a filter and the operands of its "and"; each is implied by the filter."""
    return (
        (predicate, *predicate.operands)
        if isinstance(predicate, Connective) and predicate.operator == "and"
        else (predicate,)
    )


def candidate_rows(
    indexes: Sequence[ColumnIndex], node: NodeImage, predicate: Predicate
) -> NDArray[np.int64] | None:
    """Return rows that include all matches of a filter, from the index that leaves the fewest.

    Parameters
    ----------
    indexes : sequence of ColumnIndex
    node : NodeImage
        The indexed type.
    predicate : Predicate

    Returns
    -------
    ndarray of int64, shape (k,), or None
        Ascending; None if no index applies.
    """
    matches = [
        (index, resolve_runs(index, node, conjunct))
        for conjunct in conjuncts(predicate)
        for index in indexes
        if can_resolve(index, conjunct)
    ]
    if not matches:
        return None
    index, runs = min(matches, key=lambda entry: sum(high - low for low, high in entry[1]))
    rows = np.concatenate([index.rows[:0], *(index.rows[low:high] for low, high in runs)])
    return np.sort(rows).astype(np.int64)
