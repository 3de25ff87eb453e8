"""Predict next purchases while tastes change, with and without temporal neighborhoods.

    # an Asterism service
    python examples/tastes.py localhost:9669
    # embedded: a folder in place of the address
    python examples/tastes.py graphs/ --epochs 3

The shop is synthetic, so that the best result is known: a user likes one of 20 genres at a time,
and another one later; nine of ten purchases are of the genre that the user likes then. The test set
is the purchases of the last tenth of the time, which are not used in training. The model represents
a user by the mean of purchases: one layer of GraphSAGE over learned vectors of items, with PyG's
LinkLoader.

Three modes sample a user's purchases: any of them, regardless of time; any up to the purchase to
predict; and the last few before it. The first mode may see later purchases, and even the one to
predict, so its result is too optimistic. The program therefore prints two AUCs of a purchase
against a random item: with neighborhoods as in training, and with the purchases before. Only the
second is attainable, because a recommender answers before the purchase. Needs
`asterism-graph[pyg]`, and `asterism-graph[server]` for a folder."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.loader import LinkLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import NegativeSampling

import asterism
from asterism import Client, Graph
from asterism.pyg import NeighborSampler, stores

SPACE, DIM, FANOUT, BATCH = "tastes", 32, 5, 2048
USERS, ITEMS, GENRES, PURCHASES, DAYS, LIKED_DAYS = 2000, 1000, 20, 60_000, 1000, 250
TEST_FRACTION, FAITHFUL = 0.1, 0.9
BUYS, BOUGHT = ("user", "buys", "item"), ("item", "bought_by", "user")
SAMPLING_MODES: dict[str, dict[str, str]] = {
    "whenever": {},
    "until then": {"time_attr": "day"},
    "the last ones": {"time_attr": "day", "temporal_strategy": "last"},
}
SCHEMA = {
    "parts": 4,
    "direction": "both",
    "nodes": {"user": {}, "item": {}},
    "edges": {
        ":".join(triple): {"features": {"day": "int32"}, "time": "day"} for triple in (BUYS, BOUGHT)
    },
}


@dataclass(frozen=True, kw_only=True)
class Shop:
    """Purchases, earliest first."""

    users: Any
    """User of each purchase, int64 [m]."""
    items: Any
    """Item of each purchase, int64 [m]."""
    days: Any
    """Day of each purchase, int64 [m]."""

    @property
    def first_test(self) -> int:
        """Position of the first test purchase."""
        return int(np.searchsorted(self.days, DAYS * (1 - TEST_FRACTION)))


def make_shop(seed: int = 0) -> Shop:
    """Return a shop with users who change their preferred genre."""
    rng = np.random.default_rng(seed)
    days, users = np.sort(rng.integers(0, DAYS, PURCHASES)), rng.integers(0, USERS, PURCHASES)
    # Each user has their own start days of periods with one genre.
    spell_count = DAYS // LIKED_DAYS + 2
    liked, spell_starts = (
        rng.integers(0, GENRES, (USERS, spell_count)),
        rng.integers(0, LIKED_DAYS, USERS),
    )
    genres = liked[users, (days + spell_starts[users]) // LIKED_DAYS]
    is_faithful = rng.random(PURCHASES) < FAITHFUL
    items = np.where(
        is_faithful,
        genres + GENRES * rng.integers(0, ITEMS // GENRES, PURCHASES),
        rng.integers(0, ITEMS, PURCHASES),
    )
    return Shop(users=users, items=items, days=days)


def load(client: Client, shop: Shop) -> Graph:
    """Create a space of all purchases, in both directions, with their days as times."""
    client.create_space(SPACE, SCHEMA, if_not_exists=True)
    graph = client.graph(SPACE)
    if not client.versions(SPACE):
        graph.upsert_nodes(np.arange(USERS), "user")
        graph.upsert_nodes(np.arange(ITEMS), "item")
        graph.upsert_edges(shop.users, shop.items, "buys", features={"day": shop.days})
        graph.upsert_edges(shop.items, shop.users, "bought_by", features={"day": shop.days})
        graph.build()
    return graph


class Model(torch.nn.Module):
    """A vector for each item, and one layer of GraphSAGE for users.

    The layer (Hamilton, Ying & Leskovec 2017) aggregates the vectors of a user's items.
    """

    def __init__(self) -> None:
        super().__init__()
        self.vectors = torch.nn.Embedding(ITEMS, DIM)
        torch.nn.init.normal_(self.vectors.weight, std=DIM**-0.5)
        self.layer = SAGEConv((DIM, DIM), DIM, root_weight=False)

    def forward(self, batch: Any) -> tuple[Any, Any]:
        """Return the scores of each purchase and of a random item, for its user."""
        items = self.vectors(batch["item"].n_id)
        users = self.layer(
            (items, items.new_zeros(len(batch["user"].n_id), DIM)), batch[BOUGHT].edge_index
        )[batch["user"].src_index]
        return (
            (users * items[batch["item"][name].view(-1)]).sum(1)
            for name in ("dst_pos_index", "dst_neg_index")
        )  # type: ignore[return-value]


def loader(graph: Graph, shop: Shop, mode: str, rows: slice, *, shuffle: bool) -> LinkLoader:
    """Return a loader of purchases, each with a random item.

    Their neighborhoods follow a sampling mode as of the day before.
    """
    options = SAMPLING_MODES[mode]
    links = torch.from_numpy(np.stack([shop.users[rows], shop.items[rows]]))
    return LinkLoader(
        stores(graph),
        # Options by name.
        NeighborSampler(graph, {BOUGHT: [FANOUT]}, disjoint=True, **options),  # type: ignore[arg-type]
        edge_label_index=(BUYS, links),
        edge_label_time=torch.from_numpy(shop.days[rows] - 1) if options else None,
        neg_sampling=NegativeSampling("triplet", 1),
        batch_size=BATCH,
        shuffle=shuffle,
    )


def train(graph: Graph, shop: Shop, mode: str, *, epochs: int, seed: int) -> Model:
    """Train a model on all purchases before the test set."""
    torch.manual_seed(seed)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(epochs):
        for batch in loader(graph, shop, mode, slice(shop.first_test), shuffle=True):
            purchase_scores, random_scores = model(batch)
            loss = (
                -functional.logsigmoid(purchase_scores).mean()
                - functional.logsigmoid(-random_scores).mean()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


@torch.no_grad()
def test_auc(graph: Graph, shop: Shop, model: Model, mode: str) -> float:
    """Return the AUC of the test purchases with neighborhoods of a sampling mode."""
    model.eval()
    purchase_scores, random_scores = (
        torch.cat(scores)
        for scores in zip(
            *(
                model(b)
                for b in loader(graph, shop, mode, slice(shop.first_test, None), shuffle=False)
            ),
            strict=True,
        )
    )
    sorted_random = torch.sort(random_scores).values
    return float(
        (
            torch.searchsorted(sorted_random, purchase_scores)
            + torch.searchsorted(sorted_random, purchase_scores, right=True)
        )
        .double()
        .mean()
        / 2
        / len(random_scores)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("where", help="host:port of a service, or a folder")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    shop = make_shop()
    with (
        asterism.connect(args.where) if ":" in args.where else asterism.open(args.where) as client,
        load(client, shop).pin() as graph,
    ):
        print(
            f"{len(shop.days) - shop.first_test:,} purchases of the last days; AUC against "
            "an item at random, by what neighborhoods see"
        )
        print(f"{'trained with':<16}{'asked with it':>16}{'until then':>16}{'s':>8}")
        for mode in SAMPLING_MODES:
            for seed in range(args.seeds):
                started = time.perf_counter()
                model = train(graph, shop, mode, epochs=args.epochs, seed=seed)
                honest_mode = mode if SAMPLING_MODES[mode] else "until then"
                figures = [
                    test_auc(graph, shop, model, test_mode) for test_mode in (mode, honest_mode)
                ]
                print(
                    f"{mode:<16}{figures[0]:>16.4f}{figures[1]:>16.4f}"
                    f"{time.perf_counter() - started:>8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
