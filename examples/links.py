"""Predict links of Facebook's page-page network, with uniform and with popular negatives.

    # an Asterism service
    python examples/links.py localhost:9669 ../shared/data/facebook
    # embedded: a folder in place of the address
    python examples/links.py graphs/ ../shared/data/facebook --epochs 5

The model is GraphSAGE over learned vectors. It is trained on triplets (link, negatives) from PyG's
LinkLoader. Negatives are uniform pages, or pages by degree to the power 0.75 (Mikolov et al. 2013),
a weight table of the graph. A tenth of the links is held out. Each of these is compared with a pair
of the same page and a page that it does not like: a uniform one, or one by degree, as in a
recommender. The links of a batch, in both directions, are excluded from its samples. The folder has
edges.csv. Needs `asterism-graph[pyg]`, and `asterism-graph[server]` for a folder."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import NegativeSampling

import asterism
from asterism import Client, Graph
from asterism.pyg import NeighborSampler, stores

SPACE, DIM, FANOUT, NEGATIVES, BATCH = "links", 64, 10, 4, 4096
TEST_FRACTION, LIKES = 0.1, ("page", "likes", "page")
SCHEMA = {
    "parts": 4,
    "direction": "both",
    "nodes": {"page": {"weighted": True, "tables": {"popular": "pow(weight, 0.75)"}}},
    "edges": {"page:likes:page": {}},
}


@dataclass(frozen=True, kw_only=True)
class Links:
    """Links to train on, and links and pairs to test with."""

    train: Any
    """Training links, int64 [m, 2], each link once."""
    test: Any
    """Test links, int64 [k, 2]."""
    uniform: Any
    """For each test link, a uniform page that its first page does not like, int64 [k]."""
    popular: Any
    """For each test link, such a page sampled by degree, int64 [k]."""
    pages: int


class Model(torch.nn.Module):
    """A vector for each page, and one layer of GraphSAGE (Hamilton, Ying & Leskovec 2017).

    The score of a link is the product of its ends' vectors.
    """

    def __init__(self, pages: int) -> None:
        super().__init__()
        self.vectors = torch.nn.Embedding(pages, DIM)
        torch.nn.init.normal_(self.vectors.weight, std=DIM**-0.5)
        self.layer = SAGEConv(DIM, DIM)

    def forward(self, pages: Any, edge_index: Any) -> Any:
        x = self.vectors(pages)
        return x + self.layer(x, edge_index)


def split(root: Path) -> Links:
    """Return the links of the file, with a fixed choice of test links and compared pairs."""
    links = np.unique(
        np.sort(np.loadtxt(root / "edges.csv", np.int64, delimiter=",", skiprows=1), axis=1), axis=0
    )
    links = links[links[:, 0] != links[:, 1]]
    generator, pages = np.random.default_rng(0), int(links.max()) + 1
    is_test = generator.random(len(links)) < TEST_FRACTION
    link_keys = np.unique(
        np.concatenate([links @ [pages, 1], links @ [1, pages], np.arange(pages) * (pages + 1)])
    )
    test_links = np.where(
        generator.random((is_test.sum(), 1)) < 0.5, links[is_test], links[is_test][:, ::-1]
    )
    ends = links[~is_test].reshape(-1)

    def sample_non_links(draw: Any) -> Any:
        candidates = draw(len(test_links))
        while (is_link := np.isin(test_links[:, 0] * pages + candidates, link_keys)).any():
            candidates[is_link] = draw(int(is_link.sum()))
        return candidates

    uniform, popular = (
        sample_non_links(lambda n: generator.integers(0, pages, n)),
        sample_non_links(lambda n: generator.choice(ends, n)),
    )
    train, test_links, uniform, popular = (
        torch.from_numpy(np.ascontiguousarray(array))
        for array in (links[~is_test], test_links, uniform, popular)
    )
    return Links(train=train, test=test_links, uniform=uniform, popular=popular, pages=pages)


def load(client: Client, links: Links) -> Graph:
    """Create a graph space of the training links in both directions; pages weigh their degree."""
    client.create_space(SPACE, SCHEMA, if_not_exists=True)
    graph = client.graph(SPACE)
    if not client.versions(SPACE):
        both = torch.cat([links.train, links.train.flip(1)]).numpy()
        graph.upsert_nodes(
            np.arange(links.pages), "page", weights=np.bincount(both[:, 0], minlength=links.pages)
        )
        graph.upsert_edges(both[:, 0], both[:, 1], "likes")
        graph.build()
    return graph


def train(
    graph: Graph, links: Links, *, negatives: str | None, epochs: int, seed: int, workers: int = 0
) -> Any:
    """Return embeddings [pages, DIM], trained with uniform negatives or by a weight table."""
    torch.manual_seed(seed)
    model = Model(links.pages)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = LinkLoader(
        stores(graph, {}),
        # The links of a batch are not sampled, nor are the same links in the other direction.
        NeighborSampler(graph, [FANOUT], negative_weight=negatives, reverse_types={LIKES: LIKES}),
        edge_label_index=(None, links.train.t().contiguous()),
        neg_sampling=NegativeSampling("triplet", NEGATIVES),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
    )
    for _ in range(epochs):
        for batch in loader:
            out = model(batch.n_id, batch.edge_index)
            score = (out[batch.src_index] * out[batch.dst_pos_index]).sum(1)
            negative_scores = torch.einsum(
                "pd,pnd->pn", out[batch.src_index], out[batch.dst_neg_index.view(-1, NEGATIVES)]
            )
            loss = (
                -functional.logsigmoid(score).mean()
                - functional.logsigmoid(-negative_scores).mean(0).sum()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return embeddings(graph, model, links.pages)


@torch.no_grad()
def embeddings(graph: Graph, model: Model, pages: int) -> Any:
    """Return the embeddings of all pages."""
    model.eval()
    loader = NodeLoader(
        stores(graph, {}),
        NeighborSampler(graph, [2 * FANOUT], seed=0),
        input_nodes=torch.arange(pages),
        batch_size=BATCH,
    )
    return torch.cat([model(batch.n_id, batch.edge_index)[: batch.batch_size] for batch in loader])


def rank_accuracy(out: Any, links: Links, non_links: Any) -> float:
    """Return the share of test links that score above their compared pair; 0.5 by chance."""
    src, dst = links.test.t()
    link_scores, non_link_scores = (out[src] * out[dst]).sum(1), (out[src] * out[non_links]).sum(1)
    return float(
        (
            (link_scores > non_link_scores).double()
            + 0.5 * (link_scores == non_link_scores).double()
        ).mean()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("where", help="host:port of a service, or a folder")
    parser.add_argument("root", type=Path, help="the folder with edges.csv")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    links = split(args.root)
    with (
        asterism.connect(args.where) if ":" in args.where else asterism.open(args.where) as client,
        load(client, links).pin() as graph,
    ):
        print(
            f"{len(links.test):,} links held back; how often one scores above a pair that is "
            "none, by how that was drawn"
        )
        print(f"{'trained with':<26}{'any page':>12}{'by degree':>12}{'s':>8}")
        for name, table in (("uniform negatives", None), ("negatives by popularity", "popular")):
            for seed in range(args.seeds):
                started = time.perf_counter()
                out = train(
                    graph,
                    links,
                    negatives=table,
                    epochs=args.epochs,
                    seed=seed,
                    workers=args.workers,
                )
                figures = [
                    rank_accuracy(out, links, non_links)
                    for non_links in (links.uniform, links.popular)
                ]
                print(
                    f"{name:<26}{figures[0]:>12.4f}{figures[1]:>12.4f}"
                    f"{time.perf_counter() - started:>8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
