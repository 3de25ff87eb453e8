"""Draws of nodes by their numbers, each from a type of its own perhaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit import rng, split
from storaged.draw.blocks import DRAWS, Checkpoint, blocks, never
from storaged.draw.entries import entries_of
from storaged.draw.node import NodeDraws, drawn
from storaged.draw.version import NODE, Version, checked_length, checked_outputs

_NUMBERS = 1 << 32


def numbered_nodes(
    version: Version,
    *,
    types: Sequence[int],
    numbers: NDArray[np.int64],
    kinds: NDArray[np.int32] | None = None,
    seed: int,
    uniform: bool,
    want_probabilities: bool = False,
    checkpoint: Checkpoint = never,
) -> NodeDraws:
    """The draws of these numbers, in their order: as `storaged.draw.nodes` draws them.

    Parameters
    ----------
    version, types, seed, uniform, want_probabilities, checkpoint
        As there.
    numbers : int64[k]
        In 0 .. 2^32 - 1; of draws that fall on parts held here.
    kinds : int32[k], optional
        The one type that each is drawn from; left out, each is drawn from all of ``types`` together.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable
        As there.
    """
    checked_outputs("numbers", numbers.size)
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < _NUMBERS:
        raise InvalidRequest(f"numbers: found {int(numbers.min())} to {int(numbers.max())}; expected 0 to {_NUMBERS - 1}")
    if kinds is not None:
        checked_length("kinds", kinds, numbers.size)
    ids, of_type = np.empty(numbers.size, np.int64), np.empty(numbers.size, np.int32)
    probabilities = np.empty(numbers.size, np.float64) if want_probabilities else None
    lots: list[tuple[Sequence[int], NDArray[np.int64]]] = [(types, np.arange(numbers.size))]
    if kinds is not None:
        lots = [([int(kind)], np.flatnonzero(kinds == kind)) for kind in np.unique(kinds)]
    pieces = [(drawn_from, at[block]) for drawn_from, at in lots for block in blocks(at.size, DRAWS, never)]
    for piece, (drawn_from, at) in enumerate(pieces):
        if not at.size:
            continue
        if piece:
            checkpoint()
        entries = entries_of(version, NODE, types=drawn_from, parts=list(version.parts), uniform=uniform)
        found = drawn(entries, seed, 0, at.size, numbers=numbers[at], uniform=uniform, want_probabilities=want_probabilities)
        if found.ids.size < at.size:
            for entry in split.choose_at(rng.key_of(seed, rng.PART, NODE), numbers[at], entries.shares):
                version.image(int(entries.shares.parts[entry]))
        ids[at], of_type[at] = found.ids, drawn_from[0] if found.types is None else found.types
        if probabilities is not None and found.probabilities is not None:
            probabilities[at] = found.probabilities
    return NodeDraws(ids=ids, types=of_type, probabilities=probabilities)
