"""The samplers of today's papers in Asterism: embedded in one thread, or, told "grpc", of three storageds and a graphd over gRPC, all on one core."""

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
from asterism.clusters import Clusters
from storaged.store.pages import settle_all

CHUNK, OF_A_CLUSTER = 1 << 20, 1 << 10
SCHEMA = {
    "nodes": {"n": {}},
    "edges": {"n:to:n": {"weighted": True, "features": {"when": "int64"}, "time": "when"}},
    "direction": "both",
    "parts": 8,
}


def fill(graph: Graph, client: asterism.Client) -> None:
    """Load the graph and build it."""
    src, dst, weights, times = (graph.column(name) for name in ("src", "dst", "weights", "node_times"))
    client.create_space("papers", SCHEMA)
    load = client.begin_load("papers", source="generated")
    index = 0
    for start in range(0, graph.nodes, CHUNK):
        load.write_nodes(index, "n", np.arange(start, min(start + CHUNK, graph.nodes)))
        index += 1
    for start in range(0, src.size, CHUNK):
        own = slice(start, start + CHUNK)
        load.write_edges(index, "to", src[own], dst[own], weights=weights[own], features={"when": times[dst[own]]}, ends_known=True)
        index += 1
    load.commit()
    client.graph("papers").build(timeout_s=3600)


def cluster(graph: Graph, client: asterism.Client) -> Clusters:
    """Clusters of the graph's nodes, for all who compare: made once, in a stream."""
    folder, held = graph.folder / "clusters", client.graph("papers")
    if not folder.exists():
        export.assignment(held, folder, parts=max(graph.nodes // OF_A_CLUSTER, 1), assign="ldg")
    made = Clusters.in_folder(folder)
    numbers = np.repeat(np.arange(made.count), np.diff(made.offsets["n"]))
    return Clusters.of_arrays(held, {"n": (made.members["n"], numbers)})  # of this version, whichever they were made of


def serve(name: str, graph: Graph, how: Papers, client: asterism.Client) -> None:
    """Answer for a graph that is there."""
    held = client.graph("papers")
    times, seeds, members, starts = (graph.column(column) for column in ("node_times", "seeds", "members", "starts"))
    deep, drawn = graph.fanouts, how.shadow
    saints: dict[str, saint.Sampler] = {
        "SAINT by nodes": saint.NodeSampler(held, "to", how.budget, seed=1),
        "SAINT by edges": saint.EdgeSampler(held, "to", how.budget // 2, seed=1),
        "SAINT by walks": saint.RandomWalkSampler(held, "to", how.roots, how.length, seed=1),
    }

    def labor(seed: int, **given: Any) -> Any:
        return held.sample_labor(of(seeds, seed), deep, "to", seed=seed, **given)

    def until(seed: int, **given: Any) -> Any:
        nodes = of(seeds, seed)
        return held.sample_subgraph(nodes, deep, "to", times=times[nodes], disjoint=True, seed=seed, **given)

    def visited(seed: int) -> Any:
        given = {"walks": how.walks, "traversals": how.traversals, "termination": 0.5, "weighted": False}
        return held.sample_pinsage(of(seeds, seed), ["to"], how.neighbors, seed=seed, **given)

    def of(rows: Any, seed: int) -> Any:
        return rows[seed % len(rows)]

    batches = held.cluster_batches(cluster(graph, client), how.clusters, "to", seed=1)
    begun = batches.state_dict()
    together = [batch.clusters for batch in batches if len(batch.clusters) == how.clusters]
    np.save(graph.folder / "together.npy", together)
    turn = itertools.count()

    def clustered(_: int) -> Any:
        """The same batches again and again, in the same order as others have them."""
        if next(turn) % len(together) == 0:
            batches.load_state_dict(begun)
        return batches.next_batch().subgraph

    def edges(found: Any) -> int:
        return sum(sum(counts) for counts in found.num_sampled_edges.values())

    def shadow(seed: int) -> Any:
        return held.sample_ego_subgraphs(of(seeds, seed), drawn, "to", weighted=False, disjoint=False, expand="every", seed=seed)

    def ranks(seed: int) -> Any:
        own = starts[seed * how.starts % (len(starts) - how.starts) :][: how.starts]
        return held.personalized_pagerank(own, "to", how.top, alpha=how.alpha, epsilon=how.epsilon)

    def budgeted(seed: int) -> Any:
        return held.sample_hgt(of(seeds, seed), [len(seeds[0]) * deep[0]] * len(deep), "to", weighted=False, edge_ids=False, seed=seed)

    tasks: dict[str, tuple[Callable[[int], Any], Callable[[Any], int]]] = {
        "LABOR-0 uniformly": (lambda seed: labor(seed, weighted=False), edges),
        "LABOR-0 by weight": (lambda seed: labor(seed), edges),
        "LABOR-1 by weight": (lambda seed: labor(seed, importance=1), edges),
        "PinSAGE": (visited, lambda found: int(found.mask.sum())),
        "ShaDow": (shadow, edges),
        "induced subgraph": (lambda seed: held.induced_subgraph(of(members, seed), "to"), edges),
        "cluster batches": (clustered, edges),
        "PageRank, the highest": (ranks, lambda found: int(found.mask.sum())),
        "temporal uniformly": (lambda seed: until(seed, weighted=False), edges),
        "temporal by weight": (until, edges),
        "temporal, the last": (lambda seed: until(seed, strategy="last"), edges),
        "HGT": (budgeted, edges),
    }
    answer(name, tasks | {task: (sampler.batch, edges) for task, sampler in saints.items()})


def main(folder: str, *more: str) -> None:
    graph, how, home = Graph.at(folder), Papers.at(folder), Path(folder) / "asterism"
    if "grpc" in more:
        with LocalCluster(storageds=3, fast=False) as cluster:
            client = cluster.client()
            fill(graph, client)
            serve("Asterism over gRPC", graph, how, client)
        return
    if not home.exists():
        with asterism.open(home) as client:
            fill(graph, client)
    settle_all(sorted({path.parent for path in home.rglob("*.bin")}))  # others, too, have all they ask for in memory before the first call
    with asterism.open(home, mode="r") as client:
        serve("Asterism", graph, how, client)


if __name__ == "__main__":
    main(*sys.argv[1:])
