"""A version as draws see it: its schema, the totals of all parts, and the images of those held
here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random import partition_choice
from asterism_model.elements import NODE, OWN_WEIGHTS
from asterism_model.partition_stats import PartitionTotals, TotalsKey
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotFound, Unavailable
from asterism_proto.transport import MAX_MESSAGE_BYTES
from storaged.store.image import PartImage, with_weights

T = TypeVar("T")

MAX_OUTPUTS = 1 << 26
"""Values of one answer."""
MAX_ROWS = 1 << 24
"""Rows of one answer that depend on what there is: more than a message of 64 MiB holds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class LocalVersion:
    """A published state of a space: the totals of all of its parts, and the images of those that
    are held here.
    """

    space_id: int
    version: int
    digest: str
    schema: Schema
    totals: Mapping[TotalsKey, PartitionTotals]
    """Of every part of the space."""
    parts: Mapping[int, PartImage]
    """The parts that are held here."""
    named_totals: Mapping[str, Mapping[TotalsKey, PartitionTotals]] = field(default_factory=dict)
    """The same totals of each further weight name, of the types that have it."""
    filter_text: str = ""
    """What all rows here satisfy, of the types of one request; "": it has all rows."""
    filter_weight: str = ""
    """The name of the weights that its tables were then made by."""
    range_covers: Mapping[tuple[int, int], Any] = field(default_factory=dict)
    """Where global draws take an index: of each type and part, the
    `storaged.sampling.filters.range_cover.RangeCover` that they are from. Images are then whole."""
    _by_weight_name: dict[str, LocalVersion] = field(default_factory=dict, init=False, repr=False)
    _shares: dict[tuple[int, tuple[int, ...], bool], partition_choice.PartShares] = field(
        default_factory=dict, init=False, repr=False
    )
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.range_covers:  # else it was made of a version whose images are
            object.__setattr__(
                self,
                "parts",
                {part: _as_kernel_arrays(image) for part, image in self.parts.items()},
            )

    def image(self, part: int) -> PartImage:
        """The image of a part; Unavailable where it is not held here."""
        image = self.parts.get(part)
        if image is None:
            raise Unavailable(
                f"part {part} of space {self.space_id} is not held here; this host has parts "
                f"{sorted(self.parts)}"
            )
        return image

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` makes of this version, kept with it under ``key``: which says what it is
        and of what.

        Threads that make it at the same time all get the one that is kept: others may have noted
        its address."""
        value: T | None = self._cache.get(key)
        return self._cache.setdefault(key, make()) if value is None else value

    def with_weights(self, weight_name: str, element: int, types: Sequence[int]) -> LocalVersion:
        """This version with the weights of that name in place of the rows' own; "" are the rows'
        own.

        Raises
        ------
        InvalidRequest, NotFound
            Where one of ``types`` is unknown, or has no weights of that name.
        """
        if weight_name in OWN_WEIGHTS or (self.filter_text and weight_name == self.filter_weight):
            return self
        for type_id in types:
            self.type_name(element, type_id)
            owner = (self.schema.node_types if element == NODE else self.schema.edge_types)[type_id]
            owner.table(weight_name)
        result = self._by_weight_name.get(weight_name)
        if result is None and self.filter_text:
            raise InvalidRequest(
                f"weight={weight_name!r}: expected {self.filter_weight!r}, as "
                f"version_ref.where.weight of {self.filter_text!r} says"
            )
        if result is None:
            parts = {part: with_weights(image, weight_name) for part, image in self.parts.items()}
            result = self._by_weight_name[weight_name] = replace(
                self, totals={**self.totals, **self.named_totals.get(weight_name, {})}, parts=parts
            )
        return result

    def part_shares(
        self, element: int, types: Sequence[int], uniform: bool
    ) -> partition_choice.PartShares:
        """The shares of all parts in draws from ``types``.

        Raises
        ------
        InvalidRequest, NotFound
            Where a type is unknown or there is nothing to draw.
        """
        type_ids = tuple(sorted(set(types)))
        shares = self._shares.get((element, type_ids, uniform))
        if shares is None:
            for type_id in type_ids:
                self.type_name(element, type_id)
            totals = {
                (type_id, part): float(part_totals.count if uniform else part_totals.weight)
                for (kind, type_id, part), part_totals in self.totals.items()
                if kind == element
            }
            shares = partition_choice.build_shares(type_ids, totals, self.schema.parts)
            self._shares[element, type_ids, uniform] = shares
        if not shares.total > 0:
            description = (
                f"{'nodes' if element == NODE else 'edges'} of type "
                f"{', '.join(self.type_name(element, t) for t in type_ids) or '(none given)'}"
            )
            description += f" where {self.filter_text}" if self.filter_text else ""
            if any(
                self.totals[key].count
                for key in self.totals
                if key[0] == element and key[1] in type_ids
            ):
                raise InvalidRequest(
                    f"the weights of all {description} are 0 in version {self.version}; draw "
                    "them uniformly"
                )
            raise NotFound(f"there are no {description} in version {self.version}")
        return shares

    def type_name(self, element: int, type_id: int) -> str:
        """The name of a type; InvalidRequest where there is no such type."""
        types = self.schema.node_types if element == NODE else self.schema.edge_types
        if not 0 <= type_id < len(types):
            raise InvalidRequest(
                f"{'node' if element == NODE else 'edge'} type {type_id}: the schema has "
                f"{len(types)}"
            )
        return types[type_id].name


def check_output_size(name: str, count: int, per_item: int = 1) -> None:
    """InvalidRequest where an answer would have a negative number of values, or more than
    ``MAX_OUTPUTS``.
    """
    if count < 0 or per_item < 0:
        raise InvalidRequest(f"{name}: {min(count, per_item)}; a count is >= 0")
    if count * per_item > MAX_OUTPUTS:
        raise InvalidRequest(
            f"{name}: {count * per_item} values in one answer; ask for at most {MAX_OUTPUTS}"
        )


def max_rows_per_message(width: int) -> int:
    """Return how many rows of ``width`` bytes one message holds."""
    return min(MAX_ROWS, MAX_MESSAGE_BYTES // width)


def check_row_count(name: str, count: int, width: int = 4) -> None:
    """Refuse an answer of more rows than a message holds, once they are counted and before they are
    read.

    Parameters
    ----------
    name : str
    count : int
        Rows.
    width : int
        Bytes of a row.

    Raises
    ------
    InvalidRequest
        Where they do not fit.
    """
    max_rows = max_rows_per_message(width)
    if count > max_rows:
        raise InvalidRequest(
            f"{name}: {count} rows in one answer, at most {max_rows}; ask for fewer nodes at a time"
        )


def check_length(name: str, array: np.ndarray[Any, Any], length: int) -> None:
    """InvalidRequest where an array has not one value per id."""
    if array.shape != (length,):
        raise InvalidRequest(
            f"the array {name!r} has shape {list(array.shape)}; expected [{length}]"
        )


def _as_kernel_arrays(record: Any) -> Any:
    """A copy of an image record whose arrays are all of the one type that kernels are compiled
    for.
    """
    if isinstance(record, np.ndarray):
        return as_kernel_array(record)
    if isinstance(record, tuple):
        return tuple(_as_kernel_arrays(item) for item in record)
    if isinstance(record, dict):
        return {name: _as_kernel_arrays(item) for name, item in record.items()}
    if is_dataclass(record) and not isinstance(record, type):
        return replace(
            record, **{f.name: _as_kernel_arrays(getattr(record, f.name)) for f in fields(record)}
        )
    return record
