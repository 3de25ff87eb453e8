"""Train embeddings of Facebook's page-page network by DeepWalk and predict held-out links.

    # an Asterism service
    python examples/deepwalk.py localhost:9669 ../shared/data/facebook
    # embedded: a folder in place of the address
    python examples/deepwalk.py graphs/ ../shared/data/facebook --epochs 5

The model is skip-gram with negatives (Perozzi, Al-Rfou & Skiena 2014; Mikolov et al. 2013) in plain
PyTorch. `graph.walk_pairs` returns pairs of walks by edge weight, and negatives by degree to the
power 0.75. A tenth of the links is held out. The area under the ROC curve measures how well
embeddings separate these links from as many pairs without a link. The folder has edges.csv. Needs
`asterism-graph[torch]` and SciPy, and `asterism-graph[server]` for a folder."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse, stats
from torch.nn import functional

import asterism
from asterism import Client, Graph
from asterism.torch import tensor

SPACE, DIM, NEGATIVES = "pages", 64, 4
TEST_FRACTION = 0.1
SCHEMA = {
    "parts": 4,
    "nodes": {"page": {"weighted": True, "tables": {"popular": "pow(weight, 0.75)"}}},
    "edges": {"page:likes:page": {"weighted": True}},
}


def split(root: Path) -> tuple[Any, Any, int]:
    """Return training links, test links and the number of pages; each link occurs once [m, 2]."""
    links = np.unique(
        np.sort(np.loadtxt(root / "edges.csv", np.int64, delimiter=",", skiprows=1), axis=1), axis=0
    )
    links = links[links[:, 0] != links[:, 1]]
    is_held_out = np.random.default_rng(0).random(len(links)) < TEST_FRACTION
    return links[~is_held_out], links[is_held_out], int(links.max()) + 1


def load(client: Client, links: Any, pages: int) -> Graph:
    """Create a graph space of the links in both directions.

    Pages weigh their degree. The weight of a link is one plus the number of pages that both ends
    like.
    """
    client.create_space(SPACE, SCHEMA, if_not_exists=True)
    graph = client.graph(SPACE)
    if not client.versions(SPACE):
        both = np.concatenate([links, links[:, ::-1]])
        liked = sparse.csr_array((np.ones(len(both), np.float32), both.T), shape=(pages, pages))
        shared = np.asarray((liked @ liked)[both[:, 0], both[:, 1]]).reshape(-1)
        graph.upsert_nodes(
            np.arange(pages), "page", weights=np.bincount(both[:, 0], minlength=pages)
        )
        graph.upsert_edges(both[:, 0], both[:, 1], "likes", weights=1 + shared)
        graph.build()
    return graph


def train(graph: Graph, pages: int, *, epochs: int, seed: int) -> Any:
    """Return embeddings [pages, DIM] of the pages of a pinned graph."""
    torch.manual_seed(seed)
    centre, context = (torch.nn.Embedding(pages, DIM, sparse=True) for _ in range(2))
    torch.nn.init.normal_(centre.weight, std=DIM**-0.5)
    torch.nn.init.zeros_(context.weight)
    optimizer = torch.optim.SparseAdam([*centre.parameters(), *context.parameters()], lr=0.02)
    epoch_pairs = graph.walk_pairs(
        "page2likes2page", 8, walks=2, window=3, batch_size=128, first_step="independent", seed=seed
    )
    for epoch in range(epochs):
        started, total, steps = time.perf_counter(), 0.0, 0
        for step, batch in enumerate(epoch_pairs):
            negatives = graph.sample_negatives(
                batch.pairs[:, 0],
                NEGATIVES,
                "page",
                weight="popular",
                seed=(seed << 32) + (epoch << 16) + step,
            )
            pairs = tensor(batch.pairs)
            centre_vectors = centre(pairs[:, 0])
            positive_scores = (centre_vectors * context(pairs[:, 1])).sum(1)
            negative_scores = torch.einsum(
                "pd,pnd->pn", centre_vectors, context(tensor(negatives.nodes))
            )
            loss = (
                -functional.logsigmoid(positive_scores).mean()
                - functional.logsigmoid(-negative_scores).sum(1).mean()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, steps = total + float(loss.detach()), steps + 1
        print(
            f"epoch {epoch}: loss {total / steps:.3f}, {time.perf_counter() - started:.1f} s",
            flush=True,
        )
    return centre.weight.detach()


def roc_auc(embeddings: Any, test_links: Any, links: Any) -> float:
    """Return the probability that a test link scores above a pair without a link."""
    pages = len(embeddings)
    link_set = {(a, b) for a, b in np.concatenate([test_links, links]).tolist()}
    non_links = np.sort(
        np.random.default_rng(1).integers(0, pages, (3 * len(test_links), 2)), axis=1
    )
    non_links = np.array(
        [pair for pair in non_links.tolist() if pair[0] != pair[1] and tuple(pair) not in link_set][
            : len(test_links)
        ]
    )
    unit = functional.normalize(embeddings)
    link_scores, non_link_scores = (
        ((unit[tensor(pairs[:, 0])] * unit[tensor(pairs[:, 1])]).sum(1)).numpy()
        for pairs in (test_links, non_links)
    )
    ranks = stats.rankdata(np.concatenate([link_scores, non_link_scores]))
    return float(
        (ranks[: len(link_scores)].sum() - len(link_scores) * (len(link_scores) + 1) / 2)
        / (len(link_scores) * len(non_link_scores))
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("where", help="host:port of a service, or a folder")
    parser.add_argument("root", type=Path, help="the folder with edges.csv")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    links, test_links, pages = split(args.root)
    with (
        asterism.connect(args.where) if ":" in args.where else asterism.open(args.where) as client,
        load(client, links, pages).pin() as graph,
    ):
        embeddings = train(graph, pages, epochs=args.epochs, seed=args.seed)
    print(
        f"AUC {roc_auc(embeddings, test_links, links):.4f} on {len(test_links):,} links held back"
    )


if __name__ == "__main__":
    main()
