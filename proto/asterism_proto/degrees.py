"""Degrees as columns that weights of nodes are made of: ``in_degree``, ``out_degree``, and of one edge type ``in_degree:buys``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asterism_proto.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from asterism_proto.schema import NodeType, Schema

WORDS = {"in_degree": True, "out_degree": False}
"""Whether it is edges to the node that are counted."""


def is_degree(column: str) -> bool:
    """Whether a column of an expression is a degree, unless a feature has this name."""
    return column.partition(":")[0] in WORDS


def degrees_of(owner: NodeType, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the columns that are degrees: no feature has their names."""
    features = {feature.name for feature in owner.features}
    return tuple(column for column in columns if column not in features and is_degree(column))


def counted(schema: Schema, owner: NodeType, column: str) -> tuple[bool, tuple[int, ...]]:
    """Whether a degree is of edges to the node, and of which edge types: all that end there, or the one that is named.

    Raises
    ------
    InvalidRequest
        Where there is no such edge type, it does not end at nodes of the type, or edges are not kept that way round.
    """
    word, _, name = column.partition(":")
    incoming = WORDS[word]
    ending = tuple(e for e, edge in enumerate(schema.edge_types) if (edge.dst_type if incoming else edge.src_type) == owner.name)
    what = f"node type {owner.name!r}: column {column!r}"
    if name:
        try:
            chosen = schema.edge_type_id(name)
        except NotFound as error:
            raise InvalidRequest(f"{what}: {error}") from None
        if chosen not in ending:
            edge = schema.edge_types[chosen]
            raise InvalidRequest(f"{what}: edges of {edge.name!r} {'lead to' if incoming else 'start at'} others")
        ending = (chosen,)
    if not ending:
        raise InvalidRequest(f"{what}: no edge type {'leads to' if incoming else 'starts at'} these nodes")
    if incoming and not schema.has_in:
        raise InvalidRequest(f"{what}: the space keeps edges at their sources alone; make it with direction: both")
    return incoming, ending


def check_degrees(schema: Schema) -> None:
    """InvalidRequest for the first degree that can not be counted."""
    for owner in schema.node_types:
        for table in owner.tables:
            for column in degrees_of(owner, table.parsed.columns):
                counted(schema, owner, column)
