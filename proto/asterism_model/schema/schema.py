"""Schema records: what a space holds, as frozen values with names instead of type ids, checked at
birth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asterism_model import string_ids
from asterism_model.html import schema_table
from asterism_model.schema import index_columns, time_columns
from asterism_model.schema.degrees import check_degrees
from asterism_model.schema.weight_tables import (
    RESERVED_NAMES,
    WeightTable,
    check_tables,
    find_table,
    tables_from_dict,
    tables_from_proto,
    tables_to_dict,
    tables_to_proto,
)
from asterism_model.validation import (
    as_mapping,
    check_distinct,
    check_keys,
    enum_name,
    validate_name,
)
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.framing import DTYPES
from asterism_proto.v1 import common_pb2 as pb

MAX_PARTS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A named column of a type."""

    name: str
    kind: str = "dense"
    """``dense`` (dtype and shape), ``ragged`` (a list of int64 or float32 per row) or ``bytes``."""
    dtype: str = "float32"
    shape: tuple[int, ...] = ()
    """Of one row; () is a scalar. ``dense`` only."""

    def __post_init__(self) -> None:
        validate_name("feature", self.name)
        if self.name in RESERVED_NAMES and (self.name, self.kind) != (
            string_ids.ID_COLUMN,
            "bytes",
        ):
            raise InvalidRequest(
                f"feature {self.name!r}: the name is reserved; call it something else"
            )
        if self.kind not in ("dense", "ragged", "bytes"):
            raise InvalidRequest(
                f"feature {self.name!r}: kind {self.kind!r}; expected dense, ragged or bytes"
            )
        if self.kind == "dense" and self.dtype not in DTYPES:
            raise InvalidRequest(
                f"feature {self.name!r}: dtype {self.dtype!r}; expected one of "
                f"{', '.join(sorted(DTYPES))}"
            )
        if self.kind == "ragged" and self.dtype not in ("int64", "float32"):
            raise InvalidRequest(
                f"feature {self.name!r}: ragged features are int64 or float32, not {self.dtype!r}"
            )
        if (
            any(extent < 1 for extent in self.shape)
            or len(self.shape) > 8
            or int(np.prod(self.shape, dtype=object)) > 1 << 24
        ):
            raise InvalidRequest(
                f"feature {self.name!r}: shape {list(self.shape)}; extents are >= 1, at most "
                "8 of them, 2^24 values a row"
            )
        if self.kind != "dense" and self.shape:
            raise InvalidRequest(f"feature {self.name!r}: only dense features have a shape")


STRING_ID_FEATURE = Feature(name=string_ids.ID_COLUMN, kind="bytes")
"""What every node type of a space with ``ids: string`` has: the strings that its nodes are called
by.
"""


