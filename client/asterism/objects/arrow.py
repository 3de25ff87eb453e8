"""Reader of Arrow tables, where a row is an edge or a node, and of frames that export them.

Frames of Polars and other libraries are read through Arrow's C stream interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.extras import required
from asterism.objects.columns import AttributeReader
from asterism.objects.graph_tables import EdgeTable, GraphTables, NodeTable
from asterism.objects.read_options import ReadOptions, parse_triple
from asterism.objects.time_and_decimal_columns import (
    Values,
    fill_missing,
    missing_error,
    required_unit,
    unit_error,
)
from asterism.records.samples import Ids
from asterism_proto.errors import InvalidRequest

_ID = "id"
_MAX_ID = (1 << 63) - 1


def read(frames: Any, options: ReadOptions, attributes: AttributeReader) -> GraphTables:
    """Convert a table of edges, or tables by edge type, and tables of nodes to graph tables."""
    edges = (
        {parse_triple(key): _as_table(frame) for key, frame in frames.items()}
        if isinstance(frames, Mapping)
        else {options.triple: _as_table(frames)}
    )
    for triple, table in edges.items():
        for name in options.ends:
            if name not in table.column_names:
                raise InvalidRequest(
                    f"table of {':'.join(triple)!r}: expected a column {name!r}, it has "
                    f"{', '.join(table.column_names)}; name the columns of the ends with "
                    "ends=('from', 'to')"
                )
    node_tables = {name: _as_table(frame) for name, frame in _nodes_by_type(options).items()}
    types = dict.fromkeys(
        [*node_tables, *(name for triple in edges for name in (triple[0], triple[2]))]
    )
    nodes = {name: _read_labels(name, node_tables.get(name), edges, options.ends) for name in types}
    return GraphTables(
        source_name="Arrow tables",
        nodes=tuple(_node_table(labels, attributes) for labels in nodes.values()),
        edges=tuple(
            _edge_table(triple, table, nodes, options, attributes)
            for triple, table in edges.items()
        ),
        names={
            name: np.array([*labels.values.to_pylist(), None], object)[:-1]
            for name, labels in nodes.items()
            if not labels.is_integer
        },
    )


def _nodes_by_type(options: ReadOptions) -> Mapping[str, Any]:
    if options.nodes is None:
        return {}
    return (
        options.nodes if isinstance(options.nodes, Mapping) else {options.node_type: options.nodes}
    )


def _as_table(frame: Any) -> Any:
    """Return a frame as a ``pyarrow.Table``."""
    with required("ingest", "Arrow tables and frames of Polars"):
        import pyarrow as pa
    try:
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (pa.ArrowException, TypeError) as error:
        raise InvalidRequest(
            f"{type(frame).__name__}: expected a table with named columns ({error})"
        ) from error
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise InvalidRequest(f"column {name!r}: expected different names, it is there twice")
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeLabels:
    """Nodes of one type, with the labels that tables use."""

    name: str
    values: Any
    """``pyarrow.Array`` of the labels, int64 or large_string, without nulls."""
    table: Any
    """Table of the nodes; None if the nodes are those that edges refer to."""

    @property
    def is_integer(self) -> bool:
        """True if the labels are the ids."""
        return str(self.values.type) == "int64"

    def ids_of(self, description: str, column: Any) -> Ids:
        """Return the ids of a column of labels, ndarray of int64, shape (n,)."""
        import pyarrow.compute as pc

        labels = _labels(description, column)
        if not len(labels):
            return np.zeros(0, np.int64)
        positions = None
        if labels.type == self.values.type:
            positions = pc.index_in(labels, value_set=self.values)
        if positions is None or positions.null_count:
            row = 0 if positions is None else int(np.argmax(np.asarray(positions.is_null())))
            count = len(labels) if positions is None else positions.null_count
            raise InvalidRequest(
                f"{description}, row {row}, value {labels[row].as_py()!r}: expected a node of the "
                f"table of {self.name!r} ({count - 1} more); repair the tables"
            )
        if self.is_integer:
            ids: Ids = labels.to_numpy()
            return ids
        numbers: Ids = positions.to_numpy().astype(np.int64)
        return numbers


def _labels(description: str, column: Any) -> Any:
    """Return a column of ids as an array of int64 or large_string."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from asterism import arrow_types

    array = _combined(column)
    if array.null_count:
        row = int(np.argmax(np.asarray(array.is_null())))
        raise InvalidRequest(
            f"{description}, row {row}: expected an id, found a missing one "
            f"({array.null_count - 1} more); repair the tables"
        )
    if pa.types.is_integer(array.type):
        bounds = pc.min_max(array).as_py()
        if len(array) and not 0 <= bounds["min"] <= bounds["max"] <= _MAX_ID:
            wrong = bounds["min"] if bounds["min"] < 0 else bounds["max"]
            raise InvalidRequest(f"{description}: node {wrong}: expected an id from 0 to 2^63 - 1")
        return array.cast(pa.int64())
    if arrow_types.is_text(array.type):
        try:
            return array.cast(pa.large_string())
        except pa.ArrowInvalid as error:
            raise InvalidRequest(f"{description}: expected text in UTF-8 ({error})") from error
    if pa.types.is_null(array.type):
        return array.cast(pa.int64())
    raise InvalidRequest(f"{description} of {array.type}: expected integers or strings")


