"""The samplers of today's papers in DGL on the CPU, one thread. It samples the edges that lead to a node, so it is given the graph turned around."""

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
    graph, how = Graph.at(folder), Papers.at(folder)
    src, dst, weights, seeds, members = (torch.from_numpy(graph.column(name)) for name in ("src", "dst", "weights", "seeds", "members"))
    into = dgl.graph((dst, src), num_nodes=graph.nodes)
    into.edata["w"] = weights
    into = into.formats(["csc"])
    along = dgl.graph((src, dst), num_nodes=graph.nodes)
    into.create_formats_()
    along.create_formats_()
    loading = dgl.dataloading
    deep = graph.fanouts[::-1]
    layered = {
        "LABOR-0 uniformly": loading.LaborSampler(deep),
        "LABOR-0 by weight": loading.LaborSampler(deep, prob="w"),
        "LABOR-1 by weight": loading.LaborSampler(deep, prob="w", importance_sampling=1),
    }
    walker = dgl.sampling.RandomWalkNeighborSampler(along, how.traversals, 0.5, how.walks, how.neighbors)
    shadow = loading.ShaDowKHopSampler(how.shadow[::-1])
    saints = {
        "SAINT by nodes": loading.SAINTSampler("node", how.budget),
        "SAINT by edges": loading.SAINTSampler("edge", how.budget // 2),
        "SAINT by walks": loading.SAINTSampler("walk", (how.roots, how.length)),
    }

    clusters, together = None, graph.folder / "together.npy"
    if together.exists():
        # Asterism's clusters, in the file that the sampler would keep its own in.
        kept, (offsets, own) = graph.folder / "clusters.pkl", (graph.column(f"clusters/n.{name}") for name in ("offsets", "members"))
        kept.write_bytes(pickle.dumps((torch.from_numpy(offsets), torch.from_numpy(own))))
        clusters = loading.ClusterGCNSampler(along, len(offsets) - 1, str(kept))

    def of(rows: Any, seed: int) -> Any:
        return rows[seed % len(rows)]

    def blocks(sampler: Any, seed: int) -> Any:
        sampler.set_seed(seed)
        return sampler.sample_blocks(into, of(seeds, seed))[2]

    def edges(found: Any) -> int:
        return int(found.num_edges())

    tasks: dict[str, Any] = {
        name: (lambda seed, sampler=sampler: blocks(sampler, seed), lambda found: sum(map(edges, found))) for name, sampler in layered.items()
    }
    tasks |= {
        "PinSAGE": (lambda seed: walker(of(seeds, seed)), edges),
        "ShaDow": (lambda seed: shadow.sample(into, of(seeds, seed))[2], edges),
        "induced subgraph": (lambda seed: dgl.node_subgraph(along, of(members, seed)), edges),
    }
    if clusters is not None:
        groups = torch.from_numpy(np.load(together))
        tasks["cluster batches"] = (lambda seed: clusters.sample(along, of(groups, seed)), edges)
    tasks |= {name: (lambda _, sampler=sampler: sampler.sample(along, None), edges) for name, sampler in saints.items()}
    answer(f"DGL {dgl.__version__}", tasks)


if __name__ == "__main__":
    main(sys.argv[1])
