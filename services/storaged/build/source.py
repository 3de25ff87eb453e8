"""What a build reads: the blocks of one part, in the order of the writes, without what a later tombstone killed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.split import part_of
from graphkit.times import keys_of
from storaged.build.progress import Progress
from storaged.build.spool import Records, buckets
from storaged.build.steps import Steps
from storaged.build.task import Task
from storaged.build.unit import Input, Units
from storaged.store.graph import NODE_BIRTHS, NODE_DELETES, NODE_TIMES, BlockRef, GraphStore
from storaged.store.image_writer import Files, ImageWriter
from storaged.store.tables import TableStore

I64 = NDArray[np.int64]
Sections = dict[str, NDArray[Any]]

_CHUNK = 1 << 18
COLUMN = "w:"
"""What sections of near columns, those that a draw goes by, begin with: ``w:NAME``."""
_TOMBSTONE_BYTES = 80
"""Per record of a bucket of deletes or times: itself, its place in the order, its copy in it, what is kept of it."""


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The last delete of every deleted node of a type."""

    ids: I64
    """int64[n], ascending."""
    stamps: I64
    """int64[n], when each was deleted last."""
    back: NDArray[np.bool_]
    """bool[n], which were written again since."""

    def kills(self, ids: I64, stamp: int) -> NDArray[np.bool_] | None:
        """Which of the ids were deleted after ``stamp``; None where none was."""
        if self.ids.size == 0 or ids.size == 0:
            return None
        at = self._find(ids)
        dead: NDArray[np.bool_] = (self.ids[at] == ids) & (self.stamps[at] > stamp)
        return dead if dead.any() else None

    def dead(self, ids: I64) -> NDArray[np.bool_] | None:
        """Which of the ids are deleted at the cut; None where none is. Every part says the same, whichever they are rows of."""
        if self.ids.size == 0 or ids.size == 0:
            return None
        at = self._find(ids)
        dead: NDArray[np.bool_] = (self.ids[at] == ids) & ~self.back[at]
        return dead if dead.any() else None

    def revive(self, ids: I64, stamp: int) -> None:
        """These ids were written again at ``stamp``."""
        if self.ids.size == 0 or ids.size == 0:
            return
        at = self._find(ids)
        self.back[at[(self.ids[at] == ids) & (self.stamps[at] < stamp)]] = True

    def _find(self, ids: I64) -> I64:
        return np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)


