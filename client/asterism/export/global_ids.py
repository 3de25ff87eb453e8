"""Global ids of an export: ranges of their owners, and the place of each stored id.

A *global* id numbers all nodes by (part, node type, trainer where there are several, stored id); an
edge's numbers all edges by (owner, edge type, destination). A *type-wise* id numbers the nodes of
one type in the same order: it is what users of a DistGraph see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.graph_source import Ids
from asterism_graphkit.random.partition_choice import group_by_key
from asterism_graphkit.relabel.hash_index import fill_index, find, index_slots

Counts = NDArray[np.int64]

_MAX_TABLE_FACTOR = 4
"""A table of all ids up to the largest, as long as that is no more than so many times their
number.
"""
_STEP = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GlobalIdRanges:
    """The ranges of global ids of each part and type; they tile 0 .. total - 1 in that order."""

    starts: Counts
    """int64 [parts, types + 1]: part p owns ``starts[p, t] .. starts[p, t + 1] - 1`` of type t."""
    trainer_ends: Counts | None = None
    """int64 [parts, types, trainers]: where the ids of each trainer end, within a part and type;
    None: one to a part.
    """

    @classmethod
    def from_counts(cls, counts: Counts, trainers: int = 1) -> GlobalIdRanges:
        """The ranges for counts [parts, types], or [parts * trainers, types]: trainers follow each
        other within a part and type.
        """
        if trainers > 1:
            by_trainer = counts.reshape(-1, trainers, counts.shape[1])
            part_ranges = cls.from_counts(by_trainer.sum(axis=1))
            ends = part_ranges.starts[:, :-1, None] + np.cumsum(by_trainer, axis=1).transpose(
                0, 2, 1
            )
            return cls(starts=part_ranges.starts, trainer_ends=ends)
        parts, types = counts.shape
        ends = np.cumsum(counts.reshape(-1), dtype=np.int64).reshape(parts, types)
        starts = np.concatenate([np.zeros((parts, 1), np.int64), ends], axis=1)
        if types:
            starts[1:, 0] = ends[:-1, -1]
        return cls(starts=starts)

    @property
    def total(self) -> int:
        """How many ids there are."""
        return int(self.starts[-1, -1])

    @property
    def counts(self) -> Counts:
        """int64 [parts, types]."""
        return np.diff(self.starts, axis=1)

    def part_range(self, part: int) -> tuple[int, int]:
        """Where a part starts and ends."""
        return int(self.starts[part, 0]), int(self.starts[part, -1])

    def owners(self, ids: Ids) -> NDArray[np.int32]:
        """int32[n]: the part of each global id."""
        parts: NDArray[np.int32] = np.searchsorted(self.starts[1:, 0], ids, side="right").astype(
            np.int32
        )
        return parts

    def types(self, ids: Ids) -> NDArray[np.int32]:
        """int32[n]: the type of each global id."""
        ends = self.starts[:, 1:].reshape(-1)
        type_ids: NDArray[np.int32] = (
            np.searchsorted(ends, ids, side="right") % (self.starts.shape[1] - 1)
        ).astype(np.int32)
        return type_ids

    def trainers(self, ids: Ids) -> Ids:
        """int64[n]: the trainer of each global id, numbered over all parts; the part where each has
        one.
        """
        if self.trainer_ends is None:
            return self.owners(ids).astype(np.int64)
        _, types, trainers = self.trainer_ends.shape
        position: Ids = np.searchsorted(self.trainer_ends.reshape(-1), ids, side="right")
        trainer_ids: Ids = position // (types * trainers) * trainers + position % trainers
        return trainer_ids

    def slot_starts(self, kind: int) -> Ids:
        """int64 [parts * trainers]: where the ids of a type begin at each place (part * trainers +
        trainer).
        """
        if self.trainer_ends is None:
            return self.starts[:, kind].copy()
        ends = self.trainer_ends[:, kind]
        return np.concatenate([self.starts[:, kind, None], ends[:, :-1]], axis=1).reshape(-1)

    def type_ranges(self, kind: int) -> list[list[int]]:
        """``[start, end]`` of a type in each part, as the configuration lists them."""
        return [[int(row[kind]), int(row[kind + 1])] for row in self.starts]


AllocateArray = Callable[[int, type[np.generic]], NDArray[Any]]
"""Makes an array of so many zeros: in memory, or in a file where it is large."""


class NodeIdTable:
    """The nodes of one type: stored ids in ascending order, and their global ids once parts are
    assigned.
    """

    def __init__(self, ids: Ids, allocate: AllocateArray = np.zeros) -> None:
        self.ids = ids
        self.gids: Ids = np.empty(0, np.int64)
        id_bound = int(ids[-1]) + 1 if len(ids) else 0
        self._dense = id_bound == len(ids)
        self._table: Ids | None = None
        self._index: tuple[Ids, NDArray[np.uint32]] | None = None
        if self._dense:
            pass
        elif id_bound <= _MAX_TABLE_FACTOR * len(ids):
            self._table = allocate(id_bound, np.int64)
            self._table[:] = -1
            for start in range(0, len(ids), _STEP):
                batch = ids[start : start + _STEP]
                self._table[batch] = np.arange(start, start + len(batch))
        else:
            slots = index_slots(len(ids))
            self._index = allocate(slots, np.int64), allocate(slots, np.uint32)
            fill_index(ids, *self._index)

    def __len__(self) -> int:
        return len(self.ids)

    def rank(self, ids: Ids) -> Ids:
        """int64[n]: the position of each stored id, -1 where there is none."""
        if self._index is not None:
            return find(ids, *self._index)
        id_bound = (
            len(self.ids) if self._dense else len(self._table) if self._table is not None else 0
        )
        in_range = (ids >= 0) & (ids < id_bound)
        if in_range.all():
            return ids if self._table is None else self._table[ids]
        clipped = np.where(in_range, ids, 0)
        ranks = clipped if self._table is None or id_bound == 0 else self._table[clipped]
        return np.where(in_range, ranks, -1)

    def gid(self, ids: Ids) -> Ids:
        """int64[n]: the global id of each stored id, -1 where there is none."""
        rank = self.rank(ids)
        is_known = rank >= 0
        return (
            self.gids[rank]
            if is_known.all()
            else np.where(is_known, self.gids[np.where(is_known, rank, 0)], -1)
        )

    def assign_gids(
        self, owners: NDArray[np.int32], ranges: GlobalIdRanges, kind: int, gids: Ids
    ) -> Iterator[tuple[int, Ids]]:
        """Take each node's place and number the nodes, into ``gids``; give places and runs of their
        stored ids, in the new order.

        Parameters
        ----------
        owners : int32 [n]
            The place (part * trainers + trainer) of each node, by rank.
        ranges, kind
            Of all nodes; which type this is.
        gids : int64 [n], out
            The global id of each node, by rank.
        """
        self.gids = gids
        next_gid = ranges.slot_starts(kind)
        for start in range(0, len(owners), _STEP):
            order, offsets = group_by_key(
                np.ascontiguousarray(owners[start : start + _STEP]), len(next_gid)
            )
            for slot, (low, high) in enumerate(pairwise(offsets.tolist())):
                if high > low:
                    rows = start + order[low:high]
                    gids[rows] = np.arange(next_gid[slot], next_gid[slot] + high - low)
                    next_gid[slot] += high - low
                    yield slot, self.ids[rows]
