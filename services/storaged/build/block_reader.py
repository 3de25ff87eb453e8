"""What a build reads: the blocks of one part, in the order of the writes, without what a later
tombstone killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.time_keys import encode_times
from asterism_graphkit.random.partition_choice import part_of
from storaged.build.buckets import Records, split_into_buckets
from storaged.build.checkpoints import PartSteps
from storaged.build.progress import ProgressReporter
from storaged.build.task_records import BuildTask
from storaged.build.unit_cache import InputDigest, PartUnitCache
from storaged.store.block_store import NODE_DELETES, NODE_REVIVALS, NODE_TIMES, BlockRef, BlockStore
from storaged.store.image_writer import ArrayFiles, ImageWriter
from storaged.store.tables import StatStore

I64 = NDArray[np.int64]
Sections = dict[str, NDArray[Any]]

_CHUNK = 1 << 18
COLUMN_PREFIX = "w:"
"""What sections of near columns, those that a draw goes by, begin with: ``w:NAME``."""
_TOMBSTONE_BYTES = 80
"""Per record of a bucket of deletes or times: itself, its place in the order, its copy in it, what
is kept of it.
"""


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The last delete of every deleted node of a type."""

    ids: I64
    """int64[n], ascending."""
    stamps: I64
    """int64[n], when each was deleted last."""
    revived: NDArray[np.bool_]
    """bool[n], which were written again since."""

    def deleted_after(self, ids: I64, stamp: int) -> NDArray[np.bool_] | None:
        """Which of the ids were deleted after ``stamp``; None where none was."""
        if self.ids.size == 0 or ids.size == 0:
            return None
        positions = self._find(ids)
        deleted: NDArray[np.bool_] = (self.ids[positions] == ids) & (self.stamps[positions] > stamp)
        return deleted if deleted.any() else None

    def deleted_at_cut(self, ids: I64) -> NDArray[np.bool_] | None:
        """Which of the ids are deleted at the cut; None where none is. Every part says the same,
        whichever they are rows of.
        """
        if self.ids.size == 0 or ids.size == 0:
            return None
        positions = self._find(ids)
        deleted: NDArray[np.bool_] = (self.ids[positions] == ids) & ~self.revived[positions]
        return deleted if deleted.any() else None

    def revive(self, ids: I64, stamp: int) -> None:
        """These ids were written again at ``stamp``."""
        if self.ids.size == 0 or ids.size == 0:
            return
        positions = self._find(ids)
        self.revived[positions[(self.ids[positions] == ids) & (self.stamps[positions] < stamp)]] = (
            True
        )

    def _find(self, ids: I64) -> I64:
        return np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)


@dataclass(frozen=True, slots=True)
class NodeTimes:
    """The times of all nodes of a type, wherever they live."""

    ids: I64
    """int64[n], ascending: those that have any."""
    keys: I64
    """int64[n], as `asterism_graphkit.arrays.time_keys.encode_times` has them."""

    def lookup(self, ids: I64) -> I64:
        """int64[m]: the time of each node; 0 where none was written, as features do."""
        if self.ids.size == 0:
            return np.zeros(ids.size, np.int64)
        positions = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        return np.where(self.ids[positions] == ids, self.keys[positions], 0)


