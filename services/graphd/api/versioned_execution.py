"""Execution of requests at a version: current routes, and retries when a storaged lags."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from google.protobuf.message import Message

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.excluded_edges import ExcludedEdges, excludes_edges
from asterism_model.graph_prices import price_request, section_sizes
from asterism_model.prices import DEFAULT_LIMITS, Limits, check
from asterism_proto.errors import InvalidRequest, NotFound, Stale, Unavailable
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.operators.request_context import RequestContext
from graphd.routing.dispatch import Dispatcher
from graphd.routing.excluded_edges import RoutedExclusions
from graphd.routing.filter_totals_cache import FilterTotalsCache
from graphd.routing.routes import Routes, ServedVersion, SpaceRoute
from graphd.routing.routing_table import RoutingTable

T = TypeVar("T")
Operation = Callable[[RequestContext, Frame[Any]], Frame[Message]]
"""Handler of a request at a version: decodes it, calls an operator, encodes the reply."""
RequestCheck = Callable[[Frame[Any]], None]
"""Check of a request before its space and version are looked up."""

EXCLUDING_REQUESTS = (
    graphd_pb.AdjacencyRequest,
    graphd_pb.DegreesRequest,
    graphd_pb.InducedSubgraphRequest,
    graphd_pb.NeighborsRequest,
    graphd_pb.PersonalizedPagerankRequest,
    graphd_pb.RandomWalkRequest,
    graphd_pb.SampleEgoSubgraphsRequest,
    graphd_pb.SampleFanoutRequest,
    graphd_pb.SampleHgtRequest,
    graphd_pb.SampleLaborRequest,
    graphd_pb.SampleLayerRequest,
    graphd_pb.SampleLayersRequest,
    graphd_pb.SampleNeighborsRequest,
    graphd_pb.SamplePinsageRequest,
    graphd_pb.SampleSubgraphRequest,
)
"""Requests that may exclude edges."""
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.01, 0.2
_REPLY_S = 0.2
"""Seconds of a call's time that are kept for its reply, so that it ends with the reason."""


class ReadFields(Protocol):
    """Fields of every request that reads a version."""

    space: str
    version: int


