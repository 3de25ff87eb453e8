"""Checks of visit counts over metapath walks, by enumeration, and of PageRank.

PageRank is checked by linear algebra.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import require, require_independent
from tests.distributions.checks.hosts import request_context
from tests.distributions.checks.walk_paths import (
    EDGES,
    PLAIN_WALK,
    ContextOf,
    Distribution,
    require_distribution,
    small_context,
    small_graph,
    walk_probabilities,
)
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import pagerank, visit_counts, walks
from storaged import sampling


def _visit_probabilities(params: visit_counts.VisitParams, start: int) -> Distribution:
    """Return the probability of each outcome of a node's walks, as nodes and counts in turn."""
    hops, traversals = len(params.walk.steps), params.walk.length // len(params.walk.steps)
    end_probabilities: Distribution = {}
    for path, p in walk_probabilities(params.walk, start).items():
        ends = path[2 * hops - 1 :: 2 * hops]
        for t in range(1, traversals + 1):  # the walk makes t traversals, then ends
            share = (1 - params.termination) ** (t - 1) * (
                params.termination if t < traversals else 1.0
            )
            visited = tuple(sorted(node for node in ends[:t] if node >= 0))
            end_probabilities[visited] = end_probabilities.get(visited, 0.0) + p * share
    probabilities: Distribution = {}
    for walk_ends in product(end_probabilities.items(), repeat=params.walks):
        counts = Counter(node for visited, _ in walk_ends for node in visited)
        most = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: params.count]
        outcome = tuple(value for pair in most for value in pair)
        probabilities[outcome] = probabilities.get(outcome, 0.0) + float(
            np.prod([p for _, p in walk_ends])
        )
    return {outcome: p for outcome, p in probabilities.items() if p > 0}


def visit_counts_match_the_walks(scale: float) -> None:
    """Every outcome of one to three walks has the product of its walks and ends.

    Walks have one step and two.
    """
    n = int(max(600, 6000 * scale))
    for steps, traversals, walk_count, termination, uniform, start in (
        (((0,),), 3, 2, 0.5, False, 0),
        (((0,), (0, 1)), 2, 2, 0.3, True, 0),
        (((0, 1),), 2, 3, 0.0, False, 2),
        (((0,),), 2, 1, 1.0, True, 2),
    ):
        walking = replace(PLAIN_WALK, steps=steps, length=len(steps) * traversals, uniform=uniform)
        params = visit_counts.VisitParams(
            walk=walking, walks=walk_count, termination=termination, count=3
        )
        require_visits(params, n, start)


def require_visits(
    params: visit_counts.VisitParams, n: int, start: int, context_of: ContextOf = small_context
) -> None:
    """Require visits to follow their distribution over `EDGES`, on one host and three."""
    label = (
        f"visits from {start} by {params.walk.steps}, {params.walk.length} steps, "
        f"{params.walks} walks that end by {params.termination}, uniform={params.walk.uniform}"
    )
    starts = np.full(n, start, np.int64)
    replies = [
        visit_counts.top_visited(context_of(hosts), params, starts, 0, None) for hosts in (1, 3)
    ]
    require(
        all(bool((replies[0][name] == replies[1][name]).all()) for name in replies[0]),
        f"{label}: hosts matter",
    )
    ids, counts = replies[0]["ids"], replies[0]["counts"]
    require(bool(((counts > 0) == (ids >= 0)).all()), f"{label}: a count of nothing")
    rows = zip(ids.tolist(), counts.tolist(), strict=True)
    outcomes = [
        tuple(value for pair in zip(*row, strict=True) if pair[1] for value in pair) for row in rows
    ]
    require_distribution(outcomes, _visit_probabilities(params, start), label)
    require_independent(ids[:-1, 0] + 1, ids[1:, 0] + 1, 5, f"{label}: neighboring nodes")


