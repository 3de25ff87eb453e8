"""Indexes: which columns of a type a version keeps its rows in order of, for draws under conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from asterism_proto.condition import Column, parse
from asterism_proto.declared import OF_EDGES, column_of
from asterism_proto.errors import InvalidRequest
from asterism_proto.meaning import EDGE, NODE, bound, meant
from asterism_proto.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb

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
    """``hash``: rows by equal values, of texts too; ``range``: rows by value, of edges those of each node as well."""

    @property
    def parsed(self) -> Column:
        """The column."""
        return column_of(self.column)

    def named(self, schema: Schema) -> str:
        """In words."""
        types: tuple[NodeType | EdgeType, ...] = schema.node_types if self.element == NODE else schema.edge_types
        return f"{self.kind} of {types[self.type_id].name} on {self.column}"


def index_of(schema: Schema, *, type_name: str, column: str, kind: str) -> Index:
    """The index that somebody names.

    Parameters
    ----------
    schema : Schema
    type_name : str
        A node type, or an edge type.
    column : str
        Of nodes a scalar feature, ``size[2]`` for one value of a vector, ``id`` or ``weight``; as conditions write it. Of edges
        ``id``, ``src``, ``dst``, ``weight``, or a feature that the schema declares under ``index``.
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
    asked = column_of(column)
    if any(type_name in (edge.name, edge.relation) for edge in schema.edge_types) and all(type_name != node.name for node in schema.node_types):
        return _of_edges(schema, schema.edge_type_id(type_name), asked, kind)
    type_id = schema.node_type_id(type_name)
    found = meant(schema, NODE, type_id, asked)
    if found.kind == "ragged" or (found.feature is None and asked.name == "type"):
        raise InvalidRequest(f"index on {column!r}: expected a column of numbers or texts")
    if found.kind == "bytes" and kind != HASH:
        raise InvalidRequest(f"index on {column!r}: it is a text, of which only equality can be asked; make it of kind {HASH}")
    if found.kind != "bytes":  # a vector without the place of a value is refused with its shape
        bound(parse(f"{asked} == 0"), schema, NODE, type_id)
    return Index(element=NODE, type_id=type_id, column=str(asked), kind=kind)


def index_asked(schema: Schema, options: Mapping[str, str]) -> Index:
    """The index that options of a job name: ``type``, ``on`` and ``kind``."""
    return index_of(schema, type_name=options["type"], column=options["on"], kind=options["kind"])


def _of_edges(schema: Schema, type_id: int, asked: Column, kind: str) -> Index:
    owner = schema.edge_types[type_id]
    found = meant(schema, EDGE, type_id, asked)
    if asked.of or (found.feature is None and asked.name not in OF_EDGES):
        raise InvalidRequest(f"index on {str(asked)!r}: expected a column of the edge itself")
    if found.feature is not None and found.feature.name not in owner.indexed:
        raise InvalidRequest(
            f"index on {str(asked)!r}: a feature of edges lies by edge id, and beside the edges only where the schema of {owner.name!r} says so; "
            f"declare `index: [{asked}]` there when the space is made"
        )
    if asked.element is not None:
        raise InvalidRequest(f"index on {str(asked)!r}: it is one value; leave [ ] out")
    return Index(element=EDGE, type_id=type_id, column=str(asked), kind=kind)


def declared_of(schema: Schema) -> tuple[Index, ...]:
    """The indexes that a schema declares: of each column one by value, of texts by equality."""
    found = []
    for type_id, node in enumerate(schema.node_types):
        for text in node.index:
            kind = HASH if meant(schema, NODE, type_id, column_of(text)).kind == "bytes" else RANGE
            found.append(Index(element=NODE, type_id=type_id, column=text, kind=kind))
    for type_id, edge in enumerate(schema.edge_types):
        found += [Index(element=EDGE, type_id=type_id, column=text, kind=RANGE) for text in edge.index]
    return tuple(sorted(found))


def indexes_to_proto(indexes: Iterable[Index]) -> list[pb.Index]:
    """As they travel."""
    return [pb.Index(element=pb.Element.Name(each.element), type_id=each.type_id, column=each.column, kind=each.kind) for each in indexes]


def indexes_from_proto(messages: Iterable[pb.Index]) -> tuple[Index, ...]:
    """Return the indexes of messages; InvalidRequest where one is of no element or kind that there is."""
    return tuple(_from_proto(message) for message in messages)


def _from_proto(message: pb.Index) -> Index:
    if message.element not in (NODE, EDGE):
        raise InvalidRequest(f"index on {message.column!r}: element={message.element}: expected NODE ({NODE}) or EDGE ({EDGE})")
    if message.kind not in KINDS:
        raise InvalidRequest(f"index on {message.column!r}: kind={message.kind!r}: expected {' or '.join(KINDS)}")
    return Index(element=message.element, type_id=message.type_id, column=message.column, kind=message.kind)
