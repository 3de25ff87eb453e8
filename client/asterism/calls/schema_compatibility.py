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
            f"ids={descriptions[0]} in the source: expected {descriptions[1]}, as in the space; "
            "set `ids` and `salt` of the source to those of the space"
        )
    for node_type in source.node_types:
        _check_type("node type", node_type, space.node_types[space.node_type_id(node_type.name)])
    for edge_type in source.edge_types:
        existing = space.edge_types[space.edge_type_id(edge_type.name)]
        _check_type("edge type", edge_type, existing)
        if edge_type.multiplicity != existing.multiplicity:
            raise InvalidRequest(
                f"edge type {edge_type.name!r} with edges: {edge_type.multiplicity} in the "
                f"source: expected {existing.multiplicity}, as in the space"
            )
        if edge_type.missing == "create" and existing.missing == "reject":
            raise InvalidRequest(
                f"edge type {edge_type.name!r} with missing: create in the source: expected "
                "missing: reject, as in the space; load the nodes from files of their own"
            )


def _check_type(kind: str, source: NodeType | EdgeType, existing: NodeType | EdgeType) -> None:
    if source.weighted and not existing.weighted:
        raise InvalidRequest(
            f"{kind} {source.name!r} with weights in the source: expected none, as in the space; "
            "leave `weight` out, or load into a space with weights"
        )
    for table in source.tables:
        if existing.table(table.name) != table:
            raise InvalidRequest(
                f"{kind} {source.name!r} with {table} in the source: expected "
                f"{existing.table(table.name)}, as in the space"
            )
    for feature in source.features:
        if existing.feature(feature.name) != feature:
            raise InvalidRequest(
                f"{kind} {source.name!r} with {feature} in the source: expected "
                f"{existing.feature(feature.name)}, as in the space"
            )
