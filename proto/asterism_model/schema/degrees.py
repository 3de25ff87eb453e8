"""Degrees as columns that weights of nodes are made of: ``in_degree``, ``out_degree``, and of one
edge type ``in_degree:buys``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asterism_proto.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from asterism_model.schema.schema import NodeType, Schema

DEGREE_COLUMNS = {"in_degree": True, "out_degree": False}
"""Whether it is edges to the node that are counted."""


def is_degree(column: str) -> bool:
    """Whether a column of an expression is a degree, unless a feature has this name."""
    return column.partition(":")[0] in DEGREE_COLUMNS


def degree_columns(owner: NodeType, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the columns that are degrees: no feature has their names."""
    features = {feature.name for feature in owner.features}
    return tuple(column for column in columns if column not in features and is_degree(column))


def resolve_degree(schema: Schema, owner: NodeType, column: str) -> tuple[bool, tuple[int, ...]]:
    """Whether a degree is of edges to the node, and of which edge types: all that end there, or the
    one that is named.

    Raises
    ------
    InvalidRequest
        Where there is no such edge type, it does not end at nodes of the type, or edges are not
        kept that way round.
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
                f"{label}: edges of {edge.name!r} {'lead to' if incoming else 'start at'} others"
            )
        edge_type_ids = (edge_type_id,)
    if not edge_type_ids:
        raise InvalidRequest(
            f"{label}: no edge type {'leads to' if incoming else 'starts at'} these nodes"
        )
    if incoming and not schema.has_in:
        raise InvalidRequest(
            f"{label}: the space keeps edges at their sources alone; make it with direction: both"
        )
    return incoming, edge_type_ids


def check_degrees(schema: Schema) -> None:
    """InvalidRequest for the first degree that can not be counted."""
    for owner in schema.node_types:
        for table in owner.tables:
            for column in degree_columns(owner, table.parsed_expression.columns):
                resolve_degree(schema, owner, column)
