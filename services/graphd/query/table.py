"""Tables: results of statements, column by column. A pure module."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.operators import graph_labels
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import DTYPES

_NAMES = {np.dtype(name): name for name in DTYPES}
"""Names of dtypes. A lookup here is much cheaper than reading an array's dtype name."""
Array = NDArray[Any]
Ragged = tuple[NDArray[np.int64], Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableColumn:
    """Column of a table: an array, or rows of different lengths."""

    name: str
    type: str
    """A dtype, ``text``, ``bytes``, ``list<int64>`` or ``list<float32>``."""
    values: Array | Ragged
    """ndarray of shape (rows, ...), or (indptr, values) for rows of different lengths.

    ``indptr`` is an ndarray of int64, shape (rows + 1,). For dictionary-encoded text the values are
    codes of int32, shape (rows, ...).
    """
    vocabulary: tuple[str, ...] | None = None
    """Dictionary of an encoded text; code -1 is missing."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.values[0]) - 1 if isinstance(self.values, tuple) else len(self.values)

    def take(self, positions: NDArray[np.int64] | slice) -> TableColumn:
        """Return some of its rows, in that order."""
        if not isinstance(self.values, tuple):
            return replace(self, values=self.values[positions])
        indptr, values = self.values
        rows = np.arange(self.rows)[positions]
        lengths = np.diff(indptr)[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        indices = np.repeat(indptr[rows] - ends[:-1], lengths) + np.arange(ends[-1])
        return replace(self, values=(ends, values[indices]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResultTable:
    """Columns of equal length."""

    columns: tuple[TableColumn, ...] = ()
    rows: int = 0

    def take(self, positions: NDArray[np.int64] | slice) -> ResultTable:
        """Return some of its rows, in that order."""
        rows = np.arange(self.rows)[positions]
        return ResultTable(
            columns=tuple(column.take(rows) for column in self.columns), rows=len(rows)
        )

    def sort(self, keys: Sequence[tuple[str, bool]]) -> ResultTable:
        """Return the rows sorted by some columns, each ascending or descending; stable.

        Raises
        ------
        InvalidRequest
            If a column does not exist or has no order.
        """
        order = np.arange(self.rows)
        for name, descending in reversed(keys):
            ranks = self._ranks(name)[order]
            order = order[np.argsort(-ranks if descending else ranks, kind="stable")]
        return self.take(order)

    def distinct(self) -> ResultTable:
        """Return the first of all equal rows; NaN equals NaN."""
        groups = np.zeros(self.rows, np.int64)
        for column in self.columns:
            groups = np.unique(
                np.stack([groups, _value_groups(column)]), axis=1, return_inverse=True
            )[1].reshape(-1)
        return self.take(np.sort(np.unique(groups, return_index=True)[1]))

    def _ranks(self, name: str) -> NDArray[np.int64]:
        column = next((candidate for candidate in self.columns if candidate.name == name), None)
        if column is None:
            raise InvalidRequest(
                f"ORDER BY {name}: the columns are "
                f"{', '.join(candidate.name for candidate in self.columns)}"
            )
        if isinstance(column.values, tuple) or column.values.ndim != 1:
            raise InvalidRequest(
                f"ORDER BY {name}: values of {column.type} have no order; use another column"
            )
        values = column.values
        if column.vocabulary is not None:
            values = np.array(["", *column.vocabulary])[values + 1]
        return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def sections(self) -> dict[str, Array]:
        """Return its arrays as sections of a frame."""
        arrays: dict[str, Array] = {}
        for index, column in enumerate(self.columns):
            if isinstance(column.values, tuple):
                arrays[f"c.{index}.indptr"], arrays[f"c.{index}.values"] = column.values
            else:
                arrays[f"c.{index}"] = column.values
        return arrays


def _value_groups(column: TableColumn) -> NDArray[np.int64]:
    """Return a group number per row; rows with equal values have the same number."""
    if isinstance(column.values, tuple):
        indptr, values = column.values
        width = values.dtype.itemsize
        offsets, raw = (
            (indptr - indptr[0]) * width,
            np.ascontiguousarray(values[indptr[0] : indptr[-1]]).view(np.uint8),
        )
        rows, starts, _ = graph_labels.group_strings(
            graph_labels.hash_strings(offsets, raw, 0, column.rows),
            np.arange(column.rows),
            offsets,
            raw,
        )
        groups = np.empty(column.rows, np.int64)
        groups[rows] = np.repeat(np.arange(starts.size), np.diff(np.append(starts, rows.size)))
        return groups
    flat = column.values.reshape(column.rows, math.prod(column.values.shape[1:]))
    groups = np.zeros(column.rows, np.int64)
    for values in flat.T:
        ranks = np.unique(values, return_inverse=True)[1].reshape(-1)
        groups = np.unique(np.stack([groups, ranks]), axis=1, return_inverse=True)[1].reshape(-1)
    return groups


def array_column(name: str, values: Array) -> TableColumn:
    """Return a column of numbers."""
    kind = _NAMES.get(values.dtype)
    if kind is None:
        raise InvalidRequest(f"column {name}: values of {values.dtype} cannot be sent")
    return TableColumn(name=name, type=kind, values=values)


def coded_column(name: str, codes: Array, vocabulary: Sequence[str]) -> TableColumn:
    """Return a dictionary-encoded text column."""
    return TableColumn(
        name=name,
        type="text",
        values=codes.astype(np.int32, copy=False),
        vocabulary=tuple(vocabulary),
    )


def feature_column(name: str, kind: str, values: Array | Ragged) -> TableColumn:
    """Return a column with the values of a feature."""
    if isinstance(values, tuple):
        return TableColumn(
            name=name,
            type="bytes" if kind == "bytes" else f"list<{values[1].dtype.name}>",
            values=values,
        )
    return array_column(name, values)


def text_column(name: str, texts: Sequence[str]) -> TableColumn:
    """Return a text column."""
    raw = [text.encode() for text in texts]
    indptr = np.concatenate([[0], np.cumsum([len(encoded) for encoded in raw])]).astype(np.int64)
    return TableColumn(
        name=name, type="text", values=(indptr, np.frombuffer(b"".join(raw), np.uint8))
    )


def table_from_rows(titles: Mapping[str, type], rows: Sequence[Sequence[object]]) -> ResultTable:
    """Return a small table from rows of values."""
    columns = []
    for index, (name, kind) in enumerate(titles.items()):
        values = [row[index] for row in rows]
        if kind is str:
            columns.append(text_column(name, [str(value) for value in values]))
        else:
            columns.append(
                array_column(
                    name, np.array(values, {int: np.int64, float: np.float64, bool: np.bool_}[kind])
                )
            )
    return ResultTable(columns=tuple(columns), rows=len(rows))


def table_from_columns(columns: Sequence[TableColumn]) -> ResultTable:
    """Return a table from columns of equal length with distinct names."""
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"two columns are called {name!r}; rename one with AS")
    return ResultTable(columns=tuple(columns), rows=columns[0].rows if columns else 0)
