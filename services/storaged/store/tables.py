"""The stat database: tables as blocks of rows, with a count and a crc of their own.

A value is ``rows u32 | crc32 u32`` and then each column in turn, padded to 8 bytes. Kinds and
columns:

    B1     row u32, id i64, probability f64, alias u32, alias id i64, weight f32   (alias: a
        position in the table)
    B1 in the making (scratch)  row u32, id i64, weight f32
    B2, B3 (scratch)            position u32, id i64, p f64
    LIGHT, HEAVY (scratch)      position u32, probability f64, alias u32, alias id i64

Beside the tables it keeps the steps of a build that are done, in a family with a log: a step is put
there after what it made is durable."""

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
from storaged.store.engine import BulkWriter, Engine, Family, RocksEngine
from storaged.store.keys import SCRATCH, STEPS, TABLES

Columns = tuple[NDArray[Any], ...]

_UNKNOWN_BYTES = 1 << 62
FAMILIES = (
    Family(name=TABLES, cached=False),
    Family(name=SCRATCH, cached=False),
    Family(name=STEPS, cached=False),
)

FINAL_DTYPES = tuple(
    np.dtype(name) for name in ("uint32", "int64", "float64", "uint32", "int64", "float32")
)
SCANNED_DTYPES = tuple(np.dtype(name) for name in ("uint32", "int64", "float32"))
CLASSIFIED_DTYPES = tuple(np.dtype(name) for name in ("uint32", "int64", "float64"))
SWEPT_DTYPES = tuple(np.dtype(name) for name in ("uint32", "float64", "uint32", "int64"))

FINAL_ROWS = 16384
SCRATCH_ROWS = 32768
"""Rows of a block: values of half a mebibyte to three quarters."""

STAT_FOLDER, RUNS_FOLDER = "stat", "runs"
"""Folders of a build: the database, and its final tables as sorted runs."""

_HEAD = struct.Struct("<II")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableExtent:
    """A table as far as it is written."""

    part: int
    kind: int
    type_id: int
    weight_name: str
    final: bool
    """Otherwise it is scratch."""
    blocks: int = 0
    rows: int = 0

    @property
    def prefix(self) -> bytes:
        """What its keys begin with."""
        return keys.table_prefix(self.part, self.kind, self.type_id, self.weight_name)

    @property
    def family(self) -> str:
        """Where it is."""
        return TABLES if self.final else SCRATCH

    def run_path(self, output: Path) -> Path:
        """Where the build in ``output`` keeps it as a sorted run, if it is final and has a row."""
        element = "e" if self.kind & keys.EDGE_TABLE else "n"
        return (
            output
            / RUNS_FOLDER
            / f"p{self.part:05d}"
            / f"{element}{self.type_id}.{self.weight_name}.sst"
        )


class TableWriter:
    """Appends columns to a table, as blocks of a fixed number of rows."""

    def __init__(self, store: StatStore, extent: TableExtent) -> None:
        self._store, self._extent = store, extent
        self._writer = store.bulk_writer(extent)
        self._prefix, self._dtypes = extent.prefix, _dtypes(extent.kind, final=extent.final)
        self._block_rows = FINAL_ROWS if extent.final else SCRATCH_ROWS
        self._pending: list[Columns] = []
        self._pending_rows = 0
        self._block = extent.blocks
        self.rows = extent.rows

    def append(self, *columns: NDArray[Any]) -> None:
        """Add rows, column by column."""
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
        """Write what is held, as a block that may be short; more may come. Gives what there is."""
        if self._pending_rows:
            self._put(self._joined())
            self._pending, self._pending_rows = [], 0
        self._writer.finish()
        self._writer = self._store.bulk_writer(self._extent)
        return replace(self._extent, blocks=self._block, rows=self.rows)

    def finish(self) -> int:
        """Write the last block; gives the number of rows."""
        self._store.finished_tables.append(self.flush())
        return self.rows

    def _joined(self) -> Columns:
        if len(self._pending) == 1:
            return self._pending[0]
        return tuple(
            np.concatenate([piece[i] for piece in self._pending]) for i in range(len(self._dtypes))
        )

    def _put(self, columns: Columns) -> None:
        # Checksummed where the columns are and joined once: a table is written several times, and
        # copies add up.
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


