"""DGL trainers: its DataLoader on a graph in memory, and blocks from a cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from turns import take_turns, trained

sys.path.append(str(Path(__file__).parents[2] / "kit" / "dgl"))
from dgl_shim import dgl

import asterism
from asterism.dgl import blocks
from asterism.torch import NodeBatches, tensor


class Sage(torch.nn.Module):
    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = (
            dgl.nn.pytorch.SAGEConv(width, hidden, "mean"),
            dgl.nn.pytorch.SAGEConv(hidden, classes, "mean"),
        )

    def forward(self, mfgs: Any, x: Any) -> Any:
        h = self.first(mfgs[0], (x, x[: mfgs[0].num_dst_nodes()])).relu()
        return self.second(mfgs[1], (h, h[: mfgs[1].num_dst_nodes()]))


class InMemory:
    """DGL's loader, and the features of the model."""

    def __init__(self, folder: Path, options: dict[str, Any]) -> None:
        src, dst, x, y = (
            torch.from_numpy(np.load(folder / f"{name}.npy")) for name in ("src", "dst", "x", "y")
        )
        self._graph = dgl.graph((src, dst), num_nodes=options["nodes"]).formats(["csc"])
        self._graph.create_formats_()
        self._x, self._y, self._options = x, y, options

    def __call__(self) -> Any:
        sampler = dgl.dataloading.NeighborSampler(self._options["fanouts"][::-1])
        all_nodes = torch.arange(self._options["nodes"])
        loader = dgl.dataloading.DataLoader(
            self._graph,
            all_nodes,
            sampler,
            batch_size=self._options["batch"],
            shuffle=True,
            num_workers=0,
        )
        for inputs, outputs, mfgs in loader:
            yield mfgs, self._x[inputs], self._y[outputs]


def main(folder: str, addresses: str, options_json: str) -> None:
    options = json.loads(options_json)
    torch.set_num_threads(options["threads"])
    model = Sage(options["width"], options["hidden"], options["classes"])
    step = trained(
        model, lambda batch: torch.nn.functional.cross_entropy(model(batch[0], batch[1]), batch[2])
    )
    with asterism.connect(addresses, space="bench") as graph, graph.pin() as pinned:

        def make_batch(graph: Any, nodes: Any, seed: int) -> Any:
            subgraph = graph.sample_subgraph(
                nodes,
                options["fanouts"],
                weighted=False,
                replace=False,
                direction="in",
                expand="every",
                edge_ids=False,
                node_features=["x", "y"],
                seed=seed,
            )
            mfgs = blocks(subgraph)
            columns = subgraph.features["n"]
            return mfgs, tensor(columns["x"]), tensor(columns["y"][: len(nodes)])

        loaders = {f"DGL {dgl.__version__} DataLoader, in memory": InMemory(Path(folder), options)}
        for ahead in options["ahead"]:
            loaders[f"blocks of NodeBatches, {ahead} ahead"] = lambda ahead=ahead: NodeBatches(
                pinned, "n", options["batch"], make_batch, seed=1, ahead=ahead
            )
        take_turns(loaders, step, options["steps"], options["rounds"])


if __name__ == "__main__":
    main(*sys.argv[1:])
