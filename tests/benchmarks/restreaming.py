"""Benchmark of edges cut by streaming partitioners, by number of passes.

METIS and random partitions are the references.

    python -m tests.benchmarks.restreaming [--parts 4] [--data FOLDER]

Graphs: Cora, the pages of Facebook and the routes of OpenFlights (where they are), two power-law
graphs (R-MAT, Chakrabarti, Zhan & Faloutsos, SDM 2004: 0.57, 0.19, 0.19, 0.05), and one of
communities. Ids of the generated graphs are shuffled, so that they carry no information."""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.kit.communities import communities
from tests.kit.shared import SHARED

from asterism.export.partitioning import metis, streaming_partitioning
from asterism.export.partitioning.coarsening import COARSE_NODES, CoarseningLevels
from asterism.export.partitioning.edge_list_file import EdgeListFile
from asterism.export.partitioning.metis_graph import build_metis_graph
from asterism.export.scratch_files import Spool

PASSES = (1, 2, 3, 5, 10, 20)
Ends = NDArray[np.int64]


def rmat(scale: int, edges: int, seed: int) -> Ends:
    """Return the edges of an R-MAT graph, int64 [edges, 2]."""
    generator, edge_ends = np.random.default_rng(seed), np.zeros((edges, 2), np.int64)
    for _ in range(scale):
        draw = generator.random(edges)
        edge_ends = edge_ends * 2 + np.stack(
            [draw >= 0.76, ((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95)], axis=1
        )
    return generator.permutation(1 << scale)[edge_ends]


def shuffle_ids(src: Ends, dst: Ends, nodes: int) -> Ends:
    order = np.random.default_rng(9).permutation(nodes)
    return np.stack([order[src], order[dst]], axis=1)


def graphs(data: Path) -> Iterator[tuple[str, int, Ends]]:
    for name in ("cora", "facebook"):
        if (data / name).is_dir():
            edges_read = np.loadtxt(data / name / "edges.csv", np.int64, delimiter=",", skiprows=1)
            yield relabel(name, edges_read)
    if (data / "openflights").is_dir():
        with (data / "openflights/routes.dat").open() as file:
            rows = [
                (row[3], row[5])
                for row in csv.reader(file)
                if row[3].isdigit() and row[5].isdigit()
            ]
        yield relabel("openflights", np.array(rows, np.int64))
    yield "R-MAT, 131k nodes, 1M edges", 1 << 17, rmat(17, 1_000_000, 1)
    yield "R-MAT, 524k nodes, 8M edges", 1 << 19, rmat(19, 8_000_000, 1)
    yield (
        "communities, 500k nodes, 5M edges",
        500_000,
        shuffle_ids(*communities(500_000, 5_000_000, seed=1), 500_000),
    )


def relabel(name: str, ends: Ends) -> tuple[str, int, Ends]:
    distinct, indices = np.unique(ends, return_inverse=True)
    return name, len(distinct), indices.reshape(-1, 2)


def report_graph(name: str, nodes: int, ends: Ends, parts: int, folder: Path) -> None:
    """Print the shares of a graph's edges that are cut."""
    edges_without_loops = ends[ends[:, 0] != ends[:, 1]].astype(np.int32)
    pairs = EdgeListFile(
        spool=Spool(path=folder / "pairs", dtype=np.dtype(np.int32), shape=(2,)),
        degrees=np.bincount(edges_without_loops.ravel(), minlength=nodes),
        in_degrees=np.bincount(ends[:, 1], minlength=nodes),
    )
    pairs.spool.remove()
    pairs.spool.append(edges_without_loops)

    def cut(owners: NDArray[Any]) -> str:
        is_cut = owners[edges_without_loops[:, 0]] != owners[edges_without_loops[:, 1]]
        return f"{is_cut.mean():6.1%}"

    print(f"{name} ({nodes:,} nodes, {len(edges_without_loops):,} edges)", flush=True)
    print(f"  {'random':8}", cut(np.random.default_rng(0).integers(0, parts, nodes)))
    for method in streaming_partitioning.METHODS:
        columns = []
        for passes in PASSES:
            started = time.perf_counter()
            demands = streaming_partitioning.BalanceConstraints(
                classes=np.zeros(nodes, np.uint8), edges=False, imbalance=0.03
            )
            options: dict[str, Any] = {
                "parts": parts,
                "groups": parts,
                "method": method,
                "demands": demands,
                "seed": 1,
                "scratch": folder,
            }
            owners = streaming_partitioning.partition_stream(
                pairs, np.array([nodes]), passes=passes, **options
            )
            columns.append(f"{passes}: {cut(owners)} ({time.perf_counter() - started:.1f} s)")
        print(f"  {method:8}", "  ".join(columns), flush=True)
    started, ones = time.perf_counter(), np.ones((nodes, 1), np.int64)
    levels = CoarseningLevels(
        build_metis_graph(pairs.pieces(), pairs.degrees), ones, parts=parts, seed=1, scratch=folder
    )
    levels.coarsen(COARSE_NODES)
    owners, _ = metis.partition_graph(
        levels.graph, parts, constraints=levels.columns, seed=1, objective="cut"
    )
    print(
        f"  {'metis':8}",
        cut(levels.refine(owners, 0.03)),
        f"({time.perf_counter() - started:.1f} s)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, nodes, ends in graphs(options.data):
            report_graph(name, nodes, ends, options.parts, Path(folder))


if __name__ == "__main__":
    main()
