"""Times of edges for temporal filters: the edge's, the neighbor's, or the later of both."""

from __future__ import annotations

from asterism_model.schema.features import Feature
from asterism_model.schema.graph_schema import Schema
from asterism_model.schema.time_columns import is_float


def neighbor_time(schema: Schema, edge_type: int, *, incoming: bool) -> tuple[int, Feature] | None:
    """Return the id of the neighbors' node type and its time feature; None if it has no time.

    Parameters
    ----------
    schema : Schema
    edge_type : int
    incoming : bool
        Follow edges against their direction: neighbors are their sources.
    """
    edge = schema.edge_types[edge_type]
    node_type = schema.node_type_id(edge.src_type if incoming else edge.dst_type)
    owner = schema.node_types[node_type]
    return (node_type, owner.feature(owner.time)) if owner.time else None


def edge_time_dtype(schema: Schema, edge_type: int, *, incoming: bool) -> str:
    """Return the dtype of the times of edges, ``int64`` or ``float64``; "" if they have none.

    The time of an edge is its own, that of the neighbor, or the later of both.
    """
    edge, neighbor = (
        schema.edge_types[edge_type],
        neighbor_time(schema, edge_type, incoming=incoming),
    )
    dtypes = ([edge.feature(edge.time).dtype] if edge.time else []) + (
        [neighbor[1].dtype] if neighbor else []
    )
    return "" if not dtypes else "float64" if is_float(dtypes[0]) else "int64"


def has_symmetric_times(schema: Schema, edge_type: int) -> bool:
    """Return whether both copies of an edge have the same time.

    This holds if the edge type has a time and the node types at its ends have none.
    """
    return bool(schema.edge_types[edge_type].time) and not any(
        neighbor_time(schema, edge_type, incoming=incoming) for incoming in (False, True)
    )
