"""Global draws of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import rng
from asterism_model.elements import NODE
from storaged.kernels.neighbors.probabilities import write_row_shares
from storaged.sampling.cancellation import BLOCK_DRAWS, Checkpoint, blocks, no_checkpoint
from storaged.sampling.global_draws.partitions import (
    DrawEntries,
    build_entries,
    draw_ids,
    draw_rows,
    read_ids,
    row_shares,
)
from storaged.sampling.global_draws.without_replacement import ExponentialSelection
from storaged.sampling.version import LocalVersion, check_output_size
from storaged.store.image import EMPTY_F32, NodeImage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeDraws:
    """Drawn nodes, in order of the draws."""

    ids: NDArray[np.int64]
    """int64[k]."""
    types: NDArray[np.int32] | None
    """int32[k]; None where all are of one type."""
    probabilities: NDArray[np.float64] | None
    """float64[k], each row's share of the total of all parts; when wanted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistinctNodeDraws:
    """The first of a race over nodes, in order of arrival."""

    ids: NDArray[np.int64]
    """int64[k], k less than asked for where there are no more."""
    types: NDArray[np.int32]
    """int32[k]."""
    keys: NDArray[np.float64]
    """float64[k], ascending; races over other parts merge by (key, type, id)."""
    probabilities: NDArray[np.float64] | None
    """float64[k], as in `NodeDraws`; when wanted."""


def sample_nodes(
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
) -> NodeDraws:
    """The draws start .. start + count - 1 that fall on ``parts``, in order.

    Parameters
    ----------
    version : LocalVersion
    types : sequence of int
        Node types to draw from, in proportion to their totals.
    parts : sequence of int
        Parts to answer for.
    seed : int
        64 bits.
    start, count : int
        Numbers of the draws; each is a function of (seed, its number) alone.
    uniform : bool
        Every live node alike, instead of by weight.
    want_probabilities : bool
    checkpoint : callable
        Called between blocks of draws; may raise.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable
        Where a number is impossible, there is nothing to draw, or a part is not held here.
    """
    entries = build_entries(version, NODE, types=types, parts=parts, uniform=uniform)
    options: dict[str, Any] = {"uniform": uniform, "want_probabilities": want_probabilities}
    check_output_size("count", count)
    block_draws = [
        draw_local_nodes(entries, seed, start + block.start, block.stop - block.start, **options)
        for block in blocks(count, BLOCK_DRAWS, checkpoint)
    ]
    if len(block_draws) == 1:
        return block_draws[0]
    return NodeDraws(
        ids=np.concatenate([draws.ids for draws in block_draws]),
        types=concat_columns([draws.types for draws in block_draws]),
        probabilities=concat_columns([draws.probabilities for draws in block_draws]),
    )


def concat_columns(columns: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Return the columns of blocks one after another; None where there is none."""
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if present else None


def draw_local_nodes(
    entries: DrawEntries,
    seed: int,
    start: int,
    count: int,
    *,
    draw_indices: NDArray[np.int64] | None = None,
    uniform: bool,
    want_probabilities: bool,
) -> NodeDraws:
    """The draws start .. start + count - 1, or those of ``draw_indices``, that fall on local
    entries, in order.
    """
    part_key, row_key = rng.key_of(seed, rng.PART, NODE), rng.key_of(seed, rng.NODE_ROW)
    if not want_probabilities:
        ids, drawn_types = draw_ids(entries, part_key, row_key, start, count, draw_indices)
        return NodeDraws(
            ids=ids, types=None if entries.is_single_type else drawn_types, probabilities=None
        )
    rows, entry_indices = draw_rows(entries, part_key, row_key, start, count, draw_indices)
    weight_addresses = addresses_of(
        EMPTY_F32 if image is None else _draw_weights(image.nodes[type_id], uniform)
        for type_id, image in entries.images
    )
    return NodeDraws(
        ids=read_ids(entries, entry_indices, rows),
        types=None if entries.is_single_type else entries.shares.types[entry_indices],
        probabilities=row_shares(weight_addresses, entry_indices, rows, entries.shares.total),
    )


def sample_distinct_nodes(
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
) -> DistinctNodeDraws:
    """The ``count`` nodes of ``parts`` with the smallest exponential keys among those not taken.

    Parameters
    ----------
    version, types, parts, seed, uniform, want_probabilities
        As in `nodes`.
    count : int
        How many at most.
    taken_ids, taken_types : int64[t], int32[t]
        Nodes that do not take part.
    checkpoint : callable
        Called between blocks of rows; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        As `nodes`.
    """
    selection = ExponentialSelection(
        version,
        NODE,
        types=types,
        parts=parts,
        count=count,
        taken_ids=taken_ids,
        taken_types=taken_types,
        checkpoint=checkpoint,
    )
    for type_id, image in selection.entries:
        node = image.nodes[type_id]
        selection.add_rows(
            seed,
            type_id,
            image,
            rows=node.rows,
            ids=node.ids,
            live=node.live,
            weights=node.weights,
            uniform=uniform,
        )
    selection.finish()
    probabilities = np.empty(selection.tags.size, np.float64) if want_probabilities else None
    if probabilities is not None:
        total = version.part_shares(NODE, types, uniform).total
        for type_id, image in selection.entries:
            rows, places = selection.selected_rows(type_id, image.part)
            write_row_shares(
                rows, places, _draw_weights(image.nodes[type_id], uniform), total, probabilities
            )
    return DistinctNodeDraws(
        ids=selection.items, types=selection.tags, keys=selection.keys, probabilities=probabilities
    )


def remaining_node_weight(
    version: LocalVersion,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    taken_ids: NDArray[np.int64],
    taken_types: NDArray[np.int32],
    checkpoint: Checkpoint = no_checkpoint,
) -> NDArray[np.float64]:
    """The weight of the nodes that are not taken: float64[types, parts], both ascending and each
    once.

    Parameters
    ----------
    version, types, parts, taken_ids, taken_types, checkpoint
        As in `sample_distinct_nodes`.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    selection = ExponentialSelection(
        version,
        NODE,
        types=types,
        parts=parts,
        count=0,
        taken_ids=taken_ids,
        taken_types=taken_types,
        checkpoint=checkpoint,
    )
    remaining = []
    for type_id, image in selection.entries:
        node = image.nodes[type_id]
        remaining.append(
            selection.remaining_weight(
                type_id, image, rows=node.rows, ids=node.ids, live=node.live, weights=node.weights
            )
        )
    return np.array(remaining, np.float64).reshape(len(set(types)), len(set(parts)))


def _draw_weights(node: NodeImage, uniform: bool) -> NDArray[np.float32]:
    """The weights that decide a draw, empty where all are 1."""
    return as_kernel_array(EMPTY_F32) if uniform else node.weights
