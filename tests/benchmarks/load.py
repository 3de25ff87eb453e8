"""Benchmark of loading a generated graph from each kind of file.

It prints rows per second and peak memory; each load runs in its own process.

    python -m tests.benchmarks.load --edges 4000000 [--read-only] [--formats npy parquet csv]

`read` is the client's share alone: files to checked chunks. `load` is all of it, through a service
in the same process with its writes made durable."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

import asterism
from asterism import ingest
from asterism.formats import open_source
from asterism.formats.rmat import rmat

FILE_ROWS = 1 << 20
SCHEMA = """
parts: {parts}
nodes: {{user: {{count: {nodes}}}}}
edges:
  user:knows:user:
    files: {files}
    src: {src}
    dst: {dst}
    weight: w
"""


def write(folder: Path, kind: str, nodes: int, edges: int, parts: int) -> Path:
    """Write a weighted graph in files of one kind, and its schema file."""
    names: dict[str, list[str]] = {"e": [], "w": []}
    for index, start in enumerate(range(0, edges, FILE_ROWS)):
        count = min(FILE_ROWS, edges - start)
        src, dst = rmat(1, 0, start, count, sources=nodes, targets=nodes)
        weight = np.random.default_rng((1, index)).lognormal(size=count).astype(np.float32)
        if kind == "npy":
            np.save(folder / f"e-{index}.npy", np.stack((src, dst), axis=1))
            np.save(folder / f"w-{index}.npy", weight)
        else:
            table = pa.table({"src": src, "dst": dst, "w": weight})
            if kind == "csv":
                csv.write_csv(table, folder / f"e-{index}.csv")
            else:
                parquet.write_table(table, folder / f"e-{index}.parquet")
        for name in names:
            names[name].append(f"{name}-{index}.{kind}")
    npy = kind == "npy"
    text = SCHEMA.format(
        parts=parts,
        nodes=nodes,
        files=json.dumps(names if npy else names["e"]),
        src="'e[0]'" if npy else "src",
        dst="'e[1]'" if npy else "dst",
    )
    path = folder / "graph.yaml"
    path.write_text(text)
    return path


@contextmanager
def timed(result: dict[str, Any], name: str) -> Iterator[None]:
    wall, cpu_started = time.perf_counter(), time.process_time()
    yield
    result[f"{name}_s"] = time.perf_counter() - wall
    result[f"{name}_cpu_s"] = time.process_time() - cpu_started


def measure(source: Path, read_only: bool) -> dict[str, Any]:
    """Return seconds of reading and of loading, and the peak of resident memory in MiB."""
    result: dict[str, Any] = {}
    graph_source = open_source(source)
    with timed(result, "read"):
        result["rows"] = sum(len(chunk) for chunk in graph_source.node_chunks())
        result["edges"] = 0
        for chunk in graph_source.edge_chunks():
            result["edges"] += len(chunk)
            assert chunk.weights is not None
            assert int(chunk.src[-1]) >= 0
    if not read_only:
        with (
            tempfile.TemporaryDirectory(prefix="asterism-load-") as folder,
            asterism.open(folder) as client,
        ):
            client.create_space("bench", graph_source.schema)
            time.sleep(2)
            with timed(result, "load"):
                ingest.load(client, "bench", source)
    result["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return result


def main() -> None:
    """Write the files, measure in a child process, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=4_000_000)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--formats", nargs="+", default=["npy", "parquet", "csv"])
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.source:
        print(json.dumps(measure(options.source, options.read_only)))
        return
    print(f"{options.edges:,} edges of {options.nodes:,} nodes, {options.parts} parts")
    print(
        f"{'format':8} {'MiB':>7} {'read M/s':>9} {'load M/s':>9} {'per core':>9} {'peak MiB':>9}"
    )
    for kind in options.formats:
        with tempfile.TemporaryDirectory(prefix="asterism-files-") as folder:
            source = write(Path(folder), kind, options.nodes, options.edges, options.parts)
            size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
            command = [
                sys.executable,
                "-m",
                "tests.benchmarks.load",
                "--source",
                str(source),
                *(["--read-only"] if options.read_only else []),
            ]
            result = json.loads(
                subprocess.run(
                    command, check=True, capture_output=True, text=True
                ).stdout.splitlines()[-1]
            )
        rate = {
            name: result["edges"] / result[name] / 1e6 if name in result else float("nan")
            for name in ("read_s", "load_s", "load_cpu_s")
        }
        print(
            f"{kind:8} {size:7.0f} {rate['read_s']:9.2f} {rate['load_s']:9.2f} "
            f"{rate['load_cpu_s']:9.2f} {result['peak_mib']:9.0f}"
        )


if __name__ == "__main__":
    main()
