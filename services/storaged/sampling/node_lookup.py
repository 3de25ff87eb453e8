"""From ids of a request to rows of the parts that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import partition_choice
from asterism_graphkit.relabel import hash_index
from asterism_model.elements import EDGE, NODE
from asterism_proto.errors import InvalidRequest, Unavailable
from storaged.kernels import adjacency
from storaged.kernels import node_rows as kernel_rows
from storaged.sampling.cancellation import BLOCK_DRAWS, Checkpoint, blocks, no_checkpoint
from storaged.sampling.version import LocalVersion, check_length
from storaged.store.huge_pages import copy_together
from storaged.store.image import (
    EMPTY_I64,
    AdjacencyImage,
    NodeImage,
    PartImage,
)

OUT, IN = 1, 2
"""Directions, as in `asterism.v1.Direction`."""


def find_rows(image: PartImage, node: NodeImage, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each id of this part, -1 where there is none; read-only int64[n]."""
    if not node.dense:
        return as_kernel_array(hash_index.find(ids, node.index_ids, node.index_rows))
    out = np.empty(ids.size, np.int64)
    kernel_rows.dense_rows(
        as_kernel_array(ids), np.int64(image.parts), np.int64(node.rows), node.live, out
    )
    return as_kernel_array(out)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeGroup:
    """The nodes of a request that are of one type and live in one part."""

    type_id: int
    image: PartImage
    places: NDArray[np.int64]
    """int64[m], their places in the request, ascending."""
    rows: NDArray[np.int64]
    """int64[m], -1 where the node is unknown."""


def _row_table(version: LocalVersion, type_id: int) -> NDArray[np.int64]:
    """Return where the rows of one node type are, by part: int64[P, INDPTR], read-only.

    Columns are the first ones of `storaged.kernels.adjacency`. Arrays are given by address, not to
    outlive the version."""

    def make() -> NDArray[np.int64]:
        out = np.zeros((version.schema.parts, adjacency.INDPTR), np.int64)
        out[:, adjacency.ROWS] = adjacency.ABSENT
        for part, image in version.parts.items():
            node = image.nodes[type_id]
            out[part, adjacency.ROWS] = node.rows
            _set_row_columns(out[part], node)
        return as_kernel_array(out)

    return version.cached((_row_table, type_id), make)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocatedNodes:
    """The nodes of a request that are of one type, wherever they live."""

    type_id: int
    places: NDArray[np.int64]
    """int64[m], their places in the request, ascending; empty: it has no others, and node i has
    place i.
    """
    parts: NDArray[np.int32]
    """int32[m]."""
    rows: NDArray[np.int64]
    """int64[m], in their parts; -1 where the node is unknown, or no node."""

    def iter_parts(self, version: LocalVersion) -> Iterator[tuple[PartImage, NDArray[np.int64]]]:
        """The image of each part, and which of the nodes are there."""
        for part in np.unique(self.parts[self.rows >= 0]):
            yield version.image(int(part)), np.flatnonzero((self.parts == part) & (self.rows >= 0))


def locate_nodes(
    version: LocalVersion, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None
) -> Iterator[LocatedNodes]:
    """The nodes of a request by type, parts together; arguments and errors as of `group_nodes`."""
    types = resolve_types(version, node_type, ids, types)
    if types is None:
        yield _locate_type(version, node_type, ids, as_kernel_array(EMPTY_I64))
        return
    for type_id in np.unique(types[types >= 0]):
        places = np.flatnonzero(types == type_id)
        is_single_type = places.size == ids.size
        yield _locate_type(
            version,
            int(type_id),
            ids if is_single_type else ids[places],
            as_kernel_array(EMPTY_I64 if is_single_type else places),
        )


def _locate_type(
    version: LocalVersion, type_id: int, ids: NDArray[np.int64], places: NDArray[np.int64]
) -> LocatedNodes:
    schema = version.schema
    parts, rows = np.empty(ids.size, np.int32), np.empty(ids.size, np.int64)
    missing_part = int(
        kernel_rows.locate_nodes(
            _row_table(version, type_id),
            schema.placement != "mix64",
            as_kernel_array(ids),
            parts,
            rows,
        )
    )
    if missing_part >= 0:
        version.image(missing_part)
    return LocatedNodes(
        type_id=type_id, places=places, parts=as_kernel_array(parts), rows=as_kernel_array(rows)
    )


