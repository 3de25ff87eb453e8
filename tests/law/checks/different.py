"""Checks of different neighbors: of parallel edges, the neighbor is drawn by all of them together, and one of them by its own weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tests.kit.images import Edges, Nodes, version_of
from tests.law.checks.basis import require, require_counts

from asterism_proto.schema import EdgeType, NodeType, Schema
from storaged import draw

BUNCHES: Sequence[tuple[tuple[int, ...], tuple[float, ...], int]] = (
    ((0, 0, 1, 2), (1.0, 2.0, 3.0, 4.0), 2),
    ((0, 0, 1, 2), (0.5, 0.45, 0.03, 0.02), 3),
    ((0, 1, 1, 2), (0.96, 0.01, 0.02, 0.01), 2),
    ((0, 1, 1, 1, 2, 2), (5.0, 1.0, 1.0, 2.0, 4.0, 0.0), 2),
    ((0, 0, 0, 1), (1.0, 1.0, 1.0, 1.0), 3),
    ((0, 1, 1, 2), (0.0, 1.0, 0.0, 2.0), 3),
    ((0, 1, 2, 3, 4), (1.0, 1.0, 1.0, 1.0, 1.0), 2),
)
"""Neighbors and weights of edges, in order of edge ids, and how many different neighbors are drawn."""


@cache
def _bunch(near: tuple[int, ...], weights: tuple[float, ...]) -> draw.Version:
    kinds = (EdgeType(src_type="n", relation="to", dst_type="n", weighted=True),)
    edges = {"n:to:n": Edges(src=np.zeros(len(near), np.int64), dst=np.array(near), weights=np.array(weights, np.float32))}
    return version_of(Schema(node_types=(NodeType(name="n"),), edge_types=kinds, parts=1), {"n": Nodes(ids=np.arange(max(near) + 1))}, edges)


def _drawn(near: tuple[int, ...], weights: tuple[float, ...], seed: int, positions: int, count: int, uniform: bool) -> NDArray[np.int64]:
    """Edge ids [positions, count] of draws from node 0."""
    found = draw.neighbors(
        _bunch(near, weights),
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
        different=True,
    )
    assert found.eids is not None
    ends = np.array([*near, -1])
    require(bool((found.ids == ends[found.eids]).all()), "an edge is given with another's neighbor")
    return found.eids


def outcomes(near: Sequence[int], weights: Sequence[float], count: int) -> dict[tuple[int, ...], float]:
    """The probability of every outcome: each edge by its weight among those to neighbors that were not drawn yet."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(count):
        longer: dict[tuple[int, ...], float] = {}
        for chosen, p in found.items():
            met = {near[edge] for edge in chosen if edge >= 0}
            left = [edge for edge in range(len(near)) if near[edge] not in met and weights[edge] > 0]
            total = sum(weights[edge] for edge in left)
            for edge in left:
                longer[(*chosen, edge)] = p * weights[edge] / total
            if not left:
                longer[(*chosen, -1)] = p
        found = longer
    return found


def different_neighbors_are_successive_draws(scale: float) -> None:
    """Every ordered outcome has its probability, parallel edges, light rests and rows that run out included."""
    n = int(max(800, 12_000 * scale))
    for at, (near, weights, count) in enumerate(BUNCHES):
        for uniform in (False, True):
            eids = _drawn(near, weights, 41 + at, n, count, uniform)
            law = outcomes(near, [1.0] * len(near) if uniform else weights, count)
            observed = Counter(map(tuple, eids.tolist()))
            what = f"{count} different neighbors of {near} by {'edges' if uniform else weights}"
            require(set(observed) <= set(law), f"{what}: {list(set(observed) - set(law))[:1]} is impossible")
            keys = sorted(law)
            require_counts([observed[key] for key in keys], [law[key] * n for key in keys], what)


def fewer_different_neighbors_are_the_first_of_more(scale: float) -> None:
    """The first m of n different neighbors are the request for m."""
    del scale
    for near, weights, _ in BUNCHES:
        for uniform in (False, True):
            most = _drawn(near, weights, 51, 60, 6, uniform)
            for count in (1, 2, 4):
                fewer = _drawn(near, weights, 51, 60, count, uniform)
                require(bool((fewer == most[:, :count]).all()), f"{count} different neighbors of {near} are not the first of 6")
