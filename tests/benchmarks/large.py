"""Benchmark of global node sampling beyond cache sizes, embedded.

It uses dense ids and sparse ids.

    python -m tests.benchmarks.large --folder /var/tmp/large            # 100M rows of each, built
        there once
    python -m tests.benchmarks.large --folder /tmp/large --rows 1000000 --repeats 3    # small

A dense id is its row; a sparse one is read from a column, one random read more. It asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

import asterism
from asterism.graph import Graph

CHUNK = 1 << 20
STRIDE = 7_919_993
"""Distance between sparse ids."""


def open_or_create(client: asterism.Client, name: str, rows: int, parts: int, stride: int) -> Graph:
    """Return the graph of an existing space, or create one with weighted nodes."""
    if name in [space.name for space in client.spaces()]:
        return client.graph(name)
    client.create_space(name, {"nodes": {"n": {"weighted": True}}, "edges": {}, "parts": parts})
    load = client.begin_load(name, source="generated")
    for chunk, start in enumerate(range(0, rows, CHUNK)):
        ids = np.arange(start, min(start + CHUNK, rows))
        load.write_nodes(
            chunk,
            "n",
            ids * stride,
            weights=np.random.default_rng((1, start)).lognormal(size=ids.size),
        )
    load.commit()
    graph = client.graph(name)
    graph.build(timeout_s=24 * 3600)
    return graph


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--draws", type=int, default=1_000_000, help="in a call")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument(
        "--folder",
        type=Path,
        required=True,
        help="where the graphs are made, and taken from the next time",
    )
    args = parser.parse_args()
    with asterism.open(args.folder, timeout_s=600) as client:
        graphs = {
            name: open_or_create(client, f"{name}{args.rows}", args.rows, args.parts, stride)
            for name, stride in (("dense", 1), ("sparse", STRIDE))
        }
        print(
            f"{args.rows:,} rows in {args.parts} parts, {args.draws:,} draws a call; load "
            f"{os.getloadavg()[0]:.1f}"
        )
        for name, graph in graphs.items():
            for distribution, weighted in (("by weight", True), ("uniformly", False)):
                wall, cores = [], []
                for seed in range(args.repeats + 1):  # the first reads the image from disk
                    started, cpu_started = time.perf_counter(), time.process_time()
                    graph.sample_nodes(args.draws, "n", weighted=weighted, seed=seed)
                    wall.append(time.perf_counter() - started)
                    cores.append(time.process_time() - cpu_started)
                ns = 1e9 / args.draws
                columns = (
                    f"{np.median(wall[1:]) * ns:7.1f} ns median {min(wall[1:]) * ns:7.1f} "
                    f"fastest   {np.median(cores[1:]) * ns:7.1f} core ns median"
                )
                print(f"  {name} ids, {distribution:<12}{columns}", flush=True)


if __name__ == "__main__":
    main()
