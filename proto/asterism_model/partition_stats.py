"""Totals of one partition of a version: rows and weights of each type, and their statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from asterism_model.elements import OWN_WEIGHTS
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb


class Element(StrEnum):
    """The kind of a type: of nodes or of edges. Compares equal to its name."""

    NODE = "NODE"
    EDGE = "EDGE"

    @property
    def number(self) -> int:
        """The number in messages: 1 for nodes, 2 for edges."""
        return int(common_pb.Element.Value(self.value))

    def __repr__(self) -> str:
        return repr(self.value)


def element_from_proto(label: str, value: int) -> Element:
    """Return the element of this number; InvalidRequest names ``label`` if there is none."""
    for element in Element:
        if element.number == value:
            return element
    raise InvalidRequest(f"{label}: element {value}; expected NODE (1) or EDGE (2)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTotals:
    """Rows and weight of one type in one partition: the measures of global draws."""

    count: int
    """Live rows: the measure of uniform draws."""
    positive: int
    """Rows of positive weight: how many different rows weighted draws can return."""
    weight: float
    """The sum of their weights: the measure of weighted draws."""


TotalsKey = tuple[int, int, int]
"""(number of the element, type, partition)."""


def totals_by_weight_name(
    messages: Iterable[common_pb.PartitionStats],
) -> tuple[dict[TotalsKey, PartitionTotals], dict[str, dict[TotalsKey, PartitionTotals]]]:
    """Return the totals by the rows' own weights, and those by each further weight name."""
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
    """Live rows: the measure of uniform draws."""
    positive: int
    """Rows of positive weight: the size of the alias table."""
    weight: float
    """The sum of their weights: a Neumaier sum in canonical order."""
    audit_tv: float = 0.0
    """Total variation between the exact distribution of the tables and the weights."""
    audit_rel: float = 0.0
    """The largest relative error of one share."""
    dropped: int = 0
    """Edges dropped because an end is dead at the commit watermark."""
    underflow: int = 0
    """Shares below 2^-64."""
    weight_name: str = ""
    """The rows' own weights: "" or "weight"; else the name of a table."""
    zero: int = 0
    """Rows that weigh 0 by themselves. `asterism_model.weight_stats` sums up this field and the
    following ones.
    """
    subnormal: int = 0
    """Rows of a weight above 0 and below 2^-126."""
    negative: int = 0
    """Rows for which an expression gave a negative number; these and the next two weigh 0."""
    nan: int = 0
    infinite: int = 0
    """Of either sign, or beyond float32."""
    squares: float = 0.0
    """The sum of the squares of weights: a Neumaier sum in canonical order."""
    largest: float = 0.0
    """The largest weight."""
    mix_out: int = field(default=0, repr=False)
    """Sum, modulo 2^64, of a mix of (id, src, dst, weight) over out-copies of edges. metad compares
    this field and the following ones before a version is published; they are not shown.
    """
    mix_in: int = field(default=0, repr=False)
    """The same over the in-copies that the partition holds."""
    count_in: int = field(default=0, repr=False)
    """In-copies that the partition holds."""

    @classmethod
    def from_proto(cls, message: common_pb.PartitionStats) -> PartitionStats:
        """Return the statistics in a message; InvalidRequest if its element is unknown."""
        values = {name: getattr(message, name) for name in _FIELDS}
        element = element_from_proto(f"a total of part {message.part}", message.element)
        return cls(**{**values, "element": element})

    def to_proto(self) -> common_pb.PartitionStats:
        """Return the statistics as a message."""
        return common_pb.PartitionStats(**self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PartitionStats:
        """Return the statistics in the result of `to_dict`."""
        element = element_from_proto("a partition's totals", data["element"])
        return cls(**{**data, "element": element})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: the fields of ``asterism.v1.Total``."""
        return {name: getattr(self, name) for name in _FIELDS} | {"element": self.element.number}


_FIELDS = tuple(field.name for field in common_pb.PartitionStats.DESCRIPTOR.fields)
