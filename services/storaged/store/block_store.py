"""The graph database: loaded blocks, stored durably; read by builds and tasks only.

A block is the rows of one kind and type that one chunk has for one partition. Writing a block again
replaces it. It is stored as values of up to 1 MiB: ids and weights under the block's own kind,
features with a copy of the ids under the kind's ``COLUMNS`` twin. A small record of each value
(rows, size, crc, range of its ids) is stored in a separate family. Builds are planned from the
records, and a missing or altered value cannot go unnoticed.
"""

from __future__ import annotations

import shutil
import struct
import threading
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random.partition_choice import part_of
from asterism_io.durable_files import sync_folder
from asterism_model import block_validation, load_fingerprints
from asterism_model.load_fingerprints import (
    FingerprintAccumulator,
    LoadFingerprint,
    PartFingerprint,
)
from asterism_model.schema import Schema
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound
from asterism_proto.framing import Frame, decode, encode
from asterism_proto.v1.common_pb2 import Empty
from asterism_proto.v1.storaged_pb2 import BlockKind
from storaged.store import keys
from storaged.store.engine import ColumnFamily, Put
from storaged.store.keys import BLOCKS, COLUMNS, INDEX, BlockKey
from storaged.store.live_node_ids import LiveIds
from storaged.store.recovering_engine import EngineHandle, open_engine

Arrays = Mapping[str, NDArray[Any]]

FAMILIES = (
    ColumnFamily(name=BLOCKS, compressed=True, blobs=True, cached=False),
    ColumnFamily(name=INDEX),
)
VALUE_BYTES = 768 << 10
"""Target size of a value in bytes. With its head and its last rows it stays below 1 MiB."""

NODES, OUT_EDGES, IN_EDGES = int(BlockKind.NODES), int(BlockKind.OUT_EDGES), int(BlockKind.IN_EDGES)
EDGE_FEATURES, NODE_DELETES = int(BlockKind.EDGE_FEATURES), int(BlockKind.NODE_DELETES)
OUT_EDGE_DELETES, IN_EDGE_DELETES = int(BlockKind.OUT_EDGE_DELETES), int(BlockKind.IN_EDGE_DELETES)
NODE_REVIVALS, NODE_TIMES = int(BlockKind.NODE_REVIVALS), int(BlockKind.NODE_TIMES)

ID_SECTION = {
    NODES: "ids",
    NODE_DELETES: "ids",
    NODE_REVIVALS: "ids",
    NODE_TIMES: "ids",
    OUT_EDGES: "src",
    OUT_EDGE_DELETES: "src",
    IN_EDGES: "dst",
    IN_EDGE_DELETES: "dst",
    EDGE_FEATURES: "eid",
}
"""Section with the row ids, by block kind."""

StoredValue = tuple[BlockKey, bytes, bytes]
"""A stored value: its key, its record, and the value."""

_IMPORT_BYTES = 8 << 20
"""Bytes of imported values per write."""
_REMEDY = "restore this storaged from a replica or a backup, or load the data again"
_HEAD = struct.Struct("<II")
_RECORD = struct.Struct("<IIIxxxxqq")
RECORD_BYTES = _RECORD.size


