"""Reader of pandas frames, where a row is an edge or a node."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.objects.columns import AttributeReader, MaskedNumbers
from asterism.objects.graph_tables import EdgeTable, GraphTables, NodeTable
from asterism.objects.read_options import ReadOptions, parse_triple
from asterism.records.samples import Ids
from asterism_proto.errors import InvalidRequest

_ID = "id"
_NUMBERS = (int, np.integer, float, np.floating)
_EXACT_FLOATS = float(1 << 53)
"""Bound below which every integer is a float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeFrame:
    """Nodes of one type, with the labels that frames use."""

    name: str
    index: Any
    """``pandas.Index`` of the labels."""
    is_integer: bool
    """True if the labels are the ids."""
    frame: Any
    """Frame of the nodes; None if the nodes are those that edges refer to."""

    def ids(self, description: str, labels: Any) -> Ids:
        """Return the ids of a column of labels, ndarray of int64, shape (n,)."""
        missing = np.flatnonzero(labels.isna().to_numpy())
        positions = self.index.get_indexer(_canonical_labels(description, labels))
        wrong = missing if missing.size else np.flatnonzero(positions < 0)
        if wrong.size:
            row = int(wrong[0])
            reason = (
                "expected an id, found a missing value"
                if missing.size
                else f"expected a node of the frame of {self.name!r}"
            )
            raise InvalidRequest(
                f"{description}, row {row}, value {_format_label(labels, row)}: {reason} "
                f"({len(wrong) - 1} more); repair the frames"
            )
        ids: Ids = (
            self.index.to_numpy().astype(np.int64)[positions]
            if self.is_integer
            else positions.astype(np.int64)
        )
        return ids


def read(frames: Any, options: ReadOptions, attributes: AttributeReader) -> GraphTables:
    """Convert a frame of edges, or frames by edge type, and frames of nodes to tables."""
    edges = (
        {parse_triple(key): frame for key, frame in frames.items()}
        if isinstance(frames, Mapping)
        else {options.triple: frames}
    )
    nodes_by_type = (
        options.nodes
        if isinstance(options.nodes, Mapping)
        else {}
        if options.nodes is None
        else {options.node_type: options.nodes}
    )
    for frame in [*edges.values(), *nodes_by_type.values()]:
        repeated = frame.columns[frame.columns.duplicated()].tolist()
        if repeated:
            raise InvalidRequest(
                f"column {repeated[0]!r}: expected different names, the frame has it twice; rename "
                "one"
            )
    for triple, frame in edges.items():
        missing = [name for name in options.ends if name not in frame.columns]
        if missing:
            raise InvalidRequest(
                f"frame of {':'.join(triple)!r}: expected a column {missing[0]!r}, it has "
                f"{', '.join(map(str, frame.columns))}; name the columns of the ends with "
                "ends=('from', 'to')"
            )
    types = dict.fromkeys(
        [*nodes_by_type, *(name for triple in edges for name in (triple[0], triple[2]))]
    )
    node_frames = {
        name: _node_frame(name, nodes_by_type.get(name), edges, options.ends) for name in types
    }
    nodes, names = [], {}
    for name, node_frame in node_frames.items():
        raw = {} if node_frame.frame is None else _attribute_columns(node_frame.frame, (_ID,))
        type_attributes = attributes.read(name, len(node_frame.index), raw, edges=False)
        ids: NDArray[Any] | None = (
            node_frame.index.to_numpy().astype(np.int64) if node_frame.is_integer else None
        )
        if not node_frame.is_integer:
            names[name] = node_frame.index.to_numpy(dtype=object)
        nodes.append(
            NodeTable(
                name=name,
                count=len(node_frame.index),
                ids=ids,
                weights=type_attributes.weights,
                features=type_attributes.features,
            )
        )
    tables = []
    for triple, frame in edges.items():
        name = ":".join(triple)
        src, dst = (
            node_frames[node_type].ids(f"edge type {name!r}: column {column!r}", frame[column])
            for node_type, column in zip((triple[0], triple[2]), options.ends, strict=True)
        )
        type_attributes = attributes.read(
            name, len(frame), _attribute_columns(frame, options.ends), edges=True
        )
        tables.append(
            EdgeTable(
                triple=triple,
                src=src,
                dst=dst,
                weights=type_attributes.weights,
                features=type_attributes.features,
            )
        )
    return GraphTables(
        source_name="pandas frames", nodes=tuple(nodes), edges=tuple(tables), names=names
    )


