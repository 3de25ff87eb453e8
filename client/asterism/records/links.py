"""Records of edges by position, and of link prediction seeds."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.records.arrays import ArrayRecord, Ids, Weights


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EdgeRows(ArrayRecord):
    """Edges of one type, in the order of the request."""

    src: Ids
    """ndarray of int64, shape (m,): sources."""
    dst: Ids
    """ndarray of int64, shape (m,): destinations."""
    edge_ids: Ids
    """ndarray of int64, shape (m,): edge ids."""
    weights: Weights
    """ndarray of float32, shape (m,): weights."""
    version: int

    def __len__(self) -> int:
        return len(self.src)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LinkSeeds(ArrayRecord):
    """Positive edges and their negatives: the seeds of a link prediction batch."""

    src: Ids
    """ndarray of int64, shape (k,): sources of positives, then ("binary") of negatives."""
    dst: Ids
    """ndarray of int64, shape (k,): destinations, in the same order."""
    labels: Weights | None
    """ndarray of float32, shape (k,): 1 for positives, 0 for negatives; None for triplets."""
    negatives: Ids | None
    """ndarray of int64, shape (m, n): negative destinations of each triplet's positive.

    -1 where there is none. None for "binary".
    """
    positives: int
    """Number of positives, which come first in ``src`` and ``dst``."""
    edge_ids: Ids | None
    """ndarray of int64, shape (positives,): edge ids; None if unknown."""
    etype: str
    seed: int
    version: int

    def __len__(self) -> int:
        return len(self.src)
