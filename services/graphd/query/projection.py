"""Projection of results to columns: ids, types, weights, and features of nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Graph
from asterism_model.schema import EdgeType, NodeType
from asterism_proto.errors import AsterismError, NotFound
from graphd.query.ast import ColumnRef, DrawStatement, Identifier, YieldItem
from graphd.query.errors import located_error
from graphd.query.feature_reader import FeatureReader
from graphd.query.parameters import ParameterBindings
from graphd.query.table import (
    Array,
    ResultTable,
    TableColumn,
    array_column,
    coded_column,
    table_from_columns,
)

DEFAULT_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "vertices": ("id", "type"),
    "like": ("like", "id", "type"),
    "edges": ("src", "dst", "type", "weight"),
    "neighbors": ("src", "dst", "type", "weight"),
    "top": ("src", "dst", "type", "weight"),
    "go": ("src", "dst", "type", "weight"),
    "layer": ("id", "type", "probability"),
    "layers": ("step", "id", "type", "probability"),
    "negatives": ("row", "id", "type"),
    "walk": ("path",),
}
"""Columns of a statement without YIELD."""
_EDGE_COLUMNS = frozenset({"src", "dst", "weight", "edge_id", "row", "col"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeResultRows:
    """Rows that are nodes."""

    ids: NDArray[np.int64]
    types: NDArray[np.int32]
    """Node type ids."""
    version: int
    extra_columns: Mapping[str, Array] = field(default_factory=dict)
    """Further columns by name."""

    def column(self, features: FeatureReader, title: str, column_ref: ColumnRef) -> TableColumn:
        """Return one column."""
        name, node_types = column_ref.name.text, features.graph.schema.node_types
        if column_ref.end:
            raise NotFound("a node has no src or dst; only edges have")
        if not column_ref.quoted:
            if name == "id":
                return _id_column(features, title, self.ids, self.version)
            if name == "type":
                return coded_column(title, self.types, [node_type.name for node_type in node_types])
            if name == "like" and name in self.extra_columns:
                return _id_column(features, title, self.extra_columns[name], self.version)
            if name in self.extra_columns:
                return array_column(title, self.extra_columns[name])
        return features.column(
            title, column_ref, node_types, features.possible_node_types(), self.ids, self.types
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeResultRows:
    """Rows that are edges, each with its local end and its remote end."""

    local_ids: NDArray[np.int64]
    remote_ids: NDArray[np.int64]
    types: NDArray[np.int32]
    """Edge type ids."""
    is_reversed: NDArray[np.bool_] | bool = False
    """True if an edge was followed against its direction: its source is the remote end."""
    version: int
    extra_columns: Mapping[str, Array] = field(default_factory=dict)

    def column(self, features: FeatureReader, title: str, column_ref: ColumnRef) -> TableColumn:
        """Return one column."""
        name, schema = column_ref.name.text, features.graph.schema
        if column_ref.end or (name in ("src", "dst") and not column_ref.quoted):
            return self._end_column(features, title, column_ref, column_ref.end or name)
        if not column_ref.quoted:
            if name == "type":
                return coded_column(
                    title, self.types, [edge_type.name for edge_type in schema.edge_types]
                )
            stored_name = {"id": "edge_id"}.get(name, name)
            if stored_name in self.extra_columns:
                return array_column(title, self.extra_columns[stored_name])
        if "edge_id" not in self.extra_columns:
            raise NotFound(
                "an edge of this statement has "
                f"{', '.join(['src', 'dst', 'type', *self.extra_columns])}, but no {name!r}"
            )
        return features.column(
            title,
            column_ref,
            schema.edge_types,
            features.possible_edge_types(),
            self.extra_columns["edge_id"],
            self.types,
        )

    def _end_column(
        self, features: FeatureReader, title: str, column_ref: ColumnRef, end: str
    ) -> TableColumn:
        """Return a column of one of the ends, or its id."""
        schema, is_id = (
            features.graph.schema,
            not column_ref.end or (not column_ref.quoted and column_ref.name.text == "id"),
        )
        if end in ("near", "far") or isinstance(self.is_reversed, bool):
            is_local = (
                end == "near"
                or (end == "src" and self.is_reversed is False)
                or (end == "dst" and self.is_reversed is True)
            )
            ids = self.local_ids if is_local else self.remote_ids
        else:
            ids = np.where(
                np.asarray(self.is_reversed) == (end == "dst"), self.local_ids, self.remote_ids
            )
        if is_id:
            return _id_column(features, title, ids, self.version)
        starts, ends = (
            [*(schema.node_type_id(getattr(edge, side)) for edge in schema.edge_types), -1]
            for side in ("src_type", "dst_type")
        )
        is_reversed = np.asarray(self.is_reversed)
        is_src = np.asarray(
            {"src": np.True_, "dst": np.False_, "near": ~is_reversed, "far": is_reversed}[end]
        )
        end_types = np.where(
            is_src, np.array(starts, np.int32)[self.types], np.array(ends, np.int32)[self.types]
        )
        if column_ref.name.text == "type" and not column_ref.quoted:
            return coded_column(
                title, end_types, [node_type.name for node_type in schema.node_types]
            )
        both_ends = not isinstance(self.is_reversed, bool) and end in ("near", "far")
        sides = ((starts, both_ends or bool(is_src.all())), (ends, both_ends or not is_src.all()))
        possible_types = {
            side[edge]
            for edge in features.possible_edge_types()
            for side, is_possible in sides
            if is_possible
        }
        return features.column(title, column_ref, schema.node_types, possible_types, ids, end_types)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathResultRows:
    """Rows that are walks."""

    version: int
    extra_columns: Mapping[str, Array]
    types: NDArray[np.int32]
    """Edge type ids, shape (rows, steps)."""

    def column(self, features: FeatureReader, title: str, column_ref: ColumnRef) -> TableColumn:
        """Return one column."""
        name = column_ref.name.text
        if name == "types" and not column_ref.end:
            return coded_column(
                title,
                self.types,
                [edge_type.name for edge_type in features.graph.schema.edge_types],
            )
        if column_ref.end or name not in self.extra_columns:
            raise NotFound(f"a walk has {', '.join(self.extra_columns)} and types, but no {name!r}")
        if name in ("path", "start"):
            return _id_column(features, title, self.extra_columns[name], self.version)
        return array_column(title, self.extra_columns[name])


def _id_column(features: FeatureReader, title: str, ids: Array, version: int) -> TableColumn:
    """Return node ids as a column, or string ids if the space has them."""
    if not features.graph.schema.has_string_ids:
        return array_column(title, ids)
    names, codes = np.unique(
        features.graph.node_names(ids, version=version or None), return_inverse=True
    )
    return coded_column(title, codes.reshape(ids.shape).astype(np.int32), names.tolist())


ResultRows = NodeResultRows | EdgeResultRows | PathResultRows


def concat_rows(pieces: Sequence[EdgeResultRows]) -> EdgeResultRows:
    """Concatenate rows."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    return EdgeResultRows(
        local_ids=np.concatenate([piece.local_ids for piece in pieces]),
        remote_ids=np.concatenate([piece.remote_ids for piece in pieces]),
        types=np.concatenate([piece.types for piece in pieces]),
        is_reversed=np.concatenate(
            [np.broadcast_to(piece.is_reversed, len(piece.local_ids)) for piece in pieces]
        ),
        version=max(piece.version for piece in pieces),
        extra_columns={
            name: np.concatenate([piece.extra_columns[name] for piece in pieces])
            for name in first.extra_columns
        },
    )