def _node_frame(
    name: str, frame: Any, edges: Mapping[tuple[str, str, str], Any], ends: tuple[str, str]
) -> _NodeFrame:
    pandas = sys.modules["pandas"]
    if frame is None:
        columns = [
            _canonical_labels(f"edge type {':'.join(triple)!r}: column {column!r}", frame[column])
            for triple, frame in edges.items()
            for node_type, column in zip((triple[0], triple[2]), ends, strict=True)
            if node_type == name
        ]
        labels = pandas.Series(pandas.unique(pandas.concat(columns, ignore_index=True)))
    else:
        labels = frame[_ID] if _ID in frame.columns else frame.index.to_series()
        bad_rows = np.flatnonzero(labels.duplicated().to_numpy() | labels.isna().to_numpy())
        if bad_rows.size:
            row = int(bad_rows[0])
            reason = "a missing value" if pandas.isna(labels.iloc[row]) else "a repeated one"
            raise InvalidRequest(
                f"node type {name!r}, row {row}, id {_format_label(labels, row)}: expected a "
                f"unique "
                f"id, found {reason}; repair the frame"
            )
        labels = _canonical_labels(f"node type {name!r}", labels)
    is_integer = pandas.api.types.is_integer_dtype(labels.dtype)
    if is_integer:
        labels = labels.sort_values() if frame is None else labels
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < 1 << 63:
            wrong = labels.min() if labels.min() < 0 else labels.max()
            raise InvalidRequest(
                f"node type {name!r}: node {wrong}: expected an id from 0 to 2^63 - 1"
            )
    return _NodeFrame(name=name, index=pandas.Index(labels), is_integer=is_integer, frame=frame)


def _canonical_labels(description: str, labels: Any) -> Any:
    """Return the labels without missing ones, as integers if all are.

    Merges and concatenations leave integers in columns of objects or of floats.
    """
    pandas = sys.modules["pandas"]
    labels = labels.dropna()
    if isinstance(labels.dtype, pandas.CategoricalDtype):
        labels = labels.astype(labels.dtype.categories.dtype)
    if not len(labels):
        return labels
    if pandas.api.types.is_integer_dtype(labels.dtype):
        values, low, high = labels, int(labels.min()), int(labels.max())
    elif pandas.api.types.is_float_dtype(labels.dtype) or pandas.api.types.is_object_dtype(
        labels.dtype
    ):
        numbers = _integers(description, labels.tolist())
        if numbers is None:
            return labels
        values, low, high = numbers, min(numbers), max(numbers)
    else:
        return labels
    if low < 0 or high >= 1 << 63:
        raise InvalidRequest(
            f"{description}: node {low if low < 0 else high}: expected an id from 0 to 2^63 - 1"
        )
    return pandas.Series(np.asarray(values, np.int64), index=labels.index)


def _integers(description: str, labels: list[Any]) -> list[int] | None:
    """Return labels as integers, or None if one is not integral."""
    kinds = set(map(type, labels))
    for kind in kinds:
        if not issubclass(kind, Hashable):
            raise InvalidRequest(
                f"{description}: expected integers, strings or tuples as ids, found {kind.__name__}"
            )
    if bool in kinds or not all(issubclass(kind, _NUMBERS) for kind in kinds):
        return None
    floats = [float(label) for label in labels if isinstance(label, float | np.floating)]
    if not all(label.is_integer() for label in floats):
        return None
    if any(abs(label) >= _EXACT_FLOATS for label in floats):
        raise InvalidRequest(
            f"{description}: expected integers, found floats of 2^53 or more, which have lost "
            "digits; read the ids as integers"
        )
    return list(map(int, labels))


