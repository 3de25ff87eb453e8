"""Sampling of neighbors with or without replacement, from one edge type or a union."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random import rng
from asterism_proto.errors import InvalidRequest
from storaged.kernels.adjacency_rows import EID, NBR, WEIGHTS
from storaged.kernels.neighbors import distinct_edge_sampling, distinct_node_sampling
from storaged.kernels.neighbors import edge_type_union_sampling as union_kernel
from storaged.kernels.neighbors import packed as packed_kernel
from storaged.kernels.neighbors import with_replacement as kernel
from storaged.kernels.node_rows import measure_nodes, measure_rows, tag_keys
from storaged.sampling.cancellation import (
    BLOCK_EDGES,
    Checkpoint,
    StopFlag,
    blocks,
    blocks_by_work,
    no_checkpoint,
    nodes_per_block,
)
from storaged.sampling.excluded_edge_rejection import REJECTION_MARGIN, skipped_draws
from storaged.sampling.neighbors.degrees import degrees
from storaged.sampling.neighbors.probabilities import EdgeSource, UnionDraws, write_probabilities
from storaged.sampling.node_lookup import (
    LocatedNodes,
    address_table,
    all_packed,
    end_types,
    locate_nodes,
    resolve_local_types,
    select_adjacency,
    stack_tables,
)
from storaged.sampling.version import LocalVersion, check_length, check_output_size
from storaged.store.image import (
    EMPTY_F32,
    EMPTY_F64,
    EMPTY_I32,
    EMPTY_I64,
    AdjacencyImage,
    PartImage,
)

NEIGHBOR_ELEMENT = 3
"""Element number of neighbors in keys of exponential-key selection, after 1 and 2.

Part of the sampling contract: changing it changes results for a given seed.
"""
_MIN_SELECT_NODES = 64
"""Number of nodes up to which selections are not split into blocks."""
_F32, _F64 = as_kernel_array(EMPTY_F32), as_kernel_array(EMPTY_F64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NeighborDraws:
    """Sampled neighbors, one row per node of the request."""

    ids: NDArray[np.int64]
    """Neighbor ids: int64, shape (m, count); -1 for none."""
    types: NDArray[np.int32] | None
    """Edge types: int32, shape (m, count); -1 for none. None if only one was requested."""
    weights: NDArray[np.float32] | None
    """Weights, if requested: float32, shape (m, count); 0 for none."""
    eids: NDArray[np.int64] | None
    """Edge ids, if requested: int64, shape (m, count); -1 for none."""
    probabilities: NDArray[np.float64] | None
    """Probabilities, if requested: float64, shape (m, count); 0 for none."""
    times: NDArray[np.int64] | NDArray[np.float64] | None = None
    """Times of the edges, if requested: shape (m, count); 0 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _DrawParams:
    """The parameters of a draw, apart from the node."""

    seed: int
    hop: int
    direction: int
    count: int
    replace: bool
    uniform: bool
    slot_key: np.uint64
    """Random key for draws within an edge type."""
    type_key: np.uint64
    """Random key for choices among edge types."""
    distinct_neighbors: bool
    """True to sample neighbors without replacement, instead of edges."""

    def selection_key(self, edge_type: int) -> np.uint64:
        """Return the random key of exponential-key selections among edges of a type."""
        return rng.key_of(
            self.seed, rng.EXPONENTIAL_KEY, NEIGHBOR_ELEMENT, self.direction, self.hop, edge_type
        )

    def draw_params(self, type_index: int) -> kernel.DrawParams:
        """Return the kernel parameters of draws with replacement along one type of the union."""
        return kernel.DrawParams(self.slot_key, np.int64(self.count), np.int32(type_index))

    def distinct_params(self, edge_type: int) -> distinct_edge_sampling.DistinctParams:
        """Return the kernel parameters of draws without replacement along an edge type."""
        return distinct_edge_sampling.DistinctParams(
            self.slot_key, self.selection_key(edge_type), np.int64(self.count)
        )


