"""Checks of distinct neighbors with parallel edges.

A neighbor is sampled by the total weight of its edges, and one of them by its own weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import require, require_counts
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.schema import EdgeType, NodeType, Schema
from storaged import sampling

STARS: Sequence[tuple[tuple[int, ...], tuple[float, ...], int]] = (
    ((0, 0, 1, 2), (1.0, 2.0, 3.0, 4.0), 2),
    ((0, 0, 1, 2), (0.5, 0.45, 0.03, 0.02), 3),
    ((0, 1, 1, 2), (0.96, 0.01, 0.02, 0.01), 2),
    ((0, 1, 1, 1, 2, 2), (5.0, 1.0, 1.0, 2.0, 4.0, 0.0), 2),
    ((0, 0, 0, 1), (1.0, 1.0, 1.0, 1.0), 3),
    ((0, 1, 1, 2), (0.0, 1.0, 0.0, 2.0), 3),
    ((0, 1, 2, 3, 4), (1.0, 1.0, 1.0, 1.0, 1.0), 2),
)
"""Neighbors and weights of edges, by edge id, and the number of neighbors sampled."""


UNIONS: Sequence[tuple[tuple[tuple[str, tuple[int, ...], tuple[float, ...]], ...], int]] = (
    ((("n", (0, 1, 1), (2.0, 1.0, 3.0)), ("n", (1, 2), (4.0, 1.0))), 2),
    ((("n", (0, 1), (1.0, 2.0)), ("m", (0, 1), (3.0, 4.0))), 2),
    ((("m", (0, 0, 2), (0.7, 0.0, 0.1)), ("n", (0, 2), (0.1, 0.5)), ("m", (0, 1), (0.2, 0.0))), 3),
)
"""Neighbor type, neighbors and weights of each edge type; number of neighbors sampled."""


@cache
def _star(neighbors: tuple[int, ...], weights: tuple[float, ...]) -> sampling.LocalVersion:
    types = (EdgeType(src_type="n", relation="to", dst_type="n", weighted=True),)
    edges = {
        "n:to:n": Edges(
            src=np.zeros(len(neighbors), np.int64),
            dst=np.array(neighbors),
            weights=np.array(weights, np.float32),
        )
    }
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=1),
        {"n": Nodes(ids=np.arange(max(neighbors) + 1))},
        edges,
    )


def _sample_star(
    neighbors: tuple[int, ...],
    weights: tuple[float, ...],
    seed: int,
    positions: int,
    count: int,
    uniform: bool,
) -> NDArray[np.int64]:
    """Return edge ids [positions, count] sampled from node 0."""
    samples = sampling.sample_neighbors(
        _star(neighbors, weights),
        edge_types=[0],
        node_type=0,
        ids=np.zeros(positions, np.int64),
        positions=np.arange(positions),
        count=count,
        replace=False,
        uniform=uniform,
        direction=1,
        seed=seed,
        hop=0,
        want_weights=False,
        want_edge_ids=True,
        distinct_neighbors=True,
    )
    assert samples.eids is not None
    ends = np.array([*neighbors, -1])
    require(
        bool((samples.ids == ends[samples.eids]).all()), "an edge is given with another's neighbor"
    )
    return samples.eids


def outcome_probabilities(
    neighbors: Sequence[object], weights: Sequence[float], count: int
) -> dict[tuple[int, ...], float]:
    """Return the probability of every outcome.

    Each edge is drawn by its weight among those to neighbors that were not drawn yet.
    """
    probabilities: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(count):
        extended: dict[tuple[int, ...], float] = {}
        for chosen, p in probabilities.items():
            drawn_neighbors = {neighbors[edge] for edge in chosen if edge >= 0}
            remaining = [
                edge
                for edge in range(len(neighbors))
                if neighbors[edge] not in drawn_neighbors and weights[edge] > 0
            ]
            total = sum(weights[edge] for edge in remaining)
            for edge in remaining:
                extended[(*chosen, edge)] = p * weights[edge] / total
            if not remaining:
                extended[(*chosen, -1)] = p
        probabilities = extended
    return probabilities


def different_neighbors_are_successive_draws(scale: float) -> None:
    """Every ordered outcome has its probability.

    This includes parallel edges, small remaining weights and rows that are exhausted.
    """
    n = int(max(800, 12_000 * scale))
    for number, (neighbors, weights, count) in enumerate(STARS):
        for uniform in (False, True):
            eids = _sample_star(neighbors, weights, 41 + number, n, count, uniform)
            expected = outcome_probabilities(
                neighbors, [1.0] * len(neighbors) if uniform else weights, count
            )
            observed = Counter(map(tuple, eids.tolist()))
            label = (
                f"{count} different neighbors of {neighbors} by {'edges' if uniform else weights}"
            )
            require(
                set(observed) <= set(expected),
                f"{label}: {list(set(observed) - set(expected))[:1]} is impossible",
            )
            keys = sorted(expected)
            require_counts(
                [observed[key] for key in keys], [expected[key] * n for key in keys], label
            )


def fewer_distinct_neighbors_are_a_prefix(scale: float) -> None:
    """The first m of n distinct neighbors equal a request for m."""
    del scale
    for neighbors, weights, _ in STARS:
        for uniform in (False, True):
            most_eids = _sample_star(neighbors, weights, 51, 60, 6, uniform)
            for count in (1, 2, 4):
                fewer_eids = _sample_star(neighbors, weights, 51, 60, count, uniform)
                require(
                    bool((fewer_eids == most_eids[:, :count]).all()),
                    f"{count} different neighbors of {neighbors} are not the first of 6",
                )


@cache
def _union_star(
    stars: tuple[tuple[str, tuple[int, ...], tuple[float, ...]], ...],
) -> sampling.LocalVersion:
    types = tuple(
        EdgeType(src_type="n", relation=f"e{t}", dst_type=end, weighted=True)
        for t, (end, _, _) in enumerate(stars)
    )
    edges = {
        edge.name: Edges(
            src=np.zeros(len(neighbors), np.int64),
            dst=np.array(neighbors),
            weights=np.array(weights, np.float32),
        )
        for edge, (_, neighbors, weights) in zip(types, stars, strict=True)
    }
    nodes = {"n": Nodes(ids=np.arange(3)), "m": Nodes(ids=np.arange(3))}
    return version_of(
        Schema(node_types=(NodeType(name="n"), NodeType(name="m")), edge_types=types, parts=1),
        nodes,
        edges,
    )


def _sample_union(
    stars: tuple[tuple[str, tuple[int, ...], tuple[float, ...]], ...],
    positions: int,
    count: int,
    uniform: bool,
) -> list[list[int]]:
    """Return edges [positions, count] sampled from node 0, as positions in the union."""
    samples = sampling.sample_neighbors(
        _union_star(stars),
        edge_types=list(range(len(stars))),
        node_type=0,
        ids=np.zeros(positions, np.int64),
        positions=np.arange(positions),
        count=count,
        replace=False,
        uniform=uniform,
        direction=1,
        seed=61,
        hop=0,
        want_weights=False,
        want_edge_ids=True,
        distinct_neighbors=True,
    )
    assert samples.eids is not None
    assert samples.types is not None
    starts = np.cumsum([0, *(len(neighbors) for _, neighbors, _ in stars)])
    edges = np.where(samples.eids >= 0, starts[samples.types] + samples.eids, -1)
    ends = np.array([node for _, neighbors, _ in stars for node in neighbors] + [-1])
    require(
        bool((samples.ids == ends[edges]).all()),
        "an edge of a union is given with another's neighbor",
    )
    return [list(map(int, row)) for row in edges]


def different_neighbors_of_unions_are_successive_draws(scale: float) -> None:
    """Distinct neighbors along several edge types follow successive draws.

    Edges of two types to a node are one neighbor; equal ids of two node types are two.
    """
    n = int(max(800, 12_000 * scale))
    for stars, count in UNIONS:
        neighbors = [f"{end}{node}" for end, ids, _ in stars for node in ids]
        weights = [weight for _, _, some in stars for weight in some]
        for uniform in (False, True):
            expected = outcome_probabilities(
                neighbors, [1.0] * len(neighbors) if uniform else weights, count
            )
            observed = Counter(map(tuple, _sample_union(stars, n, count, uniform)))
            label = (
                f"{count} different neighbors of {neighbors} by {'edges' if uniform else weights}"
            )
            require(
                set(observed) <= set(expected),
                f"{label}: {list(set(observed) - set(expected))[:1]} is impossible",
            )
            keys = sorted(expected)
            require_counts(
                [observed[key] for key in keys], [expected[key] * n for key in keys], label
            )
            most, fewer = _sample_union(stars, 60, 5, uniform), _sample_union(stars, 60, 1, uniform)
            require(
                [row[:1] for row in most] == fewer,
                "the first of 5 different neighbors of a union is not the request for one",
            )
