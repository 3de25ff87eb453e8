"""What of an index satisfies a condition: runs of its rows, found by bisection, whatever the
constants are.
"""

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
"""(first, behind the last) of each run of rows, ascending and apart."""


def can_resolve(index: ColumnIndex, predicate: Predicate) -> bool:
    """Whether a condition asks for nothing but the column of an index, and that of constants."""
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
    """The rows of an index that satisfy a condition, in its order.

    Parameters
    ----------
    index : ColumnIndex
    image : NodeImage or EdgeImage
        That it is of.
    predicate : Predicate
        That it answers.
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
    """The values of a dtype that satisfy a condition on one column of it: first and last of each
    run, as `asterism_graphkit.arrays.sort_keys.sort_keys` has them.

    Found by bisection among all values that there are, by the comparisons that looking makes: so
    they hold for every row, whatever is in it."""
    domain = ValueDomain(dtype)
    return [
        (int(sort_keys(domain[low : low + 1])[0]), int(sort_keys(domain[high - 1 : high])[0]))
        for low, high in _resolve(domain, None, predicate, domain.size)
    ]


@dataclass(frozen=True, slots=True)
class ValueDomain:
    """All values of a dtype in order, NaN as the last of them, as an array would have them."""

    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """How many there are."""
        if self.dtype.kind == "f":
            return 2 * self._infinity + 2
        return 2 if self.dtype.kind == "b" else 1 << 8 * self.dtype.itemsize

    def __getitem__(self, key: slice) -> NDArray[Any]:
        """The one value of a slice of one place: [1]."""
        position: int = key.start
        if self.dtype.kind != "f":
            minimum = 0 if self.dtype.kind == "b" else int(np.iinfo(self.dtype).min)
            return np.array([minimum + position], self.dtype)
        if position == self.size - 1:
            return np.array([np.nan], self.dtype)
        bits = position - self._infinity  # of what is below 0 counted downwards; -0.0 is 0.0
        value = np.array([abs(bits)], f"u{self.dtype.itemsize}").view(self.dtype)
        return -value if bits < 0 else value

    @property
    def _infinity(self) -> int:
        """The bits of infinity: of all values from 0 on there are so many before it."""
        return int(np.array([np.inf], self.dtype).view(f"u{self.dtype.itemsize}")[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _StringIndex:
    """The texts of an index by equality."""

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
    """The runs of sorted values that satisfy a term; NaN come last."""
    non_nan_count = (
        _first_true(lambda position: bool(np.isnan(values[position : position + 1])[0]), size)
        if values.dtype.kind == "f"
        else size
    )
    constants = [operand.value for operand in term.right if isinstance(operand, Literal)]

    def first_position(operator: str, constant: object) -> int:
        """How many values there are before the first one that compares so with a constant, by the
        comparison that looking makes.
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
    """The groups of a text that satisfy a term."""
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
    """The first place from which on something holds."""
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
    """A condition, and what it is put together of by "and": all that satisfies it satisfies
    each.
    """
    return (
        (predicate, *predicate.operands)
        if isinstance(predicate, Connective) and predicate.operator == "and"
        else (predicate,)
    )


def candidate_rows(
    indexes: Sequence[ColumnIndex], node: NodeImage, predicate: Predicate
) -> NDArray[np.int64] | None:
    """The rows among which all are that satisfy a condition: those of the index that leaves the
    fewest; None where no index tells.

    Parameters
    ----------
    indexes : sequence of ColumnIndex
    node : NodeImage
        That they are of.
    predicate : Predicate

    Returns
    -------
    int64[k] or None
        Ascending.
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
