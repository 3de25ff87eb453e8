"""Tests of counts of subgraph content over batches in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

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


def norms_of(node_counts: np.ndarray, edge_counts: np.ndarray, batches: int) -> Normalization:
    """Return norms with one edge to each node."""
    rows = np.arange(len(node_counts))
    return Normalization(
        nodes=rows,
        edges=rows,
        ends=rows,
        node_counts=node_counts,
        edge_counts=edge_counts,
        batches=batches,
        version=1,
    )


@pytest.mark.parametrize(("batches", "p"), [(150, 0.3), (500, 0.1), (1000, 0.5)])
def test_node_norms_are_high_by_the_inverse_of_the_count(batches: int, p: float) -> None:
    """Over the binomial counts of a node, N / C exceeds 1 / p by about (1 - p) / (N p).

    (N + 1) / (C + 1) has the expectation 1 / p, up to (1 - p)^(N + 1).
    """
    counts = np.arange(1, batches + 1)
    norms = norms_of(counts, counts, batches)
    shares = binom.pmf(counts, batches, p) / (1 - binom.pmf(0, batches, p))
    bias = p * len(counts) * float(shares @ norms.node_norm.astype(np.float64)) - 1
    first_order = (1 - p) / (batches * p)
    assert first_order < bias < first_order * (1 + 4 / (batches * p))
    all_counts = np.arange(batches + 1)
    corrected = float(binom.pmf(all_counts, batches, p) @ ((batches + 1) / (all_counts + 1)))
    assert p * corrected == pytest.approx(1 - (1 - p) ** (batches + 1), rel=1e-12)


@pytest.mark.parametrize(("node_count", "share"), [(60, 0.5), (150, 0.2), (400, 0.9)])
def test_edge_norms_are_high_by_the_inverse_of_the_count(node_count: int, share: float) -> None:
    """Of the C_v batches with its node, an edge is in a binomial number."""
    edge_counts = np.arange(1, node_count + 1)
    norms = norms_of(np.full(node_count, node_count), edge_counts, 2 * node_count)
    shares = binom.pmf(edge_counts, node_count, share) / (1 - binom.pmf(0, node_count, share))
    bias = share * float(shares @ norms.edge_norm.astype(np.float64)) - 1
    first_order = (1 - share) / (node_count * share)
    assert first_order < bias < first_order * (1 + 4 / (node_count * share))
