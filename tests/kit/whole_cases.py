"""Calls on the graph of `cases` that return whole layers or clusters.

These are HGT layers and cluster batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asterism import Graph


def calls(
    graph: Graph, mixed: np.ndarray, types: np.ndarray, edge_filter: str, seed: int
) -> dict[str, Callable[[], Any]]:
    """Return the calls, by a descriptive name.

    ``mixed`` are nodes of the ``types`` person (0) and paper (1), unknown ones and -1 included;
    ``edge_filter`` is a filter on every edge type.
    """
    people, papers = mixed[types == 0], mixed[types == 1]
    valid_ids = {"person": people[people >= 0], "paper": papers[papers >= 0]}
    clusters = {name: (np.unique(ids), np.unique(ids) % 7) for name, ids in valid_ids.items()}
    return {
        "layers by budgets": lambda: graph.sample_hgt(
            papers,
            {"paper": [20, 9], "person": [30, 12]},
            ntype="paper",
            weights=True,
            node_features={"paper": ["vec"]},
            seed=seed,
        ),
        "layers by budgets of mixed types, by name, against the edges": lambda: graph.sample_hgt(
            mixed,
            [9, 0, 7],
            ["cites", "writes"],
            among="writes",
            ntype=types,
            weight="recent",
            direction="in",
            seed=seed,
        ),
        "layers by budgets where": lambda: graph.sample_hgt(
            papers,
            [9, 9],
            ["cites", "by"],
            ntype="paper",
            weighted=False,
            where=edge_filter,
            seed=seed,
        ),
        "every cluster once": lambda: list(
            graph.cluster_batches(clusters, 3, weights=True, seed=seed)
        ),
    }
