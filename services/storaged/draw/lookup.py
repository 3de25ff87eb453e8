"""From ids of a request to rows of the parts that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit import index, split
from graphkit.jit import settled
from storaged.draw.version import EDGE, NODE, Version, checked_length
from storaged.kernel import rows as kernel_rows
from storaged.store.image import Adjacency, NodeImage, PartImage

OUT, IN = 1, 2
"""Directions, as in `asterism.v1.Direction`."""


def rows_of(image: PartImage, node: NodeImage, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each id of this part, -1 where there is none; read-only int64[n]."""
    if not node.dense:
        return settled(index.find(ids, node.index_ids, node.index_rows))
    out = np.empty(ids.size, np.int64)
    kernel_rows.dense_rows(settled(ids), np.int64(image.parts), np.int64(node.rows), node.live, out)
    return settled(out)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """The nodes of a request that are of one type and live in one part."""

    type_id: int
    image: PartImage
    at: NDArray[np.int64]
    """int64[m], their places in the request, ascending."""
    rows: NDArray[np.int64]
    """int64[m], -1 where the node is unknown."""


def groups_of(version: Version, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None) -> Iterator[Group]:
    """The nodes of a request by (type, part); ids below 0 are in no group.

    Parameters
    ----------
    version : Version
    node_type : int
        Of all ids; -1: ``types`` says, or, without them in a space of global ids, the ids are looked up in every type.
    ids : int64[m]
    types : int32[m], optional
        -1 is no node.

    Raises
    ------
    InvalidRequest, Unavailable
        Where a type is unknown, or a part is not held here.
    """
    schema = version.schema
    parts = split.part_of(ids, schema.parts, schema.placement)
    count = len(schema.node_types)
    if node_type >= 0:
        version.type_name(NODE, node_type)
        types = None
    elif types is not None:
        checked_length("types", types, ids.size)
        if types.size and not -1 <= int(types.min()) <= int(types.max()) < count:
            raise InvalidRequest(f"types: found {int(types.min())} to {int(types.max())}; the schema has node types 0 to {count - 1}")
    elif schema.ids == "global":
        types = _types_of(version, ids, parts)
    else:
        raise InvalidRequest("node type -1 without types: ids of this space are per type, so say which type they are of")
    first = max(node_type, 0)
    keys = parts if types is None else parts + types * np.int32(schema.parts)
    nowhere = (1 if types is None else count) * schema.parts
    absent = ids < 0 if types is None else (ids < 0) | (types < 0)
    if absent.any():
        keys = np.where(absent, np.int32(nowhere), keys)
    order, offsets = split.group(keys, nowhere + 1)
    for group in np.flatnonzero(np.diff(offsets[:-1])):
        type_id, image = first + int(group) // schema.parts, version.image(int(group) % schema.parts)
        at = settled(order[offsets[group] : offsets[group + 1]])
        yield Group(type_id=type_id, image=image, at=at, rows=rows_of(image, image.nodes[type_id], ids[at]))


def _types_of(version: Version, ids: NDArray[np.int64], parts: NDArray[np.int32]) -> NDArray[np.int32]:
    """The node type of each id of a space of global ids, -1 where there is none."""
    out = np.full(ids.size, -1, np.int32)
    order, offsets = split.group(np.where(ids < 0, np.int32(version.schema.parts), parts), version.schema.parts + 1)
    for part in np.flatnonzero(np.diff(offsets[:-1])):
        image = version.image(int(part))
        at = order[offsets[part] : offsets[part + 1]]
        wanted = ids[at]
        for type_id, node in enumerate(image.nodes):
            out[at[rows_of(image, node, wanted) >= 0]] = type_id
    return out


def node_types(version: Version, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None) -> NDArray[np.int32]:
    """The type of each node, -1 where there is no such node; int32[m].

    Parameters
    ----------
    version, node_type, ids, types
        As in `groups_of`: where types are said, each id is looked up in its own.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    out = np.full(ids.size, -1, np.int32)
    for group in groups_of(version, node_type, ids, types):
        out[group.at[group.rows >= 0]] = group.type_id
    return out


def checked_edge_types(version: Version, edge_types: Sequence[int], node_type: int, direction: int) -> list[int]:
    """The node type at the near end of each edge type.

    Raises
    ------
    InvalidRequest
        Where there are no edge types, one is unknown or given twice, the direction is not kept, or none of them begins
        at ``node_type`` (where that is not -1).
    """
    schema = version.schema
    if not edge_types:
        raise InvalidRequest("no edge types; name at least one")
    if len(set(edge_types)) != len(edge_types):
        raise InvalidRequest(f"edge types {list(edge_types)}: one is given twice")
    if direction not in (OUT, IN):
        raise InvalidRequest(f"direction {direction}: expected {OUT} (out) or {IN} (in)")
    if direction == IN and not schema.has_in:
        raise InvalidRequest("direction in: this space keeps out-edges only; it needs `direction: both` in its schema")
    names = [version.type_name(EDGE, type_id) for type_id in edge_types]
    near = [schema.node_type_id(t.src_type if direction == OUT else t.dst_type) for t in (schema.edge_types[i] for i in edge_types)]
    if node_type >= 0 and node_type not in near:
        end = "starts" if direction == OUT else "ends"
        raise InvalidRequest(f"none of {', '.join(names)} {end} at {version.type_name(NODE, node_type)}")
    return near


def ends(version: Version, edge_type: int, direction: int) -> tuple[int, int]:
    """The node types at the near and the far end of an edge type; errors as of `checked_edge_types`."""
    near = checked_edge_types(version, [edge_type], -1, direction)[0]
    edge = version.schema.edge_types[edge_type]
    return near, version.schema.node_type_id(edge.dst_type if direction == OUT else edge.src_type)


def adjacency(image: PartImage, edge_type: int, direction: int) -> Adjacency:
    """The adjacency of an edge type at this part, by the end that is near."""
    edge = image.edges[edge_type]
    if direction == OUT:
        return edge.out
    if edge.into is None:
        raise InvalidRequest(f"edge type {edge_type}: no in-copies in this version; build it with `direction: both`")
    return edge.into
