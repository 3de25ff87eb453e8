"""Tests of counts of subgraph content over batches in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from asterism.saint import NodeSampler, Normalization


class FixedSampler(NodeSampler):
    """Sampler with node i and edge i in batch i, of four each."""

    def __init__(self) -> None:
        self.graph: Any = SimpleNamespace(version=1)
        self.etype = "n:to:n"

    def _zero_counts(self, end: str) -> Normalization:
        rows, zeros = np.arange(4), np.zeros(4, np.int64)
        return Normalization(
            nodes=rows,
            edges=rows,
            ends=rows,
            node_counts=zeros,
            edge_counts=zeros.copy(),
            batches=0,
            version=1,
        )

    def _nodes(self, stream: int, i: int) -> np.ndarray:
        return np.array([i % 4])

    def _induced(self, nodes: np.ndarray) -> Any:
        return SimpleNamespace(edge_ids={self.etype: nodes})


def test_norms_that_are_extended_stay_as_they_were() -> None:
    sampler = FixedSampler()
    earlier = sampler.normalize(1)
    extended = sampler.normalize(2, known=earlier)
    assert (earlier.node_counts.tolist(), earlier.edge_counts.tolist()) == ([1] * 4, [1] * 4)
    assert (extended.node_counts.tolist(), extended.edge_counts.tolist()) == ([2] * 4, [2] * 4)
    assert (earlier.batches, extended.batches) == (4, 8)
