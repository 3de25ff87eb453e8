"""Cache of filtered versions, bounded in memory."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from weakref import WeakKeyDictionary

from asterism_graphkit.evaluate.filters import Mask
from asterism_model.elements import EDGE, NODE
from asterism_model.filters.binding import bind
from asterism_model.filters.syntax import Predicate, parse
from asterism_model.partition_stats import PartitionTotals, TotalsKey
from asterism_proto.errors import InvalidRequest
from storaged.sampling.filters.filtered_image import (
    FilteredPart,
    filter_edges,
    filter_nodes,
    filtered_edge_bytes,
    filtered_node_bytes,
)
from storaged.sampling.filters.index_ranges import (
    can_resolve,
    candidate_rows,
    conjuncts,
    resolve_runs,
)
from storaged.sampling.filters.range_cover import RangeCover, RangeCovers, build_range_cover
from storaged.sampling.filters.scan import RemoteMatches, scan_edges, scan_nodes
from storaged.sampling.neighbors.filtered import IndexRanges, resolve_ranges
from storaged.sampling.node_lookup import IN, OUT
from storaged.sampling.version import LocalVersion
from storaged.store.column_index import ColumnIndex
from storaged.store.image import EdgeImage, NodeImage, PartImage

NO_REMOTE_MATCHES = RemoteMatches()
FULL_SCAN = "every row looked at once"
_LOCK_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """A filter on the rows of a version."""

    text: str
    """Canonical text of the filter."""
    element: int
    """Element of the rows: 1 for nodes, 2 for edges."""
    types: tuple[int, ...]
    """Types that the filter applies to; rows of all other types pass."""
    weight: str = ""
    """Name of the weights that the request samples by."""
    both_directions: bool = False
    """True if edges are also followed against their direction."""


@dataclass(slots=True, eq=False)
class _CacheEntry:
    """Results for one version and one filter."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    pieces: dict[tuple[int, int], FilteredPart] = field(default_factory=dict)
    """Matching rows by (type, partition)."""
    filtered_version: tuple[Mapping[TotalsKey, PartitionTotals], LocalVersion] | None = None
    """The version made from the pieces, with the totals it was made for."""
    covers: dict[tuple[int, int], RangeCover] | None = None
    """Range covers by (type, partition).

    Empty if no index resolves the filter; None if that is not determined yet.
    """
    covered_version: tuple[Mapping[TotalsKey, PartitionTotals], LocalVersion] | None = None
    """The version for global draws from the covers, with the totals it was made for."""
    ranges: dict[int, IndexRanges] | None = None
    """Index ranges by edge type, in the order of each node's edges.

    Empty if no order resolves the filter; None if that is not determined yet.
    """
    last_used: int = 0

    @property
    def bytes(self) -> int:
        covers = list((self.covers or {}).values())
        return sum(piece.bytes for piece in list(self.pieces.values())) + sum(
            cover.bytes for cover in covers
        )


