"""Outcomes of finished tasks: totals, images and results, with consistency checks.

`metad.jobs.state_machine` checks that they are complete, and that both copies of every edge agree,
before it publishes a version or finishes an audit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from asterism_model.elements import Element
from asterism_model.partition_stats import PartitionStats
from asterism_model.task_results import TaskResult
from asterism_model.weight_names import OWN_WEIGHTS

_MASK64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartImageDigest:
    """Image of one partition, identified by the digest of its manifest."""

    part: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """Outcome of a finished task: its result, with totals and images of its partitions."""

    totals: tuple[PartitionStats, ...] = ()
    images: tuple[PartImageDigest, ...] = ()
    result: TaskResult = field(default_factory=TaskResult)


def coverage_fault(outcome: TaskOutcome, parts: Sequence[int]) -> str:
    """Return why ``outcome`` does not cover exactly ``parts``; empty if it does."""
    image_parts = sorted(image.part for image in outcome.images)
    if image_parts != sorted(parts):
        return (
            f"the task reports images of partitions {image_parts}: expected one of each of "
            f"{sorted(parts)}"
        )
    if any(not image.digest for image in outcome.images):
        return (
            "the image of partition "
            f"{next(image.part for image in outcome.images if not image.digest)} has no digest"
        )
    expected_parts = set(parts)
    seen: set[tuple[int, Element, int, str]] = set()
    for stats in outcome.totals:
        key = (stats.part, stats.element, stats.type_id, stats.weight_name)
        if stats.part not in expected_parts:
            return (
                f"the task reports statistics of partition {stats.part}: expected one of "
                f"{sorted(parts)}"
            )
        if key in seen:
            return (
                f"the task reports partition {stats.part}, {stats.element.name.lower()} type "
                f"{stats.type_id}, weight {stats.weight_name!r} twice"
            )
        seen.add(key)
    return ""


def copy_mismatch(totals: Iterable[PartitionStats], edge_types: Sequence[str]) -> str:
    """Return a description of the first edge type with unequal out- and in-copies; else empty.

    Counts and contents are compared over all partitions, for each weight name. ``edge_types``
    are names by type id. Sums of mixes are taken modulo 2^64, so their order does not matter."""
    groups: dict[tuple[int, str], list[PartitionStats]] = {}
    for stats in totals:
        if stats.element is Element.EDGE:
            if stats.type_id >= len(edge_types):
                return (
                    f"the task reports edge type {stats.type_id}, but the schema has "
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
