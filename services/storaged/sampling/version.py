"""A version as sampling sees it: schema, totals of all partitions, and local images."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random import partition_choice
from asterism_model.elements import NODE
from asterism_model.partition_stats import PartitionTotals, TotalsKey
from asterism_model.schema import Schema
from asterism_model.weight_names import OWN_WEIGHTS
from asterism_proto.errors import Internal, InvalidRequest, NotFound, Unavailable
from asterism_proto.transport import MAX_MESSAGE_BYTES
from storaged.sampling.excluded_edge_rejection import RejectedEdges
from storaged.store.image import PartImage, with_weights

T = TypeVar("T")

MAX_OUTPUTS = 1 << 26
"""Largest number of values in a reply."""
MAX_ROWS = 1 << 24
"""Largest number of data-dependent rows in a reply; more than a message of 64 MiB holds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class LocalVersion:
    """A published state of a space: totals of all partitions, and the images held here."""

    space_id: int
    version: int
    digest: str
    schema: Schema
    totals: Mapping[TotalsKey, PartitionTotals]
    """Totals of every partition of the space."""
    parts: Mapping[int, PartImage]
    """Images of the partitions held here."""
    named_totals: Mapping[str, Mapping[TotalsKey, PartitionTotals]] = field(default_factory=dict)
    """Totals for each additional weight name, of the types that have it."""
    filter_text: str = ""
    """Filter that all rows satisfy, for the types of one request; empty if unfiltered."""
    filter_weight: str = ""
    """Weight name that the tables of a filtered version are built from."""
    range_covers: Mapping[tuple[int, int], Any] = field(default_factory=dict)
    """Range covers by (type, partition), if global draws use an index.

    They are of type `storaged.sampling.filters.range_cover.RangeCover`. The images are then
    unfiltered.
    """
    base: LocalVersion | None = None
    """Version with all edges, for one without some of them; otherwise None."""
    overlay: PartImage | None = None
    """One more partition, with number ``schema.parts``, for a version without some edges.

    It has the rows of the nodes at these edges, which their own partitions still have with all
    edges. Lookups prefer it (`storaged.sampling.excluded_edge_overlay`).
    """
    rejected: RejectedEdges | None = None
    """Edges that draws reject, of nodes that are not in the overlay."""
    _by_weight_name: dict[str, LocalVersion] = field(default_factory=dict, init=False, repr=False)
    _shares: dict[tuple[int, tuple[int, ...], bool], partition_choice.PartShares] = field(
        default_factory=dict, init=False, repr=False
    )
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.overlay is not None:
            object.__setattr__(self, "overlay", _as_kernel_arrays(self.overlay))
        # Otherwise the version is derived from one with converted images.
        if not self.range_covers and self.base is None:
            object.__setattr__(
                self,
                "parts",
                {part: _as_kernel_arrays(image) for part, image in self.parts.items()},
            )

    def image(self, part: int) -> PartImage:
        """Return the image of a partition; raise Unavailable if it is not held here."""
        image = self.parts.get(part)
        if image is None and part == self.schema.parts:
            image = self.overlay
        if image is None:
            raise Unavailable(
                f"part {part} of space {self.space_id} belongs to another host; this host has "
                f"partitions {sorted(self.parts)}"
            )
        return image

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of ``make``, cached with this version under ``key``.

        The key must identify the result and its inputs. Threads that compute it at the same time
        all get the cached one, because its address may already be in use.
        """
        value: T | None = self._cache.get(key)
        return self._cache.setdefault(key, make()) if value is None else value

    def with_weights(self, weight_name: str, element: int, types: Sequence[int]) -> LocalVersion:
        """Return this version with the weights of a name in place of the rows' own.

        Parameters
        ----------
        weight_name : str
            Name of the weights; "" for the rows' own.
        element : int
            NODE or EDGE.
        types : sequence of int
            Types that must have weights of that name.

        Raises
        ------
        InvalidRequest, NotFound
            One of ``types`` is unknown, or has no weights of that name.
        """
        if weight_name in OWN_WEIGHTS or (self.filter_text and weight_name == self.filter_weight):
            return self
        if self.base is not None:
            raise Internal("a version without some edges keeps the weights that it was made with")
        for type_id in types:
            self.type_name(element, type_id)
            owner = (self.schema.node_types if element == NODE else self.schema.edge_types)[type_id]
            owner.table(weight_name)
        result = self._by_weight_name.get(weight_name)
        if result is None and self.filter_text:
            raise InvalidRequest(
                f"weight={weight_name!r}: expected {self.filter_weight!r}, as in "
                f"version_ref.where.weight of {self.filter_text!r}"
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
        """Return the shares of all partitions in draws from some types.

        Raises
        ------
        InvalidRequest
            A type is unknown, or all weights are 0.
        NotFound
            There is nothing to sample.
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
        """Return the name of a type; raise InvalidRequest if there is no such type."""
        types = self.schema.node_types if element == NODE else self.schema.edge_types
        if not 0 <= type_id < len(types):
            raise InvalidRequest(
                f"{'node' if element == NODE else 'edge'} type {type_id}: expected a type of the "
                f"schema, 0 to {len(types) - 1}"
            )
        return types[type_id].name


def check_output_size(name: str, count: int, per_item: int = 1) -> None:
    """Raise InvalidRequest if a reply would have more than ``MAX_OUTPUTS`` values.

    Also raises for a negative number of values.
    """
    if count < 0 or per_item < 0:
        raise InvalidRequest(f"{name}: {min(count, per_item)}: expected 0 or more")
    if count * per_item > MAX_OUTPUTS:
        raise InvalidRequest(
            f"{name}: expected at most {MAX_OUTPUTS} values in one reply, found {count * per_item}"
        )


def max_rows_per_message(width: int) -> int:
    """Return the number of rows of ``width`` bytes that fit into a message."""
    return min(MAX_ROWS, MAX_MESSAGE_BYTES // width)


def check_row_count(name: str, count: int, width: int = 4) -> None:
    """Check the number of rows of a reply, once they are counted and before they are read.

    Parameters
    ----------
    name : str
        Name of the rows, for the message.
    count : int
        Number of rows.
    width : int
        Bytes per row. Default 4.

    Raises
    ------
    InvalidRequest
        The rows do not fit into a message.
    """
    max_rows = max_rows_per_message(width)
    if count > max_rows:
        raise InvalidRequest(
            f"{name}: expected at most {max_rows} rows in one reply, found {count}; request "
            "fewer nodes at a time"
        )


def check_length(name: str, array: np.ndarray[Any, Any], length: int) -> None:
    """Raise InvalidRequest if an array does not have one value per id."""
    if array.shape != (length,):
        raise InvalidRequest(
            f"array {name!r}: expected shape [{length}], found {list(array.shape)}"
        )


def _as_kernel_arrays(record: Any) -> Any:
    """Copy an image record, with all arrays in the form that kernels are compiled for."""
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
