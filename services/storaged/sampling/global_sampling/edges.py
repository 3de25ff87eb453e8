"""Global sampling of edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import rng
from asterism_model.elements import EDGE
from storaged.kernels.global_sampling import row_sampling as columns
from storaged.sampling.cancellation import BLOCK_DRAWS, Checkpoint, blocks, no_checkpoint
from storaged.sampling.global_sampling.draw_assignment import build_entries, draw_rows
from storaged.sampling.global_sampling.nodes import concat_columns
from storaged.sampling.global_sampling.without_replacement import ExponentialSelection
from storaged.sampling.version import LocalVersion, check_output_size
from storaged.store.image import EMPTY_F32, EMPTY_I64, EMPTY_U8, EMPTY_U32, PartImage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeDraws:
    """Sampled edges, in draw order."""

    src: NDArray[np.int64]
    """Source ids: int64, shape (k,)."""
    dst: NDArray[np.int64]
    """Destination ids: int64, shape (k,)."""
    eids: NDArray[np.int64]
    """Edge ids: int64, shape (k,)."""
    types: NDArray[np.int32]
    """Edge types: int32, shape (k,)."""
    weights: NDArray[np.float32]
    """Weights: float32, shape (k,)."""
    probabilities: NDArray[np.float64] | None
    """Share of each edge in the total of all partitions, if requested: float64, shape (k,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistinctEdgeDraws:
    """Edges selected by the smallest exponential keys, in key order."""

    edges: EdgeDraws
    """Selected edges; fewer than requested if there are no more."""
    keys: NDArray[np.float64]
    """Keys, ascending: float64, shape (k,).

    Results of several partitions merge by (key, type, edge id).
    """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _EdgeColumnAddresses:
    """Addresses of the columns of edges, by (type, partition).

    They are valid as long as the version exists.
    """

    src_row: NDArray[np.uint64]
    src_ids: NDArray[np.uint64]
    """Addresses of the ids of sparse source types: uint64, shape (k,)."""
    scales: NDArray[np.int64]
    offsets: NDArray[np.int64]
    """Ids of dense source types are row * scale + offset: int64, shape (k,)."""
    dst: NDArray[np.uint64]
    eids: NDArray[np.uint64]
    weights: NDArray[np.uint64]

    @classmethod
    def build(
        cls, version: LocalVersion, images: Sequence[tuple[int, PartImage | None]]
    ) -> _EdgeColumnAddresses:
        """Return the columns of (type, image) entries; an entry without draws has image None."""
        schema = version.schema
        source_types = [schema.node_type_id(edge.src_type) for edge in schema.edge_types]
        return cls(
            src_row=addresses_of(
                EMPTY_U32 if image is None else image.edges[t].src_row for t, image in images
            ),
            src_ids=addresses_of(
                EMPTY_I64 if image is None else image.nodes[source_types[t]].ids
                for t, image in images
            ),
            scales=as_kernel_array(np.full(len(images), schema.parts, np.int64)),
            offsets=as_kernel_array(
                np.array([0 if image is None else image.part for _, image in images], np.int64)
            ),
            dst=addresses_of(
                EMPTY_I64 if image is None else image.edges[t].outgoing.nbr for t, image in images
            ),
            eids=addresses_of(
                EMPTY_I64 if image is None else image.edges[t].outgoing.eid for t, image in images
            ),
            weights=addresses_of(
                EMPTY_F32 if image is None else image.edges[t].outgoing.weights
                for t, image in images
            ),
        )

    def read(
        self,
        entry_indices: NDArray[np.int32],
        slots: NDArray[np.int64],
        types: NDArray[np.int32],
        *,
        total_weight: float | None,
        uniform: bool,
    ) -> EdgeDraws:
        """Return the edges at ``slots`` of the entries with these indices.

        ``total_weight`` is the total that probabilities are shares of; None if not requested.
        """
        rows, src, dst, eids = (np.empty(slots.size, np.int64) for _ in range(4))
        weights = np.empty(slots.size, np.float32)
        columns.read_source_rows(entry_indices, slots, self.src_row, rows)
        columns.read_ids(
            entry_indices, as_kernel_array(rows), self.src_ids, self.scales, self.offsets, src
        )
        columns.read_ids(entry_indices, slots, self.dst, self.scales, self.offsets, dst)
        columns.read_ids(entry_indices, slots, self.eids, self.scales, self.offsets, eids)
        columns.read_weights(entry_indices, slots, self.weights, weights)
        probabilities = None
        if total_weight is not None:
            probabilities = np.ones(slots.size) if uniform else weights.astype(np.float64)
            probabilities /= total_weight
        return EdgeDraws(
            src=src, dst=dst, eids=eids, types=types, weights=weights, probabilities=probabilities
        )


def sample_edges(
    version: LocalVersion,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    seed: int,
    start: int,
    count: int,
    uniform: bool,
    want_probabilities: bool = False,
    checkpoint: Checkpoint = no_checkpoint,
) -> EdgeDraws:
    """Return the draws start .. start + count - 1 that fall on some partitions, in order.

    An edge belongs to the partition of its source.

    Parameters
    ----------
    version : LocalVersion
    types : sequence of int
        Edge types to sample from, in proportion to their totals.
    parts : sequence of int
        Partitions to return draws for.
    seed : int
        64-bit seed.
    start, count : int
        Range of draw indices. Each draw is a function of (seed, index) only.
    uniform : bool
        Give all edges the same probability, instead of one by weight.
    want_probabilities : bool
        Return probabilities. Default False.
    checkpoint : callable
        Called between blocks of draws; may raise.

    Returns
    -------
    EdgeDraws

    Raises
    ------
    InvalidRequest
        An argument is out of range.
    NotFound
        There is nothing to sample.
    Unavailable
        A partition is not held here.
    """
    entries = build_entries(version, EDGE, types=types, parts=parts, uniform=uniform)
    keys = rng.key_of(seed, rng.PART, EDGE), rng.key_of(seed, rng.EDGE_ROW)
    edge_columns = version.cached(
        (_EdgeColumnAddresses, entries.shares.types.tobytes(), entries.local.tobytes()),
        lambda: _EdgeColumnAddresses.build(version, entries.images),
    )
    total_weight = entries.shares.total if want_probabilities else None
    block_draws = []
    check_output_size("count", count)
    for block in blocks(count, BLOCK_DRAWS, checkpoint):
        slots, entry_indices = draw_rows(
            entries, *keys, start + block.start, block.stop - block.start
        )
        block_draws.append(
            edge_columns.read(
                entry_indices,
                slots,
                entries.shares.types[entry_indices],
                total_weight=total_weight,
                uniform=uniform,
            )
        )
    if len(block_draws) == 1:
        return block_draws[0]
    return EdgeDraws(
        src=np.concatenate([draws.src for draws in block_draws]),
        dst=np.concatenate([draws.dst for draws in block_draws]),
        eids=np.concatenate([draws.eids for draws in block_draws]),
        types=np.concatenate([draws.types for draws in block_draws]),
        weights=np.concatenate([draws.weights for draws in block_draws]),
        probabilities=concat_columns([draws.probabilities for draws in block_draws]),
    )


def sample_distinct_edges(
    version: LocalVersion,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    seed: int,
    count: int,
    taken_ids: NDArray[np.int64],
    taken_types: NDArray[np.int32],
    uniform: bool = False,
    want_probabilities: bool = False,
    checkpoint: Checkpoint = no_checkpoint,
) -> DistinctEdgeDraws:
    """Return the edges with the smallest exponential keys among those not excluded.

    Parameters
    ----------
    version : LocalVersion
    types : sequence of int
        Edge types to sample from.
    parts : sequence of int
        Partitions to sample from.
    seed : int
        64-bit seed.
    count : int
        Largest number of edges.
    taken_ids : ndarray of int64, shape (t,)
        Excluded edge ids.
    taken_types : ndarray of int32, shape (t,)
        Types of the excluded edges.
    uniform : bool
        Give all edges the same weight. Default False.
    want_probabilities : bool
        Return probabilities. Default False.
    checkpoint : callable
        Called between blocks of rows; may raise.

    Returns
    -------
    DistinctEdgeDraws

    Raises
    ------
    InvalidRequest
        An argument is out of range.
    Unavailable
        A partition is not held here.
    """
    selection = ExponentialSelection(
        version,
        EDGE,
        types=types,
        parts=parts,
        count=count,
        taken_ids=taken_ids,
        taken_types=taken_types,
        checkpoint=checkpoint,
    )
    for type_id, image in selection.entries:
        adjacency = image.edges[type_id].outgoing
        if adjacency.nbr.size:
            selection.add_rows(
                seed,
                type_id,
                image,
                rows=adjacency.nbr.size,
                ids=adjacency.eid,
                live=as_kernel_array(EMPTY_U8),
                weights=adjacency.weights,
                uniform=uniform,
            )
    selection.finish()
    total_weight = version.part_shares(EDGE, types, uniform).total if want_probabilities else None
    slots, entry_indices = (
        np.empty(selection.tags.size, np.int64),
        np.empty(selection.tags.size, np.int32),
    )
    for entry_index, (type_id, image) in enumerate(selection.entries):
        rows, places = selection.selected_rows(type_id, image.part)
        slots[places], entry_indices[places] = rows, entry_index
    edge_columns = _EdgeColumnAddresses.build(version, selection.entries)
    draws = edge_columns.read(
        as_kernel_array(entry_indices),
        as_kernel_array(slots),
        selection.tags,
        total_weight=total_weight,
        uniform=uniform,
    )
    return DistinctEdgeDraws(edges=draws, keys=selection.keys)


def remaining_edge_weight(
    version: LocalVersion,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    taken_ids: NDArray[np.int64],
    taken_types: NDArray[np.int32],
    checkpoint: Checkpoint = no_checkpoint,
) -> NDArray[np.float64]:
    """Return the weight of the edges that are not excluded.

    Parameters and errors are those of `storaged.sampling.remaining_node_weight`.

    Returns
    -------
    ndarray of float64, shape (types, parts)
    """
    selection = ExponentialSelection(
        version,
        EDGE,
        types=types,
        parts=parts,
        count=0,
        taken_ids=taken_ids,
        taken_types=taken_types,
        checkpoint=checkpoint,
    )
    remaining = []
    for type_id, image in selection.entries:
        adjacency = image.edges[type_id].outgoing
        remaining.append(
            selection.remaining_weight(
                type_id,
                image,
                rows=adjacency.nbr.size,
                ids=adjacency.eid,
                live=as_kernel_array(EMPTY_U8),
                weights=adjacency.weights,
            )
        )
    return np.array(remaining, np.float64).reshape(len(set(types)), len(set(parts)))