_NODE_OPTIONS = ("graph_label", "time")
"""What a node type may name among its features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """A kind of node."""

    name: str
    weighted: bool = False
    features: tuple[Feature, ...] = ()
    tables: tuple[WeightTable, ...] = ()
    graph_label: str = ""
    """The feature, of kind bytes, that says of which graph a node is; "" is none."""
    index: tuple[str, ...] = ()
    """Columns that every version keeps its nodes in order of, as conditions write them:
    `asterism_model.indexes.declared_indexes`.
    """
    time: str = ""
    """The feature, a scalar whole number or float, that says since when a node is there: draws
    until a time see none to later ones; "" is none.
    """

    def __post_init__(self) -> None:
        validate_name("node type", self.name)
        object.__setattr__(
            self,
            "index",
            index_columns.canonical_columns(
                f"node type {self.name!r}", self.features, self.index, edges=False
            ),
        )
        check_distinct(f"node type {self.name!r}: feature", [f.name for f in self.features])
        check_tables(f"node type {self.name!r}", self.tables, self.features, nodes=True)
        label = self.feature(self.graph_label).kind if self.graph_label else "bytes"
        if label != "bytes":
            raise InvalidRequest(
                f"node type {self.name!r}: graph_label {self.graph_label!r} is {label}; "
                "expected bytes"
            )
        if self.time:
            time_columns.check_time(f"node type {self.name!r}", self.features, self.time)

    def feature(self, name: str) -> Feature:
        """The feature called ``name``; NotFound otherwise."""
        return _feature(f"node type {self.name!r}", self.features, name)

    def table(self, name: str) -> WeightTable:
        """The weights called ``name``; NotFound otherwise."""
        return find_table(f"node type {self.name!r}", self.tables, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeType:
    """A kind of edge: a canonical triple."""

    src_type: str
    relation: str
    dst_type: str
    weighted: bool = False
    multiplicity: str = "multi"
    """``multi``, or ``unique``: (src, dst) names an edge."""
    missing: str = "reject"
    """What an edge to an unknown node gets: ``reject`` or ``create``."""
    features: tuple[Feature, ...] = ()
    tables: tuple[WeightTable, ...] = ()
    time: str = ""
    """The feature, a scalar whole number or float, that says when an edge came: draws may see those
    until a time; "" is none.
    """
    index: tuple[str, ...] = ()
    """Columns that every version keeps its edges, and those of each node, in order of, as
    conditions write them.
    """

    def __post_init__(self) -> None:
        for name in (self.src_type, self.relation, self.dst_type):
            validate_name("edge type", name)
        if self.multiplicity not in ("multi", "unique"):
            raise InvalidRequest(
                f"edge type {self.name!r}: edges {self.multiplicity!r}; expected multi or unique"
            )
        if self.missing not in ("reject", "create"):
            raise InvalidRequest(
                f"edge type {self.name!r}: missing {self.missing!r}; expected reject or create"
            )
        check_distinct(f"edge type {self.name!r}: feature", [f.name for f in self.features])
        check_tables(f"edge type {self.name!r}", self.tables, self.features, nodes=False)
        if self.time:
            time_columns.check_time(f"edge type {self.name!r}", self.features, self.time)
        object.__setattr__(
            self,
            "index",
            index_columns.canonical_columns(
                f"edge type {self.name!r}", self.features, self.index, edges=True
            ),
        )

    @property
    def name(self) -> str:
        """``src:relation:dst``."""
        return f"{self.src_type}:{self.relation}:{self.dst_type}"

    def feature(self, name: str) -> Feature:
        """The feature called ``name``; NotFound otherwise."""
        return _feature(f"edge type {self.name!r}", self.features, name)

    def table(self, name: str) -> WeightTable:
        """The weights called ``name``; NotFound otherwise."""
        return find_table(f"edge type {self.name!r}", self.tables, name)

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """The features that its tables are made of."""
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
        """The features that lie beside the edges at both ends too: those that its tables are made
        of, its time, and those of indexes.
        """
        return tuple(
            feature.name
            for feature in self.features
            if feature.name in {*self.weight_columns, self.time, *self.indexed}
        )

    @property
    def indexed(self) -> tuple[str, ...]:
        """The features among the columns of ``index``, in their own order."""
        column_names = {
            index_columns.parse_column(text).name
            for text in self.index
            if text not in index_columns.EDGE_COLUMNS
        }
        return tuple(feature.name for feature in self.features if feature.name in column_names)


def _feature(owner: str, features: tuple[Feature, ...], name: str) -> Feature:
    for feature in features:
        if feature.name == name:
            return feature
    raise NotFound(
        f"{owner} has no feature {name!r}; it has {', '.join(f.name for f in features) or 'none'}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What a space holds. A type's id is its position."""

    node_types: tuple[NodeType, ...]
    edge_types: tuple[EdgeType, ...] = ()
    parts: int = 8
    ids: str = "per_type"
    """``per_type``, ``global``, or ``string``: nodes are called by strings, of which ids are made;
    see `asterism_model.string_ids`.
    """
    salt: int = 0
    """``ids: string`` only: what ids are made with, below 2^63. Another one where two strings of a
    type have one id.
    """
    placement: str = "mod"
    """``mod`` or ``mix64``."""
    direction: str = "out"
    """Which adjacency is kept: ``out``, ``in`` or ``both``. Out-copies always are: they are the
    truth.
    """

    def __post_init__(self) -> None:
        if not self.node_types:
            raise InvalidRequest("a schema needs at least one node type")
        check_distinct("node type", [t.name for t in self.node_types])
        check_distinct("edge type", [t.name for t in self.edge_types])
        node_type_names = {t.name for t in self.node_types}
        for edge_type in self.edge_types:
            for end in (edge_type.src_type, edge_type.dst_type):
                if end not in node_type_names:
                    raise InvalidRequest(
                        f"edge type {edge_type.name!r}: no node type {end!r}; there are "
                        f"{', '.join(sorted(node_type_names))}"
                    )
        if not 1 <= self.parts <= MAX_PARTS:
            raise InvalidRequest(f"parts {self.parts}: expected 1 to {MAX_PARTS}")
        for field_name, allowed in (
            ("ids", ("per_type", "global", "string")),
            ("placement", ("mod", "mix64")),
            ("direction", ("out", "in", "both")),
        ):
            if getattr(self, field_name) not in allowed:
                raise InvalidRequest(
                    f"{field_name} {getattr(self, field_name)!r}: expected {' or '.join(allowed)}"
                )
        time_columns.check_time_kinds(self)
        check_degrees(self)
        self._add_string_id_features()

    def _add_string_id_features(self) -> None:
        """Give every node type its column of names where ids are strings; refuse one elsewhere."""
        if (
            not isinstance(self.salt, int)
            or isinstance(self.salt, bool)
            or not 0 <= self.salt < 1 << 63
        ):
            raise InvalidRequest(f"salt {self.salt!r}: expected a whole number from 0 to 2^63 - 1")
        if self.ids == "string":
            node_types = (
                t
                if STRING_ID_FEATURE in t.features
                else replace(t, features=(*t.features, STRING_ID_FEATURE))
                for t in self.node_types
            )
            object.__setattr__(self, "node_types", tuple(node_types))
        elif self.salt:
            raise InvalidRequest(
                f"salt {self.salt}: ids are {self.ids}; only `ids: string` has a salt"
            )
        owners: tuple[NodeType | EdgeType, ...] = (*self.node_types, *self.edge_types)
        for owner in owners:
            if any(
                f.name == string_ids.ID_COLUMN
                and not (
                    f == STRING_ID_FEATURE and self.has_string_ids and isinstance(owner, NodeType)
                )
                for f in owner.features
            ):
                raise InvalidRequest(
                    f"{owner.name!r}: feature {string_ids.ID_COLUMN!r}: the name is "
                    "reserved; call it something else"
                )

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return schema_table(self)

    @property
    def named(self) -> bool:
        """Name of `has_string_ids` in earlier releases."""
        return self.has_string_ids

    @property
    def has_string_ids(self) -> bool:
        """Whether nodes are called by strings."""
        return self.ids == "string"

    @property
    def has_in(self) -> bool:
        """Whether in-copies of edges are kept."""
        return self.direction != "out"

    def node_type_id(self, name: str) -> int:
        """The id of a node type; NotFound with what there is."""
        for i, node_type in enumerate(self.node_types):
            if node_type.name == name:
                return i
        raise NotFound(
            f"no node type {name!r}; there are {', '.join(t.name for t in self.node_types)}"
        )

    def edge_type_id(self, name: str) -> int:
        """The id of an edge type, by its triple or, where that is unambiguous, by its relation."""
        matches = [i for i, t in enumerate(self.edge_types) if name in (t.name, t.relation)]
        exact = [i for i in matches if self.edge_types[i].name == name]
        if len(exact or matches) == 1:
            return (exact or matches)[0]
        available = ", ".join(t.name for t in self.edge_types) or "none"
        raise NotFound(
            f"edge type {name!r} is ambiguous; say which of {available}"
            if matches
            else f"no edge type {name!r}; there are {available}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for YAML and JSON; ``from_dict`` reads them back."""
        return {
            "parts": self.parts,
            "ids": self.ids,
            **({"salt": self.salt} if self.has_string_ids else {}),
            "placement": self.placement,
            "direction": self.direction,
            "nodes": {
                t.name: {
                    **_type_dict(t),
                    **{option: value for option in _NODE_OPTIONS if (value := getattr(t, option))},
                }
                for t in self.node_types
            },
            "edges": {
                t.name: {
                    **_type_dict(t),
                    "edges": t.multiplicity,
                    "missing": t.missing,
                    **({"time": t.time} if t.time else {}),
                }
                for t in self.edge_types
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """A schema from plain values, as a YAML file gives them; InvalidRequest names the first
        wrong one.
        """
        allowed_keys = {"parts", "ids", "salt", "placement", "direction", "nodes", "edges"}
        check_keys("schema", data, allowed_keys)
        nodes = tuple(
            NodeType(
                name=str(name),
                **_type_arguments(f"node type {name!r}", spec or {}, set(_NODE_OPTIONS)),
                graph_label=str((spec or {}).get("graph_label") or ""),
                time=str((spec or {}).get("time") or ""),
            )
            for name, spec in as_mapping("nodes", data.get("nodes")).items()
        )
        edges = []
        for name, spec in as_mapping("edges", data.get("edges")).items():
            triple = str(name).split(":")
            if len(triple) != 3:
                raise InvalidRequest(f"edge type {name!r}: expected source:relation:destination")
            spec = spec or {}
            arguments = _type_arguments(f"edge type {name!r}", spec, {"edges", "missing", "time"})
            edges.append(
                EdgeType(
                    src_type=triple[0],
                    relation=triple[1],
                    dst_type=triple[2],
                    multiplicity=str(spec.get("edges", "multi")),
                    missing=str(spec.get("missing", "reject")),
                    time=str(spec.get("time") or ""),
                    **arguments,
                )
            )
        scalars = {
            key: data[key]
            for key in ("parts", "ids", "salt", "placement", "direction")
            if key in data
        }
        if not isinstance(scalars.get("parts", 1), int):
            raise InvalidRequest(f"parts {scalars['parts']!r}: expected a whole number")
        return cls(node_types=nodes, edge_types=tuple(edges), **scalars)

    def to_proto(self) -> pb.Schema:
        """As it travels."""
        return pb.Schema(
            node_types=[
                pb.NodeType(
                    name=t.name,
                    weighted=t.weighted,
                    graph_label=t.graph_label,
                    time=t.time,
                    **_columns_to_proto(t),
                )
                for t in self.node_types
            ],
            edge_types=[
                pb.EdgeType(
                    src_type=t.src_type,
                    relation=t.relation,
                    dst_type=t.dst_type,
                    weighted=t.weighted,
                    multiplicity=t.multiplicity.upper(),
                    missing=t.missing.upper(),
                    time=t.time,
                    **_columns_to_proto(t),
                )
                for t in self.edge_types
            ],
            parts=self.parts,
            ids=self.ids.upper(),
            salt=self.salt,
            placement=self.placement.upper(),
            direction=self.direction.upper(),
        )

    @classmethod
    def from_proto(cls, message: pb.Schema) -> Schema:
        """A schema from the wire; unset words get their defaults, impossible ones are
        InvalidRequest.
        """
        return cls(
            node_types=tuple(
                NodeType(
                    name=t.name,
                    weighted=t.weighted,
                    graph_label=t.graph_label,
                    time=t.time,
                    **_columns_from_proto(t),
                )
                for t in message.node_types
            ),
            edge_types=tuple(
                EdgeType(
                    src_type=t.src_type,
                    relation=t.relation,
                    dst_type=t.dst_type,
                    weighted=t.weighted,
                    multiplicity=enum_name(pb.Multiplicity, t.multiplicity, "multi"),
                    missing=enum_name(pb.Missing, t.missing, "reject"),
                    time=t.time,
                    **_columns_from_proto(t),
                )
                for t in message.edge_types
            ),
            parts=message.parts,
            ids=enum_name(pb.IdScope, message.ids, "per_type"),
            salt=message.salt,
            placement=enum_name(pb.Placement, message.placement, "mod"),
            direction=enum_name(pb.Direction, message.direction, "out"),
        )


def _type_dict(owner: NodeType | EdgeType) -> dict[str, Any]:
    return {
        "weighted": owner.weighted,
        "features": {
            f.name: {"kind": f.kind, "dtype": f.dtype, "shape": list(f.shape)}
            for f in owner.features
            if f != STRING_ID_FEATURE
        },
        **tables_to_dict(owner.tables),
        **({"index": list(owner.index)} if owner.index else {}),
    }


def _type_arguments(label: str, spec: Any, extra_keys: set[str]) -> dict[str, Any]:
    if not isinstance(spec, Mapping):
        raise InvalidRequest(f"{label}: expected a mapping, not {type(spec).__name__}")
    check_keys(label, spec, {"weighted", "features", "tables", "index"} | extra_keys)
    features = []
    for name, column in as_mapping(f"{label} features", spec.get("features")).items():
        column = column or {}
        if isinstance(column, str):  # the short form, `age: int64`
            column = {"kind": "bytes"} if column == "bytes" else {"dtype": column}
        column = as_mapping(f"{label}: feature {name!r}", column)
        check_keys(f"{label}: feature {name!r}", column, {"kind", "dtype", "shape"})
        shape = column.get("shape", [])
        shape = [shape] if isinstance(shape, int) else shape
        if not isinstance(shape, list | tuple) or not all(
            isinstance(extent, int) for extent in shape
        ):
            raise InvalidRequest(
                f"{label}: feature {name!r}: shape {shape!r}; expected a list of whole numbers"
            )
        features.append(
            Feature(
                name=str(name),
                kind=str(column.get("kind", "dense")),
                dtype=str(column.get("dtype", "float32")),
                shape=tuple(shape),
            )
        )
    return {
        "weighted": bool(spec.get("weighted", False)),
        "features": tuple(features),
        "tables": tables_from_dict(label, spec.get("tables")),
        "index": index_columns.column_names(label, spec.get("index")),
    }


def _columns_to_proto(owner: NodeType | EdgeType) -> dict[str, Any]:
    features = [
        pb.Feature(name=f.name, kind=f.kind.upper(), dtype=f.dtype, shape=f.shape)
        for f in owner.features
        if f != STRING_ID_FEATURE
    ]
    return {"features": features, "tables": tables_to_proto(owner.tables), "index": owner.index}


def _columns_from_proto(message: pb.NodeType | pb.EdgeType) -> dict[str, Any]:
    features = (
        Feature(
            name=f.name,
            kind=enum_name(pb.FeatureKind, f.kind, "dense"),
            dtype=f.dtype or "float32",
            shape=tuple(f.shape),
        )
        for f in message.features
    )
    return {
        "features": tuple(features),
        "tables": tables_from_proto(message.tables),
        "index": tuple(message.index),
    }
