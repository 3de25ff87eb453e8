"""Requests about one node with very many edges: kernels stop inside its row.

Memory stays within the bound.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.usage import MIB, drain_cpu_s, peak_bytes, reset_peak
from tests.kit.waiting import HANG_S

from asterism import AsterismError, Graph
from asterism_proto.errors import Deadline, InvalidRequest

NODES, EDGES = 100_000, 300_000
SHORT, LONG = 300_000, 10_000_000
DEADLINE_S = 0.2
STOP_S = 1.0
"""CPU time that a daemon may use after a deadline: 0.1 s, times 10 for a slow machine.

It does not grow with other load on the machine.
"""
PEAK_MIB = 1024
"""Peak memory of one request in one daemon: docs/serving.md, "Limits of a request"."""
HUB = np.zeros(20_000, np.int64)
ONE = np.zeros(1, np.int64)
ALL = np.arange(NODES)


@pytest.fixture(scope="module", params=[SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
def cluster_and_graph(request: pytest.FixtureRequest) -> Iterator[tuple[LocalCluster, Graph]]:
    """Return a cluster and a graph with a hub; few of the hub's edges have almost all weight."""
    with LocalCluster(storageds=1, graphds=1) as cluster:
        client = cluster.client(timeout_s=HANG_S)
        edges = {
            "n:to:n": {"weighted": True, "features": {"t": {"dtype": "int64"}}, "time": "t"},
            "n:by:n": {},
        }
        client.create_space("g", {"parts": 2, "nodes": {"n": {}}, "edges": edges})
        rng = np.random.default_rng(5)
        load = client.begin_load("g", source="generated")
        load.write_nodes(0, "n", ALL)
        for chunk, (name, begin) in enumerate(
            [
                (name, begin)
                for name in ("to", "by")
                for begin in range(0, request.param, 1_000_000)
            ],
            1,
        ):
            size = min(1_000_000, request.param - begin)
            columns: dict[str, Any] = {"ends_known": True}
            if name == "to":
                weights = rng.random(size)
                weights[:10] = 1e9
                columns |= {"weights": weights, "features": {"t": rng.integers(0, 50, size)}}
            load.write_edges(
                chunk, name, np.zeros(size, np.int64), rng.integers(0, NODES, size), **columns
            )
        src, dst = rng.integers(0, NODES, (2, EDGES))
        load.write_edges(
            1000,
            "to",
            src,
            dst,
            weights=rng.random(EDGES),
            features={"t": rng.integers(0, 50, EDGES)},
            ends_known=True,
        )
        load.commit()
        graph = client.graph("g")
        graph.build()
        graph.sample_nodes(1, "n")  # so that the storaged has opened the version
        yield cluster, graph


CASES: dict[str, Callable[[Graph], Any]] = {
    "different neighbors of a hub": lambda g: g.sample_neighbors(
        HUB, "to", 100, replace=False, seed=1
    ),
    "many different neighbors of a hub": lambda g: g.sample_neighbors(
        ONE, "to", 200_000, replace=False, seed=1
    ),
    "different neighbors of a hub, drawn alike": lambda g: g.sample_neighbors(
        HUB, "by", 100, replace=False, seed=1
    ),
    "different neighbors of a union": lambda g: g.sample_neighbors(
        HUB, ["to", "by"], 100, replace=False, seed=1
    ),
    "many neighbors of a hub": lambda g: g.sample_neighbors(ONE, ["to", "by"], 3_000_000, seed=1),
    "probabilities": lambda g: g.sample_neighbors(
        HUB[:1000], "to", 1000, replace=False, probabilities=True, seed=1
    ),
    "neighbors until a time": lambda g: g.sample_neighbors(
        HUB, "to", 100, replace=False, times=np.full(HUB.size, 40), seed=1
    ),
    "heaviest": lambda g: g.top_k_neighbors(HUB, ["to", "by"], 100),
    "many of the heaviest": lambda g: g.top_k_neighbors(ONE, "to", 200_000),
    "a subgraph": lambda g: g.sample_subgraph(ALL[:1000], [50, 50], ["to", "by"], seed=1),
    "all neighbors": lambda g: g.neighbors(ONE, ["to", "by"]),
    "by variates": lambda g: g.sample_labor(ALL, [20, 20], "to", importance=5, seed=1),
    "edges among nodes": lambda g: g.induced_subgraph(ALL, ["to", "by"]),
    "edges between nodes": lambda g: g.adjacency(HUB[:1], ALL, ["to", "by"]),
    "a layer": lambda g: g.sample_layer(ALL[:1000], "to", 50_000, seed=1),
    "walks by p and q": lambda g: g.random_walk(ALL, ["to"], 40, p=0.25, q=4.0, seed=1),
}
REFUSED = ("all neighbors", "edges among nodes", "edges between nodes", "a layer")
"""Cases that are too large for a reply or a layer when a hub has ten million edges."""


@pytest.mark.parametrize("case", CASES)
def test_kernels_stop_soon_after_a_deadline(
    case: str, cluster_and_graph: tuple[LocalCluster, Graph]
) -> None:
    """Measure the CPU time of both daemons after the client has given up."""
    cluster, graph = cluster_and_graph
    with cluster.client(timeout_s=DEADLINE_S) as client:
        graph_with_deadline = client.graph("g")
        graph_with_deadline._session.store_schema("g", graph.schema)
        with contextlib.suppress(Deadline, *([InvalidRequest] if case in REFUSED else [])):
            CASES[case](graph_with_deadline)
    overruns = drain_cpu_s(cluster, "storaged-0", "graphd-0")
    print(f"\n{case}: processor time after the deadline {overruns} s")
    assert max(overruns.values()) < STOP_S, overruns


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        "many different neighbors of a hub",
        "heaviest",
        "edges among nodes",
        "edges between nodes",
        "all neighbors",
    ],
)
def test_memory_keeps_to_the_bound(
    case: str, cluster_and_graph: tuple[LocalCluster, Graph]
) -> None:
    """Results too large for a reply are refused before they are copied."""
    cluster, graph = cluster_and_graph
    names = ("storaged-0", "graphd-0")
    before = {name: reset_peak(cluster, name) for name in names}
    with contextlib.suppress(AsterismError):
        CASES[case](graph)
    peaks = {name: (peak_bytes(cluster, name) - before[name]) // MIB for name in names}
    print(f"\n{case}: peak {peaks} MiB")
    assert max(peaks.values()) < PEAK_MIB
