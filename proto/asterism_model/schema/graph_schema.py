"""The schema of a graph space: its node and edge types, and how they are partitioned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from asterism_model import string_ids
from asterism_model.html import table as html_table
from asterism_model.schema.features import STRING_ID_FEATURE
from asterism_model.schema.node_edge_types import (
    EdgeType,
    NodeType,
    edge_type_from_dict,
    edge_type_from_proto,
    edge_type_to_dict,
    edge_type_to_proto,
    node_type_from_dict,
    node_type_from_proto,
    node_type_to_dict,
    node_type_to_proto,
)
from asterism_model.schema.time_columns import is_float
from asterism_model.schema.weight_tables import DEGREE_COLUMNS, is_degree
from asterism_model.validation import (
    as_mapping,
    check_distinct,
    check_keys,
    enum_name,
    normalize_name,
)
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import common_pb2 as common_pb

MAX_PARTS = 4096
MAX_LISTED_NAMES = 5
"""Maximum number of names in the list of a one-line representation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Node and edge types of a graph space, and its partitioning.

    The id of a type is its position in ``node_types`` or ``edge_types``.
    """

    node_types: tuple[NodeType, ...]
    edge_types: tuple[EdgeType, ...] = ()
    parts: int = 8
    ids: str = "per_type"
    """Scope of node ids: ``per_type``, ``global``, or ``string``. With ``string``, nodes have
    string ids, which are hashed to int64 ids; see `asterism_model.string_ids`.
    """
    salt: int = 0
    """Salt of the hash of string ids, below 2^63; ``ids: string`` only.

    Choose another salt if two strings of a type get the same id.
    """
    placement: str = "mod"
    """Function that assigns ids to partitions: ``mod`` or ``mix64``."""
    direction: str = "out"
    """Stored adjacency: ``out``, ``in`` or ``both``.

    Out-copies of edges are always stored, because they are the source of truth.
    """
    edge_ends: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)
    """Ids of the node types at the source and the destination of each edge type."""

    def __repr__(self) -> str:
        return (
            f"Schema(node_types={short_list([t.name for t in self.node_types])}, "
            f"edge_types={short_list([t.name for t in self.edge_types])}, parts={self.parts}, "
            f"ids={self.ids!r}, direction={self.direction!r})"
        )

    def __post_init__(self) -> None:
        if not self.node_types:
            raise InvalidRequest("node_types: expected at least one node type")
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
        if (
            not isinstance(self.parts, Integral)
            or isinstance(self.parts, bool)
            or not 1 <= self.parts <= MAX_PARTS
        ):
            raise InvalidRequest(f"parts {self.parts!r}: expected 1 to {MAX_PARTS}")
        for field_name, allowed in (
            ("ids", ("per_type", "global", "string")),
            ("placement", ("mod", "mix64")),
            ("direction", ("out", "in", "both")),
        ):
            if getattr(self, field_name) not in allowed:
                raise InvalidRequest(
                    f"{field_name} {getattr(self, field_name)!r}: expected {' or '.join(allowed)}"
                )
        type_ids = {t.name: i for i, t in enumerate(self.node_types)}
        ends = tuple((type_ids[t.src_type], type_ids[t.dst_type]) for t in self.edge_types)
        object.__setattr__(self, "edge_ends", ends)
        _check_time_kinds(self)
        _check_degrees(self)
        self._add_string_id_features()

    def _add_string_id_features(self) -> None:
        """Add `STRING_ID_FEATURE` to every node type if ids are strings; else refuse its name."""
        if (
            not isinstance(self.salt, int)
            or isinstance(self.salt, bool)
            or not 0 <= self.salt < 1 << 63
        ):
            raise InvalidRequest(f"salt {self.salt!r}: expected an integer from 0 to 2^63 - 1")
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
                f"salt {self.salt}: expected a salt only with `ids: string`; ids are {self.ids}"
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
                    f"{owner.name!r}: feature {string_ids.ID_COLUMN!r}: the name is reserved; "
                    "choose another name"
                )

    def _repr_html_(self) -> str:
        """Return the types as HTML tables, for notebooks."""
        return "".join(
            html_table(
                f"{label}, in {self.parts} partitions, ids {self.ids}",
                ["type", "weighted", "features", "tables"],
                [
                    [
                        t.name,
                        "yes" if t.weighted else "no",
                        ", ".join(f.name for f in t.features),
                        ", ".join(w.name for w in t.tables),
                    ]
                    for t in types
                ],
            )
            for label, types in (("nodes", self.node_types), ("edges", self.edge_types))
        )

    @property
    def named(self) -> bool:
        """Name of `has_string_ids` in earlier releases."""
        return self.has_string_ids

    @property
    def has_string_ids(self) -> bool:
        """True if nodes have string ids."""
        return self.ids == "string"

    @property
    def has_in(self) -> bool:
        """True if in-copies of edges are stored."""
        return self.direction != "out"

    def node_type_id(self, name: str) -> int:
        """Return the id of a node type; raise NotFound with the names of all types."""
        normalized = normalize_name(name)
        for i, node_type in enumerate(self.node_types):
            if node_type.name == normalized:
                return i
        raise NotFound(
            f"no node type {name!r}; there are {', '.join(t.name for t in self.node_types)}"
        )

    def edge_type_id(self, name: str) -> int:
        """Return the id of an edge type.

        Parameters
        ----------
        name : str
            The triple ``src:relation:dst``, or the relation alone if it is unambiguous.

        Raises
        ------
        NotFound
            If no edge type has the name, or several have it.
        """
        normalized = normalize_name(name)
        matches = [i for i, t in enumerate(self.edge_types) if normalized in (t.name, t.relation)]
        exact = [i for i in matches if self.edge_types[i].name == normalized]
        if len(exact or matches) == 1:
            return (exact or matches)[0]
        available = ", ".join(t.name for t in self.edge_types) or "none"
        raise NotFound(
            f"edge type {name!r} is ambiguous; use one of {available}"
            if matches
            else f"no edge type {name!r}; there are {available}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for YAML or JSON, as `from_dict` reads them."""
        return {
            "parts": self.parts,
            "ids": self.ids,
            **({"salt": self.salt} if self.has_string_ids else {}),
            "placement": self.placement,
            "direction": self.direction,
            "nodes": {t.name: node_type_to_dict(t) for t in self.node_types},
            "edges": {t.name: edge_type_to_dict(t) for t in self.edge_types},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Return a schema from plain values, such as the content of a YAML file.

        Raises
        ------
        InvalidRequest
            For the first invalid value.
        """
        allowed_keys = {"parts", "ids", "salt", "placement", "direction", "nodes", "edges"}
        if not isinstance(data, Mapping):
            raise InvalidRequest(
                f"schema: expected a mapping with nodes and edges, found {type(data).__name__}"
            )
        check_keys("schema", data, allowed_keys)
        nodes = tuple(
            node_type_from_dict(name, spec)
            for name, spec in as_mapping("nodes", data.get("nodes")).items()
        )
        edges = tuple(
            edge_type_from_dict(name, spec)
            for name, spec in as_mapping("edges", data.get("edges")).items()
        )
        scalars = {
            key: data[key]
            for key in ("parts", "ids", "salt", "placement", "direction")
            if key in data
        }
        if not isinstance(scalars.get("parts", 1), int):
            raise InvalidRequest(f"parts {scalars['parts']!r}: expected an integer")
        return cls(node_types=nodes, edge_types=edges, **scalars)

    def to_proto(self) -> common_pb.Schema:
        """Return the schema as a message."""
        return common_pb.Schema(
            node_types=[node_type_to_proto(t) for t in self.node_types],
            edge_types=[edge_type_to_proto(t) for t in self.edge_types],
            parts=self.parts,
            ids=self.ids.upper(),
            salt=self.salt,
            placement=self.placement.upper(),
            direction=self.direction.upper(),
        )

    @classmethod
    def from_proto(cls, message: common_pb.Schema) -> Schema:
        """Return the schema in a message; unset enums get their defaults.

        Raises
        ------
        InvalidRequest
            For an unknown enum value or an invalid schema.
        """
        return cls(
            node_types=tuple(node_type_from_proto(t) for t in message.node_types),
            edge_types=tuple(edge_type_from_proto(t) for t in message.edge_types),
            parts=message.parts,
            ids=enum_name(common_pb.IdScope, message.ids, "per_type"),
            salt=message.salt,
            placement=enum_name(common_pb.Placement, message.placement, "mod"),
            direction=enum_name(common_pb.Direction, message.direction, "out"),
        )


def _check_time_kinds(schema: Schema) -> None:
    """Raise InvalidRequest if edges and the nodes at their ends mix integer and float times.

    The later of both times must have one dtype.
    """
    for edge in (edge for edge in schema.edge_types if edge.time):
        edge_dtype = edge.feature(edge.time).dtype
        for node in (
            schema.node_types[schema.node_type_id(name)] for name in (edge.src_type, edge.dst_type)
        ):
            if node.time and is_float(node.feature(node.time).dtype) != is_float(edge_dtype):
                raise InvalidRequest(
                    f"edge type {edge.name!r}: its time {edge.time!r} is {edge_dtype}, that "
                    f"of node type {node.name!r} {node.feature(node.time).dtype}; "
                    "declare both as integers, or both as floats"
                )


def degree_columns(owner: NodeType, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that are degrees; a feature of the same name takes precedence."""
    features = {feature.name for feature in owner.features}
    return tuple(column for column in columns if column not in features and is_degree(column))


def resolve_degree(schema: Schema, owner: NodeType, column: str) -> tuple[bool, tuple[int, ...]]:
    """Resolve a degree column of a node type.

    Parameters
    ----------
    schema : Schema
    owner : NodeType
    column : str
        ``in_degree`` or ``out_degree``, or of one edge type, as ``in_degree:buys``.

    Returns
    -------
    incoming : bool
        True for an in-degree.
    edge_type_ids : tuple of int
        The counted edge types: the one in the name, or all at nodes of the type.

    Raises
    ------
    InvalidRequest
        If there is no such edge type at nodes of the type, or edges are not stored in that
        direction.
    """
    degree_name, _, name = column.partition(":")
    incoming = DEGREE_COLUMNS[degree_name]
    edge_type_ids = tuple(
        e
        for e, edge in enumerate(schema.edge_types)
        if (edge.dst_type if incoming else edge.src_type) == owner.name
    )
    label = f"node type {owner.name!r}: column {column!r}"
    if name:
        try:
            edge_type_id = schema.edge_type_id(name)
        except NotFound as error:
            raise InvalidRequest(f"{label}: {error}") from None
        if edge_type_id not in edge_type_ids:
            edge = schema.edge_types[edge_type_id]
            raise InvalidRequest(
                f"{label}: edges of {edge.name!r} {'lead to' if incoming else 'start at'} other "
                "nodes"
            )
        edge_type_ids = (edge_type_id,)
    if not edge_type_ids:
        raise InvalidRequest(
            f"{label}: no edge type {'leads to' if incoming else 'starts at'} these nodes"
        )
    if incoming and not schema.has_in:
        raise InvalidRequest(
            f"{label}: the space keeps edges at their sources alone; create it with "
            "`direction: both`"
        )
    return incoming, edge_type_ids


def _check_degrees(schema: Schema) -> None:
    """Raise InvalidRequest for the first degree that cannot be counted."""
    for owner in schema.node_types:
        for table in owner.tables:
            for column in degree_columns(owner, table.parsed_expression.columns):
                resolve_degree(schema, owner, column)


def short_list(names: Sequence[str]) -> str:
    """Return the repr of a list of names, of which it has at most `MAX_LISTED_NAMES`."""
    listed = ", ".join(map(repr, names[:MAX_LISTED_NAMES]))
    more = len(names) - MAX_LISTED_NAMES
    return f"[{listed}{f', and {more} more' if more > 0 else ''}]"
