"""A small graph with global ids, so that requests have no types, and calls on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asterism import Client, Graph
from tests.kit.cases import SEED, digest
from tests.kit.waiting import HANG_S

USERS, ITEMS, EDGES = 120, 40, 700

SCHEMA: dict[str, Any] = {
    "parts": 9,
    "ids": "global",
    "placement": "mod",
    "direction": "both",
    "nodes": {
        "user": {"weighted": True, "features": {"in": "bytes"}, "graph_label": "in"},
        "item": {
            "weighted": True,
            "features": {"of": "bytes", "price": "float32"},
            "graph_label": "of",
        },
        "shop": {},
    },
    "edges": {
        "user:buys:item": {"weighted": True},
        "user:follows:user": {},
        "item:near:item": {"weighted": True},
        "item:in:shop": {},
    },
}


_FILTER = "type == 'item' and price < 0.5 or type == 'user' and `in` != 'graph 3' or type == 'shop'"


def item_ids() -> np.ndarray:
    """Return item ids between those of users and far above."""
    return np.concatenate(
        [np.arange(USERS, USERS + ITEMS // 2), np.arange(ITEMS // 2) * 977_123 + 10**9]
    ).astype(np.int64)


def load(client: Client, space: str) -> Graph:
    """Write the graph in one load, and build it.

    It has graph labels on nodes of both types, parallel edges, and nodes without edges.
    """
    client.create_space(space, SCHEMA)
    rng, users, items = np.random.default_rng(29), np.arange(USERS), item_ids()
    open_load = client.begin_load(space, source="joint cases")
    open_load.write_nodes(
        0,
        "user",
        users,
        weights=rng.integers(0, 4, USERS),
        features={"in": [f"graph {i % 23}" for i in range(USERS)]},
    )
    labels = [f"graph {i % 31}" if i % 5 else "" for i in range(ITEMS)]
    open_load.write_nodes(
        1,
        "item",
        items,
        weights=rng.random(ITEMS),
        features={"of": labels, "price": rng.random(ITEMS)},
    )
    open_load.write_nodes(2, "shop", [10**12, 10**12 + 1])
    ends = {
        "buys": (users[:-9], items),
        "follows": (users[:-9], users),
        "near": (items, items),
        "in": (items, np.array([10**12, 10**12 + 1])),
    }
    for chunk, (relation, (src, dst)) in enumerate(ends.items(), start=3):
        weights = (
            (rng.random(EDGES) ** 4 * 50).astype(np.float32)
            if relation in ("buys", "near")
            else None
        )
        open_load.write_edges(
            chunk, relation, rng.choice(src, EDGES), rng.choice(dst, EDGES), weights=weights
        )
    open_load.commit()
    graph = client.graph(space)
    graph.build(timeout_s=HANG_S)
    return graph


def calls(graph: Graph) -> dict[str, Callable[[], Any]]:
    """Return calls with nodes of any type, unknown ones and -1 included, by descriptive name."""
    nodes = np.concatenate(
        [np.arange(0, USERS, 3), item_ids()[::2], [10**12, -1, 5 * 10**12], np.arange(4)]
    )
    return {
        "types": lambda: graph.node_types(nodes),
        "nodes like others where": lambda: graph.sample_nodes_like(
            nodes, 4, where=_FILTER, unknown="none", probabilities=True, seed=SEED
        ),
        "negatives where": lambda: graph.sample_negatives(
            nodes, 4, exclude=nodes, where=_FILTER, seed=SEED
        ),
        "neighbors where": lambda: graph.sample_neighbors(
            nodes,
            None,
            4,
            where="dst.type != 'item' or dst.price < 0.6 and src.weight > 0",
            edge_ids=True,
            seed=SEED,
        ),
        "neighbors": lambda: graph.sample_neighbors(
            nodes, None, 4, edge_ids=True, probabilities=True, seed=SEED
        ),
        "distinct neighbors": lambda: graph.sample_neighbors(
            nodes, None, 4, replace=False, direction="in", seed=SEED
        ),
        "fanout": lambda: graph.sample_fanout(
            nodes, [None, ["buys", "near", "in"]], [3, 2], edge_ids=True, seed=SEED
        ),
        "heaviest": lambda: graph.top_k_neighbors(nodes, None, 3, edge_ids=True),
        "all neighbors": lambda: graph.neighbors(nodes, None, sort="id"),
        "degrees": lambda: graph.degrees(nodes, direction="in"),
        "walks": lambda: graph.random_walk(nodes, length=6, restart=0.1, edge_ids=True, seed=SEED),
        "walks with p and q": lambda: graph.random_walk(
            nodes[::2], length=4, p=0.3, q=3.0, direction="in", seed=SEED
        ),
        "visits": lambda: graph.sample_pinsage(nodes, None, 5, walks=7, traversals=3, seed=SEED),
        "pagerank": lambda: graph.personalized_pagerank(
            nodes, None, 6, direction="in", epsilon=1e-3
        ),
        "walks over different neighbors": lambda: graph.random_walk(
            nodes, length=4, walks=6, first_step="distinct", edge_ids=True, seed=SEED
        ),
        "subgraph": lambda: graph.sample_subgraph(nodes, [3, 2], weights=True, seed=SEED),
        "LABOR": lambda: graph.sample_labor(nodes, [3, 2], importance=1, seed=SEED),
        "layers by budgets": lambda: graph.sample_hgt(nodes[-12:], [7, 5], weights=True, seed=SEED),
        "disjoint subgraph": lambda: graph.sample_subgraph(
            nodes, [2, 2], direction="in", disjoint=True, node_features=["price", "in"], seed=SEED
        ),
        "ego subgraphs": lambda: graph.sample_ego_subgraphs(nodes, [2, 2], seed=SEED),
        "induced subgraph": lambda: graph.induced_subgraph(
            nodes, indptr=[0, 40, 40, len(nodes)], weights=True
        ),
        "like": lambda: graph.sample_nodes_like(
            nodes, 5, unknown="none", probabilities=True, seed=SEED
        ),
        "negatives": lambda: graph.sample_negatives(
            nodes, 6, exclude=graph.neighbors(nodes, None), probabilities=True, seed=SEED
        ),
        "negatives of items": lambda: graph.sample_negatives(
            nodes, 6, ["item", "shop"], weighted=False, shared=True, exclude=nodes, seed=SEED
        ),
        "layer": lambda: graph.sample_layer(
            nodes, None, 30, measure="squares", edge_ids=True, seed=SEED
        ),
        "layers": lambda: graph.sample_fanout_layerwise(
            nodes[:40].reshape(8, 5), [None, None], [6, 4], replace=False, seed=SEED
        ),
        "adjacency": lambda: graph.adjacency(nodes, nodes[::-1].copy(), edge_ids=True),
        "whole neighborhoods": lambda: graph.multi_hop_neighbors(nodes[:9], [None, None]),
        "labels": lambda: graph.sample_graph_labels(90, seed=SEED),
        "nodes of labels": lambda: graph.graph_nodes([f"graph {i}" for i in range(33)] + [""]),
    }


def call_digests(graph: Graph) -> dict[str, str]:
    """Return a digest of the result of every call."""
    return {name: digest(call()) for name, call in calls(graph).items()}
