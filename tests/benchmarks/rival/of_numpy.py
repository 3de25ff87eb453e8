"""NumPy, one call over all draws: the usual code without a library."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from answering import Graph, answer, real
from numpy.typing import NDArray

Array = NDArray[Any]


def main(folder: str) -> None:
    graph = Graph.at(folder)
    src, dst, weights, starts = (graph.column(name) for name in ("src", "dst", "weights", "starts"))
    order = np.argsort(src, kind="stable")
    dst, cumulative_weights = dst[order], np.cumsum(weights[order].astype(np.float64))
    indptr = np.r_[0, np.cumsum(np.bincount(src, minlength=graph.nodes))]
    row_offsets = np.r_[0.0, cumulative_weights][indptr]
    node_weights = graph.column("node_weights").astype(np.float64)
    probabilities, total = node_weights / node_weights.sum(), np.cumsum(node_weights)
    del src, weights, order

    walkers = starts[: graph.walkers]

    def uniform(nodes: Array, width: int, seed: int) -> Array:
        low, degree = indptr[nodes][:, None], np.diff(indptr)[nodes][:, None]
        slots = low + (np.random.default_rng(seed).random((len(nodes), width)) * degree).astype(
            np.int64
        )
        return np.where(degree > 0, dst[np.minimum(slots, dst.size - 1)], -1)

    def weighted(nodes: Array, width: int, seed: int) -> Array:
        low, high = row_offsets[nodes][:, None], row_offsets[nodes + 1][:, None]
        points = low + np.random.default_rng(seed).random((len(nodes), width)) * (high - low)
        slots = np.searchsorted(cumulative_weights, points, side="right")
        return np.where(high > low, dst[np.minimum(slots, dst.size - 1)], -1)

    def walk(seed: int) -> Array:
        walks = np.full((walkers.size, graph.length + 1), -1, np.int64)
        walks[:, 0] = walkers
        for step in range(graph.length):
            active = np.flatnonzero(walks[:, step] >= 0)
            walks[active, step + 1] = weighted(walks[active, step], 1, seed * graph.length + step)[
                :, 0
            ]
        return walks

    size = np.size
    answer(
        f"NumPy {np.__version__}",
        {
            "nodes by weight": (
                lambda seed: np.random.default_rng(seed).choice(
                    graph.nodes, graph.draws // 10, p=probabilities
                ),
                size,
            ),
            "nodes by weight, sums kept": (
                lambda s: np.searchsorted(
                    total, np.random.default_rng(s).random(graph.draws) * total[-1]
                ),
                size,
            ),
            "neighbors by weight": (lambda seed: weighted(starts, graph.width, seed), size),
            "neighbors uniformly": (lambda seed: uniform(starts, graph.width, seed), size),
            "walks by weight": (walk, real),
        },
    )


if __name__ == "__main__":
    main(sys.argv[1])
