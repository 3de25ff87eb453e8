"""Calls with temporal filters on the graph of `tests.kit.cases`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asterism import Graph


def temporal_calls(
    graph: Graph, people: np.ndarray, papers: np.ndarray, writes: int, seed: int
) -> dict[str, Callable[[], Any]]:
    """Return calls in which every node has its own temporal filter."""
    people_times, paper_times = (
        np.arange(len(people)) * 31 % writes,
        np.arange(len(papers)) * 53 % writes,
    )
    common_options: dict[str, Any] = {
        "times": people_times,
        "edge_times": True,
        "edge_ids": True,
        "seed": seed,
    }
    subgraph_options: dict[str, Any] = {
        "direction": "in",
        "disjoint": True,
        "times": paper_times[:30] + 0.5,
        "edge_times": True,
        "seed": seed,
    }
    return {
        "neighbors until times": lambda: graph.sample_neighbors(
            people, "writes", 6, **common_options
        ),
        "distinct neighbors until times": lambda: graph.sample_neighbors(
            people, "writes", 4, replace=False, strict=True, **common_options
        ),
        "distinct neighbors until times, by name": lambda: graph.sample_neighbors(
            people, "writes", 4, replace=False, weight="recent", **common_options
        ),
        "the last neighbors": lambda: graph.sample_neighbors(
            people, "writes", 4, replace=False, strategy="last", **common_options
        ),
        "neighbors until times, uniformly against the edges": lambda: graph.sample_neighbors(
            papers, "writes", 5, weighted=False, direction="in", times=paper_times, seed=seed
        ),
        "neighbors until times under a condition": lambda: graph.sample_neighbors(
            people,
            "writes",
            4,
            where="weight > 1 and dst.vec[0] > 20",
            replace=False,
            **common_options,
        ),
        "subgraph until times under a condition": lambda: graph.sample_subgraph(
            papers[:30],
            [5, 3],
            ["writes", "by"],
            ntype="paper",
            where="type == 'by' or type == 'writes' and weight > 1",
            **subgraph_options,
        ),
        "fanout until times": lambda: graph.sample_fanout(
            papers, ["by", "writes"], [3, 2], **common_options | {"times": paper_times}
        ),
        "the last of a fanout": lambda: graph.sample_fanout(
            people, ["writes", "cites"], [3, 2], replace=False, strategy="last", **common_options
        ),
        "neighbors that had come": lambda: graph.sample_neighbors(
            papers, "by", 5, times=paper_times % 99, edge_times=True, seed=seed
        ),
        "subgraph until times": lambda: graph.sample_subgraph(
            papers[:30], [5, 3], ["writes", "by", "cites"], ntype="paper", **subgraph_options
        ),
        "subgraph of the last": lambda: graph.sample_subgraph(
            papers[:30],
            [5, -1],
            ["writes", "by"],
            ntype="paper",
            strategy="last",
            **subgraph_options,
        ),
        "the same again, until times": lambda: graph.replay(
            graph.sample_neighbors(people, "writes", 3, **common_options).token,
            people,
            times=people_times,
        ),
    }
