"""Samplers of recent papers in DGL on the CPU with one thread, on the reversed graph.

DGL samples the edges that lead to a node.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from answering import Graph, Papers, answer

sys.path.append(str(Path(__file__).parents[2] / "kit" / "dgl"))
from dgl_shim import dgl


def main(folder: str) -> None:
    torch.set_num_threads(1)
    graph, papers = Graph.at(folder), Papers.at(folder)
    src, dst, weights, seeds, members = (
        torch.from_numpy(graph.column(name))
        for name in ("src", "dst", "weights", "seeds", "members")
    )
    in_graph = dgl.graph((dst, src), num_nodes=graph.nodes)
    in_graph.edata["w"] = weights
    in_graph = in_graph.formats(["csc"])
    out_graph = dgl.graph((src, dst), num_nodes=graph.nodes)
    in_graph.create_formats_()
    out_graph.create_formats_()
    loading = dgl.dataloading
    fanouts = graph.fanouts[::-1]
    labor_samplers = {
        "LABOR-0 uniformly": loading.LaborSampler(fanouts),
        "LABOR-0 by weight": loading.LaborSampler(fanouts, prob="w"),
        "LABOR-1 by weight": loading.LaborSampler(fanouts, prob="w", importance_sampling=1),
    }
    walker = dgl.sampling.RandomWalkNeighborSampler(
        out_graph, papers.traversals, 0.5, papers.walks, papers.neighbors
    )
    shadow = loading.ShaDowKHopSampler(papers.shadow[::-1])
    saints = {
        "SAINT by nodes": loading.SAINTSampler("node", papers.budget),
        "SAINT by edges": loading.SAINTSampler("edge", papers.budget // 2),
        "SAINT by walks": loading.SAINTSampler("walk", (papers.roots, papers.length)),
    }

    clusters, groups_path = None, graph.folder / "together.npy"
    if groups_path.exists():
        # Asterism's clusters, in the format of the sampler's own cache.
        cluster_cache, (offsets, members_by_cluster) = (
            graph.folder / "clusters.pkl",
            (graph.column(f"clusters/n.{name}") for name in ("offsets", "members")),
        )
        cluster_cache.write_bytes(
            pickle.dumps((torch.from_numpy(offsets), torch.from_numpy(members_by_cluster)))
        )
        clusters = loading.ClusterGCNSampler(out_graph, len(offsets) - 1, str(cluster_cache))

    def batch_of(rows: Any, seed: int) -> Any:
        return rows[seed % len(rows)]

    def blocks(sampler: Any, seed: int) -> Any:
        sampler.set_seed(seed)
        return sampler.sample_blocks(in_graph, batch_of(seeds, seed))[2]

    def edges(subgraph: Any) -> int:
        return int(subgraph.num_edges())

    tasks: dict[str, Any] = {
        name: (
            lambda seed, sampler=sampler: blocks(sampler, seed),
            lambda found: sum(map(edges, found)),
        )
        for name, sampler in labor_samplers.items()
    }
    tasks |= {
        "PinSAGE": (lambda seed: walker(batch_of(seeds, seed)), edges),
        "ShaDow": (lambda seed: shadow.sample(in_graph, batch_of(seeds, seed))[2], edges),
        "induced subgraph": (
            lambda seed: dgl.node_subgraph(out_graph, batch_of(members, seed)),
            edges,
        ),
    }
    if clusters is not None:
        groups = torch.from_numpy(np.load(groups_path))
        tasks["cluster batches"] = (
            lambda seed: clusters.sample(out_graph, batch_of(groups, seed)),
            edges,
        )
    tasks |= {
        name: (lambda _, sampler=sampler: sampler.sample(out_graph, None), edges)
        for name, sampler in saints.items()
    }
    answer(f"DGL {dgl.__version__}", tasks)


if __name__ == "__main__":
    main(sys.argv[1])
