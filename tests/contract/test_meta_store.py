"""Contract of the `MetaStore` port, over memory and RocksDB."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asterism_proto.errors import Corrupt, Unavailable
from metad.store.memory_store import MemoryStore
from metad.store.port import MetaStore
from metad.store.rocksdb_store import RocksStore


@pytest.fixture(params=["memory", "rocks"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], MetaStore]:
    if request.param == "memory":
        return MemoryStore
    return lambda: RocksStore(tmp_path / "deep" / "store")


@pytest.fixture
def store(open_store: Callable[[], MetaStore]) -> Iterator[MetaStore]:
    store = open_store()
    yield store
    store.close()


def test_a_key_that_was_never_written_has_no_value(store: MetaStore) -> None:
    assert store.get(b"1/nothing") is None


def test_what_is_written_is_read(store: MetaStore) -> None:
    store.write({b"a": b"1", b"b": b""})
    assert (store.get(b"a"), store.get(b"b")) == (b"1", b"")


def test_a_later_write_replaces_an_earlier_one(store: MetaStore) -> None:
    store.write({b"a": b"1"})
    store.write({b"a": b"2"})
    assert store.get(b"a") == b"2"


def test_none_deletes_and_deleting_nothing_is_fine(store: MetaStore) -> None:
    store.write({b"a": b"1", b"b": b"2"})
    store.write({b"a": None, b"never": None})
    assert (store.get(b"a"), store.get(b"b")) == (None, b"2")


def test_range_has_exactly_the_keys_of_its_prefix_in_order(store: MetaStore) -> None:
    store.write(
        {
            b"p/2": b"two",
            b"p/10": b"ten",
            b"p": b"short",
            b"p0": b"after",
            b"o/9": b"before",
            b"p/\xff\xff": b"last",
        }
    )
    assert store.range(b"p/") == [(b"p/10", b"ten"), (b"p/2", b"two"), (b"p/\xff\xff", b"last")]


def test_an_empty_prefix_is_everything(store: MetaStore) -> None:
    store.write({b"b": b"2", b"\x00": b"0", b"a": b"1"})
    assert [key for key, _ in store.range(b"")] == [b"\x00", b"a", b"b"]


def test_a_range_over_nothing_is_empty(store: MetaStore) -> None:
    store.write({b"a": b"1"})
    assert store.range(b"b") == []


def test_values_are_any_bytes_of_any_size(store: MetaStore) -> None:
    value = bytes(range(256)) * 8192
    store.write({b"\x00\xff/": value})
    assert store.get(b"\x00\xff/") == value
    assert store.range(b"\x00") == [(b"\x00\xff/", value)]


def test_write_of_many_keys_is_atomic(store: MetaStore) -> None:
    observed: list[set[bytes]] = []
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            observed.append({value for _, value in store.range(b"k/")})

    reader = threading.Thread(target=poll)
    store.write({b"k/%03d" % i: b"0" for i in range(200)})
    reader.start()
    for write_number in range(1, 40):
        store.write({b"k/%03d" % i: b"%d" % write_number for i in range(200)})
    stop.set()
    reader.join()
    assert observed
    assert all(len(values) == 1 for values in observed)


def test_after_the_close_every_call_is_refused(open_store: Callable[[], MetaStore]) -> None:
    store = open_store()
    store.close()
    store.close()
    for call in (
        lambda: store.get(b"a"),
        lambda: store.range(b""),
        lambda: store.write({b"a": b"1"}),
    ):
        with pytest.raises(Unavailable, match="closed"):
            call()


def test_rocks_keeps_acknowledged_writes_after_reopening(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "s")
    store.write({b"a": b"1", b"b": b"2"})
    store.write({b"b": None})
    store.close()
    reopened = RocksStore(tmp_path / "s")
    assert reopened.range(b"") == [(b"a", b"1")]
    reopened.close()


def test_rocks_refuses_a_folder_that_is_open(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "s")
    with pytest.raises(Corrupt, match="any other metad"):
        RocksStore(tmp_path / "s")
    store.close()


class _FailingDatabase:
    """Database that refuses writes, and reads too at first."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self.reads_fail = True

    def write(self, *_: object) -> None:
        raise OSError("IO error: While appending to file")

    def get(self, key: bytes) -> bytes | None:
        if self.reads_fail:
            raise OSError("IO error: While pread")
        value: bytes | None = self._database.get(key)
        return value

    def close(self) -> None:
        self._database.close()


def test_store_recovers_once_old_values_can_be_read(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "s")
    store.write({b"a": b"1"})
    database: Any = _FailingDatabase(store._db)
    store._db = database
    with pytest.raises(Unavailable, match="a write failed"):
        store.write({b"a": b"2", b"b": b"3"})
    assert "While pread" in store.fault()
    database.reads_fail = False
    assert store.fault() == ""
    assert (store.get(b"a"), store.get(b"b")) == (b"1", None)
    store.write({b"a": b"2"})
    assert store.get(b"a") == b"2"
    store.close()


def _copy_as_killed(store: RocksStore, folder: Path, target: Path) -> Path:
    """Copy a store's folder as after a kill: the log is synced, nothing flushed.

    Returns the path of the copied log.
    """
    target.mkdir()
    for file in folder.iterdir():
        if file.name != "LOCK":
            (target / file.name).write_bytes(file.read_bytes())
    store.close()
    return next(file for file in target.iterdir() if file.suffix == ".log" and file.stat().st_size)


def _store_with_fifty_keys(folder: Path) -> RocksStore:
    store = RocksStore(folder)
    for i in range(50):
        store.write({b"key/%02d" % i: b"x" * 500})
    return store


def test_rocks_refuses_a_log_with_damage_before_its_end(tmp_path: Path) -> None:
    """Opening it would present an older state as the current one."""
    log = _copy_as_killed(
        _store_with_fifty_keys(tmp_path / "s"), tmp_path / "s", tmp_path / "killed"
    )
    content = bytearray(log.read_bytes())
    content[content.index(b"x" * 100, len(content) // 2)] ^= 0xFF
    log.write_bytes(bytes(content))
    with pytest.raises(Corrupt):
        RocksStore(tmp_path / "killed")


def test_rocks_opens_with_a_torn_end_of_its_log(tmp_path: Path) -> None:
    """A torn record at the end is a write that was never acknowledged."""
    log = _copy_as_killed(
        _store_with_fifty_keys(tmp_path / "s"), tmp_path / "s", tmp_path / "killed"
    )
    log.write_bytes(log.read_bytes()[:-100])
    reopened = RocksStore(tmp_path / "killed")
    assert [key for key, _ in reopened.range(b"key/")] == [b"key/%02d" % i for i in range(49)]
    reopened.close()


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 0x40
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("MANIFEST-*", _flip_bit),
        ("MANIFEST-*", Path.unlink),
        ("CURRENT", _truncate),
        ("CURRENT", Path.unlink),
        ("*.sst", _flip_bit),
        ("*.sst", _truncate),
        ("*.sst", Path.unlink),
    ],
)
def test_rocks_refuses_damaged_and_missing_files(
    tmp_path: Path, pattern: str, damage: Callable[[Path], None]
) -> None:
    """A damaged store never opens as an older or empty one."""
    folder = tmp_path / "killed"
    _copy_as_killed(_store_with_fifty_keys(tmp_path / "s"), tmp_path / "s", folder)
    if pattern == "*.sst":
        RocksStore(folder).close()  # moves the log's content into table files
    damage(max(folder.glob(pattern), key=lambda path: path.stat().st_size))
    with pytest.raises(Corrupt, match=str(folder)):
        RocksStore(folder).range(b"")
