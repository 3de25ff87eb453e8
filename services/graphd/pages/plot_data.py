"""Data of plots, reduced to a bounded size: histogram bars and ranges of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators.reads import WeightHistogram

MAX_BARS = 64
"""Maximum bars of a histogram."""
MAX_RANGES = 250
"""Maximum ranges of partitions; in larger spaces neighboring partitions share a range."""
_OCTAVE, _ONE = 4, 596
"""Histogram bins per octave, and the first bin of weights from 1 on."""
_FEW, _MANY = 4, 40
"""Count up to which a progression is not abbreviated, and maximum ranges in a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramBar:
    """Rows with weights of at least ``low`` and less than ``high``."""

    low: float
    high: float
    rows: int
    weight: float
    """Sum of their weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRange:
    """Range of neighboring partitions; a single one in small spaces."""

    first: int
    last: int
    count: int
    """Number of live rows."""
    positive: int
    weight: float
    audit_tv: float
    """Largest total variation distance between a partition's table and its weights."""
    audit_rel: float
    """Largest relative error of a single share."""
    underflow: int


def histogram_bars(histogram: WeightHistogram) -> list[HistogramBar]:
    """Return histogram bars of equal width on a logarithmic axis.

    A bar is a quarter of an octave wide, or 2^k times as wide to keep to `MAX_BARS`.
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
    """Return the smallest weight of a bin."""
    return float(2.0 ** ((bin_ - _ONE) / _OCTAVE))


def part_ranges(totals: Sequence[common_pb.PartitionStats], parts: int) -> list[PartRange]:
    """Return totals of one type and weight name by ranges of partitions of equal length."""
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
    """Return integers as a short text: ``0-3, 7``, or ``0, 8, 16 to 992`` for every eighth."""
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