@dataclass(frozen=True, slots=True)
class NodeTimes:
    """The times of all nodes of a type, wherever they live."""

    ids: I64
    """int64[n], ascending: those that have any."""
    keys: I64
    """int64[n], as `graphkit.times.keys_of` has them."""

    def of(self, ids: I64) -> I64:
        """int64[m]: the time of each node; 0 where none was written, as features do."""
        if self.ids.size == 0:
            return np.zeros(ids.size, np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        return np.where(self.ids[at] == ids, self.keys[at], 0)


class Source:
    """The blocks of one part at the cut.

    Parameters
    ----------
    store : GraphStore
    task : Task
    part : int
    progress : Progress
    scratch : Files
        Where tombstones and times of nodes are kept: mapped, as there may be as many as nodes.
    """

    def __init__(self, store: GraphStore, task: Task, part: int, progress: Progress, scratch: Files) -> None:
        self._store, self._task, self._part, self._progress, self._scratch = store, task, part, progress, scratch
        self._tombstones: dict[int, Tombstones] = {}
        self._times: dict[int, NodeTimes] = {}

    def refs(self, type_id: int, *kinds: int) -> list[BlockRef]:
        """The values of these kinds, in the order of the writes."""
        return self._store.refs(self._part, kinds, type_id, self._task.loads)

    def read(self, refs: Sequence[BlockRef]) -> Iterator[tuple[BlockRef, Sections]]:
        """Their sections, one value at a time."""
        for ref in refs:
            yield ref, self._store.read(ref)
            self._progress.step(ref.rows)

    def tombstone_refs(self, node_type: int) -> list[BlockRef]:
        """What `tombstones` reads."""
        return self.refs(node_type, NODE_DELETES, NODE_BIRTHS)

    def tombstones(self, node_type: int) -> Tombstones:
        """The deletes of a node type, and which of them were made good; both come to every part."""
        if node_type not in self._tombstones:
            found = self._tombstones[node_type] = self._deletes(node_type)
            for ref, sections in self.read(self.refs(node_type, NODE_BIRTHS)):
                found.revive(sections["ids"], ref.stamp)
        return self._tombstones[node_type]

    def time_refs(self, node_type: int) -> list[BlockRef]:
        """What `times` reads, beside tombstones."""
        return self.refs(node_type, NODE_TIMES)

    def times(self, node_type: int) -> NodeTimes:
        """The times of the nodes of a type that has one; they come to every part.

        As a column of features is made: later writes over earlier ones, and what was written before a node's last delete is gone.
        """
        if node_type not in self._times:
            self._times[node_type] = self._last_times(node_type)
        return self._times[node_type]

    def _last_times(self, node_type: int) -> NodeTimes:
        refs, section = self.time_refs(node_type), f"{COLUMN}{self._task.schema.node_types[node_type].time}"
        low, high = min((ref.lowest for ref in refs if ref.rows), default=0), max((ref.highest for ref in refs if ref.rows), default=0)
        tombstones = self.tombstones(node_type)

        def records() -> Iterator[Records]:
            for ref in refs:
                sections = self._store.read(ref)  # no progress of rows: those are counted as nodes where they live
                dead = tombstones.kills(sections["ids"], ref.stamp)
                kept = slice(None) if dead is None else ~dead
                yield sections["ids"][kept], keys_of(sections[section])[kept]

        ids, keys = f"times{node_type}.ids", f"times{node_type}.keys"
        out_ids, out_keys = self._scratch.append_to(ids, np.int64), self._scratch.append_to(keys, np.int64)
        limit = self._task.row_limit(_TOMBSTONE_BYTES)
        for bucket in buckets(records(), sum(ref.rows for ref in refs), low=low, high=high, limit=limit, folder=self._scratch.folder):
            found, given = bucket.records
            order = np.argsort(found, kind="stable")  # the order of the writes among equals: the last one counts
            found = found[order]
            last = np.append(found[1:] != found[:-1], True)[: found.size]
            out_ids.append(found[last])
            out_keys.append(given[order][last])
        return NodeTimes(self._scratch.map(ids), self._scratch.map(keys))

    def _deletes(self, node_type: int) -> Tombstones:
        refs, scratch = self.refs(node_type, NODE_DELETES), self._scratch
        if not refs:
            return Tombstones(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
        low, high = min((ref.lowest for ref in refs if ref.rows), default=0), max((ref.highest for ref in refs if ref.rows), default=0)
        records = ((sections["ids"], np.full(ref.rows, ref.stamp, np.int64)) for ref, sections in self.read(refs))
        ids, stamps = f"deleted{node_type}.ids", f"deleted{node_type}.stamps"
        out_ids, out_stamps = scratch.append_to(ids, np.int64), scratch.append_to(stamps, np.int64)
        limit = self._task.row_limit(_TOMBSTONE_BYTES)
        for bucket in buckets(records, sum(ref.rows for ref in refs), low=low, high=high, limit=limit, folder=scratch.folder):
            found, when = bucket.records
            order = np.argsort(found, kind="stable")  # the order of the writes among equals: the last delete is last
            found, when = found[order], when[order]
            last = np.append(found[1:] != found[:-1], True)[: found.size]
            out_ids.append(found[last])
            out_stamps.append(when[last])
        back = scratch.create(f"deleted{node_type}.back", np.bool_, (out_ids.rows,))
        return Tombstones(scratch.map(ids), scratch.map(stamps), back)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where a part is built: what it reads, what it writes, how much it may hold."""

    task: Task
    part: int
    source: Source
    image: ImageWriter
    scratch: Files
    tables: TableStore
    progress: Progress
    steps: Steps
    units: Units

    def input(self, *words: object) -> Input:
        """The beginning of a unit's digest: which part of what space it is in."""
        return Input(self.part, self.task.schema.parts, self.task.schema.placement, *words)

    def node_input(self, node_type: int, refs: Sequence[BlockRef], *words: object) -> Input:
        """As `input`, of blocks of nodes of this part: what was deleted of other parts does not matter to them."""
        return self.input(*words).blocks(refs).deletes(self._own_deletes(node_type), refs)

    def _own_deletes(self, node_type: int) -> Iterator[tuple[I64, I64]]:
        """Deletes of nodes of this part, piece by piece."""
        deleted, schema = self.source.tombstones(node_type), self.task.schema
        for low in range(0, deleted.ids.size, _CHUNK):
            ids, stamps = deleted.ids[low : low + _CHUNK], deleted.stamps[low : low + _CHUNK]
            mine = part_of(ids, schema.parts, schema.placement) == self.part
            yield ids[mine], stamps[mine]

    @property
    def spools(self) -> Path:
        """A folder for spool files."""
        return self.scratch.folder
