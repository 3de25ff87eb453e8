"""Benchmark of statements against the equivalent calls: ``tests.benchmarks.statements``.

Both run in turns on the same client, over gRPC on a cluster of processes and embedded. It prints
medians side by side."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.kit import cases
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Graph

ROUNDS = 400
PEOPLE = cases.person_ids()[:64]
PAIRS: list[tuple[str, Callable[[Graph], Any]]] = [
    (
        "SAMPLE 256 VERTICES ON person SEED 7",
        lambda graph: graph.sample_nodes(256, "person", seed=7),
    ),
    (
        "SAMPLE 256 VERTICES ON person WHERE age > 40 SEED 7",
        lambda graph: graph.sample_nodes(256, "person", where="age > 40", seed=7),
    ),
    ("SAMPLE 256 EDGES ON writes SEED 7", lambda graph: graph.sample_edges(256, "writes", seed=7)),
    (
        "SAMPLE 10 NEIGHBORS FROM $people OVER writes SEED 7",
        lambda graph: graph.sample_neighbors(PEOPLE, "writes", 10, seed=7),
    ),
    (
        "GO 2 STEPS FROM $people OVER writes THEN cites SAMPLE [10, 5] SEED 7",
        lambda graph: graph.sample_fanout(PEOPLE, ["writes", "cites"], [10, 5], seed=7),
    ),
    (
        "TOP 5 NEIGHBORS FROM $people OVER writes",
        lambda graph: graph.top_k_neighbors(PEOPLE, "writes", 5),
    ),
    (
        "WALK 8 STEPS FROM $people OVER writes THEN by SEED 7",
        lambda graph: graph.random_walk(PEOPLE, ["writes", "by"], 8, seed=7),
    ),
]


def main() -> None:
    """Print a line for each statement and place."""
    print(
        f"{'':64} {'call':>9} {'statement':>10} {'more':>9}   (ms, medians of {ROUNDS}; of "
        "what each pair differs by)"
    )
    with tempfile.TemporaryDirectory() as folder, asterism.open(Path(folder)) as client:
        compare("inside a process", cases.load(client, "cases"))
    with LocalCluster(2, fast=False) as cluster, cluster.client() as client:
        compare("cluster", cases.load(client, "cases"))


def compare(place: str, graph: Graph) -> None:
    """Print a line for each statement in one place."""
    print(place)
    for statement, call in PAIRS:
        call_ms, query_ms = [], []
        for round_index in range(ROUNDS + 20):
            call_s = elapsed_s(call, graph)
            query_s = elapsed_s(graph.query, statement, {"people": PEOPLE})
            if round_index >= 20:
                call_ms.append(call_s * 1e3)
                query_ms.append(query_s * 1e3)
        median_difference = statistics.median(b - a for a, b in zip(call_ms, query_ms, strict=True))
        print(
            f"  {statement:62} {statistics.median(call_ms):9.3f} "
            f"{statistics.median(query_ms):10.3f} {median_difference:+9.3f}"
        )


def elapsed_s(run: Callable[..., Any], *arguments: Any) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - started


if __name__ == "__main__":
    np.seterr(all="raise")
    main()
