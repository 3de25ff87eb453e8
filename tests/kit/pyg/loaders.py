"""Tests of PyG's loaders over remote graphs: every batch against the edges and files."""

from __future__ import annotations

import csv
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.kit import linked_graphs
from tests.kit.cluster import LocalCluster
from tests.kit.linked_graphs import BOUGHT_BY, BUYS, MET
from tests.kit.shared import SHARED
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.sampler import NegativeSampling

import asterism
from asterism import Client, Graph
from asterism.pyg import HGTSampler, NeighborSampler, nodes, stores
from asterism.torch import MultiHot
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotFound

WORDS = 1433
ROUTE, SERVES = ("airport", "route", "airport"), ("airline", "serves", "airport")


def edges(graph: Graph, etype: str) -> dict[int, tuple[int, int]]:
    """Return the source and destination of each edge of the graph space, by edge id."""
    edges_by_id: dict[int, tuple[int, int]] = {}
    for batch in graph.scan_edges(etype):
        edges_by_id.update(
            zip(
                batch.edge_ids.tolist(),
                zip(batch.src.tolist(), batch.dst.tolist(), strict=True),
                strict=True,
            )
        )
    return edges_by_id


def count_in_edges(edges_by_id: dict[int, tuple[int, int]]) -> Counter[int]:
    """Return the number of edges to each node."""
    return Counter(dst for _, dst in edges_by_id.values())


def papers_from_file() -> tuple[Any, Any]:
    """Return words and labels of every paper, read by Python's csv module."""
    x, y = torch.zeros(2708, WORDS), torch.zeros(2708, dtype=torch.int64)
    with (SHARED / "data/cora/papers.csv").open() as file:
        for row in csv.DictReader(file):
            y[int(row["paper"])] = int(row["label"])
            x[int(row["paper"]), [int(word) for word in row["words"].split()]] = 1
    return x, y


def data_of(papers: Graph) -> Any:
    return stores(
        papers, {"paper": {"x": "words", "y": "label"}}, encode={"words": MultiHot(WORDS)}
    )


def assert_batch(batch: Data, edges_by_id: dict[int, tuple[int, int]], fanouts: list[int]) -> None:
    """Check a homogeneous batch against the space's edges.

    It checks the edges, and the number of neighbors of each node, hop by hop.
    """
    ids = batch.n_id.tolist()
    assert len(set(ids)) == len(ids)
    ends = [(ids[a], ids[b]) for a, b in batch.edge_index.t().tolist()]
    assert [edges_by_id[edge] for edge in batch.e_id.tolist()] == ends
    assert len(set(batch.e_id.tolist())) == len(ends)
    degree, first, edge = count_in_edges(edges_by_id), 0, 0
    for hop, fanout in enumerate(fanouts):
        expanded = ids[first : first + batch.num_sampled_nodes[hop]]
        in_degrees = Counter(dst for _, dst in ends[edge : edge + batch.num_sampled_edges[hop]])
        assert in_degrees == Counter(
            {
                node: degree[node] if fanout < 0 else min(fanout, degree[node])
                for node in expanded
                if degree[node]
            }
        )
        first, edge = first + batch.num_sampled_nodes[hop], edge + batch.num_sampled_edges[hop]
    assert edge == len(ends)
    assert sum(batch.num_sampled_nodes) == len(ids)


def test_node_batches_have_seeds_first_and_file_features(papers: Graph) -> None:
    edges_by_id, (x, y) = edges(papers, "cites"), papers_from_file()
    seeds = torch.randperm(2708)[:700]
    seen: list[int] = []
    for batch in NodeLoader(
        data_of(papers),
        NeighborSampler(papers, [4, 3]),
        input_nodes=seeds,
        batch_size=128,
        shuffle=True,
    ):
        assert_batch(batch, edges_by_id, [4, 3])
        assert torch.equal(seeds[batch.input_id], batch.n_id[: batch.batch_size])
        assert torch.equal(batch.x, x[batch.n_id])
        assert torch.equal(batch.y, y[batch.n_id])
        seen += batch.n_id[: batch.batch_size].tolist()
    assert sorted(seen) == sorted(seeds.tolist())


