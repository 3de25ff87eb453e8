"""Tests of table blocks: equal columns for any pieces, and detected damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asterism_proto.errors import Corrupt
from storaged.store import keys
from storaged.store.alias_table_store import FAMILIES, SCRATCH_ROWS, AliasTableStore
from storaged.store.memory_engine import MemoryEngine


@pytest.fixture
def engine() -> MemoryEngine:
    return MemoryEngine(FAMILIES)


def write(
    store: AliasTableStore, rows: int, pieces: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns = (
        np.arange(rows, dtype=np.uint32),
        np.arange(rows, dtype=np.int64) * 3,
        np.linspace(0, 1, rows),
    )
    writer = store.writer(1, keys.B2, 0, "weight")
    for chunk in np.array_split(np.arange(rows), pieces):
        writer.append(*(column[chunk] for column in columns))
    assert writer.finish() == rows
    return columns


@pytest.mark.parametrize("rows", [0, 1, SCRATCH_ROWS - 1, SCRATCH_ROWS, 3 * SCRATCH_ROWS + 5])
@pytest.mark.parametrize("pieces", [1, 7])
def test_columns_come_back_in_order(engine: MemoryEngine, rows: int, pieces: int) -> None:
    store = AliasTableStore(engine, Path("out"))
    columns = write(store, rows, pieces)
    blocks = list(store.blocks(1, keys.B2, 0, "weight", rows))
    assert [len(block[0]) for block in blocks[:-1]] == [SCRATCH_ROWS] * (len(blocks) - 1)
    for i, column in enumerate(columns):
        assert np.array_equal(np.concatenate([column[:0], *(block[i] for block in blocks)]), column)


def test_values_are_a_quarter_to_one_mebibyte(engine: MemoryEngine) -> None:
    write(AliasTableStore(engine, Path("out")), 2 * SCRATCH_ROWS, 1)
    assert all(
        1 << 18 <= len(value) <= 1 << 20 for _, value in engine.scan(keys.SCRATCH, b"", None)
    )


def test_a_missing_block_is_corrupt(engine: MemoryEngine) -> None:
    store = AliasTableStore(engine, Path("out"))
    write(store, 2 * SCRATCH_ROWS, 1)
    engine.write(
        [(keys.SCRATCH, keys.table_key(keys.table_prefix(1, keys.B2, 0, "weight"), 1), None)]
    )
    with pytest.raises(Corrupt, match="expected 65536"):
        list(store.blocks(1, keys.B2, 0, "weight", 2 * SCRATCH_ROWS))


def test_an_altered_block_is_corrupt(engine: MemoryEngine) -> None:
    store = AliasTableStore(engine, Path("out"))
    write(store, 100, 1)
    [(key, value)] = engine.scan(keys.SCRATCH, b"", None)
    engine.write([(keys.SCRATCH, key, value[:50] + bytes([value[50] ^ 1]) + value[51:])])
    with pytest.raises(Corrupt, match="does not match its checksum"):
        list(store.blocks(1, keys.B2, 0, "weight", 100))


def test_forgetting_scratch_leaves_final_tables(engine: MemoryEngine) -> None:
    store = AliasTableStore(engine, Path("out"))
    write(store, 10, 1)
    row = np.zeros(1, np.uint32)
    final = store.writer(1, keys.B1, 0, "weight", final=True)
    final.append(
        row, np.zeros(1, np.int64), np.ones(1), row, np.zeros(1, np.int64), np.ones(1, np.float32)
    )
    final.finish()
    store.forget_scratch()
    assert list(engine.scan(keys.SCRATCH, b"", None)) == []
    assert len(list(store.blocks(1, keys.B1, 0, "weight", 1, final=True))) == 1
