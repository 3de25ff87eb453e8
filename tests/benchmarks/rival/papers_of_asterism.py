"""Samplers of recent papers in Asterism, embedded in one thread or over gRPC.

With the argument "grpc", three storageds and a graphd share one core.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from answering import Graph, Papers, answer
from tests.kit.cluster import LocalCluster

import asterism
from asterism import export, saint
from asterism.calls.clusters import Clusters
from storaged.store.huge_pages import reload_images

CHUNK, CLUSTER_SIZE = 1 << 20, 1 << 10
SCHEMA = {
    "nodes": {"n": {}},
    "edges": {"n:to:n": {"weighted": True, "features": {"when": "int64"}, "time": "when"}},
    "direction": "both",
    "parts": 8,
}


def fill(graph: Graph, client: asterism.Client) -> None:
    """Load the graph and build it."""
    src, dst, weights, times = (
        graph.column(name) for name in ("src", "dst", "weights", "node_times")
    )
    client.create_space("papers", SCHEMA)
    load = client.begin_load("papers", source="generated")
    index = 0
    for start in range(0, graph.nodes, CHUNK):
        load.write_nodes(index, "n", np.arange(start, min(start + CHUNK, graph.nodes)))
        index += 1
    for start in range(0, src.size, CHUNK):
        rows = slice(start, start + CHUNK)
        load.write_edges(
            index,
            "to",
            src[rows],
            dst[rows],
            weights=weights[rows],
            features={"when": times[dst[rows]]},
            ends_known=True,
        )
        index += 1
    load.commit()
    client.graph("papers").build(timeout_s=3600)


def load_clusters(graph: Graph, client: asterism.Client) -> Clusters:
    """Return clusters of the graph's nodes for all rivals; computed once by streaming."""
    folder, served_graph = graph.folder / "clusters", client.graph("papers")
    if not folder.exists():
        export.assignment(
            served_graph, folder, parts=max(graph.nodes // CLUSTER_SIZE, 1), assign="ldg"
        )
    stored = Clusters.in_folder(folder)
    cluster_ids = np.repeat(np.arange(stored.count), np.diff(stored.offsets["n"]))
    return Clusters.of_arrays(
        served_graph, {"n": (stored.members["n"], cluster_ids)}
    )  # bound to this version, whichever they were computed on


def serve(name: str, graph: Graph, papers: Papers, client: asterism.Client) -> None:
    """Answer requests for a loaded graph."""
    served_graph = client.graph("papers")
    times, seeds, members, starts = (
        graph.column(column) for column in ("node_times", "seeds", "members", "starts")
    )
    fanouts, shadow_fanouts = graph.fanouts, papers.shadow
    saints: dict[str, saint.Sampler] = {
        "SAINT by nodes": saint.NodeSampler(served_graph, "to", papers.budget, seed=1),
        "SAINT by edges": saint.EdgeSampler(served_graph, "to", papers.budget // 2, seed=1),
        "SAINT by walks": saint.RandomWalkSampler(
            served_graph, "to", papers.roots, papers.length, seed=1
        ),
    }

    def labor(seed: int, **options: Any) -> Any:
        return served_graph.sample_labor(batch_of(seeds, seed), fanouts, "to", seed=seed, **options)

    def temporal(seed: int, **options: Any) -> Any:
        nodes = batch_of(seeds, seed)
        return served_graph.sample_subgraph(
            nodes, fanouts, "to", times=times[nodes], disjoint=True, seed=seed, **options
        )

    def pinsage(seed: int) -> Any:
        options = {
            "walks": papers.walks,
            "traversals": papers.traversals,
            "termination": 0.5,
            "weighted": False,
        }
        return served_graph.sample_pinsage(
            batch_of(seeds, seed), ["to"], papers.neighbors, seed=seed, **options
        )

    def batch_of(rows: Any, seed: int) -> Any:
        return rows[seed % len(rows)]

    batches = served_graph.cluster_batches(
        load_clusters(graph, client), papers.clusters, "to", seed=1
    )
    initial_state = batches.state_dict()
    cluster_groups = [batch.clusters for batch in batches if len(batch.clusters) == papers.clusters]
    np.save(graph.folder / "together.npy", cluster_groups)
    call_counter = itertools.count()

    def cluster_batch(_: int) -> Any:
        """Return the same batches repeatedly, in the same order as for other rivals."""
        if next(call_counter) % len(cluster_groups) == 0:
            batches.load_state_dict(initial_state)
        return batches.next_batch().subgraph

    def edges(subgraph: Any) -> int:
        return sum(sum(counts) for counts in subgraph.num_sampled_edges.values())

    def shadow(seed: int) -> Any:
        return served_graph.sample_ego_subgraphs(
            batch_of(seeds, seed),
            shadow_fanouts,
            "to",
            weighted=False,
            disjoint=False,
            expand="every",
            seed=seed,
        )

    def ranks(seed: int) -> Any:
        batch_starts = starts[seed * papers.starts % (len(starts) - papers.starts) :][
            : papers.starts
        ]
        return served_graph.personalized_pagerank(
            batch_starts, "to", papers.top, alpha=papers.alpha, epsilon=papers.epsilon
        )

    def hgt(seed: int) -> Any:
        return served_graph.sample_hgt(
            batch_of(seeds, seed),
            [len(seeds[0]) * fanouts[0]] * len(fanouts),
            "to",
            weighted=False,
            edge_ids=False,
            seed=seed,
        )

    tasks: dict[str, tuple[Callable[[int], Any], Callable[[Any], int]]] = {
        "LABOR-0 uniformly": (lambda seed: labor(seed, weighted=False), edges),
        "LABOR-0 by weight": (lambda seed: labor(seed), edges),
        "LABOR-1 by weight": (lambda seed: labor(seed, importance=1), edges),
        "PinSAGE": (pinsage, lambda found: int(found.mask.sum())),
        "ShaDow": (shadow, edges),
        "induced subgraph": (
            lambda seed: served_graph.induced_subgraph(batch_of(members, seed), "to"),
            edges,
        ),
        "cluster batches": (cluster_batch, edges),
        "PageRank, the highest": (ranks, lambda found: int(found.mask.sum())),
        "temporal uniformly": (lambda seed: temporal(seed, weighted=False), edges),
        "temporal by weight": (temporal, edges),
        "temporal, the last": (lambda seed: temporal(seed, strategy="last"), edges),
        "HGT": (hgt, edges),
    }
    answer(name, tasks | {task: (sampler.batch, edges) for task, sampler in saints.items()})


def main(folder: str, *modes: str) -> None:
    graph, papers, home = Graph.at(folder), Papers.at(folder), Path(folder) / "asterism"
    if "grpc" in modes:
        with LocalCluster(storageds=3, fast=False) as cluster:
            client = cluster.client()
            fill(graph, client)
            serve("Asterism over gRPC", graph, papers, client)
        return
    if not home.exists():
        with asterism.open(home) as client:
            fill(graph, client)
    reload_images(
        sorted({path.parent for path in home.rglob("*.bin")})
    )  # the other rivals have the data in memory before the first call, too
    with asterism.open(home, mode="r") as client:
        serve("Asterism", graph, papers, client)


if __name__ == "__main__":
    main(*sys.argv[1:])
