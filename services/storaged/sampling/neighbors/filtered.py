"""Neighbor sampling with a filter that a column index resolves.

Each node's edges are stored in the order of the column, so only ranges of that order are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import rng
from asterism_model.elements import EDGE
from asterism_model.filters.binding import bind
from asterism_model.filters.syntax import Filter
from storaged.kernels import adjacency_rows
from storaged.kernels.neighbors import filtered as kernel
from storaged.kernels.neighbors import index_ranges
from storaged.kernels.neighbors import probabilities as probability
from storaged.kernels.neighbors import with_replacement as gather
from storaged.sampling.cancellation import (
    BLOCK_NODES,
    Checkpoint,
    StopFlag,
    blocks,
    no_checkpoint,
    nodes_per_block,
)
from storaged.sampling.filters.index_ranges import can_resolve, key_runs
from storaged.sampling.neighbors.sample_neighbors import NeighborDraws
from storaged.sampling.node_lookup import (
    OUT,
    LocatedNodes,
    address_table,
    locate_nodes,
    resolve_local_types,
)
from storaged.sampling.version import LocalVersion, check_length, check_output_size
from storaged.store.column_index import OWN_WEIGHT_NAME, SortedEdges
from storaged.store.image import EMPTY_I64

_MAX_RUNS = 64
"""Largest number of ranges of one edge type.

Each range is searched for at every node. Beyond this number, a single scan of the edges is used
instead.

Part of the sampling contract: changing it changes results for a given seed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRanges:
    """Ranges of keys that match a filter, in the order of an index of an edge type."""

    index: int
    """Position of the index among those of the type."""
    runs: tuple[tuple[int, int], ...]
    """Smallest and largest key of each range, ascending."""


def resolve_ranges(
    version: LocalVersion, row_filter: Filter, types: Sequence[int]
) -> dict[int, IndexRanges]:
    """Return the key ranges that match a filter on edges, by edge type.

    Empty unless an index resolves the filter for every type with few ranges.

    Raises
    ------
    InvalidRequest, NotFound
        A type is unknown, or the filter cannot be bound to it.
    """
    ranges: dict[int, IndexRanges] = {}
    for type_id in types:
        version.type_name(EDGE, type_id)
        predicate = bind(row_filter, version.schema, EDGE, type_id)
        indexes = next((image.edges[type_id].indexes for image in version.parts.values()), ())
        position = next(
            (
                i
                for i, index in enumerate(indexes)
                if index.outgoing is not None and can_resolve(index, predicate)
            ),
            None,
        )
        if position is None:
            return {}
        runs = key_runs(predicate, indexes[position].values.dtype)
        if len(runs) > _MAX_RUNS:
            return {}
        ranges[type_id] = IndexRanges(index=position, runs=tuple(runs))
    return ranges


def _sorted_table(
    version: LocalVersion,
    edge_type: int,
    direction: int,
    index: int,
    weight_name: str,
    *,
    uniform: bool,
) -> NDArray[np.int64]:
    """Return the address table of one edge type with the order of an index.

    Returns
    -------
    ndarray of int64, shape (P, SORTED_COLUMNS)
        Read-only.
    """

    def edges_of_part(part: int) -> SortedEdges | None:
        column_index = version.parts[part].edges[edge_type].indexes[index]
        return column_index.outgoing if direction == OUT else column_index.incoming

    def make() -> NDArray[np.int64]:
        out = np.zeros((version.schema.parts, index_ranges.SORTED_COLUMNS), np.int64)
        out[:, : adjacency_rows.COLUMNS] = address_table(
            version, edge_type, direction, uniform=uniform
        )
        out[:, adjacency_rows.ORDER] = 0
        for part in version.parts:
            edges = edges_of_part(part)
            if edges is not None:
                tree = EMPTY_I64 if uniform else edges.weight_trees.get(weight_name, EMPTY_I64)
                out[part, [adjacency_rows.ORDER, index_ranges.KEYS, index_ranges.TREES]] = (
                    addresses_of([edges.order, edges.keys, tree])
                )
        return as_kernel_array(out)

    return version.cached((_sorted_table, edge_type, direction, index, weight_name, uniform), make)


