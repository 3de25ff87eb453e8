"""Flip single bits in every file: reads are equal or raise an error naming the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.kit import storage_faults
from tests.kit.storage_faults import flip

from asterism_daemonkit import rocksdb_damage
from asterism_proto.errors import Corrupt
from metad.store.rocksdb_store import RocksStore
from storaged.store.engine import ColumnFamily, RocksEngine

_BLOCK, _HEADER = 32 << 10, 7


def record_offsets(log: Path) -> list[int]:
    """Return the offsets of a log's records; the log must fit into one block."""
    content = log.read_bytes()
    assert len(content) < _BLOCK
    offsets, offset = [], 0
    while offset + _HEADER <= len(content):
        offsets.append(offset)
        offset += _HEADER + int.from_bytes(content[offset + 4 : offset + 6], "little")
    return offsets


@pytest.fixture
def unclean(tmp_path: Path) -> Path:
    """Return a catalog's folder as left by a killed metad."""
    store = RocksStore(tmp_path / "open")
    for number in range(20):
        store.write({b"1/key/%d" % number: bytes([number]) * 50})
    shutil.copytree(tmp_path / "open", tmp_path / "unclean")
    store.close()
    return tmp_path / "unclean"


def single_file(folder: Path, pattern: str) -> Path:
    [file] = folder.glob(pattern)
    return file


def test_altered_bits_are_detected_or_harmless(tmp_path: Path) -> None:
    rows = storage_faults.matrix(tmp_path, 8)
    assert sum(outcome_counts.total() for _, _, outcome_counts in rows) >= 200
    assert storage_faults.unexpected_rows(rows) == [], storage_faults.table(rows)


@pytest.mark.slow
def test_many_altered_bits_are_detected_or_harmless(tmp_path: Path) -> None:
    rows = storage_faults.matrix(tmp_path, 150)
    print(storage_faults.table(rows))
    assert storage_faults.unexpected_rows(rows) == [], storage_faults.table(rows)


def test_cut_empty_and_missing_files_are_detected_or_harmless(tmp_path: Path) -> None:
    """Truncated logs look like logs without their last writes; higher layers detect that.

    `Cluster.check_identity` refuses data without an identity or without a `cluster` file.
    """
    undetectable = {
        ("write-ahead log", "cut in half"),
        ("write-ahead log", "empty"),
        ("identity.json", "missing"),
    }
    closed = [
        subject
        for subject in storage_faults.subjects(tmp_path)
        if subject.moment != storage_faults.OPEN
    ]
    for subject in closed:
        for (damage, file), outcome in storage_faults.damage_outcomes(subject).items():
            if (subject.kind.rpartition(": ")[2], damage) not in undetectable:
                assert outcome.split()[0] in ("equal", "Corrupt", "Conflict", "NotFound"), (
                    subject.kind,
                    subject.moment,
                    damage,
                    file,
                    outcome,
                )


@pytest.mark.parametrize("pattern", ["*.log", "MANIFEST-*"])
def test_every_altered_record_header_is_detected(unclean: Path, pattern: str) -> None:
    """Check lengths and types: RocksDB would call them torn, or loop on a recycled-log type."""
    file = single_file(unclean, pattern)
    for offset in record_offsets(file):
        for bit in (
            *(8 * (offset + 4) + bit for bit in range(16)),
            *(8 * (offset + 6) + bit for bit in range(2, 8)),
        ):
            flip(file, bit)
            if problem := rocksdb_damage.damage_fault(unclean):
                assert str(file) in problem
            # the record still ends within the file, so RocksDB checks its checksum
            else:
                with pytest.raises(Corrupt, match=str(unclean)):
                    RocksStore(unclean)
            flip(file, bit)
    assert rocksdb_damage.damage_fault(unclean) == ""


def test_a_torn_record_is_no_damage(unclean: Path) -> None:
    log = single_file(unclean, "*.log")
    content, last_offset = log.read_bytes(), record_offsets(log)[-1]
    for size in range(last_offset, len(content)):
        log.write_bytes(content[:size])
        assert rocksdb_damage.damage_fault(unclean) == ""
    store = RocksStore(unclean)
    assert len(store.range(b"")) == 19
    store.close()


def test_missing_files_of_a_database_are_named(unclean: Path) -> None:
    for pattern, name in (
        ("CURRENT", "CURRENT"),
        ("*.log", "write-ahead log"),
        ("MANIFEST-*", "MANIFEST"),
    ):
        copy = unclean.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(unclean, copy)
        single_file(copy, pattern).unlink()
        with pytest.raises(Corrupt, match=name):
            RocksStore(copy)


def test_damaged_properties_of_a_table_are_blamed_on_a_table(tmp_path: Path) -> None:
    """If the property keys of a table are out of order, RocksDB names only the manifest."""
    families = [ColumnFamily(name="f")]
    engine = RocksEngine(tmp_path / "db", families)
    engine.write([("f", b"key", b"value")])
    engine.flush()
    engine.close()
    table = max((tmp_path / "db").glob("*.sst"), key=lambda path: path.stat().st_size)
    content = table.read_bytes()
    key = content.index(b"prefix.filtering")
    table.write_bytes(content[:key] + b"a" + content[key + 1 :])
    with pytest.raises(Corrupt, match=r"\.sst") as caught:
        RocksEngine(tmp_path / "db", families, read_only=True).close()
    assert "restore the folder" in str(caught.value)
