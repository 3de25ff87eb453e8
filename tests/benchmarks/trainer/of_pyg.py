"""PyG trainers: its loaders on a graph in memory and over a cluster.

Prefetched subgraphs of a cluster are another loader.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.kit.pyg import in_memory
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import SAGEConv
from turns import take_turns, trained

import asterism
from asterism.pyg import NeighborSampler, stores
from asterism.torch import NodeBatches, tensor


class Sage(torch.nn.Module):
    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(width, hidden), SAGEConv(hidden, classes)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def main(folder: str, addresses: str, options_json: str) -> None:
    options = json.loads(options_json)
    torch.set_num_threads(options["threads"])
    model = Sage(options["width"], options["hidden"], options["classes"])

    def loss_of(batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(
            model(batch.x, batch.edge_index)[: batch.batch_size], batch.y[: batch.batch_size]
        )

    src, dst, x, y = (
        torch.from_numpy(np.load(Path(folder) / f"{name}.npy")) for name in ("src", "dst", "x", "y")
    )
    data, all_nodes = (
        Data(x=x, y=y, edge_index=torch.stack([src, dst])),
        torch.arange(options["nodes"]),
    )
    memory_loader = in_memory.loader_factory(data, options["fanouts"], options["batch"])
    loader_name = (
        "NeighborLoader" if in_memory.HAS_NATIVE_SAMPLER else "NodeLoader, a sampler in Python"
    )
    with asterism.connect(addresses, space="bench") as graph, graph.pin() as pinned:

        def make_batch(graph: Any, nodes: Any, seed: int) -> Any:
            subgraph = graph.sample_subgraph(
                nodes,
                options["fanouts"],
                weighted=False,
                replace=False,
                direction="in",
                edge_ids=False,
                node_features=["x", "y"],
                seed=seed,
            )
            columns, (row,), (col,) = (
                subgraph.features["n"],
                subgraph.row.values(),
                subgraph.col.values(),
            )
            return Data(
                x=tensor(columns["x"]),
                y=tensor(columns["y"]),
                edge_index=torch.stack([tensor(row), tensor(col)]),
                batch_size=len(nodes),
            )

        def pyg_loader(workers: int) -> Any:
            sampler = NeighborSampler(pinned, options["fanouts"])
            return NodeLoader(
                stores(pinned),
                sampler,
                input_nodes=all_nodes,
                batch_size=options["batch"],
                shuffle=True,
                num_workers=workers,
            )

        loaders: dict[str, Any] = {
            f"PyG's {loader_name}, in memory": lambda: memory_loader(all_nodes, True)
        }
        for workers in (0, *options["workers"]):
            loaders[f"NodeLoader, {workers} workers"] = lambda workers=workers: pyg_loader(workers)
        for ahead in options["ahead"]:
            loaders[f"subgraphs of NodeBatches, {ahead} ahead"] = lambda ahead=ahead: NodeBatches(
                pinned, "n", options["batch"], make_batch, seed=1, ahead=ahead
            )
        take_turns(loaders, trained(model, loss_of), options["steps"], options["rounds"])


if __name__ == "__main__":
    main(*sys.argv[1:])