def test_fanouts_of_all_and_no_neighbors(papers: Graph) -> None:
    edges_by_id = edges(papers, "cites")
    (batch,) = NodeLoader(
        data_of(papers),
        NeighborSampler(papers, [-1, 0, 2]),
        input_nodes=torch.arange(50),
        batch_size=50,
    )
    assert_batch(
        batch, edges_by_id, [-1, 0, 0]
    )  # the second hop visits no node, so the third has none to expand
    assert batch.num_sampled_edges[1:] == [0, 0]


def assert_same_in_workers(papers: Graph, context: str) -> None:
    def epoch(**options: Any) -> list[Data]:
        return list(
            NodeLoader(
                data_of(papers),
                NeighborSampler(papers, [5, 5], seed=7),
                input_nodes=torch.arange(600),
                batch_size=100,
                **options,
            )
        )

    without_workers, with_workers = epoch(), epoch(num_workers=2, multiprocessing_context=context)
    assert len(without_workers) == len(with_workers) == 6
    for first, second in zip(without_workers, with_workers, strict=True):
        for name in ("n_id", "edge_index", "e_id", "x", "y", "input_id"):
            assert torch.equal(first[name], second[name]), name


def test_forked_workers_give_the_batches_that_one_process_gives(papers: Graph) -> None:
    assert_same_in_workers(papers, "fork")


def test_spawned_workers_give_the_batches_that_one_process_gives(cluster: LocalCluster) -> None:
    with cluster.client().graph("citations").pin() as pinned:
        assert_same_in_workers(pinned, "spawn")


def test_draws_follow_torch_or_a_seed_of_their_own(papers: Graph) -> None:
    def sampled_edges(sampler: NeighborSampler, first: int = 0) -> list[int]:
        (batch,) = NodeLoader(
            data_of(papers), sampler, input_nodes=torch.arange(first, first + 300), batch_size=300
        )
        return batch.e_id.tolist()

    unseeded, seeded = NeighborSampler(papers, [2, 2]), NeighborSampler(papers, [2, 2], seed=3)
    torch.manual_seed(1)
    first, second = sampled_edges(unseeded), sampled_edges(unseeded)
    torch.manual_seed(1)
    assert sampled_edges(unseeded) == first != second
    assert (
        sampled_edges(seeded)
        == sampled_edges(seeded)
        != sampled_edges(NeighborSampler(papers, [2, 2], seed=4))
    )
    assert sampled_edges(seeded) != sampled_edges(seeded, 1)


def test_unseeded_workers_differ_and_change_each_epoch(papers: Graph) -> None:
    repeated_seed = torch.zeros(
        4, dtype=torch.int64
    )  # the same batch four times, two in each worker
    degree = papers.degrees(np.arange(2708), "cites", direction="in")[:, 0]
    repeated_seed += int(degree.argmax())
    loader = NodeLoader(
        data_of(papers),
        NeighborSampler(papers, [5]),
        input_nodes=repeated_seed,
        batch_size=1,
        num_workers=2,
    )
    samples = [tuple(batch.e_id.tolist()) for _ in range(2) for batch in loader]
    assert len(set(samples)) == len(samples) == 8


def test_disjoint_trees_are_each_of_one_seed(papers: Graph) -> None:
    edges_by_id = edges(papers, "cites")
    seeds = torch.tensor([5, 9, 5, 100])
    (batch,) = NodeLoader(
        data_of(papers),
        NeighborSampler(papers, [3, 3], disjoint=True),
        input_nodes=seeds,
        batch_size=4,
    )
    assert batch.n_id[:4].tolist() == seeds.tolist()
    assert batch.batch[:4].tolist() == [0, 1, 2, 3]
    row, col = batch.edge_index
    assert torch.equal(batch.batch[row], batch.batch[col])
    assert [edges_by_id[edge] for edge in batch.e_id.tolist()] == list(
        zip(batch.n_id[row].tolist(), batch.n_id[col].tolist(), strict=True)
    )