def sample_indexed_neighbors(
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
    want_probabilities: bool,
    weight_name: str,
    ranges: Mapping[int, IndexRanges],
    checkpoint: Checkpoint = no_checkpoint,
) -> NeighborDraws:
    """Sample neighbors of each node from the edges that match a filter.

    Parameters
    ----------
    version : LocalVersion
    edge_types, node_type, ids, types, positions, count, replace, uniform, direction, seed, hop
        As in `storaged.sampling.neighbors.sample_neighbors.sample_neighbors`.
    want_weights, want_edge_ids, want_probabilities : bool
        Return weights, edge ids, probabilities.
    weight_name : str
        Name of the weights that ``version`` has in place of the edges' own.
    ranges : mapping
        Matching key ranges of every edge type, from `resolve_ranges`.
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
    local_types = resolve_local_types(version, edge_types, node_type, direction)
    size = ids.size * count
    out, out_types = np.full(size, -1, np.int64), np.full(size, -1, np.int32)
    weights, eids = (
        np.zeros(size if want_weights else 0, np.float32),
        np.full(size if want_edge_ids else 0, -1, np.int64),
    )
    probabilities = np.zeros(size if want_probabilities else 0, np.float64)
    with StopFlag(checkpoint) as stop:
        for block in (
            blocks(ids.size, min(nodes_per_block(count), BLOCK_NODES), checkpoint) if count else ()
        ):
            out_slice, block_positions, block_ids = (
                slice(block.start * count, block.stop * count),
                positions[block],
                ids[block],
            )
            for nodes in locate_nodes(
                version, node_type, block_ids, None if types is None else types[block]
            ):
                union = [
                    edge_type
                    for edge_type, local_type in zip(edge_types, local_types, strict=True)
                    if local_type == nodes.type_id
                ]
                if not union:
                    continue
                sampler = _IndexedSampler(
                    version=version,
                    union=union,
                    direction=direction,
                    count=count,
                    replace=replace,
                    uniform=uniform,
                    want_probabilities=want_probabilities,
                )
                draws = sampler.draw(
                    nodes,
                    nodes.tags(block_positions, block_ids),
                    [ranges[edge_type] for edge_type in union],
                    weight_name or OWN_WEIGHT_NAME,
                    seed=seed,
                    hop=hop,
                    stop=stop,
                )
                gather.write_types(
                    draws.slots,
                    nodes.places,
                    np.int64(count),
                    draws.type_indices,
                    as_kernel_array(np.array(union, np.int32)),
                    out_types[out_slice],
                )
                for type_index, edge_type in enumerate(union):
                    table = address_table(version, edge_type, direction)
                    inputs = draws.slots, nodes.places, nodes.parts, draws.type_indices
                    gather.gather_ids(
                        table,
                        gather.gather_params(count, type_index, adjacency_rows.NBR),
                        *inputs,
                        out[out_slice],
                    )
                    if want_edge_ids:
                        gather.gather_ids(
                            table,
                            gather.gather_params(count, type_index, adjacency_rows.EID),
                            *inputs,
                            eids[out_slice],
                        )
                    if want_weights:
                        gather.gather_weights(
                            table,
                            gather.gather_params(count, type_index, adjacency_rows.WEIGHTS),
                            *inputs,
                            weights[out_slice],
                        )
                if want_probabilities:
                    sampler.write_probabilities(nodes, draws, probabilities[out_slice])
    shape = (ids.size, count)
    return NeighborDraws(
        ids=out.reshape(shape),
        types=out_types.reshape(shape) if len(edge_types) > 1 else None,
        weights=weights.reshape(shape) if want_weights else None,
        eids=eids.reshape(shape) if want_edge_ids else None,
        probabilities=probabilities.reshape(shape) if want_probabilities else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _IndexedDraws:
    """Samples of the nodes of one type, with the totals that probabilities need."""

    type_indices: NDArray[np.int32]
    """Position of each draw's edge type in the union: int32, shape (m * count,).

    Empty for a union of one.
    """
    slots: NDArray[np.int64]
    stats: NDArray[np.float64]
    """Totals of each node: float64, shape (3, m).

    `storaged.kernels.neighbors.filtered.draw_indexed` writes them.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class _IndexedSampler:
    """Sampler for the nodes of one type."""

    version: LocalVersion
    union: Sequence[int]
    direction: int
    count: int
    replace: bool
    uniform: bool
    want_probabilities: bool

    def draw(
        self,
        nodes: LocatedNodes,
        tags: NDArray[np.int64],
        ranges: Sequence[IndexRanges],
        weight_name: str,
        *,
        seed: int,
        hop: int,
        stop: StopFlag,
    ) -> _IndexedDraws:
        """Sample neighbors of some nodes."""
        version, m = self.version, nodes.rows.size
        tables = [
            _sorted_table(
                version, edge_type, self.direction, item.index, weight_name, uniform=self.uniform
            )
            for edge_type, item in zip(self.union, ranges, strict=True)
        ]
        bounds = (
            np.array(
                [(t, low, high) for t, item in enumerate(ranges) for low, high in item.runs],
                np.int64,
            )
            .reshape(-1, 3)
            .T.copy()
        )
        slots = np.empty(m * self.count, np.int64)
        type_indices = np.empty(slots.size if len(self.union) > 1 else 0, np.int32)
        stats = np.empty((3, m), np.float64)
        kernel.draw_indexed(
            as_kernel_array(np.stack(tables)),
            kernel.IndexedParams(
                rng.key_of(seed, rng.RANGE, self.direction, hop, 0),
                rng.key_of(seed, rng.RANGE, self.direction, hop, 1),
                np.int64(self.count),
                self.replace,
                self.want_probabilities,
            ),
            tags,
            nodes.parts,
            nodes.rows,
            as_kernel_array(bounds),
            type_indices,
            slots,
            stats,
            stop.flag,
        )
        stop.check()
        return _IndexedDraws(
            type_indices=as_kernel_array(type_indices),
            slots=as_kernel_array(slots),
            stats=as_kernel_array(stats),
        )

    def write_probabilities(
        self, nodes: LocatedNodes, draws: _IndexedDraws, out: NDArray[np.float64]
    ) -> None:
        """Write the probabilities of the samples.

        With replacement each is independent; without, each is conditional on the earlier ones.
        """
        masses = np.zeros((nodes.rows.size, self.count), np.float64)
        for image, node_indices in nodes.iter_parts(self.version):
            part_masses = np.zeros((node_indices.size, self.count), np.float64)
            slots = as_kernel_array(draws.slots.reshape(masses.shape)[node_indices].reshape(-1))
            type_indices = (
                as_kernel_array(draws.type_indices.reshape(masses.shape)[node_indices].reshape(-1))
                if draws.type_indices.size
                else draws.type_indices
            )
            for t, edge_type in enumerate(self.union):
                edge = image.edges[edge_type]
                side = (
                    edge.outgoing
                    if self.direction == OUT or edge.incoming is None
                    else edge.incoming
                )
                weights = side.weights[:0] if self.uniform else side.weights
                probability.gather_drawn_weights(
                    slots, type_indices, np.int32(t), weights, part_masses.reshape(-1)
                )
            masses[node_indices] = part_masses
        places, flat = (
            nodes.places if nodes.places.size else np.arange(nodes.rows.size),
            as_kernel_array(masses.reshape(-1)),
        )
        places, count = as_kernel_array(places), np.int64(self.count)
        totals, counts, remaining = draws.stats
        if self.replace:
            probability.write_shares(flat, totals, places, count, out)
        else:
            probability.write_conditional(flat, remaining, counts, places, count, out)
