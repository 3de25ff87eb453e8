"""From ids of a request to rows of the parts that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest, Unavailable
from graphkit import index, split
from graphkit.jit import addresses_of, settled
from storaged.draw.blocks import DRAWS, Checkpoint, blocks, never
from storaged.draw.version import EDGE, NODE, Version, checked_length
from storaged.kernel import rows as kernel_rows
from storaged.kernel import table
from storaged.store.image import EMPTY_I64, EMPTY_U8, EMPTY_U32, Adjacency, NodeImage, PartImage
from storaged.store.pages import together

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _NodeRows:
    """How ids of one node type lead to rows, by part; arrays are told by address, not to outlive the version that they are of."""

    rows: NDArray[np.int64]
    """int64[P], -1 where a part is not held here."""
    dense: NDArray[np.uint8]
    lives: NDArray[np.uint64]
    index_ids: NDArray[np.uint64]
    index_rows: NDArray[np.uint64]
    shifts: NDArray[np.uint64]
    """[P] each, as `storaged.kernel.rows.locate` takes them."""

    @classmethod
    def of(cls, version: Version, type_id: int) -> _NodeRows:
        """Those of one type."""
        held = [version.parts.get(part) for part in range(version.schema.parts)]
        nodes = [None if image is None else image.nodes[type_id] for image in held]
        return cls(
            rows=settled(np.array([-1 if node is None else node.rows for node in nodes], np.int64)),
            dense=settled(np.array([node is not None and node.dense for node in nodes], np.uint8)),
            lives=addresses_of(EMPTY_U8 if node is None else node.live for node in nodes),
            index_ids=addresses_of(EMPTY_I64 if node is None else node.index_ids for node in nodes),
            index_rows=addresses_of(EMPTY_U32 if node is None else node.index_rows for node in nodes),
            shifts=settled(np.array([0 if node is None or node.dense else index.shift_of(node.index_ids) for node in nodes], np.uint64)),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Located:
    """The nodes of a request that are of one type, wherever they live."""

    type_id: int
    at: NDArray[np.int64]
    """int64[m], their places in the request, ascending; empty: it has no others, and node i has place i."""
    parts: NDArray[np.int32]
    """int32[m]."""
    rows: NDArray[np.int64]
    """int64[m], in their parts; -1 where the node is unknown, or no node."""

    def of_parts(self, version: Version) -> Iterator[tuple[PartImage, NDArray[np.int64]]]:
        """The image of each part, and which of the nodes are there."""
        for part in np.unique(self.parts[self.rows >= 0]):
            yield version.image(int(part)), np.flatnonzero((self.parts == part) & (self.rows >= 0))


def located(version: Version, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None) -> Iterator[Located]:
    """The nodes of a request by type, parts together; arguments and errors as of `groups_of`."""
    types = checked_types(version, node_type, ids, types)
    if types is None:
        yield _located(version, node_type, ids, settled(EMPTY_I64))
        return
    for type_id in np.unique(types[types >= 0]):
        at = np.flatnonzero(types == type_id)
        whole = at.size == ids.size
        yield _located(version, int(type_id), ids if whole else ids[at], settled(EMPTY_I64 if whole else at))


def _located(version: Version, type_id: int, ids: NDArray[np.int64], at: NDArray[np.int64]) -> Located:
    schema = version.schema
    lead = version.once((_NodeRows, type_id), lambda: _NodeRows.of(version, type_id))
    parts, rows = np.empty(ids.size, np.int32), np.empty(ids.size, np.int64)
    missing = int(
        kernel_rows.locate(
            settled(ids),
            np.int64(schema.parts),
            schema.placement == "mix64",
            lead.rows,
            lead.dense,
            lead.lives,
            lead.index_ids,
            lead.index_rows,
            lead.shifts,
            parts,
            rows,
        )
    )
    if missing >= 0:
        version.image(missing)
    return Located(type_id=type_id, at=at, parts=settled(parts), rows=settled(rows))


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
    types = checked_types(version, node_type, ids, types)
    parts = split.part_of(ids, schema.parts, schema.placement)
    count = len(schema.node_types)
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


def checked_types(version: Version, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None) -> NDArray[np.int32] | None:
    """The type of each node, None where all are of ``node_type``."""
    schema = version.schema
    count = len(schema.node_types)
    if node_type >= 0:
        version.type_name(NODE, node_type)
        return None
    if types is not None:
        checked_length("types", types, ids.size)
        if types.size and not -1 <= int(types.min()) <= int(types.max()) < count:
            raise InvalidRequest(f"types: found {int(types.min())} to {int(types.max())}; the schema has node types 0 to {count - 1}")
        return types
    if schema.ids == "global":
        return _types_of(version, ids)
    raise InvalidRequest("node type -1 without types: ids of this space are per type, so say which type they are of")


def _types_of(version: Version, ids: NDArray[np.int64]) -> NDArray[np.int32]:
    """The node type of each id of a space of global ids, -1 where there is none."""
    out = np.full(ids.size, -1, np.int32)
    parts = split.part_of(ids, version.schema.parts, version.schema.placement)
    order, offsets = split.group(np.where(ids < 0, np.int32(version.schema.parts), parts), version.schema.parts + 1)
    for part in np.flatnonzero(np.diff(offsets[:-1])):
        image = version.image(int(part))
        at = order[offsets[part] : offsets[part + 1]]
        wanted = ids[at]
        for type_id, node in enumerate(image.nodes):
            out[at[rows_of(image, node, wanted) >= 0]] = type_id
    return out


def node_types(
    version: Version, node_type: int, ids: NDArray[np.int64], types: NDArray[np.int32] | None, checkpoint: Checkpoint = never
) -> NDArray[np.int32]:
    """The type of each node, -1 where there is no such node; int32[m].

    Parameters
    ----------
    version, node_type, ids, types
        As in `groups_of`: where types are said, each id is looked up in its own.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    out = np.full(ids.size, -1, np.int32)
    for block in blocks(ids.size, DRAWS, checkpoint):
        own = out[block]
        for group in groups_of(version, node_type, ids[block], None if types is None else types[block]):
            own[group.at[group.rows >= 0]] = group.type_id
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