def group_nodes(
    version: LocalVersion, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None
) -> Iterator[NodeGroup]:
    """The nodes of a request by (type, part); ids below 0 are in no group.

    Parameters
    ----------
    version : LocalVersion
    node_type : int
        Of all ids; -1: ``types`` says, or, without them in a space of global ids, the ids are
        looked up in every type.
    ids : int64[m]
    types : int32[m], optional
        -1 is no node.

    Raises
    ------
    InvalidRequest, Unavailable
        Where a type is unknown, or a part is not held here.
    """
    schema = version.schema
    types = resolve_types(version, node_type, ids, types)
    parts = partition_choice.part_of(ids, schema.parts, schema.placement)
    count = len(schema.node_types)
    first_type = max(node_type, 0)
    keys = parts if types is None else parts + types * np.int32(schema.parts)
    no_group = (1 if types is None else count) * schema.parts
    absent = ids < 0 if types is None else (ids < 0) | (types < 0)
    if absent.any():
        keys = np.where(absent, np.int32(no_group), keys)
    order, offsets = partition_choice.group_by_key(keys, no_group + 1)
    for group in np.flatnonzero(np.diff(offsets[:-1])):
        type_id, image = (
            first_type + int(group) // schema.parts,
            version.image(int(group) % schema.parts),
        )
        places = as_kernel_array(order[offsets[group] : offsets[group + 1]])
        yield NodeGroup(
            type_id=type_id,
            image=image,
            places=places,
            rows=find_rows(image, image.nodes[type_id], ids[places]),
        )


def resolve_types(
    version: LocalVersion, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None
) -> NDArray[np.int32] | None:
    """The type of each node, None where all are of ``node_type``."""
    schema = version.schema
    count = len(schema.node_types)
    if node_type >= 0:
        version.type_name(NODE, node_type)
        return None
    if types is not None:
        check_length("types", types, ids.size)
        if types.size and not -1 <= int(types.min()) <= int(types.max()) < count:
            raise InvalidRequest(
                f"types: found {int(types.min())} to {int(types.max())}; the schema has node "
                f"types 0 to {count - 1}"
            )
        return types
    if schema.ids == "global":
        return _lookup_types(version, ids)
    raise InvalidRequest(
        "node type -1 without types: ids of this space are per type, so say which type they are of"
    )


def _lookup_types(version: LocalVersion, ids: NDArray[np.int64]) -> NDArray[np.int32]:
    """The node type of each id of a space of global ids, -1 where there is none."""
    out = np.full(ids.size, -1, np.int32)
    parts = partition_choice.part_of(ids, version.schema.parts, version.schema.placement)
    order, offsets = partition_choice.group_by_key(
        np.where(ids < 0, np.int32(version.schema.parts), parts), version.schema.parts + 1
    )
    for part in np.flatnonzero(np.diff(offsets[:-1])):
        image = version.image(int(part))
        places = order[offsets[part] : offsets[part + 1]]
        part_ids = ids[places]
        for type_id, node in enumerate(image.nodes):
            out[places[find_rows(image, node, part_ids) >= 0]] = type_id
    return out


