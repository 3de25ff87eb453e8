"""What tasks report: totals of each (part, type), images, what else they made; and whether both
copies of every edge agree. A quiet room.

Called by `metad.jobs.machine` before a version is published or an audit ends well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from asterism_model.weight_stats import OWN_WEIGHTS

_MASK64 = (1 << 64) - 1


class Element(Enum):
    """What a type is a type of; the numbers are those of the wire."""

    NODE = 1
    EDGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStats:
    """Counts and sums of one (part, type, weight name)."""

    part: int
    element: Element
    type_id: int
    count: int
    """Live rows: the measure of uniform draws."""
    positive: int
    """Rows of positive weight: the alias table's size."""
    weight: float
    """Neumaier sum in canonical order."""
    weight_name: str = ""
    audit_tv: float = 0.0
    """Total variation between the image's exact law and the weights."""
    audit_rel: float = 0.0
    """Largest relative error of one share."""
    mix_out: int = 0
    """Sum, modulo 2^64, of a mix of (id, src, dst, weight) over out-copies."""
    mix_in: int = 0
    """The same over the in-copies that the part holds."""
    count_in: int = 0
    """In-copies that the part holds."""
    dropped: int = 0
    """Edges dropped because an end is dead at the cut."""
    underflow: int = 0
    """Shares below 2^-64."""
    zero: int = 0
    """Rows that weigh 0 by themselves."""
    subnormal: int = 0
    """Rows of a weight above 0 and below 2^-126."""
    negative: int = 0
    """Rows for which an expression gave a negative number, and likewise below: they weigh 0."""
    nan: int = 0
    infinite: int = 0
    squares: float = 0.0
    """Neumaier sum of the squares of weights, in canonical order."""
    largest: float = 0.0
    """The largest weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartImageDigest:
    """The image of one part, by the digest of its manifest."""

    part: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeAudit:
    """What an audit found of one type, over the parts of one storaged."""

    element: Element
    type_id: int
    count: int
    """Live rows."""
    positive: int
    """Rows of positive weight."""
    weight: float
    """Their sum."""
    table_tv: float = 0.0
    """Largest total variation between a table's law and the weights."""
    table_rel: float = 0.0
    """Largest relative error of one of its shares."""
    alias_rows: int = 0
    """Nodes whose own alias row was rebuilt, over both directions."""
    row_tv: float = 0.0
    row_rel: float = 0.0
    underflow: int = 0
    """Shares of tables below 2^-64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """A table as a file."""

    path: str
    """Below the folder of the task."""
    part: int
    element: Element
    type_id: int
    weight_name: str
    format: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUnits:
    """How much of a part a build linked from versions before, and how much it made."""

    part: int
    linked: int
    """Units: pieces of a part with an input of their own."""
    built: int
    bytes_linked: int
    bytes_built: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutput:
    """What a finished task has made, by the kind of its job; what another kind would make is
    empty.
    """

    audit: tuple[TypeAudit, ...] = ()
    files_read: int = 0
    """By an audit: files of images, every byte of them."""
    bytes_read: int = 0
    folder: str = ""
    """Of exported tables."""
    files: tuple[ExportedFile, ...] = ()
    bytes_before: int = 0
    """Of the graph database, before a compaction."""
    bytes_after: int = 0
    units: tuple[PartUnits, ...] = ()
    """Of each part that was built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What a finished task reports."""

    totals: tuple[PartitionStats, ...] = ()
    images: tuple[PartImageDigest, ...] = ()
    output: TaskOutput = field(default_factory=TaskOutput)


def coverage_fault(result: TaskResult, parts: Sequence[int]) -> str:
    """Why ``result`` is not one of a build or an audit of ``parts``; empty if it is."""
    image_parts = sorted(image.part for image in result.images)
    if image_parts != sorted(parts):
        return f"it reports images of parts {image_parts} where parts {sorted(parts)} were ordered"
    if any(not image.digest for image in result.images):
        return (
            "the image of part "
            f"{next(image.part for image in result.images if not image.digest)} has no digest"
        )
    expected_parts = set(parts)
    seen: set[tuple[int, Element, int, str]] = set()
    for stats in result.totals:
        key = (stats.part, stats.element, stats.type_id, stats.weight_name)
        if stats.part not in expected_parts:
            return (
                f"it reports a total of part {stats.part} where parts {sorted(parts)} were ordered"
            )
        if key in seen:
            return (
                f"it reports part {stats.part}, {stats.element.name.lower()} type "
                f"{stats.type_id}, weight {stats.weight_name!r} twice"
            )
        seen.add(key)
    return ""


def copy_mismatch(totals: Iterable[PartitionStats], edge_types: Sequence[str]) -> str:
    """Which edge type's out- and in-copies differ over all parts, in edges or in weights of some
    name; empty if none does.

    ``edge_types`` are names by type id. Sums of mixes are taken modulo 2^64, so that their order
    does not matter."""
    groups: dict[tuple[int, str], list[PartitionStats]] = {}
    for stats in totals:
        if stats.element is Element.EDGE:
            if stats.type_id >= len(edge_types):
                return (
                    f"edge type {stats.type_id} is reported, but the schema has "
                    f"{len(edge_types)} edge types"
                )
            groups.setdefault(
                (stats.type_id, "" if stats.weight_name in OWN_WEIGHTS else stats.weight_name), []
            ).append(stats)
    for (type_id, weight_name), group in sorted(groups.items()):
        label = f"edge type {edge_types[type_id]}" + (
            f", weight {weight_name!r}" if weight_name else ""
        )
        count_out, count_in = (
            sum(stats.count for stats in group),
            sum(stats.count_in for stats in group),
        )
        if count_out != count_in:
            return f"{label}: {count_out} out-copies but {count_in} in-copies"
        mix_out, mix_in = (
            sum(stats.mix_out for stats in group) & _MASK64,
            sum(stats.mix_in for stats in group) & _MASK64,
        )
        if mix_out != mix_in:
            return (
                f"{label}: out- and in-copies differ in content (mix {mix_out:#018x} against "
                f"{mix_in:#018x})"
            )
    return ""