def table_of(version: Version, edge_type: int, direction: int) -> NDArray[np.int64]:
    """int64[P, columns], read-only: where the arrays of an edge type are, by the end that is near, as `storaged.kernel.table` lays it out.

    They are told by address, not to outlive the version. InvalidRequest as of `adjacency`.
    """

    def make() -> NDArray[np.int64]:
        schema = version.schema
        edge = schema.edge_types[edge_type]
        near = schema.node_type_id(edge.src_type if direction == OUT else edge.dst_type)
        found = np.zeros((schema.parts, table.COLUMNS), np.int64)
        found[:, table.ROWS] = table.ABSENT
        for part, image in version.parts.items():
            found[part] = _line(image.nodes[near], adjacency(image, edge_type, direction))
        beside = version.once(_beside, lambda: _beside(version))
        if (edge_type, direction) in beside:
            found[list(version.parts), table.INDPTR] = addresses_of(beside[edge_type, direction])
        return settled(found)

    return version.once((table_of, edge_type, direction), make)


def _beside(version: Version) -> Mapping[tuple[int, int], Sequence[NDArray[np.int64]]]:
    """Where the edges of rows begin, by edge type and direction, of each part held here: in large pages, where images have it in small ones.

    Every draw of neighbors reads it, at random. Empty where there is nothing to gain, or rows are those of a condition and will not last.
    """
    if version.condition:
        return {}
    kinds = [(edge_type, direction) for edge_type in range(len(version.schema.edge_types)) for direction in (OUT, IN)]
    kinds = [kind for kind in kinds if kind[1] == OUT or all(image.edges[kind[0]].into is not None for image in version.parts.values())]
    own = [adjacency(image, *kind).indptr for kind in kinds for image in version.parts.values()]
    copies = together(own)
    return {kind: copies[at * len(version.parts) :][: len(version.parts)] for at, kind in enumerate(kinds)} if copies is not own else {}


