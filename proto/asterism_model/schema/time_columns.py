"""Times of edges and nodes: which features may be one, which of their values are, and which of them
an edge is seen by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism_model.schema.schema import Feature, Schema

TIME_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64")
"""Whole numbers that fit into int64, and floats."""
MIN_TIME = np.iinfo(np.int64).min
"""No edge has this time: what is seen until then is nothing."""


def check_time(owner: str, features: Sequence[Feature], name: str) -> None:
    """InvalidRequest where the feature called ``name`` is not there, or can not be a time."""
    feature = next((feature for feature in features if feature.name == name), None)
    if feature is None:
        raise InvalidRequest(
            f"{owner}: time {name!r} is no feature of it; it has "
            f"{', '.join(f.name for f in features) or 'none'}"
        )
    if feature.kind != "dense" or feature.shape or feature.dtype not in TIME_DTYPES:
        description = (
            f"{feature.kind} {feature.dtype} {list(feature.shape)}"
            if feature.kind == "dense"
            else feature.kind
        )
        raise InvalidRequest(
            f"{owner}: time {name!r} is {description}; expected a scalar of one of "
            f"{', '.join(TIME_DTYPES)}"
        )


def is_float(dtype: str) -> bool:
    """Whether times of this dtype are floats."""
    return dtype.startswith("float")


def neighbor_time(schema: Schema, edge_type: int, *, incoming: bool) -> tuple[int, Feature] | None:
    """The type of the neighbors that these edges lead to, and which of its features is its time;
    None where none is.

    Parameters
    ----------
    schema : Schema
    edge_type : int
    incoming : bool
        The edges are followed against their direction.
    """
    edge = schema.edge_types[edge_type]
    node_type = schema.node_type_id(edge.src_type if incoming else edge.dst_type)
    owner = schema.node_types[node_type]
    return (node_type, owner.feature(owner.time)) if owner.time else None


def edge_time_dtype(schema: Schema, edge_type: int, *, incoming: bool) -> str:
    """What edges are seen by, ``int64`` or ``float64``: their own times, their neighbors', or the
    later of both; "" where there is none.
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
    """Whether both copies of an edge are seen by the same time: its own, and neither end has one
    beside.
    """
    return bool(schema.edge_types[edge_type].time) and not any(
        neighbor_time(schema, edge_type, incoming=incoming) for incoming in (False, True)
    )


def check_time_kinds(schema: Schema) -> None:
    """InvalidRequest where the times of edges and of the nodes at their ends are of different
    kinds: the later of both is of neither.
    """
    for edge in (edge for edge in schema.edge_types if edge.time):
        edge_dtype = edge.feature(edge.time).dtype
        for node in (
            schema.node_types[schema.node_type_id(name)] for name in (edge.src_type, edge.dst_type)
        ):
            if node.time and is_float(node.feature(node.time).dtype) != is_float(edge_dtype):
                raise InvalidRequest(
                    f"edge type {edge.name!r}: its time {edge.time!r} is {edge_dtype}, that "
                    f"of node type {node.name!r} {node.feature(node.time).dtype}; "
                    "declare both as whole numbers, or both as floats"
                )


def check_time_values(name: str, values: NDArray[Any]) -> None:
    """InvalidRequest for the first value that is no time: NaN, and the least int64."""
    invalid = (
        np.isnan(values)
        if values.dtype.kind == "f"
        else values == MIN_TIME
        if values.dtype == np.int64
        else np.zeros(len(values), np.bool_)
    )
    if invalid.any():
        index = int(np.argmax(invalid))
        raise InvalidRequest(
            f"{name}[{index}] = {values[index]}: a time is a number, and not the least int64"
        )