def test_a_bidirectional_subgraph_has_every_edge_both_ways(papers: Graph) -> None:
    sampler = NeighborSampler(papers, [3, 3], subgraph_type="bidirectional")
    (batch,) = NodeLoader(data_of(papers), sampler, input_nodes=torch.arange(40), batch_size=40)
    ends = set(map(tuple, batch.edge_index.t().tolist()))
    assert ends
    assert {(b, a) for a, b in ends} == ends


def test_heterogeneous_batches_are_keyed_by_type(flights: Graph) -> None:
    edges_by_type = {
        triple: edges(flights, ":".join(triple))
        for triple in NeighborSampler(flights, [1])._view.edge_types
    }
    fanouts = {triple: [3, 2] for triple in edges_by_type} | {SERVES: [0, 4]}
    seeds = nodes(flights, "airport")[:500]
    data = stores(flights, {"airport": ["position", "altitude"], "airline": ["weight"]})
    for batch in NodeLoader(
        data, NeighborSampler(flights, fanouts), input_nodes=("airport", seeds), batch_size=250
    ):
        assert isinstance(batch, HeteroData)
        assert torch.equal(seeds[batch["airport"].input_id], batch["airport"].n_id[:250])
        assert batch["airport"].batch_size == 250
        for triple, type_edges in edges_by_type.items():
            src, dst = batch[triple[0]].n_id, batch[triple[-1]].n_id
            row, col = batch[triple].edge_index
            assert [type_edges[edge] for edge in batch[triple].e_id.tolist()] == list(
                zip(src[row].tolist(), dst[col].tolist(), strict=True)
            )
        degree = count_in_edges(edges_by_type[ROUTE])
        in_degrees = Counter(
            batch["airport"]
            .n_id[batch[ROUTE].edge_index[1][: batch[ROUTE].num_sampled_edges[0]]]
            .tolist()
        )
        assert in_degrees == Counter(
            {
                int(seed): min(3, degree[int(seed)])
                for seed in batch["airport"].n_id[:250]
                if degree[int(seed)]
            }
        )
        assert batch[SERVES].num_sampled_edges[0] == 0
        features = flights.node_features(
            batch["airport"].n_id.numpy(), ["position", "altitude"], "airport"
        )
        assert np.array_equal(batch["airport"].position.numpy(), np.asarray(features["position"]))
        assert np.array_equal(batch["airport"].altitude.numpy(), np.asarray(features["altitude"]))
        assert (batch["airline"].weight == 1).all()
        assert batch["country"].n_id.unique().numel() == batch["country"].n_id.numel()


def test_neighbors_follow_named_weights(flights: Graph) -> None:
    weights = {
        int(e): float(w)
        for batch in flights.scan_edges("route")
        for e, w in zip(batch.edge_ids, batch.weights, strict=True)
    }
    edges_by_id = edges(flights, "route")
    hub = count_in_edges(edges_by_id).most_common(1)[0][0]
    hub_weights = {edge: weights[edge] for edge, (_, dst) in edges_by_id.items() if dst == hub}
    mean_weights: dict[str | None, float] = {}
    for weight_name in (None, "weight"):
        sampler = NeighborSampler(
            flights, {ROUTE: [20000]}, replace=True, weight_attr=weight_name, seed=5
        )
        (batch,) = NodeLoader(
            stores(flights), sampler, input_nodes=("airport", torch.tensor([hub])), batch_size=1
        )
        mean_weights[weight_name] = np.mean(
            [hub_weights[edge] for edge in batch[ROUTE].e_id.tolist()]
        )
    values = np.array(list(hub_weights.values()))
    for weight_name, p in (
        (None, np.full(len(values), 1 / len(values))),
        ("weight", values / values.sum()),
    ):
        mean = float(p @ values)
        standard_error = float(np.sqrt(p @ (values - mean) ** 2 / 20000))
        assert abs(mean_weights[weight_name] - mean) < 5 * standard_error
    assert mean_weights["weight"] > mean_weights[None] * 1.1