def _line(node: NodeImage, near: Adjacency) -> NDArray[np.int64]:
    out = np.zeros(table.COLUMNS, np.int64)
    out[table.ROWS], out[table.SLOTS] = near.indptr.size - 1, near.nbr.size
    if not node.dense:
        # An index is there in any case: of no ids, it is two free slots, for no word is shifted by all of its bits.
        ids, rows = (node.index_ids, node.index_rows) if node.index_ids.size else (_NOBODY, _NOWHERE)
        out[table.INDEX_BITS] = _BITS - int(index.shift_of(ids))
        out[[table.INDEX_IDS, table.INDEX_ROWS]] = addresses_of([ids, rows])
    out[table.LIVE] = addresses_of([node.live])[0]
    out[[getattr(table, name.upper()) for name in _COLUMNS]] = addresses_of(getattr(near, name) for name in _COLUMNS)
    return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Where the edges of nodes are along one edge type, node by node; read-only arrays."""

    table: NDArray[np.int64]
    """Of `table_of`."""
    lines: NDArray[np.int64]
    """int64[m]: the part of each node."""
    starts: NDArray[np.int64]
    """int64[m]: the slot of its first edge there."""
    degrees: NDArray[np.int64]
    """int64[m]: how many it has; 0 for an unknown node."""
    edges: int
    """Of all of them."""

    @classmethod
    def of(cls, version: Version, edge_type: int, direction: int, ids: NDArray[np.int64]) -> Rows:
        """Those of some nodes, -1 being none; Unavailable where one lives in a part that is not held here."""
        schema, ids, lines = version.schema, settled(ids), table_of(version, edge_type, direction)
        found = [np.empty(ids.size, np.int64) for _ in range(3)]
        edges = int(table.find_rows(ids, np.int64(schema.parts), schema.placement != "mix64", lines, *found))
        if edges < 0:
            where = f"node {ids[-1 - edges]} of space {version.space_id} lives in a part that is not held here"
            raise Unavailable(f"{where}; this host has parts {sorted(version.parts)}")
        parts, starts, degrees = map(settled, found)
        return cls(table=lines, lines=parts, starts=starts, degrees=degrees, edges=edges)


_COLUMNS = ("indptr", "nbr", "eid", "weights", "sums", "hot", "cold", "narrow", "pairs", "packed", "when", "order", "time_sums")
"""Arrays of an adjacency, and columns of a table."""
_BITS = 64
_NOBODY, _NOWHERE = np.full(2, index.FREE, np.int64), np.zeros(2, np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adjacencies:
    """The adjacencies of one edge type by one end, by part; arrays are told by address, not to outlive the version that they are of.

    Notes
    -----
    All are uint64[P]; 0 where an array is empty, or its part not held here.
    """

    indptr: NDArray[np.uint64]
    nbr: NDArray[np.uint64]
    eid: NDArray[np.uint64]
    weights: NDArray[np.uint64]
    sums: NDArray[np.uint64]
    hot: NDArray[np.uint64]
    cold: NDArray[np.uint64]
    narrow: NDArray[np.uint64]
    pairs: NDArray[np.uint64]
    packed: NDArray[np.uint64]
    when: NDArray[np.uint64]
    order: NDArray[np.uint64]
    time_sums: NDArray[np.uint64]

    @property
    def all_packed(self) -> bool:
        """Whether every part that is held here and has edges has them once more as `storaged.kernel.packed` reads them."""
        of = np.where(self.hot > 0, self.packed, self.narrow)
        return bool((of[self.nbr > 0] > 0).all())

    def uniform(self) -> Adjacencies:
        """The same without weights: every edge alike."""
        none = settled(np.zeros(self.indptr.size, np.uint64))
        return replace(self, weights=none, sums=none, hot=none, cold=none, packed=none, time_sums=none)


def adjacencies(version: Version, edge_type: int, direction: int, *, uniform: bool = False) -> Adjacencies:
    """The columns of `table_of`, one array each, as kernels take them that have the rows of nodes."""

    def make() -> Adjacencies:
        lines = table_of(version, edge_type, direction)
        found = Adjacencies(**{name: settled(lines[:, getattr(table, name.upper())].astype(np.uint64)) for name in _COLUMNS})
        return found.uniform() if uniform else found

    return version.once((Adjacencies, edge_type, direction, uniform), make)


def longer(array: NDArray[Any], kept: int, size: int) -> NDArray[Any]:
    """A longer array that begins with what is in another one."""
    out = np.empty(size, array.dtype)
    out[: min(kept, size)] = array[: min(kept, size)]
    return out


def adjacency(image: PartImage, edge_type: int, direction: int) -> Adjacency:
    """The adjacency of an edge type at this part, by the end that is near."""
    edge = image.edges[edge_type]
    if direction == OUT:
        return edge.out
    if edge.into is None:
        raise InvalidRequest(f"edge type {edge_type}: no in-copies in this version; build it with `direction: both`")
    return edge.into
