"""What a storaged removes: what metad's last word does not name, and nothing before it has heard one."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.kit.waiting import HANG_S, let_pass

from asterism_proto.errors import Conflict, Unavailable
from asterism_proto.schema import NodeType, Schema
from storaged.folders import Folders
from storaged.holdings import Holdings, Wanted, WantedSpace
from storaged.store.graph import NODES, Block
from storaged.sweeping import Sweeper

VERSION = Wanted(version=3, job_id=7, digest="d", totals={}, named={}, images={0: "e"})
SPACE = WantedSpace(
    space_id=1, name="shop", schema=Schema(node_types=(NodeType(name="item"),), parts=1), parts=(0,), versions=(VERSION,), kept_jobs=(8,)
)


class Place:
    """A data folder with leftovers of every sort, and who sweeps it."""

    def __init__(self, data: Path, *, interval_s: float = 3600.0) -> None:
        self.folders = Folders(data)
        self.busy: set[int] = set()
        self.dead: Callable[[int, Sequence[int]], Sequence[int]] = lambda space_id, loads: []
        self.holdings = Holdings(self.folders)
        self.sweeper = Sweeper(
            self.holdings,
            self.folders,
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


def test_what_nothing_needs_goes_and_what_is_served_kept_or_under_way_stays(place: Place) -> None:
    place.busy = {9}
    place.holdings.apply([SPACE])
    place.sweeper.sweep()
    assert place.there() == {"builds/7", "builds/8", "builds/9", "checkpoints/8", "checkpoints/9", "checkpoints/9.making"}
    assert not (place.folders.build(1, 7) / "scratch").exists()
    assert (place.folders.build(1, 7) / "file.bin").exists()
    place.busy = set()
    place.holdings.apply([replace(SPACE, versions=(), kept_jobs=())])
    place.sweeper.sweep()
    assert place.there() == set()
    place.holdings.close()


def test_an_export_that_nobody_goes_on_with_goes_and_a_finished_one_is_not_ours(place: Place) -> None:
    place.busy = {9}
    place.holdings.apply([SPACE])
    for name in ("shop-v3-job7", "shop-v3-job8", "shop-v3-job9", "shop-v3-job10", "other-v1-job2", "notes"):
        (place.folders.exports / name).mkdir(parents=True)
        (place.folders.exports / name / "part-0.parquet.making").write_bytes(b"1")
    (place.folders.exports / "other-v1-job2" / "manifest-s1.json").write_bytes(b"{}")
    place.sweeper.sweep()
    assert {path.name for path in place.folders.exports.iterdir()} == {"shop-v3-job8", "shop-v3-job9", "other-v1-job2", "notes"}
    place.holdings.close()


def test_nothing_goes_before_metad_was_heard(place: Place) -> None:
    before = place.there()
    place.sweeper.start()
    place.sweeper.nudge()
    let_pass(0.3)
    assert place.there() == before
    place.holdings.apply([SPACE])
    place.sweeper.wake()
    end = time.monotonic() + HANG_S
    while "builds/6" in place.there():
        assert time.monotonic() < end
        time.sleep(0.01)
    place.sweeper.stop()
    place.holdings.close()


def test_a_space_that_is_not_named_goes_whole_once_no_build_is_left_in_it(place: Place) -> None:
    place.holdings.apply([SPACE])
    place.busy = {9}
    place.holdings.apply([])
    place.sweeper.sweep()
    assert place.folders.space(1).exists(), "its child is not reaped yet"
    place.busy = set()
    place.sweeper.sweep()
    assert list(place.folders.spaces.iterdir()) == []


def test_a_space_that_can_not_be_opened_is_left_alone(place: Place) -> None:
    place.folders.graph(1).write_bytes(b"not a database")
    before = place.there()
    place.holdings.apply([SPACE])
    assert "can not be opened" in place.holdings.missing()[0]
    place.sweeper.sweep()
    assert place.there() == before


def test_what_another_process_reads_stays_until_it_has_read(place: Place) -> None:
    place.holdings.apply([SPACE])
    lock = os.open(place.folders.build(1, 6), os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    place.sweeper.sweep()
    assert "builds/6" in place.there()
    assert "builds/9" not in place.there()
    os.close(lock)
    place.sweeper.sweep()
    assert "builds/6" not in place.there()
    place.holdings.close()


def test_arrays_that_are_mapped_keep_their_content_when_their_files_go(place: Place) -> None:
    place.holdings.apply([SPACE])
    mapped = np.memmap(place.folders.build(1, 6) / "file.bin", np.uint8, "r")
    place.sweeper.sweep()
    assert "builds/6" not in place.there()
    assert bytes(mapped) == b"1234"
    place.holdings.close()


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
