"""The arrays that records hold, by name, and how records show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_model.html import table

MAX_SHOWN_VALUES = 8
"""Of an array, that a notebook shows."""

Ids = NDArray[np.int64]
Types = NDArray[np.int32]
Weights = NDArray[np.float32]
Probabilities = NDArray[np.float64]
Values = NDArray[Any]
RaggedColumn = tuple[Ids, Values]
"""``(indptr int64[n + 1], values)``: row ``i`` is ``values[indptr[i]:indptr[i + 1]]``."""
FeatureValue = Values | RaggedColumn
Features = Mapping[str, FeatureValue]
"""Columns by name: an array ``[n, *shape]`` where dense, ``(indptr, values)`` where ragged or
bytes.
"""
NodeFeatures = Mapping[str, Features]
"""Columns by node type."""


def _format_value(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_format_value, value))})"
    if isinstance(value, Mapping):
        return (
            f"{{{', '.join(f'{name}: {_format_value(column)}' for name, column in value.items())}}}"
        )
    return repr(value)


def _first_values(value: object) -> str:
    """The first values of an array."""
    if not isinstance(value, np.ndarray):
        return ""
    flat = value.reshape(-1)[:MAX_SHOWN_VALUES].tolist()
    return ", ".join(map(str, flat)) + (", ..." if value.size > MAX_SHOWN_VALUES else "")


class ArrayRecord:
    """Shows arrays by dtype and shape: a record of a million draws prints as one line."""

    __slots__ = ()

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{f.name}={_format_value(getattr(self, f.name))}"
            for f in fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
        )
        return f"{type(self).__name__}({parts})"

    def _repr_html_(self) -> str:
        """As a notebook shows it: a line for each field, and each column of features."""
        lines: list[tuple[str, object]] = []
        for f in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = getattr(self, f.name)
            columns = value.items() if isinstance(value, Mapping) else ()
            lines += [(f"{f.name}[{name!r}]", column) for name, column in columns] or [
                (f.name, value)
            ]
        return table(
            type(self).__name__,
            ["", "holds", "begins with"],
            [(name, _format_value(value), _first_values(value)) for name, value in lines],
        )


class HeteroIds(ArrayRecord):
    """A record whose ``types`` may be made when they are first looked at, where they follow from
    its nodes and from what was asked.

    They are a third of an answer, whose fresh memory costs about as much as its draws, and most
    trainers never look at them."""

    __slots__ = ("_inferred",)

    def __post_init__(self, infer_types: bool) -> None:
        if infer_types:
            object.__setattr__(self, "_inferred", self.types)
            object.__delattr__(self, "types")

    @property
    def _present_ids(self) -> Ids:
        """int64, of the shape of ``types``: -1 where there is no node."""
        # By `__getattr__`: subclasses have nodes.
        nodes: Ids = self.nodes  # type: ignore[assignment]
        return nodes

    def __getattr__(self, name: str) -> Types:
        if name != "types":  # which is asked for here only where its slot is empty
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        types = np.where(self._present_ids >= 0, self._inferred, np.int32(-1))
        object.__setattr__(self, name, types)
        return types


class SparseTensor(NamedTuple):
    """A sparse tensor as coordinates: what TensorFlow calls by this name, in arrays."""

    indices: Ids
    """int64 [k, d], row after row."""
    values: Values
    """[k]."""
    dense_shape: tuple[int, ...]
    """d numbers."""
