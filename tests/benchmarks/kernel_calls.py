"""Benchmark of calls in one source tree relative to another, in small and large batches.

    python -m tests.benchmarks.kernel_calls /path/to/base /path/to/changed
    python -m tests.benchmarks.kernel_calls /path/to/base /path/to/changed --runs 25 --only walk

The trees take turns: each run is a process of its own, which opens an embedded graph that its tree
has built and times every call. A line is one call at one batch size: the median time of the base,
and the median ratio changed / base over pairs of runs with its 95 % interval (order statistics). It
asserts nothing."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

clock = time.perf_counter
BATCHES = (16, 4096)
NODES, EDGES, PARTS = 200_000, 3_000_000, 4
SECONDS_PER_CALL = 0.15
"""Seconds that a run spends on one call.

The result is the smallest mean of `SLICES` slices of it.
"""
SLICES = 5
CONFIDENCE = 0.95


def build(client: Any) -> None:
    """Create the graph: users who buy items, with weights, times and an index."""
    edge_options = {
        "weighted": True,
        "features": {"t": "int64", "paid": "float32"},
        "time": "t",
        "index": ["paid"],
    }
    client.create_space(
        "g",
        {
            "parts": PARTS,
            "nodes": {"u": {"weighted": True}, "i": {"weighted": True}},
            "edges": {"u:buys:i": edge_options, "i:by:u": edge_options, "u:follows:u": {}},
        },
    )
    graph, rng = client.graph("g"), np.random.default_rng(0)
    for ntype in ("u", "i"):
        graph.upsert_nodes(np.arange(NODES), ntype, weights=rng.random(NODES))
    for etype in ("buys", "by", "follows"):
        src, dst = rng.integers(0, NODES, EDGES // 3), rng.integers(0, NODES, EDGES // 3)
        features = {"t": rng.integers(0, 1000, src.size), "paid": rng.random(src.size)}
        for first in range(0, src.size, 1 << 18):
            block = slice(first, first + (1 << 18))
            if etype == "follows":
                graph.upsert_edges(src[block], dst[block], etype)
            else:
                block_features = {name: values[block] for name, values in features.items()}
                weights = rng.random(src[block].size)
                graph.upsert_edges(
                    src[block], dst[block], etype, weights=weights, features=block_features
                )
    graph.build()


def calls(graph: Any, batch: int) -> dict[str, Callable[[int], Any]]:
    """Return the calls that are timed, by name; each takes a seed."""
    ids = np.random.default_rng(1).integers(0, NODES, batch)
    times = np.full(batch, 500)
    path = ["buys", "by"]
    return {
        "nodes": lambda seed: graph.sample_nodes(batch, "u", seed=seed),
        "edges": lambda seed: graph.sample_edges(batch, "buys", seed=seed),
        "nodes, distinct": lambda seed: graph.sample_nodes(batch, "u", replace=False, seed=seed),
        "neighbors": lambda seed: graph.sample_neighbors(ids, "buys", 10, seed=seed),
        "neighbors, uniform": lambda seed: graph.sample_neighbors(
            ids, "buys", 10, weighted=False, seed=seed
        ),
        "neighbors, union": lambda seed: graph.sample_neighbors(
            ids, ["buys", "follows"], 10, seed=seed
        ),
        "neighbors, distinct": lambda seed: graph.sample_neighbors(
            ids, "buys", 4, replace=False, seed=seed
        ),
        "neighbors, distinct union": lambda seed: graph.sample_neighbors(
            ids, ["buys", "follows"], 4, replace=False, seed=seed
        ),
        "neighbors, filtered": lambda seed: graph.sample_neighbors(
            ids, "buys", 4, where="paid > 0.5", seed=seed
        ),
        "neighbors, filtered distinct": lambda seed: graph.sample_neighbors(
            ids, "buys", 2, where="paid > 0.2", replace=False, seed=seed
        ),
        "neighbors, temporal": lambda seed: graph.sample_neighbors(
            ids, "buys", 4, times=times, seed=seed
        ),
        "neighbors, temporal distinct": lambda seed: graph.sample_neighbors(
            ids, "buys", 2, times=times, replace=False, seed=seed
        ),
        "fanout": lambda seed: graph.sample_fanout(ids, path, [10, 5], seed=seed),
        "walk": lambda seed: graph.random_walk(ids, path * 4, seed=seed),
        "walk, restart": lambda seed: graph.random_walk(ids, path * 4, restart=0.2, seed=seed),
        "node2vec": lambda seed: graph.random_walk(ids, ["follows"] * 8, p=0.5, q=2.0, seed=seed),
        "node2vec, bipartite": lambda seed: graph.random_walk(
            ids, path * 4, p=0.5, q=2.0, seed=seed
        ),
        "top-k": lambda seed: graph.top_k_neighbors(ids, "buys", 3),
        "labor": lambda seed: graph.sample_labor(ids, [5, 5], path, ntype="u", seed=seed),
        "subgraph": lambda seed: graph.sample_subgraph(ids, [5, 5], path, ntype="u", seed=seed),
        "subgraph, one type": lambda seed: graph.sample_subgraph(
            ids, [5, 5], ["follows"], seed=seed
        ),
        "induced": lambda seed: graph.induced_subgraph(np.unique(ids), ["follows"]),
        "pagerank": lambda seed: graph.personalized_pagerank(ids[: batch // 16], "follows", 10),
    }


def time_call(call: Callable[[int], Any]) -> float:
    """Return the seconds of a call: the smallest of the means of some slices of time."""
    for seed in range(3):
        call(seed)
    means = []
    for _ in range(SLICES):
        start, count, elapsed = clock(), 0, 0.0
        while elapsed < SECONDS_PER_CALL / SLICES:
            call(count)
            count += 1
            elapsed = clock() - start
        means.append(elapsed / count)
    return min(means)


def run_worker(folder: str, only: str) -> None:
    """Time every call of this process's tree, and print seconds by name as JSON."""
    import asterism

    seconds: dict[str, float | None] = {}
    built = Path(folder) / "built"
    with asterism.open(Path(folder) / "data") as client:
        if not built.exists():
            build(client)
            built.touch()
        graph = client.graph("g")
        for batch in BATCHES:
            for name, call in calls(graph, batch).items():
                if only not in name:
                    continue
                try:
                    seconds[f"{name}, {batch}"] = time_call(call)
                except Exception as error:
                    print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                    seconds[f"{name}, {batch}"] = None
    print(json.dumps(seconds))


