"""Times a trainer's batch embedded and over gRPC with three storageds, on one generated graph, side by side.

python -m tests.benchmarks.serving --nodes 1000000 --edges 16000000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.kit.cluster import LocalCluster

import asterism
from asterism.formats.rmat import rmat
from asterism.graph import Graph

CHUNK = 1 << 20
SCHEMA = {"nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}}


def fill(client: asterism.Client, *, nodes: int, edges: int, parts: int) -> Graph:
    """A space with an R-MAT graph of log-normal weights, loaded and built."""
    client.create_space("bench", {**SCHEMA, "parts": parts})
    load = client.begin_load("bench", source="generated")
    index = 0
    for start in range(0, nodes, CHUNK):
        load.write_nodes(index, "n", np.arange(start, min(start + CHUNK, nodes)))
        index += 1
    for start in range(0, edges, CHUNK):
        count = min(CHUNK, edges - start)
        src, dst = rmat(1, 0, start, count, sources=nodes, targets=nodes)
        weights = np.random.default_rng((1, start)).lognormal(size=count).astype(np.float32)
        load.write_edges(index, "to", src, dst, weights=weights, ends_known=True)
        index += 1
    load.commit()
    graph = client.graph("bench")
    graph.build()
    return graph


def median_ms(call: Callable[[int], object], rounds: int) -> tuple[float, float]:
    """Median and 99th percentile of ``rounds`` calls, after a few that do not count."""
    for round_ in range(5):
        call(round_)
    times = []
    for round_ in range(rounds):
        begun = time.perf_counter()
        call(round_ + 5)
        times.append((time.perf_counter() - begun) * 1e3)
    return float(np.median(times)), float(np.percentile(times, 99))


def measure(graph: Graph, nodes: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Milliseconds (p50, p99) of each kind of call."""
    seeds = np.random.default_rng(0).integers(0, nodes, (rounds + 5, 1024))
    hops, fanouts = ["to", "to"], [15, 10]
    return {
        "1024 x [15, 10] by weight": median_ms(lambda i: graph.sample_fanout(seeds[i], hops, fanouts, weights=False, seed=i), rounds),
        "1024 x [15, 10] uniform": median_ms(lambda i: graph.sample_fanout(seeds[i], hops, fanouts, weights=False, weighted=False, seed=i), rounds),
        "1024 x [15, 10] by weight, distinct": median_ms(
            lambda i: graph.sample_fanout(seeds[i], hops, fanouts, weights=False, replace=False, seed=i), rounds
        ),
        "256 nodes": median_ms(lambda i: graph.sample_nodes(256, "n", seed=i), rounds),
        "100k edges by weight": median_ms(lambda i: graph.sample_edges(100_000, "to", seed=i), rounds),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=16_000_000)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--storageds", type=int, default=3)
    args = parser.parse_args()
    size = {"nodes": args.nodes, "edges": args.edges, "parts": args.parts}
    with tempfile.TemporaryDirectory() as folder, asterism.open(Path(folder)) as client:
        embedded = measure(fill(client, **size), args.nodes, args.rounds)
    with LocalCluster(storageds=args.storageds) as cluster, cluster.client() as client:
        remote = measure(fill(client, **size), args.nodes, args.rounds)
    print(f"{args.nodes:,} nodes, {args.edges:,} edges, {args.parts} parts; milliseconds, p50 (p99)")
    print(f"{'call':<40}{'embedded':>18}{f'gRPC, {args.storageds} storageds':>22}{'ratio':>8}")
    for name, (p50, p99) in embedded.items():
        far50, far99 = remote[name]
        print(f"{name:<40}{f'{p50:.2f} ({p99:.2f})':>18}{f'{far50:.2f} ({far99:.2f})':>22}{far50 / p50:>8.1f}")


if __name__ == "__main__":
    main()
