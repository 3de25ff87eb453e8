"""PyG's neighbor sampler on the CPU with one thread, on the reversed graph.

It runs in `pyg-lib` or `torch-sparse`, whichever is installed. PyG also samples the edges that lead
to a node.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch_geometric
from answering import Graph, answer
from torch_geometric.data import Data
from torch_geometric.sampler import NeighborSampler, NodeSamplerInput
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE


def main(folder: str) -> None:
    torch.set_num_threads(1)
    if not WITH_PYG_LIB and not WITH_TORCH_SPARSE:
        sys.exit("PyG samples neighbors in pyg-lib or torch-sparse, and neither is there")
    graph = Graph.at(folder)
    src, dst, weights, seeds = (
        torch.from_numpy(graph.column(name)) for name in ("src", "dst", "weights", "seeds")
    )
    data = Data(edge_index=torch.stack([dst, src]), num_nodes=graph.nodes, w=weights)
    samplers: dict[str, Any] = {
        "subgraph uniformly": NeighborSampler(data, graph.fanouts, replace=False)
    }
    if WITH_PYG_LIB:
        samplers["subgraph by weight"] = NeighborSampler(
            data, graph.fanouts, replace=False, weight_attr="w"
        )

    def batch(name: str, seed: int) -> Any:
        return samplers[name].sample_from_nodes(
            NodeSamplerInput(input_id=None, node=seeds[seed % len(seeds)])
        )

    library = "pyg-lib" if WITH_PYG_LIB else "torch-sparse"
    tasks = {
        name: (lambda seed, name=name: batch(name, seed), lambda found: len(found.row))
        for name in samplers
    }
    answer(f"PyG {torch_geometric.__version__}, {library}", tasks)


if __name__ == "__main__":
    main(sys.argv[1])
