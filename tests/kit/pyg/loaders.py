"""PyG's own loaders over a graph that is not in memory, on real graphs: every batch held against the edges and files that it is of."""

from __future__ import annotations

import csv
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from tests.kit.cluster import LocalCluster
from tests.kit.shared import SHARED
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.sampler import NegativeSampling

import asterism
from asterism import Client, Graph
from asterism.pyg import NeighborSampler, nodes, stores
from asterism.torch import MultiHot
from asterism_proto.errors import InvalidRequest, NotFound

WORDS = 1433
ROUTE, SERVES = ("airport", "route", "airport"), ("airline", "serves", "airport")


def edges(graph: Graph, etype: str) -> dict[int, tuple[int, int]]:
    """Source and destination of each edge of the space, by its id."""
    found: dict[int, tuple[int, int]] = {}
    for batch in graph.scan_edges(etype):
        found.update(zip(batch.edge_ids.tolist(), zip(batch.src.tolist(), batch.dst.tolist(), strict=True), strict=True))
    return found


def into(known: dict[int, tuple[int, int]]) -> Counter[int]:
    """How many edges lead to each node."""
    return Counter(dst for _, dst in known.values())


def papers_of_the_file() -> tuple[Any, Any]:
    """Words and labels of every paper, read by Python's own csv module."""
    x, y = torch.zeros(2708, WORDS), torch.zeros(2708, dtype=torch.int64)
    with (SHARED / "data/cora/papers.csv").open() as file:
        for row in csv.DictReader(file):
            y[int(row["paper"])] = int(row["label"])
            x[int(row["paper"]), [int(word) for word in row["words"].split()]] = 1
    return x, y


def data_of(papers: Graph) -> Any:
    return stores(papers, {"paper": {"x": "words", "y": "label"}}, encode={"words": MultiHot(WORDS)})


def check(batch: Data, known: dict[int, tuple[int, int]], fanouts: list[int]) -> None:
    """Hold a homogeneous batch against the space's edges: which they are, how many each node got, hop by hop."""
    ids = batch.n_id.tolist()
    assert len(set(ids)) == len(ids)
    ends = [(ids[a], ids[b]) for a, b in batch.edge_index.t().tolist()]
    assert [known[edge] for edge in batch.e_id.tolist()] == ends
    assert len(set(batch.e_id.tolist())) == len(ends)
    degree, first, edge = into(known), 0, 0
    for hop, fanout in enumerate(fanouts):
        grown = ids[first : first + batch.num_sampled_nodes[hop]]
        got = Counter(dst for _, dst in ends[edge : edge + batch.num_sampled_edges[hop]])
        assert got == Counter({node: degree[node] if fanout < 0 else min(fanout, degree[node]) for node in grown if degree[node]})
        first, edge = first + batch.num_sampled_nodes[hop], edge + batch.num_sampled_edges[hop]
    assert edge == len(ends)
    assert sum(batch.num_sampled_nodes) == len(ids)


def test_batches_of_nodes_are_subgraphs_with_their_seeds_first_and_the_files_features(papers: Graph) -> None:
    known, (x, y) = edges(papers, "cites"), papers_of_the_file()
    seeds = torch.randperm(2708)[:700]
    seen: list[int] = []
    for batch in NodeLoader(data_of(papers), NeighborSampler(papers, [4, 3]), input_nodes=seeds, batch_size=128, shuffle=True):
        check(batch, known, [4, 3])
        assert torch.equal(seeds[batch.input_id], batch.n_id[: batch.batch_size])
        assert torch.equal(batch.x, x[batch.n_id])
        assert torch.equal(batch.y, y[batch.n_id])
        seen += batch.n_id[: batch.batch_size].tolist()
    assert sorted(seen) == sorted(seeds.tolist())


def test_all_neighbors_and_none_are_what_they_say(papers: Graph) -> None:
    known = edges(papers, "cites")
    (batch,) = NodeLoader(data_of(papers), NeighborSampler(papers, [-1, 0, 2]), input_nodes=torch.arange(50), batch_size=50)
    check(batch, known, [-1, 0, 0])  # nobody is met in the second hop, so nobody gives neighbors in the third
    assert batch.num_sampled_edges[1:] == [0, 0]


