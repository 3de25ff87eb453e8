"""Whether a space can hold what is to be loaded into it."""

from __future__ import annotations

from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import EdgeType, NodeType, Schema


def check_fits(source: Schema, space: Schema) -> None:
    """Refuse a source that a space can not hold."""
    if source.named != space.named or source.salt != space.salt:
        told = [f"{schema.ids}{f' with salt {schema.salt}' if schema.named else ''}" for schema in (source, space)]
        raise InvalidRequest(f"ids are {told[0]} in the source, {told[1]} in the space; say `ids` and `salt` as the space has them")
    for node_type in source.node_types:
        _check_type("node type", node_type, space.node_types[space.node_type_id(node_type.name)])
    for edge_type in source.edge_types:
        there = space.edge_types[space.edge_type_id(edge_type.name)]
        _check_type("edge type", edge_type, there)
        if edge_type.multiplicity != there.multiplicity:
            raise InvalidRequest(
                f"edge type {edge_type.name!r}: its edges are {edge_type.multiplicity} in the source, {there.multiplicity} in the space"
            )
        if edge_type.missing == "create" and there.missing == "reject":
            raise InvalidRequest(f"edge type {edge_type.name!r}: the source says `missing: create`, the space rejects edges to unknown nodes")


def _check_type(what: str, found: NodeType | EdgeType, there: NodeType | EdgeType) -> None:
    if found.weighted and not there.weighted:
        raise InvalidRequest(f"{what} {found.name!r} has weights in the source, the space was made without")
    for table in found.tables:
        if there.table(table.name) != table:
            raise InvalidRequest(f"{what} {found.name!r}: the source has {table}, the space {there.table(table.name)}")
    for feature in found.features:
        if there.feature(feature.name) != feature:
            raise InvalidRequest(f"{what} {found.name!r}: the source has {feature}, the space {there.feature(feature.name)}")
