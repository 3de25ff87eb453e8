"""Distributions of samples from five storaged processes, started once.

Each statistic is a chi-square test of exact probabilities, which are enumerated here, with fixed
seeds and significance level `ALPHA`. There are about 130 statistics, so a correct sampler would
fail with one set of seeds in 10^4. A sampler that takes one outcome in 3 % of its draws too many is
rejected: `test_a_bias_of_three_percent_is_rejected` draws from such distributions with the sizes of
these tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

from asterism import Graph

ALPHA = 1e-6
NODES, PARTS, STORAGEDS = 24, 10, 5
DRAWS = 100_000
"""Draws of nodes, of edges."""
ROW_DRAWS = 100_000
"""Neighbors of each node, and negatives of each."""
PAIRS = 40_000
"""Samples of two neighbors of each node, without replacement."""
WALKS = 40_000
"""Walks from each start."""
STARTS = (0, 7, 13)
STEPS = 3
P, Q = 0.25, 3.0

Outcome = tuple[int, ...]
Distribution = dict[Outcome, float]
"""Probability of each outcome."""


@cache
def node_weights() -> NDArray[np.float32]:
    return (np.arange(NODES) % 5).astype(np.float32)  # every fifth node has weight 0


@cache
def edges() -> dict[int, tuple[tuple[int, float], ...]]:
    """Return the destinations and weights of each node's edges, by edge id in order of sources."""
    generator = np.random.default_rng(7)
    weights = (0.5, 1.0, 2.0, 3.0, 0.0)
    return {
        node: tuple(
            (int(target), weights[(node + i) % len(weights)])
            for i, target in enumerate(generator.choice(NODES, 4 + node % 3, replace=False))
        )
        for node in range(NODES)
    }


def _columns() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    rows = [(node, target, weight) for node, some in edges().items() for target, weight in some]
    src, dst, weights = zip(*rows, strict=True)
    return np.array(src), np.array(dst), np.array(weights, np.float32)


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with LocalCluster(storageds=STORAGEDS) as cluster:
        client = cluster.client()
        client.create_space(
            "five",
            {
                "parts": PARTS,
                "nodes": {"n": {"weighted": True}},
                "edges": {"n:e:n": {"weighted": True}},
            },
        )
        opened = client.graph("five")
        opened.upsert_nodes(np.arange(NODES), "n", weights=node_weights())
        src, dst, weights = _columns()
        opened.upsert_edges(src, dst, "e", weights=weights)
        opened.build(timeout_s=HANG_S)
        yield opened


def p_value(counts: NDArray[Any], expected: NDArray[np.float64]) -> float:
    """Return the p-value of a chi-square test; cells of less than 5 expected are merged."""
    common = expected >= 5
    cells, means = [*counts[common]], [*expected[common]]
    if expected[~common].sum() > 0:
        cells, means = [*cells, counts[~common].sum()], [*means, expected[~common].sum()]
    statistic = sum((cell - mean) ** 2 / mean for cell, mean in zip(cells, means, strict=True))
    return float(chi2.sf(statistic, max(len(cells) - 1, 1)))


def assert_follows(rows: NDArray[np.int64], distribution: Distribution, label: str) -> None:
    """Assert that outcomes, of numbers below `NODES` or of one number, have a distribution."""
    columns = rows.reshape(len(rows), -1)
    assert columns.min() >= 0, f"{label}: a row without an outcome"
    keys = columns @ NODES ** np.arange(columns.shape[1])[::-1]
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    found = columns[first]
    observed = dict(zip(map(tuple, found.tolist()), counts.tolist(), strict=True))
    possible = {outcome for outcome, p in distribution.items() if p > 0}
    assert set(observed) <= possible, f"{label}: {sorted(set(observed) - possible)[:3]}"
    outcomes = sorted(possible)
    expected = np.array([distribution[outcome] for outcome in outcomes]) * len(rows)
    p = p_value(np.array([observed.get(outcome, 0) for outcome in outcomes]), expected)
    assert p >= ALPHA, f"{label}: p = {p:.2g} in {len(rows)} draws"


def shares(weights: Mapping[int, float]) -> Distribution:
    total = sum(weights.values())
    return {(outcome,): weight / total for outcome, weight in weights.items() if weight > 0}


def node_shares() -> Distribution:
    return shares(dict(enumerate(node_weights().tolist())))


def edge_shares() -> Distribution:
    return shares(dict(enumerate(_columns()[2].tolist())))


def neighbor_shares(node: int) -> Distribution:
    return shares(dict(edges()[node]))


def successive_pairs(node: int) -> Distribution:
    """Return the probability of every two neighbors that are drawn one after the other."""
    weights = {target: weight for target, weight in edges()[node] if weight > 0}
    total = sum(weights.values())
    return {
        (first, second): weights[first] / total * weights[second] / (total - weights[first])
        for first in weights
        for second in weights
        if first != second
    }


