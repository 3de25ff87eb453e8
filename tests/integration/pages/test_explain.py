"""Explanations of sampling calls, compared with what the calls do.

Shares follow the weights, draws the sample, routes the partitions and bytes the frames.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cases_clusters import cases_cluster
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Graph
from asterism.records.samples import Explanation
from asterism_graphkit.random import partition_choice
from asterism_proto import framing
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cases_cluster(3) as started:
        yield started


@pytest.fixture(scope="module")
def graph(cluster: LocalCluster) -> Iterator[Graph]:
    with cluster.client() as client:
        yield client.graph("cases")


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("explain"))) as client:
        yield client.graph("cases")


def hosts_by_part(explanation: Explanation) -> dict[int, str]:
    return {share.part: share.host for share in explanation.shares if share.part is not None}


def test_node_shares_follow_type_and_part_weights(graph: Graph, cluster: LocalCluster) -> None:
    explanation = graph.explain.sample_nodes(5000, seed=3)
    weights: dict[tuple[int, int], float] = {}
    for type_id, name in enumerate(("person", "paper")):
        for batch in graph.scan_nodes(name):
            weights[type_id, batch.part] = weights.get((type_id, batch.part), 0.0) + float(
                batch.weights.sum(dtype=np.float64)
            )
    total = sum(weights.values())
    assert {(share.type_id, share.part) for share in explanation.shares} == set(weights)
    sample = graph.sample_nodes(5000, seed=3)
    parts = partition_choice.part_of(sample.nodes, cases.PARTS, "mix64")
    for share in explanation.shares:
        assert share.share == pytest.approx(
            weights[share.type_id, share.part or 0] / total, rel=1e-9
        )
        assert share.expected == pytest.approx(5000 * share.share)
        assert share.drawn == np.count_nonzero(
            (sample.types == share.type_id) & (parts == share.part)
        )
    assert sum(share.drawn for share in explanation.shares) == 5000
    assert (explanation.rounds, {request.method for request in explanation.storage_requests}) == (
        1,
        {"draw_nodes"},
    )
    hosts = hosts_by_part(explanation)
    assert {request.host for request in explanation.storage_requests} == set(hosts.values())
    assert len(explanation.storage_requests) == 3
    assert {request.address for request in explanation.storage_requests} == {
        cluster[f"storaged-{i}"].address for i in range(3)
    }
    for request in explanation.storage_requests:
        on_host = np.isin(parts, [part for part, host in hosts.items() if host == request.host])
        reply = Frame(
            storaged_pb.DrawNodesReply(),
            {"ids": sample.nodes[on_host], "types": sample.types[on_host]},
        )
        assert (request.rows, request.bytes_received) == (
            np.count_nonzero(on_host),
            len(framing.encode(reply)),
        )
        assert 50 < request.bytes_sent < 300
    assert explanation.bytes == sum(
        request.bytes_sent + request.bytes_received for request in explanation.storage_requests
    )


def test_uniform_shares_follow_counts_distinct_have_no_mean(graph: Graph) -> None:
    explanation = graph.explain.sample_edges(3000, "writes", weighted=False, seed=3)
    counts = dict.fromkeys(range(cases.PARTS), 0)
    for batch in graph.scan_edges("writes"):
        counts[batch.part] += len(batch)
    assert {share.part: round(share.share * cases.WRITES, 6) for share in explanation.shares} == {
        part: n for part, n in counts.items() if n
    }
    sample = graph.sample_edges(3000, "writes", weighted=False, seed=3)
    sampled_counts = np.bincount(
        partition_choice.part_of(sample.src, cases.PARTS, "mix64"), minlength=cases.PARTS
    )
    assert {share.part: share.drawn for share in explanation.shares} == dict(
        enumerate(sampled_counts.tolist())
    )
    distinct = graph.explain.sample_nodes(300, "person", replace=False, seed=3)
    assert {share.expected for share in distinct.shares} == {None}
    assert distinct.rounds > 1
    named = graph.explain.sample_edges(100, "writes", weight="recent", seed=3)
    assert {round(share.share, 6) for share in named.shares} != {
        round(share.share, 6) for share in explanation.shares
    }


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("weighted", [True, False])
def test_neighbor_shares_follow_edge_type_weights_per_node(
    graph: Graph, direction: str, weighted: bool
) -> None:
    papers = np.concatenate([np.arange(cases.PAPERS), [-1, 99999, 3]])
    types = np.array([1] * len(papers))
    explanation = graph.explain.sample_neighbors(
        papers, None, 7, ntype=types, direction=direction, weighted=weighted, seed=5
    )
    neighbors = graph.neighbors(papers, None, ntype=types, direction=direction)
    assert neighbors.weights is not None
    weights = neighbors.weights.astype(np.float64) if weighted else np.ones(len(neighbors.nodes))
    rows = np.repeat(np.arange(len(papers)), np.diff(neighbors.indptr))
    totals = np.bincount(rows, weights, minlength=len(papers))
    probabilities = np.divide(
        weights, totals[rows], out=np.zeros_like(weights), where=totals[rows] > 0
    )
    expected = np.bincount(neighbors.types, probabilities, minlength=3) * 7
    assert [share.type_id for share in explanation.shares] == [
        int(t) for t in np.flatnonzero(expected)
    ]
    sample = graph.sample_neighbors(
        papers, None, 7, ntype=types, direction=direction, weighted=weighted, seed=5
    )
    for share in explanation.shares:
        assert share.part is None
        assert share.expected == pytest.approx(expected[share.type_id], rel=1e-9)
        assert share.share == pytest.approx(expected[share.type_id] / expected.sum(), rel=1e-9)
        assert share.drawn == np.count_nonzero(sample.types == share.type_id)
    routes = hosts_by_part(graph.explain.sample_nodes(1, seed=1))
    owners = np.array(
        [routes[int(part)] for part in partition_choice.part_of(papers, cases.PARTS, "mix64")]
    )
    assert {request.host: request.rows for request in explanation.storage_requests} == {
        str(host): int(n) for host, n in zip(*np.unique(owners, return_counts=True), strict=True)
    }


def test_fanout_takes_a_round_per_hop_and_one_for_features(graph: Graph) -> None:
    people = cases.person_ids()[:40]
    explanation = graph.explain.sample_fanout(people, ["writes", "cites", "by"], [4, 3, 2], seed=5)
    assert explanation.rounds == 3
    assert [
        sum(request.rows for request in explanation.storage_requests if request.round == hop)
        for hop in range(3)
    ] == [40, 160, 480]
    hop = graph.sample_fanout(people, ["writes", "cites", "by"], [4, 3, 2], seed=5).hops[0]
    assert [(share.drawn, share.share) for share in explanation.shares] == [
        (np.count_nonzero(hop.nodes >= 0), 1.0)
    ]
    with_features = graph.explain.sample_fanout(
        people, ["writes", "cites", "by"], [4, 3, 2], node_features=["vec"], seed=5
    )
    assert with_features.rounds == 4
    assert {request.method for request in with_features.storage_requests if request.round == 3} == {
        "read_node_features"
    }
    assert with_features.reply_bytes > explanation.reply_bytes + 4 * 3 * (160 + 480)


def test_walk_rounds_depend_on_the_number_of_hosts(graph: Graph, embedded: Graph) -> None:
    people = cases.person_ids()[:100]
    on_cluster = graph.explain.random_walk(people, ["writes", "by"], 6, seed=5)
    assert 2 <= on_cluster.rounds <= 6
    assert sum(request.rows for request in on_cluster.storage_requests if request.round == 0) == 100
    in_process = embedded.explain.random_walk(people, ["writes", "by"], 6, seed=5)
    assert (in_process.rounds, len(in_process.storage_requests)) == (1, 1)
    assert on_cluster.reply_bytes == in_process.reply_bytes
    batch = graph.explain.sample_subgraph(people, [3, 2], ntype="person", seed=5)
    assert batch.shares == ()
    assert batch.rounds >= 1
    assert batch.bytes > 0


def test_explained_sample_can_be_replayed(graph: Graph) -> None:
    explanation = graph.explain.sample_neighbors([1, 2, 3], "cites", 5)
    sample = graph.replay(explanation.token, [1, 2, 3])
    assert (sample.seed, sample.version, sample.token) == (
        explanation.seed,
        explanation.version,
        explanation.token,
    )
    assert explanation.shares[0].drawn == np.count_nonzero(sample.nodes >= 0)
    version = graph.sample_nodes(1).version
    with graph.pin() as pinned:
        assert pinned.explain.sample_nodes(3).version == version


def test_only_sampling_calls_can_be_explained(graph: Graph) -> None:
    with pytest.raises(AttributeError, match=r"explain\.neighbors: expected a sampling call"):
        graph.explain.neighbors([1], "cites")
    with pytest.raises(asterism.NotFound, match="'eats'"):
        graph.explain.sample_neighbors([1], "eats", 3)
    for method, request, message in (
        ("scan_nodes", b"", "'scan_nodes' is not a sampling call"),
        ("sample_nodes", b"\xff", "expected a request of this method"),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            graph._session.read(
                "explain", graphd_pb.ExplainRequest(space="cases", method=method, request=request)
            )
    with pytest.raises(asterism.InvalidRequest, match="different nodes were requested"):
        graph.explain.sample_nodes(10**6, replace=False)
