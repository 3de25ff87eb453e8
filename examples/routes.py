"""Predict the region of an airport from its routes, by a heterogeneous model.

    # an Asterism service
    python examples/routes.py localhost:9669 ../shared/data/openflights
    # embedded: a folder in place of the address
    python examples/routes.py graphs/ ../shared/data/openflights --seeds 5

The folder has the .dat files of openflights.org; examples/schemas/openflights.yaml lists their
columns. Routes join airports; their weight is the number of airlines that fly them. Airlines join
airports; the weight is the number of routes that begin there. The country of an airport is left
out, because it would reveal the label. The region of a seed, the first word of its time zone, is
hidden; the regions of two thirds of the other airports are known. GraphSAGE over both kinds of
nodes (Hamilton, Ying & Leskovec 2017) is trained with PyG's NodeLoader, on neighbors sampled by
weight and on uniform ones. Needs `asterism-graph[pyg,ingest]`, and `asterism-graph[server]` for a
folder."""

from __future__ import annotations

import argparse
import csv
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import HeteroConv, SAGEConv

import asterism
from asterism import Client, Graph, ingest
from asterism.pyg import NeighborSampler, stores

SPACE, SCHEMA = "openflights", Path(__file__).parent / "schemas/openflights.yaml"
ROUTE, SERVES, SERVED = (
    ("airport", "route", "airport"),
    ("airline", "serves", "airport"),
    ("airport", "served_by", "airline"),
)
FANOUTS = {ROUTE: [6, 4], SERVES: [4, 2], SERVED: [4, 6]}
HIDDEN, BATCH, UNKNOWN = 32, 128, -1
MIN_AIRPORTS = 30
"""Fewest airports of a region in the data set."""


@dataclass(frozen=True, kw_only=True)
class Airports:
    """Airports with a route and a region."""

    region: Any
    """Region of each airport id, int64; `UNKNOWN` if there is none."""
    regions: list[str]
    train: Any
    validation: Any
    test: Any


class Regions(torch.nn.Module):
    """Two layers of GraphSAGE over airports and airlines.

    The feature of an airport is its region, if it is in the training set and is no seed.
    """

    def __init__(self, regions: int) -> None:
        super().__init__()
        sizes = {"airport": regions, "airline": 1}
        self.first = HeteroConv(
            {t: SAGEConv((sizes[t[0]], sizes[t[2]]), HIDDEN) for t in FANOUTS}, aggr="mean"
        )
        self.second = HeteroConv(
            {t: SAGEConv((HIDDEN, HIDDEN), HIDDEN) for t in FANOUTS}, aggr="mean"
        )
        self.classifier = torch.nn.Linear(HIDDEN, regions)

    def forward(self, batch: Any, region_features: Any) -> Any:
        airports = batch["airport"]
        airport_features = region_features[airports.n_id].clone()
        airport_features[: airports.batch_size] = 0  # hides the labels of the seeds
        x = {"airport": airport_features, "airline": torch.ones(len(batch["airline"].n_id), 1)}
        edges = {triple: batch[triple].edge_index for triple in FANOUTS}
        x = {
            name: functional.dropout(h.relu(), 0.3, self.training)
            for name, h in self.first(x, edges).items()
        }
        return self.classifier(self.second(x, edges)["airport"].relu()[: airports.batch_size])


def load(client: Client, root: Path) -> Graph:
    """Return the space with the routes; load and build it if it does not exist.

    Rows without an airport are left out.
    """
    client.create_space(SPACE, ingest.schema_of(SCHEMA, root=root), if_not_exists=True)
    graph = client.graph(SPACE)
    if not client.versions(SPACE):
        ingest.load(client, SPACE, SCHEMA, root=root, on_bad_rows="skip")
        graph.build()
    return graph


