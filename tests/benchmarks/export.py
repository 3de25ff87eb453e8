"""Exports a random graph with features, beside DGL's own partition_graph, and prints seconds and peak memory.

    python -m tests.benchmarks.export --nodes 500000 --edges 5000000 --width 64 --parts 4 [--assign random metis] [--service]

Each run is a process of its own. DGL has the graph in memory before the clock starts; `arrays` reads it from mapped
files in a space's order, `--service` from a published version of a service in the same process. Peak memory is the
process's own, its libraries and what it maps included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.kit.dgl_env import SCRIPTS, run

import asterism
from asterism import export
from asterism.records import EdgeBatch, NodeBatch
from asterism_proto.schema import Schema

ROOT = Path(__file__).resolve().parents[2]
DGL_PYTHON = ROOT / ".venv-dgl/bin/python"


def schema(width: int, parts: int) -> Schema:
    return Schema.from_dict({"parts": parts, "nodes": {"_N": {"features": {"feat": {"shape": [width]}}}}, "edges": {"_N:_E:_N": {}}})


def write(folder: Path, nodes: int, edges: int, width: int) -> None:
    """A graph with communities, so that METIS has something to find, its edges by (source, destination)."""
    generator = np.random.default_rng(1)
    src = generator.integers(0, nodes, edges)
    near = (src + generator.integers(1, max(2, nodes // 1000), edges)) % nodes
    dst = np.where(generator.random(edges) < 0.8, near, generator.integers(0, nodes, edges))
    order = np.lexsort((dst, src))
    np.save(folder / "src.npy", src[order])
    np.save(folder / "dst.npy", dst[order])
    np.save(folder / "feat.npy", generator.standard_normal((nodes, width), np.float32))


@dataclass(frozen=True)
class Mapped:
    """The graph in mapped files, as a space of one part."""

    folder: Path
    schema: Schema
    space: str = "graph"

    def _map(self, name: str) -> NDArray[Any]:
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    def scan_nodes(self, ntype: str, names: Iterable[str] = (), *, version: int | None = None, rows: int = 65536) -> Iterator[NodeBatch]:
        total, wanted = len(self._map("feat")), list(names)
        for at in range(0, total, rows):
            ids = np.arange(at, min(total, at + rows))
            features = {name: np.array(self._map(name)[at : at + rows]) for name in wanted}
            yield NodeBatch(part=0, ids=ids, weights=np.ones(len(ids), np.float32), features=features, version=1)

    def scan_edges(self, etype: str, names: Iterable[str] = (), *, version: int | None = None, rows: int = 65536) -> Iterator[EdgeBatch]:
        for at in range(0, len(self._map("src")), rows):
            src, dst = (np.array(self._map(name)[at : at + rows]) for name in ("src", "dst"))
            yield EdgeBatch(part=0, src=src, dst=dst, edge_ids=np.arange(at, at + len(src)), weights=np.ones(len(src), np.float32), version=1)


def publish(folder: Path, client: asterism.Client, given: Schema) -> asterism.Graph:
    """The same graph through a service."""
    client.create_space("graph", given)
    load = client.begin_load("graph", source="benchmark")
    mapped = Mapped(folder, given)
    index = 0
    for nodes in mapped.scan_nodes("_N", ["feat"]):
        load.write_nodes(index, "_N", nodes.ids, None, nodes.features)
        index += 1
    for edges in mapped.scan_edges("_N:_E:_N", rows=1 << 18):
        load.write_edges(index, "_N:_E:_N", edges.src, edges.dst)
        index += 1
    load.commit()
    graph = client.graph("graph")
    graph.build()
    return graph


def resident(field: str) -> int:
    """Bytes of this process's memory: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def measure(folder: Path, out: Path, parts: int, assign: str, width: int, service: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        # Compiled and imported before the clock starts, as DGL is.
        (tiny := Path(scratch) / "tiny").mkdir()
        write(tiny, 100, 500, 2)
        export.dgl(Mapped(tiny, schema(2, 1)), tiny / "out", parts=2, assign=assign)
        client = asterism.open(Path(scratch) / "service") if service else None
        graph: Any = publish(folder, client, schema(width, 8)) if client else Mapped(folder, schema(width, 1))
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before, began, used = resident("VmRSS"), time.perf_counter(), time.process_time()
        report = export.dgl(graph, out, parts=parts, assign=assign)
        found = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - used, "peak": resident("VmHWM"), "before": before}
        if client:
            client.close()
    return found | {"cut": report.edge_cut}


def ours(folder: Path, out: Path, parts: int, assign: str, width: int, service: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.export", "--child", json.dumps([str(folder), str(out), parts, assign, width, service])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def theirs(folder: Path, out: Path, parts: int, assign: str) -> dict[str, Any]:
    text = run(DGL_PYTHON, SCRIPTS / "partition_graph.py", folder, out, parts, assign, home=folder, timeout_s=3600, more={"DGL_DIST_DEBUG": "0"})
    return dict(json.loads(text.splitlines()[-1]))


def show(name: str, found: dict[str, Any], reference: dict[str, Any] | None) -> None:
    line = f"{name:28} {found['seconds']:8.2f} s   peak {found['peak'] / 2**30:5.2f} GiB   before {found['before'] / 2**30:5.2f} GiB"
    if reference is not None and reference is not found:
        line += f"   time x {reference['seconds'] / found['seconds']:.2f}   peak x {reference['peak'] / found['peak']:.2f}"
    print(line + (f"   cut {found['cut']:,}" if "cut" in found else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("nodes", 500_000), ("edges", 5_000_000), ("width", 64), ("parts", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--assign", nargs="+", default=["random", "metis"])
    parser.add_argument("--service", action="store_true", help="export from a service as well")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        folder, out, *rest = json.loads(given.child)
        print(json.dumps(measure(Path(folder), Path(out), *rest)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, given.nodes, given.edges, given.width)
        print(f"{given.nodes:,} nodes x {given.width} float32, {given.edges:,} edges, {given.parts} parts")
        for assign in given.assign:
            reference = theirs(folder, folder / f"dgl-{assign}", given.parts, assign) if DGL_PYTHON.exists() else None
            if reference is not None:
                show(f"DGL partition_graph, {assign}", reference, None)
            for source in ("arrays", "service") if given.service else ("arrays",):
                out = folder / f"{source}-{assign}"
                show(f"asterism from {source}, {assign}", ours(folder, out, given.parts, assign, given.width, source == "service"), reference)
        if not DGL_PYTHON.exists():
            print("no environment with real DGL to compare with; `make dgl-env` makes it")


if __name__ == "__main__":
    main()
