"""Sampling without replacement: the first distinct draws of a stream, and its end.

The stream ends at the first run of more than ``MAX_REPEATS`` repeats. The missing rows are then
taken by exponential-key selection among the remaining rows. The rule depends on the stream alone,
not on the requested count, so the first m of n distinct draws are those of a request for m."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.stable_sort import stable_order
from asterism_graphkit.random import successive_probabilities
from asterism_graphkit.random.alias_build import neumaier_sum
from graphd.routing.split_merge import Checkpoint, no_checkpoint

Arrays = Mapping[str, NDArray[Any]]

MAX_REPEATS = 64
"""Longest run of repeats that does not end the stream.

Part of the sampling contract: changing it changes results for a given seed.
"""


class DistinctDraws:
    """Distinct draws of a stream, in the order of their first occurrence.

    Parameters
    ----------
    id_section : str
        Section that identifies draws, together with ``types``.
    """

    def __init__(self, id_section: str) -> None:
        self._id_section = id_section
        self._drawn = 0
        self._last = -1
        """Index of the newest distinct draw."""
        self.draws: dict[str, NDArray[Any]] = {}
        self.exhausted = False
        """True after a run of repeats exceeded the limit: later draws do not count."""

    def __len__(self) -> int:
        return len(self.draws["types"]) if self.draws else 0

    def add(self, block: Arrays, checkpoint: Checkpoint = no_checkpoint) -> None:
        """Add the next draws of the stream.

        ``checkpoint`` is called during long sorts and may raise.
        """
        if self.exhausted:
            return
        size, known_count = len(block["types"]), len(self)
        merged = {
            name: np.concatenate([self.draws[name], array]) if known_count else array
            for name, array in block.items()
        }
        positions = (
            _first_appearances(merged[self._id_section], merged["types"], checkpoint)[known_count:]
            - known_count
            + self._drawn
        )
        gaps = np.diff(np.concatenate([[self._last], positions])) - 1
        long_gaps = np.flatnonzero(gaps > MAX_REPEATS)
        self._drawn += size
        if long_gaps.size:
            positions = positions[: long_gaps[0]]
        if positions.size:
            self._last = int(positions[-1])
        self.exhausted = bool(long_gaps.size) or self._drawn - 1 - self._last > MAX_REPEATS
        kept_rows = np.concatenate(
            [np.arange(known_count, dtype=np.int64), positions - (self._drawn - size) + known_count]
        )
        self.draws = {name: array[kept_rows] for name, array in merged.items()}

    def first(self, count: int) -> dict[str, NDArray[Any]]:
        """Return the first ``count`` distinct draws."""
        return {name: array[:count] for name, array in self.draws.items()}


def _first_appearances(
    ids: NDArray[np.int64], types: NDArray[np.int32], checkpoint: Checkpoint
) -> NDArray[np.int64]:
    """Return the positions at which a pair occurs for the first time, ascending."""
    order = stable_order([types, ids], checkpoint)
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(ids[order]) != 0) | (np.diff(types[order]) != 0)
    is_first_position = np.zeros(len(order), np.bool_)
    is_first_position[order[is_first]] = True
    return np.flatnonzero(is_first_position).astype(np.int64)


def smallest_key_rows(
    results: list[Arrays], id_section: str, count: int, checkpoint: Checkpoint = no_checkpoint
) -> dict[str, NDArray[Any]]:
    """Return the ``count`` rows with the smallest keys over all hosts; ties are ordered by id.

    ``checkpoint`` is called during long sorts and may raise.
    """
    merged = {name: np.concatenate([result[name] for result in results]) for name in results[0]}
    keys = [merged["keys"], merged[id_section], merged["types"]]
    order = stable_order(keys, checkpoint)[:count]
    return {name: array[order] for name, array in merged.items() if name != "keys"}


def conditional_probabilities(
    shares: NDArray[np.float64],
    *,
    uniform: bool,
    available: int,
    remaining_share: Callable[[], float],
) -> NDArray[np.float64]:
    """Return the probability of each successive draw, given the draws before it.

    Parameters
    ----------
    shares : ndarray of float64, shape (n,)
        Share of each draw in the total weight, in draw order.
    uniform : bool
        True if all shares are equal.
    available : int
        Number of rows that can be drawn.
    remaining_share : callable
        Returns the share of the rows not drawn, computed as a sum. Called if the remainder is
        too small for a subtraction.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    if uniform:
        return np.asarray(1.0 / (available - np.arange(len(shares), dtype=np.int64)))
    remaining = 0.0
    if len(shares) < available:
        remaining = 1.0 - neumaier_sum(shares)
        if remaining < successive_probabilities.MIN_REMAINING_SHARE:
            remaining = remaining_share()
    return successive_probabilities.conditional_probabilities(shares, remaining)
