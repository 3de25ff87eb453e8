"""Checks of visits: how often walks over a metapath come to a node, by every walk there can be; where walks end, by linear algebra."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, version_of
from tests.law.checks.basis import require, require_independent
from tests.law.checks.hosts import sampling_of
from tests.law.checks.paths import EDGES, PLAIN, Law, follow, walks_of, web

from asterism_proto.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from graphd import pagerank, visits, walk
from storaged import draw


def _visits(how: visits.Visiting, start: int) -> Law:
    """The probability of each outcome of the walks from a node, as nodes and counts in turn."""
    hops, traversals = len(how.walking.steps), how.walking.length // len(how.walking.steps)
    ended: Law = {}
    for path, p in walks_of(how.walking, start).items():
        ends = path[2 * hops - 1 :: 2 * hops]
        for t in range(1, traversals + 1):  # the walk makes t traversals, and then ends
            share = (1 - how.termination) ** (t - 1) * (how.termination if t < traversals else 1.0)
            seen = tuple(sorted(node for node in ends[:t] if node >= 0))
            ended[seen] = ended.get(seen, 0.0) + p * share
    law: Law = {}
    for several in product(ended.items(), repeat=how.walks):
        counts = Counter(node for seen, _ in several for node in seen)
        most = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: how.count]
        told = tuple(value for pair in most for value in pair)
        law[told] = law.get(told, 0.0) + float(np.prod([p for _, p in several]))
    return {told: p for told, p in law.items() if p > 0}


def visits_are_counted_as_walks_make_them(scale: float) -> None:
    """Every outcome of one to three walks from a node, over one step and two, has the product of their walks and ends."""
    n = int(max(600, 6000 * scale))
    for steps, traversals, walks, termination, uniform, start in (
        (((0,),), 3, 2, 0.5, False, 0),
        (((0,), (0, 1)), 2, 2, 0.3, True, 0),
        (((0, 1),), 2, 3, 0.0, False, 2),
        (((0,),), 2, 1, 1.0, True, 2),
    ):
        walking = replace(PLAIN, steps=steps, length=len(steps) * traversals, uniform=uniform)
        how = visits.Visiting(walking=walking, walks=walks, termination=termination, count=3)
        what = f"visits from {start} by {steps}, {traversals} times, {walks} walks that end by {termination}, uniform={uniform}"
        starts = np.full(n, start, np.int64)
        answers = [visits.visits(sampling_of(web(), hosts), how, starts, 0, None) for hosts in (1, 3)]
        require(all(bool((answers[0][name] == answers[1][name]).all()) for name in answers[0]), f"{what}: hosts matter")
        ids, counts = answers[0]["ids"], answers[0]["counts"]
        require(bool(((counts > 0) == (ids >= 0)).all()), f"{what}: a count of nothing")
        rows = zip(ids.tolist(), counts.tolist(), strict=True)
        told = [tuple(value for pair in zip(*row, strict=True) if pair[1] for value in pair) for row in rows]
        follow(told, _visits(how, start), what)
        require_independent(ids[:-1, 0] + 1, ids[1:, 0] + 1, 5, f"{what}: neighboring nodes")


def many_visits_are_ranked_as_few_are(scale: float) -> None:
    """Of more visits than are compared with each other, the most come first, then the smallest ids."""
    starts, walks = np.arange(int(max(60, 300 * scale))) % 5, 40
    walking = replace(PLAIN, steps=((0,),), length=2, uniform=True)
    how = visits.Visiting(walking=walking, walks=walks, termination=0.0, count=3)
    found = visits.visits(sampling_of(web(), 1), how, starts, 0, None)
    walked = walk.walk(sampling_of(web(), 1), walking, np.repeat(starts, walks), 0, None)["nodes"][:, 1:].reshape(len(starts), -1)
    ties = 0
    for ids, counts, ends in zip(found["ids"].tolist(), found["counts"].tolist(), walked.tolist(), strict=True):
        visited = Counter(node for node in ends if node >= 0)
        most = sorted(visited.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
        require([pair for pair in zip(ids, counts, strict=True) if pair[1]] == most, f"{walks} walks: {ids} {counts}, not {most}")
        ties += len({count for _, count in most}) < len(most)
    require(ties > 0, "no two nodes were visited as often")


def dense(weights: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """PageRank of every node for every start [n, n], by linear algebra: a walk ends with alpha before each step, and at a dead end."""
    masses = weights.sum(axis=1)
    steps = np.divide(weights, masses[:, None], out=np.zeros_like(weights), where=masses[:, None] > 0)
    solved = np.linalg.inv(np.eye(len(weights)) - (1 - alpha) * steps)
    ends: NDArray[np.float64] = solved * np.where(masses > 0, alpha, 1.0)
    return ends


def pushed(weights: NDArray[np.float64], start: int, alpha: float, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores and what is held back, by rounds of pushes."""
    n, masses = len(weights), weights.sum(axis=1)
    scores, held = np.zeros(n), np.eye(n)[start]
    front = [start]
    while front:
        moved, held[front] = held[front], 0.0
        for u, amount in zip(front, moved, strict=True):
            scores[u] += alpha * amount if masses[u] else amount
            if masses[u]:
                held = held + (1 - alpha) * amount * weights[u] / masses[u]
        front = np.flatnonzero(held > epsilon * masses).tolist()
    return scores, held


