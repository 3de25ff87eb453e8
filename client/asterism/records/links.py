"""Records of edges by place, and of links with their negatives."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.records.arrays import ArrayRecord, Ids, Weights


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EdgeRows(ArrayRecord):
    """Edges of one type, in the order asked for."""

    src: Ids
    """int64 [m]."""
    dst: Ids
    """int64 [m]."""
    edge_ids: Ids
    """int64 [m]."""
    weights: Weights
    """float32 [m]."""
    version: int

    def __len__(self) -> int:
        return len(self.src)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class LinkSeeds(ArrayRecord):
    """Positive edges and negatives of them: what a link-level batch starts from."""

    src: Ids
    """int64 [k]: sources; of positives, and behind these ("binary") of negatives."""
    dst: Ids
    """int64 [k]: destinations, likewise."""
    labels: Weights | None
    """float32 [k]: 1 for positives, 0 for negatives; None of triplets."""
    negatives: Ids | None
    """int64 [m, n]: of triplets, each positive's negative destinations, -1 where there is none;
    else None.
    """
    positives: int
    """How many edges are positives: the first of ``src`` and ``dst``."""
    edge_ids: Ids | None
    """int64 [positives]; None where they were not told."""
    etype: str
    seed: int
    version: int

    def __len__(self) -> int:
        return len(self.src)