def node_types(
    version: LocalVersion,
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None,
    checkpoint: Checkpoint = no_checkpoint,
) -> NDArray[np.int32]:
    """The type of each node, -1 where there is no such node; int32[m].

    Parameters
    ----------
    version, node_type, ids, types
        As in `group_nodes`: where types are said, each id is looked up in its own.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    out = np.full(ids.size, -1, np.int32)
    for block in blocks(ids.size, BLOCK_DRAWS, checkpoint):
        block_out = out[block]
        for group in group_nodes(
            version, node_type, ids[block], None if types is None else types[block]
        ):
            block_out[group.places[group.rows >= 0]] = group.type_id
    return out


def resolve_local_types(
    version: LocalVersion, edge_types: Sequence[int], node_type: int, direction: int
) -> list[int]:
    """The node type at the near end of each edge type.

    Raises
    ------
    InvalidRequest
        Where there are no edge types, one is unknown or given twice, the direction is not kept, or
        none of them begins at ``node_type`` (where that is not -1).
    """
    schema = version.schema
    if not edge_types:
        raise InvalidRequest("no edge types; name at least one")
    if len(set(edge_types)) != len(edge_types):
        raise InvalidRequest(f"edge types {list(edge_types)}: one is given twice")
    if direction not in (OUT, IN):
        raise InvalidRequest(f"direction {direction}: expected {OUT} (out) or {IN} (in)")
    if direction == IN and not schema.has_in:
        raise InvalidRequest(
            "direction in: this space keeps out-edges only; it needs `direction: both` in "
            "its schema"
        )
    names = [version.type_name(EDGE, type_id) for type_id in edge_types]
    local_types = [
        schema.node_type_id(t.src_type if direction == OUT else t.dst_type)
        for t in (schema.edge_types[i] for i in edge_types)
    ]
    if node_type >= 0 and node_type not in local_types:
        verb = "starts" if direction == OUT else "ends"
        raise InvalidRequest(
            f"none of {', '.join(names)} {verb} at {version.type_name(NODE, node_type)}"
        )
    return local_types


def end_types(version: LocalVersion, edge_type: int, direction: int) -> tuple[int, int]:
    """The node types at the near and the far end of an edge type; errors as of
    `resolve_local_types`.
    """
    local_type = resolve_local_types(version, [edge_type], -1, direction)[0]
    edge = version.schema.edge_types[edge_type]
    return local_type, version.schema.node_type_id(
        edge.dst_type if direction == OUT else edge.src_type
    )


def address_table(
    version: LocalVersion, edge_type: int, direction: int, *, uniform: bool = False
) -> NDArray[np.int64]:
    """Return where the arrays of an edge type are, by its local end and by part.

    Parameters
    ----------
    version, edge_type, direction
    uniform : bool
        Without weights and what follows from them: every edge alike.

    Returns
    -------
    ndarray of int64, shape (P, COLUMNS)
        Read-only, as `storaged.kernels.adjacency` lays it out. Arrays are given by address, not to
        outlive the version.

    Raises
    ------
    InvalidRequest
        Where the version has no in-copies.
    """
    if uniform:
        return version.cached(
            (address_table, edge_type, direction, True),
            lambda: _without_weights(address_table(version, edge_type, direction)),
        )

    def make() -> NDArray[np.int64]:
        schema = version.schema
        edge = schema.edge_types[edge_type]
        local_type = schema.node_type_id(edge.src_type if direction == OUT else edge.dst_type)
        out = np.zeros((schema.parts, adjacency.COLUMNS), np.int64)
        out[:, adjacency.ROWS] = adjacency.ABSENT
        for part, image in version.parts.items():
            out[part] = _table_row(
                image.nodes[local_type], select_adjacency(image, edge_type, direction)
            )
        copied_indptrs = version.cached(_copy_indptrs, lambda: _copy_indptrs(version))
        if (edge_type, direction) in copied_indptrs:
            out[list(version.parts), adjacency.INDPTR] = addresses_of(
                copied_indptrs[edge_type, direction]
            )
        return as_kernel_array(out)

    return version.cached((address_table, edge_type, direction), make)


def _without_weights(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a copy of an address table without weights."""
    out = table.copy()
    out[:, _WEIGHT_COLUMNS] = 0
    return as_kernel_array(out)


def stack_tables(
    version: LocalVersion, edge_types: Sequence[int], direction: int, *, uniform: bool = False
) -> NDArray[np.int64]:
    """Return the `address_table` of each edge type of a union: int64[types, P, COLUMNS],
    read-only.
    """

    def make() -> NDArray[np.int64]:
        return as_kernel_array(
            np.stack(
                [
                    address_table(version, edge_type, direction, uniform=uniform)
                    for edge_type in edge_types
                ]
            )
        )

    return version.cached((stack_tables, tuple(edge_types), direction, uniform), make)


def all_packed(
    version: LocalVersion, edge_type: int, direction: int, *, uniform: bool = False
) -> bool:
    """Return whether every part that is held here and has edges has them once more as
    `storaged.kernels.neighbors.packed` reads them.
    """

    def make() -> bool:
        table = address_table(version, edge_type, direction, uniform=uniform)
        records = np.where(
            table[:, adjacency.ALIAS_THRESHOLD] > 0,
            table[:, adjacency.PACKED],
            table[:, adjacency.NARROW],
        )
        return bool((records[table[:, adjacency.NBR] > 0] > 0).all())

    return version.cached((all_packed, edge_type, direction, uniform), make)


def _copy_indptrs(version: LocalVersion) -> Mapping[tuple[int, int], Sequence[NDArray[np.int64]]]:
    """Where the edges of rows begin, by edge type and direction, of each part held here: in large
    pages, where images have it in small ones.

    Every draw of neighbors reads it, at random. Empty where there is nothing to gain, or rows are
    those of a condition and will not last."""
    if version.filter_text:
        return {}
    sides = [
        (edge_type, direction)
        for edge_type in range(len(version.schema.edge_types))
        for direction in (OUT, IN)
    ]
    sides = [
        side
        for side in sides
        if side[1] == OUT
        or all(image.edges[side[0]].incoming is not None for image in version.parts.values())
    ]
    originals = [
        select_adjacency(image, *side).indptr for side in sides for image in version.parts.values()
    ]
    copies = copy_together(originals)
    return (
        {
            side: copies[i * len(version.parts) :][: len(version.parts)]
            for i, side in enumerate(sides)
        }
        if copies is not originals
        else {}
    )


