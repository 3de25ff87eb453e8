"""Generated loads of any size, and builds of them with measured resources.

These are time, memory and disk usage of a build in its own process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from asterism_model.schema import EdgeType, NodeType, Schema, WeightTable
from storaged.store import block_store
from storaged.store.block_store import BlockStore
from tests.kit.building import Op, blocks_of

CHUNK = 1 << 18
HUB = 6
"""Row of the node with the most neighbors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedGraph:
    """A graph of one node type and one edge type, weighted."""

    nodes: int
    edges: int = 0
    hub: int = 0
    """Number of edges with the hub as source."""
    deleted: int = 0
    """Number of nodes, the last ones, that a later load deletes."""
    parts: int = 1
    stride: int = 1
    """Distance between ids; large values make the type sparse."""
    equal_weights: bool = False
    """True if all edges weigh 1."""
    tables: int = 0
    """Number of weight tables of the node type and of the edge type."""

    @property
    def schema(self) -> Schema:
        tables = tuple(
            WeightTable(name=f"t{i}", expression=f"pow(weight, {i + 1} / 4)")
            for i in range(self.tables)
        )
        edge_types = (
            (EdgeType(src_type="a", relation="r", dst_type="a", weighted=True, tables=tables),)
            if self.edges
            else ()
        )
        return Schema(
            node_types=(NodeType(name="a", weighted=True, tables=tables),),
            edge_types=edge_types,
            parts=self.parts,
            direction="both",
        )

    def ops(self) -> list[Op]:
        """Return the chunks of the graph, in order."""
        return list(self._chunks())

    def _chunks(self) -> Any:
        rng = np.random.default_rng(1)
        for low in range(0, self.nodes, CHUNK):
            ids = np.arange(low, min(low + CHUNK, self.nodes), dtype=np.int64) * self.stride
            yield (
                1,
                Op(
                    kind=block_store.NODES,
                    type_id=0,
                    arrays={"ids": ids, "weight": rng.random(ids.size, np.float32) ** 4},
                ),
            )
        for low in range(0, self.edges, CHUNK):
            n = min(CHUNK, self.edges - low)
            src = (
                np.where(np.arange(low, low + n) < self.hub, HUB, rng.integers(0, self.nodes, n))
                * self.stride
            )
            weight = np.ones(n, np.float32) if self.equal_weights else rng.random(n, np.float32)
            arrays = {
                "src": src,
                "dst": rng.integers(0, self.nodes, n) * self.stride,
                "eid": np.arange(low, low + n),
                "weight": weight,
            }
            yield 1, Op(kind=block_store.OUT_EDGES, type_id=0, arrays=arrays)
        for low in range(self.nodes - self.deleted, self.nodes, CHUNK):
            ids = np.arange(low, min(low + CHUNK, self.nodes), dtype=np.int64) * self.stride
            yield 2, Op(kind=block_store.NODE_DELETES, type_id=0, arrays={"ids": ids})

    def write(self, folder: Path, *, memory_limit_mib: int, checkpoint_rows: int = 0) -> Path:
        """Write the graph to a graph database as graphd does and take a checkpoint.

        Returns the path of the build's task.
        """
        store = BlockStore.open(folder / "graph", self.schema)
        for chunk, (load_id, op) in enumerate(self._chunks()):
            store.write(blocks_of(self.schema, load_id, chunk, op))
        store.checkpoint(folder / "checkpoint")
        store.close()
        loads = [1, 2] if self.deleted else [1]
        task: dict[str, Any] = {
            "space_id": 1,
            "schema": self.schema.to_dict(),
            "parts": list(range(self.parts)),
            "watermark": len(loads),
            "loads": loads,
        }
        task |= {
            "checkpoint": str(folder / "checkpoint"),
            "output": str(folder / "out"),
            "memory_limit_mib": memory_limit_mib,
        }
        (folder / "task.json").write_text(
            json.dumps(task | ({"checkpoint_rows": checkpoint_rows} if checkpoint_rows else {}))
        )
        return folder / "task.json"


@dataclass(slots=True, kw_only=True)
class BuildMeasurement:
    """Resources used by a build."""

    seconds: float = 0.0
    core_seconds: float = 0.0
    anonymous_bytes: int = 0
    """Peak of anonymous memory, in bytes."""
    disk_bytes: int = 0
    """Peak size of the folder, in bytes; 0 if it was not measured."""
    result: dict[str, Any] = field(default_factory=dict)
    steps: list[tuple[float, str]] = field(default_factory=list)
    """End of each step, in seconds from the start, and its name."""


def run(
    task: Path,
    *,
    watch_disk: bool = False,
    prefix: tuple[str, ...] = (),
    deadline_s: float = 3600.0,
) -> BuildMeasurement:
    """Run a build and measure it; it is killed after the deadline.

    ``prefix`` is a list of arguments before its command line.
    """
    measured, started = BuildMeasurement(), time.perf_counter()
    child = subprocess.Popen(
        [*prefix, "env", "MALLOC_ARENA_MAX=2", sys.executable, "-m", "storaged.build", str(task)],
        stdout=subprocess.PIPE,
        text=True,
    )
    finished = threading.Event()
    output = Path(json.loads(task.read_text())["output"])

    def monitor() -> None:
        ticks = 0
        while not finished.wait(0.005):
            if time.perf_counter() - started > deadline_s:
                child.kill()
            measured.anonymous_bytes = max(measured.anonymous_bytes, anonymous_bytes(child.pid))
            ticks += 1
            if watch_disk and ticks % 50 == 0:
                measured.disk_bytes = max(measured.disk_bytes, allocated_bytes(output))

    watcher = threading.Thread(target=monitor)
    watcher.start()
    try:
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                event = json.loads(line)
                if event.get("is") == "done":
                    measured.steps.append(
                        (time.perf_counter() - started, f"{event['part']}/{event['step']}")
                    )
                measured.result = event
        measured.seconds = time.perf_counter() - started
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    finally:
        finished.set()
        watcher.join()
    measured.core_seconds = usage.ru_utime + usage.ru_stime
    if "finished" not in measured.result:
        raise AssertionError(f"the build did not finish: {measured.result}")
    return measured


def write_minimal(folder: Path, generated: GeneratedGraph, *, memory_limit_mib: int) -> Path:
    """Write a few rows of the same kinds, of which the build runs every kernel.

    Returns the path of the build's task.
    """
    minimal = GeneratedGraph(
        nodes=100,
        edges=200 if generated.edges else 0,
        deleted=min(generated.deleted, 10),
        stride=generated.stride,
        parts=1,
        equal_weights=generated.equal_weights,
    )
    folder.mkdir()
    return minimal.write(folder, memory_limit_mib=memory_limit_mib)


def measure_idle(
    folder: Path, generated: GeneratedGraph, *, memory_limit_mib: int
) -> BuildMeasurement:
    """Measure a build of a few rows of the same kinds, which loads every kernel."""
    task = write_minimal(folder, generated, memory_limit_mib=memory_limit_mib)
    run(task)  # compiles the kernels, which later runs load from the cache
    (folder / "out").rename(folder / "first")
    return run(task)


def anonymous_bytes(pid: int) -> int:
    """Return the anonymous memory of a process in bytes; 0 after its end."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon")), 0)


def allocated_bytes(folder: Path) -> int:
    """Return the disk usage of a folder in bytes; hard links count once."""
    bytes_by_inode: dict[int, int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                status = os.stat(os.path.join(parent, name))
            except OSError:  # removed during the scan
                continue
            bytes_by_inode[status.st_ino] = status.st_blocks * 512
    return sum(bytes_by_inode.values())
