"""Census of one type: scanned rows in buckets, and the position of every sampled row.

One pass in bounded memory: state grows with the draws and the buckets, not with the type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asterism.records.samples import Ids
from asterism_model.partition_stats import PartitionStats

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]

OCTAVE_COUNT = 24
"""Number of weight classes, powers of two, on either side of the partition's mean weight."""
ZERO_CLASS = 2 * OCTAVE_COUNT
"""Class of weight 0."""
_SUM_TOLERANCE = 1e-11
"""Relative tolerance between two float64 sums of the same weights.

The sums in the manifest are compensated; those of a scan's batches are not.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeEnds:
    """Ends and weights of scanned or sampled edges."""

    src: Ids
    dst: Ids
    weights: NDArray[np.float32]


class TypeCensus:
    """Counts of one type's rows as they are scanned, with the positions of the sampled rows.

    Parameters
    ----------
    shares : sequence of PartitionStats
        Totals of the type in the sealed manifest. They determine the ends of buckets, and the scan
        is compared with them.
    buckets : int
        Number of groups of rows of equal mass, over all partitions in order.
    keys : ndarray of int64, shape (u,)
        Ids of the sampled rows, ascending and distinct.
    edges : bool
        True if rows have ends.
    """

    def __init__(
        self, shares: Sequence[PartitionStats], buckets: int, keys: Ids, *, edges: bool
    ) -> None:
        self.shares = {share.part: share for share in shares}
        self.buckets = buckets
        self.keys = keys
        self.scanned = 0
        self.weight_of_bucket, self.count_of_bucket = np.zeros(buckets + 1), np.zeros(buckets)
        self.weight_of_class, self.count_of_class = (
            np.zeros(ZERO_CLASS + 1),
            np.zeros(ZERO_CLASS + 1),
        )
        self.first_of_bucket = np.full((2, buckets + 1), -1, np.int64)
        """First row of each bucket, by weight and by count."""
        self.draw_counts = np.zeros(len(keys), np.int32)
        """Number of times each sampled row was scanned; should be 1."""
        self.part, self.bucket, self.count_bucket, self.octave = (
            np.zeros(len(keys), np.int32) for _ in range(4)
        )
        self.ends = (
            EdgeEnds(
                src=np.zeros(len(keys), np.int64),
                dst=np.zeros(len(keys), np.int64),
                weights=np.zeros(len(keys), np.float32),
            )
            if edges
            else None
        )
        self._total = sum(share.weight for share in shares)
        self._rows = sum(share.count for share in shares)
        self._weight_before = 0.0
        self._sums: dict[int, list[float]] = {}
        self._counts: dict[int, int] = {}
        self._positive: dict[int, int] = {}

    def add(
        self, part: int, ids: Ids, weights: NDArray[np.float32], ends: EdgeEnds | None = None
    ) -> None:
        """Count a batch of rows of one partition, in scan order.

        Parameters
        ----------
        part : int
            Partition of the rows.
        ids : ndarray of int64, shape (n,)
            Row ids.
        weights : ndarray of float32, shape (n,)
            Weights.
        ends : EdgeEnds, optional
            Ends of the rows, for edges.
        """
        weights64 = weights.astype(np.float64)
        positive = weights64 > 0
        cumulative = np.cumsum(weights64)
        weight_bucket, count_bucket = np.full(len(ids), self.buckets), np.zeros(len(ids), np.int64)
        if self._total > 0:
            weight_bucket = np.where(
                positive,
                ((self._weight_before + cumulative - weights64) * (self.buckets / self._total))
                .clip(0, self.buckets - 1)
                .astype(np.int64),
                self.buckets,
            )
        if self._rows:
            count_bucket = ((self.scanned + np.arange(len(ids))) * self.buckets // self._rows).clip(
                0, self.buckets - 1
            )
        weight_class = np.full(len(ids), ZERO_CLASS)
        share = self.shares.get(part)
        if share is not None and share.weight > 0:
            weight_class[positive] = (
                np.floor(np.log2(weights64[positive] * (share.positive / share.weight)))
                .clip(-OCTAVE_COUNT, OCTAVE_COUNT - 1)
                .astype(np.int64)
                + OCTAVE_COUNT
            )
        self.weight_of_bucket += np.bincount(weight_bucket, weights64, self.buckets + 1)
        self.count_of_bucket += np.bincount(count_bucket, minlength=self.buckets)
        self.weight_of_class += np.bincount(weight_class, weights64, ZERO_CLASS + 1)
        self.count_of_class += np.bincount(weight_class, minlength=ZERO_CLASS + 1)
        for row, bucket in enumerate((weight_bucket, count_bucket)):
            buckets, first_rows = np.unique(bucket, return_index=True)
            new = self.first_of_bucket[row, buckets] < 0
            self.first_of_bucket[row, buckets[new]] = ids[first_rows[new]]
        self._find(part, ids, weights, weight_bucket, count_bucket, weight_class, ends)
        self._weight_before += float(cumulative[-1]) if len(ids) else 0.0
        self.scanned += len(ids)
        self._sums.setdefault(part, []).append(float(np.sum(weights64)))
        self._counts[part] = self._counts.get(part, 0) + len(ids)
        self._positive[part] = self._positive.get(part, 0) + int(positive.sum())

    def _find(
        self,
        part: int,
        ids: Ids,
        weights: NDArray[np.float32],
        bucket: Ids,
        count_bucket: Ids,
        weight_class: Ids,
        ends: EdgeEnds | None,
    ) -> None:
        """Record the position of every sampled row in this batch."""
        rows, positions = match_ids(self.keys, ids)
        np.add.at(self.draw_counts, positions, 1)
        (
            self.part[positions],
            self.bucket[positions],
            self.count_bucket[positions],
            self.octave[positions],
        ) = part, bucket[rows], count_bucket[rows], weight_class[rows]
        if self.ends is not None and ends is not None:
            self.ends.src[positions], self.ends.dst[positions], self.ends.weights[positions] = (
                ends.src[rows],
                ends.dst[rows],
                weights[rows],
            )

    def checks(self) -> list[tuple[str, float, float, bool]]:
        """Return exact checks of every partition: rows, rows of positive weight, weight sums.

        Each is (description, value in the manifest, value from the scan, True if they agree).
        """
        checks = []
        for part, share in sorted(self.shares.items()):
            weight = math.fsum(self._sums.get(part, ()))
            count, positive = self._counts.get(part, 0), self._positive.get(part, 0)
            checks += [
                (f"rows of part {part}", float(share.count), float(count), share.count == count),
                (
                    f"rows with weight of part {part}",
                    float(share.positive),
                    float(positive),
                    share.positive == positive,
                ),
                (
                    f"weight of part {part}",
                    share.weight,
                    weight,
                    math.isclose(share.weight, weight, rel_tol=_SUM_TOLERANCE, abs_tol=0.0),
                ),
            ]
        checks.append(
            (
                "drawn rows that scans give twice",
                0.0,
                float((self.draw_counts > 1).sum()),
                not (self.draw_counts > 1).any(),
            )
        )
        return checks


def match_ids(keys: Ids, ids: Ids) -> tuple[Ids, Ids]:
    """Return the positions in ``ids`` and in ``keys`` of the ids that are among ``keys``.

    ``keys`` is ascending and distinct.
    """
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    positions = np.searchsorted(keys, ids).clip(0, len(keys) - 1)
    rows = np.flatnonzero(keys[positions] == ids)
    return rows, positions[rows]


@dataclass(slots=True, kw_only=True, eq=False)
class Neighborhood:
    """Edges of one type at chosen nodes, from a scan: the reference for neighbor samples."""

    starts: Ids
    """ndarray of int64, shape (m,), ascending and distinct: the chosen nodes."""
    limit: int
    """Maximum number of edges to keep; beyond it, the nodes with the most edges are dropped."""
    incomplete: NDArray[np.bool_] = field(init=False)
    _pieces: list[tuple[I32, Ids, Ids, NDArray[np.float32]]] = field(
        default_factory=list, init=False
    )
    _degree: Ids = field(init=False)

    def __post_init__(self) -> None:
        self.incomplete = np.zeros(len(self.starts), bool)
        self._degree = np.zeros(len(self.starts), np.int64)

    def add(self, local: Ids, remote: Ids, edge_ids: Ids, weights: NDArray[np.float32]) -> None:
        """Keep the edges of a batch at chosen nodes."""
        rows, positions = match_ids(self.starts, local)
        complete = ~self.incomplete[positions]
        rows, positions = rows[complete], positions[complete]
        if not len(rows):
            return
        self._pieces.append(
            (positions.astype(np.int32), remote[rows], edge_ids[rows], weights[rows])
        )
        self._degree += np.bincount(positions, minlength=len(self.starts))
        while int(self._degree.sum()) > self.limit:
            largest_start = int(np.argmax(self._degree))
            self.incomplete[largest_start], self._degree[largest_start] = True, 0
            masked_pieces = [(piece, piece[0] != largest_start) for piece in self._pieces]
            self._pieces = [
                (p[0][k], p[1][k], p[2][k], p[3][k]) for p, k in masked_pieces if k.any()
            ]

    def edges(self) -> tuple[Ids, Ids, Ids, NDArray[np.float32]]:
        """Return (position in ``starts``, remote end, edge id, weight) of every edge.

        Edges are ordered by position, then by edge id.
        """
        if not self._pieces:
            return (
                np.zeros(0, np.int64),
                np.zeros(0, np.int64),
                np.zeros(0, np.int64),
                np.zeros(0, np.float32),
            )
        positions, remote, edge_ids, weights = (
            np.concatenate(column) for column in zip(*self._pieces, strict=True)
        )
        order = np.lexsort((edge_ids, positions))
        return positions[order].astype(np.int64), remote[order], edge_ids[order], weights[order]
