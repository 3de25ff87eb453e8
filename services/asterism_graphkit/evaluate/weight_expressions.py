"""Evaluate weight expressions over blocks of columns, with the same bits everywhere.

An expression is a postfix program in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays import fdlibm
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_model.weight_expressions import Expression, Instruction

F64 = NDArray[np.float64]


def evaluate(expression: Expression, columns: Mapping[str, NDArray[Any]], rows: int) -> F64:
    """Return the value of an expression at each row.

    Parameters
    ----------
    expression : Expression
    columns : mapping
        Each column that the expression names: numbers [rows], converted to float64.
    rows : int

    Returns
    -------
    float64[rows]
        IEEE 754 results: 0 / 0, log(-1) and (-1) ** 0.5 are NaN; log(0) and 1 / 0 are infinite.
        ``min``, ``max`` and ``clip`` propagate NaN.
    """
    stack: list[F64] = []
    with np.errstate(all="ignore"):
        for instruction in expression.instructions:
            if instruction.operation == "number":
                stack.append(np.full(rows, instruction.number))
            elif instruction.operation == "column":
                stack.append(columns[instruction.column].astype(np.float64))
            else:
                values = stack[-instruction.arity :]
                del stack[-instruction.arity :]
                stack.append(_apply(instruction, values))
    return stack[0]


def evaluate_weights(
    expression: Expression, columns: Mapping[str, NDArray[Any]], rows: int
) -> NDArray[np.float32]:
    """Return the values of `evaluate` as weights, float32[rows].

    Values outside the range of float32 become infinite or 0; all others are rounded to nearest.
    """
    with np.errstate(all="ignore"):
        return evaluate(expression, columns, rows).astype(np.float32)


def _apply(instruction: Instruction, values: list[F64]) -> F64:
    if instruction.operation in _FDLIBM:
        out = np.empty(values[0].size, np.float64)
        _FDLIBM[instruction.operation](*(as_kernel_array(value) for value in values), out)
        return out
    return _EXACT[instruction.operation](*values)


_FDLIBM: dict[str, Callable[..., None]] = {
    "log": fdlibm.log_array,
    "log1p": fdlibm.log1p_array,
    "exp": fdlibm.exp_array,
    "pow": fdlibm.power_array,
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
"""Operations that round in exactly one way on every machine."""
