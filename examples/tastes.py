"""Predicts what users buy next while their tastes change: with neighborhoods until each purchase,
and with such as see what came later.

    python examples/tastes.py localhost:9669        # a service; or a folder in place of its
                                                    address: embedded
    python examples/tastes.py graphs/ --epochs 3

The shop is made up, so that what there is to know is known: a user likes one of 20 genres at a
time, and another one after a while; of ten purchases nine are of the genre that is liked then.
Purchases of the last tenth of the time are asked for, none of which was learned from. A user is the
mean of what was bought, one layer of GraphSAGE over learned vectors of items that PyG's own
LinkLoader brings.

Three ways to sample what was bought: some of it, whenever that was; some until the purchase in
question; and the last few before it. The first may see what came later, and the very purchase that
it is to tell. So it promises more than it keeps: how well each tells a purchase from an item at
random is said twice, as AUC, with neighborhoods as it was trained with and with what there was
before. Only the second can be had, as every recommender is asked before the purchase is made. Needs
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
    """Purchases, the earliest first."""

    users: Any
    """int64 [m]."""
    items: Any
    """int64 [m]."""
    days: Any
    """int64 [m]."""

    @property
    def first_test(self) -> int:
        """The first purchase of those that are not learned from."""
        return int(np.searchsorted(self.days, DAYS * (1 - TEST_FRACTION)))


def make_shop(seed: int = 0) -> Shop:
    """A shop whose users change what they like."""
    rng = np.random.default_rng(seed)
    days, users = np.sort(rng.integers(0, DAYS, PURCHASES)), rng.integers(0, USERS, PURCHASES)
    # A user's spells of one genre begin on days that are the user's own.
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
    """A space of all purchases, both ways: until its day nobody sees one who asks for times."""
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
    """A vector for each item; a user is what a layer of GraphSAGE (Hamilton, Ying & Leskovec 2017)
    makes of the user's.
    """

    def __init__(self) -> None:
        super().__init__()
        self.vectors = torch.nn.Embedding(ITEMS, DIM)
        torch.nn.init.normal_(self.vectors.weight, std=DIM**-0.5)
        self.layer = SAGEConv((DIM, DIM), DIM, root_weight=False)

    def forward(self, batch: Any) -> tuple[Any, Any]:
        """How well each purchase of a batch fits its user, and how well the item beside it."""
        items = self.vectors(batch["item"].n_id)
        users = self.layer(
            (items, items.new_zeros(len(batch["user"].n_id), DIM)), batch[BOUGHT].edge_index
        )[batch["user"].src_index]
        return (
            (users * items[batch["item"][name].view(-1)]).sum(1)
            for name in ("dst_pos_index", "dst_neg_index")
        )  # type: ignore[return-value]


def loader(graph: Graph, shop: Shop, mode: str, rows: slice, *, shuffle: bool) -> LinkLoader:
    """Some purchases, an item at random beside each, and around them what a way to sample shows on
    the day before.
    """
    options = SAMPLING_MODES[mode]
    links = torch.from_numpy(np.stack([shop.users[rows], shop.items[rows]]))
    return LinkLoader(
        stores(graph),
        # Words by name.
        NeighborSampler(graph, {BOUGHT: [FANOUT]}, disjoint=True, **options),  # type: ignore[arg-type]
        edge_label_index=(BUYS, links),
        edge_label_time=torch.from_numpy(shop.days[rows] - 1) if options else None,
        neg_sampling=NegativeSampling("triplet", 1),
        batch_size=BATCH,
        shuffle=shuffle,
    )


def train(graph: Graph, shop: Shop, mode: str, *, epochs: int, seed: int) -> Model:
    """A model that learned from all purchases before those that are asked for."""
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
    """The area under the curve (AUC) of the purchases that were not learned from, with
    neighborhoods of one of the ways.
    """
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
