"""What graphd is asked: the Graph service. Decodes, checks, calls rooms, encodes; protobuf stops
here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from asterism_daemonkit.calls import CallContext
from asterism_model.elements import EDGE, NODE
from asterism_model.graph_prices import price_request, section_sizes
from asterism_model.prices import DEFAULT_LIMITS, Limits, check
from asterism_model.request_validation import MAX_ID, PIECES_PER_CHUNK
from asterism_proto.errors import InvalidRequest, NotFound, Stale, Unavailable
from asterism_proto.framing import Frame
from asterism_proto.transport import Transport
from asterism_proto.v1 import graphd_pb2 as wire
from asterism_proto.v1 import metad_pb2 as meta
from asterism_proto.v1 import storaged_pb2 as store
from graphd.api.decoding import (
    check_types,
    decode_direction,
    decode_edge_types,
    decode_global_draw,
    decode_hop,
    decode_neighbor_read,
    decode_nodes,
    decode_subgraph,
    decode_walk,
    resolve_weight_name,
)
from graphd.api.explain import ExplainHandler
from graphd.api.operators import OperatorHandlers
from graphd.filters import filters
from graphd.operators import feature_join, reads, sampling, subgraphs, temporal, walks
from graphd.operators.sampling import RequestContext, Sections
from graphd.routing.dispatch import Dispatcher
from graphd.routing.filter_cache import FilterTotalsCache
from graphd.routing.routes import Routes, ServedVersion, SpaceRoute
from graphd.routing.updates import RoutingTable
from graphd.writes import validation, writes
from graphd.writes.small_writes import BatchCommitter, SmallWrite, WriteBatcher, WriteChunk
from graphd.writes.writes import WriteContext

T = TypeVar("T")

_MAX_SMALL_WRITE_BYTES = 16 << 20
"""Of the arrays of one write by itself."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.2


