"""Builds generated loads in a process of their own and prints rows a second and the peak of anonymous memory.

python -m tests.benchmarks.build --nodes 4000000 --edges 4000000 --parts 2 --memory-limit-mib 512
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tests.kit.building import Op, blocks_of

from asterism_proto.schema import EdgeType, NodeType, Schema
from storaged.store import graph
from storaged.store.graph import GraphStore

CHUNK = 1 << 18


def write(store: GraphStore, schema: Schema, nodes: int, edges: int, stride: int) -> float:
    """Write chunks as a client would; gives the seconds."""
    rng = np.random.default_rng(1)
    started = time.perf_counter()
    chunk = 0
    for low in range(0, nodes, CHUNK):
        ids = np.arange(low, min(low + CHUNK, nodes), dtype=np.int64) * stride
        op = Op(kind=graph.NODES, type_id=0, arrays={"ids": ids, "weight": rng.random(ids.size, np.float32) ** 4})
        store.write(blocks_of(schema, 1, chunk, op))
        chunk += 1
    for low in range(0, edges, CHUNK):
        n = min(CHUNK, edges - low)
        src = (nodes * rng.random(n) ** 2).astype(np.int64) * stride
        dst = rng.integers(0, nodes, n) * stride
        arrays = {"src": src, "dst": dst, "eid": np.arange(low, low + n), "weight": rng.random(n, np.float32)}
        store.write(blocks_of(schema, 1, chunk, Op(kind=graph.OUT_EDGES, type_id=0, arrays=arrays)))
        chunk += 1
    return time.perf_counter() - started


def anonymous_kib(pid: int) -> int:
    """What a process holds that is nobody's file."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def run(task: Path) -> tuple[float, float, int, dict[str, float]]:
    """Seconds, seconds of a core, the peak in KiB, and when each phase was first heard of."""
    started, peak, phases = time.perf_counter(), 0, dict[str, float]()
    child = subprocess.Popen([sys.executable, "-m", "storaged.build", str(task)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        peak = max(peak, anonymous_kib(child.pid))
        said = json.loads(line)
        if "failed" in said:
            raise SystemExit(said["failed"])
        phases.setdefault(said.get("phase", "end"), time.perf_counter() - started)
    child.wait(60)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, peak, phases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("nodes", 2_000_000), ("edges", 2_000_000), ("parts", 2), ("memory-limit-mib", 512), ("stride", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    schema = Schema(
        node_types=(NodeType(name="a", weighted=True),),
        edge_types=(EdgeType(src_type="a", relation="r", dst_type="a", weighted=True),) if given.edges else (),
        parts=given.parts,
        direction="both",
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = GraphStore.open(folder / "graph", schema)
        seconds = write(store, schema, given.nodes, given.edges, given.stride)
        print(f"write   {(given.nodes + 2 * given.edges) / seconds:12,.0f} rows/s (out- and in-copies, durable)")
        store.checkpoint(folder / "checkpoint")
        store.close()
        task = folder / "task.json"
        fields = {"space_id": 1, "schema": schema.to_dict(), "parts": list(range(given.parts)), "cut": 1, "loads": [1], "commits": [1]}
        fields |= {"checkpoint": str(folder / "checkpoint"), "output": str(folder / "out"), "memory_limit_mib": given.memory_limit_mib}
        task.write_text(json.dumps(fields))
        seconds, core_seconds, peak, phases = run(task)
        rows = given.nodes + given.edges
        print(f"build   {rows / seconds:12,.0f} rows/s in {seconds:.1f} s, start included; {rows / core_seconds:,.0f} rows per second of a core")
        print(f"memory  {peak / 1024:12,.0f} MiB anonymous at most, limit {given.memory_limit_mib} MiB of working memory")
        print("phases  " + ", ".join(f"{phase} {at:.1f} s" for phase, at in phases.items()))


if __name__ == "__main__":
    main()
