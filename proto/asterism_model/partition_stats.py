"""Statistics of one partition of a version: rows and weights of each type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asterism_model.elements import Element, element_from_proto
from asterism_model.weight_names import OWN_WEIGHTS
from asterism_proto.v1 import common_pb2 as common_pb


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTotals:
    """Rows and weight of one type in one partition, for choosing a partition in global draws."""

    count: int
    """Live rows: the partition's share in uniform draws."""
    positive: int
    """Rows of positive weight: the number of distinct rows that weighted draws can return."""
    weight: float
    """Sum of the weights: the partition's share in weighted draws."""


TotalsKey = tuple[int, int, int]
"""Key of totals: (element number, type id, partition)."""


def totals_by_weight_name(
    messages: Iterable[common_pb.PartitionStats],
) -> tuple[dict[TotalsKey, PartitionTotals], dict[str, dict[TotalsKey, PartitionTotals]]]:
    """Split partition totals by the name of their weights.

    Returns
    -------
    own_totals : dict of TotalsKey to PartitionTotals
        Totals by the rows' own weights.
    named_totals : dict of str to dict of TotalsKey to PartitionTotals
        Totals by each weight table, by the name of the table.
    """
    own_totals: dict[TotalsKey, PartitionTotals] = {}
    named_totals: dict[str, dict[TotalsKey, PartitionTotals]] = {}
    for message in messages:
        totals = (
            own_totals
            if message.weight_name in OWN_WEIGHTS
            else named_totals.setdefault(message.weight_name, {})
        )
        totals[int(message.element), message.type_id, message.part] = PartitionTotals(
            count=message.count, positive=message.positive, weight=message.weight
        )
    return own_totals, named_totals


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStats:
    """Statistics of one type in one partition, by weights of one name."""

    part: int
    element: Element
    """NODE or EDGE."""
    type_id: int
    count: int
    """Live rows: the partition's share in uniform draws."""
    positive: int
    """Rows of positive weight: the size of the alias table."""
    weight: float
    """Sum of the weights: a Neumaier sum in canonical order."""
    audit_tv: float = 0.0
    """Total variation distance between the alias table's exact distribution and the weights."""
    audit_rel: float = 0.0
    """Largest relative error of the probability of one row."""
    dropped: int = 0
    """Edges dropped because the node at one end is deleted at the commit watermark."""
    underflow: int = 0
    """Rows with a probability below 2^-64."""
    weight_name: str = ""
    """Name of the weights: "" or "weight" for the rows' own, else the name of a weight table."""
    zero: int = 0
    """Rows with an original weight of 0.

    `asterism_model.weight_stats` aggregates this field and the following ones, up to ``largest``.
    """
    subnormal: int = 0
    """Rows with a weight above 0 and below 2^-126."""
    negative: int = 0
    """Rows for which the expression is negative. These rows, and those counted in ``nan`` and
    ``infinite``, get weight 0.
    """
    nan: int = 0
    """Rows for which the expression is NaN."""
    infinite: int = 0
    """Rows for which the expression is infinite (either sign) or exceeds float32."""
    squares: float = 0.0
    """Sum of the squared weights: a Neumaier sum in canonical order."""
    largest: float = 0.0
    """Largest weight."""
    mix_out: int = field(default=0, repr=False)
    """Sum, modulo 2^64, of a hash of (id, src, dst, weight) over the out-copies of edges.

    metad compares this field and the following ones before it publishes a version.
    """
    mix_in: int = field(default=0, repr=False)
    """The same sum over the in-copies in the partition."""
    count_in: int = field(default=0, repr=False)
    """Number of in-copies in the partition."""

    @classmethod
    def from_proto(cls, message: common_pb.PartitionStats) -> PartitionStats:
        """Return the statistics in a message; raise InvalidRequest if its element is unknown."""
        values = {name: getattr(message, name) for name in _FIELDS}
        element = element_from_proto(f"statistics of partition {message.part}", message.element)
        return cls(**{**values, "element": element})

    def to_proto(self) -> common_pb.PartitionStats:
        """Return the statistics as a message."""
        return common_pb.PartitionStats(**self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PartitionStats:
        """Return the statistics in the result of `to_dict`."""
        element = element_from_proto("statistics of a partition", data["element"])
        return cls(**{**data, "element": element})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: the fields of ``asterism.v1.PartitionStats``."""
        return {name: getattr(self, name) for name in _FIELDS} | {"element": self.element.number}


_FIELDS = tuple(field.name for field in common_pb.PartitionStats.DESCRIPTOR.fields)
