"""Views of weight statistics of a version: skew, invalid values, sampling error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from pydantic import Field

from asterism_daemonkit.http.models import HttpModel
from asterism_model.elements import Element
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import Schema
from asterism_model.weight_names import canonical_weight_name
from asterism_model.weight_stats import compute_weight_stats


class WeightStatsView(HttpModel):
    """Statistics of the weights of one type and weight name, over all partitions."""

    element: Literal["node", "edge"]
    type: str = Field(examples=["paper", "author:writes:paper"])
    weight_name: str = Field(examples=["", "popular"])
    """Name of the weight table; empty for the rows' own weights."""
    expression: str = Field(examples=["", "pow(clicks, 0.75)"])
    """Expression that computes the weights; empty for the rows' own weights."""
    count: int
    """Number of live rows: positive, zero, negative, nan and infinite together."""
    positive: int
    """Number of rows with positive weight, which weighted sampling selects from."""
    zero: int
    """Number of rows with a weight of exactly 0."""
    subnormal: int
    """Number of positive weights below 2^-126, which have lost precision."""
    negative: int
    """Number of rows with a negative weight; negative, nan and infinite weights count as 0."""
    nan: int
    infinite: int
    """Number of infinite weights of either sign, or beyond float32."""
    weight: float
    """Sum of the weights, W."""
    effective: float | None
    """Effective sample size, W^2 / sum of squares; null if no row can be sampled.

    It is the number of rows of equal weight that would be as even."""
    largest_share: float | None
    """Share of the heaviest row."""
    audit_tv: float
    """Largest total variation between a partition's table and its weights, at build time."""
    audit_rel: float
    """Largest relative error of one probability within its partition."""
    underflow: int
    """Number of probabilities below 2^-64, which are never sampled."""
    error_bound: float
    """Bound of the total variation between samples and weights.

    It covers tables, random words and the choice among partitions."""


def weight_stats_views(schema: Schema, totals: Sequence[PartitionStats]) -> list[WeightStatsView]:
    """Return weight statistics of a version: nodes, then edges, by type.

    For each type, its own weights come first, then its tables by name."""
    groups: dict[tuple[int, int, str], list[PartitionStats]] = {}
    for stats in totals:
        name = canonical_weight_name(stats.weight_name)
        groups.setdefault((stats.element.number, stats.type_id, name), []).append(stats)
    views = []
    for (element, type_id, name), group in sorted(groups.items()):
        is_node = element == Element.NODE.number
        owner = (schema.node_types if is_node else schema.edge_types)[type_id]
        views.append(
            WeightStatsView(
                element="node" if is_node else "edge",
                type=owner.name,
                weight_name=name,
                expression=owner.table(name).expression if name else "",
                **asdict(compute_weight_stats(group)),
            )
        )
    return views