def negative_shares(node: int) -> Distribution:
    neighbors = {target for target, _ in edges()[node]}
    weights = {
        other: float(weight)
        for other, weight in enumerate(node_weights().tolist())
        if other not in neighbors
    }
    return shares(weights)


def walk_shares(start: int, bias: Callable[[int, int], float]) -> Distribution:
    """Return the probability of every path; ``bias`` is that of (previous node, next node)."""
    paths: Distribution = {(start,): 1.0}
    for step in range(STEPS):
        longer: Distribution = {}
        for path, p in paths.items():
            weights = {
                target: weight * (bias(path[-2], target) if step else 1.0)
                for target, weight in edges()[path[-1]]
                if weight > 0
            }
            for target, weight in weights.items():
                longer[(*path, target)] = p * weight / sum(weights.values())
        paths = longer
    return paths


def node2vec_bias(previous: int, target: int) -> float:
    if target == previous:
        return 1 / P
    return 1.0 if any(target == other for other, _ in edges()[previous]) else 1 / Q


def distributions() -> list[tuple[str, Distribution, int]]:
    """Return the name, the distribution and the number of draws of each statistic."""
    return [
        ("nodes", node_shares(), DRAWS),
        ("edges", edge_shares(), DRAWS),
        *((f"neighbors of {node}", neighbor_shares(node), ROW_DRAWS) for node in range(NODES)),
        *((f"pairs of {node}", successive_pairs(node), PAIRS) for node in range(NODES)),
        *((f"negatives of {node}", negative_shares(node), ROW_DRAWS) for node in range(NODES)),
        *((f"walks from {node}", walk_shares(node, lambda *_: 1.0), WALKS) for node in STARTS),
        *((f"walks by p, q of {node}", walk_shares(node, node2vec_bias), WALKS) for node in STARTS),
    ]


def test_nodes_and_edges_follow_their_weights(graph: Graph) -> None:
    nodes = graph.sample_nodes(DRAWS, "n", seed=1).nodes
    assert_follows(nodes, node_shares(), "nodes")
    uniform = graph.sample_nodes(DRAWS, "n", weighted=False, seed=2).nodes
    assert_follows(uniform, shares(dict.fromkeys(range(NODES), 1.0)), "nodes uniformly")
    sample = graph.sample_edges(DRAWS, "e", seed=3)
    src, dst, weights = _columns()
    np.testing.assert_array_equal(sample.src, src[sample.edge_ids])
    np.testing.assert_array_equal(sample.dst, dst[sample.edge_ids])
    np.testing.assert_array_equal(sample.weights, weights[sample.edge_ids])
    assert_follows(sample.edge_ids, edge_shares(), "edges")
    every = shares(dict.fromkeys(range(len(src)), 1.0))
    uniform = graph.sample_edges(DRAWS, "e", weighted=False, seed=4).edge_ids
    assert_follows(uniform, every, "edges uniformly")


def test_neighbors_follow_the_weights_of_their_edges(graph: Graph) -> None:
    nodes = np.arange(NODES)
    sample = graph.sample_neighbors(nodes, "e", ROW_DRAWS, weights=False, seed=5).nodes
    pairs = graph.sample_neighbors(np.tile(nodes, PAIRS), "e", 2, replace=False, seed=6).nodes
    for node in range(NODES):
        assert_follows(sample[node], neighbor_shares(node), f"neighbors of {node}")
        assert_follows(pairs[node::NODES], successive_pairs(node), f"pairs of {node}")


def test_negatives_follow_the_weights_of_other_nodes(graph: Graph) -> None:
    nodes = np.arange(NODES)
    sample = graph.sample_negatives(nodes, ROW_DRAWS, "n", exclude_edges="e", seed=7).nodes
    for node in range(NODES):
        assert_follows(sample[node], negative_shares(node), f"negatives of {node}")


@pytest.mark.parametrize("biased", [False, True], ids=["DeepWalk", "node2vec"])
def test_walks_follow_the_probability_of_every_path(graph: Graph, biased: bool) -> None:
    starts = np.tile(STARTS, WALKS)
    options = {"p": P, "q": Q} if biased else {}
    paths = graph.random_walk(starts, ["e"], STEPS, seed=8, **options).nodes
    bias = node2vec_bias if biased else lambda *_: 1.0
    for row, start in enumerate(STARTS):
        assert_follows(paths[row :: len(STARTS)], walk_shares(start, bias), f"walks from {start}")


def test_a_bias_of_three_percent_is_rejected() -> None:
    generator = np.random.default_rng(9)
    for label, distribution, draws in distributions():
        honest = np.array(list(distribution.values()))
        assert p_value(generator.multinomial(draws, honest), honest * draws) >= ALPHA, label
        for favored in (int(honest.argmax()), int(honest.argmin())):
            biased = 0.97 * honest
            biased[favored] += 0.03
            assert p_value(generator.multinomial(draws, biased), honest * draws) < ALPHA, label
