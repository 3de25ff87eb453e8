"""Global sampling of nodes."""

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
from storaged.sampling.global_sampling.draw_assignment import (
    DrawEntries,
    build_entries,
    draw_ids,
    draw_rows,
    read_ids,
    row_shares,
)
from storaged.sampling.global_sampling.without_replacement import ExponentialSelection
from storaged.sampling.version import LocalVersion, check_output_size
from storaged.store.image import EMPTY_F32, NodeImage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeDraws:
    """Sampled nodes, in draw order."""

    ids: NDArray[np.int64]
    """Ids: int64, shape (k,)."""
    types: NDArray[np.int32] | None
    """Types: int32, shape (k,); None if all are of one type."""
    probabilities: NDArray[np.float64] | None
    """Share of each node in the total of all partitions, if requested: float64, shape (k,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistinctNodeDraws:
    """Nodes selected by the smallest exponential keys, in key order."""

    ids: NDArray[np.int64]
    """Ids: int64, shape (k,); fewer than requested if there are no more."""
    types: NDArray[np.int32]
    """Types: int32, shape (k,)."""
    keys: NDArray[np.float64]
    """Keys, ascending: float64, shape (k,).

    Results of several partitions merge by (key, type, id).
    """
    probabilities: NDArray[np.float64] | None
    """Probabilities as in `NodeDraws`, if requested: float64, shape (k,)."""


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
    """Return the draws start .. start + count - 1 that fall on some partitions, in order.

    Parameters
    ----------
    version : LocalVersion
    types : sequence of int
        Node types to sample from, in proportion to their totals.
    parts : sequence of int
        Partitions to return draws for.
    seed : int
        64-bit seed.
    start, count : int
        Range of draw indices. Each draw is a function of (seed, index) only.
    uniform : bool
        Give all live nodes the same probability, instead of one by weight.
    want_probabilities : bool
        Return probabilities. Default False.
    checkpoint : callable
        Called between blocks of draws; may raise.

    Returns
    -------
    NodeDraws

    Raises
    ------
    InvalidRequest
        An argument is out of range.
    NotFound
        There is nothing to sample.
    Unavailable
        A partition is not held here.
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
    """Concatenate the columns of blocks; return None if there are none."""
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
    """Return draws that fall on local entries, in order.

    The draws are start .. start + count - 1, or those of ``draw_indices``.
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
    """Return the nodes with the smallest exponential keys among those not excluded.

    Parameters
    ----------
    version : LocalVersion
    types : sequence of int
        Node types to sample from.
    parts : sequence of int
        Partitions to sample from.
    seed : int
        64-bit seed.
    count : int
        Largest number of nodes.
    taken_ids : ndarray of int64, shape (t,)
        Excluded node ids.
    taken_types : ndarray of int32, shape (t,)
        Types of the excluded nodes.
    uniform : bool
        Give all live nodes the same weight. Default False.
    want_probabilities : bool
        Return probabilities. Default False.
    checkpoint : callable
        Called between blocks of rows; may raise.

    Returns
    -------
    DistinctNodeDraws

    Raises
    ------
    InvalidRequest
        An argument is out of range.
    Unavailable
        A partition is not held here.
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
    """Return the weight of the nodes that are not excluded, by type and partition.

    Parameters
    ----------
    version : LocalVersion
    types : sequence of int
    parts : sequence of int
    taken_ids : ndarray of int64, shape (t,)
        Excluded node ids.
    taken_types : ndarray of int32, shape (t,)
        Types of the excluded nodes.
    checkpoint : callable
        Called between blocks of rows; may raise.

    Returns
    -------
    ndarray of float64, shape (types, parts)
        Types and partitions are ascending and without repetition.

    Raises
    ------
    InvalidRequest
        An argument is out of range.
    Unavailable
        A partition is not held here.
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
    """Return the weights that determine a draw, empty if all are 1."""
    return as_kernel_array(EMPTY_F32) if uniform else node.weights
