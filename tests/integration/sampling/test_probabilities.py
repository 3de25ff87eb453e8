"""Returned sampling probabilities, compared with exact fractions of the written weights."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import asterism
from asterism import Graph
from asterism.records.samples import NeighborSample

ALPHA = 1e-6
"""Probability that a test of counts or means fails on correct code."""
SIGMAS = 4.9
"""Allowed deviation of a mean at this probability, in standard errors."""
PRECISION = 1e-14
"""Largest relative error of a probability."""

USERS = {7_000_000_019: 90.0, 3: 3.0, 50: 2.0, 11: 1.0, 12: 0.5, 13: 0.0}
ITEMS = {0: 4.0, 2: 1.0, 3: 1e-3}
"""Item weights by id; item 1 was deleted and leaves a gap."""
BUYS = [
    (3, 0, 5.0),
    (3, 0, 2.0),
    (3, 2, 1.0),
    (3, 3, 0.0),
    (50, 0, 1e9),
    (50, 2, 0.25),
    (50, 3, 0.5),
    (11, 2, 3.0),
    (12, 0, 0.0),
    (12, 3, 0.0),
]
"""(user, item, weight) by edge id.

User 3 has two edges to item 0, user 11 has one edge, user 12 only zero weights, user 13 none.
"""
SEES = [(3, 3), (50, 0), (50, 2), (50, 3)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    schema = {
        "parts": 3,
        "direction": "both",
        "nodes": {"user": {"weighted": True}, "item": {"weighted": True}},
        "edges": {"user:buys:item": {"weighted": True}, "user:sees:item": {}},
    }
    with asterism.open(tmp_path_factory.mktemp("probabilities")) as client:
        client.create_space("shop", schema)
        shop = client.graph("shop")
        shop.upsert_nodes(list(USERS), "user", weights=list(USERS.values()))
        shop.upsert_nodes([0, 1, 2, 3], "item", weights=[4.0, 8.0, 1.0, 1e-3])
        shop.delete_nodes([1], "item")
        src, dst, weights = zip(*BUYS, strict=True)
        shop.upsert_edges(src, dst, "buys", weights=weights)
        shop.upsert_edges(*zip(*SEES, strict=True), "sees")
        shop.build()
        yield shop


def conditional_probabilities(
    weights: Mapping[object, float], order: Sequence[object]
) -> list[Fraction]:
    """Return the probability of each of successive draws, given the draws before it."""
    remaining, probabilities = (
        sum((Fraction(np.float32(w).item()) for w in weights.values()), Fraction(0)),
        [],
    )
    for outcome in order:
        weight = Fraction(np.float32(weights[outcome]).item())
        probabilities.append(weight / remaining)
        remaining -= weight
    return probabilities


def assert_close(actual: np.ndarray, expected: Sequence[Fraction]) -> None:
    assert actual.dtype == np.float64
    assert len(actual) == len(expected)
    assert all(
        abs(Fraction(p) - q) <= q * Fraction(PRECISION)
        for p, q in zip(actual.tolist(), expected, strict=True)
    ), (actual, expected)


def node_weights(*types: Mapping[int, float], weighted: bool = True) -> dict[object, float]:
    return {
        (t, i): w if weighted else 1.0 for t, nodes in enumerate(types) for i, w in nodes.items()
    }


@pytest.mark.parametrize("weighted", [True, False])
def test_node_probabilities_are_conditional_on_earlier_draws(graph: Graph, weighted: bool) -> None:
    weights = node_weights(USERS, ITEMS, weighted=weighted)
    positive_count = sum(w > 0 for w in weights.values())
    for seed in range(100):
        sample = graph.sample_nodes(5, weighted=weighted, probabilities=True, seed=seed)
        rows = list(zip(sample.types.tolist(), sample.nodes.tolist(), strict=True))
        assert sample.probabilities is not None
        assert_close(
            sample.probabilities, [conditional_probabilities(weights, [row])[0] for row in rows]
        )
        for n in (1, 3, positive_count):
            distinct = graph.sample_nodes(
                n, weighted=weighted, replace=False, probabilities=True, seed=seed
            )
            rows = list(zip(distinct.types.tolist(), distinct.nodes.tolist(), strict=True))
            assert distinct.probabilities is not None
            assert_close(distinct.probabilities, conditional_probabilities(weights, rows))
        assert distinct.probabilities[-1] == 1.0


def test_probability_products_match_order_frequencies(graph: Graph) -> None:
    weights = node_weights(USERS)
    trials, order_counts, products = 3000, Counter[tuple[int, ...]](), {}
    for seed in range(trials):
        sample = graph.sample_nodes(3, "user", replace=False, probabilities=True, seed=seed)
        assert sample.probabilities is not None
        order = tuple(sample.nodes.tolist())
        order_counts[order] += 1
        products[order] = float(sample.probabilities.prod())
    drawable = [i for i, w in USERS.items() if w > 0]
    expected = {
        order: float(math.prod(conditional_probabilities(weights, [(0, i) for i in order])))
        for order in itertools.permutations(drawable, 3)
    }
    assert math.isclose(sum(expected.values()), 1.0, rel_tol=1e-12)
    assert all(math.isclose(p, expected[order], rel_tol=1e-13) for order, p in products.items())
    common = [order for order, p in expected.items() if p * trials >= 5]
    assert len(common) >= 10
    remainder = 1 - sum(expected[order] for order in common)
    counts = [
        *(order_counts[order] for order in common),
        trials - sum(order_counts[order] for order in common),
    ]
    assert (
        chisquare(
            counts, np.array([*(expected[order] for order in common), remainder]) * trials
        ).pvalue
        > ALPHA
    )


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("replace", [True, False])
def test_parallel_edges_have_their_own_probabilities(
    graph: Graph, weighted: bool, replace: bool
) -> None:
    weights: dict[object, float] = {
        (0, e): w if weighted else 1.0 for e, (_, _, w) in enumerate(BUYS)
    } | {(1, e): 1.0 for e in range(len(SEES))}
    for seed in range(30):
        sample = graph.sample_edges(
            7, weighted=weighted, replace=replace, probabilities=True, seed=seed
        )
        rows = list(zip(sample.types.tolist(), sample.edge_ids.tolist(), strict=True))
        assert sample.probabilities is not None
        assert_close(
            sample.probabilities,
            [conditional_probabilities(weights, [row])[0] for row in rows]
            if replace
            else conditional_probabilities(weights, rows),
        )


def edge_weights(node: int, types: Sequence[str], *, weighted: bool) -> dict[object, float]:
    """Return the weights of a user's edges by (edge type, edge id)."""
    out: dict[object, float] = {}
    if "buys" in types:
        out |= {
            (0, e): w if weighted else 1.0 for e, (user, _, w) in enumerate(BUYS) if user == node
        }
    if "sees" in types:
        out |= {(1, e): 1.0 for e, (user, _) in enumerate(SEES) if user == node}
    return out


