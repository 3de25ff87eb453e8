"""Epochs through the client: every node once, walk pairs, and resuming after a stop."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats
from tests.kit import cases
from tests.kit.cases_clusters import cases_cluster

import asterism
from asterism import Graph
from asterism.calls.epoch_iterators import NodeEpochs, PairEpochs
from asterism.records.samples import PairBatch

PATHS = "person2writes2paper-paper2by2person;paper2cites2paper-paper2by2person-person2writes2paper"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("passes"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


def digests(batches: list[PairBatch]) -> list[str]:
    return [cases.digest(batch) for batch in batches]


def test_nodes_at_agrees_with_scan_order(graph: Graph) -> None:
    for ntype, count in (("person", cases.PEOPLE), ("paper", cases.PAPERS)):
        scanned = np.concatenate([batch.ids for batch in graph.scan_nodes(ntype, rows=13)])
        assert graph.count_nodes(ntype) == len(scanned) == count
        assert np.array_equal(graph.nodes_at(ntype, np.arange(count)), scanned)
        assert graph.nodes_at(ntype, [5, 0, 5]).tolist() == scanned[[5, 0, 5]].tolist()
    with pytest.raises(
        asterism.InvalidRequest, match=r"places\[1\] = 90: there are 90 nodes of type 'paper'"
    ):
        graph.nodes_at("paper", [3, 90])
    with pytest.raises(asterism.InvalidRequest, match=r"places\[0\]=-1"):
        graph.nodes_at("paper", [-1])


def test_nodes_at_skips_deleted_nodes(client: asterism.Client) -> None:
    client.create_space("holes", {"parts": 3, "nodes": {"n": {}, "empty": {}}})
    graph = client.graph("holes")
    graph.upsert_nodes(np.arange(50), "n")
    graph.build()
    graph.delete_nodes([0, 7, 8, 49], "n")
    graph.build()
    scanned = np.concatenate([batch.ids for batch in graph.scan_nodes("n")])
    assert len(scanned) == 46
    assert np.array_equal(graph.nodes_at("n", np.arange(46)), scanned)
    assert graph.count_nodes("empty") == 0
    assert list(graph.node_batches("empty", 5, seed=1)) == []


def test_ranks_cover_each_node_once_per_epoch_in_new_order(graph: Graph) -> None:
    shares = [graph.node_batches("person", 32, seed=3, rank=rank, world=3) for rank in range(3)]
    orders = []
    for epoch in range(2):
        assert {share.epoch for share in shares} == {epoch}
        batches = [list(share) for share in shares]
        assert all(len(batch) <= 32 for part in batches for batch in part)
        orders.append(np.concatenate([np.concatenate(share) for share in batches]))
        assert Counter(orders[-1].tolist()) == Counter(cases.person_ids().tolist())
    assert not np.array_equal(*orders)
    assert (np.diff(orders[0][:100]) > 0).mean() < 0.8


def test_node_epochs_resume_and_reshard_to_more_ranks(graph: Graph) -> None:
    first = [graph.node_batches("person", 25, seed=5, rank=rank, world=2) for rank in range(2)]
    seen = [*itertools.islice(first[0], 3), *itertools.islice(first[1], 5)]
    states = json.loads(json.dumps([share.state_dict() for share in first]))
    resharded = [graph.node_batches("person", 40, seed=0, rank=rank, world=3) for rank in range(3)]
    for share in resharded:
        share.reshard(states)
    rest = [batch for share in resharded for batch in share]
    assert Counter(np.concatenate([*seen, *rest]).tolist()) == Counter(cases.person_ids().tolist())
    resumed = graph.node_batches("person", 25)
    resumed.load_state_dict(states[0])
    assert np.array_equal(np.concatenate(list(resumed)), np.concatenate(list(first[0])))
    with pytest.raises(
        asterism.InvalidRequest, match="of 'person' in version 1: expected the state of 'paper'"
    ):
        graph.node_batches("paper", 5).load_state_dict(states[0])


def test_pairs_match_walks_and_cover_every_start_node(graph: Graph) -> None:
    share = graph.walk_pairs(
        PATHS, 5, walks=3, window=2, batch_size=64, excluded="paper2person", seed=9
    )
    batches = list(share)
    assert share.epoch == 1
    person, paper = graph.schema.node_type_id("person"), graph.schema.node_type_id("paper")
    texts = PATHS.split(";")
    assert [batch.metapath for batch in batches] == [
        texts[0],
        texts[1],
        texts[0],
        texts[1],
        *[texts[0]] * 5,
    ]
    neighbors_by_type = {
        0: {person: graph.neighbors(cases.person_ids(), "writes")},
        1: {paper: graph.neighbors(np.arange(cases.PAPERS), "cites")},
    }
    for path_index, start, start_ids in (
        (0, person, cases.person_ids()),
        (1, paper, np.arange(cases.PAPERS)),
    ):
        path_batches = [batch for batch in batches if batch.metapath == texts[path_index]]
        observed_starts = np.concatenate(
            [np.unique(batch.walks.nodes[:, 0]) for batch in path_batches]
        )
        neighbors = neighbors_by_type[path_index][start]
        assert neighbors.weights is not None
        expected_starts = [
            node
            for i, node in enumerate(start_ids)
            if (neighbors.weights[neighbors.indptr[i] : neighbors.indptr[i + 1]] > 0).any()
        ]
        assert sorted(observed_starts.tolist()) == sorted(expected_starts)
    for batch in batches:
        cycle = (
            [person, paper, person, paper, person, paper]
            if batch.metapath == texts[0]
            else [paper, paper, person, paper, paper, person]
        )
        expected = Counter(
            (int(walk[i]), int(walk[j]), cycle[i], cycle[j])
            for walk in batch.walks.nodes
            for i in range(6)
            for j in range(6)
            if 0 < abs(i - j) <= 2
            and walk[i] >= 0
            and walk[j] >= 0
            and (cycle[i], cycle[j]) != (paper, person)
        )
        assert (
            Counter(map(tuple, np.concatenate([batch.pairs, batch.types], axis=1).tolist()))
            == expected
        )


def test_negatives_follow_weights_of_second_node_type(graph: Graph) -> None:
    papers = set(range(cases.PAPERS))
    weights = {
        int(node): weight
        for batch in graph.scan_nodes("person")
        for node, weight in zip(batch.ids, batch.weights, strict=True)
    }
    sampled: list[int] = []
    for batch in graph.walk_pairs(PATHS, 4, walks=4, window=1, negatives=5, batch_size=50, seed=2):
        assert batch.negatives is not None
        assert batch.negatives.shape == (len(batch), 5)
        is_paper = batch.types[:, 1] == 1
        assert set(batch.negatives[is_paper].reshape(-1).tolist()) <= papers
        sampled += batch.negatives[~is_paper].reshape(-1).tolist()
    heaviest = max(weights, key=weights.__getitem__)
    share = weights[heaviest] / sum(map(float, weights.values()))
    assert set(sampled) <= set(weights)
    assert stats.binomtest(sampled.count(heaviest), len(sampled), share).pvalue > 1e-4


def test_pairs_resume_byte_for_byte(graph: Graph) -> None:
    def pair_epochs() -> PairEpochs:
        return graph.walk_pairs(PATHS, 4, walks=2, window=2, negatives=1, batch_size=40, seed=6)

    uninterrupted = pair_epochs()
    expected = [digests(list(uninterrupted)), digests(list(uninterrupted))]
    interrupted = pair_epochs()
    before = digests(list(itertools.islice(interrupted, 5)))
    state = json.loads(json.dumps(interrupted.state_dict()))
    resumed = graph.walk_pairs(PATHS, 4, walks=2, window=2, negatives=1, batch_size=40, seed=0)
    resumed.load_state_dict(state)
    assert before + digests(list(resumed)) == expected[0]
    assert digests(list(resumed)) == expected[1]
    assert len(set(itertools.chain(*expected))) == 2 * len(expected[0])
    with pytest.raises(asterism.InvalidRequest, match="state with metapaths="):
        graph.walk_pairs("paper2cites2paper", 4).load_state_dict(state)


def test_resharded_ranks_walk_only_remaining_starts(graph: Graph) -> None:
    def pair_epochs(world: int) -> list[PairEpochs]:
        return [
            graph.walk_pairs(PATHS, 2, batch_size=16, seed=6, rank=rank, world=world)
            for rank in range(world)
        ]

    two, three = pair_epochs(2), pair_epochs(3)
    batches = [*itertools.islice(two[0], 4), *itertools.islice(two[1], 1)]
    states = json.loads(json.dumps([share.state_dict() for share in two]))
    for share in three:
        share.reshard(states)
    batches += [batch for share in three for batch in share]
    starts = [
        (batch.metapath, node) for batch in batches for node in batch.walks.nodes[:, 0].tolist()
    ]
    expected = [
        (batch.metapath, node)
        for batch in graph.walk_pairs(PATHS, 2, batch_size=16, seed=1)
        for node in batch.walks.nodes[:, 0].tolist()
    ]
    assert Counter(starts) == Counter(expected)


def test_pair_epochs_stay_at_their_version(client: asterism.Client) -> None:
    client.create_space("growing", {"nodes": {"n": {}}, "edges": {"n:to:n": {}}})
    graph = client.graph("growing")
    graph.upsert_nodes(np.arange(30), "n")
    graph.upsert_edges(np.arange(30), (np.arange(30) + 1) % 30, "to")
    graph.build()
    share = graph.walk_pairs("n2n", 2, batch_size=10, seed=1)
    first = next(iter(share))
    graph.upsert_nodes(np.arange(30, 60), "n")
    graph.build()
    rest = list(share)
    assert {batch.version for batch in (first, *rest)} == {1}
    assert sum(len(batch.walks) for batch in (first, *rest)) == 30
    newer = graph.walk_pairs("n2n", 2, seed=1)
    with pytest.raises(
        asterism.InvalidRequest, match="in version 1: expected the state of 'n' in version 2"
    ):
        newer.load_state_dict(share.state_dict())


@pytest.mark.parametrize("storageds", [3])
def test_a_cluster_gives_the_same_pairs_as_one_process(graph: Graph, storageds: int) -> None:
    def pair_digests(source: Graph) -> list[str]:
        return digests(
            list(
                source.walk_pairs(PATHS, 4, walks=3, window=2, negatives=2, batch_size=150, seed=4)
            )
        )

    with cases_cluster(storageds, 2, fast=False) as cluster:
        assert pair_digests(cluster.client().graph("cases")) == pair_digests(graph)


def test_invalid_arguments_are_refused(graph: Graph) -> None:
    for call, message in (
        (lambda: graph.walk_pairs("paper2cites2paper", 0), "walk_length=0"),
        (lambda: graph.walk_pairs("paper2cites2paper", 3, window=0), "window=0"),
        (lambda: graph.walk_pairs("paper2cites2paper", 3, excluded="paper2unknown"), "pair 1"),
        (lambda: graph.walk_pairs([], 3), "expected at least one metapath"),
        (lambda: graph.walk_pairs("paper2eats2paper", 3), "expected an edge type"),
        (lambda: graph.node_batches("paper", 0), "batch_size=0"),
        (lambda: graph.node_batches("paper", 1, seed=1, rank=2, world=2), "rank=2, world=2"),
        (lambda: graph.node_batches("paper", 1, rank=1, world=2), "seed=None with world=2"),
        (lambda: graph.walk_pairs("paper2cites2paper", 3, world=3), "seed=None with world=3"),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            call()


def test_state_is_bound_to_its_list_of_nodes(graph: Graph) -> None:
    def node_epochs(among: list[int] | None) -> NodeEpochs:
        return graph.node_batches("paper", 4, among=among, seed=1)

    ids = [5, 1, 9, 3, 7, 2]
    interrupted = node_epochs(ids)
    first = interrupted.next_batch()
    state = json.loads(json.dumps(interrupted.state_dict()))
    resumed = node_epochs(ids)
    resumed.load_state_dict(state)
    assert sorted([*first.tolist(), *resumed.next_batch().tolist()]) == sorted(ids)
    for other_ids in (ids[::-1], None):
        with pytest.raises(asterism.InvalidRequest, match="state of 'paper'"):
            node_epochs(other_ids).load_state_dict(state)