def _table_row(node: NodeImage, edges: AdjacencyImage) -> NDArray[np.int64]:
    out = np.zeros(adjacency.COLUMNS, np.int64)
    out[adjacency.ROWS], out[adjacency.SLOTS] = edges.indptr.size - 1, edges.nbr.size
    _set_row_columns(out, node)
    out[list(_COLUMNS.values())] = addresses_of(getattr(edges, name) for name in _COLUMNS)
    return out


def _set_row_columns(out: NDArray[np.int64], node: NodeImage) -> None:
    """Set the columns that lead from ids to rows."""
    if not node.dense:
        # An index is there in any case: of no ids, it is two free slots, for no word is shifted by
        # all of its bits.
        ids, rows = (
            (node.index_ids, node.index_rows) if node.index_ids.size else (_FREE_IDS, _FREE_ROWS)
        )
        out[adjacency.INDEX_BITS] = _BITS - int(hash_index.shift_of(ids))
        out[[adjacency.INDEX_IDS, adjacency.INDEX_ROWS]] = addresses_of([ids, rows])
    out[adjacency.LIVE] = addresses_of([node.live])[0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeSpans:
    """Where the edges of nodes are along one edge type, node by node; read-only arrays."""

    table: NDArray[np.int64]
    """Of `address_table`."""
    partitions: NDArray[np.int64]
    """int64[m]: the part of each node."""
    starts: NDArray[np.int64]
    """int64[m]: the slot of its first edge there."""
    degrees: NDArray[np.int64]
    """int64[m]: how many it has; 0 for an unknown node."""
    edges: int
    """Of all of them."""

    def spans(self, block: slice | None = None) -> adjacency.RowSpans:
        """Return the edges of all nodes, or of a block of them, as kernels take them."""
        if block is None:
            return adjacency.RowSpans(self.table, self.partitions, self.starts, self.degrees)
        return adjacency.RowSpans(
            self.table, self.partitions[block], self.starts[block], self.degrees[block]
        )

    @classmethod
    def locate(
        cls, version: LocalVersion, edge_type: int, direction: int, ids: NDArray[np.int64]
    ) -> EdgeSpans:
        """Those of some nodes, -1 being none; Unavailable where one lives in a part that is not
        held here.
        """
        schema, ids, addresses = (
            version.schema,
            as_kernel_array(ids),
            address_table(version, edge_type, direction),
        )
        outputs = [np.empty(ids.size, np.int64) for _ in range(3)]
        edges = int(
            adjacency.find_rows(
                ids, np.int64(schema.parts), schema.placement != "mix64", addresses, *outputs
            )
        )
        if edges < 0:
            context = (
                f"node {ids[-1 - edges]} of space {version.space_id} lives in a part that is "
                "not held here"
            )
            raise Unavailable(f"{context}; this host has parts {sorted(version.parts)}")
        parts, starts, degrees = map(as_kernel_array, outputs)
        return cls(table=addresses, partitions=parts, starts=starts, degrees=degrees, edges=edges)


_COLUMNS = {
    "indptr": adjacency.INDPTR,
    "nbr": adjacency.NBR,
    "eid": adjacency.EID,
    "weights": adjacency.WEIGHTS,
    "sums": adjacency.SUMS,
    "hot": adjacency.ALIAS_THRESHOLD,
    "cold": adjacency.ALIAS_FRACTION,
    "narrow": adjacency.NARROW,
    "pairs": adjacency.PAIRS,
    "packed": adjacency.PACKED,
    "when": adjacency.WHEN,
    "order": adjacency.ORDER,
    "time_sums": adjacency.TIME_SUMS,
}
"""Arrays of an adjacency, and the columns of a table that have their addresses."""
_WEIGHT_COLUMNS = [
    adjacency.WEIGHTS,
    adjacency.SUMS,
    adjacency.ALIAS_THRESHOLD,
    adjacency.ALIAS_FRACTION,
    adjacency.PACKED,
    adjacency.TIME_SUMS,
]
"""Columns that uniform draws do without."""
_BITS = 64
_FREE_IDS, _FREE_ROWS = np.full(2, hash_index.FREE, np.int64), np.zeros(2, np.uint32)


def resized_copy(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """A longer array that begins with what is in another one."""
    out = np.empty(size, array.dtype)
    if used and size:
        out[:used] = array[:used]
    return out


def select_adjacency(image: PartImage, edge_type: int, direction: int) -> AdjacencyImage:
    """The adjacency of an edge type at this part, by the end that is near."""
    edge = image.edges[edge_type]
    if direction == OUT:
        return edge.outgoing
    if edge.incoming is None:
        raise InvalidRequest(
            f"edge type {edge_type}: no in-copies in this version; build it with `direction: both`"
        )
    return edge.incoming
