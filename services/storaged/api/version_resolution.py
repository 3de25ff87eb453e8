"""Versions of requests: the version that a request names, filtered to the rows it selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.excluded_edges import SECTION_NAMES, ExcludedEdges, excludes_edges
from asterism_model.partition_stats import PartitionTotals
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.request_validation import VersionFields, check_types, validate

FILTER_CACHE_BYTES = 512 << 20
"""Default memory for the matching rows of filters, in bytes."""


class VersionSource(Protocol):
    """Source of the versions that are held here."""

    def version(self, space_id: int, version: int, digest: str) -> sampling.LocalVersion:
        """Return a version.

        Parameters
        ----------
        space_id, version : int
        digest : str
            Digest of the version's manifest.

        Returns
        -------
        LocalVersion

        Raises
        ------
        Stale
            The version is not held here, or has another digest.
        """


class GlobalDrawFields(VersionFields, Protocol):
    """The fields of a request for global draws."""

    @property
    def types(self) -> Sequence[int]:
        """Types to sample from."""


class FollowFields(VersionFields, Protocol):
    """The fields of a request that follows edges."""

    @property
    def direction(self) -> int:
        """Direction in which edges are followed."""


class RequestVersions:
    """Finds the versions of requests, and validates the requests against them.

    Parameters
    ----------
    source : VersionSource
    filter_cache_bytes : int
        Memory for the matching rows of filters, in bytes. Default 512 MiB.
    """

    def __init__(self, source: VersionSource, filter_cache_bytes: int = FILTER_CACHE_BYTES) -> None:
        self._source = source
        self.filters = sampling.FilterCache(filter_cache_bytes)

    def unfiltered(self, request: Frame[VersionFields]) -> sampling.LocalVersion:
        """Validate a request, and return the version that it names, with all rows."""
        version_ref = request.head.version_ref
        version = self._source.version(
            version_ref.space_id, version_ref.version, version_ref.digest
        )
        validate(request, version)
        if excludes_edges(request.arrays) and not hasattr(request.head, "direction"):
            raise InvalidRequest(
                f"{SECTION_NAMES[0]} in {type(request.head).__name__}: expected a request that "
                "follows edges"
            )
        return version

    def filtered(self, request: Frame[VersionFields], call: CallContext) -> sampling.LocalVersion:
        """Return the version that a request names, with the rows that match its filter."""
        return self._filtered(request, call, for_global_draws=False)

    def for_global_draws(
        self, request: Frame[GlobalDrawFields], call: CallContext, element: int
    ) -> sampling.LocalVersion:
        """Return the result of `filtered`, prepared for global draws with replacement."""
        version_ref = request.head.version_ref
        covers_types = (
            version_ref.HasField("where")
            and version_ref.where.element == element
            and set(request.head.types) <= set(version_ref.where.types)
        )
        return self._filtered(request, call, for_global_draws=covers_types)

    def without_excluded(
        self,
        version: sampling.LocalVersion,
        request: Frame[FollowFields],
        edge_types: Sequence[int],
        call: CallContext,
        rejection: sampling.RejectionParams | None = None,
        *,
        alias_tables: bool = False,
    ) -> sampling.LocalVersion:
        """Return a version without the edges that a request excludes.

        Parameters
        ----------
        version : LocalVersion
            Version with the filter and the weights of the request.
        request : Frame
        edge_types : sequence of int
            Edge types that the request follows.
        call : CallContext
        rejection : RejectionParams, optional
            Parameters of the request's draws, if they can reject edges. By default, they cannot.
        alias_tables : bool
            The request draws by weight. Default False.
        """
        excluded = ExcludedEdges.from_sections(request.arrays, len(version.schema.edge_types))
        if excluded is None:
            return version
        return sampling.exclude_edges(
            version,
            excluded,
            edge_types=edge_types,
            direction=request.head.direction,
            rejection=rejection,
            alias_tables=alias_tables,
            checkpoint=call.remaining,
        )

    def index_ranges(
        self, request: Frame[storaged_pb.DrawNeighborsRequest]
    ) -> Mapping[int, sampling.IndexRanges]:
        """Return the matches of a request's filter as ranges of indexes, by edge type.

        Empty without a filter, if an edge type has no index for it, or if edges are excluded.
        """
        head = request.head
        if not head.version_ref.HasField("where") or excludes_edges(request.arrays):
            return {}
        ranges = self.filters.index_ranges(
            self.unfiltered(request), decode_row_filter(head.version_ref.where)
        )
        return ranges if set(head.edge_types) <= set(ranges) else {}

    def _filtered(
        self, request: Frame[VersionFields], call: CallContext, *, for_global_draws: bool
    ) -> sampling.LocalVersion:
        unfiltered = self.unfiltered(request)
        if not request.head.version_ref.HasField("where"):
            return unfiltered
        message = request.head.version_ref.where
        row_filter, parts = decode_row_filter(message), unfiltered.schema.parts
        total_count = len(row_filter.types) * parts
        for name, found in (
            ("counts", len(message.counts)),
            ("positives", len(message.positives)),
            ("weights", len(message.weights)),
        ):
            if found != total_count:
                raise InvalidRequest(
                    f"version_ref.where.{name}: expected {total_count} values, one for each of "
                    f"{len(row_filter.types)} types and {parts} partitions, found {found}"
                )
        check_types(
            "version_ref.where.types",
            row_filter.types,
            len(
                unfiltered.schema.node_types
                if row_filter.element == sampling.NODE
                else unfiltered.schema.edge_types
            ),
        )
        totals = {
            (row_filter.element, type_id, part): PartitionTotals(
                count=count, positive=positive, weight=weight
            )
            for (type_id, part), (count, positive, weight) in zip(
                ((t, p) for t in row_filter.types for p in range(parts)),
                zip(message.counts, message.positives, message.weights, strict=True),
                strict=True,
            )
        }
        return self.filters.filtered_version(
            unfiltered, row_filter, totals, call.remaining, for_global_draws=for_global_draws
        )


def decode_row_filter(message: storaged_pb.RowFilter) -> sampling.RowFilter:
    """Return the filter of a request; raise InvalidRequest if its types do not ascend."""
    if message.element not in (sampling.NODE, sampling.EDGE) or list(message.types) != sorted(
        set(message.types)
    ):
        raise InvalidRequest(
            f"version_ref.where: element={message.element}, types={list(message.types)}: expected "
            f"element {sampling.NODE} (nodes) or {sampling.EDGE} (edges) and ascending types"
        )
    return sampling.RowFilter(
        text=message.expression,
        element=int(message.element),
        types=tuple(message.types),
        weight=message.weight,
        both_directions=message.both_directions,
    )
