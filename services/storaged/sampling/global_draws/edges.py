"""Global draws of edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import rng
from asterism_model.elements import EDGE
from storaged.kernels.global_draws import rows as columns
from storaged.sampling.cancellation import BLOCK_DRAWS, Checkpoint, blocks, no_checkpoint
from storaged.sampling.global_draws.nodes import concat_columns
from storaged.sampling.global_draws.partitions import build_entries, draw_rows
from storaged.sampling.global_draws.without_replacement import ExponentialSelection
from storaged.sampling.version import LocalVersion, check_output_size
from storaged.store.image import EMPTY_F32, EMPTY_I64, EMPTY_U8, EMPTY_U32, PartImage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeDraws:
    """Drawn edges, in order of the draws."""

    src: NDArray[np.int64]
    """int64[k]."""
    dst: NDArray[np.int64]
    """int64[k]."""
    eids: NDArray[np.int64]
    """int64[k]."""
    types: NDArray[np.int32]
    """int32[k]."""
    weights: NDArray[np.float32]
    """float32[k]."""
    probabilities: NDArray[np.float64] | None
    """float64[k], each edge's share of the total of all parts; when wanted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistinctEdgeDraws:
    """The first of a race over edges, in order of arrival."""

    edges: EdgeDraws
    """Fewer than asked for where there are no more."""
    keys: NDArray[np.float64]
    """float64[k], ascending; races over other parts merge by (key, type, edge id)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _EdgeColumnAddresses:
    """The columns of the edges of some (type, part)s, by address: not to outlive the version that
    they are of.
    """

    src_row: NDArray[np.uint64]
    src_ids: NDArray[np.uint64]
    """uint64[k], of the ids of sparse source types."""
    scales: NDArray[np.int64]
    offsets: NDArray[np.int64]
    """int64[k]: those of the others are row * scale + offset."""
    dst: NDArray[np.uint64]
    eids: NDArray[np.uint64]
    weights: NDArray[np.uint64]

    @classmethod
    def build(
        cls, version: LocalVersion, images: Sequence[tuple[int, PartImage | None]]
    ) -> _EdgeColumnAddresses:
        """The columns of these types in these images; None is one that nothing is asked of."""
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
        """The edges at ``slots`` of the entries of these numbers; ``total_weight``: the total that
        probabilities are shares of, where wanted.
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
    """The draws start .. start + count - 1 that fall on ``parts``, in order.

    Parameters
    ----------
    version, types, parts, seed, start, count, uniform, want_probabilities, checkpoint
        As in `storaged.sampling.sample_nodes`; types are edge types. An edge is drawn at its
        source's part.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable
        As there.
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
    """The ``count`` edges of ``parts`` with the smallest exponential keys among those not taken.

    Parameters
    ----------
    version, types, parts, seed, count, uniform, want_probabilities, checkpoint
        As in `storaged.sampling.sample_distinct_nodes`.
    taken_ids, taken_types : int64[t], int32[t]
        Edge ids that do not take part, and their types.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
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
    """The weight of the edges that are not taken: float64[types, parts], as
    `storaged.sampling.remaining_node_weight`.
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