class BlockReader:
    """The blocks of one part at the cut.

    Parameters
    ----------
    store : BlockStore
    task : BuildTask
    part : int
    progress : ProgressReporter
    scratch : ArrayFiles
        Where tombstones and times of nodes are kept: mapped, as there may be as many as nodes.
    """

    def __init__(
        self,
        store: BlockStore,
        task: BuildTask,
        part: int,
        progress: ProgressReporter,
        scratch: ArrayFiles,
    ) -> None:
        self._store, self._task, self._part, self._progress, self._scratch = (
            store,
            task,
            part,
            progress,
            scratch,
        )
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
        return self.refs(node_type, NODE_DELETES, NODE_REVIVALS)

    def tombstones(self, node_type: int) -> Tombstones:
        """The deletes of a node type, and which of them were made good; both come to every part."""
        if node_type not in self._tombstones:
            tombstones = self._tombstones[node_type] = self._read_tombstones(node_type)
            for ref, sections in self.read(self.refs(node_type, NODE_REVIVALS)):
                tombstones.revive(sections["ids"], ref.stamp)
        return self._tombstones[node_type]

    def time_refs(self, node_type: int) -> list[BlockRef]:
        """What `times` reads, beside tombstones."""
        return self.refs(node_type, NODE_TIMES)

    def times(self, node_type: int) -> NodeTimes:
        """The times of the nodes of a type that has one; they come to every part.

        As a column of features is made: later writes over earlier ones, and what was written before
        a node's last delete is gone."""
        if node_type not in self._times:
            self._times[node_type] = self._read_times(node_type)
        return self._times[node_type]

    def _read_times(self, node_type: int) -> NodeTimes:
        refs, section = (
            self.time_refs(node_type),
            f"{COLUMN_PREFIX}{self._task.schema.node_types[node_type].time}",
        )
        low, high = (
            min((ref.lowest for ref in refs if ref.rows), default=0),
            max((ref.highest for ref in refs if ref.rows), default=0),
        )
        tombstones = self.tombstones(node_type)

        def records() -> Iterator[Records]:
            for ref in refs:
                sections = self._store.read(
                    ref
                )  # no progress of rows: those are counted as nodes where they live
                deleted = tombstones.deleted_after(sections["ids"], ref.stamp)
                selected = slice(None) if deleted is None else ~deleted
                yield sections["ids"][selected], encode_times(sections[section])[selected]

        ids, keys = f"times{node_type}.ids", f"times{node_type}.keys"
        out_ids, out_keys = (
            self._scratch.create_append(ids, np.int64),
            self._scratch.create_append(keys, np.int64),
        )
        limit = self._task.row_limit(_TOMBSTONE_BYTES)
        for bucket in split_into_buckets(
            records(),
            sum(ref.rows for ref in refs),
            low=low,
            high=high,
            limit=limit,
            folder=self._scratch.folder,
        ):
            bucket_ids, bucket_keys = bucket.records
            order = np.argsort(
                bucket_ids, kind="stable"
            )  # the order of the writes among equals: the last one counts
            bucket_ids = bucket_ids[order]
            is_last = np.append(bucket_ids[1:] != bucket_ids[:-1], True)[: bucket_ids.size]
            out_ids.append(bucket_ids[is_last])
            out_keys.append(bucket_keys[order][is_last])
        return NodeTimes(self._scratch.map(ids), self._scratch.map(keys))

    def _read_tombstones(self, node_type: int) -> Tombstones:
        refs, scratch = self.refs(node_type, NODE_DELETES), self._scratch
        if not refs:
            return Tombstones(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
        low, high = (
            min((ref.lowest for ref in refs if ref.rows), default=0),
            max((ref.highest for ref in refs if ref.rows), default=0),
        )
        records = (
            (sections["ids"], np.full(ref.rows, ref.stamp, np.int64))
            for ref, sections in self.read(refs)
        )
        ids, stamps = f"deleted{node_type}.ids", f"deleted{node_type}.stamps"
        out_ids, out_stamps = (
            scratch.create_append(ids, np.int64),
            scratch.create_append(stamps, np.int64),
        )
        limit = self._task.row_limit(_TOMBSTONE_BYTES)
        for bucket in split_into_buckets(
            records,
            sum(ref.rows for ref in refs),
            low=low,
            high=high,
            limit=limit,
            folder=scratch.folder,
        ):
            bucket_ids, bucket_stamps = bucket.records
            order = np.argsort(
                bucket_ids, kind="stable"
            )  # the order of the writes among equals: the last delete is last
            bucket_ids, bucket_stamps = bucket_ids[order], bucket_stamps[order]
            is_last = np.append(bucket_ids[1:] != bucket_ids[:-1], True)[: bucket_ids.size]
            out_ids.append(bucket_ids[is_last])
            out_stamps.append(bucket_stamps[is_last])
        revived = scratch.create(f"deleted{node_type}.back", np.bool_, (out_ids.rows,))
        return Tombstones(scratch.map(ids), scratch.map(stamps), revived)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """Where a part is built: what it reads, what it writes, how much it may hold."""

    task: BuildTask
    part: int
    reader: BlockReader
    image: ImageWriter
    scratch: ArrayFiles
    tables: StatStore
    progress: ProgressReporter
    steps: PartSteps
    units: PartUnitCache

    def unit_input(self, *components: object) -> InputDigest:
        """The beginning of a unit's digest: which part of what space it is in."""
        return InputDigest(
            self.part, self.task.schema.parts, self.task.schema.placement, *components
        )

    def node_input(
        self, node_type: int, refs: Sequence[BlockRef], *components: object
    ) -> InputDigest:
        """As `unit_input`, of blocks of nodes of this part: what was deleted of other parts does
        not matter to them.
        """
        return (
            self.unit_input(*components)
            .add_blocks(refs)
            .add_deletes(self._own_deletes(node_type), refs)
        )

    def _own_deletes(self, node_type: int) -> Iterator[tuple[I64, I64]]:
        """Deletes of nodes of this part, piece by piece."""
        deleted, schema = self.reader.tombstones(node_type), self.task.schema
        for low in range(0, deleted.ids.size, _CHUNK):
            ids, stamps = deleted.ids[low : low + _CHUNK], deleted.stamps[low : low + _CHUNK]
            is_local = part_of(ids, schema.parts, schema.placement) == self.part
            yield ids[is_local], stamps[is_local]

    @property
    def spool_folder(self) -> Path:
        """A folder for spool files."""
        return self.scratch.folder
