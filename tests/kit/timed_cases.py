"""Calls until times on the graph of `tests.kit.cases`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asterism import Graph


def until_times(graph: Graph, people: np.ndarray, papers: np.ndarray, writes: int, seed: int) -> dict[str, Callable[[], Any]]:
    """Calls in which every node sees edges until a time of its own."""
    of_people, of_papers = np.arange(len(people)) * 31 % writes, np.arange(len(papers)) * 53 % writes
    seen: dict[str, Any] = {"times": of_people, "edge_times": True, "edge_ids": True, "seed": seed}
    asked: dict[str, Any] = {"direction": "in", "disjoint": True, "times": of_papers[:30] + 0.5, "edge_times": True, "seed": seed}
    return {
        "neighbors until times": lambda: graph.sample_neighbors(people, "writes", 6, **seen),
        "distinct neighbors until times": lambda: graph.sample_neighbors(people, "writes", 4, replace=False, strict=True, **seen),
        "distinct neighbors until times, by name": lambda: graph.sample_neighbors(people, "writes", 4, replace=False, weight="recent", **seen),
        "the last neighbors": lambda: graph.sample_neighbors(people, "writes", 4, replace=False, strategy="last", **seen),
        "neighbors until times, uniformly against the edges": lambda: graph.sample_neighbors(
            papers, "writes", 5, weighted=False, direction="in", times=of_papers, seed=seed
        ),
        "neighbors until times under a condition": lambda: graph.sample_neighbors(
            people, "writes", 4, where="weight > 1 and dst.vec[0] > 20", replace=False, **seen
        ),
        "subgraph until times under a condition": lambda: graph.sample_subgraph(
            papers[:30], [5, 3], ["writes", "by"], ntype="paper", where="type == 'by' or type == 'writes' and weight > 1", **asked
        ),
        "fanout until times": lambda: graph.sample_fanout(papers, ["by", "writes"], [3, 2], **seen | {"times": of_papers}),
        "the last of a fanout": lambda: graph.sample_fanout(people, ["writes", "cites"], [3, 2], replace=False, strategy="last", **seen),
        "neighbors that had come": lambda: graph.sample_neighbors(papers, "by", 5, times=of_papers % 99, edge_times=True, seed=seed),
        "subgraph until times": lambda: graph.sample_subgraph(papers[:30], [5, 3], ["writes", "by", "cites"], ntype="paper", **asked),
        "subgraph of the last": lambda: graph.sample_subgraph(papers[:30], [5, -1], ["writes", "by"], ntype="paper", strategy="last", **asked),
        "the same again, until times": lambda: graph.replay(graph.sample_neighbors(people, "writes", 3, **seen).token, people, times=of_people),
    }
