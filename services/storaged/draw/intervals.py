"""What of an index satisfies a condition: runs of its rows, found by bisection, whatever the constants are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.condition import Always, Combined, Literal, Term, Tree, terms
from graphkit import labels
from graphkit.condition import COMPARED
from graphkit.order import sort_keys
from storaged.store.image import EdgeImage, NodeImage
from storaged.store.ordered import Ordered

Runs = list[tuple[int, int]]
"""(first, behind the last) of each run of rows, ascending and apart."""


def answers(index: Ordered, tree: Tree) -> bool:
    """Whether a condition asks for nothing but the column of an index, and that of constants."""
    asked = list(terms(tree))
    return bool(asked) and all(
        str(term.left) == index.column and all(isinstance(operand, Literal) for operand in term.right) and _tells(index, term) for term in asked
    )


def _tells(index: Ordered, term: Term) -> bool:
    return index.kind != "hash" or term.word in ("==", "!=", "in", "null") or not _texts(term)


def _texts(term: Term) -> bool:
    return any(isinstance(operand, Literal) and isinstance(operand.value, str) for operand in term.right)


def runs_of(index: Ordered, of: NodeImage | EdgeImage, tree: Tree) -> Runs:
    """The rows of an index that satisfy a condition, in its order.

    Parameters
    ----------
    index : Ordered
    of : NodeImage or EdgeImage
        That it is of.
    tree : Tree
        That it answers.
    """
    column = of.columns.get(next(iter(terms(tree))).left.name) if index.kind == "hash" else None
    texts = None if column is None or column.indptr is None else _Texts(index=index, indptr=column.indptr, values=column.values)
    found = _found(index.values, texts, tree, index.values.size)
    if index.kind == "range":
        return found
    return [(int(index.bounds[low]), int(index.bounds[high])) for low, high in found]


def key_runs(tree: Tree, dtype: np.dtype[Any]) -> list[tuple[int, int]]:
    """The values of a dtype that satisfy a condition on one column of it: first and last of each run, as `graphkit.order.sort_keys` has them.

    Found by bisection among all values that there are, by the comparisons that looking makes: so they hold for every row, whatever is in it.
    """
    domain = Domain(dtype)
    return [
        (int(sort_keys(domain[low : low + 1])[0]), int(sort_keys(domain[high - 1 : high])[0]))
        for low, high in _found(domain, None, tree, domain.size)
    ]


@dataclass(frozen=True, slots=True)
class Domain:
    """All values of a dtype in order, NaN as the last of them, as an array would have them."""

    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """How many there are."""
        if self.dtype.kind == "f":
            return 2 * self._infinity + 2
        return 2 if self.dtype.kind == "b" else 1 << 8 * self.dtype.itemsize

    def __getitem__(self, place: slice) -> NDArray[Any]:
        """The one value of a slice of one place: [1]."""
        at: int = place.start
        if self.dtype.kind != "f":
            least = 0 if self.dtype.kind == "b" else int(np.iinfo(self.dtype).min)
            return np.array([least + at], self.dtype)
        if at == self.size - 1:
            return np.array([np.nan], self.dtype)
        bits = at - self._infinity  # of what is below 0 counted downwards; -0.0 is 0.0
        value = np.array([abs(bits)], f"u{self.dtype.itemsize}").view(self.dtype)
        return -value if bits < 0 else value

    @property
    def _infinity(self) -> int:
        """The bits of infinity: of all values from 0 on there are so many before it."""
        return int(np.array([np.inf], self.dtype).view(f"u{self.dtype.itemsize}")[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Texts:
    """The texts of an index by equality."""

    index: Ordered
    indptr: NDArray[np.int64]
    values: NDArray[np.uint8]


def _found(values: NDArray[Any] | Domain, texts: _Texts | None, tree: Tree, size: int) -> Runs:
    if isinstance(tree, Always):
        return [(0, size)] if tree.holds and size else []
    if isinstance(tree, Term):
        return _of_numbers(values, tree, size) if texts is None else _of_texts(texts, tree, size)
    parts = [_found(values, texts, each, size) for each in tree.of]
    if tree.word == "not":
        return _without(parts[0], size)
    return reduce(_common, parts) if tree.word == "and" else _joined([run for runs in parts for run in runs])


def _of_numbers(values: NDArray[Any] | Domain, term: Term, size: int) -> Runs:
    """The runs of sorted values that satisfy a term; NaN come last."""
    numbers = _first(lambda at: bool(np.isnan(values[at : at + 1])[0]), size) if values.dtype.kind == "f" else size
    constants = [operand.value for operand in term.right if isinstance(operand, Literal)]

    def before(word: str, constant: object) -> int:
        """How many values there are before the first one that compares so with a constant, by the comparison that looking makes."""
        compared = COMPARED[word]
        with np.errstate(all="ignore"):
            return _first(lambda at: bool(compared(values[at : at + 1], constant)[0]), numbers)

    def equal(constant: object) -> tuple[int, int]:
        return before(">=", constant), before(">", constant)

    match term.word:
        case "null":
            return _kept([(numbers, size)])
        case "in":
            return _joined([equal(constant) for constant in constants])
        case "between":
            return _kept([(before(">=", constants[0]), before(">", constants[1]))])
        case "==":
            return _kept([equal(constants[0])])
        case "!=":
            return _without(_kept([equal(constants[0])]), size)
        case "<":
            return _kept([(0, before(">=", constants[0]))])
        case "<=":
            return _kept([(0, before(">", constants[0]))])
        case word:
            return _kept([(before(word, constants[0]), numbers)])


def _of_texts(of: _Texts, term: Term, size: int) -> Runs:
    """The groups of a text that satisfy a term."""
    index, indptr, values = of.index, of.indptr, of.values
    texts = (
        [b""]
        if term.word == "null"
        else [str(operand.value).encode("utf-8", "surrogatepass") for operand in term.right if isinstance(operand, Literal)]
    )
    found = []
    for text in texts:
        hashed = labels.hashes(np.array([0, len(text)], np.int64), np.frombuffer(text, np.uint8), 0, 1)[0]
        for group in range(*np.searchsorted(index.values, [hashed, hashed + 1]).tolist()):
            row = int(index.rows[index.bounds[group]])
            if values[indptr[row] : indptr[row + 1]].tobytes() == text:
                found.append((group, group + 1))
    return _without(_joined(found), size) if term.word == "!=" else _joined(found)


def _first(holds: Callable[[int], bool], size: int) -> int:
    """The first place from which on something holds."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _kept(runs: Sequence[tuple[int, int]]) -> Runs:
    return [(low, high) for low, high in runs if low < high]


