"""What the weights of a version are like, over all parts: odd values, how even they are, how
exactly they are drawn by.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import Protocol


class WeightTotals(Protocol):
    """What a build reported of one (part, type, weight name): the fields of ``asterism.v1.Total``
    that count here.
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
    """What the weights of one type and name are like."""

    count: int
    """Live rows: positive, zero, negative, nan and infinite together."""
    positive: int
    """Rows of positive weight: what draws by weight choose from."""
    zero: int
    """Rows that weigh 0 by themselves."""
    subnormal: int
    """Positive weights below 2^-126, which have lost bits."""
    negative: int
    """Rows for which an expression gave a negative number; these and the next two weigh 0
    (``invalid: zero``).
    """
    nan: int
    infinite: int
    """Of either sign, or beyond float32."""
    weight: float
    """The sum of weights, W."""
    effective: float | None
    """Effective sample size, W^2 / sum of squares: how many rows of equal weight would be as even
    (Kish 1965). None: there is nothing to draw, or the version is of a build that did not say."""
    largest_share: float | None
    """Of the heaviest row; None as before."""
    audit_tv: float
    """Largest total variation between a part's table and its weights, as found when it was
    built.
    """
    audit_rel: float
    """Largest relative error of one share within its part."""
    underflow: int
    """Shares below 2^-64, which are never drawn."""
    error_bound: float
    """How far draws by these weights can be from them, in total variation: the parts' tables, in
    proportion to what the parts weigh; n 2^-64 for a word that stands for a column of n and its
    coin; 2^-52 a part for the choice among parts."""


def compute_weight_stats(totals: Iterable[WeightTotals]) -> WeightStats:
    """What the weights are like whose totals, one per part, these are; sums over parts are rounded
    once.
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