def pageranks_are_pushed_in_rounds(scale: float) -> None:
    """Scores are those of rounds of pushes, below PageRank by no more than what is held back, and the same on any hosts."""
    for types, uniform, alpha, epsilon in (((0,), False, 0.15, 1e-3), ((0, 1), True, 0.5, 0.02), ((1, 0), False, 0.1, 0.05), ((0,), True, 1.0, 1.0)):
        weights = np.zeros((4, 4))
        for t in types:
            for (a, b), weight in EDGES[t].items():
                weights[a, b] += 1.0 if uniform else weight
        how = pagerank.Ranking(edge_types=types, direction=pb.OUT, uniform=uniform, alpha=alpha, epsilon=epsilon, top=4)
        starts = np.array([0, 3, 2, 1, -1, 2, 99])
        answers = [pagerank.pagerank(sampling_of(web(), hosts), how, starts, 0, None) for hosts in (1, 3)]
        what = f"PageRank by {types}, uniform={uniform}, alpha={alpha}, epsilon={epsilon}"
        require(all(bool((answers[0][name] == answers[1][name]).all()) for name in answers[0]), f"{what}: hosts matter")
        exact = dense(weights, alpha)
        for row, start in enumerate(starts.tolist()):
            ids, scores = answers[0]["ids"][row], answers[0]["scores"][row]
            require(bool(((scores > 0) == (ids >= 0)).all()), f"{what}: a score of nobody")
            if not 0 <= start < 4:
                require(bool((ids < 0).all()), f"{what}: start {start} is no node")
                continue
            by_score = sorted(zip(ids[ids >= 0].tolist(), scores[ids >= 0].tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
            require([node for node, _ in by_score] == ids[ids >= 0].tolist(), f"{what}: not by score, then id")
            found = np.zeros(4)
            found[ids[ids >= 0]] = scores[ids >= 0]
            expected, held = pushed(weights, start, alpha, epsilon)
            require(bool(np.allclose(found, expected, rtol=0, atol=1e-12)), f"{what}: from {start} {found}, not {expected}")
            residual = float(answers[0]["residuals"][row])
            require(abs(residual - held.sum()) < 1e-12, f"{what}: {residual} is not all that is held back, {held.sum()}")
            short = exact[start] - found
            require(
                bool((short >= -1e-12).all()) and bool((short <= residual + 1e-12).all()),
                f"{what}: {found} is not within {residual} of {exact[start]}",
            )
    web_of_many = _many()
    how = pagerank.Ranking(edge_types=(0, 1), direction=pb.OUT, uniform=False, alpha=0.15, epsilon=1e-5, top=40)
    several, one = (pagerank.pagerank(sampling_of(web_of_many, hosts), how, np.arange(4), 0, None) for hosts in (3, 1))
    require(all(bool((one[name] == several[name]).all()) for name in one), "PageRank of many rounds: hosts matter")


@cache
def _many() -> draw.Version:
    """Forty nodes whose edges have weights that are rounded wherever they are added in another order."""
    rng = np.random.default_rng(3)
    types = tuple(EdgeType(src_type="n", relation=name, dst_type="n", weighted=True) for name in ("a", "b"))
    edges = {
        edge.name: Edges(src=rng.integers(0, 40, 150), dst=rng.integers(0, 40, 150), weights=rng.random(150).astype(np.float32)) for edge in types
    }
    return version_of(Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=3), {"n": Nodes(ids=np.arange(40))}, edges)
