"""Train GraphSAGE on Cora with PyG's NodeLoader, from a graph in an Asterism service.

    # an Asterism service
    python examples/graphsage.py localhost:9669 ../shared/data/cora
    # embedded: a folder in place of the address
    python examples/graphsage.py graphs/ ../shared/data/cora --epochs 50 --workers 2

The folder has papers.csv and edges.csv, as described by examples/schemas/citations.yaml. Needs
`asterism-graph[pyg,ingest]`, and `asterism-graph[server]` for a folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import SAGEConv

import asterism
from asterism import Client, Graph, ingest
from asterism.ops import ragged_strings
from asterism.pyg import NeighborSampler, stores
from asterism.torch import MultiHot

SPACE, SCHEMA = "citations", Path(__file__).parent / "schemas/citations.yaml"
WORDS, CLASSES, HIDDEN = 1433, 7, 64
FANOUTS, BATCH = [10, 10], 64
LoaderFactory = Callable[[Any, bool], Iterable[Any]]
"""Function that returns a loader over some nodes, shuffled or not."""


class Sage(torch.nn.Module):
    """Two layers of GraphSAGE (Hamilton, Ying & Leskovec 2017) on rows of words that sum to 1."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(WORDS, HIDDEN), SAGEConv(HIDDEN, CLASSES)

    def forward(self, x: Any, edge_index: Any) -> Any:
        x = functional.dropout(x / x.sum(1, keepdim=True).clamp(min=1), 0.5, self.training)
        x = functional.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(x, edge_index)


def load(client: Client, root: Path) -> Graph:
    """Return the space with Cora; load and build it if it does not exist."""
    client.create_space(SPACE, ingest.schema_of(SCHEMA, root=root), if_not_exists=True)
    ingest.load(client, SPACE, SCHEMA, root=root)
    graph = client.graph(SPACE)
    if not client.versions(SPACE):
        graph.build()
    return graph


def splits(graph: Graph) -> dict[str, Any]:
    """Return the papers to train, validate and test with, according to a feature of the graph."""
    papers_by_split: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for batch in graph.scan_nodes("paper", ["split"]):
        names = ragged_strings(batch.features["split"])
        for paper, name in zip(batch.ids.tolist(), names.tolist(), strict=True):
            if name:
                papers_by_split[name].append(paper)
    return {name: torch.tensor(sorted(papers)) for name, papers in papers_by_split.items()}


def loader_factory(graph: Graph, workers: int = 0) -> LoaderFactory:
    """Return a factory of PyG's loaders over a pinned graph."""
    data = stores(graph, {"paper": {"x": "words", "y": "label"}}, encode={"words": MultiHot(WORDS)})

    def make_loader(nodes: Any, shuffle: bool) -> Iterable[Any]:
        loader: Iterable[Any] = NodeLoader(
            data,
            NeighborSampler(graph, FANOUTS),
            input_nodes=nodes,
            batch_size=BATCH if shuffle else 500,
            shuffle=shuffle,
            num_workers=workers if shuffle else 0,
            persistent_workers=bool(workers and shuffle),
        )
        return loader

    return make_loader


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """Result of a training."""

    accuracy: float
    """Accuracy on test papers of the model that was best on the validation papers."""
    epoch_s: float
    """Seconds of the median epoch."""


def train(
    make_loader: LoaderFactory, papers: dict[str, Any], *, seed: int, epochs: int
) -> TrainingResult:
    """Train a model and return its accuracy and time."""
    torch.manual_seed(seed)
    model = Sage()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    training, validation = make_loader(papers["train"], True), make_loader(papers["val"], False)
    best_score, best_state, seconds = -1.0, model.state_dict(), []
    for epoch in range(epochs):
        started = time.perf_counter()
        model.train()
        for batch in training:
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[: batch.batch_size]
            functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
            optimizer.step()
        seconds.append(time.perf_counter() - started)
        if epoch % 5 == 4 or epoch + 1 == epochs:
            score = accuracy(model, validation)
            if score > best_score:
                best_score, best_state = (
                    score,
                    {name: value.clone() for name, value in model.state_dict().items()},
                )
    model.load_state_dict(best_state)
    return TrainingResult(
        accuracy=accuracy(model, make_loader(papers["test"], False)),
        epoch_s=float(np.median(seconds)),
    )


@torch.no_grad()
def accuracy(model: Sage, batches: Iterable[Any]) -> float:
    """Return the share of seeds with a correct prediction."""
    model.eval()
    correct = total = 0
    for batch in batches:
        predicted = model(batch.x, batch.edge_index)[: batch.batch_size].argmax(1)
        correct += int((predicted == batch.y[: batch.batch_size]).sum())
        total += batch.batch_size
    return correct / total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("where", help="host:port of a service, or a folder")
    parser.add_argument("root", type=Path, help="the folder with papers.csv and edges.csv")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    with (
        asterism.connect(args.where) if ":" in args.where else asterism.open(args.where) as client,
        load(client, args.root).pin() as graph,
    ):
        papers = splits(graph)
        for seed in range(args.seeds):
            result = train(
                loader_factory(graph, args.workers), papers, seed=seed, epochs=args.epochs
            )
            print(
                f"seed {seed}: test accuracy {result.accuracy:.3f}, "
                f"{result.epoch_s * 1e3:.0f} ms an epoch"
            )


if __name__ == "__main__":
    main()
