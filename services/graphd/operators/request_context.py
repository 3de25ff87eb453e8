"""Context of a request: version, weights, filter, exclusions and hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.routing.dispatch import Dispatcher
from graphd.routing.excluded_edges import FOLLOWING_METHODS, RoutedExclusions
from graphd.routing.filter_totals_cache import FilterTotalsCache
from graphd.routing.routes import ServedVersion, SpaceRoute

Ids = NDArray[np.int64]
Types = NDArray[np.int32]
Sections = dict[str, NDArray[Any]]
REPLY_BYTES = 60 << 20
"""Maximum bytes of one reply's arrays, so that it fits into a message of 64 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Context of one request: version, weights, filter, dispatcher and deadline."""

    space: SpaceRoute
    version: ServedVersion
    dispatcher: Dispatcher
    call: CallContext
    filter_cache: FilterTotalsCache = field(default_factory=FilterTotalsCache)
    """Totals of filters of earlier requests."""
    weight_name: str = ""
    """Name of the weights to sample by; "" for the rows' own weights."""
    row_filter: storaged_pb.RowFilter | None = None
    """Filter of the rows, with their totals; None for all rows."""
    filter_plan: str = ""
    """Description of how the filter is evaluated."""
    exclusions: RoutedExclusions | None = None
    """Edges that the request excludes; None for none."""

    def with_weights(self, weight_name: str) -> RequestContext:
        """Return this context with the weights of that name."""
        if weight_name == self.weight_name:
            return self
        return replace(
            self,
            version=replace(self.version, totals=self.version.totals.with_weights(weight_name)),
            weight_name=weight_name,
        )

    def without_filter(self) -> RequestContext:
        """Return this context without a filter, for lookups of types."""
        return replace(self, row_filter=None)

    def version_ref(self) -> storaged_pb.VersionRef:
        """Return the version and the filter in the form that storageds accept."""
        return storaged_pb.VersionRef(
            space_id=self.space.space_id,
            version=self.version.version,
            digest=self.version.digest,
            where=self.row_filter,
        )

    def dispatch(
        self, name: str, requests: Sequence[tuple[int, Frame[Message]]]
    ) -> list[Frame[Message]]:
        """Return the hosts' replies in request order.

        Requests that follow edges get the excluded edges, so that no operator can ignore them.
        """
        if self.exclusions is not None and name in FOLLOWING_METHODS:
            requests = [
                (host, Frame(request.head, {**request.arrays, **self.exclusions.sections(host)}))
                for host, request in requests
            ]
        return self.dispatcher.dispatch(name, self.space, requests, self.call)
