"""Epochs: every number below some size once, in an order of each epoch's own, split over trainers
and resumable.

A cursor is a few numbers, whatever the size. Its state is kept by the trainer, with its own
checkpoint: what was visited is then what that checkpoint has seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism import hashing
from asterism_proto.errors import InvalidRequest

__all__ = ["EpochCursor"]

StridedRange = tuple[int, int, int]
"""Places start, start + stride, ...: (start, stride, count)."""
_MAX_STORED_ORDER = 1 << 16
"""Up to so many numbers every order is as likely as any other: it is kept, 8 bytes each. Of more it
is a permutation that takes no memory.
"""


class EpochCursor:
    """Visits every number below ``size`` once an epoch, over all ranks together.

    Parameters
    ----------
    size : int
        How many numbers there are.
    seed : int
        Of the order; all ranks give the same.
    rank, world : int
        Which share of how many this one visits.
    epoch : int
        The one to begin with.

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
                f"size {size}, epoch {epoch}, rank {rank} of {world}: expected 0 or more, "
                "and a rank below world"
            )
        self.size, self.seed, self.rank, self.world = size, seed, rank, world
        self._order: tuple[int, NDArray[np.int64]] = (-1, np.zeros(0, np.int64))
        """Of an epoch of few numbers, by its key."""
        self._begin(epoch, _rank_share([(0, 1, size)], rank, world), 0)

    def _begin(self, epoch: int, runs: Sequence[StridedRange], position: int) -> None:
        self.epoch = epoch
        self._runs = list(runs)
        self._offsets = np.cumsum([0, *(count for _, _, count in runs)])
        self.position = position
        """Numbers of this share visited in this epoch."""

    @property
    def left(self) -> int:
        """Numbers of this share not yet visited in this epoch."""
        return int(self._offsets[-1]) - self.position

    def next_place(self) -> int:
        """The next number's place in the order of the whole epoch, which no other rank has; -1
        where none is left.
        """
        return int(self._places(self.position, self.position + 1)[0]) if self.left else -1

    def take(self, count: int) -> NDArray[np.int64]:
        """The next numbers, int64: ``count`` of them, or as many as are left."""
        stop = self.position + min(count, self.left)
        positions = self._places(self.position, stop)
        self.position = stop
        key = hashing.key_of(self.seed, hashing.EPOCH, self.epoch)
        if self.size > _MAX_STORED_ORDER:
            return hashing.permute(positions, self.size, key)
        if self._order[0] != key:
            self._order = key, hashing.shuffled_range(self.size, key)
        return self._order[1][positions]

    def _places(self, start: int, stop: int) -> NDArray[np.int64]:
        positions = np.arange(start, stop, dtype=np.int64)
        if not positions.size:
            return positions
        run = np.searchsorted(self._offsets, positions, side="right") - 1
        starts, strides, _ = np.array(self._runs, np.int64).T
        return np.asarray(starts[run] + (positions - self._offsets[run]) * strides[run])

    def next_epoch(self) -> None:
        """Begin the next epoch, wherever this one is."""
        self._begin(self.epoch + 1, _rank_share([(0, 1, self.size)], self.rank, self.world), 0)

    def split(self, parts: int) -> list[EpochCursor]:
        """Cursors that visit, together, what is left of this share: `resharded` of their states is
        one again.
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
        """Where it is, in plain values: what `load_state_dict` goes on from."""
        return {
            "size": self.size,
            "seed": self.seed,
            "rank": self.rank,
            "world": self.world,
            "epoch": self.epoch,
            "position": self.position,
            "runs": [list(run) for run in self._runs],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a cursor was.

        Raises
        ------
        InvalidRequest
            Where the state is of another size: of another version, that is.
        """
        if state["size"] != self.size:
            raise InvalidRequest(
                f"the state is of {state['size']} places, there are {self.size}; read the "
                "version that it was made with"
            )
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
        """A cursor of another number of ranks that visit, together, what those before left of their
        epoch.

        Parameters
        ----------
        states : iterable of dict
            The `state_dict` of every rank there was; they need not be equally far.
        rank, world : int
            Of the new one.

        Raises
        ------
        InvalidRequest
            Where a rank's state is missing or there twice, or they are of different epochs.
        """
        ordered = sorted(states, key=lambda state: int(state["rank"]))
        if not ordered or [state["rank"] for state in ordered] != list(range(ordered[0]["world"])):
            ranks = [state["rank"] for state in ordered]
            raise InvalidRequest(
                f"states of ranks {ranks}: expected one of every rank"
                + (f" below {ordered[0]['world']}" if ordered else "")
            )
        for name in ("size", "seed", "epoch", "world"):
            if len({state[name] for state in ordered}) > 1:
                raise InvalidRequest(
                    f"states of different {name}: {[state[name] for state in ordered]}; they "
                    "must be of one epoch of one cursor"
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
    """Every ``world``-th place of the runs one behind the other, from number ``rank`` on."""
    out: list[StridedRange] = []
    preceding = 0
    for start, stride, count in runs:
        first = (rank - preceding) % world
        if first < count:
            out.append((start + first * stride, stride * world, -(-(count - first) // world)))
        preceding += count
    return out


def _skip(runs: Iterable[StridedRange], position: int) -> list[StridedRange]:
    """The runs without their first ``position`` places."""
    out: list[StridedRange] = []
    for start, stride, count in runs:
        skipped = min(position, count)
        if skipped < count:
            out.append((start + skipped * stride, stride, count - skipped))
        position -= skipped
    return out
