"""Lookup of the rows, partitions and edges of a request's node ids."""

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
from asterism_proto.errors import Internal, InvalidRequest, Unavailable
from storaged.kernels import adjacency_rows
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
"""Directions, with the values of `asterism.v1.Direction`."""


def find_rows(image: PartImage, node: NodeImage, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each id of this partition, -1 if there is none.

    Returns
    -------
    ndarray of int64, shape (n,)
        Read-only.
    """
    if not node.dense:
        return as_kernel_array(hash_index.find(ids, node.index_ids, node.index_rows))
    out = np.empty(ids.size, np.int64)
    kernel_rows.dense_rows(
        as_kernel_array(ids), np.int64(image.parts), np.int64(node.rows), node.live, out
    )
    return as_kernel_array(out)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeGroup:
    """The nodes of a request that have one type and one partition."""

    type_id: int
    image: PartImage
    places: NDArray[np.int64]
    """Positions in the request, ascending: int64, shape (m,)."""
    rows: NDArray[np.int64]
    """Rows: int64, shape (m,); -1 for an unknown node."""


def _row_table(version: LocalVersion, type_id: int) -> NDArray[np.int64]:
    """Return the address table of the rows of one node type, by partition, without an overlay.

    Returns
    -------
    ndarray of int64, shape (P, INDPTR)
        Read-only. The columns are the first ones of `storaged.kernels.adjacency_rows`. They have
        addresses of arrays, which are valid as long as the version exists.
    """

    version = version.base or version

    def make() -> NDArray[np.int64]:
        out = np.zeros((version.schema.parts, adjacency_rows.INDPTR), np.int64)
        out[:, adjacency_rows.ROWS] = adjacency_rows.ABSENT
        for part, image in version.parts.items():
            node = image.nodes[type_id]
            out[part, adjacency_rows.ROWS] = node.rows
            _set_row_columns(out[part], node)
        return as_kernel_array(out)

    return version.cached((_row_table, type_id), make)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocatedNodes:
    """The nodes of a request that have one type, in any partition."""

    type_id: int
    places: NDArray[np.int64]
    """Positions in the request, ascending: int64, shape (m,).

    Empty if all nodes of the request are of this type, so that node i has position i.
    """
    parts: NDArray[np.int32]
    """Partitions: int32, shape (m,)."""
    rows: NDArray[np.int64]
    """Rows in their partitions: int64, shape (m,); -1 for unknown nodes and negative ids."""

    def tags(self, positions: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the tags that key the draws of these nodes, read-only.

        Nodes of different ids or types draw independently, also at equal positions of two requests.

        Parameters
        ----------
        positions, ids : ndarray of int64, shape (n,)
            Position of each node of the request, and its id.

        Returns
        -------
        ndarray of int64, shape (m,)
            Any bits.
        """
        out = np.empty(self.rows.size, np.int64)
        kernel_rows.node_tags(
            as_kernel_array(positions),
            as_kernel_array(ids),
            self.places,
            np.int64(self.type_id),
            out,
        )
        return as_kernel_array(out)

    def iter_parts(self, version: LocalVersion) -> Iterator[tuple[PartImage, NDArray[np.int64]]]:
        """Yield the image of each partition, and the positions of the nodes there."""
        for part in np.flatnonzero(np.bincount(self.parts[self.rows >= 0])):
            yield version.image(int(part)), np.flatnonzero((self.parts == part) & (self.rows >= 0))


def locate_nodes(
    version: LocalVersion, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None
) -> Iterator[LocatedNodes]:
    """Yield the nodes of a request by type, with all partitions together.

    Parameters and errors are those of `group_nodes`.
    """
    types = resolve_types(version, node_type, ids, types)
    if types is None:
        yield _locate_type(version, node_type, ids, as_kernel_array(EMPTY_I64))
        return
    for type_id in np.flatnonzero(np.bincount(types[types >= 0])):  # np.unique would sort
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
    if version.overlay is not None:
        overlay_rows = find_rows(version.overlay, version.overlay.nodes[type_id], ids)
        found = overlay_rows >= 0
        parts[found], rows[found] = schema.parts, overlay_rows[found]
    return LocatedNodes(
        type_id=type_id, places=places, parts=as_kernel_array(parts), rows=as_kernel_array(rows)
    )


def group_nodes(
    version: LocalVersion, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None
) -> Iterator[NodeGroup]:
    """Yield the nodes of a request by (type, partition), without negative ids.

    Parameters
    ----------
    version : LocalVersion
    node_type : int
        Type of all ids. With -1, ``types`` has the type of each; without ``types``, in a space of
        global ids, each id is looked up in every type.
    ids : ndarray of int64, shape (m,)
    types : ndarray of int32, shape (m,), optional
        Type of each id; -1 for no node.

    Raises
    ------
    InvalidRequest
        A type is unknown.
    Unavailable
        A partition is not held here.
    """
    schema = version.schema
    types = resolve_types(version, node_type, ids, types)
    parts, part_count = partition_choice.part_of(ids, schema.parts, schema.placement), schema.parts
    count = len(schema.node_types)
    first_type = max(node_type, 0)
    if version.overlay is not None:
        _prefer_overlay(version.overlay, node_type, ids, types, parts)
        part_count += 1
    keys = parts if types is None else parts + types * np.int32(part_count)
    no_group = (1 if types is None else count) * part_count
    absent = ids < 0 if types is None else (ids < 0) | (types < 0)
    if absent.any():
        keys = np.where(absent, np.int32(no_group), keys)
    order, offsets = partition_choice.group_by_key(keys, no_group + 1)
    for group in np.flatnonzero(np.diff(offsets[:-1])):
        type_id, image = (
            first_type + int(group) // part_count,
            version.image(int(group) % part_count),
        )
        places = as_kernel_array(order[offsets[group] : offsets[group + 1]])
        yield NodeGroup(
            type_id=type_id,
            image=image,
            places=places,
            rows=find_rows(image, image.nodes[type_id], ids[places]),
        )


def _prefer_overlay(
    overlay: PartImage,
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None,
    parts: NDArray[np.int32],
) -> None:
    """Set the partition of the nodes that an overlay has."""
    for type_id, node in enumerate(overlay.nodes):
        if node.rows and (types is not None or type_id == node_type):
            places = np.flatnonzero(types == type_id) if types is not None else np.arange(ids.size)
            parts[places[find_rows(overlay, node, ids[places]) >= 0]] = overlay.part


def resolve_types(
    version: LocalVersion, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None
) -> NDArray[np.int32] | None:
    """Return the type of each node; None if all are of ``node_type``."""
    schema = version.schema
    count = len(schema.node_types)
    if node_type >= 0:
        version.type_name(NODE, node_type)
        return None
    if types is not None:
        check_length("types", types, ids.size)
        if types.size and not -1 <= int(types.min()) <= int(types.max()) < count:
            raise InvalidRequest(
                f"types: expected node types of the schema, 0 to {count - 1}, found "
                f"{int(types.min())} to {int(types.max())}"
            )
        return types
    if schema.ids == "global":
        return _lookup_types(version, ids)
    raise InvalidRequest(
        "node type -1 without types: expected a node type, because ids of this space are per type"
    )


def _lookup_types(version: LocalVersion, ids: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the node type of each id in a space of global ids, -1 for an unknown id."""
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
    """Return the type of each node, -1 if it does not exist.

    Parameters
    ----------
    version : LocalVersion
    node_type, ids, types
        Nodes of a request, as for `group_nodes`. If types are given, each id is looked up in its
        type only.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Returns
    -------
    ndarray of int32, shape (m,)

    Raises
    ------
    InvalidRequest, Unavailable
        As for `group_nodes`.
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
    """Return the node type at the local end of each edge type.

    Raises
    ------
    InvalidRequest
        There are no edge types, one is unknown or given twice, the version does not store the
        direction, or no edge type begins at ``node_type`` (unless that is -1).
    """
    schema = version.schema
    if not edge_types:
        raise InvalidRequest("edge_types: expected at least one edge type")
    if len(set(edge_types)) != len(edge_types):
        raise InvalidRequest(f"edge types {list(edge_types)}: expected each edge type once")
    if direction not in (OUT, IN):
        raise InvalidRequest(f"direction {direction}: expected {OUT} (out) or {IN} (in)")
    if direction == IN and not schema.has_in:
        raise InvalidRequest(
            "direction in: the space keeps out-edges only; create it with `direction: both`"
        )
    names = [version.type_name(EDGE, type_id) for type_id in edge_types]
    local_types = [schema.edge_ends[i][0 if direction == OUT else 1] for i in edge_types]
    if node_type >= 0 and node_type not in local_types:
        verb = "starts" if direction == OUT else "ends"
        raise InvalidRequest(
            f"none of {', '.join(names)} {verb} at {version.type_name(NODE, node_type)}"
        )
    return local_types


def end_types(version: LocalVersion, edge_type: int, direction: int) -> tuple[int, int]:
    """Return the node types at the local and the remote end of an edge type.

    Errors are those of `resolve_local_types`.
    """
    local_type = resolve_local_types(version, [edge_type], -1, direction)[0]
    return local_type, version.schema.edge_ends[edge_type][1 if direction == OUT else 0]


def address_table(
    version: LocalVersion, edge_type: int, direction: int, *, uniform: bool = False
) -> NDArray[np.int64]:
    """Return the address table of an edge type, by local end and partition.

    Parameters
    ----------
    version : LocalVersion
    edge_type : int
    direction : int
        OUT or IN.
    uniform : bool
        Leave out weights and arrays derived from them, so that all edges are equal. Default False.

    Returns
    -------
    ndarray of int64, shape (P, COLUMNS)
        Read-only, with the layout of `storaged.kernels.adjacency_rows`. Addresses of arrays are
        valid as long as the version exists. An overlay is one more row.

    Raises
    ------
    InvalidRequest
        The version has no in-copies.
    """
    if uniform:
        return version.cached(
            (address_table, edge_type, direction, True),
            lambda: _without_weights(address_table(version, edge_type, direction)),
        )

    def make() -> NDArray[np.int64]:
        schema = version.schema
        local_type = schema.edge_ends[edge_type][0 if direction == OUT else 1]
        if version.base is not None:
            base_rows = address_table(version.base, edge_type, direction)
            if version.overlay is None:
                return base_rows
            overlay_row = _table_row(
                version.overlay.nodes[local_type],
                select_adjacency(version.overlay, edge_type, direction),
            )
            return as_kernel_array(np.concatenate([base_rows, overlay_row[None]]))
        out = np.zeros((schema.parts, adjacency_rows.COLUMNS), np.int64)
        out[:, adjacency_rows.ROWS] = adjacency_rows.ABSENT
        for part, image in version.parts.items():
            out[part] = _table_row(
                image.nodes[local_type], select_adjacency(image, edge_type, direction)
            )
        copied_indptrs = version.cached(_copy_indptrs, lambda: _copy_indptrs(version))
        if (edge_type, direction) in copied_indptrs:
            out[list(version.parts), adjacency_rows.INDPTR] = addresses_of(
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
    """Return the `address_table` of each edge type, stacked.

    Returns
    -------
    ndarray of int64, shape (types, P, COLUMNS)
        Read-only.
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
    """Return whether all local partitions with edges have packed copies of them.

    `storaged.kernels.neighbors.packed` reads these copies. An overlay has none.
    """
    if version.overlay is not None:
        return False

    def make() -> bool:
        table = address_table(version, edge_type, direction, uniform=uniform)
        records = np.where(
            table[:, adjacency_rows.ALIAS_THRESHOLD] > 0,
            table[:, adjacency_rows.PACKED],
            table[:, adjacency_rows.NARROW],
        )
        return bool((records[table[:, adjacency_rows.NBR] > 0] > 0).all())

    return version.cached((all_packed, edge_type, direction, uniform), make)


def _copy_indptrs(version: LocalVersion) -> Mapping[tuple[int, int], Sequence[NDArray[np.int64]]]:
    """Return copies of the row pointers in huge pages, by edge type and direction.

    Each entry has one array per local partition. Every draw of neighbors reads the row pointers at
    random, so small pages are slow. Empty if a copy would gain nothing, or for a filtered version,
    which is short-lived.
    """
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
    out = np.zeros(adjacency_rows.COLUMNS, np.int64)
    out[adjacency_rows.ROWS], out[adjacency_rows.SLOTS] = edges.indptr.size - 1, edges.nbr.size
    _set_row_columns(out, node)
    out[list(_COLUMNS.values())] = addresses_of(getattr(edges, name) for name in _COLUMNS)
    return out


def _set_row_columns(out: NDArray[np.int64], node: NodeImage) -> None:
    """Set the columns that map ids to rows."""
    if not node.dense:
        # An index always exists: one of no ids has two free slots, because a word cannot be shifted
        # by all of its bits.
        ids, rows = (
            (node.index_ids, node.index_rows) if node.index_ids.size else (_FREE_IDS, _FREE_ROWS)
        )
        out[adjacency_rows.INDEX_BITS] = _BITS - int(hash_index.shift_of(ids))
        out[[adjacency_rows.INDEX_IDS, adjacency_rows.INDEX_ROWS]] = addresses_of([ids, rows])
    out[adjacency_rows.LIVE] = addresses_of([node.live])[0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeSpans:
    """Spans of the edges of nodes along one edge type, node by node. Arrays are read-only."""

    table: NDArray[np.int64]
    """Address table, from `address_table`."""
    partitions: NDArray[np.int64]
    """Partition of each node: int64, shape (m,)."""
    starts: NDArray[np.int64]
    """Slot of each node's first edge in its partition: int64, shape (m,)."""
    degrees: NDArray[np.int64]
    """Number of edges of each node: int64, shape (m,); 0 for an unknown node."""
    edges: int
    """Number of edges of all nodes."""

    def spans(self, block: slice | None = None) -> adjacency_rows.RowSpans:
        """Return the edges of all nodes, or of a block of them, in the form that kernels take."""
        if block is None:
            return adjacency_rows.RowSpans(self.table, self.partitions, self.starts, self.degrees)
        return adjacency_rows.RowSpans(
            self.table, self.partitions[block], self.starts[block], self.degrees[block]
        )

    @classmethod
    def locate(
        cls, version: LocalVersion, edge_type: int, direction: int, ids: NDArray[np.int64]
    ) -> EdgeSpans:
        """Locate the edges of some nodes; an id of -1 is no node.

        Raises
        ------
        Unavailable
            A node belongs to a partition that is not held here.
        """
        schema, ids, addresses = (
            version.schema,
            as_kernel_array(ids),
            address_table(version, edge_type, direction),
        )
        outputs = [np.empty(ids.size, np.int64) for _ in range(3)]
        edges = int(
            adjacency_rows.find_rows(
                ids, np.int64(schema.parts), schema.placement != "mix64", addresses, *outputs
            )
        )
        if edges < 0:
            context = (
                f"node {ids[-1 - edges]} of space {version.space_id} belongs to a partition of "
                "another host"
            )
            raise Unavailable(f"{context}; this host has partitions {sorted(version.parts)}")
        parts, starts, degrees = map(as_kernel_array, outputs)
        return cls(table=addresses, partitions=parts, starts=starts, degrees=degrees, edges=edges)


_COLUMNS = {
    "indptr": adjacency_rows.INDPTR,
    "nbr": adjacency_rows.NBR,
    "eid": adjacency_rows.EID,
    "weights": adjacency_rows.WEIGHTS,
    "sums": adjacency_rows.SUMS,
    "hot": adjacency_rows.ALIAS_THRESHOLD,
    "cold": adjacency_rows.ALIAS_FRACTION,
    "narrow": adjacency_rows.NARROW,
    "pairs": adjacency_rows.PAIRS,
    "packed": adjacency_rows.PACKED,
    "when": adjacency_rows.WHEN,
    "order": adjacency_rows.ORDER,
    "time_sums": adjacency_rows.TIME_SUMS,
}
"""Column of each adjacency array's address in an address table."""
_WEIGHT_COLUMNS = [
    adjacency_rows.WEIGHTS,
    adjacency_rows.SUMS,
    adjacency_rows.ALIAS_THRESHOLD,
    adjacency_rows.ALIAS_FRACTION,
    adjacency_rows.PACKED,
    adjacency_rows.TIME_SUMS,
]
"""Columns that uniform sampling does not use."""
_BITS = 64
_FREE_IDS, _FREE_ROWS = np.full(2, hash_index.FREE, np.int64), np.zeros(2, np.uint32)


def resized_copy(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """Return an array of ``size`` values that starts with the first ``used`` ones of another."""
    out = np.empty(size, array.dtype)
    if used and size:
        out[:used] = array[:used]
    return out


def select_adjacency(image: PartImage, edge_type: int, direction: int) -> AdjacencyImage:
    """Return the adjacency of an edge type in a partition, by its local end."""
    edge = image.edges[edge_type]
    side = edge.outgoing if direction == OUT else edge.incoming
    if side is None:
        raise InvalidRequest(
            f"edge type {edge_type}: this version has no in-edges; create the space with "
            "`direction: both`"
        )
    if not side.indptr.size:
        raise Internal(f"edge type {edge_type}: an overlay without it was read")
    return side
