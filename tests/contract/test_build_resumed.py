"""A build killed in any step resumes after its last finished step.

The resumed build writes the same bytes as an uninterrupted one.
"""

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

from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from storaged.store import block_store, keys
from storaged.store.alias_table_store import FAMILIES, SCRATCH_ROWS
from storaged.store.block_store import BlockStore
from storaged.store.engine import RocksEngine

NODES, EDGES = 10 * SCRATCH_ROWS, 2 * SCRATCH_ROWS
SCHEMA = Schema(
    node_types=(NodeType(name="a", weighted=True, features=(Feature(name="x"),)),),
    edge_types=(
        EdgeType(
            src_type="a", relation="r", dst_type="a", weighted=True, features=(Feature(name="y"),)
        ),
    ),
    parts=1,
    direction="both",
)


@dataclass(frozen=True)
class Attempt:
    """Exit code and output lines of one build process."""

    code: int
    lines: list[dict[str, Any]]

    def steps(self, status: str) -> list[str]:
        """Return the steps reported with a status such as ``kept``, ``begun`` or ``done``."""
        return [str(line["step"]) for line in self.lines if line.get("is") == status]

    @property
    def result(self) -> dict[str, Any]:
        assert "finished" in self.lines[-1], self.lines[-1]
        return dict(self.lines[-1]["finished"])


def run_attempt(task: Path, step: str = "", events: int = -1, *, largest_file: int = 0) -> Attempt:
    """Run the build; it kills itself after `events` events of `step`."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    arguments = ["tests.kit.killed_build", str(task), step, str(events)]
    if largest_file:
        completed = subprocess.run(
            [sys.executable, "-m", *arguments],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            preexec_fn=limit,
        )
    else:
        completed = zygote.run(*arguments)
    return Attempt(
        completed.returncode, [json.loads(line) for line in completed.stdout.splitlines()]
    )


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a task that records every step and checkpoints its sweep after every block."""
    folder = tmp_path_factory.mktemp("resumed")
    rng = np.random.default_rng(4)
    ids, eids = np.arange(NODES), np.arange(EDGES)
    ends = {"src": rng.integers(0, NODES, EDGES), "dst": rng.integers(0, NODES, EDGES), "eid": eids}
    loads = [
        [
            Op(
                kind=block_store.NODES,
                type_id=0,
                arrays={
                    "ids": ids,
                    "weight": rng.random(NODES, np.float32) ** 4,
                    "f:x": ids.astype(np.float32),
                },
            ),
            Op(
                kind=block_store.OUT_EDGES,
                type_id=0,
                arrays={
                    **ends,
                    "weight": rng.random(EDGES, np.float32),
                    "f:y": eids.astype(np.float32),
                },
            ),
        ]
    ]
    store = BlockStore.open(folder / "graph", SCHEMA)
    write_loads(store, SCHEMA, loads)
    store.checkpoint(folder / "checkpoint")
    store.close()
    content = {
        "space_id": 1,
        "schema": SCHEMA.to_dict(),
        "parts": [0],
        "watermark": 1,
        "loads": [1],
        "memory_limit_mib": 64,
        "checkpoint_rows": 1,
    }
    content |= {"indexes": [{"element": 1, "type_id": 0, "column": "x", "kind": "range"}]}
    content |= {"checkpoint": str(folder / "checkpoint"), "output": str(folder / "out")}
    (folder / "task.json").write_text(json.dumps(content))
    return folder / "task.json"


@pytest.fixture
def output(task: Path) -> Path:
    """Return an empty folder to build in."""
    shutil.rmtree(task.parent / "out", ignore_errors=True)
    return task.parent / "out"


@pytest.fixture(scope="module")
def full_run(task: Path) -> Attempt:
    """Return the result of an uninterrupted build."""
    shutil.rmtree(task.parent / "out", ignore_errors=True)
    finished_run = run_attempt(task)
    assert finished_run.code == 0
    return finished_run


@pytest.fixture(scope="module")
def full_run_tables(task: Path, full_run: Attempt) -> list[tuple[bytes, bytes]]:
    """Return the final tables of an uninterrupted build."""
    shutil.rmtree(task.parent / "out", ignore_errors=True)
    run_attempt(task)
    return read_tables(task.parent / "out")


