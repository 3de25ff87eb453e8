"""Requests at a version: routes that are current, and retries where a storaged lags behind them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from google.protobuf.message import Message

from asterism_daemonkit.calls import CallContext
from asterism_model.graph_prices import price_request, section_sizes
from asterism_model.prices import DEFAULT_LIMITS, Limits, check
from asterism_proto.errors import NotFound, Stale, Unavailable
from asterism_proto.framing import Frame
from graphd.operators.sampling import RequestContext
from graphd.routing.dispatch import Dispatcher
from graphd.routing.filter_cache import FilterTotalsCache
from graphd.routing.routes import Routes, ServedVersion, SpaceRoute
from graphd.routing.updates import RoutingTable

T = TypeVar("T")
Operation = Callable[[RequestContext, Frame[Any]], Frame[Message]]
"""Answers a request at a version: decodes the request, calls an operator, encodes the reply."""
RequestCheck = Callable[[Frame[Any]], None]
"""Checks a request before its space and version are looked up."""

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.01, 0.2


class ReadFields(Protocol):
    """Fields of every request that reads a version."""

    space: str
    version: int


class VersionRunner:
    """Runs requests at the version that they name, or at the current one.

    Parameters
    ----------
    routing : RoutingTable
        Routes and versions.
    dispatcher : Dispatcher
        Calls the storageds.
    space_exists : callable
        Whether metad knows a space of this name: called before an unknown one is refused.
    is_published : callable
        Whether metad serves this version of a space, likewise.
    catch_up_s : float
        The longest time that a storaged may take to open what metad has announced (spaces,
        versions), and this graphd to learn of it.
    limits : Limits
        The largest request that is answered.
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
        """Run a request at its version: all of it, or all of it again.

        A storaged that does not hold the version answers Stale. A version that was published a
        moment ago is waited for; after that one that is named is NotFound, or Unavailable where
        metad still has it served.

        Parameters
        ----------
        request : Frame
            Its price is checked first.
        call : CallContext
        run : callable
            May be called again.
        dispatcher : Dispatcher, optional
            Calls the storageds in place of the runner's own.
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
            )
            try:
                return run(context)
            except Stale:
                # A storaged lacks the version, or has dropped the rows that satisfied a condition.
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
                    f"version {head.version} of space {head.space!r} is served, but not yet "
                    f"by every storaged ({error.message}); try again"
                ) from error
            raise NotFound(
                f"version {head.version} of space {head.space!r} is no longer held; use "
                "another, or the current one"
            ) from error

    def retry_stale(
        self,
        name: str,
        call: CallContext,
        run: Callable[[SpaceRoute], T],
        *,
        should_give_up: Callable[[SpaceRoute], bool] = lambda _: False,
    ) -> T:
        """Run with the newest routes; again while a storaged answers Stale, for it may lag."""
        deadline = time.monotonic() + min(self._catch_up_s, call.remaining())
        pause = _FIRST_PAUSE_S
        while True:
            space = self.space_of(name, call)
            try:
                return run(space)
            except Stale:
                # By the newest routes: they may have come while it ran.
                if (
                    should_give_up(self._routing.routes.space(name))
                    or time.monotonic() + pause >= deadline
                ):
                    raise
            self._routing.wait_for(partial(_has_changed, previous=space), pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def space_of(self, name: str, call: CallContext) -> SpaceRoute:
        """Return a space by name; one that was made a moment ago is waited for."""
        routes = self._routing.routes
        if name not in routes.spaces and self._space_exists(name, call):
            self._routing.wait_for(
                lambda routes: name in routes.spaces, min(self._catch_up_s, call.remaining())
            )
        return self._routing.routes.space(name)

    def _find_version(self, space: SpaceRoute, number: int, call: CallContext) -> ServedVersion:
        """Return a served version; one above the newest known may be new, and is waited for."""
        if number > space.current_version and self._is_published(space.name, number, call):
            self._routing.wait_for(
                partial(_has_version, previous=space, number=number),
                min(self._catch_up_s, call.remaining()),
            )
            space = self._routing.routes.space(space.name)
        return space.find_version(number)


def _has_changed(routes: Routes, *, previous: SpaceRoute) -> bool:
    space = routes.spaces.get(previous.name)
    return space is None or space.current_version != previous.current_version


def _has_version(routes: Routes, *, previous: SpaceRoute, number: int) -> bool:
    space = routes.spaces.get(previous.name)
    return space is None or space.current_version >= number