def take_rows(rows: EdgeResultRows, positions: NDArray[np.int64]) -> EdgeResultRows:
    """Return some rows, in that order."""
    is_reversed = (
        rows.is_reversed if isinstance(rows.is_reversed, bool) else rows.is_reversed[positions]
    )
    extra_columns = {name: array[positions] for name, array in rows.extra_columns.items()}
    return EdgeResultRows(
        local_ids=rows.local_ids[positions],
        remote_ids=rows.remote_ids[positions],
        types=rows.types[positions],
        is_reversed=is_reversed,
        version=rows.version,
        extra_columns=extra_columns,
    )


def yield_items(draw: DrawStatement, graph: Graph) -> tuple[YieldItem, ...]:
    """Return the columns of a statement: those of its YIELD clause, or the default ones."""
    if draw.options.items:
        return draw.options.items
    if draw.options.counted is not None:  # Any column that costs no read has one value per row.
        name = "row" if draw.kind == "walk" else "type"
        return (YieldItem(column=ColumnRef(name=Identifier(text=name))),)
    if draw.kind == "fetch":
        features = tuple(feature.name for feature in fetched_type(draw, graph).features)
        base_columns = ("src", "dst", "edge_id") if draw.pairs else ("id",)
        return tuple(
            YieldItem(
                column=ColumnRef(name=Identifier(text=name), quoted=index >= len(base_columns)),
                alias=Identifier(text=name),
            )
            for index, name in enumerate((*base_columns, *features))
        )
    return _default_items("like" if draw.like else draw.kind, draw.first is not None)


@cache
def _default_items(kind: str, with_step: bool) -> tuple[YieldItem, ...]:
    return tuple(
        YieldItem(column=ColumnRef(name=Identifier(text=name)))
        for name in (*(("step",) if with_step else ()), *DEFAULT_COLUMNS[kind])
    )


def fetched_type(draw: DrawStatement, graph: Graph) -> NodeType | EdgeType:
    """Return the type to fetch features of: a node type of that name, else an edge type."""
    name, schema = draw.types[0].text, graph.schema
    node_type = (
        None
        if draw.pairs
        else next((node_type for node_type in schema.node_types if node_type.name == name), None)
    )
    return node_type if node_type is not None else schema.edge_types[schema.edge_type_id(name)]


def required_columns(items: Sequence[YieldItem]) -> frozenset[str]:
    """Return the columns that rows need besides ids and types."""
    required = set()
    for item in items:
        column = item.column
        if column.end:
            required.add("end")
        elif not column.quoted and column.name.text in (
            "weight",
            "probability",
            "src",
            "dst",
            "row",
            "col",
            "step",
            "like",
            "start",
            "path",
            "types",
        ):
            required.add(column.name.text)
        elif column.quoted or column.name.text != "type":
            required.add("edge_id")  # the edge's id, or a feature, which is read by edge id
    return frozenset(required)


def needs_edges(required_columns: frozenset[str]) -> bool:
    """Return True if columns need the edges between layers, not only a layer's nodes."""
    return bool(required_columns & {"end", "src", "dst", "row", "col", "weight"})


def project_table(
    rows: ResultRows, features: FeatureReader, bindings: ParameterBindings
) -> ResultTable:
    """Return the table of a result, with one column per item of ``features``.

    Raises
    ------
    NotFound
        If a column does not exist, with its position.
    """
    columns = []
    for item in features.items:
        try:
            columns.append(rows.column(features, item.title, item.column))
        except AsterismError as error:
            if error.place is not None or not isinstance(error, NotFound):
                raise
            raise located_error(NotFound, bindings.text, item.column.at, error.message) from None
    return table_from_columns(columns)
