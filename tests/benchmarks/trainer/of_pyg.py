"""PyG: its own loaders on a graph in memory and over a cluster, and subgraphs of a cluster made ahead."""

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


def main(folder: str, addresses: str, said: str) -> None:
    asked = json.loads(said)
    torch.set_num_threads(asked["threads"])
    model = Sage(asked["width"], asked["hidden"], asked["classes"])

    def loss_of(batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(batch.x, batch.edge_index)[: batch.batch_size], batch.y[: batch.batch_size])

    src, dst, x, y = (torch.from_numpy(np.load(Path(folder) / f"{name}.npy")) for name in ("src", "dst", "x", "y"))
    data, every = Data(x=x, y=y, edge_index=torch.stack([src, dst])), torch.arange(asked["nodes"])
    of_memory = in_memory.loading(data, asked["fanouts"], asked["batch"])
    sampled = "NeighborLoader" if in_memory.BUILT else "NodeLoader, a sampler in Python"
    with asterism.connect(addresses, space="bench") as graph, graph.pin() as held:

        def made(graph: Any, nodes: Any, seed: int) -> Any:
            found = graph.sample_subgraph(
                nodes, asked["fanouts"], weighted=False, replace=False, direction="in", edge_ids=False, node_features=["x", "y"], seed=seed
            )
            columns, (row,), (col,) = found.features["n"], found.row.values(), found.col.values()
            return Data(x=tensor(columns["x"]), y=tensor(columns["y"]), edge_index=torch.stack([tensor(row), tensor(col)]), batch_size=len(nodes))

        def of_pyg(workers: int) -> Any:
            sampler = NeighborSampler(held, asked["fanouts"])
            return NodeLoader(stores(held), sampler, input_nodes=every, batch_size=asked["batch"], shuffle=True, num_workers=workers)

        loaders: dict[str, Any] = {f"PyG's {sampled}, in memory": lambda: of_memory(every, True)}
        for workers in (0, *asked["workers"]):
            loaders[f"NodeLoader, {workers} workers"] = lambda workers=workers: of_pyg(workers)
        for ahead in asked["ahead"]:
            loaders[f"subgraphs of NodeBatches, {ahead} ahead"] = lambda ahead=ahead: NodeBatches(
                held, "n", asked["batch"], made, seed=1, ahead=ahead
            )
        take_turns(loaders, trained(model, loss_of), asked["steps"], asked["rounds"])


if __name__ == "__main__":
    main(*sys.argv[1:])
