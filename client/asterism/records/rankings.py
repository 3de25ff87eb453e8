"""Records of ranked nodes: by edge weight, by visits, by PageRank."""

from __future__ import annotations

from dataclasses import InitVar, dataclass

import numpy as np
from numpy.typing import NDArray

from asterism.records.arrays import ArrayRecord, HeteroIds, Ids, Probabilities, Types, Weights


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class VisitSample(HeteroIds):
    """Nodes that walks from m nodes visited most, one row per start node."""

    nodes: Ids
    """ndarray of int64, shape (m, n): most visits first, ties by id; -1 where there is none."""
    types: Types
    """ndarray of int32, shape (m, n): node type ids, -1 where there is none."""
    infer_types: InitVar[bool] = False
    """Compute ``types`` from ``nodes`` on first access."""
    counts: Ids
    """ndarray of int64, shape (m, n): number of visits, 0 where there is none."""
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """ndarray of bool, shape (m, n): True where there is a node."""
        return np.asarray(self.nodes >= 0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PageRanks(ArrayRecord):
    """Nodes of the highest personalized PageRank for m nodes, one row per start node."""

    nodes: Ids
    """ndarray of int64, shape (m, k): highest score first, ties by id; -1 where there is none."""
    types: Types
    """ndarray of int32, shape (m, k): node type ids, -1 where there is none."""
    scores: Probabilities
    """ndarray of float64, shape (m, k): scores, 0 where there is none."""
    residuals: Probabilities
    """ndarray of float64, shape (m,): probability that no score holds.

    It covers the returned nodes and all other nodes. Scores are never too large, and too small by
    at most this.
    """
    version: int

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """ndarray of bool, shape (m, k): True where there is a node."""
        return np.asarray(self.nodes >= 0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TopNeighbors(ArrayRecord):
    """Heaviest neighbors of nodes, one row each, heaviest first."""

    nodes: Ids
    """ndarray of int64, shape (m, k): neighbor ids, padded with -1."""
    types: Types
    """ndarray of int32, shape (m, k): edge type ids, -1 where there is none."""
    weights: Weights
    """ndarray of float32, shape (m, k): edge weights, 0 where there is none."""
    edge_ids: Ids | None
    """ndarray of int64, shape (m, k): edge ids; None if not requested."""
    version: int
