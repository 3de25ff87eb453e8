"""The stat database: tables as blocks of rows, each with a row count and a crc.

A value is ``rows u32 | crc32 u32``, followed by the columns, each padded to 8 bytes. Kinds and
columns:

    B1                          row u32, id i64, probability f64, alias u32, alias id i64,
        weight f32   (alias: a position in the table)
    B1 in progress (scratch)    row u32, id i64, weight f32
    B2, B3 (scratch)            position u32, id i64, p f64
    LIGHT, HEAVY (scratch)      position u32, probability f64, alias u32, alias id i64

In addition to the tables, it stores the completed steps of a build, in a family with a log. A step
is stored only after its output is durable.
"""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_io.durable_files import make_folder, sync_folder
from asterism_proto.errors import Corrupt, NotFound
from storaged.store import keys
from storaged.store.engine import BulkWriter, ColumnFamily, Engine, RocksEngine
from storaged.store.keys import SCRATCH, STEPS, TABLES

Columns = tuple[NDArray[Any], ...]

_UNKNOWN_BYTES = 1 << 62
FAMILIES = (
    ColumnFamily(name=TABLES, cached=False),
    ColumnFamily(name=SCRATCH, cached=False),
    ColumnFamily(name=STEPS, cached=False),
)

FINAL_DTYPES = tuple(
    np.dtype(name) for name in ("uint32", "int64", "float64", "uint32", "int64", "float32")
)
SCANNED_DTYPES = tuple(np.dtype(name) for name in ("uint32", "int64", "float32"))
CLASSIFIED_DTYPES = tuple(np.dtype(name) for name in ("uint32", "int64", "float64"))
SWEPT_DTYPES = tuple(np.dtype(name) for name in ("uint32", "float64", "uint32", "int64"))

FINAL_ROWS = 16384
SCRATCH_ROWS = 32768
"""Rows of a block, for values of half a mebibyte to three quarters."""

STAT_FOLDER, RUNS_FOLDER = "stat", "runs"
"""Folders of a build: the database, and its final tables as sorted runs."""

_HEAD = struct.Struct("<II")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableExtent:
    """The rows of a table that are written so far."""

    part: int
    kind: int
    type_id: int
    weight_name: str
    final: bool
    """True for a final table, False for scratch."""
    blocks: int = 0
    rows: int = 0

    @property
    def prefix(self) -> bytes:
        """Common prefix of the table's keys."""
        return keys.table_prefix(self.part, self.kind, self.type_id, self.weight_name)

    @property
    def family(self) -> str:
        """Family of the table."""
        return TABLES if self.final else SCRATCH

    def run_path(self, output: Path) -> Path:
        """Return the path of a final table's sorted run; tables without rows have no run."""
        element = "e" if self.kind & keys.EDGE_TABLE else "n"
        return (
            output
            / RUNS_FOLDER
            / f"p{self.part:05d}"
            / f"{element}{self.type_id}.{self.weight_name}.sst"
        )


class AliasTableWriter:
    """Appends rows to a table, in blocks of a fixed number of rows."""

    def __init__(self, store: AliasTableStore, extent: TableExtent) -> None:
        self._store, self._extent = store, extent
        self._writer = store.bulk_writer(extent)
        self._prefix, self._dtypes = extent.prefix, _dtypes(extent.kind, final=extent.final)
        self._block_rows = FINAL_ROWS if extent.final else SCRATCH_ROWS
        self._pending: list[Columns] = []
        self._pending_rows = 0
        self._block = extent.blocks
        self.rows = extent.rows

    def append(self, *columns: NDArray[Any]) -> None:
        """Append rows, given column by column."""
        self._pending.append(columns)
        self._pending_rows += len(columns[0])
        self.rows += len(columns[0])
        if self._pending_rows >= self._block_rows:
            joined = self._joined()
            full_rows = self._pending_rows // self._block_rows * self._block_rows
            for low in range(0, full_rows, self._block_rows):
                self._put(tuple(column[low : low + self._block_rows] for column in joined))
            self._pending = [tuple(column[full_rows:].copy() for column in joined)]
            self._pending_rows -= full_rows

    def flush(self) -> TableExtent:
        """Write the buffered rows, possibly as a short block; return the extent of the table.

        More rows may follow.
        """
        if self._pending_rows:
            self._put(self._joined())
            self._pending, self._pending_rows = [], 0
        self._writer.finish()
        self._writer = self._store.bulk_writer(self._extent)
        return replace(self._extent, blocks=self._block, rows=self.rows)

    def finish(self) -> int:
        """Write the last block; return the number of rows."""
        self._store.finished_tables.append(self.flush())
        return self.rows

    def _joined(self) -> Columns:
        if len(self._pending) == 1:
            return self._pending[0]
        return tuple(
            np.concatenate([piece[i] for piece in self._pending]) for i in range(len(self._dtypes))
        )

    def _put(self, columns: Columns) -> None:
        # The checksum is computed piece by piece and the columns are joined once: tables are
        # written several times, and copies add up.
        pieces: list[Any] = []
        crc = 0
        for column, dtype in zip(columns, self._dtypes, strict=True):
            for piece in (
                np.ascontiguousarray(column, dtype).data.cast("B"),
                bytes(-column.shape[0] * dtype.itemsize % 8),
            ):
                crc = zlib.crc32(piece, crc)
                pieces.append(piece)
        self._writer.put(
            keys.table_key(self._prefix, self._block),
            b"".join((_HEAD.pack(len(columns[0]), crc), *pieces)),
        )
        self._block += 1
        self._store.blocks_written += 1
        if not self._extent.final:
            self._store.scratch_bytes += sum(len(piece) for piece in pieces)


