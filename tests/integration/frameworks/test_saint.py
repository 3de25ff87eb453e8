"""GraphSAINT: inclusion probabilities of subgraphs, and normalization coefficients.

Both are compared with counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import pytest
from scipy import stats
from tests.kit import cases

import asterism
from asterism import Graph
from asterism.saint import EdgeSampler, NodeSampler, RandomWalkSampler, Sampler

N, ALPHA = 12, 1e-5
SRC = np.array([0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 9, 9, 2, 2])
DST = np.array([1, 2, 3, 4, 0, 2, 0, 0, 5, 4, 6, 5, 8, 7, 9, 8, 7, 0, 1, 1])
"""Edges: edge 18 occurs twice, nodes 10 and 11 have none. Ids are ten times these."""
OUT, IN = np.bincount(SRC, minlength=N), np.bincount(DST, minlength=N)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(tmp_path_factory.mktemp("saint")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    edges = {"n:to:n": {"weighted": True}, "n:of:other": {}}
    client.create_space(
        "saint", {"parts": 3, "direction": "both", "nodes": {"n": {}, "other": {}}, "edges": edges}
    )
    graph = client.graph("saint")
    graph.upsert_nodes(np.arange(N) * 10, "n")
    graph.upsert_nodes([7], "other")
    # Weights that would change the results if sampling used them.
    graph.upsert_edges(SRC * 10, DST * 10, "to", weights=np.geomspace(1e-3, 1e3, len(SRC)))
    graph.build()
    return graph


def assert_distribution(samples: np.ndarray, shares: np.ndarray) -> None:
    counts = np.bincount(samples, minlength=len(shares))
    assert not counts[shares == 0].any()
    assert (
        stats.chisquare(counts[shares > 0], shares[shares > 0] / shares.sum() * len(samples)).pvalue
        > ALPHA
    )


def test_samplers_follow_their_stated_distributions(graph: Graph) -> None:
    n = 40_000
    for end, degrees in (("src", OUT), ("dst", IN)):
        assert_distribution(
            NodeSampler(graph, "to", n, end=end, seed=1)._draw_nodes(5) // 10, degrees.astype(float)
        )
    src, dst = (ends // 10 for ends in EdgeSampler(graph, "to", n, seed=1).ends(6))
    shares = np.zeros(N * N)
    np.add.at(shares, SRC * N + DST, 1 / OUT[SRC] + 1 / IN[DST])
    assert_distribution(src * N + dst, shares)
    walks = RandomWalkSampler(graph, "to", n, 1, seed=1)._draw_nodes(7).reshape(n, 2) // 10
    assert_distribution(walks[:, 0], np.ones(N))
    steps = np.zeros((N, N))
    np.add.at(steps, (SRC, DST), 1 / OUT[SRC])
    assert_distribution(walks[walks[:, 1] >= 0] @ [N, 1], steps.reshape(-1))
    assert (walks[np.isin(walks[:, 0], [10, 11]), 1] < 0).all()


def samplers(graph: Graph) -> list[Sampler]:
    return [
        NodeSampler(graph, "to", 4, seed=3),
        EdgeSampler(graph, "to", 3, seed=3),
        RandomWalkSampler(graph, "to", 2, 3, seed=3),
    ]


def test_batch_is_the_induced_subgraph_of_seed_and_number(graph: Graph) -> None:
    for sampler in samplers(graph):
        same_sampler = type(sampler)(
            graph,
            "to",
            sampler.size,
            *([3] if isinstance(sampler, RandomWalkSampler) else []),
            seed=3,
        )
        for i, batch in enumerate(islice(sampler.batches(4), 3), start=4):
            nodes = batch.nodes["n"]
            assert nodes.tolist() == sorted(set(nodes.tolist())) == same_sampler.nodes(i).tolist()
            assert cases.digest(same_sampler.batch(i)) == cases.digest(batch)
            expected = Counter(
                (int(a) * 10, int(b) * 10)
                for a, b in zip(SRC, DST, strict=True)
                if int(a) * 10 in nodes.tolist() and int(b) * 10 in nodes.tolist()
            )
            actual = zip(
                nodes[batch.row["n:to:n"]].tolist(),
                nodes[batch.col["n:to:n"]].tolist(),
                strict=True,
            )
            assert Counter(actual) == expected
        assert len({tuple(sampler.nodes(i).tolist()) for i in range(12)}) > 6
    assert (
        samplers(graph)[0].nodes(0).tolist()
        != NodeSampler(graph, "to", 4, seed=4).nodes(0).tolist()
    )


def test_subgraphs_hold_nodes_and_edges_with_their_probabilities(graph: Graph) -> None:
    """Inclusion probabilities of a node sampler: 1 - (1 - p)^m for a node.

    Those for both ends of an edge follow by inclusion and exclusion.
    """
    m, sampler = 4, NodeSampler(graph, "to", 4, seed=8)
    norms = sampler.normalize(60)
    p = OUT / OUT.sum()
    node, both = (
        1 - (1 - p) ** m,
        1 - (1 - p[SRC]) ** m - (1 - p[DST]) ** m + (1 - p[SRC] - p[DST]) ** m,
    )
    ends = {
        int(e): (int(a) // 10, int(b) // 10)
        for batch in graph.scan_edges("to")
        for e, a, b in zip(batch.edge_ids, batch.src, batch.dst, strict=True)
    }
    expected = {(int(a), int(b)): float(share) for a, b, share in zip(SRC, DST, both, strict=True)}
    for v in range(N):
        assert stats.binomtest(int(norms.node_counts[v]), norms.batches, node[v]).pvalue > ALPHA
    for e, times in zip(norms.edges.tolist(), norms.edge_counts.tolist(), strict=True):
        assert stats.binomtest(times, norms.batches, expected[ends[e]]).pvalue > ALPHA
    assert norms.node_counts.sum() >= 60 * N


def test_norms_count_batches_and_extend_earlier_norms(graph: Graph) -> None:
    for sampler in samplers(graph):
        norms = sampler.normalize(5)
        batches = [sampler._induced(sampler._nodes(1, i)) for i in range(norms.batches)]
        nodes, edges = (
            Counter(v for one in batches for v in one.nodes["n"].tolist()),
            Counter(e for one in batches for e in (one.edge_ids or {})["n:to:n"].tolist()),
        )
        assert sum(nodes.values()) >= 5 * N > sum(nodes.values()) - len(batches[-1].nodes["n"])
        to = {
            int(e): int(b)
            for batch in graph.scan_edges("to")
            for e, b in zip(batch.edge_ids, batch.dst, strict=True)
        }
        assert norms.node_norm.tolist() == [
            np.float32(norms.batches / (nodes[v] or 0.1) / N) for v in norms.nodes.tolist()
        ]
        expected = [
            0.1
            if not edges[e] and not nodes[to[e]]
            else min(nodes[to[e]] / edges[e], 1e4)
            if edges[e]
            else 1e4
            for e in norms.edges.tolist()
        ]
        assert np.allclose(norms.edge_norm, expected, rtol=1e-6)
        batch = sampler.batch(0)
        node_norm, edge_norm = norms.of(batch)
        assert node_norm.tolist() == norms.node_norm[batch.nodes["n"] // 10].tolist()
        positions = {e: position for position, e in enumerate(norms.edges.tolist())}
        assert edge_norm.tolist() == [
            norms.edge_norm[positions[e]] for e in (batch.edge_ids or {})["n:to:n"].tolist()
        ]
        earlier = sampler.normalize(2)
        digest = cases.digest(earlier)
        assert cases.digest(sampler.normalize(5, known=earlier)) == cases.digest(norms)
        assert cases.digest(earlier) == digest
        assert sampler.normalize(1, to="src").ends.tolist() != norms.ends.tolist()


def test_a_sampler_stays_at_the_version_it_began_with(client: asterism.Client) -> None:
    client.create_space(
        "grows", {"parts": 2, "direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": {}}}
    )
    graph = client.graph("grows")
    graph.upsert_nodes([0, 1, 2], "n")
    graph.upsert_edges([0, 1], [1, 0], "to")
    graph.build()
    sampler = NodeSampler(graph, "to", 5)
    norms = sampler.normalize(2)
    graph.upsert_edges([2] * 50, [2] * 50, "to")
    graph.build()
    assert sampler.batch(1).version == norms.version == 1
    assert sampler.nodes(1).max() < 2
    with pytest.raises(asterism.InvalidRequest, match="known of version 1: expected 2"):
        NodeSampler(graph, "to", 5).normalize(3, known=norms)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda g: NodeSampler(g, "of", 3),
            "etype='n:of:other': expected an edge type from a node type to itself",
        ),
        (lambda g: NodeSampler(g, "to", 0), "size=0"),
        (lambda g: NodeSampler(g, "to", 3, end="both"), "end='both'"),
        (lambda g: RandomWalkSampler(g, "to", 3, -1), "length=-1"),
        (lambda g: NodeSampler(g, "to", 3).normalize(1, to="it"), "to='it'"),
        (lambda g: NodeSampler(g, "to", 3).normalize(-1), "coverage=-1"),
        (lambda g: NodeSampler(g, "to", 3).batch(-1), "i=-1"),
    ],
)
def test_invalid_samplers_are_refused_with_their_value(
    graph: Graph, make: Callable[[Graph], object], said: str
) -> None:
    with pytest.raises(asterism.InvalidRequest, match=said):
        make(graph)


def test_edge_sampler_needs_both_directions_and_edges(client: asterism.Client) -> None:
    client.create_space(
        "oneway", {"parts": 2, "direction": "out", "nodes": {"n": {}}, "edges": {"n:to:n": {}}}
    )
    client.create_space(
        "bare", {"parts": 2, "direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": {}}}
    )
    for name in ("oneway", "bare"):
        client.graph(name).upsert_nodes([1, 2], "n")
        client.graph(name).build()
    with pytest.raises(asterism.InvalidRequest, match="direction: both"):
        EdgeSampler(client.graph("oneway"), "to", 3)
    with pytest.raises(asterism.InvalidRequest, match="size=3: found 0 edges in 64 rounds"):
        EdgeSampler(client.graph("bare"), "to", 3).nodes(0)
