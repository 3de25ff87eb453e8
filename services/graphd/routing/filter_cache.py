"""What satisfies the conditions of recent requests: totals of versions, as the storageds told
them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.routing.totals import VersionTotals

_MAX_KEPT = 256
"""Conditions of all versions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterKey:
    """Of what totals are: a version, and the rows of it that a request is about."""

    space_id: int
    version: int
    digest: str
    text: str
    """The canonical text of the condition."""
    element: int
    types: tuple[int, ...]
    weight_name: str
    both_directions: bool
    hosts: tuple[str, ...]
    """Who was asked: a part that has moved is looked at anew."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilteredTotals:
    """What satisfies a condition."""

    totals: VersionTotals
    row_filter: storaged_pb.RowFilter
    """As storageds are told it."""
    plan: str
    """How they find it, in words."""


class FilterTotalsCache:
    """Keeps what is known of the newest conditions; they are counted, for all that is kept is
    totals.
    """

    def __init__(self) -> None:
        self._entries: dict[FilterKey, FilteredTotals] = {}
        self._lock = threading.Lock()

    def get(self, key: FilterKey) -> FilteredTotals | None:
        """What is known, None where nothing is."""
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._entries[key] = entry
            return entry

    def put(self, key: FilterKey, entry: FilteredTotals) -> None:
        """Take over what was found out; what was not asked for for the longest time goes."""
        with self._lock:
            self._entries[key] = entry
            while len(self._entries) > _MAX_KEPT:
                self._entries.pop(next(iter(self._entries)))

    def forget(self, space_id: int, version: int) -> None:
        """Forget a version: a storaged does not have of it what it should."""
        with self._lock:
            entries: Mapping[FilterKey, FilteredTotals] = self._entries
            self._entries = {
                key: entry
                for key, entry in entries.items()
                if (key.space_id, key.version) != (space_id, version)
            }
