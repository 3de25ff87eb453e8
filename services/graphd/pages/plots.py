"""What grows with a graph, brought to a size that a plot shows: bars of a histogram, runs of
parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators.reads import WeightHistogram

MAX_BARS = 64
"""Of a histogram, at most."""
MAX_RANGES = 250
"""Of parts, at most: where a space has more, neighbors share one."""
_OCTAVE, _ONE = 4, 596
"""Bins of a spread between two powers of two; that of weights from 1 on."""
_FEW, _MANY = 4, 40
"""Numbers that are all written out; spans of numbers that are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramBar:
    """Rows whose weight is at least ``low`` and below ``high``."""

    low: float
    high: float
    rows: int
    weight: float
    """The sum of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRange:
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


def histogram_bars(histogram: WeightHistogram) -> list[HistogramBar]:
    """A histogram on a logarithmic axis: all bars as wide, a quarter of an octave or as many as it
    takes.
    """
    nonempty = np.flatnonzero(histogram.counts)
    if not nonempty.size:
        return []
    first, last = int(nonempty[0]), int(nonempty[-1])
    width = 1
    while last // width - first // width + 1 > MAX_BARS:
        width *= 2
    bars = []
    for group in range(first // width, last // width + 1):
        bins = slice(group * width, (group + 1) * width)
        bars.append(
            HistogramBar(
                low=_bound(bins.start),
                high=_bound(bins.stop),
                rows=int(histogram.counts[bins].sum()),
                weight=float(histogram.sums[bins].sum()),
            )
        )
    return bars


def _bound(bin_: int) -> float:
    """The smallest weight of a bin."""
    return float(2.0 ** ((bin_ - _ONE) / _OCTAVE))


def part_ranges(totals: Sequence[common_pb.PartitionStats], parts: int) -> list[PartRange]:
    """Totals of one type and name by part, in runs of equal length."""
    width = -(-parts // MAX_RANGES) if parts else 1
    groups: dict[int, list[common_pb.PartitionStats]] = {}
    for total in totals:
        groups.setdefault(total.part // width, []).append(total)
    return [
        PartRange(
            first=group * width,
            last=min((group + 1) * width, parts) - 1,
            count=sum(total.count for total in group_totals),
            positive=sum(total.positive for total in group_totals),
            weight=sum(total.weight for total in group_totals),
            audit_tv=max(total.audit_tv for total in group_totals),
            audit_rel=max(total.audit_rel for total in group_totals),
            underflow=sum(total.underflow for total in group_totals),
        )
        for group, group_totals in sorted(groups.items())
    ]


def format_ranges(numbers: Sequence[int]) -> str:
    """Whole numbers as people write them, shortened where they are many: ``0-3, 7``, or ``0, 8, 16
    to 992`` for every eighth.
    """
    ordered = sorted(set(numbers))
    steps = {following - previous for previous, following in pairwise(ordered)}
    if len(ordered) > _FEW and len(steps) == 1 and steps != {1}:
        return f"{ordered[0]}, {ordered[1]}, {ordered[2]} to {ordered[-1]}"
    ranges: list[list[int]] = []
    for number in ordered:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in ranges]
    return ", ".join(texts[:_MANY]) + (
        f", and {len(texts) - _MANY} more" if len(texts) > _MANY else ""
    )