class AliasTableStore:
    """The stat database of a build.

    Parameters
    ----------
    engine : Engine
    output : Path
        Folder of the build. Final tables are also kept there as sorted runs, which other builds
        share.
    """

    def __init__(self, engine: Engine, output: Path) -> None:
        self.engine, self._output = engine, output
        self.finished_tables: list[TableExtent] = []
        """Tables that were finished since the list was last emptied."""
        self.blocks_written = 0
        self.scratch_bytes = _UNKNOWN_BYTES
        """Bytes of scratch tables written since they were last dropped.

        Unknown, and therefore large, for tables left by an earlier attempt.
        """

    @classmethod
    def open(
        cls, output: Path, memory_bytes: int = 0, *, read_only: bool = False
    ) -> AliasTableStore:
        """Open the database of the build in a folder.

        It is created if missing. With ``read_only``, it must exist and does not change.

        Raises
        ------
        NotFound
            ``read_only``, and there is no database.
        """
        if read_only and not (output / STAT_FOLDER).exists():
            raise NotFound(
                f"stat database {output / STAT_FOLDER}: no such folder; build the version again"
            )
        return cls(
            RocksEngine(
                output / STAT_FOLDER, FAMILIES, memory_bytes=memory_bytes, read_only=read_only
            ),
            output,
        )

    def bulk_writer(self, extent: TableExtent) -> BulkWriter:
        """Return a writer of a sorted run; that of a final table is the whole table and is kept."""
        return self.engine.bulk_writer(
            extent.family, extent.run_path(self._output) if extent.final else None
        )

    def link(self, table: TableExtent, source: Path) -> None:
        """Share a final table of the build in ``source``.

        Raises
        ------
        OSError, Unavailable, Corrupt
            The table cannot be shared.
        """
        source_run, run = table.run_path(source), table.run_path(self._output)
        is_present = (
            next(self.engine.scan(TABLES, table.prefix, keys.prefix_end(table.prefix)), None)
            is not None
        )
        if is_present and run.exists() and run.samefile(source_run):
            return  # Linked by an earlier attempt.
        make_folder(run.parent)
        run.unlink(missing_ok=True)
        os.link(source_run, run)
        self.engine.ingest_file(TABLES, run)

    def forget_table(self, table: TableExtent) -> None:
        """Delete a final table."""
        self.engine.delete_range(
            TABLES, table.prefix, keys.prefix_end(table.prefix) or b"\xff" * 32
        )
        table.run_path(self._output).unlink(missing_ok=True)

    def run_bytes(self, table: TableExtent) -> int:
        """Return the size of a final table's run in bytes; 0 for a table without rows."""
        run = table.run_path(self._output)
        return run.stat().st_size if run.exists() else 0

    def writer(
        self,
        part: int,
        kind: int,
        type_id: int,
        weight_name: str,
        *,
        final: bool = False,
        resume: TableExtent | None = None,
    ) -> AliasTableWriter:
        """Return a writer of a table; ``final`` tables stay, others go with `forget_scratch`.

        With ``resume``, it appends to the rows written so far and deletes any rows that an earlier
        attempt wrote after them.
        """
        extent = resume or TableExtent(
            part=part, kind=kind, type_id=type_id, weight_name=weight_name, final=final
        )
        start, stop = (
            keys.table_key(extent.prefix, extent.blocks),
            keys.prefix_end(extent.prefix) or b"\xff" * 32,
        )
        if next(self.engine.scan(extent.family, start, stop), None) is not None:
            self.engine.delete_range(extent.family, start, stop)
        return AliasTableWriter(self, extent)

    def blocks(
        self,
        part: int,
        kind: int,
        type_id: int,
        weight_name: str,
        rows: int,
        *,
        final: bool = False,
        skip: int = 0,
    ) -> Iterator[Columns]:
        """Yield the blocks of a table in row order, without the first ``skip`` blocks.

        The skipped blocks must be full.

        Raises
        ------
        Corrupt
            The table does not have ``rows`` rows, or a block is altered.
        """
        extent = TableExtent(
            part=part, kind=kind, type_id=type_id, weight_name=weight_name, final=final
        )
        seen = min(skip * (FINAL_ROWS if final else SCRATCH_ROWS), rows)
        for _, columns in self._blocks(extent, skip):
            seen += len(columns[0])
            yield columns
        if seen != rows:
            raise Corrupt(
                f"table of part {part}, type {type_id}, kind {kind}: expected {rows} rows, found "
                f"{seen}; run the build again"
            )

    def _blocks(self, extent: TableExtent, skip: int = 0) -> Iterator[tuple[int, Columns]]:
        """Yield (number, columns) of the blocks from number ``skip`` on."""
        dtypes = _dtypes(extent.kind, final=extent.final)
        for raw, value in self.engine.scan(
            extent.family, keys.table_key(extent.prefix, skip), keys.prefix_end(extent.prefix)
        ):
            if len(raw) != len(extent.prefix) + 4:
                # A longer weight name with this prefix has another length byte, so this never
                # happens; the check is cheap.
                continue
            yield int.from_bytes(raw[-4:], "big"), _unpack_block(value, dtypes, raw)

    def is_intact(self, extent: TableExtent) -> bool:
        """Return whether the blocks of a table are unaltered; later blocks are ignored."""
        blocks = rows = 0
        try:
            for number, columns in self._blocks(extent):
                if number >= extent.blocks:
                    break
                if number != blocks:
                    return False
                blocks, rows = blocks + 1, rows + len(columns[0])
        except Corrupt:
            return False
        return (blocks, rows) == (extent.blocks, extent.rows)

    def steps(self, part: int) -> dict[str, bytes]:
        """Return the completed steps of a partition with their content, by name."""
        prefix = keys.part_prefix(part)
        return {
            raw[len(prefix) :].decode(): bytes(value)
            for raw, value in self.engine.scan(STEPS, prefix, keys.prefix_end(prefix))
        }

    def put_steps(self, part: int, steps: Mapping[str, bytes]) -> None:
        """Store completed steps of a partition durably, after all tables written before."""
        self.engine.flush()
        self.engine.write(
            [(STEPS, keys.step_key(part, name), content) for name, content in steps.items()]
        )

    def forget_steps(self, part: int, names: Iterable[str]) -> None:
        """Delete steps of a partition."""
        if puts := [(STEPS, keys.step_key(part, name), None) for name in names]:
            self.engine.write(puts)

    def forget_scratch(self, over_bytes: int = 0) -> None:
        """Drop the scratch tables if they have more than ``over_bytes`` bytes.

        Dropping a column family syncs several files, which takes longer than building a table of a
        few rows.
        """
        if self.scratch_bytes > over_bytes:
            self.engine.drop(SCRATCH)
            self.scratch_bytes = 0

    def forget_part(self, part: int) -> None:
        """Delete the tables and steps of a partition that is built again."""
        prefix = keys.part_prefix(part)
        # Ingesting a run into a deleted range would copy it, so delete only if there is something
        # to delete.
        if next(self.engine.scan(TABLES, prefix, keys.prefix_end(prefix)), None) is not None:
            self.engine.delete_range(TABLES, prefix, keys.prefix_end(prefix) or b"\xff" * 32)
        shutil.rmtree(self._output / RUNS_FOLDER / f"p{part:05d}", ignore_errors=True)
        self.forget_steps(part, self.steps(part))

    def flush(self) -> None:
        """Write all tables to disk, and the names of the runs."""
        self.engine.flush()
        for folder in (self._output / RUNS_FOLDER).glob("*"):
            sync_folder(folder)

    def close(self) -> None:
        """Close the database; its folder may be opened again."""
        self.engine.close()


def _dtypes(kind: int, *, final: bool) -> tuple[np.dtype[Any], ...]:
    plain = kind & ~keys.EDGE_TABLE
    if plain == keys.B1:
        return FINAL_DTYPES if final else SCANNED_DTYPES
    return CLASSIFIED_DTYPES if plain in (keys.B2, keys.B3) else SWEPT_DTYPES


def _unpack_block(value: bytes, dtypes: Sequence[np.dtype[Any]], raw: bytes) -> Columns:
    """Return the columns of a value, as read-only views of it."""
    rows, crc = _HEAD.unpack_from(value)
    body = memoryview(value)[_HEAD.size :]
    if zlib.crc32(body) != crc:
        raise Corrupt(
            f"table block {raw.hex()}: its value does not match its checksum; run the build again"
        )
    columns = []
    at = 0
    for dtype in dtypes:
        columns.append(np.frombuffer(body, dtype, rows, at))
        at += rows * dtype.itemsize + (-rows * dtype.itemsize) % 8
    return tuple(columns)
