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


UNIONS: Sequence[tuple[tuple[tuple[str, tuple[int, ...], tuple[float, ...]], ...], int]] = (
    ((("n", (0, 1, 1), (2.0, 1.0, 3.0)), ("n", (1, 2), (4.0, 1.0))), 2),
    ((("n", (0, 1), (1.0, 2.0)), ("m", (0, 1), (3.0, 4.0))), 2),
    ((("m", (0, 0, 2), (0.7, 0.0, 0.1)), ("n", (0, 2), (0.1, 0.5)), ("m", (0, 1), (0.2, 0.0))), 3),
)
"""Of each edge type the node type that it leads to, neighbors and weights of edges; and how many different neighbors are drawn."""


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


def outcomes(near: Sequence[object], weights: Sequence[float], count: int) -> dict[tuple[int, ...], float]:
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


@cache
def _union(kinds: tuple[tuple[str, tuple[int, ...], tuple[float, ...]], ...]) -> draw.Version:
    types = tuple(EdgeType(src_type="n", relation=f"e{t}", dst_type=end, weighted=True) for t, (end, _, _) in enumerate(kinds))
    edges = {
        edge.name: Edges(src=np.zeros(len(near), np.int64), dst=np.array(near), weights=np.array(weights, np.float32))
        for edge, (_, near, weights) in zip(types, kinds, strict=True)
    }
    nodes = {"n": Nodes(ids=np.arange(3)), "m": Nodes(ids=np.arange(3))}
    return version_of(Schema(node_types=(NodeType(name="n"), NodeType(name="m")), edge_types=types, parts=1), nodes, edges)


def _drawn_of_union(kinds: tuple[tuple[str, tuple[int, ...], tuple[float, ...]], ...], positions: int, count: int, uniform: bool) -> list[list[int]]:
    """Edges [positions, count] of draws from node 0, as places in the union."""
    found = draw.neighbors(
        _union(kinds),
        edge_types=list(range(len(kinds))),
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
        different=True,
    )
    assert found.eids is not None
    assert found.types is not None
    starts = np.cumsum([0, *(len(near) for _, near, _ in kinds)])
    edges = np.where(found.eids >= 0, starts[found.types] + found.eids, -1)
    ends = np.array([node for _, near, _ in kinds for node in near] + [-1])
    require(bool((found.ids == ends[edges]).all()), "an edge of a union is given with another's neighbor")
    return [list(map(int, row)) for row in edges]


def different_neighbors_of_unions_are_successive_draws(scale: float) -> None:
    """The same along several edge types: edges of two types to a node are one neighbor, and equal ids of two node types two."""
    n = int(max(800, 12_000 * scale))
    for kinds, count in UNIONS:
        near = [f"{end}{node}" for end, ids, _ in kinds for node in ids]
        weights = [weight for _, _, some in kinds for weight in some]
        for uniform in (False, True):
            law = outcomes(near, [1.0] * len(near) if uniform else weights, count)
            observed = Counter(map(tuple, _drawn_of_union(kinds, n, count, uniform)))
            what = f"{count} different neighbors of {near} by {'edges' if uniform else weights}"
            require(set(observed) <= set(law), f"{what}: {list(set(observed) - set(law))[:1]} is impossible")
            keys = sorted(law)
            require_counts([observed[key] for key in keys], [law[key] * n for key in keys], what)
            most, fewer = _drawn_of_union(kinds, 60, 5, uniform), _drawn_of_union(kinds, 60, 1, uniform)
            require([row[:1] for row in most] == fewer, "the first of 5 different neighbors of a union is not the request for one")