@pytest.mark.parametrize("disjoint", [False, True])
def test_links_come_with_binary_negatives(papers: Graph, disjoint: bool) -> None:
    links = torch.stack(
        [torch.tensor([a, b]) for a, b in list(edges(papers, "cites").values())[:300]], dim=1
    )
    loader = LinkLoader(
        data_of(papers),
        NeighborSampler(papers, [3], disjoint=disjoint),
        edge_label_index=(None, links),
        neg_sampling="binary",
        batch_size=100,
        shuffle=True,
    )
    seen = []
    for batch in loader:
        assert batch.edge_label.tolist() == [1.0] * 100 + [0.0] * 100
        src, dst = batch.n_id[batch.edge_label_index]
        assert torch.equal(torch.stack([src, dst])[:, :100], links[:, batch.input_id])
        seen += batch.input_id.tolist()
        sampled = set(zip(*batch.n_id[batch.edge_index].tolist(), strict=True))
        assert not sampled & set(zip(*links[:, batch.input_id].tolist(), strict=True))
        assert len(set(src[100:].tolist())) > 80  # uniform samples of 2,708 papers rarely meet
        assert torch.equal(batch.x, papers_from_file()[0][batch.n_id])
    assert sorted(seen) == list(range(300))


def sampled_pairs(batch: HeteroData, triple: tuple[str, str, str]) -> set[tuple[int, int]]:
    """Return the sampled edges of a type, by the ids of their ends."""
    row, col = batch[triple].edge_index
    src, dst = batch[triple[0]].n_id[row], batch[triple[-1]].n_id[col]
    return set(zip(src.tolist(), dst.tolist(), strict=True))


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("negatives", ["binary", NegativeSampling("triplet", 2)], ids=["2", "3"])
def test_reverse_types_hide_both_directions_of_links(
    shop: Graph, negatives: Any, disjoint: bool
) -> None:
    """Without them a model sees each link of its batch in the other direction."""
    links = torch.from_numpy(np.stack(linked_graphs.shop_edges()[BUYS]))
    every_link = set(zip(*links.tolist(), strict=True))
    leaks = Counter[str]()
    for name, options in (
        ("none", {"exclude": False}),
        ("links", {}),
        ("both", {"reverse_types": {BUYS: BOUGHT_BY}}),
    ):
        loader = LinkLoader(
            stores(shop),
            NeighborSampler(shop, [3, 2], disjoint=disjoint, seed=4, **options),
            edge_label_index=(BUYS, links),
            neg_sampling=negatives,
            batch_size=60,
        )
        for batch in loader:
            targets = set(zip(*links[:, batch[BUYS].input_id].tolist(), strict=True))
            assert len(targets) == 60
            sampled = sampled_pairs(batch, BUYS)
            assert sampled <= every_link
            leaks[f"{name} forward"] += len(sampled & targets)
            backward = {(dst, src) for src, dst in sampled_pairs(batch, BOUGHT_BY)}
            leaks[f"{name} backward"] += len(backward & targets)
    assert {name for name, count in leaks.items() if count} == {
        "none forward",
        "none backward",
        "links backward",
    }
    assert min(filter(None, leaks.values())) > 30


