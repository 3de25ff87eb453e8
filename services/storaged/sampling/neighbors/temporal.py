"""Temporal sampling: neighbors among the edges up to a time of each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.time_keys import decode_times, limit_keys
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.operators.khop import ALL_NEIGHBORS, Neighbors
from asterism_graphkit.random import rng
from asterism_model.schema.edge_times import edge_time_dtype
from asterism_proto.errors import InvalidRequest, Unavailable
from storaged.kernels import adjacency_rows
from storaged.kernels.neighbors import temporal as kernel
from storaged.kernels.neighbors import with_replacement as gather
from storaged.sampling.cancellation import (
    BLOCK_NODES,
    Checkpoint,
    StopFlag,
    blocks,
    no_checkpoint,
    nodes_per_block,
)
from storaged.sampling.neighbors.sample_neighbors import NeighborDraws
from storaged.sampling.node_lookup import (
    IN,
    LocatedNodes,
    address_table,
    end_types,
    locate_nodes,
    resolve_local_types,
)
from storaged.sampling.version import LocalVersion, check_length, check_output_size, check_row_count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TemporalFilter:
    """A temporal filter: each node sees only edges up to its time."""

    times: NDArray[np.int64] | NDArray[np.float64]
    """Time of each node: shape (m,)."""
    strict: bool
    """True to exclude edges at exactly that time."""
    last: bool
    """True to take the latest edges, instead of sampling from all visible ones."""
    want_times: bool

    def for_block(self, block: slice) -> TemporalFilter:
        """Return the filter for the nodes of a block."""
        return replaced(self, times=self.times[block])

    def for_places(self, places: NDArray[np.int64] | NDArray[np.int32]) -> TemporalFilter:
        """Return the filter for the nodes at some positions."""
        return replaced(self, times=self.times[places])


@dataclass(frozen=True, slots=True, kw_only=True)
class _DrawParams:
    """The parameters of a draw, apart from the node and its time."""

    seed: int
    hop: int
    direction: int
    count: int
    replace: bool
    strategy: int

    def key(self, stage: int) -> np.uint64:
        """Return the random key of draws (0), or of selections among the edges they left (1)."""
        return rng.key_of(self.seed, rng.TEMPORAL, self.direction, self.hop, stage)


def sample_temporal_neighbors(
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
    temporal_filter: TemporalFilter,
    checkpoint: Checkpoint = no_checkpoint,
) -> NeighborDraws:
    """Sample ``count`` neighbors of each node from the edges of a union that it sees.

    Parameters
    ----------
    version : LocalVersion
    edge_types, node_type, ids, types, positions, count, replace, uniform, direction, seed, hop
        As in `storaged.sampling.neighbors.sample_neighbors.sample_neighbors`.
    want_weights, want_edge_ids : bool
        Return weights, return edge ids.
    temporal_filter : TemporalFilter
        Time limit of each node.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Returns
    -------
    NeighborDraws

    Raises
    ------
    InvalidRequest
        A type, count or direction is invalid, an edge type has no time, or the times of the union
        are both integers and floats.
    Unavailable
        A partition is not held here.
    """
    check_output_size("neighbors", ids.size, count)
    check_length("positions", positions, ids.size)
    check_length("times", temporal_filter.times, ids.size)
    local_types = resolve_local_types(version, edge_types, node_type, direction)
    floats = {_has_float_times(version, edge_type, direction) for edge_type in edge_types}
    if len(floats) > 1:
        raise InvalidRequest(
            "times of these edge types are integers and floats; request those of one kind at a time"
        )
    params = _draw_params(
        temporal_filter,
        seed=seed,
        hop=hop,
        direction=direction,
        count=count,
        replace=replace,
        uniform=uniform,
    )
    size = ids.size * count
    out, out_types = np.full(size, -1, np.int64), np.full(size, -1, np.int32)
    weights, eids = (
        np.zeros(size if want_weights else 0, np.float32),
        np.full(size if want_edge_ids else 0, -1, np.int64),
    )
    keys = np.zeros(size if temporal_filter.want_times else 0, np.int64)
    with StopFlag(checkpoint) as stop:
        for block in (
            blocks(ids.size, min(nodes_per_block(count), BLOCK_NODES), checkpoint) if count else ()
        ):
            out_slice = slice(block.start * count, block.stop * count)
            block_positions, block_ids, block_filter = (
                positions[block],
                ids[block],
                temporal_filter
                if block.stop - block.start == ids.size
                else temporal_filter.for_block(block),
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
                node_filter = (
                    block_filter.for_places(nodes.places) if nodes.places.size else block_filter
                )
                tables = [_temporal_table(version, edge_type, direction) for edge_type in union]
                type_indices, slots = _draw(
                    version,
                    nodes,
                    union,
                    tables,
                    nodes.tags(block_positions, block_ids),
                    params,
                    node_filter,
                    stop,
                )
                gather.write_types(
                    slots,
                    nodes.places,
                    np.int64(count),
                    type_indices,
                    as_kernel_array(np.array(union, np.int32)),
                    out_types[out_slice],
                )
                for type_index, table in enumerate(tables):
                    inputs = slots, nodes.places, nodes.parts, type_indices
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
                    if temporal_filter.want_times:
                        gather.gather_ids(
                            table,
                            gather.gather_params(count, type_index, adjacency_rows.WHEN),
                            *inputs,
                            keys[out_slice],
                        )
    shape = (ids.size, count)
    return NeighborDraws(
        ids=out.reshape(shape),
        types=out_types.reshape(shape) if len(edge_types) > 1 else None,
        weights=weights.reshape(shape) if want_weights else None,
        eids=eids.reshape(shape) if want_edge_ids else None,
        probabilities=None,
        times=decode_times(keys, is_float=floats.pop()).reshape(shape)
        if temporal_filter.want_times
        else None,
    )


def expand_temporal(
    version: LocalVersion,
    *,
    seed: int,
    direction: int,
    replace: bool,
    uniform: bool,
    want_eids: bool,
    want_weights: bool,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    temporal_filter: TemporalFilter,
    checkpoint: Checkpoint = no_checkpoint,
) -> Neighbors:
    """Expand nodes along an edge type with times, to the edges that each node sees.

    Like `storaged.sampling.subgraphs.expand.expand`. A ``count`` of -1 returns all visible edges,
    the earliest first.

    Raises
    ------
    InvalidRequest, Unavailable
        As for `sample_temporal_neighbors`.
    """
    check_length("times", temporal_filter.times, ids.size)
    table, sizes = _temporal_table(version, edge_type, direction), np.zeros(ids.size, np.int32)
    (nodes,) = locate_nodes(version, end_types(version, edge_type, direction)[0], ids, None)
    if count == ALL_NEIGHBORS:
        limits = _limits(version, edge_type, direction, temporal_filter)
        total = int(kernel.count_visible_edges(table, nodes.parts, nodes.rows, limits, sizes))
        check_row_count("neighbors", total)
        slots = np.empty(total, np.int64)
        kernel.list_visible_edges(table, nodes.parts, nodes.rows, as_kernel_array(sizes), slots)
    else:
        check_row_count("neighbors", ids.size * count)
        params = _draw_params(
            temporal_filter,
            seed=seed,
            hop=hop,
            direction=direction,
            count=count,
            replace=replace,
            uniform=uniform,
        )
        slots, total = np.empty(ids.size * count, np.int64), 0
        with StopFlag(checkpoint) as stop:
            for block in (
                blocks(ids.size, min(nodes_per_block(count), BLOCK_NODES), checkpoint)
                if count
                else ()
            ):
                block_nodes = replaced(nodes, parts=nodes.parts[block], rows=nodes.rows[block])
                _, block_slots = _draw(
                    version,
                    block_nodes,
                    [edge_type],
                    [table],
                    block_nodes.tags(positions[block], ids[block]),
                    params,
                    temporal_filter.for_block(block),
                    stop,
                )
                total += int(
                    kernel.compact_slots(block_slots, np.int64(count), sizes[block], slots[total:])
                )
    gather_inputs = nodes.parts, as_kernel_array(sizes), as_kernel_array(slots[:total])
    out, eids, keys = (
        np.empty(total, np.int64),
        np.empty(total if want_eids else 0, np.int64),
        np.empty(total if temporal_filter.want_times else 0, np.int64),
    )
    weights = np.empty(total if want_weights else 0, np.float32)
    kernel.gather_ragged_ids(table, np.int64(adjacency_rows.NBR), *gather_inputs, out)
    if want_eids:
        kernel.gather_ragged_ids(table, np.int64(adjacency_rows.EID), *gather_inputs, eids)
    if want_weights:
        kernel.gather_ragged_weights(table, *gather_inputs, weights)
    if temporal_filter.want_times:
        kernel.gather_ragged_ids(table, np.int64(adjacency_rows.WHEN), *gather_inputs, keys)
    return Neighbors(
        sizes=sizes,
        ids=out,
        eids=eids if want_eids else None,
        weights=weights if want_weights else None,
        times=decode_times(keys, is_float=_has_float_times(version, edge_type, direction))
        if temporal_filter.want_times
        else None,
    )


def _draw_params(
    temporal_filter: TemporalFilter,
    *,
    seed: int,
    hop: int,
    direction: int,
    count: int,
    replace: bool,
    uniform: bool,
) -> _DrawParams:
    if temporal_filter.last and replace:
        raise InvalidRequest("the last neighbors: expected replace=False")
    strategy = (
        kernel.LAST if temporal_filter.last else kernel.UNIFORM if uniform else kernel.WEIGHTED
    )
    return _DrawParams(
        seed=seed, hop=hop, direction=direction, count=count, replace=replace, strategy=strategy
    )


def _has_float_times(version: LocalVersion, edge_type: int, direction: int) -> bool:
    """Return whether an edge type has float times; raise InvalidRequest if it has none."""
    dtype = edge_time_dtype(version.schema, edge_type, incoming=direction == IN)
    if not dtype:
        name = version.schema.edge_types[edge_type].name
        raise InvalidRequest(
            f"edge type {name!r} and its neighbors have no time; declare a feature as time in "
            "the schema"
        )
    return dtype == "float64"


def _temporal_table(version: LocalVersion, edge_type: int, direction: int) -> NDArray[np.int64]:
    """Return the address table of an edge type; raise Unavailable if an image lacks its times."""
    table = address_table(version, edge_type, direction)
    if bool(((table[:, adjacency_rows.NBR] > 0) & (table[:, adjacency_rows.ORDER] == 0)).any()):
        raise Unavailable(
            f"version {version.version}: its image has no times of "
            f"{version.schema.edge_types[edge_type].name!r}; build the version again"
        )
    return table


def _limits(
    version: LocalVersion, edge_type: int, direction: int, temporal_filter: TemporalFilter
) -> NDArray[np.int64]:
    """Return the encoded time limit of each node: int64, shape (m,), read-only."""
    return as_kernel_array(
        limit_keys(
            temporal_filter.times,
            strict=temporal_filter.strict,
            is_float=_has_float_times(version, edge_type, direction),
        )
    )


def _draw(
    version: LocalVersion,
    nodes: LocatedNodes,
    union: Sequence[int],
    tables: Sequence[NDArray[np.int64]],
    tags: NDArray[np.int64],
    params: _DrawParams,
    temporal_filter: TemporalFilter,
    stop: StopFlag,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the edge type, as a position in the union, and the slot of each draw.

    The types are empty for a union of one.
    """
    slots = np.empty(nodes.rows.size * params.count, np.int64)
    type_indices = np.empty(slots.size if len(union) > 1 else 0, np.int32)
    limits = [_limits(version, edge_type, params.direction, temporal_filter) for edge_type in union]
    kernel.draw_temporal(
        as_kernel_array(np.stack(tables)),
        kernel.TemporalParams(
            params.key(0),
            params.key(1),
            np.int64(params.count),
            params.replace,
            np.int64(params.strategy),
        ),
        tags,
        nodes.parts,
        nodes.rows,
        as_kernel_array(np.stack(limits)),
        type_indices,
        slots,
        stop.flag,
    )
    stop.check()
    return as_kernel_array(type_indices), as_kernel_array(slots)
