"""Cache of the totals of rows that match the filters of recent requests."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.routing.totals import VersionTotals

_MAX_KEPT = 256
"""Maximum number of cached filters, of all versions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterKey:
    """Cache key: a version, a filter, and the rows that a request selects from."""

    space_id: int
    version: int
    digest: str
    text: str
    """Canonical text of the filter."""
    element: int
    types: tuple[int, ...]
    weight_name: str
    both_directions: bool
    hosts: tuple[str, ...]
    """Hosts that the totals come from. After a partition moves, totals are read again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilteredTotals:
    """Totals and execution plan of a filter."""

    totals: VersionTotals
    row_filter: storaged_pb.RowFilter
    """The filter in the form that storageds accept."""
    plan: str
    """Description of how storageds evaluate the filter."""


class FilterTotalsCache:
    """LRU cache of filter totals. Its bound is a count, because every entry holds only totals."""

    def __init__(self) -> None:
        self._entries: dict[FilterKey, FilteredTotals] = {}
        self._lock = threading.Lock()

    def get(self, key: FilterKey) -> FilteredTotals | None:
        """Return the cached totals, or None."""
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._entries[key] = entry
            return entry

    def put(self, key: FilterKey, entry: FilteredTotals) -> None:
        """Store totals; evict the least recently used entries."""
        with self._lock:
            self._entries[key] = entry
            while len(self._entries) > _MAX_KEPT:
                self._entries.pop(next(iter(self._entries)))

    def forget(self, space_id: int, version: int) -> None:
        """Drop a version's entries, because a storaged does not hold the expected data."""
        with self._lock:
            entries: Mapping[FilterKey, FilteredTotals] = self._entries
            self._entries = {
                key: entry
                for key, entry in entries.items()
                if (key.space_id, key.version) != (space_id, version)
            }
