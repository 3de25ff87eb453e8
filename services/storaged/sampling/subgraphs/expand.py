"""Expansion of nodes along one edge type: one hop of a subgraph, with ragged results."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as replaced
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.operators.khop import ALL_NEIGHBORS, Neighbors, hop_stream
from asterism_graphkit.random import rng
from asterism_graphkit.relabel.relabel import tree_positions
from asterism_model.schema.edge_times import edge_time_dtype
from asterism_proto.errors import Internal, InvalidRequest, Unavailable
from storaged.kernels.subgraphs import expand as kernel
from storaged.sampling.cancellation import (
    Checkpoint,
    StopFlag,
    blocks,
    no_checkpoint,
    nodes_per_block,
)
from storaged.sampling.excluded_edge_rejection import REJECTION_MARGIN, skipped_draws
from storaged.sampling.neighbors.sample_neighbors import NEIGHBOR_ELEMENT
from storaged.sampling.neighbors.temporal import TemporalFilter, expand_temporal
from storaged.sampling.node_lookup import IN, address_table, end_types
from storaged.sampling.subgraphs.labor import LaborOptions, keep_neighbors
from storaged.sampling.version import LocalVersion, check_length, check_row_count

F64 = NDArray[np.float64]

_COUNT_FIRST = 1 << 20
"""Number of draws above which it pays to count the existing edges first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The parameters of an expansion."""

    seed: int
    direction: int
    """1 for out-edges, 2 for in-edges."""
    replace: bool
    uniform: bool
    want_eids: bool
    want_weights: bool
    labor: LaborOptions | None = None
    """Options of LABOR; None samples for each node independently."""


def expand(
    version: LocalVersion,
    expansion: Expansion,
    *,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    trees: NDArray[np.int32] | None,
    temporal_filter: TemporalFilter | None = None,
    importance_state: tuple[F64, F64] | None = None,
    checkpoint: Checkpoint = no_checkpoint,
) -> Neighbors:
    """Sample neighbors of each node along one edge type, or read all of them.

    Samples are drawn as by `sample_neighbors` for one edge type at the hop given by `hop_stream`,
    but keyed by the node alone, or by tree and node, instead of the position in a request.

    Parameters
    ----------
    version : LocalVersion
    expansion : Expansion
    edge_type, hop : int
    count : int
        Number of neighbors per node. -1 reads all neighbors, including those of weight 0.
    ids : ndarray of int64, shape (m,)
        Nodes in partitions held here; -1 and unknown ids have no neighbors.
    trees : ndarray of int32, shape (m,), optional
        Tree of each node. If given, samples are keyed by tree and node.
    temporal_filter : TemporalFilter, optional
        Time limit of each node. It excludes later edges, along edge types with times.
    importance_state : (ndarray of float64, shape (m,), ndarray of float64, shape (n,)), optional
        Levels of nodes and importances of neighbors after earlier importance steps. By default, the
        steps are taken here.
    checkpoint : callable, optional
        Called between blocks of nodes, or periodically for LABOR; may raise.

    Returns
    -------
    Neighbors

    Raises
    ------
    InvalidRequest
        A type, count or direction is invalid, or LABOR is combined with trees or times.
    Unavailable
        A partition is not held here.
    """
    end_types(version, edge_type, expansion.direction)
    if trees is not None:
        check_length("trees", trees, ids.size)
    if count < ALL_NEIGHBORS:
        raise InvalidRequest(f"count {count}: expected 0 or more, or -1 for all neighbors")
    if expansion.labor is not None:
        if trees is not None or temporal_filter is not None:
            raise InvalidRequest(
                "one variate per neighbor: expected no disjoint trees and no temporal filter"
            )
        return _keep_neighbors(
            version,
            expansion,
            expansion.labor,
            edge_type=edge_type,
            hop=hop,
            count=count,
            ids=ids,
            importance_state=importance_state,
            checkpoint=checkpoint,
        )
    ids = as_kernel_array(ids)
    if temporal_filter is not None and edge_time_dtype(
        version.schema, edge_type, incoming=expansion.direction == IN
    ):
        return expand_temporal(
            version,
            seed=expansion.seed,
            direction=expansion.direction,
            replace=expansion.replace,
            uniform=expansion.uniform,
            want_eids=expansion.want_eids,
            want_weights=expansion.want_weights,
            edge_type=edge_type,
            hop=hop_stream(hop, edge_type),
            count=count,
            ids=ids,
            positions=ids if trees is None else tree_positions(trees, ids),
            temporal_filter=temporal_filter,
            checkpoint=checkpoint,
        )
    draw = _draw_neighbors if version.rejected is None else _draw_rejecting
    return draw(
        version,
        expansion,
        edge_type=edge_type,
        hop=hop,
        count=count,
        ids=ids,
        trees=trees,
        checkpoint=checkpoint,
    )


def _draw_rejecting(
    version: LocalVersion,
    expansion: Expansion,
    *,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    trees: NDArray[np.int32] | None,
    checkpoint: Checkpoint,
) -> Neighbors:
    """Sample neighbors like `_draw_neighbors`, of nodes at some of which draws reject edges."""
    rejected = version.rejected
    assert rejected is not None
    if count == ALL_NEIGHBORS:
        raise Internal("all neighbors of nodes at which draws reject edges")
    arguments: dict[str, Any] = {"edge_type": edge_type, "hop": hop, "checkpoint": checkpoint}
    numbers = rejected.find_nodes(end_types(version, edge_type, expansion.direction)[0], ids)
    rejecting = np.flatnonzero(numbers >= 0)
    other_ids = ids.copy()
    other_ids[rejecting] = -1
    others = _draw_neighbors(
        version, expansion, count=count, ids=as_kernel_array(other_ids), trees=trees, **arguments
    )
    open_nodes = rejecting if count else rejecting[:0]
    pieces = [(np.arange(ids.size), others)]
    # Draws without replacement skip at most as many edges as a node has rejected ones.
    sizes = count + (
        np.full(open_nodes.size, count + REJECTION_MARGIN)
        if expansion.replace
        else skipped_draws(rejected.counts([edge_type], numbers[open_nodes]))
    )
    while open_nodes.size:
        size = int(sizes.min())
        group = np.flatnonzero(sizes == size)
        nodes = open_nodes[group]
        drawn = _draw_neighbors(
            version,
            replaced(expansion, want_eids=True),
            count=size,
            ids=as_kernel_array(ids[nodes]),
            trees=None if trees is None else trees[nodes],
            **arguments,
        )
        is_done, kept = _keep_accepted(drawn, rejected.edges[edge_type].eids, count)
        if not expansion.replace:
            is_done[:] = True
        pieces.append((nodes[is_done], _select_rows(kept, is_done)))
        sizes[group[~is_done]] *= 2
        sizes, open_nodes = (
            np.delete(sizes, group[is_done]),
            np.delete(open_nodes, group[is_done]),
        )
    return _merge_pieces(pieces, ids.size, want_eids=expansion.want_eids)


def _keep_accepted(
    drawn: Neighbors, rejected_eids: NDArray[np.int64], count: int
) -> tuple[NDArray[np.bool_], Neighbors]:
    """Return the first ``count`` accepted draws of each node, and which nodes have as many.

    A node without draws has no edge of positive weight, so it needs no more.
    """
    assert drawn.eids is not None
    accepted = ~np.isin(drawn.eids, rejected_eids)
    rows = np.repeat(np.arange(drawn.sizes.size), drawn.sizes)
    ranks: NDArray[np.int64] = np.cumsum(accepted) - accepted
    ends = np.cumsum(drawn.sizes)
    first_ranks = np.concatenate([ranks, [accepted.sum()]])[ends - drawn.sizes]
    kept = accepted & (ranks - first_ranks[rows] < count)
    sizes = np.bincount(rows[kept], minlength=drawn.sizes.size).astype(np.int32)
    neighbors = replaced(
        drawn,
        sizes=sizes,
        ids=drawn.ids[kept],
        eids=drawn.eids[kept],
        weights=None if drawn.weights is None else drawn.weights[kept],
    )
    return (sizes == count) | (drawn.sizes == 0), neighbors


def _select_rows(neighbors: Neighbors, selected: NDArray[np.bool_]) -> Neighbors:
    """Return the neighbors of the selected nodes."""
    kept = np.repeat(selected, neighbors.sizes)
    return replaced(
        neighbors,
        sizes=neighbors.sizes[selected],
        ids=neighbors.ids[kept],
        eids=None if neighbors.eids is None else neighbors.eids[kept],
        weights=None if neighbors.weights is None else neighbors.weights[kept],
    )


def _merge_pieces(
    pieces: list[tuple[NDArray[np.int64], Neighbors]], node_count: int, *, want_eids: bool
) -> Neighbors:
    """Merge the neighbors of nodes at given positions; a node has neighbors in one piece only."""
    sizes = np.zeros(node_count, np.int32)
    for nodes, neighbors in pieces:
        sizes[nodes] += neighbors.sizes
    rows = np.concatenate([np.repeat(nodes, neighbors.sizes) for nodes, neighbors in pieces])
    order = np.argsort(rows, kind="stable")

    def merge(columns: list[NDArray[Any] | None]) -> NDArray[Any]:
        return np.concatenate([column for column in columns if column is not None])[order]

    has_weights = pieces[0][1].weights is not None
    return Neighbors(
        sizes=sizes,
        ids=merge([neighbors.ids for _, neighbors in pieces]),
        eids=merge([neighbors.eids for _, neighbors in pieces]) if want_eids else None,
        weights=merge([neighbors.weights for _, neighbors in pieces]) if has_weights else None,
    )


def _draw_neighbors(
    version: LocalVersion,
    expansion: Expansion,
    *,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    trees: NDArray[np.int32] | None,
    checkpoint: Checkpoint,
) -> Neighbors:
    """Sample or read the neighbors of nodes along an edge type, block by block."""
    parts, mod = np.int64(version.schema.parts), version.schema.placement != "mix64"
    table = address_table(version, edge_type, expansion.direction)
    sizes = np.empty(ids.size, np.int32)
    max_total = ids.size * count
    if count == ALL_NEIGHBORS or (
        not expansion.replace and (max_total > _COUNT_FIRST or count > _COUNT_FIRST >> 6)
    ):
        existing = _check_total(
            int(kernel.count_expansion(table, parts, mod, ids, sizes)), version, ids
        )
        # Nodes with fewer edges return all of them, so capacity beyond the largest degree is of no
        # use.
        count = ALL_NEIGHBORS if count == ALL_NEIGHBORS else min(count, int(sizes.max(initial=0)))
        max_total = existing if count == ALL_NEIGHBORS else min(existing, ids.size * count)
    # For samples this is an upper bound, because nodes may return fewer.
    check_row_count(
        "neighbors",
        max_total,
        8 + 8 * expansion.want_eids + 4 * expansion.want_weights if count == ALL_NEIGHBORS else 4,
    )
    out = kernel.NeighborOutputs(
        np.empty(max_total, np.int64),
        np.empty(max_total if expansion.want_eids else 0, np.int64),
        np.empty(max_total if expansion.want_weights else 0, np.float32),
    )
    total = max_total
    if count == ALL_NEIGHBORS:
        with StopFlag(checkpoint) as stop:
            kernel.copy_expansion(table, parts, mod, ids, out, stop.flag)
            stop.check()
    else:
        positions = ids if trees is None else as_kernel_array(tree_positions(trees, ids))
        stream = hop_stream(hop, edge_type)
        params = kernel.ExpansionParams(
            rng.key_of(expansion.seed, rng.NEIGHBOR, expansion.direction, stream),
            rng.key_of(
                expansion.seed,
                rng.EXPONENTIAL_KEY,
                NEIGHBOR_ELEMENT,
                expansion.direction,
                stream,
                edge_type,
            ),
            parts,
            mod,
            np.int64(count),
            expansion.replace,
            expansion.uniform,
        )
        total = 0
        with StopFlag(checkpoint) as stop:
            for block in blocks(ids.size, nodes_per_block(count), checkpoint):
                # The kernel takes an empty slice for an output that is not requested. A full output
                # has nothing left to write.
                block_out = out
                if total:
                    block_out = kernel.NeighborOutputs(
                        out.ids[total:], out.eids[total:], out.weights[total:]
                    )
                block_total = kernel.draw_expansion(
                    table, params, ids[block], positions[block], sizes[block], block_out, stop.flag
                )
                stop.check()
                total += _check_total(int(block_total), version, ids[block])
    return Neighbors(
        sizes=sizes,
        ids=out.ids[:total],
        eids=out.eids[:total] if expansion.want_eids else None,
        weights=out.weights[:total] if expansion.want_weights else None,
    )


def _keep_neighbors(
    version: LocalVersion,
    expansion: Expansion,
    labor_options: LaborOptions,
    *,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    importance_state: tuple[F64, F64] | None,
    checkpoint: Checkpoint,
) -> Neighbors:
    return keep_neighbors(
        version,
        labor_options,
        seed=expansion.seed,
        direction=expansion.direction,
        uniform=expansion.uniform,
        want_eids=expansion.want_eids,
        want_weights=expansion.want_weights,
        edge_type=edge_type,
        hop=hop,
        count=count,
        ids=ids,
        importance_state=importance_state,
        checkpoint=checkpoint,
    )


def _check_total(total: int, version: LocalVersion, ids: NDArray[np.int64]) -> int:
    """Return a kernel's total; raise Unavailable if it reports a node of a remote partition."""
    if total < 0:
        context = (
            f"node {ids[-1 - total]} of space {version.space_id} belongs to a partition of "
            "another host"
        )
        raise Unavailable(f"{context}; this host has partitions {sorted(version.parts)}")
    return total
