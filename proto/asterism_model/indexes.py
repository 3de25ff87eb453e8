"""Column indexes: orders of the rows of a type, for sampling under filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from asterism_model.elements import EDGE, NODE
from asterism_model.filters.binding import bind, resolve_column
from asterism_model.filters.syntax import ColumnOperand, parse
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_model.schema.index_columns import EDGE_COLUMNS, parse_column
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb

HASH, RANGE = "hash", "range"
KINDS = (HASH, RANGE)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Index:
    """An index of the rows of one type by a column, in every partition of a version."""

    element: int
    """1: nodes; 2: edges."""
    type_id: int
    column: str
    """Column in the canonical syntax of filters."""
    kind: str
    """``hash`` or ``range``.

    A hash index groups rows by equal values, strings included. A range index sorts rows by value,
    and the edges of each node too.
    """

    @property
    def parsed_column(self) -> ColumnOperand:
        """The column as an operand of filters."""
        return parse_column(self.column)

    def describe(self, schema: Schema) -> str:
        """Return the index as text for messages."""
        types: tuple[NodeType | EdgeType, ...] = (
            schema.node_types if self.element == NODE else schema.edge_types
        )
        return f"{self.kind} of {types[self.type_id].name} on {self.column}"


def resolve_index(schema: Schema, *, type_name: str, column: str, kind: str) -> Index:
    """Return an index from the names of its type and column.

    Parameters
    ----------
    schema : Schema
    type_name : str
        A node type, or an edge type.
    column : str
        Column in the syntax of filters. For nodes: a scalar feature, one value of a vector
        (``size[2]``), ``id`` or ``weight``. For edges: ``id``, ``src``, ``dst``, ``weight``, or a
        feature that the schema declares under ``index``.
    kind : str
        ``hash`` or ``range``.

    Returns
    -------
    Index

    Raises
    ------
    NotFound
        If there is no such type or column.
    InvalidRequest
        If the column does not support an index of this kind.
    """
    if kind not in KINDS:
        raise InvalidRequest(f"index kind {kind!r}: expected {' or '.join(KINDS)}")
    operand = parse_column(column)
    if any(type_name in (edge.name, edge.relation) for edge in schema.edge_types) and all(
        type_name != node.name for node in schema.node_types
    ):
        return _edge_index(schema, schema.edge_type_id(type_name), operand, kind)
    type_id = schema.node_type_id(type_name)
    resolved = resolve_column(schema, NODE, type_id, operand)
    if resolved.kind == "ragged" or (resolved.feature is None and operand.name == "type"):
        raise InvalidRequest(f"index on {column!r}: expected a column of numbers or strings")
    if resolved.kind == "bytes" and kind != HASH:
        raise InvalidRequest(
            f"index on {column!r}: this is a string column, which only supports tests for "
            f"equality; use kind {HASH}"
        )
    if resolved.kind != "bytes":  # binding refuses a vector without an index, naming its shape
        bind(parse(f"{operand} == 0"), schema, NODE, type_id)
    return Index(element=NODE, type_id=type_id, column=str(operand), kind=kind)


def index_from_options(schema: Schema, options: Mapping[str, str]) -> Index:
    """Return the index described by the options ``type``, ``on`` and ``kind`` of a job."""
    return resolve_index(
        schema, type_name=options["type"], column=options["on"], kind=options["kind"]
    )


def _edge_index(schema: Schema, type_id: int, operand: ColumnOperand, kind: str) -> Index:
    owner = schema.edge_types[type_id]
    resolved = resolve_column(schema, EDGE, type_id, operand)
    if operand.endpoint or (resolved.feature is None and operand.name not in EDGE_COLUMNS):
        raise InvalidRequest(f"index on {str(operand)!r}: expected a column of the edge itself")
    if resolved.feature is not None and resolved.feature.name not in owner.indexed:
        raise InvalidRequest(
            f"index on {str(operand)!r}: only features that are declared under `index` in the "
            f"schema are stored with the edges; add `index: [{operand}]` to {owner.name!r} when "
            "you create the space"
        )
    if operand.element is not None:
        raise InvalidRequest(f"index on {str(operand)!r}: the column has one value; omit [ ]")
    return Index(element=EDGE, type_id=type_id, column=str(operand), kind=kind)


def declared_indexes(schema: Schema) -> tuple[Index, ...]:
    """Return the indexes that a schema declares: ``hash`` for strings, else ``range``; sorted."""
    indexes = []
    for type_id, node in enumerate(schema.node_types):
        for text in node.index:
            kind = (
                HASH
                if resolve_column(schema, NODE, type_id, parse_column(text)).kind == "bytes"
                else RANGE
            )
            indexes.append(Index(element=NODE, type_id=type_id, column=text, kind=kind))
    for type_id, edge in enumerate(schema.edge_types):
        indexes += [
            Index(element=EDGE, type_id=type_id, column=text, kind=RANGE) for text in edge.index
        ]
    return tuple(sorted(indexes))


def indexes_to_proto(indexes: Iterable[Index]) -> list[common_pb.Index]:
    """Return the indexes as messages."""
    return [
        common_pb.Index(
            element=common_pb.Element.Name(index.element),
            type_id=index.type_id,
            column=index.column,
            kind=index.kind,
        )
        for index in indexes
    ]


def indexes_from_proto(messages: Iterable[common_pb.Index]) -> tuple[Index, ...]:
    """Return the indexes in messages; raise InvalidRequest for an unknown element or kind."""
    return tuple(_index_from_proto(message) for message in messages)


def _index_from_proto(message: common_pb.Index) -> Index:
    if message.element not in (NODE, EDGE):
        raise InvalidRequest(
            f"index on {message.column!r}: element={message.element}: expected NODE ({NODE}) "
            f"or EDGE ({EDGE})"
        )
    if message.kind not in KINDS:
        raise InvalidRequest(
            f"index on {message.column!r}: kind={message.kind!r}: expected {' or '.join(KINDS)}"
        )
    return Index(
        element=message.element, type_id=message.type_id, column=message.column, kind=message.kind
    )
