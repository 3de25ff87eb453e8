"""A build that ends in the middle of any step goes on after the last one that was finished, to the same bytes."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import zygote
from tests.kit.building import Op, write_loads
from tests.kit.waiting import HANG_S

from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from storaged.store import graph, keys
from storaged.store.engine import RocksEngine
from storaged.store.graph import GraphStore
from storaged.store.tables import FAMILIES, SCRATCH_ROWS

NODES, EDGES = 10 * SCRATCH_ROWS, 2 * SCRATCH_ROWS
SCHEMA = Schema(
    node_types=(NodeType(name="a", weighted=True, features=(Feature(name="x"),)),),
    edge_types=(EdgeType(src_type="a", relation="r", dst_type="a", weighted=True, features=(Feature(name="y"),)),),
    parts=1,
    direction="both",
)


@dataclass(frozen=True)
class Attempt:
    """What one run of a build said."""

    code: int
    lines: list[dict[str, Any]]

    def steps(self, how: str) -> list[str]:
        """The steps that were ``kept``, ``begun``, ``done`` ..., in order."""
        return [str(line["step"]) for line in self.lines if line.get("is") == how]

    @property
    def finished(self) -> dict[str, Any]:
        assert "finished" in self.lines[-1], self.lines[-1]
        return dict(self.lines[-1]["finished"])


def attempt(task: Path, step: str = "", events: int = -1, *, largest_file: int = 0) -> Attempt:
    """Run the build; it kills itself after so many events of a step."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    arguments = ["tests.kit.killed_build", str(task), step, str(events)]
    if largest_file:
        done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=HANG_S, preexec_fn=limit)
    else:
        done = zygote.run(*arguments)
    return Attempt(done.returncode, [json.loads(line) for line in done.stdout.splitlines()])


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task whose every step is recorded, and whose sweep is so after every block."""
    folder = tmp_path_factory.mktemp("resumed")
    rng = np.random.default_rng(4)
    ids, eids = np.arange(NODES), np.arange(EDGES)
    ends = {"src": rng.integers(0, NODES, EDGES), "dst": rng.integers(0, NODES, EDGES), "eid": eids}
    loads = [
        [
            Op(kind=graph.NODES, type_id=0, arrays={"ids": ids, "weight": rng.random(NODES, np.float32) ** 4, "f:x": ids.astype(np.float32)}),
            Op(kind=graph.OUT_EDGES, type_id=0, arrays={**ends, "weight": rng.random(EDGES, np.float32), "f:y": eids.astype(np.float32)}),
        ]
    ]
    store = GraphStore.open(folder / "graph", SCHEMA)
    write_loads(store, SCHEMA, loads)
    store.checkpoint(folder / "checkpoint")
    store.close()
    content = {"space_id": 1, "schema": SCHEMA.to_dict(), "parts": [0], "cut": 1, "loads": [1], "memory_limit_mib": 64, "checkpoint_rows": 1}
    content |= {"indexes": [{"element": 1, "type_id": 0, "column": "x", "kind": "range"}]}
    content |= {"checkpoint": str(folder / "checkpoint"), "output": str(folder / "out")}
    (folder / "task.json").write_text(json.dumps(content))
    return folder / "task.json"


@pytest.fixture
def output(task: Path) -> Path:
    """An empty folder to build in."""
    shutil.rmtree(task.parent / "out", ignore_errors=True)
    return task.parent / "out"


@pytest.fixture(scope="module")
def whole(task: Path) -> Attempt:
    """A build that nothing interrupts."""
    shutil.rmtree(task.parent / "out", ignore_errors=True)
    done = attempt(task)
    assert done.code == 0
    return done


@pytest.fixture(scope="module")
def whole_tables(task: Path, whole: Attempt) -> list[tuple[bytes, bytes]]:
    """The final tables of such a build."""
    shutil.rmtree(task.parent / "out", ignore_errors=True)
    attempt(task)
    return tables(task.parent / "out")


def events_of(whole: Attempt) -> dict[str, int]:
    return {str(line["step"]): int(line["events"]) for line in whole.lines if line.get("is") == "done"}


def tables(output: Path) -> list[tuple[bytes, bytes]]:
    engine = RocksEngine(output / "stat", FAMILIES)
    found = list(engine.scan(keys.TABLES, b"", None))
    left = [next(engine.scan(family, b"", None), None) for family in (keys.SCRATCH, keys.STEPS)]
    engine.close()
    assert left == [None, None]
    return found


@pytest.mark.parametrize(
    "kind", [("n0.",), ("e0.out.", "e0.in."), ("e0.table.", "e0.hygiene", "e0.weights", "e0.features")], ids=["nodes", "adjacency", "edge table"]
)
def test_a_build_killed_in_each_of_its_steps_repeats_none_that_was_finished(
    task: Path, whole: Attempt, whole_tables: list[tuple[bytes, bytes]], output: Path, kind: tuple[str, ...]
) -> None:
    made, events = whole.steps("done"), events_of(whole)
    assert len(made) == len(set(made)) == 25
    before = 0
    for i, step in enumerate(made):
        if step.startswith(kind):
            killed = attempt(task, f"0/{step}", events[step] // 2)
            assert killed.code == -signal.SIGKILL
            # What the attempt before finished is not looked at again; the step that it died in is made.
            assert killed.steps("kept") == made[:before]
            assert killed.steps("done") == made[before:i]
            assert killed.steps("begun") == made[before : i + 1]
            before = i
    last = attempt(task)
    assert (last.steps("kept"), last.steps("done")) == (made[:before], made[before:])
    assert last.finished == whole.finished
    assert tables(output) == whole_tables


def test_a_build_killed_as_it_seals_a_part_only_seals_it(task: Path, whole: Attempt, whole_tables: list[tuple[bytes, bytes]], output: Path) -> None:
    made = whole.steps("done")
    assert attempt(task, "seal", 0).code == -signal.SIGKILL
    last = attempt(task)
    assert (last.steps("kept"), last.steps("begun")) == (made, [])
    assert last.finished == whole.finished
    assert tables(output) == whole_tables


def blocks_at(made: Attempt, step: str, how: str) -> list[int]:
    """Blocks of tables that an attempt had written each time it said so of a step."""
    return [int(line["blocks"]) for line in made.lines if line.get("step") == step and line["is"] == how]


def test_a_sweep_killed_between_its_checkpoints_goes_on_from_the_last(task: Path, whole: Attempt, output: Path) -> None:
    step = "n0.table.sweep"
    (begun,), (done,) = (blocks_at(whole, step, how) for how in ("begun", "done"))
    every = done - begun
    marks = len(blocks_at(whole, step, "checkpoint"))
    assert marks >= 4
    recorded = 0
    for share in (0.4, 0.7):
        killed = attempt(task, f"0/{step}", int(every * share) - recorded)
        assert killed.code == -signal.SIGKILL
        (begun,), checkpoints = blocks_at(killed, step, "begun"), blocks_at(killed, step, "checkpoint")
        assert checkpoints, "it was killed before its first checkpoint"
        recorded += checkpoints[-1] - begun
    last = attempt(task)
    (begun,), (done,) = (blocks_at(last, step, how) for how in ("begun", "done"))
    # What was recorded and what was left come to one sweep: nothing was swept twice, but for what no checkpoint had.
    assert recorded + done - begun == every
    assert last.finished == whole.finished


@pytest.mark.parametrize("how", ["a byte of a file", "a file that is missing", "a file that is short"])
def test_a_step_whose_file_is_damaged_is_made_again_and_those_after_it(task: Path, whole: Attempt, output: Path, how: str) -> None:
    attempt(task, "0/e0.in.edges", 0)
    file = output / "parts/p00000/e0.out.eid.bin"
    content = file.read_bytes()
    file.unlink()
    if how == "a byte of a file":
        file.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    elif how == "a file that is short":
        file.write_bytes(content[:-1])
    again = attempt(task)
    made = whole.steps("done")
    first = made.index("e0.out.edges")
    assert (again.steps("kept"), again.steps("done")) == (made[:first], made[first:])
    assert again.finished == whole.finished


@pytest.mark.parametrize(
    ("ended", "kind", "first"), [("sweep", keys.B3, "classify"), ("audit", keys.B1, "scan")], ids=["of scratch", "that is final, its scratch gone"]
)
def test_a_step_whose_table_is_damaged_is_made_again_and_those_after_it(
    task: Path, whole: Attempt, output: Path, ended: str, kind: int, first: str
) -> None:
    attempt(task, f"0/n0.table.{ended}", 0)
    engine = RocksEngine(output / "stat", FAMILIES)
    key = keys.table_key(keys.table_prefix(0, kind, 0, "weight"), 2)
    family = keys.TABLES if kind == keys.B1 else keys.SCRATCH
    value = engine.get(family, key)
    assert value is not None
    engine.write([(family, key, value[:-1] + bytes([value[-1] ^ 1]))])
    engine.close()
    again = attempt(task)
    made = whole.steps("done")
    assert again.steps("done") == made[made.index(f"n0.table.{first}") :]
    assert again.finished == whole.finished


def test_steps_of_another_input_are_not_gone_on_from(task: Path, whole: Attempt, output: Path) -> None:
    attempt(task, "0/e0.out.edges", 0)
    other = task.with_name("other.json")
    other.write_text(json.dumps(json.loads(task.read_text()) | {"loads": [], "cut": 0}))
    empty = attempt(other)
    assert empty.steps("kept") == []
    assert {total["count"] for total in empty.finished["totals"]} == {0}


def test_a_build_that_the_disk_refuses_goes_on_once_it_does_not(task: Path, whole: Attempt, output: Path) -> None:
    """No file may be larger than a mebibyte and a half: the edges are the first that are."""
    refused = attempt(task, largest_file=3 << 19)
    assert refused.code == 1
    assert "failed" in refused.lines[-1]
    assert refused.steps("done")
    assert not (output / "scratch").exists()
    again = attempt(task)
    assert again.steps("kept") == refused.steps("done")
    assert again.finished == whole.finished


def test_a_stat_database_that_can_not_be_opened_is_made_anew(task: Path, whole: Attempt, output: Path) -> None:
    attempt(task, "0/e0.out.edges", 0)
    (output / "stat/CURRENT").write_text("MANIFEST-000000\n")
    again = attempt(task)
    assert again.steps("kept") == []
    assert again.finished == whole.finished


@pytest.mark.parametrize("gone", [False, True], ids=["still there", "gone"])
def test_a_build_killed_after_it_linked_goes_on_whether_its_source_is(task: Path, whole: Attempt, output: Path, gone: bool) -> None:
    attempt(task)
    source, other = task.with_name("source"), task.with_name("linking.json")
    shutil.rmtree(source, ignore_errors=True)
    output.rename(source)
    (source / "parts/p00000/e0.in.eid.bin").unlink()  # so that one unit can not be linked
    other.write_text(json.dumps(json.loads(task.read_text()) | {"sources": [str(source)]}))
    killed = attempt(other, "0/e0.in.alias", 0)
    assert (killed.code, killed.steps("done")) == (-signal.SIGKILL, ["e0.in.edges", "e0.in.narrow"])
    if gone:
        shutil.rmtree(source)
    last = attempt(other)
    assert last.steps("kept") == ["e0.in.edges", "e0.in.narrow"]
    assert (last.steps("done") == ["e0.in.alias", "e0.in.packed"]) is not gone
    assert last.finished["images"] == whole.finished["images"]
