"""Classify pages of Facebook's network, with neighbor sampling and with LABOR.

    python examples/sharing.py localhost:9669 ../shared/data/facebook --seeds 5

A page is classified by its words and its neighbors' words. Both runs train the same GraphSAGE model
on DGL blocks, with the same number of neighbors per page. With LABOR, pages share neighbors, so
that a batch visits fewer pages and fetches fewer words. The folder has nodes.csv, edges.csv and
features.json. Needs `asterism-graph[dgl]` and a service."""

from __future__ import annotations

import argparse
import csv
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dgl
import numpy as np
import torch
from torch.nn import functional

import asterism
from asterism import Client, Graph
from asterism.dgl import LaborSampler, NeighborSampler

SPACE, WORDS, KINDS, HIDDEN, BATCH = (
    "sharing",
    4714,
    ("company", "government", "politician", "tvshow"),
    64,
    512,
)
FANOUTS = [10, 10]
TRAIN_FRACTION = 0.3
"""Fraction of pages to train on; the rest are the test set."""
SCHEMA = {
    "parts": 4,
    "direction": "both",
    "nodes": {
        "page": {
            "features": {"words": {"kind": "ragged", "dtype": "int64"}, "kind": {"dtype": "int64"}}
        }
    },
    "edges": {"page:likes:page": {}},
}


class Sage(torch.nn.Module):
    """Two layers of GraphSAGE (Hamilton, Ying & Leskovec 2017) on mean word vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.EmbeddingBag(WORDS, HIDDEN, mode="mean")
        self.layers = torch.nn.ModuleList(
            [dgl.nn.SAGEConv(HIDDEN, HIDDEN, "mean"), dgl.nn.SAGEConv(HIDDEN, len(KINDS), "mean")]
        )

    def forward(self, blocks: Any, words: Any) -> Any:
        x = functional.dropout(self.words(*words), 0.5, self.training)
        for layer, block in zip(self.layers, blocks, strict=True):
            x = layer(block, x, edge_weight=block.edata.get("edge_weights"))
            x = x if layer is self.layers[-1] else functional.dropout(x.relu(), 0.5, self.training)
        return x


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """Result of a training."""

    accuracy: float
    """Accuracy on the test pages, with all of their neighbors."""
    met: float
    """Mean number of pages per batch with words that were fetched."""
    seconds: float


def load(client: Client, root: Path) -> Graph:
    """Return the space with the network, links in both directions; create it if needed."""
    client.create_space(SPACE, SCHEMA, if_not_exists=True)
    graph = client.graph(SPACE)
    if not client.versions(SPACE):
        with (root / "nodes.csv").open(encoding="utf-8", newline="") as file:
            kinds = {int(row["id"]): KINDS.index(row["page_type"]) for row in csv.DictReader(file)}
        words = {
            int(page): word_ids
            for page, word_ids in json.loads((root / "features.json").read_text()).items()
        }
        pages = np.array(sorted(kinds))
        lengths = [len(words.get(page, ())) for page in pages.tolist()]
        values = np.array(
            [word for page in pages.tolist() for word in words.get(page, ())], np.int64
        )
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        graph.upsert_nodes(
            pages,
            "page",
            features={
                "words": (indptr, values),
                "kind": np.array([kinds[page] for page in pages.tolist()]),
            },
        )
        links = np.loadtxt(root / "edges.csv", np.int64, delimiter=",", skiprows=1)
        links = np.unique(np.concatenate([links, links[:, ::-1]]), axis=0)
        graph.upsert_edges(links[:, 0], links[:, 1], "likes")
        graph.build()
    return graph


def words_of(graph: Graph, pages: Any) -> tuple[Any, Any]:
    """Return the concatenated words of pages, and the offset of each page."""
    indptr, values = graph.node_features(pages.numpy(), ["words"])["words"]
    return torch.from_numpy(np.array(values)), torch.from_numpy(np.array(indptr[:-1]))


def train(graph: Graph, sampler: Any, *, seed: int, epochs: int) -> TrainingResult:
    """Train a model and return its accuracy and visited pages."""
    torch.manual_seed(seed)
    pages = (
        torch.from_numpy(np.concatenate([batch.ids for batch in graph.scan_nodes("page")]))
        .sort()
        .values
    )
    kinds = torch.from_numpy(
        np.array(graph.node_features(pages.numpy(), ["kind"])["kind"])
    ).reshape(-1)
    row_of = torch.zeros(int(pages.max()) + 1, dtype=torch.int64)
    row_of[pages] = torch.arange(len(pages))
    is_train = torch.rand(len(pages), generator=torch.Generator().manual_seed(0)) < TRAIN_FRACTION
    train_pages, test_pages = pages[is_train], pages[~is_train]
    model, node_counts, started = Sage(), [], time.perf_counter()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        order = train_pages[torch.randperm(len(train_pages))]
        for step, seeds in enumerate(order.split(BATCH)):
            inputs, outputs, blocks = sampler.sample_blocks(
                seeds, seed=(seed * epochs + epoch) * len(order) + step
            )
            node_counts.append(len(inputs))
            loss = functional.cross_entropy(
                model(blocks, words_of(graph, inputs)), kinds[row_of[outputs]]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    seconds = time.perf_counter() - started
    model.eval()
    full_sampler, correct = NeighborSampler(graph, [-1, -1]), 0
    with torch.no_grad():
        for seeds in test_pages.split(32 * BATCH):
            inputs, outputs, blocks = full_sampler.sample_blocks(seeds)
            correct += int(
                (model(blocks, words_of(graph, inputs)).argmax(1) == kinds[row_of[outputs]]).sum()
            )
    return TrainingResult(
        accuracy=correct / len(test_pages), met=float(np.mean(node_counts)), seconds=seconds
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("where", help="host:port of a service")
    parser.add_argument(
        "root", type=Path, help="the folder with nodes.csv, edges.csv and features.json"
    )
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--fanouts", type=int, nargs=2, default=FANOUTS)
    args = parser.parse_args()
    with asterism.connect(args.where) as client, load(client, args.root).pin() as graph:
        samplers = {
            "neighbor sampling": NeighborSampler(graph, args.fanouts),
            "LABOR-0": LaborSampler(graph, args.fanouts),
            "LABOR-1": LaborSampler(graph, args.fanouts, importance_sampling=1),
        }
        print(
            f"{'trained with':<22}{'accuracy':>12}{'by seed':>{8 * args.seeds}}"
            f"{'pages a batch':>16}{'s':>8}"
        )
        for name, sampler in samplers.items():
            results = [
                train(graph, sampler, seed=seed, epochs=args.epochs) for seed in range(args.seeds)
            ]
            mean, mean_nodes, seconds = (
                float(np.mean([getattr(result, field) for result in results]))
                for field in ("accuracy", "met", "seconds")
            )
            by_seed = "".join(f"{result.accuracy:8.4f}" for result in results)
            print(
                f"{name:<22}{mean:>12.4f}{by_seed}{mean_nodes:>16.0f}{seconds:>8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