def _format_label(labels: Any, row: int) -> str:
    (value,) = labels.iloc[row : row + 1].tolist()
    return repr(value)


def _attribute_columns(frame: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns other than ids and ends as arrays, or as lists with None for missing."""
    columns = {}
    for name in frame.columns:
        if name in keys:
            continue
        if not isinstance(name, str):
            raise InvalidRequest(
                f"column {name!r}: expected a string as its name; rename it in the frame"
            )
        column = frame[name]
        if isinstance(column.dtype, sys.modules["pandas"].DatetimeTZDtype):
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        columns[name] = _column_values(column)
    return columns


def _column_values(column: Any) -> Any:
    """Return the values of a column in their dtype, or a list if they are no numbers."""
    dtype, pandas = column.dtype, sys.modules["pandas"]
    if isinstance(dtype, pandas.SparseDtype):
        column, dtype = column.sparse.to_dense(), dtype.subtype
    if isinstance(dtype, pandas.CategoricalDtype):
        codes, categories = column.cat.codes.to_numpy(), dtype.categories
        if len(categories) and (numbers := _numpy_dtype(categories.dtype)) is not None:
            return MaskedNumbers(
                values=categories.to_numpy(dtype=numbers)[codes], missing=codes < 0
            )
    elif (numbers := _numpy_dtype(dtype)) is not None:
        if isinstance(dtype, np.dtype):
            values = column.to_numpy()
            is_nan = np.isnan(values) if dtype.kind == "f" else None
            return (
                values
                if is_nan is None or not is_nan.any()
                else MaskedNumbers(values=values, missing=is_nan, stands_for_itself=True)
            )
        missing = column.isna().to_numpy()
        return MaskedNumbers(values=column.to_numpy(dtype=numbers, na_value=0), missing=missing)
    elif isinstance(dtype, np.dtype) and not dtype.hasobject:
        return column.to_numpy()
    vectors = _arrow_vectors(column)
    return _to_list(column) if vectors is None else vectors


def _numpy_dtype(dtype: Any) -> np.dtype[Any] | None:
    """Return the NumPy dtype of numbers or booleans, also of nullable and Arrow ones, or None."""
    found = dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", None)
    return found if isinstance(found, np.dtype) and found.kind in "biuf" else None


def _arrow_vectors(column: Any) -> NDArray[Any] | None:
    """Return Arrow lists of numbers of one length as an array; None for other columns."""
    kind = getattr(column.dtype, "pyarrow_dtype", None)
    item_type = getattr(kind, "value_type", None)
    if item_type is None or column.isna().any() or not len(column):
        return None
    pyarrow = sys.modules["pyarrow"]
    is_list = any(
        matches(kind)
        for matches in (
            pyarrow.types.is_list,
            pyarrow.types.is_large_list,
            pyarrow.types.is_fixed_size_list,
        )
    )
    items = pyarrow.array(column.array)
    items = items.combine_chunks() if isinstance(items, pyarrow.ChunkedArray) else items
    if not is_list or not (
        pyarrow.types.is_integer(item_type) or pyarrow.types.is_floating(item_type)
    ):
        return None
    lengths = {len(row) for row in items}
    flat = items.flatten()
    if len(lengths) != 1 or flat.null_count:
        return None
    vectors: NDArray[Any] = flat.to_numpy(zero_copy_only=False).reshape(len(column), -1)
    return vectors


def _to_list(column: Any) -> list[Any]:
    """Return a column as a list of Python values, with None for missing values.

    It handles columns of text, categories, nullable numbers and objects.
    """
    missing = column.isna().to_numpy()
    values: list[Any] = column.tolist()
    if missing.any():
        for row in np.flatnonzero(missing).tolist():
            values[row] = None
    return values
