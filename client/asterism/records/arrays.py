"""Names of array types in records, and the representation of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_model.html import table

MAX_SHOWN_VALUES = 8
"""Maximum number of values of an array that a notebook displays."""

MAX_TOKEN_CHARS = 16
"""Maximum number of characters of a token that a representation has."""

Ids = NDArray[np.int64]
Types = NDArray[np.int32]
Weights = NDArray[np.float32]
Probabilities = NDArray[np.float64]
Values = NDArray[Any]
RaggedColumn = tuple[Ids, Values]
"""Ragged column ``(indptr, values)`` with ``indptr`` ndarray of int64, shape (n + 1,).

Row ``i`` is ``values[indptr[i]:indptr[i + 1]]``.
"""
FeatureValue = Values | RaggedColumn
Features = Mapping[str, FeatureValue]
"""Feature columns by name.

An array of shape (n, *shape) for dense features; ``(indptr, values)`` for ragged and bytes.
"""
NodeFeatures = Mapping[str, Features]
"""Feature columns by node type."""


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


def _format_field(name: str, value: object) -> str:
    """Return a field as text; a token, which may have thousands of characters, is cut."""
    if name == "token" and isinstance(value, str) and len(value) > MAX_TOKEN_CHARS:
        return f"{value[:MAX_TOKEN_CHARS]!r}..."
    return _format_value(value)


def _first_values(value: object) -> str:
    """Return the first values of an array as text."""
    if not isinstance(value, np.ndarray):
        return ""
    flat = value.reshape(-1)[:MAX_SHOWN_VALUES].tolist()
    return ", ".join(map(str, flat)) + (", ..." if value.size > MAX_SHOWN_VALUES else "")


class ArrayRecord:
    """Base of records that displays arrays by dtype and shape, to keep large samples short."""

    __slots__ = ()

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{f.name}={_format_field(f.name, getattr(self, f.name))}"
            for f in fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
        )
        return f"{type(self).__name__}({parts})"

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display: a line per field and per feature column."""
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
            [(name, _format_field(name, value), _first_values(value)) for name, value in lines],
        )


class HeteroIds(ArrayRecord):
    """Record with ``types`` that may be computed lazily, from its nodes and the request.

    Types are a third of a result. Their memory costs about as much to allocate as the sample
    itself, and most trainers never read them.
    """

    __slots__ = ("_inferred",)

    def __post_init__(self, infer_types: bool) -> None:
        if infer_types:
            object.__setattr__(self, "_inferred", self.types)
            object.__delattr__(self, "types")

    @property
    def _present_ids(self) -> Ids:
        """Ids in the shape of ``types``, ndarray of int64; -1 where there is no node."""
        # Resolved dynamically: subclasses define ``nodes``.
        nodes: Ids = self.nodes  # type: ignore[assignment]
        return nodes

    def __getattr__(self, name: str) -> Types:
        if name != "types":  # ``types`` reaches this method only while its slot is empty.
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        types = np.where(self._present_ids >= 0, self._inferred, np.int32(-1))
        object.__setattr__(self, name, types)
        return types


class SparseTensor(NamedTuple):
    """Sparse tensor in coordinate form, as in TensorFlow, with arrays."""

    indices: Ids
    """ndarray of int64, shape (k, d): coordinates, row after row."""
    values: Values
    """ndarray, shape (k,): values."""
    dense_shape: tuple[int, ...]
    """Shape of the tensor, d integers."""
