"""What is shown of a version's weights: how even, how odd, how exactly they are drawn by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from pydantic import Field

from asterism_model.elements import canonical_weight_name
from asterism_model.partition_stats import Element, PartitionStats
from asterism_model.schema import Schema
from asterism_model.weight_stats import compute_weight_stats
from metad.http.views import ApiModel


class WeightStatsView(ApiModel):
    """What the weights of one type and name are like, over all parts."""

    element: Literal["node", "edge"]
    type: str = Field(examples=["paper", "author:writes:paper"])
    weight_name: str = Field(examples=["", "popular"])
    """Empty: the rows' own weights; else a table's name."""
    expression: str = Field(examples=["", "pow(clicks, 0.75)"])
    """What the weights are made of; empty: they are the rows' own."""
    count: int
    """Live rows: positive, zero, negative, nan and infinite together."""
    positive: int
    """Rows of positive weight: what draws by weight choose from."""
    zero: int
    """Rows that weigh 0 by themselves."""
    subnormal: int
    """Positive weights below 2^-126, which have lost bits."""
    negative: int
    """Rows for which the expression gave a negative number; these and the next two weigh 0."""
    nan: int
    infinite: int
    """Of either sign, or beyond float32."""
    weight: float
    """The sum of weights, W."""
    effective: float | None
    """Effective sample size, W^2 / sum of squares: how many rows of equal weight would be as even;
    null where nothing can be drawn.
    """
    largest_share: float | None
    """Of the heaviest row."""
    audit_tv: float
    """Largest total variation between a part's table and its weights, as found when it was
    built.
    """
    audit_rel: float
    """Largest relative error of one share within its part."""
    underflow: int
    """Shares below 2^-64, which are never drawn."""
    error_bound: float
    """How far draws by these weights can be from them, in total variation, over tables, random
    words and the choice among parts.
    """


def weight_stats_views(schema: Schema, totals: Sequence[PartitionStats]) -> list[WeightStatsView]:
    """A version's weights: nodes, then edges, of each type its own weights and then its tables by
    name.
    """
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
