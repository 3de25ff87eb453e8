"""Schema records: what a space holds, as frozen values with names instead of type ids, checked at birth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from asterism_proto.arrays import DTYPES
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.notebook import table
from asterism_proto.tables import RESERVED, WeightTable, check_tables, table_called, tables_from, tables_of, tables_to_dict, tables_to_proto
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.words import checked_name, distinct, known_keys, mapping, word_of

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
        checked_name("feature", self.name)
        if self.name in RESERVED:
            raise InvalidRequest(f"feature {self.name!r}: the name is reserved; call it something else")
        if self.kind not in ("dense", "ragged", "bytes"):
            raise InvalidRequest(f"feature {self.name!r}: kind {self.kind!r}; expected dense, ragged or bytes")
        if self.kind == "dense" and self.dtype not in DTYPES:
            raise InvalidRequest(f"feature {self.name!r}: dtype {self.dtype!r}; expected one of {', '.join(sorted(DTYPES))}")
        if self.kind == "ragged" and self.dtype not in ("int64", "float32"):
            raise InvalidRequest(f"feature {self.name!r}: ragged features are int64 or float32, not {self.dtype!r}")
        if any(extent < 1 for extent in self.shape) or len(self.shape) > 8 or int(np.prod(self.shape, dtype=object)) > 1 << 24:
            raise InvalidRequest(f"feature {self.name!r}: shape {list(self.shape)}; extents are >= 1, at most 8 of them, 2^24 values a row")
        if self.kind != "dense" and self.shape:
            raise InvalidRequest(f"feature {self.name!r}: only dense features have a shape")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """A kind of node."""

    name: str
    weighted: bool = False
    features: tuple[Feature, ...] = ()
    tables: tuple[WeightTable, ...] = ()
    graph_label: str = ""
    """The feature, of kind bytes, that says of which graph a node is; "" is none."""

    def __post_init__(self) -> None:
        checked_name("node type", self.name)
        distinct(f"node type {self.name!r}: feature", [f.name for f in self.features])
        check_tables(f"node type {self.name!r}", self.tables, self.features)
        if self.graph_label and self.feature(self.graph_label).kind != "bytes":
            raise InvalidRequest(
                f"node type {self.name!r}: graph_label {self.graph_label!r} is {self.feature(self.graph_label).kind}; expected bytes"
            )

    def feature(self, name: str) -> Feature:
        """The feature called ``name``; NotFound otherwise."""
        return _feature(f"node type {self.name!r}", self.features, name)

    def table(self, name: str) -> WeightTable:
        """The weights called ``name``; NotFound otherwise."""
        return table_called(f"node type {self.name!r}", self.tables, name)


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

    def __post_init__(self) -> None:
        for name in (self.src_type, self.relation, self.dst_type):
            checked_name("edge type", name)
        if self.multiplicity not in ("multi", "unique"):
            raise InvalidRequest(f"edge type {self.name!r}: edges {self.multiplicity!r}; expected multi or unique")
        if self.missing not in ("reject", "create"):
            raise InvalidRequest(f"edge type {self.name!r}: missing {self.missing!r}; expected reject or create")
        distinct(f"edge type {self.name!r}: feature", [f.name for f in self.features])
        check_tables(f"edge type {self.name!r}", self.tables, self.features)

    @property
    def name(self) -> str:
        """``src:relation:dst``."""
        return f"{self.src_type}:{self.relation}:{self.dst_type}"

    def feature(self, name: str) -> Feature:
        """The feature called ``name``; NotFound otherwise."""
        return _feature(f"edge type {self.name!r}", self.features, name)

    def table(self, name: str) -> WeightTable:
        """The weights called ``name``; NotFound otherwise."""
        return table_called(f"edge type {self.name!r}", self.tables, name)

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """The features that its tables are made of: they lie beside the edges at both ends."""
        named = {column for table in self.tables for column in table.parsed.columns}
        return tuple(feature.name for feature in self.features if feature.name in named)


def _feature(owner: str, features: tuple[Feature, ...], name: str) -> Feature:
    for feature in features:
        if feature.name == name:
            return feature
    raise NotFound(f"{owner} has no feature {name!r}; it has {', '.join(f.name for f in features) or 'none'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What a space holds. A type's id is its position."""

    node_types: tuple[NodeType, ...]
    edge_types: tuple[EdgeType, ...] = ()
    parts: int = 8
    ids: str = "per_type"
    """``per_type`` or ``global``."""
    placement: str = "mod"
    """``mod`` or ``mix64``."""
    direction: str = "out"
    """Which adjacency is kept: ``out``, ``in`` or ``both``. Out-copies always are: they are the truth."""

    def __post_init__(self) -> None:
        if not self.node_types:
            raise InvalidRequest("a schema needs at least one node type")
        distinct("node type", [t.name for t in self.node_types])
        distinct("edge type", [t.name for t in self.edge_types])
        known = {t.name for t in self.node_types}
        for edge_type in self.edge_types:
            for end in (edge_type.src_type, edge_type.dst_type):
                if end not in known:
                    raise InvalidRequest(f"edge type {edge_type.name!r}: no node type {end!r}; there are {', '.join(sorted(known))}")
        if not 1 <= self.parts <= MAX_PARTS:
            raise InvalidRequest(f"parts {self.parts}: expected 1 to {MAX_PARTS}")
        for word, allowed in (("ids", ("per_type", "global")), ("placement", ("mod", "mix64")), ("direction", ("out", "in", "both"))):
            if getattr(self, word) not in allowed:
                raise InvalidRequest(f"{word} {getattr(self, word)!r}: expected {' or '.join(allowed)}")

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        heads, kinds = ["type", "weighted", "features", "tables"], (("nodes", self.node_types), ("edges", self.edge_types))
        return "".join(
            table(
                f"{what}, in {self.parts} parts, ids {self.ids}",
                heads,
                [[t.name, t.weighted, ", ".join(f.name for f in t.features), ", ".join(w.name for w in t.tables)] for t in types],
            )
            for what, types in kinds
        )

    @property
    def has_in(self) -> bool:
        """Whether in-copies of edges are kept."""
        return self.direction != "out"

    def node_type_id(self, name: str) -> int:
        """The id of a node type; NotFound with what there is."""
        for i, node_type in enumerate(self.node_types):
            if node_type.name == name:
                return i
        raise NotFound(f"no node type {name!r}; there are {', '.join(t.name for t in self.node_types)}")

    def edge_type_id(self, name: str) -> int:
        """The id of an edge type, by its triple or, where that is unambiguous, by its relation."""
        found = [i for i, t in enumerate(self.edge_types) if name in (t.name, t.relation)]
        exact = [i for i in found if self.edge_types[i].name == name]
        if len(exact or found) == 1:
            return (exact or found)[0]
        names = ", ".join(t.name for t in self.edge_types) or "none"
        raise NotFound(f"edge type {name!r} is ambiguous; say which of {names}" if found else f"no edge type {name!r}; there are {names}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for YAML and JSON; ``from_dict`` reads them back."""
        return {
            "parts": self.parts,
            "ids": self.ids,
            "placement": self.placement,
            "direction": self.direction,
            "nodes": {t.name: {**_type_dict(t), **({"graph_label": t.graph_label} if t.graph_label else {})} for t in self.node_types},
            "edges": {t.name: {**_type_dict(t), "edges": t.multiplicity, "missing": t.missing} for t in self.edge_types},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """A schema from plain values, as a YAML file gives them; InvalidRequest names the first wrong one."""
        known = {"parts", "ids", "placement", "direction", "nodes", "edges"}
        known_keys("schema", data, known)
        nodes = tuple(
            NodeType(
                name=str(name),
                **_type_arguments(f"node type {name!r}", spec or {}, {"graph_label"}),
                graph_label=str((spec or {}).get("graph_label") or ""),
            )
            for name, spec in mapping("nodes", data.get("nodes")).items()
        )
        edges = []
        for name, spec in mapping("edges", data.get("edges")).items():
            triple = str(name).split(":")
            if len(triple) != 3:
                raise InvalidRequest(f"edge type {name!r}: expected source:relation:destination")
            spec = spec or {}
            arguments = _type_arguments(f"edge type {name!r}", spec, {"edges", "missing"})
            edges.append(
                EdgeType(
                    src_type=triple[0],
                    relation=triple[1],
                    dst_type=triple[2],
                    multiplicity=str(spec.get("edges", "multi")),
                    missing=str(spec.get("missing", "reject")),
                    **arguments,
                )
            )
        scalars = {key: data[key] for key in ("parts", "ids", "placement", "direction") if key in data}
        if not isinstance(scalars.get("parts", 1), int):
            raise InvalidRequest(f"parts {scalars['parts']!r}: expected a whole number")
        return cls(node_types=nodes, edge_types=tuple(edges), **scalars)

    def to_proto(self) -> pb.Schema:
        """As it travels."""
        return pb.Schema(
            node_types=[pb.NodeType(name=t.name, weighted=t.weighted, graph_label=t.graph_label, **_columns_to_proto(t)) for t in self.node_types],
            edge_types=[
                pb.EdgeType(
                    src_type=t.src_type,
                    relation=t.relation,
                    dst_type=t.dst_type,
                    weighted=t.weighted,
                    multiplicity=t.multiplicity.upper(),
                    missing=t.missing.upper(),
                    **_columns_to_proto(t),
                )
                for t in self.edge_types
            ],
            parts=self.parts,
            ids=self.ids.upper(),
            placement=self.placement.upper(),
            direction=self.direction.upper(),
        )

    @classmethod
    def from_proto(cls, message: pb.Schema) -> Schema:
        """A schema from the wire; unset words get their defaults, impossible ones are InvalidRequest."""
        return cls(
            node_types=tuple(
                NodeType(name=t.name, weighted=t.weighted, graph_label=t.graph_label, **_columns_from_proto(t)) for t in message.node_types
            ),
            edge_types=tuple(
                EdgeType(
                    src_type=t.src_type,
                    relation=t.relation,
                    dst_type=t.dst_type,
                    weighted=t.weighted,
                    multiplicity=word_of(pb.Multiplicity, t.multiplicity, "multi"),
                    missing=word_of(pb.Missing, t.missing, "reject"),
                    **_columns_from_proto(t),
                )
                for t in message.edge_types
            ),
            parts=message.parts,
            ids=word_of(pb.IdScope, message.ids, "per_type"),
            placement=word_of(pb.Placement, message.placement, "mod"),
            direction=word_of(pb.Direction, message.direction, "out"),
        )


def _type_dict(owner: NodeType | EdgeType) -> dict[str, Any]:
    return {
        "weighted": owner.weighted,
        "features": {f.name: {"kind": f.kind, "dtype": f.dtype, "shape": list(f.shape)} for f in owner.features},
        **tables_to_dict(owner.tables),
    }


def _type_arguments(what: str, spec: Any, more: set[str]) -> dict[str, Any]:
    if not isinstance(spec, Mapping):
        raise InvalidRequest(f"{what}: expected a mapping, not {type(spec).__name__}")
    known_keys(what, spec, {"weighted", "features", "tables"} | more)
    features = []
    for name, column in mapping(f"{what} features", spec.get("features")).items():
        column = column or {}
        if isinstance(column, str):  # the short form, `age: int64`
            column = {"kind": "bytes"} if column == "bytes" else {"dtype": column}
        column = mapping(f"{what}: feature {name!r}", column)
        known_keys(f"{what}: feature {name!r}", column, {"kind", "dtype", "shape"})
        shape = column.get("shape", [])
        shape = [shape] if isinstance(shape, int) else shape
        if not isinstance(shape, list | tuple) or not all(isinstance(extent, int) for extent in shape):
            raise InvalidRequest(f"{what}: feature {name!r}: shape {shape!r}; expected a list of whole numbers")
        features.append(Feature(name=str(name), kind=str(column.get("kind", "dense")), dtype=str(column.get("dtype", "float32")), shape=tuple(shape)))
    return {"weighted": bool(spec.get("weighted", False)), "features": tuple(features), "tables": tables_of(what, spec.get("tables"))}


def _columns_to_proto(owner: NodeType | EdgeType) -> dict[str, Any]:
    return {
        "features": [_feature_to_proto(feature) for feature in owner.features],
        "tables": tables_to_proto(owner.tables),
    }


def _columns_from_proto(message: pb.NodeType | pb.EdgeType) -> dict[str, Any]:
    return {
        "features": tuple(_feature_from_proto(feature) for feature in message.features),
        "tables": tables_from(message.tables),
    }


def _feature_to_proto(feature: Feature) -> pb.Feature:
    return pb.Feature(name=feature.name, kind=feature.kind.upper(), dtype=feature.dtype, shape=feature.shape)


def _feature_from_proto(message: pb.Feature) -> Feature:
    return Feature(
        name=message.name, kind=word_of(pb.FeatureKind, message.kind, "dense"), dtype=message.dtype or "float32", shape=tuple(message.shape)
    )
