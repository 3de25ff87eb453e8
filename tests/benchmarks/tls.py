"""Cost of TLS: small calls and batches with and without it, over gRPC and directly.

``python -m tests.benchmarks.tls`` prints milliseconds per call, measured in turns, on two clusters
of one storaged and one graphd with the same graph: one plain, one with mutual TLS.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism

NODES, EDGES, FEATURES = 100_000, 1_000_000, 128
ROUNDS, CALLS, BATCHES, SEEDS, CONNECTIONS = 9, 200, 20, 1024, 20


def load(client: asterism.Client) -> None:
    """Load and build the graph: one type of nodes with features, one of edges."""
    client.create_space(
        "bench",
        {
            "nodes": {"node": {"features": {"vec": {"dtype": "float32", "shape": [FEATURES]}}}},
            "edges": {"node:to:node": {"weighted": True}},
        },
    )
    random = np.random.default_rng(1)
    open_load, features = client.begin_load("bench"), random.random((NODES, FEATURES), np.float32)
    for chunk, first in enumerate(range(0, NODES, 10_000)):
        rows = slice(first, first + 10_000)
        open_load.write_nodes(
            chunk, "node", np.arange(NODES)[rows], features={"vec": features[rows]}
        )
    open_load.write_edges(
        100,
        "to",
        random.integers(0, NODES, EDGES),
        random.integers(0, NODES, EDGES),
        weights=random.random(EDGES).astype(np.float32),
    )
    open_load.commit()
    client.graph("bench").build(timeout_s=HANG_S)


def median_ms(call: Callable[[int], object], count: int) -> float:
    """Return the median milliseconds of a call."""
    times = []
    for seed in range(count):
        started = time.perf_counter()
        call(seed)
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def connect_ms(cluster: LocalCluster) -> float:
    """Return the median milliseconds of the first call of a new client."""

    def call(_: int) -> None:
        with asterism.connect(cluster.addresses, tls=cluster.tls or False) as client:
            client.spaces()

    return median_ms(call, CONNECTIONS)


def measure(cluster: LocalCluster) -> dict[str, float]:
    """Return milliseconds by name."""
    times = {"first call of a client": connect_ms(cluster)}
    seeds = np.random.default_rng(2).integers(0, NODES, SEEDS)
    for direct in (False, True):
        with cluster.client(direct=direct) as client:
            graph = client.graph("bench")

            def small(seed: int, graph: asterism.Graph = graph) -> object:
                return graph.sample_nodes(8, "node", seed=seed)

            def batch(seed: int, graph: asterism.Graph = graph) -> object:
                return graph.sample_fanout(
                    seeds, ["to", "to"], [10, 5], node_features=["vec"], seed=seed
                )

            name = "direct" if direct else "by graphd"
            batch(0)
            times[f"8 nodes, {name}"] = median_ms(small, CALLS)
            times[f"batch of {SEEDS} seeds with features, {name}"] = median_ms(batch, BATCHES)
    return times


def main() -> None:
    """Measure in turns, and print medians and their ratios."""
    with LocalCluster(1, fast=False) as plain, LocalCluster(1, fast=False, tls=True) as tls:
        for cluster in (plain, tls):
            load(cluster.client())
            measure(cluster)
        rounds = [(measure(plain), measure(tls)) for _ in range(ROUNDS)]
    print(f"{'milliseconds':52} {'plain':>8} {'TLS':>8} {'ratio':>7}   of rounds")
    for name in rounds[0][0]:
        without, with_tls = (statistics.median(pair[i][name] for pair in rounds) for i in (0, 1))
        ratios = sorted(pair[1][name] / pair[0][name] for pair in rounds)
        print(
            f"{name:52} {without:8.2f} {with_tls:8.2f} {statistics.median(ratios):7.2f}   "
            f"{ratios[0]:.2f} - {ratios[-1]:.2f}"
        )


if __name__ == "__main__":
    main()