@pytest.mark.parametrize("types", [["buys"], ["sees"], ["buys", "sees"]])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("replace", [True, False])
def test_neighbor_probabilities_are_zero_where_padded(
    graph: Graph, types: list[str], weighted: bool, replace: bool
) -> None:
    users = [3, 50, 11, 12, 13, -1, 999, 3] * 20
    for n in (1, 2, 3, 6, 9):
        arguments = {"weighted": weighted, "replace": replace, "edge_ids": True, "seed": n}
        # The common arguments are a plain dict.
        plain = graph.sample_neighbors(users, types, n, **arguments)  # type: ignore[arg-type]
        sample: NeighborSample = graph.sample_neighbors(
            users, types, n, probabilities=True, **arguments
        )  # type: ignore[arg-type]
        assert plain.probabilities is None
        assert np.array_equal(plain.nodes, sample.nodes)
        assert sample.probabilities is not None
        assert sample.edge_ids is not None
        assert sample.probabilities.shape == (len(users), n)
        assert (sample.probabilities[~sample.mask] == 0).all()
        for row, user in enumerate(users):
            weights = edge_weights(user, types, weighted=weighted)
            edges = list(
                zip(sample.types[row].tolist(), sample.edge_ids[row].tolist(), strict=True)
            )[: int(sample.mask[row].sum())]
            is_full_row = not replace and len(weights) <= n
            single_draws = [conditional_probabilities(weights, [edge])[0] for edge in edges]
            assert_close(
                sample.probabilities[row, : len(edges)],
                [Fraction(1)] * len(edges)
                if is_full_row
                else single_draws
                if replace
                else conditional_probabilities(weights, edges),
            )


def test_fanout_probabilities_are_per_step_or_zero(graph: Graph) -> None:
    items = [0, 2, 3, -1]
    fanout = graph.sample_fanout(
        items, [["buys"]], [4], direction="in", edge_ids=True, probabilities=True, seed=5
    )
    neighbors = graph.sample_neighbors(
        items, ["buys"], 4, ntype="item", direction="in", probabilities=True, seed=5
    )
    assert fanout[0].probabilities is not None
    assert neighbors.probabilities is not None
    assert np.array_equal(fanout[0].probabilities.reshape(4, 4), neighbors.probabilities)
    assert not fanout[0].probabilities[12:].any()
    assert (
        graph.sample_fanout(items, [["buys"]], [4], direction="in", seed=5)[0].probabilities is None
    )
    empty = graph.sample_neighbors([], "buys", 3, probabilities=True)
    assert empty.probabilities is not None
    assert empty.probabilities.shape == (0, 3)


