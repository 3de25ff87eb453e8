"""Graphs with communities, so that a partitioner has something to find."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def communities(
    nodes: int, edges: int, *, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sources, ascending, and destinations: eight in ten edges lead to one of the next thousandth
    of the nodes.
    """
    generator = np.random.default_rng(seed)
    src = np.sort(generator.integers(0, nodes, edges))
    nearby = (src + generator.integers(1, max(2, nodes // 1000), edges)) % nodes
    return src, np.where(generator.random(edges) < 0.8, nearby, generator.integers(0, nodes, edges))
