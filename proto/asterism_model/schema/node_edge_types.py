"""Node and edge types of a schema: records, and their forms as plain values and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asterism_model.schema.features import (
    Feature,
    features_from_dict,
    features_from_proto,
    features_to_dict,
    features_to_proto,
    find_feature,
)
from asterism_model.schema.index_columns import (
    EDGE_COLUMNS,
    canonical_columns,
    column_names,
    parse_column,
)
from asterism_model.schema.time_columns import check_time
from asterism_model.schema.weight_tables import (
    WeightTable,
    check_tables,
    find_table,
    tables_from_dict,
    tables_from_proto,
    tables_to_dict,
    tables_to_proto,
)
from asterism_model.validation import (
    as_flag,
    check_distinct,
    check_keys,
    enum_name,
    validate_name,
)
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb

_NODE_OPTIONS = ("graph_label", "time")
"""Keys in the plain values of a node type that refer to one of its features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """A kind of node."""

    name: str
    weighted: bool = False
    features: tuple[Feature, ...] = ()
    tables: tuple[WeightTable, ...] = ()
    graph_label: str = ""
    """Feature of kind bytes with the label of the graph that a node belongs to; "" for none."""
    index: tuple[str, ...] = ()
    """Columns with an index in every version, in the syntax of filters; see
    `asterism_model.indexes.declared_indexes`.
    """
    time: str = ""
    """Feature with the creation time of a node, a scalar integer or float; "" for none.

    Sampling with a temporal filter excludes edges to nodes that are created later.
    """

    def __post_init__(self) -> None:
        validate_name("node type", self.name)
        object.__setattr__(
            self,
            "index",
            canonical_columns(f"node type {self.name!r}", self.features, self.index, edges=False),
        )
        check_distinct(f"node type {self.name!r}: feature", [f.name for f in self.features])
        check_tables(f"node type {self.name!r}", self.tables, self.features, nodes=True)
        label = self.feature(self.graph_label).kind if self.graph_label else "bytes"
        if label != "bytes":
            raise InvalidRequest(
                f"node type {self.name!r}: graph_label {self.graph_label!r}: expected a feature "
                f"of kind bytes, found {label}"
            )
        if self.time:
            check_time(f"node type {self.name!r}", self.features, self.time)

    def feature(self, name: str) -> Feature:
        """The feature called ``name``; NotFound otherwise."""
        return find_feature(f"node type {self.name!r}", self.features, name)

    def table(self, name: str) -> WeightTable:
        """The weights called ``name``; NotFound otherwise."""
        return find_table(f"node type {self.name!r}", self.tables, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeType:
    """A kind of edge, named by the triple (source type, relation, destination type)."""

    src_type: str
    relation: str
    dst_type: str
    weighted: bool = False
    multiplicity: str = "multi"
    """``multi``, or ``unique``: at most one edge per (src, dst)."""
    missing: str = "reject"
    """Treatment of edges at unknown nodes: ``reject`` the edge or ``create`` the node."""
    features: tuple[Feature, ...] = ()
    tables: tuple[WeightTable, ...] = ()
    time: str = ""
    """Feature with the time of an edge, a scalar integer or float; "" for none.

    A temporal filter limits sampling to edges up to a time.
    """
    index: tuple[str, ...] = ()
    """Columns with an index in every version, in the syntax of filters.

    The index orders all edges, and the edges of each node.
    """

    def __post_init__(self) -> None:
        for name in (self.src_type, self.relation, self.dst_type):
            validate_name("edge type", name)
        if self.multiplicity not in ("multi", "unique"):
            raise InvalidRequest(
                f"edge type {self.name!r}: edges {self.multiplicity!r}: expected multi or unique"
            )
        if self.missing not in ("reject", "create"):
            raise InvalidRequest(
                f"edge type {self.name!r}: missing {self.missing!r}: expected reject or create"
            )
        check_distinct(f"edge type {self.name!r}: feature", [f.name for f in self.features])
        check_tables(f"edge type {self.name!r}", self.tables, self.features, nodes=False)
        if self.time:
            check_time(f"edge type {self.name!r}", self.features, self.time)
        object.__setattr__(
            self,
            "index",
            canonical_columns(f"edge type {self.name!r}", self.features, self.index, edges=True),
        )

    @property
    def name(self) -> str:
        """Canonical name, ``src:relation:dst``."""
        return f"{self.src_type}:{self.relation}:{self.dst_type}"

    def feature(self, name: str) -> Feature:
        """The feature called ``name``; NotFound otherwise."""
        return find_feature(f"edge type {self.name!r}", self.features, name)

    def table(self, name: str) -> WeightTable:
        """The weights called ``name``; NotFound otherwise."""
        return find_table(f"edge type {self.name!r}", self.tables, name)

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """Features that the expressions of weight tables read, in declared order."""
        column_names = {
            column for table in self.tables for column in table.parsed_expression.columns
        }
        return tuple(feature.name for feature in self.features if feature.name in column_names)

    @property
    def near_columns(self) -> tuple[str, ...]:
        """Name of `edge_columns` in earlier releases."""
        return self.edge_columns

    @property
    def edge_columns(self) -> tuple[str, ...]:
        """Features that are also stored in both copies of each edge, in declared order.

        These are the features of weight tables, the time, and the indexed features.
        """
        return tuple(
            feature.name
            for feature in self.features
            if feature.name in {*self.weight_columns, self.time, *self.indexed}
        )

    @property
    def indexed(self) -> tuple[str, ...]:
        """Features among the columns of ``index``, in declared order."""
        column_names = {parse_column(text).name for text in self.index if text not in EDGE_COLUMNS}
        return tuple(feature.name for feature in self.features if feature.name in column_names)


def node_type_to_dict(node_type: NodeType) -> dict[str, Any]:
    """Return a node type as plain values, as `node_type_from_dict` reads them."""
    return {
        **_columns_to_dict(node_type),
        **{option: value for option in _NODE_OPTIONS if (value := getattr(node_type, option))},
    }


def node_type_from_dict(name: object, data: Any) -> NodeType:
    """Return a node type from plain values; raise InvalidRequest for the first invalid one."""
    spec = data or {}
    return NodeType(
        name=str(name),
        **_columns_from_dict(f"node type {name!r}", spec, set(_NODE_OPTIONS)),
        graph_label=str(spec.get("graph_label") or ""),
        time=str(spec.get("time") or ""),
    )


def edge_type_to_dict(edge_type: EdgeType) -> dict[str, Any]:
    """Return an edge type as plain values, as `edge_type_from_dict` reads them."""
    return {
        **_columns_to_dict(edge_type),
        "edges": edge_type.multiplicity,
        "missing": edge_type.missing,
        **({"time": edge_type.time} if edge_type.time else {}),
    }


def edge_type_from_dict(name: object, data: Any) -> EdgeType:
    """Return an edge type from plain values; raise InvalidRequest for the first invalid one."""
    triple = str(name).split(":")
    if len(triple) != 3:
        raise InvalidRequest(f"edge type {name!r}: expected source:relation:destination")
    spec = data or {}
    columns = _columns_from_dict(f"edge type {name!r}", spec, {"edges", "missing", "time"})
    return EdgeType(
        src_type=triple[0],
        relation=triple[1],
        dst_type=triple[2],
        multiplicity=str(spec.get("edges", "multi")),
        missing=str(spec.get("missing", "reject")),
        time=str(spec.get("time") or ""),
        **columns,
    )


def node_type_to_proto(node_type: NodeType) -> common_pb.NodeType:
    """Return a node type as a message."""
    return common_pb.NodeType(
        name=node_type.name,
        weighted=node_type.weighted,
        graph_label=node_type.graph_label,
        time=node_type.time,
        features=features_to_proto(node_type.features),
        tables=tables_to_proto(node_type.tables),
        index=node_type.index,
    )


def node_type_from_proto(message: common_pb.NodeType) -> NodeType:
    """Return the node type in a message."""
    return NodeType(
        name=message.name,
        weighted=message.weighted,
        graph_label=message.graph_label,
        time=message.time,
        features=features_from_proto(message.features),
        tables=tables_from_proto(message.tables),
        index=tuple(message.index),
    )


def edge_type_to_proto(edge_type: EdgeType) -> common_pb.EdgeType:
    """Return an edge type as a message."""
    return common_pb.EdgeType(
        src_type=edge_type.src_type,
        relation=edge_type.relation,
        dst_type=edge_type.dst_type,
        weighted=edge_type.weighted,
        multiplicity=edge_type.multiplicity.upper(),
        missing=edge_type.missing.upper(),
        time=edge_type.time,
        features=features_to_proto(edge_type.features),
        tables=tables_to_proto(edge_type.tables),
        index=edge_type.index,
    )


def edge_type_from_proto(message: common_pb.EdgeType) -> EdgeType:
    """Return the edge type in a message."""
    return EdgeType(
        src_type=message.src_type,
        relation=message.relation,
        dst_type=message.dst_type,
        weighted=message.weighted,
        multiplicity=enum_name(common_pb.Multiplicity, message.multiplicity, "multi"),
        missing=enum_name(common_pb.Missing, message.missing, "reject"),
        time=message.time,
        features=features_from_proto(message.features),
        tables=tables_from_proto(message.tables),
        index=tuple(message.index),
    )


def _columns_to_dict(owner: NodeType | EdgeType) -> dict[str, Any]:
    return {
        "weighted": owner.weighted,
        "features": features_to_dict(owner.features),
        **tables_to_dict(owner.tables),
        **({"index": list(owner.index)} if owner.index else {}),
    }


def _columns_from_dict(label: str, spec: Any, extra_keys: set[str]) -> dict[str, Any]:
    if not isinstance(spec, Mapping):
        raise InvalidRequest(f"{label}: expected a mapping, found {type(spec).__name__}")
    check_keys(label, spec, {"weighted", "features", "tables", "index"} | extra_keys)
    return {
        "weighted": as_flag(f"{label}: weighted", spec.get("weighted") or False),
        "features": features_from_dict(label, spec.get("features")),
        "tables": tables_from_dict(label, spec.get("tables")),
        "index": column_names(label, spec.get("index")),
    }