class VersionRunner:
    """Run requests at the version that they name, or at the current one.

    Parameters
    ----------
    routing : RoutingTable
        Routes and versions.
    dispatcher : Dispatcher
        Calls the storageds.
    space_exists : callable
        Returns True if metad knows a space of this name. Called before an unknown space is
        refused.
    is_published : callable
        Returns True if metad serves this version of a space. Called before an unknown version is
        refused.
    catch_up_s : float
        Maximum seconds that a storaged may take to load a version that metad has announced, and
        this graphd to learn of it. A request waits for a space that was created, until its
        deadline; with 0, it waits for neither.
    limits : Limits
        Limits of a request.
    """

    def __init__(
        self,
        *,
        routing: RoutingTable,
        dispatcher: Dispatcher,
        space_exists: Callable[[str, CallContext], bool],
        is_published: Callable[[str, int, CallContext], bool],
        catch_up_s: float,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.limits = limits
        self.dispatcher = dispatcher
        self._routing = routing
        self._space_exists = space_exists
        self._is_published = is_published
        self._catch_up_s = catch_up_s
        self._filter_cache = FilterTotalsCache()

    def run_at_version(
        self,
        request: Frame[ReadFields],
        call: CallContext,
        run: Callable[[RequestContext], T],
        *,
        dispatcher: Dispatcher | None = None,
    ) -> T:
        """Run a request at its version, and repeat it from the start if a storaged lags.

        A storaged that does not hold the version replies Stale. The request waits for a version
        that was published moments ago. After that, a named version gives NotFound, or Unavailable
        if metad still serves it.

        Parameters
        ----------
        request : Frame
            Its price is checked first.
        call : CallContext
        run : callable
            May be called more than once.
        dispatcher : Dispatcher, optional
            Calls the storageds instead of the runner's own dispatcher.
        """
        head = request.head

        def attempt(space: SpaceRoute) -> T:
            version = self._find_version(space, head.version, call)
            price = price_request(
                head, section_sizes(request.arrays), schema=space.schema, counts=version.totals
            )
            if price is not None:
                check(price, self.limits)
            context = RequestContext(
                space=space,
                version=version,
                dispatcher=dispatcher or self.dispatcher,
                call=call,
                filter_cache=self._filter_cache,
                exclusions=_exclusions(request, space),
            )
            try:
                return run(context)
            except Stale:
                # A storaged lacks the version, or has dropped the rows that match a filter.
                self._filter_cache.forget(space.space_id, version.version)
                raise

        try:
            return self.retry_stale(
                head.space,
                call,
                attempt,
                should_give_up=lambda space: (
                    bool(head.version) and head.version not in space.versions
                ),
            )
        except Stale as error:
            if not head.version:
                raise
            if self._is_published(head.space, head.version, call):
                raise Unavailable(
                    f"version {head.version} of space {head.space!r} is not served by every "
                    f"storaged yet ({error.message}); try again"
                ) from error
            raise NotFound(
                f"version {head.version} of space {head.space!r} is no longer served; use "
                "another version, or the current one"
            ) from error

    def retry_stale(
        self,
        name: str,
        call: CallContext,
        run: Callable[[SpaceRoute], T],
        *,
        should_give_up: Callable[[SpaceRoute], bool] = lambda _: False,
    ) -> T:
        """Run with the newest routes; repeat while a storaged replies Stale, since it may lag.

        If the storaged states when to try again, it is about to open the space, and the call is
        repeated until its deadline.
        """
        deadline = time.monotonic() + min(self._catch_up_s, call.remaining())
        pause = _FIRST_PAUSE_S
        while True:
            space = self.space_of(name, call)
            try:
                return run(space)
            except Stale as error:
                if error.retry_after_s:
                    deadline = time.monotonic() + self._space_wait_s(call)
                # Use the newest routes: they may have arrived during the call.
                if (
                    should_give_up(self._routing.routes.space(name))
                    or time.monotonic() + pause >= deadline
                ):
                    raise
            self._routing.wait_for(partial(_has_changed, previous=space), pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def space_of(self, name: str, call: CallContext) -> SpaceRoute:
        """Return a space by name; wait for one that was created moments ago."""
        routes = self._routing.routes
        if name not in routes.spaces and self._space_exists(name, call):
            self._routing.wait_for(lambda routes: name in routes.spaces, self._space_wait_s(call))
        return self._routing.routes.space(name)

    def _space_wait_s(self, call: CallContext) -> float:
        """Return the seconds that a call may wait for a space that was created."""
        return max(call.remaining() - _REPLY_S, 0.0) if self._catch_up_s else 0.0

    def _find_version(self, space: SpaceRoute, number: int, call: CallContext) -> ServedVersion:
        """Return a served version; wait for one that is newer than the newest known."""
        if number > space.current_version and self._is_published(space.name, number, call):
            self._routing.wait_for(
                partial(_has_version, previous=space, number=number),
                min(self._catch_up_s, call.remaining()),
            )
            space = self._routing.routes.space(space.name)
        return space.find_version(number)


def _exclusions(request: Frame[ReadFields], space: SpaceRoute) -> RoutedExclusions | None:
    """Return the edges that a request excludes; None for none.

    Raises InvalidRequest for a method that does not follow edges.
    """
    if not excludes_edges(request.arrays):
        return None
    if not isinstance(request.head, EXCLUDING_REQUESTS):
        raise InvalidRequest(
            f"exclude with {type(request.head).__name__.removesuffix('Request')}: expected a call "
            "that follows edges from nodes; leave it out"
        )
    excluded = ExcludedEdges.from_sections(request.arrays, len(space.schema.edge_types))
    return None if excluded is None else RoutedExclusions(space=space, excluded=excluded)


def _has_changed(routes: Routes, *, previous: SpaceRoute) -> bool:
    space = routes.spaces.get(previous.name)
    return space is None or space.current_version != previous.current_version


def _has_version(routes: Routes, *, previous: SpaceRoute, number: int) -> bool:
    space = routes.spaces.get(previous.name)
    return space is None or space.current_version >= number