def _joined(runs: Sequence[tuple[int, int]]) -> Runs:
    out: Runs = []
    for low, high in sorted(_kept(runs)):
        if out and low <= out[-1][1]:
            out[-1] = out[-1][0], max(high, out[-1][1])
        else:
            out.append((low, high))
    return out


def _without(runs: Runs, size: int) -> Runs:
    ends = [0, *(end for run in runs for end in run), size]
    return _kept(list(zip(ends[::2], ends[1::2], strict=True)))


def _common(left: Runs, right: Runs) -> Runs:
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


def conjuncts(tree: Tree) -> tuple[Tree, ...]:
    """A condition, and what it is put together of by "and": all that satisfies it satisfies each."""
    return (tree, *tree.of) if isinstance(tree, Combined) and tree.word == "and" else (tree,)


def candidates(indexes: Sequence[Ordered], node: NodeImage, tree: Tree) -> NDArray[np.int64] | None:
    """The rows among which all are that satisfy a condition: those of the index that leaves the fewest; None where no index tells.

    Parameters
    ----------
    indexes : sequence of Ordered
    node : NodeImage
        That they are of.
    tree : Tree

    Returns
    -------
    int64[k] or None
        Ascending.
    """
    told = [(index, runs_of(index, node, each)) for each in conjuncts(tree) for index in indexes if answers(index, each)]
    if not told:
        return None
    index, runs = min(told, key=lambda entry: sum(high - low for low, high in entry[1]))
    rows = np.concatenate([index.rows[:0], *(index.rows[low:high] for low, high in runs)])
    return np.sort(rows).astype(np.int64)