def _keys(key: np.uint64, tags: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the random keys of tags under ``key``, read-only."""
    out = np.empty(tags.size, np.uint64)
    tag_keys(key, tags, out)
    return as_kernel_array(out)


def sample_neighbors(
    version: LocalVersion,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    positions: NDArray[np.int64],
    count: int,
    replace: bool,
    uniform: bool,
    direction: int,
    seed: int,
    hop: int,
    want_weights: bool,
    want_edge_ids: bool,
    want_probabilities: bool = False,
    distinct_neighbors: bool = False,
    checkpoint: Checkpoint = no_checkpoint,
) -> NeighborDraws:
    """Sample ``count`` neighbors of each node from a union of edge types.

    Parameters
    ----------
    version : LocalVersion
    edge_types : sequence of int
        Edge types of the union. Their order matters for the result of a seed.
    node_type : int
        Type of all ids; -1 if ``types`` has the type of each.
    ids : ndarray of int64, shape (m,)
        Nodes in partitions held here; -1 and unknown ids have no neighbors.
    types : ndarray of int32, shape (m,), optional
        Node types, if ``node_type`` is -1; optional in a space of global ids.
    positions : ndarray of int64, shape (m,)
        Position of each node in the whole request. A draw is a function of the node and of (seed,
        hop, direction, position, draw index) only. It does not depend on the host, nor on other
        nodes in the call.
    count : int
        Number of neighbors per node.
    replace : bool
        Sample with replacement. Without, a node with at most ``count`` edges returns all of them,
        in adjacency order.
    uniform : bool
        Give all edges the same probability, instead of one by weight.
    direction : int
        1 for out-edges, 2 for in-edges.
    seed, hop : int
        64-bit seed, and the hop, which is part of the random key.
    want_weights, want_edge_ids, want_probabilities : bool
        Return weights, edge ids, probabilities.
    distinct_neighbors : bool
        Sample distinct neighbors, up to ``count``. A neighbor has the weight of all edges to it
        together, and is returned with one of them. Requires sampling without replacement and
        without probabilities. Default False.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Returns
    -------
    NeighborDraws

    Raises
    ------
    InvalidRequest
        A type, count or direction is invalid.
    Unavailable
        A partition is not held here.
    """
    check_output_size("neighbors", ids.size, count)
    check_length("positions", positions, ids.size)
    if distinct_neighbors and (replace or want_probabilities):
        raise InvalidRequest("distinct neighbors: expected no replacement and no probabilities")
    local_types = resolve_local_types(version, edge_types, node_type, direction)
    params = _DrawParams(
        seed=seed,
        hop=hop,
        direction=direction,
        count=count,
        replace=replace,
        uniform=uniform,
        slot_key=rng.key_of(seed, rng.NEIGHBOR, direction, hop),
        type_key=rng.key_of(seed, rng.NEIGHBOR_TYPE, direction, hop),
        distinct_neighbors=distinct_neighbors,
    )
    size = ids.size * count
    columns = _NeighborColumns.empty(
        size,
        types=len(edge_types) > 1,
        weights=want_weights,
        eids=want_edge_ids,
        probabilities=want_probabilities,
    )
    reads_all_edges = (
        not replace and (len(edge_types) > 1 or distinct_neighbors) and ids.size > _MIN_SELECT_NODES
    )
    node_blocks = blocks(ids.size, nodes_per_block(count), checkpoint)
    if reads_all_edges:  # Exponential-key selections read all edges of a node.
        degree_counts = degrees(
            version,
            edge_types=edge_types,
            node_type=node_type,
            ids=ids,
            types=types,
            direction=direction,
            checkpoint=checkpoint,
        )
        node_blocks = blocks_by_work(degree_counts.sum(axis=1) + count, BLOCK_EDGES, checkpoint)
    with StopFlag(checkpoint) as stop:
        for block in node_blocks if count else ():
            is_single_block = block.stop - block.start == ids.size
            block_ids, block_positions, block_columns = (
                (ids, positions, columns)
                if is_single_block
                else (ids[block], positions[block], columns.slice_rows(block, count))
            )
            for nodes in locate_nodes(
                version,
                node_type,
                block_ids,
                types if types is None or is_single_block else types[block],
            ):
                union = [
                    edge_type
                    for edge_type, local_type in zip(edge_types, local_types, strict=True)
                    if local_type == nodes.type_id
                ]
                if not union:
                    continue
                tags = nodes.tags(block_positions, block_ids)
                if version.rejected is None:
                    _draw_for_type(version, nodes, union, tags, params, block_columns, stop)
                else:
                    _draw_rejecting(
                        version, nodes, block_ids, union, tags, params, block_columns, stop
                    )
    return columns.to_draws((ids.size, count))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _NeighborColumns:
    """Flat columns of a reply, shape (m * count,) each."""

    ids: NDArray[np.int64]
    types: NDArray[np.int32] | None
    weights: NDArray[np.float32] | None
    eids: NDArray[np.int64] | None
    probabilities: NDArray[np.float64] | None

    @classmethod
    def empty(
        cls, size: int, *, types: bool, weights: bool, eids: bool, probabilities: bool
    ) -> _NeighborColumns:
        """Return a reply without neighbors that has the requested columns."""
        return cls(
            ids=np.full(size, -1, np.int64),
            types=np.full(size, -1, np.int32) if types else None,
            weights=np.zeros(size, np.float32) if weights else None,
            eids=np.full(size, -1, np.int64) if eids else None,
            probabilities=np.zeros(size, np.float64) if probabilities else None,
        )

    def slice_rows(self, block: slice, count: int) -> _NeighborColumns:
        """Return the rows of some nodes as views."""
        selected = slice(block.start * count, block.stop * count)
        return _NeighborColumns(
            ids=self.ids[selected],
            types=None if self.types is None else self.types[selected],
            weights=None if self.weights is None else self.weights[selected],
            eids=None if self.eids is None else self.eids[selected],
            probabilities=None if self.probabilities is None else self.probabilities[selected],
        )

    def to_draws(self, shape: tuple[int, int]) -> NeighborDraws:
        """Return the columns, one row per node."""
        return NeighborDraws(
            ids=self.ids.reshape(shape),
            types=None if self.types is None else self.types.reshape(shape),
            weights=None if self.weights is None else self.weights.reshape(shape),
            eids=None if self.eids is None else self.eids.reshape(shape),
            probabilities=None if self.probabilities is None else self.probabilities.reshape(shape),
        )

    @property
    def only_ids(self) -> bool:
        """True if slots are not needed once the ids are written."""
        return (
            self.types is None
            and self.weights is None
            and self.eids is None
            and self.probabilities is None
        )


def _draw_for_type(
    version: LocalVersion,
    nodes: LocatedNodes,
    union: list[int],
    tags: NDArray[np.int64],
    params: _DrawParams,
    columns: _NeighborColumns,
    stop: StopFlag,
) -> None:
    """Sample neighbors of the nodes of one type, and write them to the reply."""
    type_indices, slots = _draw_slots(version, nodes, union, tags, params, columns, stop)
    if columns.only_ids and slots.size == 0:
        return
    _gather_columns(version, nodes, union, params, type_indices, slots, columns)
    if columns.probabilities is not None:
        for image, node_indices in nodes.iter_parts(version):
            _write_probabilities(
                image,
                nodes,
                node_indices,
                union,
                params,
                type_indices,
                slots,
                columns.probabilities,
                stop,
            )


def _draw_slots(
    version: LocalVersion,
    nodes: LocatedNodes,
    union: list[int],
    tags: NDArray[np.int64],
    params: _DrawParams,
    columns: _NeighborColumns,
    stop: StopFlag,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Draw edges of nodes; return their types, as positions in the union, and their slots.

    Types are empty for a union of one. If only ids are requested they may be written at once; then
    there are no slots.
    """
    type_indices = np.empty(nodes.rows.size * params.count if len(union) > 1 else 0, np.int32)
    if params.replace:
        slots = _draw_with_replacement(
            version, nodes, union, tags, params, type_indices, columns, stop
        )
    elif params.distinct_neighbors and len(union) == 1:
        slots = _draw_distinct_nodes(version, nodes, union[0], tags, params, stop)
    elif len(union) == 1:
        slots = _draw_distinct_edges(version, nodes, union[0], tags, params, columns, stop)
    else:
        slots = _select_union(version, nodes, union, tags, params, type_indices, stop)
    return as_kernel_array(type_indices), as_kernel_array(slots)


def _draw_rejecting(
    version: LocalVersion,
    nodes: LocatedNodes,
    ids: NDArray[np.int64],
    union: list[int],
    tags: NDArray[np.int64],
    params: _DrawParams,
    columns: _NeighborColumns,
    stop: StopFlag,
) -> None:
    """Sample neighbors like `_draw_for_type`, of nodes at some of which draws reject edges.

    The accepted draws of a node are the first ones of its stream that do not fall on a rejected
    edge, however many are made at a time.
    """
    rejected = version.rejected
    assert rejected is not None
    node_numbers = rejected.find_nodes(
        nodes.type_id, ids[nodes.places] if nodes.places.size else ids
    )
    rejecting = np.flatnonzero((node_numbers >= 0) & (nodes.rows >= 0))
    other_rows = nodes.rows.copy()
    other_rows[rejecting] = -1
    _draw_for_type(
        version,
        replaced(nodes, rows=as_kernel_array(other_rows)),
        union,
        tags,
        params,
        columns,
        stop,
    )
    counts = rejected.counts(union, node_numbers[rejecting])
    # Draws without replacement skip at most as many edges as a node has rejected ones. Their number
    # stays below half of its degree, because a node gives all its edges in another order.
    sizes = params.count + (
        np.full(counts.size, params.count + REJECTION_MARGIN)
        if params.replace
        else skipped_draws(counts)
    )
    open_nodes = np.ones(rejecting.size, np.bool_)
    while open_nodes.any():
        size = int(sizes[open_nodes].min())
        group = np.flatnonzero(open_nodes & (sizes == size))
        selected = rejecting[group]
        located = LocatedNodes(
            type_id=nodes.type_id,
            places=as_kernel_array(nodes.places[selected] if nodes.places.size else selected),
            parts=as_kernel_array(nodes.parts[selected]),
            rows=as_kernel_array(nodes.rows[selected]),
        )
        drawn = replaced(located, places=as_kernel_array(EMPTY_I64))
        scratch = _NeighborColumns.empty(
            selected.size * size,
            types=False,
            weights=False,
            eids=True,  # so that the slots are returned
            probabilities=False,
        )
        wide_params = replaced(params, count=size)
        drawn_types, drawn_slots = _draw_slots(
            version, drawn, union, as_kernel_array(tags[selected]), wide_params, scratch, stop
        )
        type_indices, slots = drawn_types.reshape(-1, size), drawn_slots.reshape(-1, size)
        accepted = rejected.accepted_mask(union, located.parts, type_indices, slots)
        is_done = accepted.sum(axis=1) >= params.count
        sizes[group[~is_done]] *= 2
        open_nodes[group[is_done]] = False
        order = np.argsort(~accepted, axis=1, kind="stable")[is_done, : params.count]
        located = replaced(
            located,
            places=as_kernel_array(located.places[is_done]),
            parts=as_kernel_array(located.parts[is_done]),
            rows=as_kernel_array(located.rows[is_done]),
        )
        kept_slots = as_kernel_array(np.take_along_axis(slots[is_done], order, axis=1).reshape(-1))
        kept_types = as_kernel_array(
            np.take_along_axis(type_indices[is_done], order, axis=1).reshape(-1)
            if len(union) > 1
            else EMPTY_I32
        )
        _gather_ids(version, located, union, params, kept_types, kept_slots, columns)
        _gather_columns(version, located, union, params, kept_types, kept_slots, columns)
        if columns.probabilities is not None:
            node_rows = node_numbers[selected][is_done]
            lost = (
                rejected.weights(union, node_rows),
                rejected.counts(union, node_rows).astype(np.float64),
            )
            for image, node_indices in located.iter_parts(version):
                _write_probabilities(
                    image,
                    located,
                    node_indices,
                    union,
                    params,
                    kept_types,
                    kept_slots,
                    columns.probabilities,
                    stop,
                    lost=(lost[0][node_indices], lost[1][node_indices]),
                )


def _draw_with_replacement(
    version: LocalVersion,
    nodes: LocatedNodes,
    union: list[int],
    tags: NDArray[np.int64],
    params: _DrawParams,
    type_indices: NDArray[np.int32],
    columns: _NeighborColumns,
    stop: StopFlag,
) -> NDArray[np.int64]:
    """Write the sampled ids; return the slots if other columns need them."""
    direction, uniform = params.direction, params.uniform
    slots = np.full(0 if columns.only_ids else nodes.rows.size * params.count, -1, np.int64)
    if len(union) == 1 and all_packed(version, union[0], direction, uniform=uniform):
        packed_kernel.draw_packed(
            address_table(version, union[0], direction, uniform=uniform),
            params.draw_params(0),
            tags,
            nodes.places,
            nodes.parts,
            nodes.rows,
            columns.ids,
            slots,
            stop.flag,
        )
        stop.check()
        return slots
    tables = [address_table(version, edge_type, direction, uniform=uniform) for edge_type in union]
    if len(union) > 1:
        kernel.choose_types(
            _keys(params.type_key, tags),
            _type_weights(nodes, tables),
            np.int64(params.count),
            type_indices,
            stop.flag,
        )
        stop.check()
    type_indices = as_kernel_array(type_indices)
    for type_index, table in enumerate(tables):
        kernel.draw_slots(
            table,
            params.draw_params(type_index),
            tags,
            nodes.places,
            nodes.parts,
            nodes.rows,
            type_indices,
            columns.ids,
            slots,
            stop.flag,
        )
        stop.check()
    return slots


def _draw_distinct_edges(
    version: LocalVersion,
    nodes: LocatedNodes,
    edge_type: int,
    tags: NDArray[np.int64],
    params: _DrawParams,
    columns: _NeighborColumns,
    stop: StopFlag,
) -> NDArray[np.int64]:
    """Sample without replacement from one edge type; otherwise like `_draw_with_replacement`."""
    buffered_rows = 2 * distinct_edge_sampling.TILE if columns.only_ids else nodes.rows.size
    slots = np.empty(buffered_rows * params.count, np.int64)
    distinct_edge_sampling.draw_distinct_edges(
        address_table(version, edge_type, params.direction, uniform=params.uniform),
        params.distinct_params(edge_type),
        tags,
        nodes.places,
        nodes.parts,
        nodes.rows,
        columns.ids,
        slots,
        stop.flag,
    )
    stop.check()
    return slots[:0] if columns.only_ids else slots


def _draw_distinct_nodes(
    version: LocalVersion,
    nodes: LocatedNodes,
    edge_type: int,
    tags: NDArray[np.int64],
    params: _DrawParams,
    stop: StopFlag,
) -> NDArray[np.int64]:
    """Sample distinct neighbors along one edge type."""
    slots = np.empty(nodes.rows.size * params.count, np.int64)
    distinct_node_sampling.draw_distinct_nodes(
        address_table(version, edge_type, params.direction, uniform=params.uniform),
        params.distinct_params(edge_type),
        tags,
        nodes.parts,
        nodes.rows,
        slots,
        stop.flag,
    )
    stop.check()
    return slots


def _select_union(
    version: LocalVersion,
    nodes: LocatedNodes,
    union: list[int],
    tags: NDArray[np.int64],
    params: _DrawParams,
    type_indices: NDArray[np.int32],
    stop: StopFlag,
) -> NDArray[np.int64]:
    """Sample without replacement from several edge types.

    One exponential-key selection covers all of their edges, or the neighbors that these lead to.
    """
    slots = np.empty(nodes.rows.size * params.count, np.int64)
    inputs = (
        stack_tables(version, union, params.direction, uniform=params.uniform),
        np.int64(params.count),
        as_kernel_array(
            np.stack([_keys(params.selection_key(edge_type), tags) for edge_type in union])
        ),
        nodes.parts,
        nodes.rows,
    )
    if params.distinct_neighbors:
        remote_types = [end_types(version, edge_type, params.direction)[1] for edge_type in union]
        union_kernel.select_union_nodes(
            *inputs,
            as_kernel_array(np.array(remote_types, np.int32)),
            type_indices,
            slots,
            stop.flag,
        )
    else:
        union_kernel.select_union_edges(*inputs, type_indices, slots, stop.flag)
    stop.check()
    return slots


def _type_weights(nodes: LocatedNodes, tables: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return the weight of each edge type at each node.

    Returns
    -------
    ndarray of float64, shape (types, m)
        Read-only.
    """
    out = np.empty((len(tables), nodes.rows.size), np.float64)
    for t, table in enumerate(tables):
        measure_nodes(table, nodes.parts, nodes.rows, out[t])
    return as_kernel_array(out)


def _total_weights(
    rows: NDArray[np.int64], sides: list[AdjacencyImage], *, uniform: bool
) -> NDArray[np.float64]:
    """Return the weight of all edge types together at each of one partition's rows.

    Returns
    -------
    ndarray of float64, shape (m,)
    """
    out = np.empty((len(sides), rows.size), np.float64)
    for t, side in enumerate(sides):
        measure_rows(rows, side.indptr, _F64 if uniform else side.sums, out[t])
    total: NDArray[np.float64] = out.sum(axis=0)
    return total


def _write_probabilities(
    image: PartImage,
    nodes: LocatedNodes,
    node_indices: NDArray[np.int64],
    union: list[int],
    params: _DrawParams,
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    out: NDArray[np.float64],
    stop: StopFlag,
    lost: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> None:
    """Write the probabilities of one partition's samples.

    ``lost`` has the weight and the number of each node's rejected edges, if it has any.
    """
    sides = [select_adjacency(image, edge_type, params.direction) for edge_type in union]
    rows = as_kernel_array(nodes.rows[node_indices])
    draws = UnionDraws(
        count=params.count,
        rows=rows,
        places=as_kernel_array(nodes.places[node_indices] if nodes.places.size else node_indices),
        sources=[
            EdgeSource(indptr=side.indptr, weights=_F32 if params.uniform else side.weights)
            for side in sides
        ],
        totals=as_kernel_array(_total_weights(rows, sides, uniform=params.uniform)),
        degrees=as_kernel_array(_total_weights(rows, sides, uniform=True)),
        type_indices=as_kernel_array(
            type_indices.reshape(-1, params.count)[node_indices].reshape(-1)
        )
        if type_indices.size
        else type_indices,
        slots=as_kernel_array(slots.reshape(-1, params.count)[node_indices].reshape(-1)),
    )
    if lost is not None:
        lost_weights = lost[1] if params.uniform else lost[0]
        draws = replaced(
            draws,
            totals=as_kernel_array(draws.totals - lost_weights),
            degrees=as_kernel_array(draws.degrees - lost[1]),
            excluded_weights=lost_weights,
        )
    write_probabilities(draws, replace=params.replace, out=out, stop=stop)


def _gather_ids(
    version: LocalVersion,
    nodes: LocatedNodes,
    union: list[int],
    params: _DrawParams,
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    columns: _NeighborColumns,
) -> None:
    """Write the ids of the sampled slots."""
    for i, edge_type in enumerate(union):
        kernel.gather_ids(
            address_table(version, edge_type, params.direction),
            kernel.gather_params(params.count, i, NBR),
            slots,
            nodes.places,
            nodes.parts,
            type_indices,
            columns.ids,
        )


def _gather_columns(
    version: LocalVersion,
    nodes: LocatedNodes,
    union: list[int],
    params: _DrawParams,
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    columns: _NeighborColumns,
) -> None:
    """Write the requested columns of the sampled slots.

    Ids are already written, except for a union sampled without replacement and for distinct
    neighbors.
    """
    if columns.types is not None:
        kernel.write_types(
            slots,
            nodes.places,
            np.int64(params.count),
            type_indices,
            as_kernel_array(np.array(union, np.int32)),
            columns.types,
        )
    if not params.replace and (len(union) > 1 or params.distinct_neighbors):
        _gather_ids(version, nodes, union, params, type_indices, slots, columns)
    for i, edge_type in enumerate(union):
        table = address_table(version, edge_type, params.direction)
        inputs = slots, nodes.places, nodes.parts, type_indices
        if columns.eids is not None:
            kernel.gather_ids(
                table, kernel.gather_params(params.count, i, EID), *inputs, columns.eids
            )
        if columns.weights is not None:
            kernel.gather_weights(
                table, kernel.gather_params(params.count, i, WEIGHTS), *inputs, columns.weights
            )