def assert_mean(estimates: np.ndarray, expected: float) -> None:
    error = abs(estimates.mean() - expected)
    assert error <= SIGMAS * estimates.std(ddof=1) / math.sqrt(estimates.size), (
        estimates.mean(),
        expected,
    )


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_negative_probabilities_account_for_exclusions(
    graph: Graph, weighted: bool, shared: bool
) -> None:
    rows = [
        [],
        [3, 3, 777],
        [7_000_000_019],
        [7_000_000_019, 3, 50, 11],
        list(USERS),
    ]  # the last two leave little and no weight
    if shared:
        rows = [rows[2], [3], []]
    indptr = np.cumsum([0, *map(len, rows)])
    pairs = np.stack([np.arange(len(rows)), np.full(len(rows), 50)], axis=1)
    arguments = {
        "weighted": weighted,
        "shared": shared,
        "exclude": (indptr, np.concatenate([np.array(row, np.int64) for row in rows])),
        "seed": 11,
    }
    # The arguments are a dict of mixed types.
    sample = graph.sample_negatives(pairs, 60, "user", probabilities=True, **arguments)  # type: ignore[arg-type]
    assert np.array_equal(
        sample.nodes, graph.sample_negatives(pairs, 60, "user", **arguments).nodes
    )  # type: ignore[arg-type]  # same dict
    assert sample.probabilities is not None
    for row, excluded in enumerate([[i for some in rows for i in some]] if shared else rows):
        remaining = {
            i: w if weighted else 1.0
            for i, w in USERS.items()
            if i not in [*excluded, 50] and (w or not weighted)
        }
        if not remaining:
            assert (sample.nodes[row] == -1).all()
            assert not sample.probabilities[row].any()
            continue
        assert set(sample.nodes[row].tolist()) <= set(remaining)
        assert_close(
            sample.probabilities[row],
            [
                conditional_probabilities(remaining, [node])[0]
                for node in sample.nodes[row].tolist()
            ],
        )
    samples: list[Any] = [
        graph.sample_nodes(60 * len(rows), weighted=weighted, probabilities=True, seed=11),
        graph.sample_negatives(pairs[:, 0], 60, weighted=weighted, probabilities=True, seed=11),
    ]
    drawn, negative = (
        list(
            zip(
                either.types.reshape(-1).tolist(),
                either.nodes.reshape(-1).tolist(),
                either.probabilities.reshape(-1).tolist(),
                strict=True,
            )
        )
        for either in samples
    )
    probabilities = {(t, node): p for t, node, p in drawn}
    known = [(t, node, p) for t, node, p in negative if (t, node) in probabilities]
    assert len(known) > len(negative) / 2
    assert known == [(t, node, probabilities[t, node]) for t, node, _ in known]


def test_inverse_probability_estimates_are_unbiased(graph: Graph) -> None:
    """Estimate totals from sampled values and their probabilities.

    With replacement the estimator is the mean of y / p. Without replacement it is Raj's: the sum of
    the earlier values plus y / p. Whole rows begin with probability 1.
    """
    values = dict(zip(USERS, [10.0, 7.0, 5.0, 3.0, 1.0, 8.0], strict=True))
    nodes = graph.sample_nodes(40_000, "user", probabilities=True, seed=1)
    assert nodes.probabilities is not None
    assert_mean(
        np.array([values[i] for i in nodes.nodes.tolist()]) / nodes.probabilities,
        sum(values[i] for i, w in USERS.items() if w > 0),
    )
    of_edge = np.array(
        [
            [10.0, 7.0, 5.0, 3.0, 1.0, 2.0, 8.0, 4.0, 6.0, 9.0],
            [20.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0],
        ]
    )
    n = 20_000
    neighbors = graph.sample_neighbors(
        np.repeat([3, 11], n),
        ["buys", "sees"],
        2,
        replace=False,
        edge_ids=True,
        probabilities=True,
        seed=2,
    )
    assert neighbors.edge_ids is not None
    assert neighbors.probabilities is not None
    y = np.where(neighbors.mask, of_edge[neighbors.types, neighbors.edge_ids], 0.0)
    sampled, full_rows = neighbors.probabilities[:n], neighbors.probabilities[n:]
    assert (full_rows == [1.0, 0.0]).all()
    assert (y[n:].sum(axis=1) == 4.0).all()
    assert (sampled < 1).all()
    for estimates in (y[:n, 0] / sampled[:, 0], y[:n, 0] + y[:n, 1] / sampled[:, 1]):
        assert_mean(estimates, 10.0 + 7.0 + 5.0 + 20.0)
