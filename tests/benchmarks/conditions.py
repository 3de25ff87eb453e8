"""Benchmark of sampling under filters, by selectivity, against sampling without a filter.

python -m tests.benchmarks.conditions                      embedded, 1M nodes of 8 edges each
python -m tests.benchmarks.conditions --nodes 10000000     ten million

Seconds are processor time of the entire process, so that other work on the machine has no effect.
"first" is the first call with a filter: it reads every row, unless there is an index. "again" is
the fastest of further calls with the same filter. The last column is its cost relative to a call
without a filter."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import asterism
from asterism import Graph

SELECTIVITIES = (1.0, 0.5, 1e-1, 1e-3, 1e-6)
DRAWS, REPEATS, CHUNK = 100_000, 7, 1 << 20
SCHEMA: dict[str, Any] = {
    "parts": 8,
    "nodes": {"n": {"weighted": True, "features": {"x": "float64"}}},
    "edges": {
        "n:to:n": {"weighted": True, "features": {"y": "float64"}},
        "n:by:n": {"weighted": True, "features": {"y": "float64"}, "index": ["y"]},
    },
}


def fill(client: asterism.Client, nodes: int, degree: int) -> Graph:
    """Create a space of random edges, and the same with an index.

    Nodes have a column that is uniform in 0 .. 1, and edges have another.
    """
    client.create_space("conditions", SCHEMA)
    load = client.begin_load("conditions", source="generated")
    for chunk, start in enumerate(range(0, nodes, CHUNK)):
        ids = np.arange(start, min(start + CHUNK, nodes))
        rng = np.random.default_rng((1, start))
        load.write_nodes(
            chunk,
            "n",
            ids,
            weights=rng.random(ids.size),
            features={"x": rng.permutation(ids.size) / ids.size},
        )
    for index, start in enumerate(range(0, nodes * degree, CHUNK)):
        count, rng = min(CHUNK, nodes * degree - start), np.random.default_rng((2, start))
        src, dst = rng.integers(0, nodes, count), rng.integers(0, nodes, count)
        weights, features = rng.random(count), {"y": rng.random(count)}
        for relation_index, relation in enumerate(("to", "by")):
            load.write_edges(
                10**6 * (1 + relation_index) + index,
                relation,
                src,
                dst,
                weights=weights,
                features=features,
                ends_known=True,
            )
    load.commit()
    graph = client.graph("conditions")
    graph.build(timeout_s=3600)
    return graph


def process_seconds(call: Callable[[int], object], seed: int) -> float:
    started = time.process_time()
    call(seed)
    return time.process_time() - started


def fastest_seconds(call: Callable[[int], object]) -> float:
    call(0)
    return min(process_seconds(call, i + 1) for i in range(REPEATS))


def report(label: str, column: str, draw: Callable[[str, int], object]) -> None:
    """Print the table of one operator."""
    unfiltered = fastest_seconds(lambda seed: draw("", seed))
    print(f"\n{label}: {unfiltered * 1000:.2f} ms without a condition")
    for selectivity in SELECTIVITIES:
        where = f"{column} < {selectivity:.7f}" if selectivity < 1 else f"{column} >= 0"
        # A default argument binds it.
        first = process_seconds(lambda seed, where=where: draw(where, seed), 0)  # type: ignore[misc]
        repeated = fastest_seconds(lambda seed, where=where: draw(where, seed))  # type: ignore[misc]
        print(
            (
                f"{selectivity:>9g}  first {first * 1000:9.1f} ms   again {repeated * 1000:7.2f} "
                f"ms   {repeated / unfiltered:5.2f} x"
            ),
            flush=True,
        )


def main() -> None:
    """Fill a graph and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=8)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="asterism-conditions-") as folder,
        asterism.open(folder, conditions_mib=4096) as client,
    ):
        graph = fill(client, args.nodes, args.degree)
        starts = np.random.default_rng(3).integers(0, args.nodes, DRAWS // 10)
        report(
            f"{DRAWS} nodes",
            "x",
            lambda where, seed: graph.sample_nodes(DRAWS, "n", where=where, seed=seed),
        )
        job = client.wait(
            client.submit_job(
                "conditions", "index", options={"type": "n", "on": "x", "kind": "range"}
            ).job_id,
            timeout_s=3600,
        )
        print(f"\nan index of them: {(job.finished_ms - job.started_ms) / 1000:.1f} s")
        report(
            f"{DRAWS} nodes, with an index",
            "x",
            lambda where, seed: graph.sample_nodes(DRAWS, "n", where=where, seed=seed),
        )
        report(
            f"{DRAWS} edges",
            "y",
            lambda where, seed: graph.sample_edges(DRAWS, "to", where=where, seed=seed),
        )
        report(
            f"{DRAWS} edges, with an index",
            "y",
            lambda where, seed: graph.sample_edges(DRAWS, "by", where=where, seed=seed),
        )
        report(
            f"10 neighbors of {len(starts)}",
            "y",
            lambda where, seed: graph.sample_neighbors(starts, "to", 10, where=where, seed=seed),
        )
        for prefix, options in (
            ("", {}),
            ("uniform ", {"weighted": False}),
            ("different ", {"replace": False}),
        ):
            report(
                f"10 {prefix}neighbors of {len(starts)}, with an index",
                "y",
                lambda where, seed, how=options: graph.sample_neighbors(
                    starts, "by", 10, where=where, seed=seed, **how
                ),  # type: ignore[misc]
            )
        report(
            f"10 neighbors of {len(starts)}, by what they are",
            "dst.x",
            lambda where, seed: graph.sample_neighbors(starts, "to", 10, where=where, seed=seed),
        )


if __name__ == "__main__":
    main()
