"""Records of nodes in the order of what they are to others: by weight, by visits, by where walks
end.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass

import numpy as np
from numpy.typing import NDArray

from asterism.records.arrays import ArrayRecord, HeteroIds, Ids, Probabilities, Types, Weights


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class VisitSample(HeteroIds):
    """The nodes that walks from m nodes visited most, a row for each of the m."""

    nodes: Ids
    """int64 [m, n], most visits first, ties by id; -1 where there is none."""
    types: Types
    """int32 [m, n], node type ids, -1 where there is none."""
    infer_types: InitVar[bool] = False
    """Whether ``types`` are to be laid along the nodes, when they are first looked at."""
    counts: Ids
    """int64 [m, n], how often each was visited, 0 where there is none."""
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """bool [m, n]: where there is a node."""
        return np.asarray(self.nodes >= 0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PageRanks(ArrayRecord):
    """The nodes of the highest personalised PageRank of m nodes, a row for each of the m."""

    nodes: Ids
    """int64 [m, k], highest score first, ties by id; -1 where there is none."""
    types: Types
    """int32 [m, k], node type ids, -1 where there is none."""
    scores: Probabilities
    """float64 [m, k], 0 where there is none."""
    residuals: Probabilities
    """float64 [m]: the probability that is in no score, of these nodes or of others. No score is
    too large, and none too small by more.
    """
    version: int

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """bool [m, k]: where there is a node."""
        return np.asarray(self.nodes >= 0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TopNeighbors(ArrayRecord):
    """The heaviest neighbors of nodes, a row each, heaviest first."""

    nodes: Ids
    """int64 [m, k], padded with -1."""
    types: Types
    """int32 [m, k], edge type ids, -1 where there is none."""
    weights: Weights
    """float32 [m, k], 0 where there is none."""
    edge_ids: Ids | None
    """int64 [m, k]; None where not asked for."""
    version: int
