"""Conditions over blocks of columns: which rows satisfy one, in the arithmetic of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.condition import Always, Column, Combined, Literal, Term, Tree

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lists:
    """A list of values for each row."""

    indptr: NDArray[np.int64]
    """int64[rows + 1]; need not begin at 0."""
    values: NDArray[Any]
    """uint8 of texts."""


Values = NDArray[Any] | Lists


def satisfied(tree: Tree, read: Callable[[Column], Values], rows: int, known: Callable[[Term], Mask | None] = lambda _: None) -> Mask:
    """Which rows satisfy a condition.

    Parameters
    ----------
    tree : Tree
        As `asterism_proto.meaning.bound` gives it.
    read : callable
        The values of a column, [rows]: numbers, or lists.
    rows : int
    known : callable
        What is known of a term without its columns; None: nothing.

    Returns
    -------
    bool[rows]

    Notes
    -----
    A comparison has the value that NumPy gives it, between a column and a Python number or between two columns: no comparison
    with NaN holds but ``!=``, and ``not`` is the complement; a column of float32 is compared with a number as float32 has it,
    whole numbers with whole ones exactly, bools are 0 and 1. ``is null`` is NaN of numbers, emptiness of texts and lists.
    """
    if isinstance(tree, Always):
        return np.full(rows, tree.holds)
    if isinstance(tree, Combined):
        if tree.word == "not":
            return ~satisfied(tree.of[0], read, rows, known)
        join = np.logical_and if tree.word == "and" else np.logical_or
        return reduce(
            lambda left, each: join(left, satisfied(each, read, rows, known), out=left), tree.of[1:], satisfied(tree.of[0], read, rows, known)
        )
    found = known(tree)
    if found is not None:
        return found
    left = read(tree.left)
    return _of_lists(tree, left) if isinstance(left, Lists) else _of_numbers(tree, left, read)


def _of_numbers(term: Term, left: NDArray[Any], read: Callable[[Column], Values]) -> Mask:
    right = [operand.value if isinstance(operand, Literal) else read(operand) for operand in term.right]
    found: Mask
    with np.errstate(all="ignore"):
        match term.word:
            case "null":
                found = np.isnan(left) if left.dtype.kind == "f" else np.zeros(left.size, np.bool_)
            case "in":
                found = np.zeros(left.size, np.bool_)
                for value in right:
                    found |= left == value
            case "between":
                found = (left >= right[0]) & (left <= right[1])
            case word:
                found = np.asarray(COMPARED[word](left, right[0]), np.bool_)
    return found


def _of_lists(term: Term, left: Lists) -> Mask:
    lengths = np.diff(left.indptr)
    if term.word == "null":
        return np.asarray(lengths == 0)
    found = np.zeros(lengths.size, np.bool_)
    for operand in term.right:
        if isinstance(operand, Literal):
            text = np.frombuffer(str(operand.value).encode("utf-8", "surrogatepass"), np.uint8)
            as_long = np.flatnonzero(lengths == text.size)
            at = left.indptr[as_long, None] + np.arange(text.size)
            found[as_long[(left.values[at] == text).all(axis=1)]] = True
    return ~found if term.word == "!=" else found


COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
"""The comparisons of conditions, with warnings of NumPy to be left out."""