def same_in_workers(papers: Graph, context: str) -> None:
    def epoch(**more: Any) -> list[Data]:
        return list(NodeLoader(data_of(papers), NeighborSampler(papers, [5, 5], seed=7), input_nodes=torch.arange(600), batch_size=100, **more))

    alone, together = epoch(), epoch(num_workers=2, multiprocessing_context=context)
    assert len(alone) == len(together) == 6
    for one, other in zip(alone, together, strict=True):
        for name in ("n_id", "edge_index", "e_id", "x", "y", "input_id"):
            assert torch.equal(one[name], other[name]), name


def test_forked_workers_give_the_batches_that_one_process_gives(papers: Graph) -> None:
    same_in_workers(papers, "fork")


def test_spawned_workers_give_the_batches_that_one_process_gives(cluster: LocalCluster) -> None:
    with cluster.client().graph("citations").pin() as held:
        same_in_workers(held, "spawn")


def test_draws_follow_torch_or_a_seed_of_their_own(papers: Graph) -> None:
    def drawn(sampler: NeighborSampler, first: int = 0) -> list[int]:
        (batch,) = NodeLoader(data_of(papers), sampler, input_nodes=torch.arange(first, first + 300), batch_size=300)
        return batch.e_id.tolist()

    free, fixed = NeighborSampler(papers, [2, 2]), NeighborSampler(papers, [2, 2], seed=3)
    torch.manual_seed(1)
    first, second = drawn(free), drawn(free)
    torch.manual_seed(1)
    assert drawn(free) == first != second
    assert drawn(fixed) == drawn(fixed) != drawn(NeighborSampler(papers, [2, 2], seed=4))
    assert drawn(fixed) != drawn(fixed, 1)


def test_workers_without_a_seed_draw_each_for_itself_and_anew_each_epoch(papers: Graph) -> None:
    same = torch.zeros(4, dtype=torch.int64)  # the same batch four times, two of them in each worker
    degree = papers.degrees(np.arange(2708), "cites", direction="in")[:, 0]
    same += int(degree.argmax())
    loader = NodeLoader(data_of(papers), NeighborSampler(papers, [5]), input_nodes=same, batch_size=1, num_workers=2)
    drawn = [tuple(batch.e_id.tolist()) for _ in range(2) for batch in loader]
    assert len(set(drawn)) == len(drawn) == 8


def test_disjoint_trees_are_each_of_one_seed(papers: Graph) -> None:
    known = edges(papers, "cites")
    seeds = torch.tensor([5, 9, 5, 100])
    (batch,) = NodeLoader(data_of(papers), NeighborSampler(papers, [3, 3], disjoint=True), input_nodes=seeds, batch_size=4)
    assert batch.n_id[:4].tolist() == seeds.tolist()
    assert batch.batch[:4].tolist() == [0, 1, 2, 3]
    row, col = batch.edge_index
    assert torch.equal(batch.batch[row], batch.batch[col])
    assert [known[edge] for edge in batch.e_id.tolist()] == list(zip(batch.n_id[row].tolist(), batch.n_id[col].tolist(), strict=True))


def test_a_bidirectional_subgraph_has_every_edge_both_ways(papers: Graph) -> None:
    sampler = NeighborSampler(papers, [3, 3], subgraph_type="bidirectional")
    (batch,) = NodeLoader(data_of(papers), sampler, input_nodes=torch.arange(40), batch_size=40)
    ends = set(map(tuple, batch.edge_index.t().tolist()))
    assert ends
    assert {(b, a) for a, b in ends} == ends


def test_types_are_named_where_there_are_several(flights: Graph) -> None:
    known = {triple: edges(flights, ":".join(triple)) for triple in NeighborSampler(flights, [1])._view.edge_types}
    fanouts = {triple: [3, 2] for triple in known} | {SERVES: [0, 4]}
    seeds = nodes(flights, "airport")[:500]
    data = stores(flights, {"airport": ["position", "altitude"], "airline": ["weight"]})
    for batch in NodeLoader(data, NeighborSampler(flights, fanouts), input_nodes=("airport", seeds), batch_size=250):
        assert isinstance(batch, HeteroData)
        assert torch.equal(seeds[batch["airport"].input_id], batch["airport"].n_id[:250])
        assert batch["airport"].batch_size == 250
        for triple, mine in known.items():
            src, dst = batch[triple[0]].n_id, batch[triple[-1]].n_id
            row, col = batch[triple].edge_index
            assert [mine[edge] for edge in batch[triple].e_id.tolist()] == list(zip(src[row].tolist(), dst[col].tolist(), strict=True))
        degree = into(known[ROUTE])
        got = Counter(batch["airport"].n_id[batch[ROUTE].edge_index[1][: batch[ROUTE].num_sampled_edges[0]]].tolist())
        assert got == Counter({int(seed): min(3, degree[int(seed)]) for seed in batch["airport"].n_id[:250] if degree[int(seed)]})
        assert batch[SERVES].num_sampled_edges[0] == 0
        read = flights.node_features(batch["airport"].n_id.numpy(), ["position", "altitude"], "airport")
        assert np.array_equal(batch["airport"].position.numpy(), np.asarray(read["position"]))
        assert np.array_equal(batch["airport"].altitude.numpy(), np.asarray(read["altitude"]))
        assert (batch["airline"].weight == 1).all()
        assert batch["country"].n_id.unique().numel() == batch["country"].n_id.numel()


