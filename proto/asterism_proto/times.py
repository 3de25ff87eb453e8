"""Times of edges and nodes: which features may be one, which of their values are, and which of them an edge is seen by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism_proto.schema import Feature, Schema

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64")
"""Whole numbers that fit into int64, and floats."""
BEFORE_ALL = np.iinfo(np.int64).min
"""No edge has this time: what is seen until then is nothing."""


def check_time(owner: str, features: Sequence[Feature], name: str) -> None:
    """InvalidRequest where the feature called ``name`` is not there, or can not be a time."""
    feature = next((feature for feature in features if feature.name == name), None)
    if feature is None:
        raise InvalidRequest(f"{owner}: time {name!r} is no feature of it; it has {', '.join(f.name for f in features) or 'none'}")
    if feature.kind != "dense" or feature.shape or feature.dtype not in DTYPES:
        what = f"{feature.kind} {feature.dtype} {list(feature.shape)}" if feature.kind == "dense" else feature.kind
        raise InvalidRequest(f"{owner}: time {name!r} is {what}; expected a scalar of one of {', '.join(DTYPES)}")


def floating(dtype: str) -> bool:
    """Whether times of this dtype are floats."""
    return dtype.startswith("float")


def far_time(schema: Schema, edge_type: int, *, incoming: bool) -> tuple[int, Feature] | None:
    """The type of the neighbors that these edges lead to, and which of its features is its time; None where none is.

    Parameters
    ----------
    schema : Schema
    edge_type : int
    incoming : bool
        The edges are followed against their direction.
    """
    edge = schema.edge_types[edge_type]
    node_type = schema.node_type_id(edge.src_type if incoming else edge.dst_type)
    of = schema.node_types[node_type]
    return (node_type, of.feature(of.time)) if of.time else None


def seen_as(schema: Schema, edge_type: int, *, incoming: bool) -> str:
    """What edges are seen by, ``int64`` or ``float64``: their own times, their neighbors', or the later of both; "" where there is none."""
    edge, far = schema.edge_types[edge_type], far_time(schema, edge_type, incoming=incoming)
    dtypes = ([edge.feature(edge.time).dtype] if edge.time else []) + ([far[1].dtype] if far else [])
    return "" if not dtypes else "float64" if floating(dtypes[0]) else "int64"


def alike_at_both_ends(schema: Schema, edge_type: int) -> bool:
    """Whether both copies of an edge are seen by the same time: its own, and neither end has one beside."""
    return bool(schema.edge_types[edge_type].time) and not any(far_time(schema, edge_type, incoming=incoming) for incoming in (False, True))


def check_kinds(schema: Schema) -> None:
    """InvalidRequest where the times of edges and of the nodes at their ends are of different kinds: the later of both is of neither."""
    for edge in (edge for edge in schema.edge_types if edge.time):
        own = edge.feature(edge.time).dtype
        for node in (schema.node_types[schema.node_type_id(name)] for name in (edge.src_type, edge.dst_type)):
            if node.time and floating(node.feature(node.time).dtype) != floating(own):
                raise InvalidRequest(
                    f"edge type {edge.name!r}: its time {edge.time!r} is {own}, that of node type {node.name!r} {node.feature(node.time).dtype}; "
                    "declare both as whole numbers, or both as floats"
                )


def refuse_no_times(name: str, values: NDArray[Any]) -> None:
    """InvalidRequest for the first value that is no time: NaN, and the least int64."""
    wrong = np.isnan(values) if values.dtype.kind == "f" else values == BEFORE_ALL if values.dtype == np.int64 else np.zeros(len(values), np.bool_)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidRequest(f"{name}[{at}] = {values[at]}: a time is a number, and not the least int64")
