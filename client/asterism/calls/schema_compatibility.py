"""Check that a graph space can hold the data of a source."""

from __future__ import annotations

from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest


def check_schema_compatible(source: Schema, space: Schema) -> None:
    """Reject a source that a space cannot hold.

    Raises
    ------
    InvalidRequest
        If ids, weights, tables, features or edge types of the source do not fit the space.
    """
    if source.has_string_ids != space.has_string_ids or source.salt != space.salt:
        descriptions = [
            f"{schema.ids}{f' with salt {schema.salt}' if schema.has_string_ids else ''}"
            for schema in (source, space)
        ]
        raise InvalidRequest(
            f"ids are {descriptions[0]} in the source, {descriptions[1]} in the space; say "
            "`ids` and `salt` as the space has them"
        )
    for node_type in source.node_types:
        _check_type("node type", node_type, space.node_types[space.node_type_id(node_type.name)])
    for edge_type in source.edge_types:
        existing = space.edge_types[space.edge_type_id(edge_type.name)]
        _check_type("edge type", edge_type, existing)
        if edge_type.multiplicity != existing.multiplicity:
            raise InvalidRequest(
                f"edge type {edge_type.name!r}: its edges are {edge_type.multiplicity} in "
                f"the source, {existing.multiplicity} in the space"
            )
        if edge_type.missing == "create" and existing.missing == "reject":
            raise InvalidRequest(
                f"edge type {edge_type.name!r}: the source says `missing: create`, the space "
                "rejects edges to unknown nodes"
            )


def _check_type(kind: str, source: NodeType | EdgeType, existing: NodeType | EdgeType) -> None:
    if source.weighted and not existing.weighted:
        raise InvalidRequest(
            f"{kind} {source.name!r} has weights in the source, the space was made without"
        )
    for table in source.tables:
        if existing.table(table.name) != table:
            raise InvalidRequest(
                f"{kind} {source.name!r}: the source has {table}, the space "
                f"{existing.table(table.name)}"
            )
    for feature in source.features:
        if existing.feature(feature.name) != feature:
            raise InvalidRequest(
                f"{kind} {source.name!r}: the source has {feature}, the space "
                f"{existing.feature(feature.name)}"
            )
