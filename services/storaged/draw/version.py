"""A version as draws see it: its schema, the totals of all parts, and the images of those held here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from asterism_proto.errors import InvalidRequest, NotFound, Unavailable
from asterism_proto.prices import MESSAGE_BYTES
from asterism_proto.schema import Schema
from graphkit import split
from graphkit.jit import settled
from storaged.store.image import PartImage, weighed

T = TypeVar("T")

NODE, EDGE = 1, 2
"""Elements, as in `asterism.v1.Element`."""
OWN_WEIGHTS = ("", "weight")
"""Names of the weights that every row has."""
MAX_OUTPUTS = 1 << 26
"""Values of one answer."""
MAX_FOUND = 1 << 24
"""Rows of one answer that depend on what there is: more than a message of 64 MiB holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one part holds of a type."""

    count: int
    """Live rows: the measure of uniform draws."""
    positive: int
    """Rows of positive weight."""
    weight: float
    """Sum of weights: the measure of weighted draws."""


Key = tuple[int, int, int]
"""(element, type, part)."""


def by_name(totals: Iterable[tuple[str, Key, Share]]) -> tuple[dict[Key, Share], dict[str, dict[Key, Share]]]:
    """Totals of the rows' own weights ("" or "weight"), and those of each further weight name."""
    own: dict[Key, Share] = {}
    named: dict[str, dict[Key, Share]] = {}
    for name, key, share in totals:
        (own if name in OWN_WEIGHTS else named.setdefault(name, {}))[key] = share
    return own, named


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Version:
    """A published state of a space: the totals of all of its parts, and the images of those that are held here."""

    space_id: int
    version: int
    digest: str
    schema: Schema
    totals: Mapping[Key, Share]
    """Of every part of the space."""
    parts: Mapping[int, PartImage]
    """The parts that are held here."""
    named: Mapping[str, Mapping[Key, Share]] = field(default_factory=dict)
    """The same totals of each further weight name, of the types that have it."""
    condition: str = ""
    """What all rows here satisfy, of the types of one request; "": it has all rows."""
    restricted_by: str = ""
    """The name of the weights that its tables were then made by."""
    covers: Mapping[tuple[int, int], Any] = field(default_factory=dict)
    """Where global draws take an index: of each type and part, the `storaged.draw.covers.Cover` that they are from.
    Images are then whole."""
    _weighed: dict[str, Version] = field(default_factory=dict, init=False, repr=False)
    _shares: dict[tuple[int, tuple[int, ...], bool], split.Shares] = field(default_factory=dict, init=False, repr=False)
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.covers:  # else it was made of a version whose images are
            object.__setattr__(self, "parts", {part: _settled(image) for part, image in self.parts.items()})

    def image(self, part: int) -> PartImage:
        """The image of a part; Unavailable where it is not held here."""
        found = self.parts.get(part)
        if found is None:
            raise Unavailable(f"part {part} of space {self.space_id} is not held here; this host has parts {sorted(self.parts)}")
        return found

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` makes of this version, kept with it under ``key``: which says what it is and of what.

        Threads that make it at the same time all get the one that is kept: others may have noted its address.
        """
        found: T | None = self._made.get(key)
        return self._made.setdefault(key, make()) if found is None else found

    def weighed(self, weights: str, element: int, types: Sequence[int]) -> Version:
        """This version with the weights of that name in place of the rows' own; "" are the rows' own.

        Raises
        ------
        InvalidRequest, NotFound
            Where one of ``types`` is unknown, or has no weights of that name.
        """
        if weights in OWN_WEIGHTS or (self.condition and weights == self.restricted_by):
            return self
        for type_id in types:
            self.type_name(element, type_id)
            owner = (self.schema.node_types if element == NODE else self.schema.edge_types)[type_id]
            owner.table(weights)
        found = self._weighed.get(weights)
        if found is None and self.condition:
            raise InvalidRequest(f"weight={weights!r}: expected {self.restricted_by!r}, as at.where.weight of {self.condition!r} says")
        if found is None:
            parts = {part: weighed(image, weights) for part, image in self.parts.items()}
            found = self._weighed[weights] = replace(self, totals={**self.totals, **self.named.get(weights, {})}, parts=parts)
        return found

    def shares(self, element: int, types: Sequence[int], uniform: bool) -> split.Shares:
        """The shares of all parts in draws from ``types``.

        Raises
        ------
        InvalidRequest, NotFound
            Where a type is unknown or there is nothing to draw.
        """
        chosen = tuple(sorted(set(types)))
        found = self._shares.get((element, chosen, uniform))
        if found is None:
            for type_id in chosen:
                self.type_name(element, type_id)
            totals = {
                (type_id, part): float(share.count if uniform else share.weight)
                for (kind, type_id, part), share in self.totals.items()
                if kind == element
            }
            found = split.shares(chosen, totals, self.schema.parts)
            self._shares[element, chosen, uniform] = found
        if not found.total > 0:
            what = f"{'nodes' if element == NODE else 'edges'} of type {', '.join(self.type_name(element, t) for t in chosen) or '(none given)'}"
            what += f" where {self.condition}" if self.condition else ""
            if any(self.totals[key].count for key in self.totals if key[0] == element and key[1] in chosen):
                raise InvalidRequest(f"the weights of all {what} are 0 in version {self.version}; draw them uniformly")
            raise NotFound(f"there are no {what} in version {self.version}")
        return found

    def type_name(self, element: int, type_id: int) -> str:
        """The name of a type; InvalidRequest where there is no such type."""
        named = self.schema.node_types if element == NODE else self.schema.edge_types
        if not 0 <= type_id < len(named):
            raise InvalidRequest(f"{'node' if element == NODE else 'edge'} type {type_id}: the schema has {len(named)}")
        return named[type_id].name


def checked_outputs(what: str, count: int, per: int = 1) -> None:
    """InvalidRequest where an answer would have a negative number of values, or more than ``MAX_OUTPUTS``."""
    if count < 0 or per < 0:
        raise InvalidRequest(f"{what}: {min(count, per)}; a count is >= 0")
    if count * per > MAX_OUTPUTS:
        raise InvalidRequest(f"{what}: {count * per} values in one answer; ask for at most {MAX_OUTPUTS}")


def most_rows(width: int) -> int:
    """Return how many rows of ``width`` bytes one message holds."""
    return min(MAX_FOUND, MESSAGE_BYTES // width)


def checked_found(what: str, count: int, width: int = 4) -> None:
    """Refuse an answer of more rows than a message holds, once they are counted and before they are read.

    Parameters
    ----------
    what : str
    count : int
        Rows.
    width : int
        Bytes of a row.

    Raises
    ------
    InvalidRequest
        Where they do not fit.
    """
    most = most_rows(width)
    if count > most:
        raise InvalidRequest(f"{what}: {count} rows in one answer, at most {most}; ask for fewer nodes at a time")


def checked_length(name: str, array: np.ndarray[Any, Any], length: int) -> None:
    """InvalidRequest where an array has not one value per id."""
    if array.shape != (length,):
        raise InvalidRequest(f"the array {name!r} has shape {list(array.shape)}; expected [{length}]")


def _settled(record: Any) -> Any:
    """A copy of an image record whose arrays are all of the one type that kernels are compiled for."""
    if isinstance(record, np.ndarray):
        return settled(record)
    if isinstance(record, tuple):
        return tuple(_settled(item) for item in record)
    if isinstance(record, dict):
        return {name: _settled(item) for name, item in record.items()}
    if is_dataclass(record) and not isinstance(record, type):
        return replace(record, **{f.name: _settled(getattr(record, f.name)) for f in fields(record)})
    return record