class FilterCache:
    """Cached results of the filters of recent requests. Thread-safe.

    Parameters
    ----------
    max_bytes : int
        Memory limit for all results, in bytes. The least recently used ones are dropped first. A
        filter with a result above the limit is refused.

    Notes
    -----
    A filtered draw is a draw from the version that has only the matching rows, with tables of their
    own. The cache affects the time that takes, never the result. If the version has an index that
    resolves the filter, no rows are scanned: global draws use blocks of the index and their tables,
    and draws of neighbors use ranges in the order of each node's edges. Such an index affects the
    result of a given seed, but not the distribution.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._clock = count(1)
        # Weak keys: the results go with a version that is no longer served, so its files can be
        # freed.
        self._entries: WeakKeyDictionary[LocalVersion, dict[RowFilter, _CacheEntry]] = (
            WeakKeyDictionary()
        )

    def filtered_totals(
        self,
        version: LocalVersion,
        row_filter: RowFilter,
        parts: Sequence[int],
        checkpoint: Callable[[], object],
        remote_matches: RemoteMatches = NO_REMOTE_MATCHES,
    ) -> dict[TotalsKey, PartitionTotals]:
        """Return the totals of matching rows, by (element, type, partition).

        Parameters
        ----------
        version : LocalVersion
        row_filter : RowFilter
        parts : sequence of int
            Partitions held here.
        checkpoint : callable
            Called between blocks of rows. If it raises, completed partitions are kept for the next
            call.
        remote_matches : RemoteMatches
            Matches found by other hosts, for columns that are not held here.

        Raises
        ------
        InvalidRequest
            A type is unknown, or the matching rows exceed the memory limit.
        Stale
            Matches of a remote partition are missing.
        """
        entry = self._entry(version, row_filter)
        with _locked(entry.lock, checkpoint):
            covers = self._range_covers(version, row_filter, entry)
            if covers:
                return {
                    (row_filter.element, type_id, part): covers[type_id, part].totals
                    for type_id in row_filter.types
                    for part in parts
                }
            self._build_pieces(
                version, row_filter, sorted(version.parts), entry, checkpoint, remote_matches
            )
            return {
                (row_filter.element, type_id, part): entry.pieces[type_id, part].totals
                for type_id in row_filter.types
                for part in parts
            }

    def describe_plan(self, version: LocalVersion, row_filter: RowFilter) -> str:
        """Describe how matching rows are found.

        The result depends only on the version's indexes, so it is the same on every host.
        """
        parsed, descriptions = parse(row_filter.text), []
        for type_id in row_filter.types:
            predicate, indexes = (
                bind(parsed, version.schema, row_filter.element, type_id),
                _indexes(version, row_filter.element, type_id),
            )
            full_index = next((index for index in indexes if can_resolve(index, predicate)), None)
            operands = conjuncts(predicate) if row_filter.element == NODE else ()
            partial_index = next(
                (index for operand in operands for index in indexes if can_resolve(index, operand)),
                None,
            )
            descriptions.append(
                f"index on {full_index.name}"
                if full_index
                else f"rows that the index on {partial_index.name} leaves, looked at once"
                if partial_index
                else FULL_SCAN
            )
        return "; ".join(dict.fromkeys(descriptions))

    def filtered_version(
        self,
        version: LocalVersion,
        row_filter: RowFilter,
        totals: Mapping[TotalsKey, PartitionTotals],
        checkpoint: Callable[[], object],
        *,
        for_global_draws: bool = False,
    ) -> LocalVersion:
        """Return the version with only the matching rows.

        Parameters
        ----------
        version : LocalVersion
        row_filter : RowFilter
        totals : mapping
            Totals of matching rows in each partition of the space, for the types of ``row_filter``.
        checkpoint : callable
            Called between blocks of rows; may raise.
        for_global_draws : bool
            Allow a version for global draws with replacement only, which may contain other rows
            too. Default False.

        Raises
        ------
        InvalidRequest, Stale
            As for `filtered_totals`; also if ``totals`` of a local partition differ from its
            result.
        """
        entry = self._entry(version, row_filter)
        with _locked(entry.lock, checkpoint):
            covers = self._range_covers(version, row_filter, entry)
            if covers and for_global_draws:
                if entry.covered_version is None or entry.covered_version[0] != totals:
                    _check_totals(version, row_filter, totals, covers)
                    entry.covered_version = (
                        dict(totals),
                        _covered_version(version, row_filter, covers, totals),
                    )
                return entry.covered_version[1]
            if entry.filtered_version is None or entry.filtered_version[0] != totals:
                self._build_pieces(
                    version, row_filter, sorted(version.parts), entry, checkpoint, NO_REMOTE_MATCHES
                )
                _check_totals(version, row_filter, totals, covers or entry.pieces)
                entry.filtered_version = (
                    dict(totals),
                    _filtered_version(version, row_filter, entry.pieces, totals),
                )
            return entry.filtered_version[1]

    def index_ranges(
        self, version: LocalVersion, row_filter: RowFilter
    ) -> Mapping[int, IndexRanges]:
        """Return the ranges of matching edges in the order of each node's edges, by edge type.

        Empty unless an index resolves the filter for every type.
        """
        entry = self._entry(version, row_filter)
        # Threads may compute it at the same time; their results are equal.
        if entry.ranges is None:
            entry.ranges = (
                resolve_ranges(version, parse(row_filter.text), row_filter.types)
                if row_filter.element == EDGE
                else {}
            )
        return entry.ranges

    def _range_covers(
        self, version: LocalVersion, row_filter: RowFilter, entry: _CacheEntry
    ) -> Mapping[tuple[int, int], RangeCover]:
        """Return the range covers of every type and partition here.

        Empty unless an index resolves the filter for every type.
        """
        if entry.covers is None:
            covers: dict[tuple[int, int], RangeCover] = {}
            parsed = parse(row_filter.text)
            for type_id in row_filter.types:
                version.type_name(row_filter.element, type_id)
                predicate = bind(parsed, version.schema, row_filter.element, type_id)
                position = next(
                    (
                        i
                        for i, index in enumerate(_indexes(version, row_filter.element, type_id))
                        if can_resolve(index, predicate)
                    ),
                    None,
                )
                if position is None:
                    covers = {}
                    break
                for part, image in version.parts.items():
                    weighted_image = _weighted_image(version, row_filter, image)
                    type_image = (
                        weighted_image.nodes[type_id]
                        if row_filter.element == NODE
                        else weighted_image.edges[type_id]
                    )
                    runs = resolve_runs(type_image.indexes[position], type_image, predicate)
                    covers[type_id, part] = build_range_cover(
                        type_image.indexes[position],
                        type_image.outgoing if isinstance(type_image, EdgeImage) else type_image,
                        runs,
                        row_filter.weight,
                    )
            self._reserve(row_filter, entry, sum(cover.bytes for cover in covers.values()))
            entry.covers = covers
        return entry.covers

    def _entry(self, version: LocalVersion, row_filter: RowFilter) -> _CacheEntry:
        with self._lock:
            entry = self._entries.setdefault(version, {}).setdefault(row_filter, _CacheEntry())
            entry.last_used = next(self._clock)
            return entry

    def _build_pieces(
        self,
        version: LocalVersion,
        row_filter: RowFilter,
        parts: Sequence[int],
        entry: _CacheEntry,
        checkpoint: Callable[[], object],
        remote_matches: RemoteMatches,
    ) -> None:
        parsed = parse(row_filter.text)
        for type_id in row_filter.types:
            version.type_name(row_filter.element, type_id)
            predicate = bind(parsed, version.schema, row_filter.element, type_id)
            for part in parts:
                if (type_id, part) not in entry.pieces:
                    filter_part = partial(
                        _filter_nodes if row_filter.element == NODE else _filter_edges,
                        version,
                        row_filter,
                        type_id,
                        part,
                        predicate,
                        remote_matches,
                    )
                    entry.pieces[type_id, part] = filter_part(
                        partial(self._reserve, row_filter, entry), checkpoint
                    )

    def _reserve(self, row_filter: RowFilter, entry: _CacheEntry, needed: int) -> None:
        """Evict old entries to free ``needed`` bytes; raise InvalidRequest if impossible."""
        current = entry.bytes
        if current + needed > self._max_bytes:
            raise InvalidRequest(
                f"filter {row_filter.text!r}: its matches take {current + needed:,} bytes or "
                f"more on a storaged: expected at most {self._max_bytes:,}; narrow the filter, "
                "or raise conditions_mib"
            )
        with self._lock:
            others = sorted(
                (
                    (other, entries, key)
                    for entries in self._entries.values()
                    for key, other in entries.items()
                    if other is not entry
                ),
                key=lambda candidate: candidate[0].last_used,
            )
            total = current + needed + sum(other.bytes for other, _, _ in others)
            for other, entries, key in others:
                if total <= self._max_bytes:
                    return
                total -= other.bytes
                del entries[key]


def _filter_nodes(
    version: LocalVersion,
    row_filter: RowFilter,
    type_id: int,
    part: int,
    predicate: Predicate,
    remote_matches: RemoteMatches,
    reserve: Callable[[int], None],
    checkpoint: Callable[[], object],
) -> FilteredPart:
    image = version.image(part)
    rows_to_scan = candidate_rows(image.nodes[type_id].indexes, image.nodes[type_id], predicate)
    mask = scan_nodes(version, image, type_id, predicate, checkpoint, rows_to_scan)
    node = _weighted_image(version, row_filter, image).nodes[type_id]
    reserve(filtered_node_bytes(node, int(mask.sum())))
    return filter_nodes(node, mask)


def _filter_edges(
    version: LocalVersion,
    row_filter: RowFilter,
    type_id: int,
    part: int,
    predicate: Predicate,
    remote_matches: RemoteMatches,
    reserve: Callable[[int], None],
    checkpoint: Callable[[], object],
) -> FilteredPart:
    image = version.image(part)
    outgoing = scan_edges(version, image, type_id, OUT, predicate, remote_matches, checkpoint)
    incoming: Mask | None = None
    if row_filter.both_directions and image.edges[type_id].incoming is not None:
        incoming = scan_edges(version, image, type_id, IN, predicate, remote_matches, checkpoint)
    edge = _weighted_image(version, row_filter, image).edges[type_id]
    reserve(
        filtered_edge_bytes(
            edge,
            max(int(outgoing.sum()), 0 if incoming is None else int(incoming.sum())),
            both_directions=incoming is not None,
        )
    )
    return filter_edges(edge, outgoing, incoming)


def _weighted_image(version: LocalVersion, row_filter: RowFilter, image: PartImage) -> PartImage:
    """Return the partition with the weights that the request samples by."""
    return version.with_weights(row_filter.weight, row_filter.element, row_filter.types).image(
        image.part
    )


def _indexes(version: LocalVersion, element: int, type_id: int) -> tuple[ColumnIndex, ...]:
    """Return the indexes of a type, which are the same in every partition."""
    types = (
        (image.nodes if element == NODE else image.edges)[type_id]
        for image in version.parts.values()
    )
    return next((type_image.indexes for type_image in types), ())


def _covered_version(
    version: LocalVersion,
    row_filter: RowFilter,
    covers: RangeCovers,
    totals: Mapping[TotalsKey, PartitionTotals],
) -> LocalVersion:
    weighted_version = version.with_weights(row_filter.weight, row_filter.element, row_filter.types)
    return replace(
        weighted_version,
        range_covers=dict(covers),
        totals={**weighted_version.totals, **totals},
        named_totals={},
        filter_text=row_filter.text,
        filter_weight=row_filter.weight,
    )


def _filtered_version(
    version: LocalVersion,
    row_filter: RowFilter,
    pieces: Mapping[tuple[int, int], FilteredPart],
    totals: Mapping[TotalsKey, PartitionTotals],
) -> LocalVersion:
    parts = {}
    for part, image in version.parts.items():
        nodes, edges = list(image.nodes), list(image.edges)
        for type_id in row_filter.types:
            filtered = pieces[type_id, part].image
            if isinstance(filtered, NodeImage):
                nodes[type_id] = filtered
            elif isinstance(filtered, EdgeImage):
                edges[type_id] = filtered
        parts[part] = replace(image, nodes=tuple(nodes), edges=tuple(edges))
    return replace(
        version,
        parts=parts,
        totals={**version.totals, **totals},
        named_totals={},
        filter_text=row_filter.text,
        filter_weight=row_filter.weight,
    )


def _check_totals(
    version: LocalVersion,
    row_filter: RowFilter,
    totals: Mapping[TotalsKey, PartitionTotals],
    matches: Mapping[tuple[int, int], FilteredPart | RangeCover],
) -> None:
    """Raise InvalidRequest if the totals of a request are impossible.

    Draws from them would fall on rows that do not exist. Totals of local partitions must equal the
    local result; totals of remote ones must be plausible.
    """
    for key, part_totals in totals.items():
        _, type_id, part = key
        prefix = (
            f"version_ref.where={row_filter.text!r}: type {type_id}, part {part}: "
            f"count={part_totals.count}, positive={part_totals.positive}, "
            f"weight={part_totals.weight}"
        )
        max_count = version.totals[key].count if key in version.totals else 0
        is_weight_valid = (
            math.isfinite(part_totals.weight)
            and part_totals.weight >= 0
            and (part_totals.weight > 0) == (part_totals.positive > 0)
        )
        if not (0 <= part_totals.positive <= part_totals.count <= max_count and is_weight_valid):
            raise InvalidRequest(
                f"{prefix}: expected 0 <= positive <= count <= {max_count}, and a finite "
                "weight that is 0 where positive is 0 and above 0 elsewhere"
            )
        if part in version.parts and part_totals != matches[type_id, part].totals:
            local_totals = matches[type_id, part].totals
            raise InvalidRequest(
                f"{prefix}: this host found count={local_totals.count}, "
                f"positive={local_totals.positive}, weight={local_totals.weight}; request the "
                "matches again (FilterRows)"
            )


@contextmanager
def _locked(lock: threading.Lock, checkpoint: Callable[[], object]) -> Iterator[None]:
    """Hold a lock; call ``checkpoint`` while waiting, so that a short deadline ends the wait."""
    while not lock.acquire(timeout=_LOCK_POLL_S):
        checkpoint()
    try:
        yield
    finally:
        lock.release()