def test_a_type_with_both_directions_is_its_own_reverse(friends: Graph) -> None:
    src, dst = (torch.from_numpy(ends) for ends in linked_graphs.friend_edges())
    links = torch.stack([src, dst])[:, : len(src) // 2]
    leaks = {}
    for name, options in (("links", {}), ("both", {"reverse_types": {MET: MET}})):
        loader = LinkLoader(
            stores(friends),
            NeighborSampler(friends, [4, 3], seed=4, **options),
            edge_label_index=(None, links),
            neg_sampling="binary",
            batch_size=50,
        )
        leaks[name] = 0
        for batch in loader:
            targets = set(zip(*links[:, batch.input_id].tolist(), strict=True))
            sampled = set(zip(*batch.n_id[batch.edge_index].tolist(), strict=True))
            assert not sampled & targets
            leaks[name] += len({(b, a) for a, b in sampled} & targets)
    assert leaks["links"] > 30
    assert leaks["both"] == 0
    with pytest.raises(InvalidRequest, match="reverse_types with exclude=False"):
        NeighborSampler(friends, [2], exclude=False, reverse_types={MET: MET})


@pytest.mark.parametrize("disjoint", [False, True])
def test_links_come_with_triplets_of_the_right_types(flights: Graph, disjoint: bool) -> None:
    links = torch.tensor(list(edges(flights, "airline:serves:airport").values())[:200]).t()
    loader = LinkLoader(
        stores(flights),
        NeighborSampler(flights, [2, 2], disjoint=disjoint),
        edge_label_index=(SERVES, links),
        neg_sampling=NegativeSampling("triplet", 3),
        batch_size=50,
    )
    airports = set(nodes(flights, "airport").tolist())
    for index, batch in enumerate(loader):
        expected = links[:, index * 50 : index * 50 + 50]
        assert torch.equal(batch["airline"].n_id[batch["airline"].src_index], expected[0])
        assert torch.equal(batch["airport"].n_id[batch["airport"].dst_pos_index], expected[1])
        assert batch["airport"].dst_neg_index.shape == (50, 3)
        assert (
            set(batch["airport"].n_id[batch["airport"].dst_neg_index].reshape(-1).tolist())
            <= airports
        )
        if disjoint:
            assert torch.equal(
                batch["airport"].batch[batch["airport"].dst_neg_index],
                torch.arange(50).view(50, 1).expand(50, 3),
            )


def test_links_can_be_an_entire_edge_type(flights: Graph) -> None:
    edges_by_id = edges(flights, "airline:serves:airport")
    loader = LinkLoader(
        stores(flights), NeighborSampler(flights, [0]), edge_label_index=SERVES, batch_size=4096
    )
    seen: Counter[tuple[int, ...]] = Counter()
    for batch in loader:
        row, col = batch[SERVES].edge_label_index
        seen.update(
            zip(
                batch["airline"].n_id[row].tolist(),
                batch["airport"].n_id[col].tolist(),
                strict=True,
            )
        )
    assert seen == Counter(edges_by_id.values())


def test_negatives_follow_node_weights_or_pyg(embedded: Client) -> None:
    embedded.create_space(
        "weighted",
        {
            "direction": "both",
            "nodes": {"n": {"weighted": True, "tables": {"odd": "weight - 1"}}},
            "edges": {"n:to:n": {}},
        },
    )
    graph = embedded.graph("weighted")
    graph.upsert_nodes(np.arange(10), "n", weights=[1, 1, 1, 1, 1, 1, 1, 1, 1, 31])
    graph.upsert_edges(np.arange(10), (np.arange(10) + 1) % 10, "to")
    graph.build()
    links = torch.stack([torch.arange(10), (torch.arange(10) + 1) % 10])
    with graph.pin() as pinned:

        def negatives(sampling: NegativeSampling, weight: str | None = None) -> list[int]:
            sampler = NeighborSampler(pinned, [0], negative_weight=weight, seed=1)
            (batch,) = LinkLoader(
                stores(pinned, {}),
                sampler,
                edge_label_index=(None, links),
                neg_sampling=sampling,
                batch_size=10,
            )
            return batch.n_id[batch.dst_neg_index].reshape(-1).tolist()

        uniform, weighted = (
            negatives(NegativeSampling("triplet", 400)),
            negatives(NegativeSampling("triplet", 400), "weight"),
        )
        assert all(300 < count < 500 for count in Counter(uniform).values())
        assert len(set(uniform)) == 10
        assert abs(weighted.count(9) - 4000 * 31 / 40) < 5 * (4000 * 31 / 40 * 9 / 40) ** 0.5
        assert set(negatives(NegativeSampling("triplet", 40), "odd")) == {9}
        dst_weight = torch.tensor([0.0, 1, 0, 3, 0, 0, 0, 0, 0, 0])
        sampled = negatives(NegativeSampling("triplet", 400, dst_weight=dst_weight))
        assert set(sampled) == {1, 3}
        assert abs(sampled.count(3) - 3000) < 5 * 750**0.5
        with pytest.raises(InvalidRequest, match="dst_weight of length 3: expected 10"):
            negatives(NegativeSampling("triplet", 1, dst_weight=torch.ones(3)))


def test_seeds_that_do_not_exist_are_named(papers: Graph) -> None:
    seeds = torch.tensor([3, 10**6, 8])
    loader = NodeLoader(
        data_of(papers), NeighborSampler(papers, [2]), input_nodes=seeds, batch_size=3
    )
    with pytest.raises(NotFound, match="seeds with 1000000 of 'paper': expected nodes of version"):
        next(iter(loader))


def test_duplicate_seed_in_batch_is_rejected(papers: Graph) -> None:
    loader = NodeLoader(
        data_of(papers),
        NeighborSampler(papers, [2]),
        input_nodes=torch.tensor([3, 8, 3]),
        batch_size=3,
    )
    with pytest.raises(
        InvalidRequest, match=r"seeds with 3 of 'paper': expected existing nodes, each once"
    ):
        next(iter(loader))


def test_graph_without_version_is_rejected(client: Client) -> None:
    graph = client.graph("citations")
    for call in (lambda: stores(graph), lambda: NeighborSampler(graph, [2])):
        with pytest.raises(InvalidRequest, match=r"use graph\.pin\(\)"):
            call()
    assert NeighborSampler(graph.at(1), [2])._view.version == 1


def test_graph_without_in_edges_is_rejected_when_made() -> None:
    schema = Schema.from_dict({"nodes": {"paper": {}}, "edges": {"paper:cites:paper": {}}})
    graph: Any = SimpleNamespace(version=1, space="s", schema=schema)
    for make in (lambda: NeighborSampler(graph, [2]), lambda: HGTSampler(graph, [2])):
        with pytest.raises(
            InvalidRequest,
            match=r"space 's' with direction: out: expected direction: both, .* create a space",
        ):
            make()


def test_ids_with_gaps_are_named_not_counted(flights: Graph) -> None:
    data = stores(flights, {"airport": ["altitude"]})
    with pytest.raises(
        InvalidRequest,
        match=r"all nodes of 'airport': expected ids of 'airport' to be the integers from 0 to \d+",
    ):
        NodeLoader(data, NeighborSampler(flights, [2]), input_nodes="airport")
    with pytest.raises(InvalidRequest, match="features of a whole type"):
        data[0]["airport", "altitude", None]
    all_airports = nodes(flights, "airport")
    assert all_airports.numel() == all_airports.unique().numel() == flights.count_nodes("airport")
    loader = NodeLoader(
        data, NeighborSampler(flights, [2]), input_nodes=("airport", all_airports), batch_size=2048
    )
    assert torch.equal(
        torch.cat([batch["airport"].n_id[: batch["airport"].batch_size] for batch in loader]),
        all_airports,
    )


def test_stores_return_full_columns_and_are_read_only(papers: Graph) -> None:
    features, graph = data_of(papers)
    x, y = papers_from_file()
    assert torch.equal(features[None, "x", None], x)
    assert torch.equal(features[None, "y", slice(10, 20)], y[10:20])
    assert features.get_tensor_size(None, "x") == (2708, WORDS)
    row, col, _ = graph.coo()
    assert Counter(zip(row.tolist(), col.tolist(), strict=True)) == Counter(
        edges(papers, "cites").values()
    )
    with pytest.raises(InvalidRequest, match="stores: expected reads only"):
        features.put_tensor(x, group_name=None, attr_name="x", index=None)
    with pytest.raises(InvalidRequest, match="stores: expected reads only"):
        graph.put_edge_index((row, col), edge_type=None, layout="coo")
    with pytest.raises(NotFound, match="attribute 'z' of 'paper': expected one of"):
        features[None, "z", None]
    with pytest.raises(
        InvalidRequest,
        match="feature 'words' of 'paper': expected a dense feature, this one is ragged",
    ):
        stores(papers, {"paper": ["words"]})
    with pytest.raises(NotFound, match=r"features with \['author'\]: expected node types"):
        stores(papers, {"author": ["name"]})
    assert isinstance(papers.client, asterism.Client)
