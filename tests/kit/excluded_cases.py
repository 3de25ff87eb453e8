"""Calls with excluded edges on the graph of `tests.kit.cases`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from asterism import Graph

Edges = Mapping[str, tuple[np.ndarray, np.ndarray]]


def calls(
    graph: Graph, excluded: Edges, people: np.ndarray, papers: np.ndarray, seed: int
) -> dict[str, Callable[[], Any]]:
    """Return calls that exclude edges of two types, and the reverses of one of them.

    ``excluded`` are some edges of the types writes and cites.
    """
    reverse = {"writes": "by"}
    followed = ["cites", "by", "writes"]
    # Every other edge by its edge id, and one with an edge id that does not exist.
    src, dst = excluded["writes"]
    edge_ids = np.where(np.arange(len(src)) % 2, -1, np.arange(len(src)))
    edge_ids[:1] = 10**9

    def rest() -> Graph:
        return graph.without_edges(excluded, reverse_types=reverse)

    temporal: dict[str, Any] = {
        "exclude": {"writes": (src, dst, edge_ids)},
        "times": np.arange(len(people)) * 31 % 2500,
        "edge_times": True,
        "edge_ids": True,
        "seed": seed,
    }
    return {
        "neighbors without edges": lambda: graph.sample_neighbors(
            papers, ["cites", "by"], 5, exclude=excluded, reverse_types=reverse, seed=seed
        ),
        "different neighbors without edges, against them": lambda: rest().sample_neighbors(
            papers, ["cites", "writes"], 5, replace=False, direction="in", seed=seed
        ),
        "probabilities of neighbors without edges": lambda: rest().sample_neighbors(
            papers, ["cites", "by"], 5, replace=False, probabilities=True, seed=seed
        ),
        "shares without edges": lambda: rest().sample_neighbors(
            people, "writes", 0.4, replace=False, seed=seed
        ),
        "neighbors by name where, without edges": lambda: rest().sample_neighbors(
            people, "writes", 4, weight="recent", where="when > 400", seed=seed
        ),
        "neighbors until times without edges": lambda: graph.sample_neighbors(
            people, "writes", 6, **temporal
        ),
        "different neighbors until times without edges": lambda: graph.sample_neighbors(
            people, "writes", 3, replace=False, weight="recent", **temporal
        ),
        "the last neighbors without edges": lambda: graph.sample_neighbors(
            people, "writes", 4, replace=False, strategy="last", **temporal
        ),
        "fanout without edges": lambda: rest().sample_fanout(
            people, ["writes", "cites", "by"], [4, 3, 2], edge_ids=True, seed=seed
        ),
        "fanout until times without edges": lambda: graph.sample_fanout(
            people, ["writes", "by"], [3, 2], reverse_types=reverse, **temporal
        ),
        "walks without edges": lambda: rest().random_walk(
            people, ["writes", "cites", "by"], 5, edge_ids=True, seed=seed
        ),
        "walks with p and q without edges": lambda: rest().random_walk(
            papers[-20:], ["cites"], 3, p=0.25, q=4.0, seed=seed
        ),
        "walks over different neighbors without edges": lambda: rest().random_walk(
            people, ["writes", "by"], 4, walks=4, first_step="distinct", restart=0.1, seed=seed
        ),
        "visits without edges": lambda: rest().sample_pinsage(
            papers, ["cites", "cites"], 5, walks=20, seed=seed
        ),
        "subgraph without edges": lambda: rest().sample_subgraph(
            papers, [4, 3], followed, ntype="paper", weights=True, seed=seed
        ),
        "subgraph until times without edges": lambda: graph.sample_subgraph(
            papers[:30],
            [5, -1],
            ["writes", "by"],
            ntype="paper",
            direction="in",
            disjoint=True,
            reverse_types=reverse,
            **temporal | {"times": np.arange(30) * 53.5},
        ),
        "ego subgraphs without edges": lambda: rest().sample_ego_subgraphs(
            papers, [3, 2], followed, ntype="paper", weights=True, seed=seed
        ),
        "ego subgraphs of all together without edges": lambda: rest().sample_ego_subgraphs(
            papers[:20],
            [4, -1],
            "cites",
            among=["cites", "writes"],
            direction="in",
            weight="recent",
            disjoint=False,
            expand="every",
            seed=seed,
        ),
        "LABOR without edges": lambda: rest().sample_labor(
            papers, [4, 3], followed, importance=1, ntype="paper", seed=seed
        ),
        "LABOR without edges, uniformly against them": lambda: rest().sample_labor(
            papers[:40],
            {"cites": [-1, 2], "writes": [3, 0]},
            ntype="paper",
            weighted=False,
            direction="in",
            layer_dependency=True,
            seed=seed,
        ),
        "layers by budgets without edges": lambda: rest().sample_hgt(
            papers, {"paper": [20, 9], "person": [30, 12]}, ntype="paper", weights=True, seed=seed
        ),
        "layers by budgets without edges, against them": lambda: rest().sample_hgt(
            papers[:12],
            [9, 7],
            ["cites", "writes"],
            among="writes",
            ntype="paper",
            weighted=False,
            direction="in",
            seed=seed,
        ),
        "a layer without edges": lambda: rest().sample_layer(
            papers, ["cites", "by"], 40, measure="sqrt", edge_ids=True, seed=seed
        ),
        "a layer of different nodes without edges": lambda: rest().sample_layer(
            papers, ["cites"], 20, measure="squares", replace=False, direction="in", seed=seed
        ),
        "layers without edges": lambda: rest().sample_fanout_layerwise(
            papers[:44].reshape(11, 4),
            [["cites", "writes"], None],
            [8, 5],
            ntype="paper",
            direction="in",
            edge_ids=True,
            seed=seed,
        ),
        "pagerank without edges": lambda: rest().personalized_pagerank(
            papers[:20], "cites", 9, epsilon=1e-3
        ),
        "all neighbors without edges": lambda: rest().neighbors(
            papers, followed[:2], sort="weight", edge_ids=True
        ),
        "induced subgraph without edges": lambda: rest().induced_subgraph(
            papers, ["cites"], ntype="paper", weights=True
        ),
        "edges between lists without edges": lambda: rest().adjacency(
            papers, papers[::-1], "cites", edge_ids=True
        ),
        "degrees without edges": lambda: rest().degrees(papers, ["cites", "by"]),
    }
