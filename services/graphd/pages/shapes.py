"""What grows with a graph, brought to a size that a plot shows: bars of a histogram, runs of parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from asterism_proto.v1 import common_pb2 as pb
from graphd.read import Spread

BARS = 64
"""Of a histogram, at most."""
RUNS = 250
"""Of parts, at most: where a space has more, neighbors share one."""
_OCTAVE, _ONE = 4, 596
"""Bins of a spread between two powers of two; that of weights from 1 on."""
_FEW, _MANY = 4, 40
"""Numbers that are all written out; spans of numbers that are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Rows whose weight is at least ``low`` and below ``high``."""

    low: float
    high: float
    rows: int
    weight: float
    """The sum of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Neighboring parts, one in a space of few."""

    first: int
    last: int
    count: int
    """Live rows."""
    positive: int
    weight: float
    audit_tv: float
    """Largest total variation between a part's table and its weights."""
    audit_rel: float
    """Largest relative error of one share."""
    underflow: int


def bars(spread: Spread) -> list[Bar]:
    """A histogram on a logarithmic axis: all bars as wide, a quarter of an octave or as many as it takes."""
    used = np.flatnonzero(spread.counts)
    if not used.size:
        return []
    first, last = int(used[0]), int(used[-1])
    wide = 1
    while last // wide - first // wide + 1 > BARS:
        wide *= 2
    found = []
    for group in range(first // wide, last // wide + 1):
        own = slice(group * wide, (group + 1) * wide)
        found.append(Bar(low=_bound(own.start), high=_bound(own.stop), rows=int(spread.counts[own].sum()), weight=float(spread.sums[own].sum())))
    return found


def _bound(bin_: int) -> float:
    """The smallest weight of a bin."""
    return float(2.0 ** ((bin_ - _ONE) / _OCTAVE))


def runs(totals: Sequence[pb.Total], parts: int) -> list[Run]:
    """Totals of one type and name by part, in runs of equal length."""
    wide = -(-parts // RUNS) if parts else 1
    groups: dict[int, list[pb.Total]] = {}
    for total in totals:
        groups.setdefault(total.part // wide, []).append(total)
    return [
        Run(
            first=group * wide,
            last=min((group + 1) * wide, parts) - 1,
            count=sum(total.count for total in own),
            positive=sum(total.positive for total in own),
            weight=sum(total.weight for total in own),
            audit_tv=max(total.audit_tv for total in own),
            audit_rel=max(total.audit_rel for total in own),
            underflow=sum(total.underflow for total in own),
        )
        for group, own in sorted(groups.items())
    ]


def spans(numbers: Sequence[int]) -> str:
    """Whole numbers as people write them, shortened where they are many: ``0-3, 7``, or ``0, 8, 16 to 992`` for every eighth."""
    ordered = sorted(set(numbers))
    steps = {after - before for before, after in pairwise(ordered)}
    if len(ordered) > _FEW and len(steps) == 1 and steps != {1}:
        return f"{ordered[0]}, {ordered[1]}, {ordered[2]} to {ordered[-1]}"
    found: list[list[int]] = []
    for number in ordered:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    said = [str(low) if low == high else f"{low}-{high}" for low, high in found]
    return ", ".join(said[:_MANY]) + (f", and {len(said) - _MANY} more" if len(said) > _MANY else "")
