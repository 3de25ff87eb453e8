"""Garbage collection of a storaged.

Data that a removal order names goes to quarantine. Of its own leftovers, a storaged removes only
what it created itself.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.kit.waiting import wait_until

from asterism_model.schema import NodeType, Schema
from asterism_model.storage_removals import RemovalKind, RemovalRequest
from asterism_proto.errors import Conflict, Unavailable
from storaged.local_spaces import DesiredSpace, DesiredVersion, LocalSpaces
from storaged.maintenance.garbage_collector import GarbageCollector
from storaged.paths import DataPaths
from storaged.quarantine import Quarantine, main
from storaged.store.block_store import NODES, Block, BlockStore

VERSION = DesiredVersion(
    version=3, job_id=7, digest="d", totals={}, named_totals={}, images={0: "e"}
)
SPACE = DesiredSpace(
    space_id=1,
    name="shop",
    schema=Schema(node_types=(NodeType(name="item"),), parts=1),
    parts=(0,),
    versions=(VERSION,),
    kept_jobs=(8,),
)


class Harness:
    """A data folder with leftovers of every kind, and its garbage collector."""

    def __init__(
        self,
        data: Path,
        *,
        interval_s: float = 3600.0,
        grace_s: float = 100.0,
        limit_bytes: int = 1 << 40,
        free_bytes: int = 0,
    ) -> None:
        self.paths = DataPaths(data)
        self.now_s = 1_700_000_000.0
        self.wall_s = 1_700_000_000.0
        self.quarantine = Quarantine(
            self.paths,
            grace_s=grace_s,
            limit_bytes=limit_bytes,
            free_bytes=free_bytes,
            now=lambda: self.wall_s,
            monotonic=lambda: self.now_s,
        )
        self.is_following = True
        self.busy_jobs: set[int] = set()
        self.dead_loads: Callable[[int, Sequence[int]], Sequence[int]] = lambda space_id, loads: []
        self.local_spaces = LocalSpaces(self.paths, self.quarantine)
        self.collector = GarbageCollector(
            self.local_spaces,
            self.paths,
            quarantine=self.quarantine,
            is_following=lambda: self.is_following,
            busy_jobs=lambda space_id: self.busy_jobs if space_id == 1 else set(),
            query_dead_loads=lambda space_id, loads: self.dead_loads(space_id, loads),
            interval_s=interval_s,
            on_change=lambda: None,
        )

    def make_folders(self, *names: str) -> None:
        for name in names:
            path = self.paths.space(1) / name
            path.mkdir(parents=True)
            (path / "file.bin").write_bytes(b"1234")

    def run_removals(self, *removals: tuple[RemovalKind, int], space_id: int = 1) -> None:
        """Execute removal orders, given as (kind, job) and numbered from 1."""
        self.collector.set_removals(
            [
                RemovalRequest(
                    removal_id=number, kind=kind, space_id=space_id, job_id=job_id, reason="test"
                )
                for number, (kind, job_id) in enumerate(removals, start=1)
            ]
        )
        self.collector.collect()

    def quarantined(self) -> list[str]:
        return sorted(entry.origin for entry in self.quarantine.entries())

    def job_folders(self) -> set[str]:
        return {
            str(path.relative_to(self.paths.space(1)))
            for kind in ("builds", "checkpoints")
            for path in self.paths.space(1).glob(f"{kind}/*")
        }


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path)
    harness.make_folders(
        "builds/6",
        "builds/7",
        "builds/7/scratch",
        "builds/8",
        "builds/9",
        "builds/5.gone",
        "builds/odd",
    )
    harness.make_folders(
        "checkpoints/7",
        "checkpoints/8",
        "checkpoints/8.making",
        "checkpoints/9",
        "checkpoints/9.making",
    )
    return harness


def test_unreferenced_folders_stay_and_are_reported(harness: Harness) -> None:
    harness.busy_jobs = {9}
    harness.local_spaces.apply([SPACE])
    harness.collector.collect()
    remaining = {
        "builds/6",
        "builds/7",
        "builds/8",
        "builds/9",
        "builds/odd",
        "checkpoints/7",
        "checkpoints/8",
        "checkpoints/9",
        "checkpoints/9.making",
    }
    assert harness.job_folders() == remaining, (
        "but for half-made folders without a task, which are this storaged's own"
    )
    assert not (harness.paths.build(1, 7) / "scratch").exists()
    assert set(harness.collector.unreferenced) == {"spaces/1/builds/6", "spaces/1/builds/odd"}
    harness.busy_jobs = set()
    harness.local_spaces.apply([replace(SPACE, versions=(), kept_jobs=())])
    harness.collector.collect()
    assert harness.job_folders() == remaining - {"checkpoints/9.making"}
    harness.local_spaces.apply([])
    harness.collector.collect()
    assert harness.collector.unreferenced == ("spaces/1",)
    assert harness.quarantined() == []
    harness.local_spaces.close()


def test_removal_moves_named_folders_into_quarantine(harness: Harness) -> None:
    harness.local_spaces.apply([SPACE])
    harness.run_removals((RemovalKind.BUILD, 6), (RemovalKind.LEFTOVERS, 9), (RemovalKind.BUILD, 4))
    assert harness.collector.removed_ids() == [1, 2, 3], "one that names nothing here is done too"
    assert harness.quarantined() == [
        "spaces/1/builds/6",
        "spaces/1/checkpoints/9",
        "spaces/1/checkpoints/9.making",
    ]
    assert "builds/9" in harness.job_folders()
    harness.collector.set_removals([])
    assert harness.collector.removed_ids() == [], "it is not said for longer than metad asks"
    harness.local_spaces.close()


def test_removal_waits_while_its_folder_is_needed(harness: Harness) -> None:
    harness.busy_jobs = {9}
    harness.local_spaces.apply([SPACE])
    before = harness.job_folders() - {"builds/5.gone", "checkpoints/8.making"}
    contradictions = (
        (RemovalKind.BUILD, 7),
        (RemovalKind.BUILD, 8),
        (RemovalKind.LEFTOVERS, 8),
        (RemovalKind.BUILD, 9),
        (RemovalKind.LEFTOVERS, 9),
        (RemovalKind.SPACE, 0),
    )
    harness.run_removals(*contradictions)
    assert (harness.job_folders(), harness.collector.removed_ids()) == (before, [])
    harness.busy_jobs = set()
    harness.local_spaces.apply([])
    harness.run_removals(*contradictions)
    assert harness.collector.removed_ids() == [1, 2, 3, 4, 5, 6]
    assert not harness.paths.space(1).exists()


def test_dropped_space_is_quarantined_and_restorable(harness: Harness) -> None:
    harness.local_spaces.apply([SPACE])
    harness.local_spaces.store(1).write([block(4)])
    harness.local_spaces.apply([])
    harness.busy_jobs = {9}
    harness.run_removals((RemovalKind.SPACE, 0))
    assert harness.paths.space(1).exists(), "its child is not reaped yet"
    harness.busy_jobs = set()
    harness.collector.collect()
    assert not harness.paths.space(1).exists()
    assert harness.quarantined() == ["spaces/1"]
    harness.local_spaces.apply([SPACE])
    assert harness.quarantined() == []
    assert harness.local_spaces.store(1).loads() == [4]
    harness.local_spaces.close()


def test_removal_takes_unfinished_exports_only(harness: Harness) -> None:
    harness.local_spaces.apply([SPACE])
    for name in ("shop-v3-job9", "shop-v3-job10", "other-v1-job2", "notes"):
        (harness.paths.exports / name).mkdir(parents=True)
        (harness.paths.exports / name / "part-0.parquet.making").write_bytes(b"1")
    (harness.paths.exports / "other-v1-job2" / "manifest-s1.json").write_bytes(b"{}")
    harness.run_removals((RemovalKind.LEFTOVERS, 9), (RemovalKind.LEFTOVERS, 2))
    assert {path.name for path in harness.paths.exports.iterdir()} == {
        "shop-v3-job10",
        "other-v1-job2",
        "notes",
    }
    harness.local_spaces.close()


def test_nothing_is_removed_without_following_metad(harness: Harness) -> None:
    before = harness.job_folders()
    harness.is_following = False
    harness.collector.start()
    harness.collector.recheck()
    harness.local_spaces.apply([SPACE])
    harness.collector.set_removals(
        [RemovalRequest(removal_id=1, kind=RemovalKind.BUILD, space_id=1, job_id=6)]
    )
    harness.collector.wake()
    harness.collector.stop()
    assert harness.job_folders() == before
    harness.local_spaces.close()


def test_locked_build_stays_until_its_reader_closes(harness: Harness) -> None:
    harness.local_spaces.apply([SPACE])
    lock = os.open(harness.paths.build(1, 6), os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    harness.run_removals((RemovalKind.BUILD, 6), (RemovalKind.BUILD, 9))
    assert "builds/6" in harness.job_folders()
    assert "builds/9" not in harness.job_folders()
    assert harness.collector.removed_ids() == [2]
    os.close(lock)
    harness.collector.collect()
    assert "builds/6" not in harness.job_folders()
    harness.local_spaces.close()


def test_mapped_arrays_outlive_their_deleted_files(harness: Harness) -> None:
    harness.local_spaces.apply([SPACE])
    mapped = np.memmap(harness.paths.build(1, 6) / "file.bin", np.uint8, "r")
    harness.run_removals((RemovalKind.BUILD, 6))
    harness.now_s += 1000
    assert len(harness.quarantine.purge()) == 1
    assert list(harness.paths.quarantine.iterdir()) == []
    assert bytes(mapped) == b"1234"
    harness.local_spaces.close()


def test_quarantine_expires_by_age_and_by_size_oldest_first(tmp_path: Path) -> None:
    harness = Harness(tmp_path, limit_bytes=10 << 10)
    harness.local_spaces.apply([SPACE])
    for job in (20, 21, 22):
        harness.make_folders(f"builds/{job}")
        (harness.paths.build(1, job) / "file.bin").write_bytes(b"1" * 4096)
        harness.quarantine.add(harness.paths.build(1, job), "test")
        harness.now_s += 10
    assert [entry.origin for entry in harness.quarantine.purge()] == ["spaces/1/builds/20"]
    harness.quarantine.close()
    restarted = Harness(tmp_path)
    assert restarted.quarantined() == ["spaces/1/builds/21", "spaces/1/builds/22"], (
        "a restart knows them"
    )
    restarted.now_s += 81  # 30 s passed before the restart
    assert [entry.origin for entry in restarted.quarantine.purge()] == ["spaces/1/builds/21"]
    low_on_disk = Harness(tmp_path, free_bytes=1 << 62)
    assert [entry.origin for entry in low_on_disk.quarantine.purge()] == ["spaces/1/builds/22"], (
        "the disk is short of space"
    )
    harness.make_folders("builds/23")
    low_on_disk.quarantine.add(harness.paths.build(1, 23), "test")
    assert low_on_disk.quarantined() == []
    low_on_disk.quarantine.purge()
    assert list((harness.paths.space(1) / "builds").iterdir()) == [], "it goes at once"
    harness.local_spaces.close()


def test_wall_clock_changes_do_not_end_quarantine(tmp_path: Path) -> None:
    day_s = 86_400.0
    harness = Harness(tmp_path, grace_s=day_s)
    harness.local_spaces.apply([SPACE])
    harness.wall_s = 0.0  # a clock that is not set yet
    harness.make_folders("builds/20")
    harness.quarantine.add(harness.paths.build(1, 20), "test")
    for wall_s in (1_700_000_000.0, 1_700_000_000.0 + 10 * day_s, 0.0):
        harness.wall_s = wall_s
        assert harness.quarantine.purge() == []
        harness.now_s += day_s / 8
        harness.quarantine.close()
        harness = Harness(tmp_path, grace_s=day_s)  # restart
        harness.wall_s = wall_s
        assert harness.quarantine.purge() == []
    harness.now_s += day_s / 2
    assert harness.quarantine.purge() == []
    harness.now_s += day_s / 8 + 1
    assert [entry.origin for entry in harness.quarantine.purge()] == ["spaces/1/builds/20"], (
        "a day that storageds have run"
    )


@pytest.mark.parametrize("content", ["", "1000000000 1", "x", None])
def test_damaged_running_time_does_not_end_quarantine(tmp_path: Path, content: str | None) -> None:
    harness = Harness(tmp_path)
    harness.now_s += 50
    harness.make_folders("builds/20")
    harness.quarantine.add(harness.paths.build(1, 20), "test")
    harness.quarantine.purge()
    if content is None:
        harness.paths.running_time.unlink()
    else:
        harness.paths.running_time.write_text(content)
    restarted = Harness(tmp_path)
    assert restarted.quarantine.purge() == []
    restarted.now_s += 101
    assert len(restarted.quarantine.purge()) == 1


def test_an_entry_cut_off_by_a_crash_is_cleared(harness: Harness) -> None:
    harness.local_spaces.apply([SPACE])
    harness.make_folders("builds/20")
    harness.quarantine.add(harness.paths.build(1, 20), "test")
    (name,) = [entry.name for entry in harness.quarantine.entries()]
    (harness.paths.quarantine / name / "data").rename(harness.paths.quarantine / name / "gone")
    restarted = Harness(harness.paths.data)
    assert restarted.quarantined() == []
    restarted.quarantine.purge()
    assert list(harness.paths.quarantine.iterdir()) == []
    harness.local_spaces.close()


def test_an_entry_is_listed_and_restored_by_hand(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.make_folders("builds/20")
    harness.quarantine.add(harness.paths.build(1, 20), "test")
    (name,) = [entry.name for entry in harness.quarantine.entries()]
    data = ["--data", str(harness.paths.data)]
    assert main([*data, "list"]) == 0
    assert f'"name": "{name}"' in capsys.readouterr().out
    assert main([*data, "restore", "other"]) == 2
    assert main([*data, "restore", name]) == 0
    assert "builds/20" in harness.job_folders()
    assert main([*data, "restore", name]) == 2
    stderr = capsys.readouterr().err
    assert f"expected an entry of {harness.paths.quarantine}" in stderr
    assert f"--data {harness.paths.data} list" in stderr


def test_abandoned_loads_are_copied_before_deletion(harness: Harness) -> None:
    harness.local_spaces.apply([SPACE])
    store = harness.local_spaces.store(1)
    for load_id in (4, 5):
        store.write([block(load_id)])
    harness.collector.set_removals(
        [
            RemovalRequest(
                removal_id=1, kind=RemovalKind.LOADS, space_id=1, loads=(5, 9), reason="test"
            )
        ]
    )
    harness.collector.collect()
    assert store.loads() == [4]
    (entry,) = harness.quarantine.entries()
    assert entry.origin == "spaces/1/graph"
    copy = BlockStore.open(
        harness.paths.quarantine / entry.name / "data", SPACE.schema, read_only=True
    )
    assert copy.loads() == [4, 5]
    copy.close()
    harness.local_spaces.close()


def test_unreadable_space_is_left_alone(harness: Harness) -> None:
    harness.paths.graph(1).write_bytes(b"not a database")
    before = harness.job_folders()
    harness.local_spaces.apply([SPACE])
    assert "cannot be opened" in harness.local_spaces.unserved_reasons()[0]
    harness.run_removals((RemovalKind.SPACE, 0))
    assert harness.job_folders() == before
    assert harness.collector.unreferenced == ()


def block(load_id: int) -> Block:
    return Block(
        load_id=load_id, chunk=0, kind=NODES, type_id=0, part=0, arrays={"ids": np.arange(5)}
    )


def test_abandoned_load_is_dropped_reported_and_closed(harness: Harness) -> None:
    harness.local_spaces.apply([SPACE])
    store = harness.local_spaces.store(1)
    for load_id in (4, 5, 6):
        store.write([block(load_id)])
    assert store.loads() == [4, 5, 6]
    assert harness.local_spaces.dropped_loads() == []
    harness.local_spaces.apply([replace(SPACE, abandoned_loads=(5, 77))])
    harness.collector.drop_loads()
    assert harness.local_spaces.dropped_loads() == [5, 77]
    assert store.loads() == [4, 6]
    with pytest.raises(Conflict, match="load 5 was abandoned"):
        store.write([block(4), block(5)])
    harness.local_spaces.apply([replace(SPACE, abandoned_loads=(77,))])
    assert harness.local_spaces.dropped_loads() == [77], "what metad does not ask about is not said"
    harness.local_spaces.close()


def test_load_is_reported_dropped_after_all_spaces_checked(harness: Harness) -> None:
    other = replace(SPACE, space_id=2, name="other", versions=(), abandoned_loads=(5,))
    harness.paths.graph(2).parent.mkdir(parents=True)
    harness.paths.graph(2).write_bytes(b"not a database")
    harness.local_spaces.apply([replace(SPACE, abandoned_loads=(5,)), other])
    harness.collector.drop_loads()
    assert harness.local_spaces.dropped_loads() == []
    harness.local_spaces.close()


def test_loads_that_metad_reports_dead_are_deleted(harness: Harness) -> None:
    queries = []

    def dead_loads(space_id: int, loads: Sequence[int]) -> Sequence[int]:
        queries.append((space_id, list(loads)))
        return [6]

    harness.dead_loads = dead_loads
    harness.local_spaces.apply([SPACE])
    store = harness.local_spaces.store(1)
    for load_id in (4, 6):
        store.write([block(load_id)])
    harness.collector.find_dead_loads()
    assert queries == [(1, [4, 6])]
    assert store.loads() == [4]
    harness.local_spaces.close()


def test_dead_load_query_is_retried(tmp_path: Path) -> None:
    harness = Harness(tmp_path, interval_s=0.05)
    replies = iter([Unavailable("no metad"), []])

    def dead_loads(space_id: int, loads: Sequence[int]) -> Sequence[int]:
        reply = next(replies, [6])
        if isinstance(reply, Exception):
            raise reply
        return reply

    harness.dead_loads = dead_loads
    harness.local_spaces.apply([SPACE])
    harness.local_spaces.store(1).write([block(6)])
    harness.collector.start()
    harness.collector.wake()
    wait_until(lambda: not harness.local_spaces.store(1).loads(), "the dead load is gone")
    harness.collector.stop()
    harness.local_spaces.close()
