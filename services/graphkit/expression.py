"""Weights from expressions: a postfix program over blocks of columns, in float64, in the same bits everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.expression import Expression, Step
from graphkit import elementary
from graphkit.jit import settled

F64 = NDArray[np.float64]


def evaluate(expression: Expression, columns: Mapping[str, NDArray[Any]], rows: int) -> F64:
    """The value of an expression at each row.

    Parameters
    ----------
    expression : Expression
    columns : mapping
        Each column that it names, numbers [rows]; they are taken as float64.
    rows : int

    Returns
    -------
    float64[rows]
        What IEEE 754 makes of it: 0 / 0, log(-1) and (-1) ** 0.5 are NaN, log(0) and 1 / 0 infinite; ``min``, ``max``
        and ``clip`` pass a NaN on.
    """
    stack: list[F64] = []
    with np.errstate(all="ignore"):
        for step in expression.steps:
            if step.word == "number":
                stack.append(np.full(rows, step.number))
            elif step.word == "column":
                stack.append(columns[step.column].astype(np.float64))
            else:
                values = stack[-step.arity :]
                del stack[-step.arity :]
                stack.append(_applied(step, values))
    return stack[0]


def weights(expression: Expression, columns: Mapping[str, NDArray[Any]], rows: int) -> NDArray[np.float32]:
    """`evaluate` as weights, float32[rows]: a value that float32 has not is infinite, or 0, or the nearest that it has."""
    with np.errstate(all="ignore"):
        return evaluate(expression, columns, rows).astype(np.float32)


def _applied(step: Step, values: list[F64]) -> F64:
    if step.word in _OURS:
        out = np.empty(values[0].size, np.float64)
        _OURS[step.word](*(settled(value) for value in values), out)
        return out
    return _EXACT[step.word](*values)


_OURS: dict[str, Callable[..., None]] = {
    "log": elementary.logs,
    "log1p": elementary.logs1p,
    "exp": elementary.exps,
    "pow": elementary.powers,
}
_EXACT: dict[str, Callable[..., F64]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "negative": np.negative,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
    "clip": lambda value, low, high: np.minimum(np.maximum(value, low), high),
}
"""Each rounds in one way only, whoever computes it."""
