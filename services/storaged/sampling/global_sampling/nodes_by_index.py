"""Global samples of nodes by draw index, each possibly from a type of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random import partition_choice, rng
from asterism_model.elements import NODE
from asterism_proto.errors import InvalidRequest
from storaged.sampling.cancellation import BLOCK_DRAWS, Checkpoint, blocks, no_checkpoint
from storaged.sampling.global_sampling.draw_assignment import build_entries
from storaged.sampling.global_sampling.nodes import NodeDraws, draw_local_nodes
from storaged.sampling.version import LocalVersion, check_length, check_output_size

_INDEX_LIMIT = 1 << 32


def sample_nodes_by_index(
    version: LocalVersion,
    *,
    types: Sequence[int],
    draw_indices: NDArray[np.int64],
    kinds: NDArray[np.int32] | None = None,
    seed: int,
    uniform: bool,
    want_probabilities: bool = False,
    checkpoint: Checkpoint = no_checkpoint,
) -> NodeDraws:
    """Return the draws with some indices, in their order.

    They are those of `storaged.sampling.sample_nodes`; with ``kinds``, those of one type under the
    seed of that type, `asterism_graphkit.random.rng.seed_of_type`.

    Parameters
    ----------
    version : LocalVersion
    types : sequence of int
        Node types to sample from.
    draw_indices : ndarray of int64, shape (k,)
        Draw indices, 0 to 2^32 - 1. The draws must fall on local partitions.
    kinds : ndarray of int32, shape (k,), optional
        The single type that each draw is from. By default, each is from all ``types`` together.
    seed : int
        64-bit seed.
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
    check_output_size("numbers", draw_indices.size)
    if (
        draw_indices.size
        and not 0 <= int(draw_indices.min()) <= int(draw_indices.max()) < _INDEX_LIMIT
    ):
        raise InvalidRequest(
            f"numbers: expected 0 to {_INDEX_LIMIT - 1}, found {int(draw_indices.min())} to "
            f"{int(draw_indices.max())}"
        )
    if kinds is not None:
        check_length("kinds", kinds, draw_indices.size)
    ids, drawn_types = np.empty(draw_indices.size, np.int64), np.empty(draw_indices.size, np.int32)
    probabilities = np.empty(draw_indices.size, np.float64) if want_probabilities else None
    groups: list[tuple[Sequence[int], NDArray[np.int64]]] = [(types, np.arange(draw_indices.size))]
    if kinds is not None:
        distinct_kinds: set[int] = set()
        for block in blocks(kinds.size, BLOCK_DRAWS, checkpoint):
            distinct_kinds.update(np.unique(kinds[block]).tolist())
        groups = []
        for kind in sorted(distinct_kinds):
            checkpoint()
            groups.append(([kind], np.flatnonzero(kinds == kind)))
    pieces = [
        (source_types, places[block])
        for source_types, places in groups
        for block in blocks(places.size, BLOCK_DRAWS, no_checkpoint)
    ]
    for i, (source_types, places) in enumerate(pieces):
        if not places.size:
            continue
        source_seed = seed if kinds is None else rng.seed_of_type(seed, source_types[0])
        if i:
            checkpoint()
        entries = build_entries(
            version, NODE, types=source_types, parts=list(version.parts), uniform=uniform
        )
        draws = draw_local_nodes(
            entries,
            source_seed,
            0,
            places.size,
            draw_indices=draw_indices[places],
            uniform=uniform,
            want_probabilities=want_probabilities,
        )
        if draws.ids.size < places.size:
            for entry in partition_choice.choose_entries_at(
                rng.key_of(source_seed, rng.PART, NODE), draw_indices[places], entries.shares
            ):
                version.image(int(entries.shares.parts[entry]))
        ids[places], drawn_types[places] = (
            draws.ids,
            source_types[0] if draws.types is None else draws.types,
        )
        if probabilities is not None and draws.probabilities is not None:
            probabilities[places] = draws.probabilities
    return NodeDraws(ids=ids, types=drawn_types, probabilities=probabilities)
