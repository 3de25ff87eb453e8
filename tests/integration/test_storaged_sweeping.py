"""What a storaged removes: what an order names, into quarantine, and of its own leftovers what it made itself."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.kit.waiting import HANG_S

from asterism_proto.errors import Conflict, Unavailable
from asterism_proto.schema import NodeType, Schema
from storaged.folders import Folders
from storaged.holdings import Holdings, Wanted, WantedSpace
from storaged.quarantine import Quarantine, main
from storaged.store.graph import NODES, Block, GraphStore
from storaged.sweeping import Removal, RemovalOrder, Sweeper

VERSION = Wanted(version=3, job_id=7, digest="d", totals={}, named={}, images={0: "e"})
SPACE = WantedSpace(
    space_id=1, name="shop", schema=Schema(node_types=(NodeType(name="item"),), parts=1), parts=(0,), versions=(VERSION,), kept_jobs=(8,)
)


class Place:
    """A data folder with leftovers of every sort, and who sweeps it."""

    def __init__(self, data: Path, *, interval_s: float = 3600.0, grace_s: float = 100.0, limit_bytes: int = 1 << 40, free_bytes: int = 0) -> None:
        self.folders = Folders(data)
        self.now_s = 1_700_000_000.0
        self.wall_s = 1_700_000_000.0
        self.quarantine = Quarantine(
            self.folders,
            grace_s=grace_s,
            limit_bytes=limit_bytes,
            free_bytes=free_bytes,
            now=lambda: self.wall_s,
            monotonic=lambda: self.now_s,
        )
        self.follows = True
        self.busy: set[int] = set()
        self.dead: Callable[[int, Sequence[int]], Sequence[int]] = lambda space_id, loads: []
        self.holdings = Holdings(self.folders, self.quarantine)
        self.sweeper = Sweeper(
            self.holdings,
            self.folders,
            quarantine=self.quarantine,
            follows=lambda: self.follows,
            busy=lambda space_id: self.busy if space_id == 1 else set(),
            dead_loads=lambda space_id, loads: self.dead(space_id, loads),
            interval_s=interval_s,
            changed=lambda: None,
        )

    def make(self, *names: str) -> None:
        for name in names:
            path = self.folders.space(1) / name
            path.mkdir(parents=True)
            (path / "file.bin").write_bytes(b"1234")

    def order(self, *orders: tuple[Removal, int], space_id: int = 1) -> None:
        """Give these orders, (what, job), numbered from 1, and carry them out."""
        self.sweeper.order(
            [
                RemovalOrder(removal_id=number, kind=kind, space_id=space_id, job_id=job_id, reason="test")
                for number, (kind, job_id) in enumerate(orders, start=1)
            ]
        )
        self.sweeper.sweep()

    def quarantined(self) -> list[str]:
        return sorted(entry.origin for entry in self.quarantine.entries())

    def there(self) -> set[str]:
        return {
            str(path.relative_to(self.folders.space(1))) for kind in ("builds", "checkpoints") for path in self.folders.space(1).glob(f"{kind}/*")
        }


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.make("builds/6", "builds/7", "builds/7/scratch", "builds/8", "builds/9", "builds/5.gone", "builds/odd")
    place.make("checkpoints/7", "checkpoints/8", "checkpoints/8.making", "checkpoints/9", "checkpoints/9.making")
    return place


def test_what_no_order_names_stays_and_is_reported(place: Place) -> None:
    place.busy = {9}
    place.holdings.apply([SPACE])
    place.sweeper.sweep()
    left = {"builds/6", "builds/7", "builds/8", "builds/9", "builds/odd", "checkpoints/7", "checkpoints/8", "checkpoints/9", "checkpoints/9.making"}
    assert place.there() == left, "but for half-made folders without a task, which are this storaged's own"
    assert not (place.folders.build(1, 7) / "scratch").exists()
    assert set(place.sweeper.unreferenced) == {"spaces/1/builds/6", "spaces/1/builds/odd"}
    place.busy = set()
    place.holdings.apply([replace(SPACE, versions=(), kept_jobs=())])
    place.sweeper.sweep()
    assert place.there() == left - {"checkpoints/9.making"}
    place.holdings.apply([])
    place.sweeper.sweep()
    assert place.sweeper.unreferenced == ("spaces/1",)
    assert place.quarantined() == []
    place.holdings.close()


def test_an_order_moves_what_it_names_into_quarantine(place: Place) -> None:
    place.holdings.apply([SPACE])
    place.order((Removal.BUILD, 6), (Removal.LEFTOVERS, 9), (Removal.BUILD, 4))
    assert place.sweeper.removed() == [1, 2, 3], "one that names nothing here is done too"
    assert place.quarantined() == ["spaces/1/builds/6", "spaces/1/checkpoints/9", "spaces/1/checkpoints/9.making"]
    assert "builds/9" in place.there()
    place.sweeper.order([])
    assert place.sweeper.removed() == [], "it is not said for longer than metad asks"
    place.holdings.close()


def test_an_order_waits_while_something_needs_what_it_names(place: Place) -> None:
    place.busy = {9}
    place.holdings.apply([SPACE])
    before = place.there() - {"builds/5.gone", "checkpoints/8.making"}
    contradictions = ((Removal.BUILD, 7), (Removal.BUILD, 8), (Removal.LEFTOVERS, 8), (Removal.BUILD, 9), (Removal.LEFTOVERS, 9), (Removal.SPACE, 0))
    place.order(*contradictions)
    assert (place.there(), place.sweeper.removed()) == (before, [])
    place.busy = set()
    place.holdings.apply([])
    place.order(*contradictions)
    assert place.sweeper.removed() == [1, 2, 3, 4, 5, 6]
    assert not place.folders.space(1).exists()


def test_a_dropped_space_goes_whole_and_comes_back_when_wanted(place: Place) -> None:
    place.holdings.apply([SPACE])
    place.holdings.store(1).write([block(4)])
    place.holdings.apply([])
    place.busy = {9}
    place.order((Removal.SPACE, 0))
    assert place.folders.space(1).exists(), "its child is not reaped yet"
    place.busy = set()
    place.sweeper.sweep()
    assert not place.folders.space(1).exists()
    assert place.quarantined() == ["spaces/1"]
    place.holdings.apply([SPACE])
    assert place.quarantined() == []
    assert place.holdings.store(1).loads() == [4]
    place.holdings.close()


def test_an_unfinished_export_goes_by_order_and_a_sealed_one_stays(place: Place) -> None:
    place.holdings.apply([SPACE])
    for name in ("shop-v3-job9", "shop-v3-job10", "other-v1-job2", "notes"):
        (place.folders.exports / name).mkdir(parents=True)
        (place.folders.exports / name / "part-0.parquet.making").write_bytes(b"1")
    (place.folders.exports / "other-v1-job2" / "manifest-s1.json").write_bytes(b"{}")
    place.order((Removal.LEFTOVERS, 9), (Removal.LEFTOVERS, 2))
    assert {path.name for path in place.folders.exports.iterdir()} == {"shop-v3-job10", "other-v1-job2", "notes"}
    place.holdings.close()


def test_nothing_goes_before_metad_was_heard_or_while_it_is_not_followed(place: Place) -> None:
    before = place.there()
    place.follows = False
    place.sweeper.start()
    place.sweeper.nudge()
    place.holdings.apply([SPACE])
    place.sweeper.order([RemovalOrder(removal_id=1, kind=Removal.BUILD, space_id=1, job_id=6)])
    place.sweeper.wake()
    place.sweeper.stop()
    assert place.there() == before
    place.holdings.close()


def test_what_another_process_reads_stays_until_it_has_read(place: Place) -> None:
    place.holdings.apply([SPACE])
    lock = os.open(place.folders.build(1, 6), os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    place.order((Removal.BUILD, 6), (Removal.BUILD, 9))
    assert "builds/6" in place.there()
    assert "builds/9" not in place.there()
    assert place.sweeper.removed() == [2]
    os.close(lock)
    place.sweeper.sweep()
    assert "builds/6" not in place.there()
    place.holdings.close()


def test_arrays_that_are_mapped_keep_their_content_when_their_files_go(place: Place) -> None:
    place.holdings.apply([SPACE])
    mapped = np.memmap(place.folders.build(1, 6) / "file.bin", np.uint8, "r")
    place.order((Removal.BUILD, 6))
    place.now_s += 1000
    assert len(place.quarantine.purge()) == 1
    assert list(place.folders.quarantine.iterdir()) == []
    assert bytes(mapped) == b"1234"
    place.holdings.close()


def test_quarantine_ends_by_time_and_before_by_size_oldest_first(tmp_path: Path) -> None:
    place = Place(tmp_path, limit_bytes=10 << 10)
    place.holdings.apply([SPACE])
    for job in (20, 21, 22):
        place.make(f"builds/{job}")
        (place.folders.build(1, job) / "file.bin").write_bytes(b"1" * 4096)
        place.quarantine.take(place.folders.build(1, job), "test")
        place.now_s += 10
    assert [entry.origin for entry in place.quarantine.purge()] == ["spaces/1/builds/20"]
    place.quarantine.close()
    again = Place(tmp_path)
    assert again.quarantined() == ["spaces/1/builds/21", "spaces/1/builds/22"], "a restart knows them"
    again.now_s += 81  # 30 s have passed before
    assert [entry.origin for entry in again.quarantine.purge()] == ["spaces/1/builds/21"]
    short = Place(tmp_path, free_bytes=1 << 62)
    assert [entry.origin for entry in short.quarantine.purge()] == ["spaces/1/builds/22"], "the disk is short of room"
    place.make("builds/23")
    short.quarantine.take(place.folders.build(1, 23), "test")
    assert short.quarantined() == []
    short.quarantine.purge()
    assert list((place.folders.space(1) / "builds").iterdir()) == [], "it goes at once"
    place.holdings.close()


def test_no_wall_clock_ends_the_grace_of_quarantine(tmp_path: Path) -> None:
    day_s = 86_400.0
    place = Place(tmp_path, grace_s=day_s)
    place.holdings.apply([SPACE])
    place.wall_s = 0.0  # a clock that was not set yet
    place.make("builds/20")
    place.quarantine.take(place.folders.build(1, 20), "test")
    for wall_s in (1_700_000_000.0, 1_700_000_000.0 + 10 * day_s, 0.0):
        place.wall_s = wall_s
        assert place.quarantine.purge() == []
        place.now_s += day_s / 8
        place.quarantine.close()
        place = Place(tmp_path, grace_s=day_s)  # it starts again
        place.wall_s = wall_s
        assert place.quarantine.purge() == []
    place.now_s += day_s / 2
    assert place.quarantine.purge() == []
    place.now_s += day_s / 8 + 1
    assert [entry.origin for entry in place.quarantine.purge()] == ["spaces/1/builds/20"], "a day that storageds have run"


@pytest.mark.parametrize("content", ["", "1000000000 1", "x", None])
def test_a_damaged_running_time_ends_no_grace(tmp_path: Path, content: str | None) -> None:
    place = Place(tmp_path)
    place.now_s += 50
    place.make("builds/20")
    place.quarantine.take(place.folders.build(1, 20), "test")
    place.quarantine.purge()
    if content is None:
        place.folders.running.unlink()
    else:
        place.folders.running.write_text(content)
    again = Place(tmp_path)
    assert again.quarantine.purge() == []
    again.now_s += 101
    assert len(again.quarantine.purge()) == 1


def test_an_entry_cut_off_by_a_crash_is_cleared(place: Place) -> None:
    place.holdings.apply([SPACE])
    place.make("builds/20")
    place.quarantine.take(place.folders.build(1, 20), "test")
    (name,) = [entry.name for entry in place.quarantine.entries()]
    (place.folders.quarantine / name / "data").rename(place.folders.quarantine / name / "gone")
    again = Place(place.folders.data)
    assert again.quarantined() == []
    again.quarantine.purge()
    assert list(place.folders.quarantine.iterdir()) == []
    place.holdings.close()


def test_an_entry_is_listed_and_restored_by_hand(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.make("builds/20")
    place.quarantine.take(place.folders.build(1, 20), "test")
    (name,) = [entry.name for entry in place.quarantine.entries()]
    data = ["--data", str(place.folders.data)]
    assert main([*data, "list"]) == 0
    assert f'"name": "{name}"' in capsys.readouterr().out
    assert main([*data, "restore", "other"]) == 2
    assert main([*data, "restore", name]) == 0
    assert "builds/20" in place.there()
    assert main([*data, "restore", name]) == 2
    said = capsys.readouterr().err
    assert f"expected an entry of {place.folders.quarantine}" in said
    assert f"--data {place.folders.data} list" in said


def test_given_up_loads_are_copied_before_they_are_deleted(place: Place) -> None:
    place.holdings.apply([SPACE])
    store = place.holdings.store(1)
    for load_id in (4, 5):
        store.write([block(load_id)])
    place.sweeper.order([RemovalOrder(removal_id=1, kind=Removal.LOADS, space_id=1, loads=(5, 9), reason="test")])
    place.sweeper.sweep()
    assert store.loads() == [4]
    (entry,) = place.quarantine.entries()
    assert entry.origin == "spaces/1/graph"
    copy = GraphStore.open(place.folders.quarantine / entry.name / "data", SPACE.schema, read_only=True)
    assert copy.loads() == [4, 5]
    copy.close()
    place.holdings.close()


def test_a_space_that_can_not_be_opened_is_left_alone(place: Place) -> None:
    place.folders.graph(1).write_bytes(b"not a database")
    before = place.there()
    place.holdings.apply([SPACE])
    assert "can not be opened" in place.holdings.missing()[0]
    place.order((Removal.SPACE, 0))
    assert place.there() == before
    assert place.sweeper.unreferenced == ()


def block(load_id: int) -> Block:
    return Block(load_id=load_id, chunk=0, kind=NODES, type_id=0, part=0, arrays={"ids": np.arange(5)})


def test_an_abandoned_load_is_dropped_said_and_written_to_no_more(place: Place) -> None:
    place.holdings.apply([SPACE])
    store = place.holdings.store(1)
    for load_id in (4, 5, 6):
        store.write([block(load_id)])
    assert store.loads() == [4, 5, 6]
    assert place.holdings.dropped_loads() == []
    place.holdings.apply([replace(SPACE, abandoned_loads=(5, 77))])
    place.sweeper.drop_loads()
    assert place.holdings.dropped_loads() == [5, 77]
    assert store.loads() == [4, 6]
    with pytest.raises(Conflict, match="load 5 was given up"):
        store.write([block(4), block(5)])
    place.holdings.apply([replace(SPACE, abandoned_loads=(77,))])
    assert place.holdings.dropped_loads() == [77], "what metad does not ask about is not said"
    place.holdings.close()


def test_a_load_is_said_to_be_gone_only_once_every_space_was_looked_into(place: Place) -> None:
    other = replace(SPACE, space_id=2, name="other", versions=(), abandoned_loads=(5,))
    place.folders.graph(2).parent.mkdir(parents=True)
    place.folders.graph(2).write_bytes(b"not a database")
    place.holdings.apply([replace(SPACE, abandoned_loads=(5,)), other])
    place.sweeper.drop_loads()
    assert place.holdings.dropped_loads() == []
    place.holdings.close()


def test_loads_that_metad_calls_dead_are_found_among_all_that_have_blocks(place: Place) -> None:
    asked = []

    def dead(space_id: int, loads: Sequence[int]) -> Sequence[int]:
        asked.append((space_id, list(loads)))
        return [6]

    place.dead = dead
    place.holdings.apply([SPACE])
    store = place.holdings.store(1)
    for load_id in (4, 6):
        store.write([block(load_id)])
    place.sweeper.find_dead_loads()
    assert asked == [(1, [4, 6])]
    assert store.loads() == [4]
    place.holdings.close()


def test_a_metad_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    place = Place(tmp_path, interval_s=0.05)
    answers = iter([Unavailable("no metad"), []])

    def dead(space_id: int, loads: Sequence[int]) -> Sequence[int]:
        answer = next(answers, [6])
        if isinstance(answer, Exception):
            raise answer
        return answer

    place.dead = dead
    place.holdings.apply([SPACE])
    place.holdings.store(1).write([block(6)])
    place.sweeper.start()
    place.sweeper.wake()
    end = time.monotonic() + HANG_S
    while place.holdings.store(1).loads():
        assert time.monotonic() < end
        time.sleep(0.01)
    place.sweeper.stop()
    place.holdings.close()
