"""Tests of totals of a version: the rows that draws can reach."""

from __future__ import annotations

from dataclasses import replace

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


def test_shares_depend_on_element_and_measure() -> None:
    weighted = TOTALS.shares(NODE, [0], uniform=False)
    uniform = TOTALS.shares(NODE, [0], uniform=True)
    edges = TOTALS.shares(EDGE, [0], uniform=False)
    assert [shares.measure.tolist() for shares in (weighted, uniform, edges)] == [
        [6, 1],
        [5, 2],
        [9, 0],
    ]


def test_named_weights_replace_those_of_their_types() -> None:
    named = {(NODE, 0, 0): PartitionTotals(count=5, positive=1, weight=0.5)}
    totals = replace(TOTALS, by_weight_name={"age": named}).with_weights("age")
    assert totals.shares(NODE, [0], uniform=False).measure.tolist() == [0.5, 1]
    assert totals.drawable_count(NODE, [0], uniform=False) == 3
    assert totals.shares(EDGE, [0], uniform=False).total == 9


def test_rows_are_those_of_the_given_types() -> None:
    assert [TOTALS.rows(NODE, types) for types in ([0], [1], [0, 1], [])] == [7, 4, 11, 11]
    assert (TOTALS.nodes([1]), TOTALS.edges([])) == (4, 9)
