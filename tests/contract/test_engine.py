"""Contract of the storage engine, over memory and RocksDB, and tests of disk behavior."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit.small_disk import small_disk

from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, Unavailable
from storaged.store.engine import ColumnFamily, Engine, RocksEngine
from storaged.store.memory_engine import MemoryEngine
from storaged.store.recovering_engine import RecoveringEngine

FAMILIES = (
    ColumnFamily(name="a", compressed=True, blobs=True, cached=False),
    ColumnFamily(name="b"),
)
LARGE = bytes(range(256)) * 4096


def memory(path: Path) -> Engine:
    return MemoryEngine(FAMILIES)


def rocks(path: Path) -> Engine:
    return RocksEngine(path / "db", FAMILIES)


@pytest.fixture(params=[memory, rocks], ids=["memory", "rocksdb"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    open_engine: Callable[[Path], Engine] = request.param
    instance = open_engine(tmp_path)
    yield instance
    instance.close()


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_what_was_written_is_read_and_a_missing_key_is_none(engine: Engine) -> None:
    engine.write([("a", b"k", b"v"), ("b", b"k", LARGE)])
    assert (engine.get("a", b"k"), engine.get("b", b"k"), engine.get("a", b"x")) == (
        b"v",
        LARGE,
        None,
    )


def test_a_later_write_replaces_and_none_deletes(engine: Engine) -> None:
    engine.write([("a", b"k", b"1"), ("a", b"l", b"1")])
    engine.write([("a", b"k", b"2"), ("a", b"l", None)])
    assert list(engine.scan("a", b"", None)) == [(b"k", b"2")]


def test_a_scan_is_ordered_by_bytes_and_half_open(engine: Engine) -> None:
    engine.write([("a", bytes([i]), b"%d" % i) for i in (9, 1, 255, 4)])
    assert [key for key, _ in engine.scan("a", b"", None)] == [b"\x01", b"\x04", b"\x09", b"\xff"]
    assert [key for key, _ in engine.scan("a", b"\x04", b"\xff")] == [b"\x04", b"\x09"]


def test_families_do_not_see_each_other(engine: Engine) -> None:
    engine.write([("a", b"k", b"1")])
    assert engine.get("b", b"k") is None


def test_deleted_range_is_empty_and_half_open(engine: Engine) -> None:
    engine.write([("a", bytes([i]), b"v") for i in range(5)])
    engine.delete_range("a", b"\x01", b"\x03")
    assert [key for key, _ in engine.scan("a", b"", None)] == [b"\x00", b"\x03", b"\x04"]


def test_a_dropped_family_is_empty_and_can_be_written_again(engine: Engine) -> None:
    engine.write([("a", b"k", LARGE), ("b", b"k", b"1")])
    engine.drop("a")
    assert list(engine.scan("a", b"", None)) == []
    engine.write([("a", b"k", b"2")], durable=False)
    assert (engine.get("a", b"k"), engine.get("b", b"k")) == (b"2", b"1")


@pytest.mark.parametrize("blocks", [0, 2, 9], ids=["empty", "small", "large"])
def test_a_sorted_run_is_seen_once_it_is_finished(engine: Engine, blocks: int) -> None:
    run = engine.bulk_writer("b")
    for i in range(blocks):
        run.put(bytes([i]), LARGE)
    assert list(engine.scan("b", b"", None)) == []
    run.finish()
    assert list(engine.scan("b", b"", None)) == [(bytes([i]), LARGE) for i in range(blocks)]


def test_two_sorted_runs_grow_side_by_side(engine: Engine) -> None:
    runs = [engine.bulk_writer("b"), engine.bulk_writer("b")]
    for i in range(8):
        for r, run in enumerate(runs):
            run.put(bytes([r, i]), LARGE)
    for run in runs:
        run.finish()
    assert len(list(engine.scan("b", b"", None))) == 16


def test_a_sorted_run_refuses_a_key_out_of_order(engine: Engine) -> None:
    run = engine.bulk_writer("b")
    run.put(b"\x02", b"")
    with pytest.raises(InvalidRequest, match="ascending"):
        run.put(b"\x01", b"")


def test_a_checkpoint_does_not_see_what_came_after_it(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path / "db", FAMILIES)
    engine.write([("a", b"k", LARGE)])
    engine.checkpoint(tmp_path / "copy")
    engine.write([("a", b"l", b"2"), ("a", b"k", None)])
    copy = RocksEngine(tmp_path / "copy", FAMILIES, read_only=True)
    assert list(copy.scan("a", b"", None)) == [(b"k", LARGE)]
    copy.close()
    with pytest.raises(Conflict):
        engine.checkpoint(tmp_path / "copy")
    engine.close()


def test_acknowledged_write_survives_without_a_close(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path / "db", FAMILIES)
    engine.write([("a", b"k", b"1")])
    engine.checkpoint(tmp_path / "as-left")  # a crash leaves this: nothing was flushed or closed
    reopened = RocksEngine(tmp_path / "as-left", FAMILIES)
    assert reopened.get("a", b"k") == b"1"
    reopened.close()
    engine.close()


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path / "db", FAMILIES)
    with pytest.raises(Conflict, match="another process"):
        RocksEngine(tmp_path / "db", FAMILIES)
    engine.close()
    RocksEngine(tmp_path / "db", FAMILIES).close()


def test_drops_and_compacted_deletes_free_space(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path / "db", FAMILIES)
    run = engine.bulk_writer("b")
    for i in range(16):
        run.put(bytes([i]), LARGE)
    run.finish()
    full_size = size_of(tmp_path)
    engine.drop("b")
    assert size_of(tmp_path) < full_size - 15 * len(LARGE)
    noise = np.random.default_rng(1).bytes(1 << 20)  # incompressible
    engine.write([("a", bytes([i]), noise) for i in range(8)])
    engine.compact("a")
    size_before = size_of(tmp_path)
    engine.write([("a", bytes([i]), None) for i in range(6)])
    engine.compact("a")
    assert size_of(tmp_path) < size_before - 5 * len(noise)
    assert engine.get("a", b"\x07") == noise
    engine.close()


def test_compaction_blocks_no_reads_and_loses_nothing(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path / "db", FAMILIES)
    noise = np.random.default_rng(2).bytes(100 << 20)  # incompressible
    values = [noise[i << 20 : (i + 1) << 20] for i in range(100)]
    engine.write([("a", bytes([i]), value) for i, value in enumerate(values)])
    engine.compact("a")
    full_size = engine.size()
    engine.write([("a", bytes([i]), None) for i in range(0, 100, 2)])
    stop, read_count = threading.Event(), 0

    def read() -> None:
        nonlocal read_count
        while not stop.is_set():
            assert engine.get("a", b"\x03") == values[3]
            read_count += 1
            time.sleep(0.001)

    reader = threading.Thread(target=read)
    reader.start()
    engine.compact("a")
    stop.set()
    reader.join()
    assert read_count > 20, "a compaction blocked all other work"
    assert engine.size() < full_size * 0.6
    assert [key[0] for key, _ in engine.scan("a", b"", None)] == list(range(1, 100, 2))
    assert all(engine.get("a", bytes([i])) == values[i] for i in range(1, 100, 2))
    engine.close()


def test_cancelled_compaction_returns_and_keeps_all_entries(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path / "db", FAMILIES)
    noise = np.random.default_rng(3).bytes(1 << 20)
    engine.write([("a", bytes([i]), noise) for i in range(50)])
    engine.write([("a", bytes([i]), None) for i in range(25)])
    engine.compact("a", lambda: True)
    assert [key[0] for key, _ in engine.scan("a", b"", None)] == list(range(25, 50))
    engine.close()


def test_a_damaged_file_is_corrupt_not_an_early_end(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path / "db", (ColumnFamily(name="b", cached=False),))
    run = engine.bulk_writer("b")
    for i in range(9):
        run.put(bytes([i]), LARGE)
    run.finish()
    engine.close()
    file = max((tmp_path / "db").glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    engine = RocksEngine(tmp_path / "db", (ColumnFamily(name="b", cached=False),))
    with pytest.raises(Corrupt):
        list(engine.scan("b", b"", None))
    engine.close()


def test_kept_run_can_be_ingested_again(engine: Engine, tmp_path: Path) -> None:
    run = engine.bulk_writer("b", tmp_path / "runs" / "1.sst")
    for i in range(3):
        run.put(bytes([i]), b"%d" % i)
    run.finish()
    entries = list(engine.scan("b", b"", None))
    engine.drop("b")
    assert list(engine.scan("b", b"", None)) == []
    engine.ingest_file("b", tmp_path / "runs" / "1.sst")
    assert (
        list(engine.scan("b", b"", None)) == entries == [(bytes([i]), b"%d" % i) for i in range(3)]
    )
    with pytest.raises(Unavailable, match="build the table again"):
        engine.ingest_file("b", tmp_path / "runs" / "2.sst")


def test_kept_run_without_a_key_writes_no_file(tmp_path: Path) -> None:
    engine = RocksEngine(tmp_path / "db", FAMILIES)
    engine.bulk_writer("b", tmp_path / "kept.sst").finish()
    assert not (tmp_path / "kept.sst").exists()
    engine.close()


@pytest.mark.parametrize("used_before", [False, True], ids=["fresh", "deleted range"])
def test_databases_share_a_kept_run_and_none_alters_it(
    tmp_path: Path, *, used_before: bool
) -> None:
    run_file = tmp_path / "kept.sst"
    first, second = (
        RocksEngine(tmp_path / "one" / "db", FAMILIES),
        RocksEngine(tmp_path / "two" / "db", FAMILIES),
    )
    run = first.bulk_writer("b", run_file)
    for i in range(4):
        run.put(bytes([i]), LARGE)
    run.finish()
    content, link_count = run_file.read_bytes(), run_file.stat().st_nlink
    if used_before:  # RocksDB would then write a sequence number into the file
        second.write([("b", bytes([9 * (i % 2)]), b"old") for i in range(2)])
        second.delete_range("b", b"\x00", b"\x05")
    second.ingest_file("b", run_file)
    expected = [(bytes([i]), LARGE) for i in range(4)] + [(b"\x09", b"old")] * used_before
    assert list(second.scan("b", b"", None)) == expected
    assert run_file.read_bytes() == content
    assert run_file.stat().st_nlink == link_count + (not used_before)
    first.close()
    shutil.rmtree(tmp_path / "one")
    second.close()
    second = RocksEngine(tmp_path / "two" / "db", FAMILIES)
    assert list(second.scan("b", b"", None)) == expected
    second.close()


@pytest.mark.parametrize("rest", [0, 300_000])
def test_full_disk_refuses_writes_and_loses_no_acknowledged_one(tmp_path: Path, rest: int) -> None:
    with small_disk(tmp_path / "disk", 48) as disk:
        path = disk.path / "db"
        engine = RecoveringEngine(path, lambda: RocksEngine(path, FAMILIES))
        keys = [b"%04d" % i for i in range(8)]
        for key in keys:
            engine.write([("a", key, LARGE), ("b", key, b"1")])
        disk.fill(keep_free=rest)
        for _ in range(3):
            with pytest.raises(Unavailable, match="the disk is full"):
                engine.write([("a", b"lost", LARGE), ("b", b"lost", b"1")])
        # A full disk can still be read. The engine tries to write again once space is free.
        assert [key for key, _ in engine.scan("b", b"", None)] == keys
        disk.empty()
        entries = engine.scan("a", b"", None)
        assert next(entries)[0] == keys[0]
        with pytest.raises(Unavailable, match="during a read"):
            engine.write([("b", b"x", b"1")])
        entries.close()  # type: ignore[attr-defined]  # a generator
        engine.write([("a", b"kept", LARGE), ("b", b"kept", b"1")])
        assert [key for key, _ in engine.scan("b", b"", None)] == [*keys, b"kept"]
        assert [key for key, value in engine.scan("a", b"", None) if value == LARGE] == [
            *keys,
            b"kept",
        ]
        engine.close()
        engine = RecoveringEngine(path, lambda: RocksEngine(path, FAMILIES))
        assert [key for key, _ in engine.scan("b", b"", None)] == [*keys, b"kept"]
        engine.close()
