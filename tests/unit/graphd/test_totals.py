"""Tests of totals of a version: the rows that draws can reach."""

from __future__ import annotations

from asterism_model.elements import EDGE, NODE
from asterism_model.partition_stats import PartitionTotals
from graphd.routing.totals import VersionTotals

TOTALS = VersionTotals(
    parts=2,
    part_totals={
        (NODE, 0, 0): PartitionTotals(count=5, positive=3, weight=6.0),
        (NODE, 0, 1): PartitionTotals(count=2, positive=2, weight=1.0),
        (NODE, 1, 0): PartitionTotals(count=4, positive=0, weight=0.0),
        (EDGE, 0, 0): PartitionTotals(count=9, positive=8, weight=9.0),
    },
)


def test_weighted_draws_reach_rows_with_weight_only() -> None:
    assert TOTALS.drawable_count(NODE, [0], uniform=False) == 5
    assert TOTALS.drawable_count(NODE, [0, 1], uniform=False) == 5
    assert TOTALS.drawable_count(EDGE, [0], uniform=False) == 8


def test_uniform_draws_reach_every_live_row() -> None:
    assert TOTALS.drawable_count(NODE, [0], uniform=True) == 7
    assert TOTALS.drawable_count(NODE, [0, 1], uniform=True) == 11