def _combined(column: Any) -> Any:
    """Return a column in one piece, without encodings."""
    import pyarrow as pa

    from asterism import arrow_types

    chunks = [arrow_types.plain_array(chunk) for chunk in column.chunks]
    if not chunks:
        return arrow_types.plain_array(pa.array([], arrow_types.value_type(column.type)))
    if len(chunks) == 1:
        return chunks[0]
    # Offsets of 32 bits may be too small for all chunks together.
    large = {"string": pa.large_string(), "binary": pa.large_binary()}.get(str(chunks[0].type))
    return pa.concat_arrays([chunk.cast(large) for chunk in chunks] if large else chunks)


def _read_labels(
    name: str, table: Any, edges: Mapping[tuple[str, str, str], Any], ends: tuple[str, str]
) -> _NodeLabels:
    import pyarrow as pa
    import pyarrow.compute as pc

    owner = f"node type {name!r}"
    if table is not None and _ID not in table.column_names:
        values = pa.array(np.arange(table.num_rows))
    elif table is not None:
        values = _labels(f"{owner}: column {_ID!r}", table.column(_ID))
        if len(values.unique()) != len(values):
            repeated = pc.value_counts(values)
            label = repeated.filter(pc.greater(repeated.field("counts"), 1))[0]["values"].as_py()
            raise InvalidRequest(
                f"{owner}, id {label!r}: expected a unique id, found a repeated one; repair the "
                "table"
            )
    else:
        columns = [
            _labels(f"edge type {':'.join(triple)!r}: column {column!r}", frame.column(column))
            for triple, frame in edges.items()
            for node_type, column in zip((triple[0], triple[2]), ends, strict=True)
            if node_type == name
        ]
        if len({str(column.type) for column in columns}) > 1:
            raise InvalidRequest(
                f"{owner}: expected integers or strings as ids, found both in the tables of edges"
            )
        values = pa.concat_arrays(columns).unique()
        if str(values.type) == "int64":
            values = values.take(pc.sort_indices(values))
    return _NodeLabels(name=name, values=values, table=table)


def _node_table(labels: _NodeLabels, attributes: AttributeReader) -> NodeTable:
    count = len(labels.values)
    raw = {} if labels.table is None else _attribute_columns(labels.table, (_ID,))
    type_attributes = attributes.read(labels.name, count, raw, edges=False)
    return NodeTable(
        name=labels.name,
        count=count,
        ids=labels.values.to_numpy() if labels.is_integer else None,
        weights=type_attributes.weights,
        features=type_attributes.features,
    )


def _edge_table(
    triple: tuple[str, str, str],
    table: Any,
    nodes: Mapping[str, _NodeLabels],
    options: ReadOptions,
    attributes: AttributeReader,
) -> EdgeTable:
    name = ":".join(triple)
    src, dst = (
        nodes[node_type].ids_of(f"edge type {name!r}: column {column!r}", table.column(column))
        for node_type, column in zip((triple[0], triple[2]), options.ends, strict=True)
    )
    type_attributes = attributes.read(
        name, table.num_rows, _attribute_columns(table, options.ends), edges=True
    )
    return EdgeTable(
        triple=triple,
        src=src,
        dst=dst,
        weights=type_attributes.weights,
        features=type_attributes.features,
    )


