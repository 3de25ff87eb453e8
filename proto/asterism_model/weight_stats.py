"""Statistics of the weights of a version: special values, evenness, sampling accuracy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import Protocol


class WeightTotals(Protocol):
    """Statistics of one partition, type and weight name, as reported by a build.

    These are the fields of ``asterism.v1.PartitionStats`` that `compute_weight_stats` uses.
    """

    @property
    def count(self) -> int: ...  # noqa: D102 - as in common.proto, and so are the others
    @property
    def positive(self) -> int: ...  # noqa: D102
    @property
    def weight(self) -> float: ...  # noqa: D102
    @property
    def audit_tv(self) -> float: ...  # noqa: D102
    @property
    def audit_rel(self) -> float: ...  # noqa: D102
    @property
    def underflow(self) -> int: ...  # noqa: D102
    @property
    def zero(self) -> int: ...  # noqa: D102
    @property
    def subnormal(self) -> int: ...  # noqa: D102
    @property
    def negative(self) -> int: ...  # noqa: D102
    @property
    def nan(self) -> int: ...  # noqa: D102
    @property
    def infinite(self) -> int: ...  # noqa: D102
    @property
    def squares(self) -> float: ...  # noqa: D102
    @property
    def largest(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightStats:
    """Statistics of the weights of one type and weight name, over all partitions."""

    count: int
    """Live rows: the sum of positive, zero, negative, nan and infinite."""
    positive: int
    """Rows of positive weight: the candidates of weighted sampling."""
    zero: int
    """Rows with an original weight of 0."""
    subnormal: int
    """Rows with a positive weight below 2^-126, which has lost precision."""
    negative: int
    """Rows for which the expression is negative. These rows, and those counted in ``nan`` and
    ``infinite``, get weight 0 (``invalid: zero``).
    """
    nan: int
    """Rows for which the expression is NaN."""
    infinite: int
    """Rows for which the expression is infinite (either sign) or exceeds float32."""
    weight: float
    """Sum of the weights, W."""
    effective: float | None
    """Effective sample size, W^2 / sum of squares (Kish 1965).

    This is the number of rows of equal weight that would be as even. None if no row has positive
    weight, or if the build of the version did not report squares."""
    largest_share: float | None
    """Largest weight divided by W; None in the same cases as ``effective``."""
    audit_tv: float
    """Largest total variation distance of an alias table from the weights, over partitions.

    The build measures it.
    """
    audit_rel: float
    """Largest relative error of the probability of one row within its partition."""
    underflow: int
    """Rows with a probability below 2^-64, which are never sampled."""
    error_bound: float
    """Upper bound of the total variation distance between sampling and the weights.

    It adds up the errors of the partitions' alias tables, weighted by their share of W; n 2^-64 for
    a random word that selects one of n columns and its coin; and 2^-52 per partition for the choice
    of a partition."""


def compute_weight_stats(totals: Iterable[WeightTotals]) -> WeightStats:
    """Aggregate the statistics of partitions; sums over partitions are rounded once.

    Parameters
    ----------
    totals : iterable of WeightTotals
        Statistics of one type and weight name, one entry per partition.

    Returns
    -------
    WeightStats
    """
    parts = list(totals)
    weight = fsum(part.weight for part in parts)
    squares = fsum(part.squares for part in parts)
    has_squares = weight > 0 and squares > 0
    errors = (
        [part.weight / weight * (part.audit_tv + part.positive * 2.0**-64) for part in parts]
        if weight > 0
        else []
    )
    return WeightStats(
        count=sum(part.count for part in parts),
        positive=sum(part.positive for part in parts),
        zero=sum(part.zero for part in parts),
        subnormal=sum(part.subnormal for part in parts),
        negative=sum(part.negative for part in parts),
        nan=sum(part.nan for part in parts),
        infinite=sum(part.infinite for part in parts),
        weight=weight,
        effective=weight * weight / squares if has_squares else None,
        largest_share=max(part.largest for part in parts) / weight if has_squares else None,
        audit_tv=max((part.audit_tv for part in parts), default=0.0),
        audit_rel=max((part.audit_rel for part in parts), default=0.0),
        underflow=sum(part.underflow for part in parts),
        error_bound=fsum([*errors, len(parts) * 2.0**-52]) if errors else 0.0,
    )
