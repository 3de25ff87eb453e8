"""Input of a build: the blocks of one partition in write order, without deleted nodes.

A record is skipped if a later tombstone deletes its node.
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
from storaged.build.build_steps import PartSteps
from storaged.build.build_task import BuildTask
from storaged.build.external_partitioning import Records, split_into_buckets
from storaged.build.progress import ProgressReporter
from storaged.build.unit_cache import InputDigest, PartUnitCache
from storaged.store.alias_table_store import AliasTableStore
from storaged.store.block_store import NODE_DELETES, NODE_REVIVALS, NODE_TIMES, BlockRef, BlockStore
from storaged.store.image_writer import ArrayFiles, ImageWriter

I64 = NDArray[np.int64]
Sections = dict[str, NDArray[Any]]

_CHUNK = 1 << 18
COLUMN_PREFIX = "w:"
"""Prefix of the sections of columns that are stored next to the adjacency: ``w:NAME``."""
_TOMBSTONE_BYTES = 80
"""Bytes per record of a bucket of deletes or times: record, order, copy and output."""


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Last delete of every deleted node of a type."""

    ids: I64
    """Node ids, ascending, int64[n]."""
    stamps: I64
    """Stamp of the last delete of each node, int64[n]."""
    revived: NDArray[np.bool_]
    """Flags of the nodes that were written again since, bool[n]."""

    def deleted_after(self, ids: I64, stamp: int) -> NDArray[np.bool_] | None:
        """Return a mask of the ids that were deleted after ``stamp``, or None if none was."""
        if self.ids.size == 0 or ids.size == 0:
            return None
        positions = self._find(ids)
        deleted: NDArray[np.bool_] = (self.ids[positions] == ids) & (self.stamps[positions] > stamp)
        return deleted if deleted.any() else None

    def deleted_at_cut(self, ids: I64) -> NDArray[np.bool_] | None:
        """Return a mask of the ids that are deleted at the commit watermark, or None if none is.

        The result is the same in all partitions, wherever the nodes have their rows.
        """
        if self.ids.size == 0 or ids.size == 0:
            return None
        positions = self._find(ids)
        deleted: NDArray[np.bool_] = (self.ids[positions] == ids) & ~self.revived[positions]
        return deleted if deleted.any() else None

    def revive(self, ids: I64, stamp: int) -> None:
        """Note that these ids were written again at ``stamp``."""
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
    """Times of all nodes of a type, in all partitions."""

    ids: I64
    """Ids of the nodes with a time, ascending, int64[n]."""
    keys: I64
    """Time keys of `asterism_graphkit.arrays.time_keys.encode_times`, int64[n]."""

    def lookup(self, ids: I64) -> I64:
        """Return the time of each node, int64[m]; 0 if none was written, as for features."""
        if self.ids.size == 0:
            return np.zeros(ids.size, np.int64)
        positions = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        return np.where(self.ids[positions] == ids, self.keys[positions], 0)


class BlockReader:
    """Reader of the blocks of one partition at the commit watermark.

    Parameters
    ----------
    store : BlockStore
    task : BuildTask
    part : int
    progress : ProgressReporter
    scratch : ArrayFiles
        Holds tombstones and times of nodes in mapped files, since there may be as many as nodes.
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
        """Return the values of these kinds, in write order."""
        return self._store.refs(self._part, kinds, type_id, self._task.loads)

    def read(self, refs: Sequence[BlockRef]) -> Iterator[tuple[BlockRef, Sections]]:
        """Yield the sections of each value, one value at a time."""
        for ref in refs:
            yield ref, self._store.read(ref)
            self._progress.step(ref.rows)

    def tombstone_refs(self, node_type: int) -> list[BlockRef]:
        """Return the values that `tombstones` reads."""
        return self.refs(node_type, NODE_DELETES, NODE_REVIVALS)

    def tombstones(self, node_type: int) -> Tombstones:
        """Return the deletes of a node type, and which of them were revoked by later writes.

        Every partition receives both.
        """
        if node_type not in self._tombstones:
            tombstones = self._tombstones[node_type] = self._read_tombstones(node_type)
            for ref, sections in self.read(self.refs(node_type, NODE_REVIVALS)):
                tombstones.revive(sections["ids"], ref.stamp)
        return self._tombstones[node_type]

    def time_refs(self, node_type: int) -> list[BlockRef]:
        """Return the values that `times` reads in addition to tombstones."""
        return self.refs(node_type, NODE_TIMES)

    def times(self, node_type: int) -> NodeTimes:
        """Return the times of the nodes of a type that has a time column.

        Every partition receives them. They are resolved like a feature column: later writes replace
        earlier ones, and writes before a node's last delete are dropped.
        """
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
                )  # not counted as progress: nodes count where they have rows
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
            order = np.argsort(bucket_ids, kind="stable")  # stable: the last write of an id counts
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
            )  # stable: the last delete of an id is last
            bucket_ids, bucket_stamps = bucket_ids[order], bucket_stamps[order]
            is_last = np.append(bucket_ids[1:] != bucket_ids[:-1], True)[: bucket_ids.size]
            out_ids.append(bucket_ids[is_last])
            out_stamps.append(bucket_stamps[is_last])
        revived = scratch.create(f"deleted{node_type}.back", np.bool_, (out_ids.rows,))
        return Tombstones(scratch.map(ids), scratch.map(stamps), revived)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """Inputs, outputs and limits of the build of one partition."""

    task: BuildTask
    part: int
    reader: BlockReader
    image: ImageWriter
    scratch: ArrayFiles
    tables: AliasTableStore
    progress: ProgressReporter
    steps: PartSteps
    units: PartUnitCache

    def unit_input(self, *components: object) -> InputDigest:
        """Start the digest of a unit with the partition and the graph space's placement."""
        return InputDigest(
            self.part, self.task.schema.parts, self.task.schema.placement, *components
        )

    def node_input(
        self, node_type: int, refs: Sequence[BlockRef], *components: object
    ) -> InputDigest:
        """Start the digest of a unit made of blocks of nodes of this partition.

        Deletes of nodes of other partitions do not affect it.
        """
        return (
            self.unit_input(*components)
            .add_blocks(refs)
            .add_deletes(self._own_deletes(node_type), refs)
        )

    def _own_deletes(self, node_type: int) -> Iterator[tuple[I64, I64]]:
        """Yield the deletes of nodes of this partition in chunks."""
        deleted, schema = self.reader.tombstones(node_type), self.task.schema
        for low in range(0, deleted.ids.size, _CHUNK):
            ids, stamps = deleted.ids[low : low + _CHUNK], deleted.stamps[low : low + _CHUNK]
            is_local = part_of(ids, schema.parts, schema.placement) == self.part
            yield ids[is_local], stamps[is_local]

    @property
    def spool_folder(self) -> Path:
        """Folder for spool files."""
        return self.scratch.folder