def test_neighbors_are_drawn_by_the_weights_that_are_named(flights: Graph) -> None:
    weights = {int(e): float(w) for batch in flights.scan_edges("route") for e, w in zip(batch.edge_ids, batch.weights, strict=True)}
    known = edges(flights, "route")
    hub = into(known).most_common(1)[0][0]
    mine = {edge: weights[edge] for edge, (_, dst) in known.items() if dst == hub}
    drawn: dict[str | None, float] = {}
    for named in (None, "weight"):
        sampler = NeighborSampler(flights, {ROUTE: [20000]}, replace=True, weight_attr=named, seed=5)
        (batch,) = NodeLoader(stores(flights), sampler, input_nodes=("airport", torch.tensor([hub])), batch_size=1)
        drawn[named] = np.mean([mine[edge] for edge in batch[ROUTE].e_id.tolist()])
    values = np.array(list(mine.values()))
    for named, p in ((None, np.full(len(values), 1 / len(values))), ("weight", values / values.sum())):
        mean = float(p @ values)
        spread = float(np.sqrt(p @ (values - mean) ** 2 / 20000))
        assert abs(drawn[named] - mean) < 5 * spread
    assert drawn["weight"] > drawn[None] * 1.1


@pytest.mark.parametrize("disjoint", [False, True])
def test_links_come_with_binary_negatives(papers: Graph, disjoint: bool) -> None:
    links = torch.stack([torch.tensor([a, b]) for a, b in list(edges(papers, "cites").values())[:300]], dim=1)
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
        assert len(set(src[100:].tolist())) > 80  # over 2,708 papers: uniform ones hardly meet
        assert torch.equal(batch.x, papers_of_the_file()[0][batch.n_id])
    assert sorted(seen) == list(range(300))


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
    for turn, batch in enumerate(loader):
        expected = links[:, turn * 50 : turn * 50 + 50]
        assert torch.equal(batch["airline"].n_id[batch["airline"].src_index], expected[0])
        assert torch.equal(batch["airport"].n_id[batch["airport"].dst_pos_index], expected[1])
        assert batch["airport"].dst_neg_index.shape == (50, 3)
        assert set(batch["airport"].n_id[batch["airport"].dst_neg_index].reshape(-1).tolist()) <= airports
        if disjoint:
            assert torch.equal(batch["airport"].batch[batch["airport"].dst_neg_index], torch.arange(50).view(50, 1).expand(50, 3))


def test_a_whole_edge_type_can_be_the_links(flights: Graph) -> None:
    known = edges(flights, "airline:serves:airport")
    loader = LinkLoader(stores(flights), NeighborSampler(flights, [0]), edge_label_index=SERVES, batch_size=4096)
    seen: Counter[tuple[int, ...]] = Counter()
    for batch in loader:
        row, col = batch[SERVES].edge_label_index
        seen.update(zip(batch["airline"].n_id[row].tolist(), batch["airport"].n_id[col].tolist(), strict=True))
    assert seen == Counter(known.values())


