"""The stat database: tables as blocks of rows, with a count and a crc of their own.

A value is ``rows u32 | crc32 u32`` and then each column in turn, padded to 8 bytes. Kinds and columns:

    B1     row u32, id i64, probability f64, alias u32, alias id i64, weight f32   (alias: a position in the table)
    B1 in the making (scratch)  row u32, id i64, weight f32
    B2, B3 (scratch)            position u32, id i64, p f64
    LIGHT, HEAVY (scratch)      position u32, probability f64, alias u32, alias id i64
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Corrupt
from storaged.store import keys
from storaged.store.engine import Bulk, Engine, Family, RocksEngine
from storaged.store.keys import SCRATCH, TABLES

Columns = tuple[NDArray[Any], ...]

FAMILIES = (Family(name=TABLES, cached=False), Family(name=SCRATCH, cached=False))

FINAL = tuple(np.dtype(name) for name in ("uint32", "int64", "float64", "uint32", "int64", "float32"))
SCANNED = tuple(np.dtype(name) for name in ("uint32", "int64", "float32"))
CLASSIFIED = tuple(np.dtype(name) for name in ("uint32", "int64", "float64"))
SWEPT = tuple(np.dtype(name) for name in ("uint32", "float64", "uint32", "int64"))

FINAL_ROWS = 16384
SCRATCH_ROWS = 32768
"""Rows of a block: values of half a mebibyte to three quarters."""

_HEAD = struct.Struct("<II")


class TableWriter:
    """Appends columns to a table, as blocks of a fixed number of rows."""

    def __init__(self, bulk: Bulk, prefix: bytes, dtypes: Sequence[np.dtype[Any]], block_rows: int) -> None:
        self._bulk, self._prefix, self._dtypes, self._block_rows = bulk, prefix, dtypes, block_rows
        self._held: list[Columns] = []
        self._held_rows = 0
        self._block = 0
        self.rows = 0

    def append(self, *columns: NDArray[Any]) -> None:
        """Add rows, column by column."""
        self._held.append(columns)
        self._held_rows += len(columns[0])
        self.rows += len(columns[0])
        if self._held_rows >= self._block_rows:
            joined = self._joined()
            whole = self._held_rows // self._block_rows * self._block_rows
            for low in range(0, whole, self._block_rows):
                self._put(tuple(column[low : low + self._block_rows] for column in joined))
            self._held = [tuple(column[whole:].copy() for column in joined)]
            self._held_rows -= whole

    def finish(self) -> int:
        """Write the last block; gives the number of rows."""
        if self._held_rows:
            self._put(self._joined())
            self._held, self._held_rows = [], 0
        self._bulk.finish()
        return self.rows

    def _joined(self) -> Columns:
        if len(self._held) == 1:
            return self._held[0]
        return tuple(np.concatenate([piece[i] for piece in self._held]) for i in range(len(self._dtypes)))

    def _put(self, columns: Columns) -> None:
        body = b"".join(
            np.ascontiguousarray(column, dtype).tobytes() + bytes(-column.shape[0] * dtype.itemsize % 8)
            for column, dtype in zip(columns, self._dtypes, strict=True)
        )
        self._bulk.put(keys.table_key(self._prefix, self._block), _HEAD.pack(len(columns[0]), zlib.crc32(body)) + body)
        self._block += 1


class TableStore:
    """A build's stat database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, path: Path) -> TableStore:
        """The database in a folder, made if it is not there."""
        return cls(RocksEngine(path, FAMILIES))

    def writer(self, part: int, kind: int, type_id: int, weight_name: str, *, final: bool = False) -> TableWriter:
        """A new table of a kind: ``final`` ones stay, others go with `forget_scratch`."""
        prefix = keys.table_prefix(part, kind, type_id, weight_name)
        dtypes = _dtypes(kind, final=final)
        return TableWriter(self._engine.bulk(TABLES if final else SCRATCH), prefix, dtypes, FINAL_ROWS if final else SCRATCH_ROWS)

    def blocks(self, part: int, kind: int, type_id: int, weight_name: str, rows: int, *, final: bool = False) -> Iterator[Columns]:
        """The blocks of a table in row order; Corrupt where they are not ``rows`` rows, or a block is altered."""
        prefix = keys.table_prefix(part, kind, type_id, weight_name)
        dtypes = _dtypes(kind, final=final)
        seen = 0
        for raw, value in self._engine.scan(TABLES if final else SCRATCH, prefix, keys.after(prefix)):
            if len(raw) != len(prefix) + 4:
                continue  # a longer weight name that begins alike has another length byte: never here, but cheap to say
            columns = _unpacked(value, dtypes, raw)
            seen += len(columns[0])
            yield columns
        if seen != rows:
            raise Corrupt(f"table of part {part}, type {type_id}, kind {kind}: {seen} rows, expected {rows}; run the build again")

    def forget_scratch(self) -> None:
        """Give the space of B2, B3 and spools back."""
        self._engine.drop(SCRATCH)

    def forget_part(self, part: int) -> None:
        """Forget the tables of a part that is built anew."""
        prefix = keys.part_prefix(part)
        self._engine.delete_range(TABLES, prefix, keys.after(prefix) or b"\xff" * 32)

    def flush(self) -> None:
        """Bring every table to disk."""
        self._engine.flush()

    def close(self) -> None:
        """Let go of the folder."""
        self._engine.close()


def _dtypes(kind: int, *, final: bool) -> tuple[np.dtype[Any], ...]:
    plain = kind & ~keys.EDGE_TABLE
    if plain == keys.B1:
        return FINAL if final else SCANNED
    return CLASSIFIED if plain in (keys.B2, keys.B3) else SWEPT


def _unpacked(value: bytes, dtypes: Sequence[np.dtype[Any]], raw: bytes) -> Columns:
    body = bytearray(memoryview(value)[_HEAD.size :])
    rows, crc = _HEAD.unpack_from(value)
    if zlib.crc32(body) != crc:
        raise Corrupt(f"table block {raw.hex()}: its value is not what was written; run the build again")
    columns = []
    at = 0
    for dtype in dtypes:
        columns.append(np.frombuffer(body, dtype, rows, at))
        at += rows * dtype.itemsize + (-rows * dtype.itemsize) % 8
    return tuple(columns)
