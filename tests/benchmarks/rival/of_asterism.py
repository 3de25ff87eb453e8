"""Asterism: embedded in one thread, or a cluster with its client on all cores.

The arguments "grpc" and "direct" select the cluster of three storageds and a graphd.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from answering import TOGETHER, Graph, answer, real
from tests.kit.cluster import LocalCluster

import asterism
from storaged.store.huge_pages import reload_images

CHUNK, IN_FLIGHT = 1 << 20, 4
SCHEMA = {"nodes": {"n": {"weighted": True}}, "edges": {"n:to:n": {"weighted": True}}, "parts": 8}


def fill(graph: Graph, client: asterism.Client) -> None:
    """Load the graph and build it."""
    src, dst, weights, node_weights = (
        graph.column(name) for name in ("src", "dst", "weights", "node_weights")
    )
    client.create_space("rivals", SCHEMA)
    load = client.begin_load("rivals", source="generated")
    index = 0
    for start in range(0, graph.nodes, CHUNK):
        ids = np.arange(start, min(start + CHUNK, graph.nodes))
        load.write_nodes(index, "n", ids, weights=node_weights[ids])
        index += 1
    for start in range(0, src.size, CHUNK):
        rows = slice(start, start + CHUNK)
        load.write_edges(index, "to", src[rows], dst[rows], weights=weights[rows], ends_known=True)
        index += 1
    load.commit()
    client.graph("rivals").build(timeout_s=3600)


def serve(
    name: str,
    graph: Graph,
    client: asterism.Client,
    map_seeds: Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]],
) -> None:
    """Answer requests for a loaded graph.

    ``map_seeds`` maps a call over seeds, for batches that are requested together.
    """
    served_graph, starts, seeds = (
        client.graph("rivals"),
        graph.column("starts"),
        graph.column("seeds"),
    )

    def neighbors(seed: int, weighted: bool) -> Any:
        return served_graph.sample_neighbors(
            starts, "to", graph.width, weighted=weighted, weights=False, seed=seed
        ).nodes

    def walk(seed: int, **options: Any) -> Any:
        return served_graph.random_walk(
            starts[: graph.walkers], ["to"], graph.length, seed=seed, **options
        ).nodes

    def batch(seed: int, weighted: bool) -> Any:
        return served_graph.sample_subgraph(
            seeds[seed % len(seeds)], graph.fanouts, weighted=weighted, seed=seed
        )

    def batch_group(seed: int, weighted: bool) -> list[Any]:
        return list(
            map_seeds(
                lambda own: batch(own, weighted), range(seed * TOGETHER, (seed + 1) * TOGETHER)
            )
        )

    def edges(subgraph: Any) -> int:
        return sum(sum(counts) for counts in subgraph.num_sampled_edges.values())

    answer(
        name,
        {
            "nodes by weight": (
                lambda seed: served_graph.sample_nodes(graph.draws, "n", seed=seed).nodes,
                len,
            ),
            "neighbors by weight": (lambda seed: neighbors(seed, True), np.size),
            "neighbors uniformly": (lambda seed: neighbors(seed, False), np.size),
            "walks by weight": (lambda seed: walk(seed), real),
            "walks uniformly": (lambda seed: walk(seed, weighted=False), real),
            "node2vec by weight": (lambda seed: walk(seed, p=graph.p, q=graph.q), real),
            "subgraph by weight": (lambda seed: batch(seed, True), edges),
            "subgraph uniformly": (lambda seed: batch(seed, False), edges),
            "subgraphs by weight": (
                lambda seed: batch_group(seed, True),
                lambda found: sum(map(edges, found)),
            ),
            "subgraphs uniformly": (
                lambda seed: batch_group(seed, False),
                lambda found: sum(map(edges, found)),
            ),
        },
    )


def main(folder: str, *modes: str) -> None:
    graph, home = Graph.at(folder), Path(folder) / "asterism"
    if "grpc" in modes or "direct" in modes:
        with (
            LocalCluster(storageds=3, fast=False) as cluster,
            ThreadPoolExecutor(IN_FLIGHT) as pool,
        ):
            client = cluster.client(direct="direct" in modes)
            fill(graph, client)
            serve(
                f"Asterism {'direct' if 'direct' in modes else 'over gRPC'}, {IN_FLIGHT} in flight",
                graph,
                client,
                pool.map,
            )
        return
    if "fill" in modes:
        with asterism.open(home) as client:
            fill(graph, client)
        return
    if not home.exists():  # another process loads and builds, so that its memory is not measured
        subprocess.run(
            [sys.executable, __file__, folder, "fill"], check=True, stdout=subprocess.DEVNULL
        )
    reload_images(
        sorted({path.parent for path in home.rglob("*.bin")})
    )  # the other rivals have the data in memory before the first call, too
    with asterism.open(home, mode="r") as client:
        serve("Asterism", graph, client, map)


if __name__ == "__main__":
    main(*sys.argv[1:])
