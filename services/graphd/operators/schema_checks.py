"""Checks of a request's types and weights against the schema.

Used by `graphd.api`, which decodes requests, and by operators that follow further types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asterism_model.elements import NODE
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_model.weight_names import OWN_WEIGHTS, canonical_weight_name
from asterism_proto.errors import NotFound


def resolve_weight_name(element: int, schema: Schema, types: Sequence[int], name: str) -> str:
    """Return the canonical name of a request's weights; NotFound if a type lacks it."""
    for type_id in types:
        if name not in OWN_WEIGHTS:
            (schema.node_types if element == NODE else schema.edge_types)[type_id].table(name)
    return canonical_weight_name(name)


def check_types(element: str, schema: Schema, types: Iterable[int]) -> None:
    """Raise NotFound for a type id that is not in the schema."""
    schema_types: Sequence[NodeType | EdgeType] = (
        schema.node_types if element == "node" else schema.edge_types
    )
    for type_id in types:
        if type_id >= len(schema_types):
            names = ", ".join(f"{i} ({t.name})" for i, t in enumerate(schema_types)) or "none"
            raise NotFound(f"no {element} type {type_id}; there are {names}")