def many_visits_are_ranked_like_few(scale: float) -> None:
    """Many visits are ranked like few: by count, then by smallest id."""
    starts, walk_count = np.arange(int(max(60, 300 * scale))) % 5, 40
    walking = replace(PLAIN_WALK, steps=((0,),), length=2, uniform=True)
    params = visit_counts.VisitParams(walk=walking, walks=walk_count, termination=0.0, count=3)
    reply = visit_counts.top_visited(request_context(small_graph(), 1), params, starts, 0, None)
    walk_nodes = walks.random_walks(
        request_context(small_graph(), 1), walking, np.repeat(starts, walk_count), 0, None
    )["nodes"][:, 1:].reshape(len(starts), -1)
    ties = 0
    for ids, counts, ends in zip(
        reply["ids"].tolist(), reply["counts"].tolist(), walk_nodes.tolist(), strict=True
    ):
        visited = Counter(node for node in ends if node >= 0)
        most = sorted(visited.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
        require(
            [pair for pair in zip(ids, counts, strict=True) if pair[1]] == most,
            f"{walk_count} walks: {ids} {counts}, not {most}",
        )
        ties += len({count for _, count in most}) < len(most)
    require(ties > 0, "no two nodes were visited as often")


def dense_pagerank(weights: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Return PageRank of every node for every start [n, n], by linear algebra.

    A walk ends with probability alpha before each step, and at a dead end.
    """
    masses = weights.sum(axis=1)
    steps = np.divide(
        weights, masses[:, None], out=np.zeros_like(weights), where=masses[:, None] > 0
    )
    resolvent = np.linalg.inv(np.eye(len(weights)) - (1 - alpha) * steps)
    ends: NDArray[np.float64] = resolvent * np.where(masses > 0, alpha, 1.0)
    return ends


def pushed_pagerank(
    weights: NDArray[np.float64], start: int, alpha: float, epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return scores and residuals after rounds of pushes."""
    n, masses = len(weights), weights.sum(axis=1)
    scores, residuals = np.zeros(n), np.eye(n)[start]
    frontier = [start]
    while frontier:
        amounts, residuals[frontier] = residuals[frontier], 0.0
        for u, amount in zip(frontier, amounts, strict=True):
            scores[u] += alpha * amount if masses[u] else amount
            if masses[u]:
                residuals = residuals + (1 - alpha) * amount * weights[u] / masses[u]
        frontier = np.flatnonzero(residuals > epsilon * masses).tolist()
    return scores, residuals


def pageranks_are_pushed_in_rounds(scale: float) -> None:
    """Scores equal those of rounds of pushes, on any number of hosts.

    They are below PageRank by at most the residuals.
    """
    for types, uniform, alpha, epsilon in (
        ((0,), False, 0.15, 1e-3),
        ((0, 1), True, 0.5, 0.02),
        ((1, 0), False, 0.1, 0.05),
        ((0,), True, 1.0, 1.0),
    ):
        weights = np.zeros((4, 4))
        for t in types:
            for (a, b), weight in EDGES[t].items():
                weights[a, b] += 1.0 if uniform else weight
        params = pagerank.PagerankParams(
            edge_types=types,
            direction=common_pb.OUT,
            uniform=uniform,
            alpha=alpha,
            epsilon=epsilon,
            top_k=4,
        )
        starts = np.array([0, 3, 2, 1, -1, 2, 99])
        replies = [
            pagerank.pagerank(request_context(small_graph(), hosts), params, starts, 0, None)
            for hosts in (1, 3)
        ]
        label = f"PageRank by {types}, uniform={uniform}, alpha={alpha}, epsilon={epsilon}"
        require(
            all(bool((replies[0][name] == replies[1][name]).all()) for name in replies[0]),
            f"{label}: hosts matter",
        )
        exact = dense_pagerank(weights, alpha)
        for row, start in enumerate(starts.tolist()):
            ids, scores = replies[0]["ids"][row], replies[0]["scores"][row]
            require(bool(((scores > 0) == (ids >= 0)).all()), f"{label}: a score without a node")
            if not 0 <= start < 4:
                require(bool((ids < 0).all()), f"{label}: start {start} is no node")
                continue
            by_score = sorted(
                zip(ids[ids >= 0].tolist(), scores[ids >= 0].tolist(), strict=True),
                key=lambda pair: (-pair[1], pair[0]),
            )
            require(
                [node for node, _ in by_score] == ids[ids >= 0].tolist(),
                f"{label}: not by score, then id",
            )
            found_scores = np.zeros(4)
            found_scores[ids[ids >= 0]] = scores[ids >= 0]
            expected, expected_residuals = pushed_pagerank(weights, start, alpha, epsilon)
            require(
                bool(np.allclose(found_scores, expected, rtol=0, atol=1e-12)),
                f"{label}: from {start} {found_scores}, not {expected}",
            )
            residual = float(replies[0]["residuals"][row])
            require(
                abs(residual - expected_residuals.sum()) < 1e-12,
                f"{label}: {residual} is not all that is held back, {expected_residuals.sum()}",
            )
            shortfall = exact[start] - found_scores
            require(
                bool((shortfall >= -1e-12).all()) and bool((shortfall <= residual + 1e-12).all()),
                f"{label}: {found_scores} is not within {residual} of {exact[start]}",
            )
    large_graph = _forty_node_graph()
    params = pagerank.PagerankParams(
        edge_types=(0, 1),
        direction=common_pb.OUT,
        uniform=False,
        alpha=0.15,
        epsilon=1e-5,
        top_k=40,
    )
    many_host_reply, one_host_reply = (
        pagerank.pagerank(request_context(large_graph, hosts), params, np.arange(4), 0, None)
        for hosts in (3, 1)
    )
    require(
        all(bool((one_host_reply[name] == many_host_reply[name]).all()) for name in one_host_reply),
        "PageRank of many rounds: hosts matter",
    )


@cache
def _forty_node_graph() -> sampling.LocalVersion:
    """Return forty nodes with edge weights that make rounding depend on the order of addition."""
    rng = np.random.default_rng(3)
    types = tuple(
        EdgeType(src_type="n", relation=name, dst_type="n", weighted=True) for name in ("a", "b")
    )
    edges = {
        edge.name: Edges(
            src=rng.integers(0, 40, 150),
            dst=rng.integers(0, 40, 150),
            weights=rng.random(150).astype(np.float32),
        )
        for edge in types
    }
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=3),
        {"n": Nodes(ids=np.arange(40))},
        edges,
    )