class StatStore:
    """A build's stat database.

    Parameters
    ----------
    engine : Engine
    output : Path
        The build's folder: its final tables are also kept there as sorted runs, which other builds
        share.
    """

    def __init__(self, engine: Engine, output: Path) -> None:
        self.engine, self._output = engine, output
        self.finished_tables: list[TableExtent] = []
        """Tables that were finished since somebody emptied this list."""
        self.blocks_written = 0
        self.scratch_bytes = _UNKNOWN_BYTES
        """Bytes of scratch tables that were written since they were last dropped; of what an
        attempt before left, unknown.
        """

    @classmethod
    def open(cls, output: Path, memory_bytes: int = 0, *, read_only: bool = False) -> StatStore:
        """The database of the build in a folder, made if it is not there; ``read_only`` for one
        that is: nothing of it changes.
        """
        if read_only and not (output / STAT_FOLDER).exists():
            raise NotFound(
                f"stat database {output / STAT_FOLDER}: there is no such folder; build the "
                "version again"
            )
        return cls(
            RocksEngine(
                output / STAT_FOLDER, FAMILIES, memory_bytes=memory_bytes, read_only=read_only
            ),
            output,
        )

    def bulk_writer(self, extent: TableExtent) -> BulkWriter:
        """A sorted run of a table; of a final one, all of it, to be kept."""
        return self.engine.bulk_writer(
            extent.family, extent.run_path(self._output) if extent.final else None
        )

    def link(self, table: TableExtent, source: Path) -> None:
        """Share a final table with the build in ``source``; OSError, Unavailable or Corrupt where
        that can not be.
        """
        source_run, run = table.run_path(source), table.run_path(self._output)
        is_present = (
            next(self.engine.scan(TABLES, table.prefix, keys.prefix_end(table.prefix)), None)
            is not None
        )
        if is_present and run.exists() and run.samefile(source_run):
            return  # as an attempt before left it
        make_folder(run.parent)
        run.unlink(missing_ok=True)
        os.link(source_run, run)
        self.engine.ingest_file(TABLES, run)

    def forget_table(self, table: TableExtent) -> None:
        """Forget a final table."""
        self.engine.delete_range(
            TABLES, table.prefix, keys.prefix_end(table.prefix) or b"\xff" * 32
        )
        table.run_path(self._output).unlink(missing_ok=True)

    def run_bytes(self, table: TableExtent) -> int:
        """Bytes of a final table's run; 0 where it has no row."""
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
    ) -> TableWriter:
        """A new table of a kind: ``final`` ones stay, others go with `forget_scratch`.

        With ``resume`` it goes on behind what is written, in place of whatever else an attempt that
        ended wrote there."""
        extent = resume or TableExtent(
            part=part, kind=kind, type_id=type_id, weight_name=weight_name, final=final
        )
        start, stop = (
            keys.table_key(extent.prefix, extent.blocks),
            keys.prefix_end(extent.prefix) or b"\xff" * 32,
        )
        if next(self.engine.scan(extent.family, start, stop), None) is not None:
            self.engine.delete_range(extent.family, start, stop)
        return TableWriter(self, extent)

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
        """The blocks of a table in row order; Corrupt where they are not ``rows`` rows, or a block
        is altered.

        With ``skip`` the first so many blocks, which are full ones, are left out.
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
                f"table of part {part}, type {type_id}, kind {kind}: {seen} rows, expected "
                f"{rows}; run the build again"
            )

    def _blocks(self, extent: TableExtent, skip: int = 0) -> Iterator[tuple[int, Columns]]:
        """Blocks from the one with the number ``skip`` on, with their numbers."""
        dtypes = _dtypes(extent.kind, final=extent.final)
        for raw, value in self.engine.scan(
            extent.family, keys.table_key(extent.prefix, skip), keys.prefix_end(extent.prefix)
        ):
            if len(raw) != len(extent.prefix) + 4:
                # a longer weight name that begins alike has another length byte: never here, but
                # cheap to say
                continue
            yield int.from_bytes(raw[-4:], "big"), _unpack_block(value, dtypes, raw)

    def is_intact(self, extent: TableExtent) -> bool:
        """Whether a table has the blocks that it was written with; what follows them does not
        count.
        """
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
        """What `put_steps` put for a part, by name."""
        prefix = keys.part_prefix(part)
        return {
            raw[len(prefix) :].decode(): bytes(value)
            for raw, value in self.engine.scan(STEPS, prefix, keys.prefix_end(prefix))
        }

    def put_steps(self, part: int, steps: Mapping[str, bytes]) -> None:
        """Remember steps of a part, durably, after every table written before is durable."""
        self.engine.flush()
        self.engine.write(
            [(STEPS, keys.step_key(part, name), content) for name, content in steps.items()]
        )

    def forget_steps(self, part: int, names: Iterable[str]) -> None:
        """Forget steps of a part."""
        if puts := [(STEPS, keys.step_key(part, name), None) for name in names]:
            self.engine.write(puts)

    def forget_scratch(self, over_bytes: int = 0) -> None:
        """Drop B2, B3 and spools, where they have more than ``over_bytes`` bytes.

        Dropping a column family syncs several files, which takes longer than building a table of a
        few rows does."""
        if self.scratch_bytes > over_bytes:
            self.engine.drop(SCRATCH)
            self.scratch_bytes = 0

    def forget_part(self, part: int) -> None:
        """Forget the tables of a part that is built anew."""
        prefix = keys.part_prefix(part)
        # A range that was deleted can not take runs in without copying them: only where there is
        # something.
        if next(self.engine.scan(TABLES, prefix, keys.prefix_end(prefix)), None) is not None:
            self.engine.delete_range(TABLES, prefix, keys.prefix_end(prefix) or b"\xff" * 32)
        shutil.rmtree(self._output / RUNS_FOLDER / f"p{part:05d}", ignore_errors=True)
        self.forget_steps(part, self.steps(part))

    def flush(self) -> None:
        """Bring every table to disk, and the names of the runs."""
        self.engine.flush()
        for folder in (self._output / RUNS_FOLDER).glob("*"):
            sync_folder(folder)

    def close(self) -> None:
        """Let go of the folder."""
        self.engine.close()


def _dtypes(kind: int, *, final: bool) -> tuple[np.dtype[Any], ...]:
    plain = kind & ~keys.EDGE_TABLE
    if plain == keys.B1:
        return FINAL_DTYPES if final else SCANNED_DTYPES
    return CLASSIFIED_DTYPES if plain in (keys.B2, keys.B3) else SWEPT_DTYPES


def _unpack_block(value: bytes, dtypes: Sequence[np.dtype[Any]], raw: bytes) -> Columns:
    """The columns of a value, read-only views of it."""
    rows, crc = _HEAD.unpack_from(value)
    body = memoryview(value)[_HEAD.size :]
    if zlib.crc32(body) != crc:
        raise Corrupt(
            f"table block {raw.hex()}: its value is not what was written; run the build again"
        )
    columns = []
    at = 0
    for dtype in dtypes:
        columns.append(np.frombuffer(body, dtype, rows, at))
        at += rows * dtype.itemsize + (-rows * dtype.itemsize) % 8
    return tuple(columns)