class GraphService(OperatorHandlers, ExplainHandler):
    """The handlers of the Graph service.

    Parameters
    ----------
    routing : RoutingTable
        Routes and versions.
    dispatcher : Dispatcher
        Who asks the storageds.
    space_exists : callable
        Whether metad knows a space of this name: asked before an unknown one is refused, for news
        travels.
    is_published : callable
        Whether metad serves this version of a space, likewise.
    committed_loads : callable
        The loads of a space that count by now, in commit order, and the number of the last commit.
    metad : Transport
        Who gives loads to writes by themselves.
    catch_up_s : float
        How long a storaged may take to hold what metad has told of (spaces, versions), and this
        graphd to hear of it.
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
        committed_loads: Callable[[SpaceRoute, CallContext], tuple[Sequence[int], int]],
        metad: Transport,
        catch_up_s: float,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__()
        self.limits = limits
        self._routing = routing
        self._dispatcher = dispatcher
        self._space_exists = space_exists
        self._is_published = is_published
        self._committed_loads = committed_loads
        self._catch_up_s = catch_up_s
        self._filter_cache = FilterTotalsCache()
        self._batcher = WriteBatcher(
            BatchCommitter(
                metad=metad,
                write_chunk=self._write_chunk,
                resolve_revivals=self.resolve_revivals,
                seal=self.seal,
            ).commit_batch
        )

    # -- writes ------------------------------------------------------------------------------------

    def write(self, request: Frame, call: CallContext) -> Frame:
        """One chunk's rows of one type, durable at all parts that they touch."""
        head: Any = request.head

        def run(space: SpaceRoute) -> int:
            count = validation.check_rows(space.schema, head.kind, head.type_id, request)
            if not 0 <= head.base <= MAX_ID - count:
                raise InvalidRequest(
                    f"base={head.base}: expected 0 to {MAX_ID - count}, the first edge id of "
                    "the chunk"
                )
            if count:
                context = self._write_context(space, call, load_id=head.load_id, chunk=head.chunk)
                writes.write_rows(
                    context,
                    head.kind,
                    head.type_id,
                    head.base,
                    request.arrays,
                    ends_known=head.ends_known,
                )
            return count

        return Frame(wire.WriteReply(rows=self._retry_stale(head.space, call, run)))

    def write_once(self, request: Frame, call: CallContext) -> Frame:
        """A write by itself, committed with others that come at the same time."""
        head: Any = request.head

        def run(space: SpaceRoute) -> int:
            count = validation.check_rows(space.schema, head.kind, head.type_id, request)
            if (
                head.kind == store.OUT_EDGES
            ):  # each by itself: one caller's unknown node is not another's fault
                writes.check_ends(
                    self._write_context(space, call, load_id=0, chunk=0),
                    head.type_id,
                    request.arrays,
                )
            return count

        size = sum(array.nbytes for array in request.arrays.values())
        if size > _MAX_SMALL_WRITE_BYTES:
            raise InvalidRequest(
                f"{size} bytes in one write: expected {_MAX_SMALL_WRITE_BYTES} at most; "
                "write them in a load"
            )
        count = self._retry_stale(head.space, call, run)
        small_write = SmallWrite(
            kind=head.kind, type_id=head.type_id, rows=count, sections=request.arrays, call=call
        )
        if count:
            self._batcher.write(head.space, small_write)
        return Frame(
            wire.WriteOnceReply(
                rows=count, base=small_write.first_edge_id, commit=small_write.commit_number
            )
        )

    def _write_chunk(
        self,
        name: str,
        load_id: int,
        chunk: int,
        first_edge_id: int,
        write_chunk: WriteChunk,
        call: CallContext,
    ) -> set[str]:
        """Make the rows of several writes durable, as one chunk; gives the hosts that were written
        to.
        """
        hosts: set[str] = set()

        def send(space: SpaceRoute) -> None:
            context = replace(
                self._write_context(space, call, load_id=load_id, chunk=chunk * PIECES_PER_CHUNK),
                hosts=hosts,
            )
            writes.write_rows(
                context,
                write_chunk.kind,
                write_chunk.type_id,
                first_edge_id,
                write_chunk.sections,
                ends_known=True,
            )

        self._retry_stale(name, call, send)
        return hosts

    def find_nodes(self, request: Frame, call: CallContext) -> Frame:
        """Which ids of a type exist."""
        head: Any = request.head

        def run(space: SpaceRoute) -> NDArray[np.uint8]:
            check_types("node", space.schema, [head.type_id])
            return writes.nodes_exist(
                self._write_context(space, call, load_id=head.load_id, chunk=0),
                head.type_id,
                request.array("ids", "int64"),
            )

        return Frame(wire.FindNodesReply(), {"exists": self._retry_stale(head.space, call, run)})

    def resolve_revivals(self, name: str, load_id: int, call: CallContext) -> tuple[int, bool]:
        """Make a load ready to be committed: the commit number up to which deletes are settled, and
        whether it deletes nodes.
        """

        def run(space: SpaceRoute) -> tuple[int, bool]:
            loads, last_commit = self._committed_loads(space, call)
            if load_id in loads:  # somebody asks again, for the answer
                return last_commit, False
            return last_commit, writes.resolve_revivals(
                self._write_context(space, call, load_id=load_id, chunk=0), loads
            )

        return self._retry_stale(name, call, run)

    def seal(
        self, name: str, load_id: int, hosts: Collection[str], number: int, call: CallContext
    ) -> list[meta.HostSeal]:
        """Seal a load on some hosts of its space before it is committed."""
        return self._retry_stale(
            name,
            call,
            lambda space: writes.seal(
                self._write_context(space, call, load_id=load_id, chunk=0), hosts, number
            ),
        )

    def _write_context(
        self, space: SpaceRoute, call: CallContext, *, load_id: int, chunk: int
    ) -> WriteContext:
        def committed_loads() -> Sequence[int]:
            return self._committed_loads(space, call)[0]

        return WriteContext(
            space=space,
            dispatcher=self._dispatcher,
            call=call,
            load_id=load_id,
            chunk=chunk,
            committed_loads=committed_loads,
        )

    # -- samples -----------------------------------------------------------------------------------

    def sample_nodes(self, request: Frame, call: CallContext) -> Frame:
        """Global draws of nodes."""
        sections, version = self._run_at_version(
            request, call, lambda context: _draw_global(context, NODE, request.head)
        )
        return Frame(
            wire.SampleNodesReply(version=version.version, digest=version.digest), sections
        )

    def sample_edges(self, request: Frame, call: CallContext) -> Frame:
        """Global draws of edges."""
        sections, version = self._run_at_version(
            request, call, lambda context: _draw_global(context, EDGE, request.head)
        )
        return Frame(
            wire.SampleEdgesReply(version=version.version, digest=version.digest), sections
        )

    def sample_neighbors(self, request: Frame, call: CallContext) -> Frame:
        """Neighbors of nodes."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            nodes, types = decode_nodes(request, context.space.schema)
            temporal_filter = temporal.neighbor_filter(
                request,
                context.space.schema,
                decode_edge_types(context.space.schema, head.edge_types),
            )
            hop = decode_hop(
                context.space.schema, head, head.edge_types, head.count, 0, temporal_filter
            )
            return sampling.sample_neighbors(
                filters.with_filter(context, EDGE, hop.edge_types, head),
                hop,
                nodes,
                head.node_type,
                types,
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SampleNeighborsReply(version=version.version, digest=version.digest), sections
        )

    def sample_fanout(self, request: Frame, call: CallContext) -> Frame:
        """Neighbors of neighbors, hop after hop."""
        head: Any = request.head
        if not head.hops:
            raise InvalidRequest("a fanout has one hop at least; this one has none")

        def run(context: RequestContext) -> Sections:
            nodes, types = decode_nodes(request, context.space.schema)
            temporal_filters = temporal.fanout_filters(
                request,
                context.space.schema,
                [decode_edge_types(context.space.schema, hop.edge_types) for hop in head.hops],
            )
            hops = [
                decode_hop(
                    context.space.schema, head, hop.edge_types, hop.count, h, temporal_filters[h]
                )
                for h, hop in enumerate(head.hops)
            ]
            edge_types, columns = (
                [edge_type for hop in hops for edge_type in hop.edge_types],
                feature_join.decode_features(context.space.schema, head),
            )
            sampled = sampling.sample_fanout(
                filters.with_filter(context, EDGE, edge_types, head),
                hops,
                nodes,
                head.node_type,
                types,
            )
            return feature_join.join_fanout(
                context, columns, hops, nodes, head.node_type, types, sampled
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SampleFanoutReply(version=version.version, digest=version.digest), sections
        )

    def random_walk(self, request: Frame, call: CallContext) -> Frame:
        """Walks from nodes."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            nodes, types = decode_nodes(request, context.space.schema)
            params = decode_walk(context.space.schema, head)
            edge_types = [edge_type for step in params.steps for edge_type in step]
            return walks.random_walks(
                filters.with_filter(context, EDGE, edge_types, head),
                params,
                nodes,
                head.node_type,
                types,
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(wire.RandomWalkReply(version=version.version, digest=version.digest), sections)

    def sample_subgraph(self, request: Frame, call: CallContext) -> Frame:
        """Seeds with their neighbors and theirs, numbered."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            nodes, types = decode_nodes(request, context.space.schema)
            params = decode_subgraph(context.space.schema, request)
            filtered_context = filters.with_filter(
                context, EDGE, [fanout.edge_type for fanout in head.reach], head
            )
            return feature_join.join_subgraph(
                context,
                feature_join.decode_features(context.space.schema, head),
                subgraphs.sample_subgraph(filtered_context, params, nodes, head.node_type, types),
            )

        sections, version = self._run_at_version(request, call, run)
        return Frame(
            wire.SampleSubgraphReply(version=version.version, digest=version.digest), sections
        )

    # -- reads -------------------------------------------------------------------------------------

    def neighbors(self, request: Frame, call: CallContext) -> Frame:
        """All neighbors of nodes."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            nodes, types = decode_nodes(request, context.space.schema)
            edge_params = decode_neighbor_read(context.space.schema, head)
            return reads.neighbors(
                filters.with_filter(context, EDGE, edge_params.edge_types, head),
                edge_params,
                nodes,
                head.node_type,
                types,
            )

        sections, version = self._run_at_version_number(request, call, run)
        return Frame(wire.NeighborsReply(version=version), sections)

    def degrees(self, request: Frame, call: CallContext) -> Frame:
        """How many edges nodes have, or what these weigh together."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            schema = context.space.schema
            nodes, types = decode_nodes(request, schema)
            edge_types, direction = (
                decode_edge_types(schema, head.edge_types),
                decode_direction(schema, head.direction),
            )
            filtered_context = filters.with_filter(context, EDGE, edge_types, head)
            if not head.weight:
                return reads.degrees(
                    filtered_context, edge_types, direction, nodes, head.node_type, types
                )
            return {
                "sums": reads.edge_weight_sums(
                    filtered_context, edge_types, direction, False, nodes, head.node_type, types
                )
            }

        sections, version = self._run_at_version_number(request, call, run)
        return Frame(wire.DegreesReply(version=version), sections)

    def node_features(self, request: Frame, call: CallContext) -> Frame:
        """Feature columns of nodes."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            check_types("node", context.space.schema, [head.type_id])
            return reads.node_features(
                context, head.type_id, list(head.names), request.array("nodes", "int64")
            )

        sections, version = self._run_at_version_number(request, call, run)
        return Frame(wire.NodeFeaturesReply(version=version), sections)

    def edge_features(self, request: Frame, call: CallContext) -> Frame:
        """Feature columns of edges."""
        head: Any = request.head

        def run(context: RequestContext) -> Sections:
            check_types("edge", context.space.schema, [head.type_id])
            return reads.edge_features(
                context, head.type_id, list(head.names), request.array("eids", "int64")
            )

        sections, version = self._run_at_version_number(request, call, run)
        return Frame(wire.EdgeFeaturesReply(version=version), sections)

    def scan_nodes(self, request: Frame, call: CallContext) -> Frame:
        """A run of one part's nodes."""
        head: Any = request.head

        def run(context: RequestContext) -> tuple[Sections, int]:
            check_types("node", context.space.schema, [head.type_id])
            filtered_context = context.with_weights(
                resolve_weight_name(NODE, context.space.schema, [head.type_id], head.weight)
            )
            return reads.scan_nodes(
                filtered_context, head.type_id, head.part, head.cursor, head.limit, list(head.names)
            )

        (sections, cursor), version = self._run_at_version_number(request, call, run)
        return Frame(wire.ScanNodesReply(version=version, next_cursor=cursor), sections)

    def scan_edges(self, request: Frame, call: CallContext) -> Frame:
        """A run of one part's edges."""
        head: Any = request.head

        def run(context: RequestContext) -> tuple[Sections, int]:
            check_types("edge", context.space.schema, [head.type_id])
            filtered_context = context.with_weights(
                resolve_weight_name(EDGE, context.space.schema, [head.type_id], head.weight)
            )
            return reads.scan_edges(
                filtered_context, head.type_id, head.part, head.cursor, head.limit, list(head.names)
            )

        (sections, cursor), version = self._run_at_version_number(request, call, run)
        return Frame(wire.ScanEdgesReply(version=version, next_cursor=cursor), sections)

    def nodes_at(self, request: Frame, call: CallContext) -> Frame:
        """Nodes by their place in a scan."""
        head: Any = request.head

        def run(context: RequestContext) -> tuple[Sections, int]:
            check_types("node", context.space.schema, [head.type_id])
            return reads.nodes_at(context, head.type_id, request.array("places", "int64"))

        (sections, count), version = self._run_at_version_number(request, call, run)
        return Frame(wire.NodesAtReply(version=version, count=count), sections)

    # -- versions ----------------------------------------------------------------------------------

    def _run_at_version_number(
        self, request: Frame, call: CallContext, run: Callable[[RequestContext], T]
    ) -> tuple[T, int]:
        """As `_run_at_version`, and the version's number."""
        result, version = self._run_at_version(request, call, run)
        return result, version.version

    def _run_at_version(
        self, request: Frame, call: CallContext, run: Callable[[RequestContext], T]
    ) -> tuple[T, ServedVersion]:
        """Run a request at the version that it names, or at the current one: all of it, or all of
        it again.

        A storaged that does not hold the version answers Stale. A version that was published a
        moment ago is waited for; after that one that is named is NotFound, or Unavailable where
        metad still has it served."""
        head: Any = request.head

        def attempt(space: SpaceRoute) -> tuple[T, ServedVersion]:
            version = self._find_version(space, head.version, call)
            price = price_request(
                head, section_sizes(request.arrays), schema=space.schema, counts=version.totals
            )
            if price is not None:
                check(price, self.limits)
            context = RequestContext(
                space=space,
                version=version,
                dispatcher=self._dispatcher,
                call=call,
                filter_cache=self._filter_cache,
            )
            try:
                return run(context), version
            except (
                Stale
            ):  # a storaged that lacks the version, or let go of what satisfied a condition
                self._filter_cache.forget(space.space_id, version.version)
                raise

        try:
            return self._retry_stale(
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

    def _retry_stale(
        self,
        name: str,
        call: CallContext,
        run: Callable[[SpaceRoute], T],
        *,
        should_give_up: Callable[[SpaceRoute], bool] = lambda _: False,
    ) -> T:
        """Run with the newest routes; again while a storaged says Stale, for it may not have heard
        the news yet.
        """
        deadline = time.monotonic() + min(self._catch_up_s, call.remaining())
        pause = _FIRST_PAUSE_S
        while True:
            space = self.space_of(name, call)
            try:
                return run(space)
            except Stale:
                # By what is known now: the news may have come while it ran.
                if (
                    should_give_up(self._routing.routes.space(name))
                    or time.monotonic() + pause >= deadline
                ):
                    raise
            self._routing.wait_for(partial(_has_changed, previous=space), pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def space_of(self, name: str, call: CallContext) -> SpaceRoute:
        """A space by name. One that was made a moment ago, through another graphd perhaps, is
        waited for.
        """
        routes = self._routing.routes
        if name not in routes.spaces and self._space_exists(name, call):
            self._routing.wait_for(
                lambda routes: name in routes.spaces, min(self._catch_up_s, call.remaining())
            )
        return self._routing.routes.space(name)

    def _find_version(self, space: SpaceRoute, number: int, call: CallContext) -> ServedVersion:
        """A version that is served. One above the newest known may have been published a moment
        ago.
        """
        if number > space.current_version and self._is_published(space.name, number, call):
            self._routing.wait_for(
                partial(_has_version, previous=space, number=number),
                min(self._catch_up_s, call.remaining()),
            )
            space = self._routing.routes.space(space.name)
        return space.find_version(number)


def _draw_global(context: RequestContext, element: int, head: Any) -> Sections:
    """A global draw."""
    draw = decode_global_draw(element, context.space.schema, head)
    return sampling.draw(filters.with_filter(context, element, draw.types, head), draw)


def _has_changed(routes: Routes, *, previous: SpaceRoute) -> bool:
    space = routes.spaces.get(previous.name)
    return space is None or space.current_version != previous.current_version


def _has_version(routes: Routes, *, previous: SpaceRoute, number: int) -> bool:
    space = routes.spaces.get(previous.name)
    return space is None or space.current_version >= number
