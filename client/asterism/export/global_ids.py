"""Global ids of an export: ranges per owner, and lookup by stored id.

A *global* id numbers all nodes by (partition, node type, trainer if there are several, stored id),
or all edges by (owner, edge type, destination). A *type-wise* id numbers the nodes of one type in
the same order; users of a DistGraph see type-wise ids.
"""

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
"""Largest length of a direct lookup table, as a multiple of the number of ids."""
_STEP = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GlobalIdRanges:
    """Ranges of global ids of each partition and type, which tile 0 .. total - 1 in order."""

    starts: Counts
    """Range starts; int64, shape (parts, types + 1).
    Partition p owns the ids ``starts[p, t] .. starts[p, t + 1] - 1`` of type t."""
    trainer_ends: Counts | None = None
    """End of each trainer's ids within a partition and type.
    Has dtype int64 and shape (parts, types, trainers). None means one trainer per partition."""

    @classmethod
    def from_counts(cls, counts: Counts, trainers: int = 1) -> GlobalIdRanges:
        """Build ranges from counts of shape (parts, types) or (parts * trainers, types).

        Trainers follow each other within a partition and type.
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
        """Number of ids."""
        return int(self.starts[-1, -1])

    @property
    def counts(self) -> Counts:
        """Number of ids of each partition and type; int64, shape (parts, types)."""
        return np.diff(self.starts, axis=1)

    def part_range(self, part: int) -> tuple[int, int]:
        """Return the start and the end of a partition's ids."""
        return int(self.starts[part, 0]), int(self.starts[part, -1])

    def owners(self, ids: Ids) -> NDArray[np.int32]:
        """Return the partition of each global id; int32, shape (n,)."""
        parts: NDArray[np.int32] = np.searchsorted(self.starts[1:, 0], ids, side="right").astype(
            np.int32
        )
        return parts

    def types(self, ids: Ids) -> NDArray[np.int32]:
        """Return the type of each global id; int32, shape (n,)."""
        ends = self.starts[:, 1:].reshape(-1)
        type_ids: NDArray[np.int32] = (
            np.searchsorted(ends, ids, side="right") % (self.starts.shape[1] - 1)
        ).astype(np.int32)
        return type_ids

    def trainers(self, ids: Ids) -> Ids:
        """Return the trainer of each global id, numbered over all partitions; int64, shape (n,).

        With one trainer per partition, this is the partition.
        """
        if self.trainer_ends is None:
            return self.owners(ids).astype(np.int64)
        _, types, trainers = self.trainer_ends.shape
        position: Ids = np.searchsorted(self.trainer_ends.reshape(-1), ids, side="right")
        trainer_ids: Ids = position // (types * trainers) * trainers + position % trainers
        return trainer_ids

    def slot_starts(self, kind: int) -> Ids:
        """Return the start of a type's ids in each slot; int64, shape (parts * trainers,).

        A slot is partition * trainers + trainer.
        """
        if self.trainer_ends is None:
            return self.starts[:, kind].copy()
        ends = self.trainer_ends[:, kind]
        return np.concatenate([self.starts[:, kind, None], ends[:, :-1]], axis=1).reshape(-1)

    def type_ranges(self, kind: int) -> list[list[int]]:
        """Return ``[start, end]`` of a type in each partition, as the configuration lists them."""
        return [[int(row[kind]), int(row[kind + 1])] for row in self.starts]


AllocateArray = Callable[[int, type[np.generic]], NDArray[Any]]
"""Function that returns an array of zeros, in memory or, if large, in a file."""


class NodeIdTable:
    """Nodes of one type: ascending stored ids, and global ids once assigned."""

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
        """Return the position of each stored id, or -1 if unknown; int64, shape (n,)."""
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
        """Return the global id of each stored id, or -1 if unknown; int64, shape (n,)."""
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
        """Assign global ids to nodes and yield the stored ids of each slot in the new order.

        Parameters
        ----------
        owners : ndarray of int32, shape (n,)
            Slot (partition * trainers + trainer) of each node, by rank.
        ranges : GlobalIdRanges
            Ranges of all nodes.
        kind : int
            Index of this node type.
        gids : ndarray of int64, shape (n,)
            Output: global id of each node, by rank. The table keeps the array.

        Yields
        ------
        tuple of int and ndarray of int64
            A slot and the next run of its stored ids.
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