def split_airports(graph: Graph, root: Path) -> Airports:
    """Return the airports with training, validation and test sets."""
    with (root / "airports.dat").open(encoding="utf-8", newline="") as file:
        region_of = {
            int(row[0]): row[11].partition("/")[0] for row in csv.reader(file) if "/" in row[11]
        }
    ids = np.concatenate([batch.ids for batch in graph.scan_nodes("airport")])
    reached_ids = ids[graph.degrees(ids, "route", direction="in")[:, 0] > 0]
    common = [
        region
        for region, count in Counter(
            region_of.get(i, "") for i in reached_ids.tolist()
        ).most_common()
        if region and count >= MIN_AIRPORTS
    ]
    region = torch.full((int(ids.max()) + 1,), UNKNOWN)
    labelled = [i for i in reached_ids.tolist() if region_of.get(i) in common]
    region[labelled] = torch.tensor([common.index(region_of[i]) for i in labelled])
    order = torch.tensor(labelled)[
        torch.randperm(len(labelled), generator=torch.Generator().manual_seed(0))
    ]
    train, validation = len(order) * 6 // 10, len(order) * 8 // 10
    return Airports(
        region=region,
        regions=common,
        train=order[:train],
        validation=order[train:validation],
        test=order[validation:],
    )


def train(
    graph: Graph, data: Airports, *, weight: str | None, seed: int, epochs: int, workers: int = 0
) -> float:
    """Return the accuracy on test airports of the model that was best on the validation set."""
    torch.manual_seed(seed)
    region_features = torch.zeros(len(data.region), len(data.regions))
    region_features[data.train, data.region[data.train]] = 1
    graph_stores = stores(graph, {})

    def make_loader(ids: Any, **options: Any) -> Any:
        sampler = NeighborSampler(
            graph, FANOUTS, weight_attr=weight, seed=None if "shuffle" in options else seed
        )
        return NodeLoader(
            graph_stores, sampler, input_nodes=("airport", ids), batch_size=BATCH, **options
        )

    def accuracy(ids: Any) -> float:
        model.eval()
        with torch.no_grad():
            predicted = torch.cat(
                [model(batch, region_features).argmax(1) for batch in make_loader(ids)]
            )
        return float((predicted == data.region[ids]).double().mean())

    model, best_score, best_state = Regions(len(data.regions)), -1.0, {}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    for epoch in range(epochs):
        model.train()
        for batch in make_loader(data.train, shuffle=True, num_workers=workers):
            seeds = batch["airport"].n_id[: batch["airport"].batch_size]
            loss = functional.cross_entropy(model(batch, region_features), data.region[seeds])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if (epoch % 3 == 2 or epoch + 1 == epochs) and (
            score := accuracy(data.validation)
        ) > best_score:
            best_score, best_state = (
                score,
                {name: value.clone() for name, value in model.state_dict().items()},
            )
    model.load_state_dict(best_state)
    return accuracy(data.test)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("where", help="host:port of a service, or a folder")
    parser.add_argument("root", type=Path, help="the folder with the .dat files")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    with (
        asterism.connect(args.where) if ":" in args.where else asterism.open(args.where) as client,
        load(client, args.root).pin() as graph,
    ):
        data = split_airports(graph, args.root)
        majority_share = float(
            (data.region[data.test] == data.region[data.train].mode().values).double().mean()
        )
        print(
            f"{len(data.regions)} regions, {len(data.train)} airports to train with; the "
            f"commonest region alone would be right for {majority_share:.3f}"
        )
        for name, weight in (("uniform neighbors", None), ("neighbors by weight", "weight")):
            started = time.perf_counter()
            accuracies = [
                train(
                    graph, data, weight=weight, seed=seed, epochs=args.epochs, workers=args.workers
                )
                for seed in range(args.seeds)
            ]
            elapsed_s = (time.perf_counter() - started) / args.seeds
            print(
                (
                    f"{name}: test accuracy {np.mean(accuracies):.3f} +- "
                    f"{np.std(accuracies):.3f} over {args.seeds} seeds, {elapsed_s:.1f} s each"
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