class InvalidContent(Corrupt):
    """A value that is unaltered but has content that no write accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The rows of one kind and type that one chunk has for one partition."""

    load_id: int
    chunk: int
    kind: int
    """A `BlockKind`."""
    type_id: int
    part: int
    arrays: Arrays
    """Sections as listed at `BlockKind`."""


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A stored value that a build will read."""

    key: BlockKey
    rank: int
    """Position of its load in commit order."""
    rows: int
    size: int
    crc: int
    lowest: int
    """Smallest of its ids; -1 without rows."""
    highest: int

    @property
    def stamp(self) -> int:
        """Order of the write: a larger stamp is later."""
        return self.rank << 32 | self.key.chunk


class BlockStore:
    """The blocks of one space's partitions on this host. Thread-safe."""

    def __init__(self, engine: EngineHandle, schema: Schema, *, spill: Path | None = None) -> None:
        self._engine, self._schema = engine, schema
        self._lock, self._revivals_lock = threading.Lock(), threading.Lock()
        self.highest_load = 0
        """Highest load written since the store was opened; 0 for none."""
        self._dropped_loads: set[int] = set()
        """Loads that were dropped."""
        self._kinds = set(self._known_kinds())
        self._live_ids = LiveIds(self._read_node_block, NODES, spill)
        for part, kind, type_id in self._kinds:
            if kind in (NODES, NODE_DELETES):
                prefix = keys.type_prefix(part, kind, type_id)
                self._live_ids.add_blocks(
                    keys.parse_block_key(raw)
                    for raw, _ in engine.scan(INDEX, prefix, keys.prefix_end(prefix))
                )

    @classmethod
    def open(
        cls, path: Path, schema: Schema, *, read_only: bool = False, memory_bytes: int = 0
    ) -> BlockStore:
        """Open the store in a folder.

        Parameters
        ----------
        path : Path
            Folder of the database; created if missing.
        schema : Schema
        read_only : bool
            Open a checkpoint, which must exist, without changing it. Default False.
        memory_bytes : int
            Memory limit of RocksDB in bytes. Default 0: the limits of a daemon.

        Raises
        ------
        NotFound
            The checkpoint does not exist.
        """
        if read_only and not path.exists():
            raise NotFound(
                f"checkpoint {path}: no such folder; the build needs the checkpoint of its job"
            )
        engine = open_engine(path, FAMILIES, read_only=read_only, memory_bytes=memory_bytes)
        return cls(
            engine, schema, spill=None if read_only else path.with_name(path.name + "-members")
        )

    def write(self, blocks: Sequence[Block]) -> int:
        """Store blocks, all or none, durable on return; return the bytes stored.

        A block that was written before is replaced. Revivals (NODE_REVIVALS) are merged with those
        stored instead: they grow with the deletes that the writer knows, and of two writers the one
        that knows fewer may be the last.

        Raises
        ------
        Conflict
            A block belongs to a load that was dropped.
        """
        dropped = self._dropped_loads.intersection(block.load_id for block in blocks)
        if dropped:
            raise Conflict(
                f"load {min(dropped)} was abandoned, and its writes were removed; begin another "
                "load"
            )
        if any(block.kind == NODE_REVIVALS for block in blocks):
            with self._revivals_lock:
                return self._write(
                    [
                        self._merge_revivals(block) if block.kind == NODE_REVIVALS else block
                        for block in blocks
                    ]
                )
        return self._write(blocks)

    def _merge_revivals(self, block: Block) -> Block:
        """Return a block of revivals, merged with the stored ones of the same chunk."""
        refs = [
            ref
            for ref in self.refs(block.part, (NODE_REVIVALS,), block.type_id, (block.load_id,))
            if ref.key.chunk == block.chunk
        ]
        return replace(
            block,
            arrays={
                "ids": np.unique(
                    np.concatenate([block.arrays["ids"], *(self.read(ref)["ids"] for ref in refs)])
                )
            },
        )

    def _write(self, blocks: Sequence[Block]) -> int:
        puts: list[Put] = []
        written: list[BlockKey] = []
        for block in blocks:
            values = dict(_encode_values(block))
            puts += self._delete_replaced(block, values)
            for key, (record, value) in values.items():
                raw = keys.block_key(key)
                puts += [(BLOCKS, raw, value), (INDEX, raw, record)]
                written.append(key)
        if not puts:
            return 0
        self._engine.write(puts)
        with self._lock:
            self._kinds.update((key.part, key.kind, key.type_id) for key in written)
            self.highest_load = max(self.highest_load, *(block.load_id for block in blocks))
            self._live_ids.add_blocks(key for key in written if key.kind in (NODES, NODE_DELETES))
        return sum(len(value) for _, _, value in puts if value is not None)

    def exists(
        self, type_id: int, ids: NDArray[np.int64], load_id: int, loads: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Return which ids are alive after some loads.

        Parameters
        ----------
        type_id : int
            Node type.
        ids : ndarray of int64, shape (n,)
        load_id : int
            Open load; the blocks it has written so far apply after ``loads``.
        loads : sequence of int
            Committed loads, in commit order.

        Returns
        -------
        ndarray of uint8, shape (n,)
            1 for an id that is alive, else 0.
        """
        with self._lock:
            return self._live_ids.live_mask(
                type_id, np.ascontiguousarray(ids, np.int64), load_id, loads
            )

    def revivals(self, load_id: int, loads: Sequence[int]) -> list[tuple[int, int]]:
        """Return (type, chunk) of each block of a load that revives deleted nodes.

        The nodes are deleted by ``loads`` or by the load itself.
        """
        with self._lock:
            return self._live_ids.revivals(load_id, loads)

    def revived_ids(
        self, type_id: int, chunk: int, load_id: int, loads: Sequence[int]
    ) -> NDArray[np.int64]:
        """Return the revived nodes of one type and chunk, ascending; int64, shape (n,)."""
        with self._lock:
            return self._live_ids.revived_ids(type_id, chunk, load_id, loads)

    def deletes_nodes(self, load_id: int) -> bool:
        """Return whether a load deletes nodes."""
        with self._lock:
            return self._live_ids.deletes_nodes(load_id)

    def refs(
        self, part: int, kinds: Iterable[int], type_id: int, loads: Sequence[int]
    ) -> list[BlockRef]:
        """Return the values of these kinds that ``loads`` wrote, in write order."""
        ranks = {load: rank for rank, load in enumerate(loads)}
        refs: list[BlockRef] = []
        for kind in kinds:
            prefix = keys.type_prefix(part, kind, type_id)
            for raw, record in self._engine.scan(INDEX, prefix, keys.prefix_end(prefix)):
                key = keys.parse_block_key(raw)
                if key.load_id in ranks:
                    refs.append(BlockRef(key, ranks[key.load_id], *unpack_record(key, record)))
        return sorted(refs, key=lambda ref: (ref.rank, ref.key.chunk, ref.key.kind, ref.key.sub))

    def read(self, ref: BlockRef) -> dict[str, NDArray[Any]]:
        """Return the sections of one value, as writable arrays.

        Raises
        ------
        Corrupt
            The value is missing or altered, or has content that no write accepts.
        """
        sections = _decoded(ref.key, self._value(ref.key), ref.rows, ref.size, ref.crc)
        check_value(self._schema, ref.key, ref.rows, sections)
        return sections

    def rows_and_bytes(self, part: int, loads: Container[int]) -> tuple[int, int]:
        """Return (rows, bytes) of the values of a partition that these loads wrote."""
        extents = [_RECORD.unpack(record)[:2] for _, record in self._records(part, loads)]
        return sum(rows for rows, _ in extents), sum(size for _, size in extents)

    def fingerprints(
        self, load_id: int, extents: Iterable[tuple[int, int, int]] | None = None
    ) -> dict[int, PartFingerprint]:
        """Return the fingerprints of the blocks that a load has written so far, by partition.

        Parameters
        ----------
        load_id : int
        extents : iterable of (int, int, int), optional
            (partition, kind, type) of the load's blocks, if known. By default, all blocks are
            searched.
        """
        with self._lock:
            searched = sorted(self._kinds if extents is None else self._kinds.intersection(extents))
        accumulators: dict[int, FingerprintAccumulator] = {}
        for part, kind, type_id in searched:
            prefix = keys.load_prefix(part, kind, type_id, load_id)
            for raw, record in self._engine.scan(INDEX, prefix, keys.prefix_end(prefix)):
                rows, size = unpack_record(keys.parse_block_key(raw), record)[:2]
                accumulators.setdefault(part, FingerprintAccumulator()).add(
                    keys.strip_load(raw), record, rows, size
                )
        return {part: accumulator.fingerprint(part) for part, accumulator in accumulators.items()}

    def verify(self, part: int, expected: Sequence[LoadFingerprint]) -> int:
        """Compare the records of a partition with the fingerprints of committed loads.

        Returns
        -------
        int
            Number of loads without a fingerprint.

        Raises
        ------
        FingerprintMismatch
            The message names the load, the partition and the difference.
        """
        known_loads = {load.load_id for load in expected if load.is_known}
        accumulators: dict[int, FingerprintAccumulator] = {}
        prefix = keys.part_prefix(part)
        for raw, record in self._engine.scan(INDEX, prefix, keys.prefix_end(prefix)):
            key = keys.parse_block_key(raw)
            if key.load_id in known_loads:
                if len(record) != RECORD_BYTES:
                    raise Corrupt(
                        f"{key}: its record has {len(record)} bytes; expected "
                        f"{RECORD_BYTES}; {_REMEDY}"
                    )
                rows, size, _, _, _ = _RECORD.unpack(record)
                accumulators.setdefault(key.load_id, FingerprintAccumulator()).add(
                    keys.strip_load(raw), record, rows, size
                )
        return load_fingerprints.check_fingerprints(
            part,
            {
                load_id: accumulator.fingerprint(part)
                for load_id, accumulator in accumulators.items()
            },
            expected,
        )

    def value_rows(self, stored: StoredValue) -> int:
        """Return the number of rows of a value."""
        return int(_RECORD.unpack(stored[1])[0])

    def stored_values(self, part: int, loads: Container[int]) -> Iterator[StoredValue]:
        """Yield every value of a partition that these loads wrote, by key.

        Raises
        ------
        Corrupt
            A value is missing or altered.
        """
        for key, record in self._records(part, loads):
            yield verified_value(key, record, self._value(key))

    def _value(self, key: BlockKey, family: str = BLOCKS) -> bytes:
        try:
            value = self._engine.get(family, keys.block_key(key))
        except Corrupt as error:  # RocksDB does not name the damaged value of a blob file.
            raise Corrupt(f"{key}: {error.message}") from error
        if value is None:
            raise Corrupt(f"{key}: recorded, but its value is missing; {_REMEDY}")
        return value

    def import_values(self, values: Iterable[StoredValue]) -> None:
        """Store `verified_value` values of another store, durable on return.

        Importing a value again replaces it by the same bytes.

        Raises
        ------
        Corrupt
            A value has content that no write accepts, or disagrees with its record.
        """
        batch, size = list[StoredValue](), 0
        for key, record, value in values:
            self._check_imported(key, record, value)
            batch.append((key, record, value))
            size += len(value)
            if size >= _IMPORT_BYTES:
                self._write_batch(batch)
                batch, size = [], 0
        self._write_batch(batch)

    def _check_imported(self, key: BlockKey, record: bytes, value: bytes) -> None:
        rows, _, _, lowest, highest = unpack_record(key, record)
        try:
            sections = decode(memoryview(value)[_HEAD.size :], Empty, envelope=False).arrays
        except InvalidRequest as error:
            raise Corrupt(
                f"{key}: its value is not a frame ({error.message}); {_REMEDY}"
            ) from error
        check_value(self._schema, key, rows, sections)
        ids = sections[ID_SECTION[key.kind & ~COLUMNS]]
        id_range = (int(ids.min()), int(ids.max())) if rows else (-1, -1)
        if id_range != (lowest, highest):
            raise InvalidContent(
                f"{key}: it has ids from {id_range[0]} to {id_range[1]}: expected {lowest} to "
                f"{highest}, as in its record"
            )

    def _write_batch(self, batch: Sequence[StoredValue]) -> None:
        if not batch:
            return
        puts: list[Put] = []
        for key, record, value in batch:
            raw = keys.block_key(key)
            puts += [(BLOCKS, raw, value), (INDEX, raw, record)]
        self._engine.write(puts)
        with self._lock:
            self._kinds.update((key.part, key.kind, key.type_id) for key, _, _ in batch)
            self._live_ids.add_blocks(
                key for key, _, _ in batch if key.kind in (NODES, NODE_DELETES)
            )

    def _records(self, part: int, loads: Container[int]) -> Iterator[tuple[BlockKey, bytes]]:
        prefix = keys.part_prefix(part)
        for raw, record in self._engine.scan(INDEX, prefix, keys.prefix_end(prefix)):
            key = keys.parse_block_key(raw)
            if key.load_id in loads:
                yield key, record

    def checkpoint(self, path: Path) -> None:
        """Create a checkpoint for a build, made of hard links.

        An existing checkpoint stays: it belongs to the same job and has the same input.
        """
        if path.exists():
            return
        temporary = path.with_name(path.name + ".making")
        shutil.rmtree(temporary, ignore_errors=True)
        self._engine.checkpoint(temporary)
        temporary.rename(path)
        sync_folder(path.parent)

    def loads(self) -> list[int]:
        """Return every load with a block here, ascending.

        Costs one seek per load and kind of block.
        """
        with self._lock:
            kinds = sorted(self._kinds)
        load_ids: set[int] = set()
        for part, kind, type_id in kinds:
            prefix = keys.type_prefix(part, kind, type_id)
            start, stop = prefix, keys.prefix_end(prefix)
            while (
                raw := next((raw for raw, _ in self._engine.scan(INDEX, start, stop)), None)
            ) is not None:
                load_id = keys.parse_block_key(raw).load_id
                load_ids.add(load_id)
                if load_id == keys.MAX_LOAD:
                    break
                start = keys.load_prefix(part, kind, type_id, load_id + 1)
        return sorted(load_ids)

    def drop_loads(self, load_ids: Iterable[int]) -> None:
        """Delete all blocks of these loads, free their disk space, and refuse further blocks."""
        dropped_loads = list(load_ids)
        dropped = 0
        with self._lock:
            self._dropped_loads.update(dropped_loads)
            kinds = sorted(self._kinds)
            self._live_ids.drop_loads(dropped_loads)
        for part, kind, type_id in kinds:
            for load_id in dropped_loads:
                prefix = keys.load_prefix(part, kind, type_id, load_id)
                raw_keys = [
                    raw for raw, _ in self._engine.scan(INDEX, prefix, keys.prefix_end(prefix))
                ]
                puts: list[Put] = [
                    (family, raw, None) for raw in raw_keys for family in (BLOCKS, INDEX)
                ]
                if puts:
                    self._engine.write(puts)
                dropped += len(raw_keys)
        if dropped:
            self._engine.compact(BLOCKS)
            self._engine.compact(INDEX)

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the families that `compact` accepts."""
        return tuple(family.name for family in FAMILIES)

    def size(self) -> int:
        """Return the size on disk in bytes."""
        return self._engine.size()

    def compact(self, family: str, cancelled: Callable[[], bool]) -> None:
        """Free the disk space of overwritten and deleted blocks; return early if cancelled.

        Reads and writes continue meanwhile.
        """
        self._engine.compact(family, cancelled)

    def close(self) -> None:
        """Close the database; its folder may be opened again."""
        self._engine.close()

    def _known_kinds(self) -> Iterator[tuple[int, int, int]]:
        """Yield every (partition, kind, type) that has a block, with one seek each."""
        start: bytes | None = b""
        while start is not None:
            raw = next((raw for raw, _ in self._engine.scan(INDEX, start, None)), None)
            if raw is None:
                return
            key = keys.parse_block_key(raw)
            yield key.part, key.kind, key.type_id
            start = keys.prefix_end(keys.type_prefix(key.part, key.kind, key.type_id))

    def _delete_replaced(self, block: Block, written: Mapping[BlockKey, object]) -> list[Put]:
        """Return deletes of values of an earlier write that this write does not replace."""
        puts: list[Put] = []
        for kind in (block.kind, block.kind | COLUMNS):
            prefix = keys.chunk_prefix(block.part, kind, block.type_id, block.load_id, block.chunk)
            if self._engine.get(INDEX, prefix + bytes(4)) is None:
                continue
            for raw, _ in self._engine.scan(INDEX, prefix, keys.prefix_end(prefix)):
                if keys.parse_block_key(raw) not in written:
                    puts += [(BLOCKS, raw, None), (INDEX, raw, None)]
        return puts

    def _read_node_block(self, key: BlockKey) -> tuple[NDArray[np.int64], bool]:
        """Return the ids of a node block, and whether it creates or revives the nodes."""
        rows, size, crc, _, _ = _RECORD.unpack(self._value(key, INDEX))
        ids: NDArray[np.int64] = _decoded(key, self._value(key), rows, size, crc)["ids"]
        return ids, key.kind == NODES


def _encode_values(block: Block) -> Iterator[tuple[BlockKey, tuple[bytes, bytes]]]:
    """Yield the key of each value of a block, with its record and value."""
    id_section = ID_SECTION.get(block.kind)
    if id_section is None or id_section not in block.arrays:
        raise InvalidRequest(
            f"block of kind {block.kind}: expected one of {sorted(ID_SECTION)} with its section "
            f"of ids, found {sorted(block.arrays)}"
        )
    ids = np.asarray(block.arrays[id_section], np.int64)
    plain = {name: array for name, array in block.arrays.items() if not name.startswith("f:")}
    columns = {name: array for name, array in block.arrays.items() if name.startswith("f:")}
    for kind, sections in (
        (block.kind, plain),
        (block.kind | COLUMNS, {id_section: ids, **columns} if columns else {}),
    ):
        if not sections:
            continue
        step = _rows_per_value(sections, len(ids))
        for sub, low in enumerate(range(0, max(len(ids), 1), step)):
            high = min(low + step, len(ids))
            body = encode(
                Frame(Empty(), dict(_slice_sections(sections, low, high, len(ids)))), envelope=False
            )
            crc = zlib.crc32(body)
            value_ids = ids[low:high]
            lowest, highest = (
                (int(value_ids.min()), int(value_ids.max())) if len(value_ids) else (-1, -1)
            )
            record = _RECORD.pack(high - low, len(body), crc, lowest, highest)
            yield (
                BlockKey(block.part, kind, block.type_id, block.load_id, block.chunk, sub),
                (record, _HEAD.pack(high - low, crc) + body),
            )


def _rows_per_value(sections: Arrays, rows: int) -> int:
    per_row = sum(array.nbytes for array in sections.values()) / max(rows, 1)
    return max(1, int(VALUE_BYTES / max(per_row, 1.0)))


def _slice_sections(
    sections: Arrays, low: int, high: int, rows: int
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield rows low .. high of every section; row pointers are relative to the first row."""
    for name, array in sections.items():
        if name.endswith(".indptr"):
            yield name, np.asarray(array[low : high + 1] - array[low], np.int64)
        elif (
            name.endswith(".values")
            and (indptr := sections.get(name[: -len("values")] + "indptr")) is not None
        ):
            yield name, array[int(indptr[low]) : int(indptr[high])]
        elif len(array) != rows:
            raise InvalidRequest(
                f"block: the section {name!r} has {len(array)} rows: expected {rows}, as of its ids"
            )
        else:
            yield name, array[low:high]


def unpack_record(key: BlockKey, record: bytes) -> tuple[int, int, int, int, int]:
    """Return (rows, size, crc, lowest id, highest id) of a record.

    Raises
    ------
    Corrupt
        The record is malformed, or an id is out of range.
    """
    if len(record) != RECORD_BYTES:
        raise Corrupt(
            f"{key}: its record has {len(record)} bytes; expected {RECORD_BYTES}; {_REMEDY}"
        )
    rows, size, crc, lowest, highest = _RECORD.unpack(record)
    if rows and not 0 <= lowest <= highest <= block_validation.MAX_ID:
        raise Corrupt(
            f"{key}: it has ids from {lowest} to {highest}: expected 0 to "
            f"{block_validation.MAX_ID}; {_REMEDY}"
        )
    return rows, size, crc, lowest, highest


def check_value(schema: Schema, key: BlockKey, rows: int, sections: Arrays) -> None:
    """Raise InvalidContent if a value has content that no write accepts.

    This covers ids out of range, ids of another partition, and inconsistent sections.
    """
    columns = bool(key.kind & COLUMNS)
    try:
        block_validation.check_stored(
            schema,
            key.kind & ~COLUMNS,
            key.type_id,
            sections,
            rows,
            key.part,
            part_of,
            columns=columns,
        )
    except InvalidRequest as error:
        raise InvalidContent(f"{key}: {error.message}; {_REMEDY}") from error


def verified_value(key: BlockKey, record: bytes, value: bytes) -> StoredValue:
    """Return a value after comparing it with its record; raise Corrupt if they disagree."""
    rows, size, crc, _, _ = unpack_record(key, record)
    body = memoryview(value)[_HEAD.size :]
    if (
        len(value) < _HEAD.size
        or len(body) != size
        or _HEAD.unpack_from(value) != (rows, crc)
        or zlib.crc32(body) != crc
    ):
        raise Corrupt(f"{key}: its value does not match its checksum; {_REMEDY}")
    return key, record, value


def _decoded(
    key: BlockKey, value: bytes, rows: int, size: int, crc: int
) -> dict[str, NDArray[Any]]:
    # Views of a bytearray are writable, so kernels are compiled for one array type only.
    body = bytearray(memoryview(value)[_HEAD.size :])
    if len(body) != size or _HEAD.unpack_from(value) != (rows, crc) or zlib.crc32(body) != crc:
        raise Corrupt(f"{key}: its value does not match its checksum; {_REMEDY}")
    return dict(decode(body, Empty, envelope=False).arrays)  # type: ignore[arg-type]
