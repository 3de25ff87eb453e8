"""Resumable epochs over the integers below a size, shuffled and split over ranks.

A cursor consists of a few numbers, whatever the size. The trainer stores its state with its own
checkpoint, so that the visited numbers match what that checkpoint has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism import permutations
from asterism_proto.errors import InvalidRequest

__all__ = ["EpochCursor"]

StridedRange = tuple[int, int, int]
"""Positions start, start + stride, ..., given as (start, stride, count)."""
_MAX_STORED_ORDER = 1 << 16
"""Largest size for which the order of an epoch is stored, at 8 bytes per number.

Up to this size every order is equally likely. Larger sizes use a permutation that needs no memory.
Part of the sampling contract: changing it changes results for a given seed.
"""


class EpochCursor:
    """Cursor that visits every integer below ``size`` once per epoch, over all ranks together.

    Parameters
    ----------
    size : int
        Number of integers.
    seed : int
        Seed of the order; the same on all ranks.
    rank, world : int, default 0 and 1
        This cursor's rank and the number of ranks.
    epoch : int, default 0
        First epoch.

    Raises
    ------
    InvalidRequest
        If an argument is negative, or ``rank`` is not below ``world``.

    Examples
    --------
    >>> cursor = EpochCursor(5, seed=1)
    >>> sorted([*cursor.take(3).tolist(), *cursor.take(3).tolist()])
    [0, 1, 2, 3, 4]
    >>> cursor.left
    0
    """

    def __init__(
        self, size: int, *, seed: int, rank: int = 0, world: int = 1, epoch: int = 0
    ) -> None:
        if size < 0 or epoch < 0 or not 0 <= rank < world:
            raise InvalidRequest(
                f"size={size}, epoch={epoch}, rank={rank}, world={world}: expected a size and an "
                "epoch of 0 or more, and a rank from 0 to world - 1"
            )
        self.size, self.seed, self.rank, self.world = size, seed, rank, world
        self._order: tuple[int, NDArray[np.int64]] = (-1, np.zeros(0, np.int64))
        """Key and order of a stored epoch."""
        self._begin(epoch, _rank_share([(0, 1, size)], rank, world), 0)

    def _begin(self, epoch: int, runs: Sequence[StridedRange], position: int) -> None:
        self.epoch = epoch
        self._runs = list(runs)
        self._offsets = np.cumsum([0, *(count for _, _, count in runs)])
        self.position = position
        """Number of this rank's integers visited in this epoch."""

    @property
    def left(self) -> int:
        """Number of this rank's integers not yet visited in this epoch."""
        return int(self._offsets[-1]) - self.position

    def next_place(self) -> int:
        """Return the next integer's position in the order of the whole epoch, or -1 at the end.

        No other rank has this position.

        Returns
        -------
        int
            The position, from 0 to ``size`` - 1, or -1.
        """
        return int(self._places(self.position, self.position + 1)[0]) if self.left else -1

    def take(self, count: int) -> NDArray[np.int64]:
        """Return the next integers and advance.

        Parameters
        ----------
        count : int
            Number of integers; fewer are returned at the end of the epoch.

        Returns
        -------
        ndarray of int64, shape (m,)
            The integers, m <= ``count``.
        """
        stop = self.position + min(count, self.left)
        positions = self._places(self.position, stop)
        self.position = stop
        key = permutations.key_of(self.seed, permutations.EPOCH, self.epoch)
        if self.size > _MAX_STORED_ORDER:
            return permutations.permute(positions, self.size, key)
        if self._order[0] != key:
            self._order = key, permutations.shuffled_range(self.size, key)
        return self._order[1][positions]

    def _places(self, start: int, stop: int) -> NDArray[np.int64]:
        positions = np.arange(start, stop, dtype=np.int64)
        if not positions.size:
            return positions
        run = np.searchsorted(self._offsets, positions, side="right") - 1
        starts, strides, _ = np.array(self._runs, np.int64).T
        return np.asarray(starts[run] + (positions - self._offsets[run]) * strides[run])

    def next_epoch(self) -> None:
        """Begin the next epoch, even if this one has not ended."""
        self._begin(self.epoch + 1, _rank_share([(0, 1, self.size)], self.rank, self.world), 0)

    def split(self, parts: int) -> list[EpochCursor]:
        """Split the rest of this rank's share into several cursors.

        `resharded` joins their states again.

        Parameters
        ----------
        parts : int
            Number of cursors.

        Returns
        -------
        list of EpochCursor
            Cursors that together visit the rest of the share.
        """
        remaining = _skip(self._runs, self.position)
        cursors = [
            EpochCursor(self.size, seed=self.seed, rank=part, world=parts, epoch=self.epoch)
            for part in range(parts)
        ]
        for part, cursor in enumerate(cursors):
            cursor._begin(self.epoch, _rank_share(remaining, part, parts), 0)
        return cursors

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the cursor in plain values, for `load_state_dict`.

        Returns
        -------
        dict
            Size, seed, rank, world, epoch, position and the rank's ranges.
        """
        return {
            "size": self.size,
            "seed": self.seed,
            "rank": self.rank,
            "world": self.world,
            "epoch": self.epoch,
            "position": self.position,
            "runs": [list(run) for run in self._runs],
        }

    def check_size(self, state: Mapping[str, Any]) -> None:
        """Raise InvalidRequest if a saved state belongs to a cursor of another size."""
        if state["size"] != self.size:
            raise InvalidRequest(
                f"state={{'size': {state['size']}}}: expected the state of an epoch of "
                f"{self.size} rows; read the version that the state was saved with"
            )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Parameters
        ----------
        state : dict
            Result of `state_dict`.

        Raises
        ------
        InvalidRequest
            If the state has another size, which means that it belongs to another version.
        """
        self.check_size(state)
        self.seed, self.rank, self.world = state["seed"], state["rank"], state["world"]
        self._begin(
            state["epoch"],
            [(start, stride, count) for start, stride, count in state["runs"]],
            state["position"],
        )

    @classmethod
    def resharded(
        cls, states: Iterable[Mapping[str, Any]], *, rank: int, world: int
    ) -> EpochCursor:
        """Build a cursor for a new number of ranks that continues an epoch.

        The new ranks together visit what the old ranks left of the epoch.

        Parameters
        ----------
        states : iterable of dict
            `state_dict` of every old rank; the ranks need not be equally far.
        rank, world : int
            Rank of the new cursor and the new number of ranks.

        Returns
        -------
        EpochCursor
            Cursor of the new rank.

        Raises
        ------
        InvalidRequest
            If the state of a rank is missing or repeated, or the states are from different epochs.
        """
        ordered = sorted(states, key=lambda state: int(state["rank"]))
        if not ordered or [state["rank"] for state in ordered] != list(range(ordered[0]["world"])):
            ranks = [state["rank"] for state in ordered]
            wanted = f"ranks 0 to {ordered[0]['world'] - 1}" if ordered else "every rank"
            raise InvalidRequest(f"states of ranks {ranks}: expected one state of {wanted}")
        for name in ("size", "seed", "epoch", "world"):
            if len({state[name] for state in ordered}) > 1:
                raise InvalidRequest(
                    f"states with {name}={[state[name] for state in ordered]}: expected equal "
                    "values; pass the states that all ranks saved at the same step"
                )
        cursor = cls(
            ordered[0]["size"],
            seed=ordered[0]["seed"],
            rank=rank,
            world=world,
            epoch=ordered[0]["epoch"],
        )
        remaining = [
            run
            for state in ordered
            for run in _skip(
                [(start, stride, count) for start, stride, count in state["runs"]],
                state["position"],
            )
        ]
        cursor._begin(cursor.epoch, _rank_share(remaining, rank, world), 0)
        return cursor


def _rank_share(runs: Iterable[StridedRange], rank: int, world: int) -> list[StridedRange]:
    """Return every ``world``-th position of the concatenated ranges, starting at ``rank``."""
    out: list[StridedRange] = []
    preceding = 0
    for start, stride, count in runs:
        first = (rank - preceding) % world
        if first < count:
            out.append((start + first * stride, stride * world, -(-(count - first) // world)))
        preceding += count
    return out


def _skip(runs: Iterable[StridedRange], position: int) -> list[StridedRange]:
    """Return the ranges without their first ``position`` positions."""
    out: list[StridedRange] = []
    for start, stride, count in runs:
        skipped = min(position, count)
        if skipped < count:
            out.append((start + skipped * stride, stride, count - skipped))
        position -= skipped
    return out
