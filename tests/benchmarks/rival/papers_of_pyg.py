"""Samplers of recent papers in PyG on the CPU with one thread, from torch-sparse.

These are temporal sampling, HGT sampling and GraphSAINT's. Temporal sampling, which PyG itself does
not call, uses times of nodes: that of the remote end, which other rivals have as times of edges.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch_geometric
from answering import Graph, Papers, answer
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import GraphSAINTNodeSampler, GraphSAINTRandomWalkSampler
from torch_geometric.sampler import HGTSampler, NodeSamplerInput
from torch_geometric.typing import WITH_TORCH_SPARSE


def main(folder: str) -> None:
    torch.set_num_threads(1)
    if not WITH_TORCH_SPARSE:
        sys.exit(
            "PyG draws by time and by budget, and GraphSAINT, in torch-sparse, which is not there"
        )
    graph, papers = Graph.at(folder), Papers.at(folder)
    src, dst, times, seeds = (
        torch.from_numpy(graph.column(name)) for name in ("src", "dst", "node_times", "seeds")
    )
    reversed_graph = HeteroData()  # it samples along reversed edges
    reversed_graph["n"].num_nodes, reversed_graph["n"].time = graph.nodes, times
    reversed_graph["n", "to", "n"].edge_index = torch.stack([dst, src])
    hgt_sampler = HGTSampler(
        reversed_graph, {"n": [len(seeds[0]) * graph.fanouts[0]] * len(graph.fanouts)}
    )
    full_graph = Data(edge_index=torch.stack([src, dst]), num_nodes=graph.nodes)
    saints = {
        "SAINT by nodes": GraphSAINTNodeSampler(full_graph, papers.budget, num_steps=1, log=False),
        "SAINT by walks": GraphSAINTRandomWalkSampler(
            full_graph, papers.roots, papers.length, num_steps=1, log=False
        ),
    }

    def hgt(seed: int) -> Any:
        return hgt_sampler.sample_from_nodes(
            NodeSamplerInput(input_id=None, node=seeds[seed % len(seeds)], input_type="n")
        )

    triple, type_key = ("n", "to", "n"), "n__to__n"
    colptr, rows, counts, node_times = (
        {type_key: hgt_sampler.colptr_dict[type_key]},
        {type_key: hgt_sampler.row_dict[type_key]},
        {type_key: graph.fanouts},
        {"n": times},
    )

    def temporal(seed: int) -> Any:
        nodes = {"n": seeds[seed % len(seeds)]}
        return torch.ops.torch_sparse.hetero_temporal_neighbor_sample(
            ["n"],
            [triple],
            colptr,
            rows,
            nodes,
            counts,
            node_times,
            len(counts[type_key]),
            False,
            True,
        )

    tasks: dict[str, Any] = {
        "temporal uniformly": (temporal, lambda found: sum(map(len, found[1].values()))),
        "HGT": (hgt, lambda found: sum(map(len, found.row.values()))),
    }
    tasks |= {
        name: (lambda _, sampler=sampler: sampler[0][1], lambda found: int(found.nnz()))
        for name, sampler in saints.items()
    }
    answer(f"PyG {torch_geometric.__version__}, torch-sparse", tasks)


if __name__ == "__main__":
    main(sys.argv[1])
