"""Benchmark of nanoseconds per draw through `storaged.sampling`, against memory latency.

    python -m tests.benchmarks.draws                # 1M and 10M rows, RMAT 1M / 16M
    python -m tests.benchmarks.draws --rows 100000 --rmat 14 --degree 8 --draws 100000    # small

It asserts nothing. Every figure is the best of a few runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, version_of

from asterism_graphkit.compile.jit import as_kernel_array, kernel, prefetch
from asterism_graphkit.random.rng import bounded, key_of, word
from asterism_model.schema import EdgeType, NodeType, Schema, WeightTable
from storaged import sampling

clock = time.perf_counter
WEIGHT_NAME = "other"
TABLES = (WeightTable(name=WEIGHT_NAME, expression="sqrt(weight)"),)


@kernel
def _random_reads(key: np.uint64, values: NDArray[np.uint64], count: np.int64) -> np.uint64:
    """Return the sum of ``count`` random elements: hash, prefetch a block, read it."""
    n = np.uint64(values.shape[0])
    indices = np.empty(64, np.uint64)
    total = np.uint64(0)
    for first in range(0, count, 64):
        for k in range(64):
            indices[k] = bounded(word(key, np.uint64(first + k)), n)
            prefetch(values, indices[k])
        for k in range(64):
            total += values[indices[k]]
    return total


def best(run: Callable[[int], Any], repeats: int) -> float:
    """Return seconds of the fastest of ``repeats`` runs after a warm-up.

    Each run has its own seed.
    """
    run(0)
    times = []
    for seed in range(1, repeats + 1):
        start = clock()
        run(seed)
        times.append(clock() - start)
    return min(times)


def report(label: str, seconds: float, draws: int) -> None:
    print(f"{label:<78}{seconds / draws * 1e9:>9.1f} ns", flush=True)


def report_memory(mebibytes: int, repeats: int) -> None:
    values = as_kernel_array(np.ones(mebibytes << 17, np.uint64))
    count = 1 << 20
    report(
        f"random 8-byte reads from {mebibytes} MiB",
        best(lambda seed: _random_reads(key_of(seed), values, np.int64(count)), repeats),
        count,
    )


def report_global_draws(rows: int, parts: int, draws: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    weights = rng.random(rows).astype(np.float32)
    schema = Schema(node_types=(NodeType(name="n", weighted=True, tables=TABLES),), parts=parts)
    base_version = version_of(
        schema,
        {
            "n": Nodes(
                ids=np.arange(rows, dtype=np.int64),
                weights=weights,
                extra_weights={WEIGHT_NAME: np.sqrt(weights)},
            )
        },
    )
    common: dict[str, Any] = {"types": [0], "parts": range(parts), "start": 0, "count": draws}
    for distribution, version, uniform in (
        ("by weight", base_version, False),
        ("by a further weight", base_version.with_weights(WEIGHT_NAME, sampling.NODE, [0]), False),
        ("uniform", base_version, True),
    ):
        arguments = common | {"version": version, "uniform": uniform}
        report(
            f"draw.nodes {distribution}, {rows:,} rows in {parts} parts, {draws:,} draws",
            best(lambda seed, g=arguments: sampling.sample_nodes(seed=seed, **g), repeats),
            draws,
        )  # type: ignore[misc]
        arguments["want_probabilities"] = True
        report(
            "  with probabilities",
            best(lambda seed, g=arguments: sampling.sample_nodes(seed=seed, **g), repeats),
            draws,
        )  # type: ignore[misc]
    seconds = best(
        lambda seed: sampling.sample_nodes(
            base_version, seed=seed, uniform=False, **(common | {"count": 1000})
        ),
        repeats,
    )
    report(f"  by weight, {1000:,} draws a call", seconds, 1000)
    p = weights / weights.sum(dtype=np.float64)
    numpy_draws = min(draws, 100_000)
    report(
        "  numpy rng.choice(p=...)",
        best(lambda seed: np.random.default_rng(seed).choice(rows, numpy_draws, p=p), 2),
        numpy_draws,
    )


def rmat(scale: int, degree: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an R-MAT graph of 2^scale nodes with ``degree`` edges per node.

    The parameters are Graph500's (.57, .19, .19, .05).
    """
    rng = np.random.default_rng(1)
    edges = degree << scale
    src, dst = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    for _ in range(scale):
        u = rng.random(edges, np.float32)
        src = src * 2 + (u > 0.76)
        dst = dst * 2 + (((u > 0.57) & (u <= 0.76)) | (u > 0.95))
    shuffle = rng.permutation(1 << scale)
    return shuffle[src], shuffle[dst]