def events_of(run: Attempt) -> dict[str, int]:
    return {
        str(line["step"]): int(line["events"]) for line in run.lines if line.get("is") == "done"
    }


def read_tables(output: Path) -> list[tuple[bytes, bytes]]:
    engine = RocksEngine(output / "stat", FAMILIES)
    entries = list(engine.scan(keys.TABLES, b"", None))
    leftovers = [
        next(engine.scan(family, b"", None), None) for family in (keys.SCRATCH, keys.STEPS)
    ]
    engine.close()
    assert leftovers == [None, None]
    return entries


@pytest.mark.parametrize(
    "kind",
    [
        ("n0.",),
        ("e0.out.", "e0.in."),
        ("e0.table.", "e0.weight_stats", "e0.weights", "e0.features"),
    ],
    ids=["nodes", "adjacency", "edge table"],
)
def test_build_killed_in_each_step_repeats_no_finished_step(
    task: Path,
    full_run: Attempt,
    full_run_tables: list[tuple[bytes, bytes]],
    output: Path,
    kind: tuple[str, ...],
) -> None:
    steps, events = full_run.steps("done"), events_of(full_run)
    assert len(steps) == len(set(steps)) == 25
    first_unfinished = 0
    for i, step in enumerate(steps):
        if step.startswith(kind):
            killed = run_attempt(task, f"0/{step}", events[step] // 2)
            assert killed.code == -signal.SIGKILL
            # Steps that the attempt before finished are kept. The step in which it was killed is
            # repeated.
            assert killed.steps("kept") == steps[:first_unfinished]
            assert killed.steps("done") == steps[first_unfinished:i]
            assert killed.steps("begun") == steps[first_unfinished : i + 1]
            first_unfinished = i
    last = run_attempt(task)
    assert (last.steps("kept"), last.steps("done")) == (
        steps[:first_unfinished],
        steps[first_unfinished:],
    )
    assert last.result == full_run.result
    assert read_tables(output) == full_run_tables


def test_build_killed_while_sealing_a_part_only_seals_it(
    task: Path, full_run: Attempt, full_run_tables: list[tuple[bytes, bytes]], output: Path
) -> None:
    steps = full_run.steps("done")
    assert run_attempt(task, "seal", 0).code == -signal.SIGKILL
    last = run_attempt(task)
    assert (last.steps("kept"), last.steps("begun")) == (steps, [])
    assert last.result == full_run.result
    assert read_tables(output) == full_run_tables


def blocks_at(run: Attempt, step: str, status: str) -> list[int]:
    """Return the number of table blocks written at each report of a step with this status."""
    return [
        int(line["blocks"])
        for line in run.lines
        if line.get("step") == step and line["is"] == status
    ]


def test_killed_sweep_resumes_from_its_last_checkpoint(
    task: Path, full_run: Attempt, output: Path
) -> None:
    step = "n0.table.sweep"
    (blocks_at_start,), (blocks_at_end,) = (
        blocks_at(full_run, step, status) for status in ("begun", "done")
    )
    block_count = blocks_at_end - blocks_at_start
    checkpoint_count = len(blocks_at(full_run, step, "checkpoint"))
    assert checkpoint_count >= 4
    recorded_blocks = 0
    for share in (0.4, 0.7):
        killed = run_attempt(task, f"0/{step}", int(block_count * share) - recorded_blocks)
        assert killed.code == -signal.SIGKILL
        (blocks_at_start,), checkpoints = (
            blocks_at(killed, step, "begun"),
            blocks_at(killed, step, "checkpoint"),
        )
        assert checkpoints, "it was killed before its first checkpoint"
        recorded_blocks += checkpoints[-1] - blocks_at_start
    last = run_attempt(task)
    (blocks_at_start,), (blocks_at_end,) = (
        blocks_at(last, step, status) for status in ("begun", "done")
    )
    # The recorded and the remaining blocks add up to one sweep: only blocks after the last
    # checkpoint are swept twice.
    assert recorded_blocks + blocks_at_end - blocks_at_start == block_count
    assert last.result == full_run.result


@pytest.mark.parametrize(
    "how", ["a byte of a file", "a file that is missing", "a file that is short"]
)
def test_steps_from_a_damaged_file_on_are_repeated(
    task: Path, full_run: Attempt, output: Path, how: str
) -> None:
    run_attempt(task, "0/e0.in.edges", 0)
    file = output / "parts/p00000/e0.out.eid.bin"
    content = file.read_bytes()
    file.unlink()
    if how == "a byte of a file":
        file.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    elif how == "a file that is short":
        file.write_bytes(content[:-1])
    resumed = run_attempt(task)
    steps = full_run.steps("done")
    first = steps.index("e0.out.edges")
    assert (resumed.steps("kept"), resumed.steps("done")) == (steps[:first], steps[first:])
    assert resumed.result == full_run.result


@pytest.mark.parametrize(
    ("ended", "kind", "first"),
    [("sweep", keys.B3, "classify"), ("audit", keys.B1, "scan")],
    ids=["of scratch", "that is final, its scratch gone"],
)
def test_steps_from_a_damaged_table_on_are_repeated(
    task: Path, full_run: Attempt, output: Path, ended: str, kind: int, first: str
) -> None:
    run_attempt(task, f"0/n0.table.{ended}", 0)
    engine = RocksEngine(output / "stat", FAMILIES)
    key = keys.table_key(keys.table_prefix(0, kind, 0, "weight"), 2)
    family = keys.TABLES if kind == keys.B1 else keys.SCRATCH
    value = engine.get(family, key)
    assert value is not None
    engine.write([(family, key, value[:-1] + bytes([value[-1] ^ 1]))])
    engine.close()
    resumed = run_attempt(task)
    steps = full_run.steps("done")
    assert resumed.steps("done") == steps[steps.index(f"n0.table.{first}") :]
    assert resumed.result == full_run.result


def test_steps_of_another_input_are_not_resumed(
    task: Path, full_run: Attempt, output: Path
) -> None:
    run_attempt(task, "0/e0.out.edges", 0)
    other = task.with_name("other.json")
    other.write_text(json.dumps(json.loads(task.read_text()) | {"loads": [], "watermark": 0}))
    empty = run_attempt(other)
    assert empty.steps("kept") == []
    assert {total["count"] for total in empty.result["totals"]} == {0}


def test_build_resumes_once_the_disk_accepts_writes(
    task: Path, full_run: Attempt, output: Path
) -> None:
    """Limit files to 1.5 MiB: the files of the edges are the first to exceed it."""
    refused = run_attempt(task, largest_file=3 << 19)
    assert refused.code == 1
    assert "failed" in refused.lines[-1]
    assert refused.steps("done")
    assert not (output / "scratch").exists()
    resumed = run_attempt(task)
    assert resumed.steps("kept") == refused.steps("done")
    assert resumed.result == full_run.result


def test_stat_database_that_cannot_be_opened_is_rebuilt(
    task: Path, full_run: Attempt, output: Path
) -> None:
    run_attempt(task, "0/e0.out.edges", 0)
    (output / "stat/CURRENT").write_text("MANIFEST-000000\n")
    resumed = run_attempt(task)
    assert resumed.steps("kept") == []
    assert resumed.result == full_run.result


@pytest.mark.parametrize("gone", [False, True], ids=["still there", "gone"])
def test_build_killed_after_linking_resumes_without_its_source(
    task: Path, full_run: Attempt, output: Path, gone: bool
) -> None:
    run_attempt(task)
    source, other = task.with_name("source"), task.with_name("linking.json")
    shutil.rmtree(source, ignore_errors=True)
    output.rename(source)
    (source / "parts/p00000/e0.in.eid.bin").unlink()  # so that one unit cannot be linked
    other.write_text(json.dumps(json.loads(task.read_text()) | {"sources": [str(source)]}))
    killed = run_attempt(other, "0/e0.in.alias", 0)
    assert (killed.code, killed.steps("done")) == (-signal.SIGKILL, ["e0.in.edges", "e0.in.narrow"])
    if gone:
        shutil.rmtree(source)
    last = run_attempt(other)
    assert last.steps("kept") == ["e0.in.edges", "e0.in.narrow"]
    assert (last.steps("done") == ["e0.in.alias", "e0.in.packed"]) is not gone
    assert last.result["images"] == full_run.result["images"]
