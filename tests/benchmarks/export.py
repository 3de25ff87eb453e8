"""Benchmark of exports of a random graph, against DGL's partition_graph.

It prints seconds and peak memory.

    python -m tests.benchmarks.export --nodes 500000 --edges 5000000 --width 64 --parts 4 [--assign
    random metis] [--service]
    python -m tests.benchmarks.export --cut      edges that METIS cuts here and in DGL, over five
                                                 graphs
    python -m tests.benchmarks.export --large    4 million nodes and 64 million edges, in a control
                                                 group of 2 GiB

Each run is a separate process. DGL has the graph in memory before the clock starts; `arrays` reads
it from mapped files in a space's order, `--service` from a published version of a service in the
same process. Peak memory is that of the process and its descendants, including libraries and the
files that they map."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from tests.kit.communities import communities
from tests.kit.control_group import memory_group
from tests.kit.dgl_env import SCRIPTS, run

import asterism
from asterism import export
from asterism.export.partitioning import coarsening
from asterism.export.partitioning.assignment_methods import METHODS
from asterism.records.samples import EdgeBatch, NodeBatch
from asterism_model.schema import Schema

ROOT = Path(__file__).resolve().parents[2]
DGL_PYTHON = ROOT / ".venv-dgl/bin/python"


def schema(width: int, parts: int) -> Schema:
    return Schema.from_dict(
        {
            "parts": parts,
            "nodes": {"_N": {"features": {"feat": {"shape": [width]}}}},
            "edges": {"_N:_E:_N": {}},
        }
    )


def write(folder: Path, nodes: int, edges: int, width: int, *, seed: int = 1) -> None:
    """Write a graph with communities, edges ordered by source."""
    folder.mkdir(exist_ok=True)
    src, dst = communities(nodes, edges, seed=seed)
    np.save(folder / "src.npy", src)
    np.save(folder / "dst.npy", dst)
    np.save(folder / "nodes.npy", np.array(nodes))
    features = np.lib.format.open_memmap(folder / "feat.npy", "w+", np.float32, (nodes, width))
    generator = np.random.default_rng(seed)
    for start in range(0, nodes, 1 << 18):
        features[start : start + (1 << 18)] = generator.standard_normal(
            features[start : start + (1 << 18)].shape, np.float32
        )
    features.flush()


@dataclass(frozen=True)
class MappedGraph:
    """The graph in mapped files, with the interface of a space of one partition."""

    folder: Path
    schema: Schema
    space: str = "graph"

    def _map(self, name: str) -> NDArray[Any]:
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    def scan_nodes(
        self,
        ntype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[NodeBatch]:
        total, column_names = len(self._map("feat")), list(names)
        for start in range(0, total, rows):
            ids = np.arange(start, min(total, start + rows))
            features = {
                name: np.array(self._map(name)[start : start + rows]) for name in column_names
            }
            yield NodeBatch(
                part=0, ids=ids, weights=np.ones(len(ids), np.float32), features=features, version=1
            )

    def scan_edges(
        self,
        etype: str,
        names: Iterable[str] = (),
        *,
        version: int | None = None,
        rows: int = 65536,
    ) -> Iterator[EdgeBatch]:
        for start in range(0, len(self._map("src")), rows):
            src, dst = (np.array(self._map(name)[start : start + rows]) for name in ("src", "dst"))
            yield EdgeBatch(
                part=0,
                src=src,
                dst=dst,
                edge_ids=np.arange(start, start + len(src)),
                weights=np.ones(len(src), np.float32),
                version=1,
            )


def publish(folder: Path, client: asterism.Client, graph_schema: Schema) -> asterism.Graph:
    """Publish the same graph in a service."""
    client.create_space("graph", graph_schema)
    load = client.begin_load("graph", source="benchmark")
    mapped = MappedGraph(folder, graph_schema)
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


def resident_bytes(field: str) -> int:
    """Return bytes of this process's memory: VmRSS for now, VmHWM for the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


