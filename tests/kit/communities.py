"""Graphs with communities, which a partitioner can find."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def communities(
    nodes: int, edges: int, *, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sources, ascending, and destinations.

    Eight in ten edges lead to one of the next thousandth of the nodes.
    """
    generator = np.random.default_rng(seed)
    src = np.sort(generator.integers(0, nodes, edges))
    nearby = (src + generator.integers(1, max(2, nodes // 1000), edges)) % nodes
    return src, np.where(generator.random(edges) < 0.8, nearby, generator.integers(0, nodes, edges))
