"""Graphs with reverse edges: of another type, and of the same type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import asterism

BUYS, BOUGHT_BY = ("user", "buys", "item"), ("item", "bought_by", "user")
MET = ("user", "met", "user")
NODES = {"user": 60, "item": 40}
Ends = tuple[np.ndarray, np.ndarray]


def different_pairs(first: int, second: int, count: int, seed: int) -> Ends:
    """Return different pairs of nodes, none of a node with itself, in random order."""
    chosen = np.random.default_rng(seed).permutation(first * second)
    src, dst = chosen // second, chosen % second
    kept = np.flatnonzero((src != dst) & ((first != second) | (src < dst)))[:count]
    return src[kept], dst[kept]


def shop_edges() -> dict[tuple[str, str, str], Ends]:
    """Return purchases, and their reverse edges in the same order."""
    src, dst = different_pairs(NODES["user"], NODES["item"], 240, 1)
    return {BUYS: (src, dst), BOUGHT_BY: (dst, src)}


def friend_edges() -> Ends:
    """Return edges in one direction, then in the other in the same order."""
    src, dst = different_pairs(NODES["user"], NODES["user"], 150, 2)
    return np.r_[src, dst], np.r_[dst, src]


def load(client: asterism.Client, space: str) -> None:
    """Load and build the space ``shop`` of two types, or ``friends`` of one."""
    edges: Mapping[tuple[str, str, str], Ends] = (
        shop_edges() if space.startswith("shop") else {MET: friend_edges()}
    )
    names = sorted({triple[0] for triple in edges})
    client.create_space(
        space,
        {
            "direction": "both",
            "parts": 4,
            "nodes": {name: {} for name in names},
            "edges": {":".join(triple): {} for triple in edges},
        },
    )
    graph = client.graph(space)
    for name in names:
        graph.upsert_nodes(np.arange(NODES[name]), name)
    for (_, relation, _), (src, dst) in edges.items():
        graph.upsert_edges(src, dst, relation)
    graph.build(timeout_s=600)