def test_negatives_are_drawn_by_weights_of_nodes_or_by_pygs_own(embedded: Client) -> None:
    embedded.create_space(
        "weighted", {"direction": "both", "nodes": {"n": {"weighted": True, "tables": {"odd": "weight - 1"}}}, "edges": {"n:to:n": {}}}
    )
    graph = embedded.graph("weighted")
    graph.upsert_nodes(np.arange(10), "n", weights=[1, 1, 1, 1, 1, 1, 1, 1, 1, 31])
    graph.upsert_edges(np.arange(10), (np.arange(10) + 1) % 10, "to")
    graph.build()
    links = torch.stack([torch.arange(10), (torch.arange(10) + 1) % 10])
    with graph.pin() as held:

        def negatives(asked: NegativeSampling, weight: str | None = None) -> list[int]:
            sampler = NeighborSampler(held, [0], negative_weight=weight, seed=1)
            (batch,) = LinkLoader(stores(held, {}), sampler, edge_label_index=(None, links), neg_sampling=asked, batch_size=10)
            return batch.n_id[batch.dst_neg_index].reshape(-1).tolist()

        uniform, by_weight = negatives(NegativeSampling("triplet", 400)), negatives(NegativeSampling("triplet", 400), "weight")
        assert all(300 < count < 500 for count in Counter(uniform).values())
        assert len(set(uniform)) == 10
        assert abs(by_weight.count(9) - 4000 * 31 / 40) < 5 * (4000 * 31 / 40 * 9 / 40) ** 0.5
        assert set(negatives(NegativeSampling("triplet", 40), "odd")) == {9}
        given = torch.tensor([0.0, 1, 0, 3, 0, 0, 0, 0, 0, 0])
        drawn = negatives(NegativeSampling("triplet", 400, dst_weight=given))
        assert set(drawn) == {1, 3}
        assert abs(drawn.count(3) - 3000) < 5 * 750**0.5
        with pytest.raises(InvalidRequest, match="dst_weight has 3 entries for 10 nodes"):
            negatives(NegativeSampling("triplet", 1, dst_weight=torch.ones(3)))


def test_a_batch_is_refused_where_a_seed_is_there_twice(papers: Graph) -> None:
    loader = NodeLoader(data_of(papers), NeighborSampler(papers, [2]), input_nodes=torch.tensor([3, 8, 3]), batch_size=3)
    with pytest.raises(InvalidRequest, match=r"seed 3 of 'paper' is no node, or twice in a batch of 3"):
        next(iter(loader))


def test_a_graph_of_no_version_is_refused(client: Client) -> None:
    graph = client.graph("citations")
    for made in (lambda: stores(graph), lambda: NeighborSampler(graph, [2])):
        with pytest.raises(InvalidRequest, match=r"hold one: with graph\.pin\(\) as held"):
            made()
    assert NeighborSampler(graph.at(1), [2])._view.version == 1


def test_ids_with_gaps_are_named_not_counted(flights: Graph) -> None:
    data = stores(flights, {"airport": ["altitude"]})
    with pytest.raises(InvalidRequest, match=r"all nodes of 'airport': ids of 'airport' are not the numbers from 0 to \d+"):
        NodeLoader(data, NeighborSampler(flights, [2]), input_nodes="airport")
    with pytest.raises(InvalidRequest, match="features of a whole type"):
        data[0]["airport", "altitude", None]
    every = nodes(flights, "airport")
    assert every.numel() == every.unique().numel() == flights.count_nodes("airport")
    loader = NodeLoader(data, NeighborSampler(flights, [2]), input_nodes=("airport", every), batch_size=2048)
    assert torch.equal(torch.cat([batch["airport"].n_id[: batch["airport"].batch_size] for batch in loader]), every)


def test_stores_give_whole_columns_and_edge_types_and_take_nothing(papers: Graph) -> None:
    features, graph = data_of(papers)
    x, y = papers_of_the_file()
    assert torch.equal(features[None, "x", None], x)
    assert torch.equal(features[None, "y", slice(10, 20)], y[10:20])
    assert features.get_tensor_size(None, "x") == (2708, WORDS)
    row, col, _ = graph.coo()
    assert Counter(zip(row.tolist(), col.tolist(), strict=True)) == Counter(edges(papers, "cites").values())
    with pytest.raises(InvalidRequest, match="read a published version"):
        features.put_tensor(x, group_name=None, attr_name="x", index=None)
    with pytest.raises(InvalidRequest, match="read a published version"):
        graph.put_edge_index((row, col), edge_type=None, layout="coo")
    with pytest.raises(NotFound, match="'paper' has no 'z' here; it has"):
        features[None, "z", None]
    with pytest.raises(InvalidRequest, match="feature 'words' of 'paper' is ragged: encode it"):
        stores(papers, {"paper": ["words"]})
    with pytest.raises(NotFound, match=r"node types \['author'\]"):
        stores(papers, {"author": ["name"]})
    assert isinstance(papers.client, asterism.Client)