def report_neighbor_draws(scale: int, degree: int, parts: int, seeds: int, repeats: int) -> None:
    src, dst = rmat(scale, degree)
    rng = np.random.default_rng(2)
    edge_type = EdgeType(src_type="n", relation="e", dst_type="n", weighted=True, tables=TABLES)
    schema = Schema(node_types=(NodeType(name="n"),), edge_types=(edge_type,), parts=parts)
    weights = rng.random(src.size).astype(np.float32) + np.float32(0.01)
    edges = Edges(src=src, dst=dst, weights=weights, extra_weights={WEIGHT_NAME: np.sqrt(weights)})
    version = version_of(
        schema, {"n": Nodes(ids=np.arange(1 << scale, dtype=np.int64))}, {"n:e:n": edges}
    )
    distributions = (
        ("by weight", version, False),
        ("by a further weight", version.with_weights(WEIGHT_NAME, sampling.EDGE, [0]), False),
        ("uniform", version, True),
    )
    print(
        f"RMAT: {1 << scale:,} nodes, {src.size:,} edges, {parts} parts; {seeds:,} seeds "
        "that have neighbors"
    )
    ids = rng.choice(src, seeds)  # by degree, like the nodes of a second hop
    shuffled = rng.permutation(np.unique(src))[:seeds]
    common: dict[str, Any] = {
        "edge_types": [0],
        "node_type": 0,
        "direction": 1,
        "hop": 0,
        "want_weights": False,
        "want_edge_ids": False,
    }
    for node_choice, nodes in (("nodes alike", shuffled), ("nodes by degree", ids)):
        positions = np.arange(nodes.size)
        for replace in (True, False):
            for distribution, weighted_version, uniform in distributions:
                arguments = common | {
                    "version": weighted_version,
                    "ids": nodes,
                    "positions": positions,
                    "count": 10,
                    "replace": replace,
                    "uniform": uniform,
                }

                def run(seed: int, given: dict[str, Any] = arguments) -> Any:
                    return sampling.sample_neighbors(seed=seed, **given)

                label = f"{distribution}, {'with' if replace else 'without'} replacement"
                report(
                    f"draw.neighbors x 10 {label}, {node_choice}",
                    best(run, repeats),
                    nodes.size * 10,
                )
                arguments["want_probabilities"] = True
                report("  with probabilities", best(run, repeats), nodes.size * 10)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows",
        type=int,
        nargs="*",
        default=[1_000_000, 10_000_000],
        help="sizes of the tables of global draws",
    )
    parser.add_argument(
        "--rmat",
        type=int,
        default=20,
        help="log2 of the nodes of the graph of neighbor draws; 0: none",
    )
    parser.add_argument("--degree", type=int, default=16, help="edges a node of that graph")
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--memory-mib", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="seconds of a core, not on the wall: for a host that is busy with other work",
    )
    options = parser.parse_args()
    if options.processor_time:
        global clock
        clock = time.process_time
    report_memory(options.memory_mib, options.repeats)
    for rows in options.rows:
        report_global_draws(rows, options.parts, options.draws, options.repeats)
    if options.rmat:
        report_neighbor_draws(
            options.rmat, options.degree, options.parts, options.seeds, options.repeats
        )


if __name__ == "__main__":
    main()