class PeakMemory:
    """Peak memory of this process and its descendants together, sampled 100 times a second."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak of this process
        self._max_seen, self._stopped = 0, threading.Event()
        self._watcher = threading.Thread(target=self._watch)

    def __enter__(self) -> PeakMemory:
        self._watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._watcher.join()

    @property
    def bytes(self) -> int:
        """Return the peak in bytes; the peak of this process alone is exact."""
        return max(self._max_seen, resident_bytes("VmHWM"))

    def _watch(self) -> None:
        this_process = psutil.Process()
        while not self._stopped.wait(0.01):
            total = 0
            for process in (this_process, *this_process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    total += process.memory_info().rss
            self._max_seen = max(self._max_seen, total)


def measure(
    folder: Path, out: Path, parts: int, assign: str, width: int, service: bool
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        # Compile and import before the clock starts, as for DGL.
        write(tiny := Path(scratch) / "tiny", 100, 500, 2)
        default_few_nodes, coarsening.COARSE_NODES = coarsening.COARSE_NODES, 50
        export.dgl(MappedGraph(tiny, schema(2, 1)), tiny / "out", parts=2, assign=assign)
        coarsening.COARSE_NODES = default_few_nodes
        client = asterism.open(Path(scratch) / "service") if service else None
        graph: Any = (
            publish(folder, client, schema(width, 8))
            if client
            else MappedGraph(folder, schema(width, 1))
        )
        resident_before, started, cpu_started = (
            resident_bytes("VmRSS"),
            time.perf_counter(),
            time.process_time(),
        )
        with PeakMemory() as peak:
            report = export.dgl(graph, out, parts=parts, assign=assign)
        result = {
            "seconds": time.perf_counter() - started,
            "cpu": time.process_time() - cpu_started,
            "peak": peak.bytes,
            "before": resident_before,
        }
        if client:
            client.close()
    return result | {"cut": report.edge_cut}


def run_asterism(
    folder: Path,
    out: Path,
    parts: int,
    assign: str,
    width: int,
    service: bool,
    prefix: tuple[str, ...] = (),
) -> dict[str, Any]:
    child_arguments = json.dumps([str(folder), str(out), parts, assign, width, service])
    command = [*prefix, sys.executable, "-m", "tests.benchmarks.export", "--child", child_arguments]
    completed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return dict(json.loads(completed.stdout.splitlines()[-1]))


def report_large(folder: Path, parts: int, assign: list[str]) -> None:
    """Report an export of a graph that exceeds the memory limit."""
    nodes, edges, width, limit = 4_000_000, 64_000_000, 16, 2 << 30
    write(folder, nodes, edges, width)
    print(
        f"{nodes:,} nodes x {width} float32, {edges:,} edges, {parts} parts; a control group "
        f"of {limit / 2**30:.0f} GiB, page cache included"
    )
    for method in assign:
        try:
            with memory_group(limit) as prefix:
                result = run_asterism(folder, folder / method, parts, method, width, False, prefix)
        except OSError as error:
            print(f"no control group can be made here ({error}); without one:")
            result = run_asterism(folder, folder / method, parts, method, width, False)
        show(f"asterism from arrays, {method}", result, None)


def report_cuts(folder: Path, parts: int) -> None:
    """Report the edges between partitions, by METIS here and in DGL."""
    nodes, edges, edge_cuts = 100_000, 1_000_000, []
    for seed in range(5):
        write(folder / f"{seed}", nodes, edges, 1, seed=seed)
        edge_cuts.append(
            export.dgl(
                MappedGraph(folder / f"{seed}", schema(1, 1)),
                folder / f"{seed}/out",
                parts=parts,
                assign="metis",
            ).edge_cut
        )
    print(f"{nodes:,} nodes, {edges:,} edges, {parts} parts; edges that METIS cuts of five graphs")
    print(f"{'asterism':28} {edge_cuts}   mean {np.mean(edge_cuts):,.0f}", flush=True)
    if DGL_PYTHON.exists():
        text = run(
            DGL_PYTHON,
            SCRIPTS / "metis_cut.py",
            parts,
            *(folder / f"{seed}" for seed in range(5)),
            home=folder,
            timeout_s=3600,
        )
        dgl_cuts = json.loads(text.splitlines()[-1])
        print(
            f"{'DGL':28} {dgl_cuts}   mean {np.mean(dgl_cuts):,.0f}   asterism's / DGL's "
            f"{np.mean(edge_cuts) / np.mean(dgl_cuts):.4f}"
        )


def run_dgl(folder: Path, out: Path, parts: int, assign: str) -> dict[str, Any]:
    text = run(
        DGL_PYTHON,
        SCRIPTS / "partition_graph.py",
        folder,
        out,
        parts,
        assign,
        home=folder,
        timeout_s=3600,
        extra_environment={"DGL_DIST_DEBUG": "0"},
    )
    return dict(json.loads(text.splitlines()[-1]))


def show(name: str, result: dict[str, Any], reference: dict[str, Any] | None) -> None:
    line = (
        f"{name:28} {result['seconds']:8.2f} s   peak {result['peak'] / 2**30:5.2f} GiB   "
        f"before {result['before'] / 2**30:5.2f} GiB"
    )
    if reference is not None and reference is not result:
        line += (
            f"   time x {reference['seconds'] / result['seconds']:.2f}   peak x "
            f"{reference['peak'] / result['peak']:.2f}"
        )
    print(line + (f"   cut {result['cut']:,}" if "cut" in result else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in (("nodes", 500_000), ("edges", 5_000_000), ("width", 64), ("parts", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--assign", nargs="+", choices=METHODS)
    parser.add_argument(
        "--cut", action="store_true", help="how many edges METIS cuts, here and in DGL"
    )
    parser.add_argument(
        "--large", action="store_true", help="a graph that is larger than the memory it is given"
    )
    parser.add_argument("--service", action="store_true", help="export from a service as well")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        folder, out, *rest = json.loads(options.child)
        print(json.dumps(measure(Path(folder), Path(out), *rest)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.cut or options.large:
            if options.cut:
                report_cuts(folder, options.parts)
            if options.large:
                report_large(folder, options.parts, options.assign or ["random", "fennel"])
            return
        write(folder, options.nodes, options.edges, options.width)
        print(
            f"{options.nodes:,} nodes x {options.width} float32, {options.edges:,} edges, "
            f"{options.parts} parts"
        )
        for assign in options.assign or ["random", "metis"]:
            # DGL has no streaming partitioner: the comparison uses its random one.
            method = assign if assign in ("random", "metis") else "random"
            reference = (
                run_dgl(folder, folder / f"dgl-{assign}", options.parts, method)
                if DGL_PYTHON.exists()
                else None
            )
            if reference is not None:
                show(f"DGL partition_graph, {method}", reference, None)
            for source in ("arrays", "service") if options.service else ("arrays",):
                out = folder / f"{source}-{assign}"
                show(
                    f"asterism from {source}, {assign}",
                    run_asterism(
                        folder, out, options.parts, assign, options.width, source == "service"
                    ),
                    reference,
                )
        if not DGL_PYTHON.exists():
            print("no environment with real DGL to compare with; `make dgl-env` makes it")


if __name__ == "__main__":
    main()