def _attribute_columns(table: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns of a table other than ids and ends."""
    return {
        name: ArrowColumn(table.column(name)) for name in table.column_names if name not in keys
    }


@dataclass(frozen=True, slots=True)
class ArrowColumn:
    """Column of an Arrow table, which is converted only if it is loaded."""

    column: Any
    """``pyarrow.ChunkedArray``."""

    def convert(self, description: str, missing: Any, unit: str | None) -> Values:
        """Return the values; see `ForeignColumn.convert`."""
        from asterism import arrow_types

        try:
            kind, dtype, shape = arrow_types.describe_type(self.column.type)
        except arrow_types.UnsupportedTypeError as error:
            raise InvalidRequest(
                f"{description} of {self.column.type}: expected numbers, lists of numbers, times "
                f"or strings; {error}, or leave it out with `only`"
            ) from error
        array = _combined(self.column)
        if kind == "bytes":
            return _strings(description, array, missing)
        if kind == "ragged" or shape:
            return _vectors(description, array, missing)
        return _numbers(description, array, missing, dtype, unit)


def _numbers(
    description: str, array: Any, missing: Any, dtype: str, unit: str | None
) -> NDArray[Any]:
    import pyarrow as pa

    from asterism import arrow_types

    is_missing = np.asarray(array.is_null()) if array.null_count else None
    if arrow_types.is_time(array.type):
        unit = required_unit(description, unit)
        values, bad = arrow_types.time_integers(array, unit)
        if bad is not None:
            row = int(np.argmax(bad))
            raise unit_error(description, row, arrow_types.python_value(array, row), unit)
    elif pa.types.is_decimal(array.type):
        texts, _ = arrow_types.decimal_texts(array, integral=dtype == "int64")
        values = texts.fill_null("0").cast(dtype).to_numpy(zero_copy_only=False)
    else:
        empty = pa.scalar(False if pa.types.is_boolean(array.type) else 0).cast(array.type)
        values = array.fill_null(empty).to_numpy(zero_copy_only=False)
    return fill_missing(description, values, is_missing, missing)


def _strings(description: str, array: Any, missing: Any) -> Values:
    import pyarrow as pa

    if array.null_count:
        if missing is None:
            raise missing_error(description, np.asarray(array.is_null()))
        if not isinstance(missing, str | bytes):
            raise InvalidRequest(f"{description}: fill={missing!r}: expected a string")
        fill = missing.encode() if isinstance(missing, str) else missing
        array = array.cast(pa.large_binary()).fill_null(fill)
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    indptr = np.frombuffer(offsets, np.int64, len(array) + 1, 8 * array.offset)
    values = np.frombuffer(data or b"", np.uint8)[indptr[0] : indptr[-1]]
    return indptr - indptr[0], values


def _vectors(description: str, array: Any, missing: Any) -> NDArray[Any]:
    import pyarrow.compute as pc

    from asterism import arrow_types

    if array.null_count:
        raise missing_error(description, np.asarray(array.is_null()))
    lengths = pc.list_value_length(array).to_numpy(zero_copy_only=False)
    odd = np.flatnonzero(lengths != lengths[:1]) if len(lengths) else lengths
    if len(odd):
        raise InvalidRequest(
            f"{description}: expected lists of one length, row 0 has {lengths[0]} values, row "
            f"{odd[0]} has {lengths[odd[0]]}; pad them, or leave it out with `only`"
        )
    items = arrow_types.plain_array(array.flatten())
    if items.null_count:
        row = int(np.argmax(np.asarray(items.is_null()))) // max(int(lengths[0]), 1)
        raise InvalidRequest(
            f"{description}, row {row}: expected numbers in the list, found a missing one; repair "
            "it, or leave it out with `only`"
        )
    values = _numbers(description, items, None, arrow_types.describe_type(items.type).dtype, None)
    return values.reshape(len(array), int(lengths[0]) if len(lengths) else 0)