def run_tree(tree: Path, folder: Path, only: str) -> dict[str, float | None]:
    """Run a worker with a tree's modules, and return its seconds by name."""
    folders = [tree / name for name in ("services", "client", "proto")]
    python_path = os.pathsep.join(map(str, [*folders, tree]))
    command = ["env", f"PYTHONPATH={python_path}", sys.executable, str(Path(__file__).resolve())]
    completed = subprocess.run(
        [*command, "--worker", str(folder), "--only", only],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result: dict[str, float | None] = json.loads(completed.stdout.splitlines()[-1])
    return result


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the order statistics that contain the median with a probability of `CONFIDENCE`."""
    n, ordered = len(values), sorted(values)
    tail, k = 0.0, 0
    while k < n // 2:
        tail += math.comb(n, k) / 2**n
        if 2 * tail > 1 - CONFIDENCE:
            break
        k += 1
    k = max(k - 1, 0)
    return ordered[k], ordered[n - 1 - k]


def report(
    base: Sequence[Mapping[str, float | None]], changed: Sequence[Mapping[str, float | None]]
) -> None:
    """Print a line per call."""
    print(f"{'call, batch':<42}{'base':>12}{'ratio':>9}   interval", flush=True)
    for name in base[0]:
        pairs = [
            (first, second)
            for first, second in ((a[name], b[name]) for a, b in zip(base, changed, strict=True))
            if first and second
        ]
        if not pairs:
            print(f"{name:<42}{'failed':>12}")
            continue
        ratios = [second / first for first, second in pairs]
        low, high = median_interval(ratios)
        microseconds = statistics.median(first for first, _ in pairs) * 1e6
        print(
            f"{name:<42}{microseconds:>9.1f} us{statistics.median(ratios):>9.3f}   "
            f"{low:.3f} .. {high:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("trees", nargs="*", type=Path, help="base and changed")
    parser.add_argument("--runs", type=int, default=15, help="of each tree")
    parser.add_argument("--only", default="", help="calls with names that contain this")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        run_worker(arguments.worker, arguments.only)
        return
    if len(arguments.trees) != 2:
        parser.error("expected two trees")
    trees = [tree.resolve() for tree in arguments.trees]
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder) / name for name in ("base", "changed")]
        for tree, tree_folder in zip(trees, folders, strict=True):
            tree_folder.mkdir()
            run_tree(tree, tree_folder, arguments.only)  # builds the graph and compiles the kernels
        results: tuple[list[Any], list[Any]] = [], []
        for run in range(arguments.runs):
            for i in (0, 1) if run % 2 == 0 else (1, 0):
                results[i].append(run_tree(trees[i], folders[i], arguments.only))
            print(f"{run + 1} of {arguments.runs} runs", file=sys.stderr, flush=True)
        report(*results)


if __name__ == "__main__":
    main()
