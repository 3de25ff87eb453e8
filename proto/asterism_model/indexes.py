"""Indexes: which columns of a type a version keeps its rows in order of, for draws under
conditions.
"""

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
    """The rows of one type in order of a column, in every part of a version."""

    element: int
    """1: nodes; 2: edges."""
    type_id: int
    column: str
    """As conditions write it, canonical."""
    kind: str
    """``hash``: rows by equal values, of texts too; ``range``: rows by value, of edges those of
    each node as well.
    """

    @property
    def parsed_column(self) -> ColumnOperand:
        """The column."""
        return parse_column(self.column)

    def describe(self, schema: Schema) -> str:
        """In words."""
        types: tuple[NodeType | EdgeType, ...] = (
            schema.node_types if self.element == NODE else schema.edge_types
        )
        return f"{self.kind} of {types[self.type_id].name} on {self.column}"


def resolve_index(schema: Schema, *, type_name: str, column: str, kind: str) -> Index:
    """The index that somebody names.

    Parameters
    ----------
    schema : Schema
    type_name : str
        A node type, or an edge type.
    column : str
        Of nodes a scalar feature, ``size[2]`` for one value of a vector, ``id`` or ``weight``; as
        conditions write it. Of edges ``id``, ``src``, ``dst``, ``weight``, or a feature that the
        schema declares under ``index``.
    kind : str

    Raises
    ------
    NotFound
        Where there is no such type or column.
    InvalidRequest
        Where a column can not be kept in order so.
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
        raise InvalidRequest(f"index on {column!r}: expected a column of numbers or texts")
    if resolved.kind == "bytes" and kind != HASH:
        raise InvalidRequest(
            f"index on {column!r}: it is a text, of which only equality can be asked; make "
            f"it of kind {HASH}"
        )
    if resolved.kind != "bytes":  # a vector without the place of a value is refused with its shape
        bind(parse(f"{operand} == 0"), schema, NODE, type_id)
    return Index(element=NODE, type_id=type_id, column=str(operand), kind=kind)


def index_from_options(schema: Schema, options: Mapping[str, str]) -> Index:
    """The index that options of a job name: ``type``, ``on`` and ``kind``."""
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
            f"index on {str(operand)!r}: a feature of edges lies by edge id, and beside the "
            f"edges only where the schema of {owner.name!r} says so; "
            f"declare `index: [{operand}]` there when the space is made"
        )
    if operand.element is not None:
        raise InvalidRequest(f"index on {str(operand)!r}: it is one value; leave [ ] out")
    return Index(element=EDGE, type_id=type_id, column=str(operand), kind=kind)


def declared_indexes(schema: Schema) -> tuple[Index, ...]:
    """The indexes that a schema declares: of each column one by value, of texts by equality."""
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
    """As they travel."""
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
    """Return the indexes of messages; InvalidRequest where one is of no element or kind that there
    is.
    """
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
