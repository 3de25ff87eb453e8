"""What graphd is asked: the Graph service. Decodes, checks, calls rooms, encodes; protobuf stops here."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest, NotFound, Stale, Unavailable
from asterism_proto.graph_prices import price_of, sizes_of
from asterism_proto.prices import DEFAULT_LIMITS, Limits, check
from asterism_proto.v1 import graphd_pb2 as wire
from asterism_proto.v1 import metad_pb2 as meta
from asterism_proto.v1 import storaged_pb2 as store
from asterism_proto.validation import MAX_ID, PIECES_PER_CHUNK
from daemonkit.calls import Call, Transport
from graphd import along, read, restriction, rows, sample, subgraph, until, walk, write
from graphd.conditions import Conditions
from graphd.explain import Explaining
from graphd.fanout import Fanout
from graphd.news import News
from graphd.once import Groups, Run, Single, SmallLoads
from graphd.operators import Operators
from graphd.requests import (
    adjacent_of,
    check_types,
    direction_of,
    draw_of,
    edge_types_of,
    hop_of,
    starts_of,
    subgraph_of,
    walking_of,
    weights_of,
)
from graphd.route import Routes, Space, Version
from graphd.sample import Sampling, Sections
from graphd.totals import EDGE, NODE
from graphd.write import Writing

T = TypeVar("T")

_ONCE_BYTES = 16 << 20
"""Of the arrays of one write by itself."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.2


class GraphApi(Operators, Explaining):
    """The handlers of the Graph service.

    Parameters
    ----------
    news : News
        Routes and versions.
    fanout : Fanout
        Who asks the storageds.
    exists : callable
        Whether metad knows a space of this name: asked before an unknown one is refused, for news travels.
    published : callable
        Whether metad serves this version of a space, likewise.
    committed : callable
        The loads of a space that count by now, in commit order, and the number of the last commit.
    metad : Transport
        Who gives loads to writes by themselves.
    catch_up_s : float
        How long a storaged may take to hold what metad has told of (spaces, versions), and this graphd to hear of it.
    limits : Limits
        The largest request that is answered.
    """

    def __init__(
        self,
        *,
        news: News,
        fanout: Fanout,
        exists: Callable[[str, Call], bool],
        published: Callable[[str, int, Call], bool],
        committed: Callable[[Space, Call], tuple[Sequence[int], int]],
        metad: Transport,
        catch_up_s: float,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__()
        self.limits = limits
        self._news = news
        self._fanout = fanout
        self._exists = exists
        self._published = published
        self._committed = committed
        self._catch_up_s = catch_up_s
        self._conditions = Conditions()
        self._groups = Groups(SmallLoads(metad=metad, write=self._write_run, settle=self.settle, seal=self.seal).carry)

    # -- writes ---------------------------------------------------------------------------------------------------

    def write(self, request: Frame, call: Call) -> Frame:
        """One chunk's rows of one type, durable at all parts that they touch."""
        head: Any = request.head

        def run(space: Space) -> int:
            count = rows.checked(space.schema, head.kind, head.type_id, request)
            if not 0 <= head.base <= MAX_ID - count:
                raise InvalidRequest(f"base={head.base}: expected 0 to {MAX_ID - count}, the first edge id of the chunk")
            if count:
                writing = self._writing(space, call, load_id=head.load_id, chunk=head.chunk)
                write.rows(writing, head.kind, head.type_id, head.base, request.arrays, ends_known=head.ends_known)
            return count

        return Frame(wire.WriteReply(rows=self._caught_up(head.space, call, run)))

    def write_once(self, request: Frame, call: Call) -> Frame:
        """A write by itself, committed with others that come at the same time."""
        head: Any = request.head

        def run(space: Space) -> int:
            count = rows.checked(space.schema, head.kind, head.type_id, request)
            if head.kind == store.OUT_EDGES:  # each by itself: one caller's unknown node is not another's fault
                write.check_ends(self._writing(space, call, load_id=0, chunk=0), head.type_id, request.arrays)
            return count

        size = sum(array.nbytes for array in request.arrays.values())
        if size > _ONCE_BYTES:
            raise InvalidRequest(f"{size} bytes in one write: expected {_ONCE_BYTES} at most; write them in a load")
        count = self._caught_up(head.space, call, run)
        single = Single(kind=head.kind, type_id=head.type_id, rows=count, sections=request.arrays, call=call)
        if count:
            self._groups.write(head.space, single)
        return Frame(wire.WriteOnceReply(rows=count, base=single.base, commit=single.commit))

    def _write_run(self, name: str, load_id: int, chunk: int, base: int, run: Run, call: Call) -> set[str]:
        """Make the rows of several writes durable, as one chunk; gives the hosts that were written to."""
        hosts: set[str] = set()

        def send(space: Space) -> None:
            writing = replace(self._writing(space, call, load_id=load_id, chunk=chunk * PIECES_PER_CHUNK), hosts=hosts)
            write.rows(writing, run.kind, run.type_id, base, run.sections, ends_known=True)

        self._caught_up(name, call, send)
        return hosts

    def find_nodes(self, request: Frame, call: Call) -> Frame:
        """Which ids of a type exist."""
        head: Any = request.head

        def run(space: Space) -> NDArray[np.uint8]:
            check_types("node", space.schema, [head.type_id])
            return write.exists(self._writing(space, call, load_id=head.load_id, chunk=0), head.type_id, request.array("ids", "int64"))

        return Frame(wire.FindNodesReply(), {"exists": self._caught_up(head.space, call, run)})

    def settle(self, name: str, load_id: int, call: Call) -> tuple[int, bool]:
        """Make a load ready to be committed: the commit number up to which deletes are settled, and whether it deletes nodes."""

        def run(space: Space) -> tuple[int, bool]:
            loads, last = self._committed(space, call)
            if load_id in loads:  # somebody asks again, for the answer
                return last, False
            return last, write.settle(self._writing(space, call, load_id=load_id, chunk=0), loads)

        return self._caught_up(name, call, run)

    def seal(self, name: str, load_id: int, hosts: Collection[str], number: int, call: Call) -> list[meta.HostSeal]:
        """Seal a load on some hosts of its space before it is committed."""
        return self._caught_up(name, call, lambda space: write.seal(self._writing(space, call, load_id=load_id, chunk=0), hosts, number))

    def _writing(self, space: Space, call: Call, *, load_id: int, chunk: int) -> Writing:
        def committed() -> Sequence[int]:
            return self._committed(space, call)[0]

        return Writing(space=space, fanout=self._fanout, call=call, load_id=load_id, chunk=chunk, committed=committed)

    # -- samples --------------------------------------------------------------------------------------------------

    def sample_nodes(self, request: Frame, call: Call) -> Frame:
        """Global draws of nodes."""
        sections, version = self._answered(request, call, lambda at: _drawn(at, NODE, request.head))
        return Frame(wire.SampleNodesReply(version=version.version, digest=version.digest), sections)

    def sample_edges(self, request: Frame, call: Call) -> Frame:
        """Global draws of edges."""
        sections, version = self._answered(request, call, lambda at: _drawn(at, EDGE, request.head))
        return Frame(wire.SampleEdgesReply(version=version.version, digest=version.digest), sections)

    def sample_neighbors(self, request: Frame, call: Call) -> Frame:
        """Neighbors of nodes."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            nodes, types = starts_of(request, at.space.schema)
            followed = until.of_neighbors(request, at.space.schema, edge_types_of(at.space.schema, head.edge_types))
            hop = hop_of(at.space.schema, head, head.edge_types, head.count, 0, followed)
            return sample.neighbors(restriction.by(at, EDGE, hop.edge_types, head), hop, nodes, head.node_type, types)

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleNeighborsReply(version=version.version, digest=version.digest), sections)

    def sample_fanout(self, request: Frame, call: Call) -> Frame:
        """Neighbors of neighbors, hop after hop."""
        head: Any = request.head
        if not head.hops:
            raise InvalidRequest("a fanout has one hop at least; this one has none")

        def run(at: Sampling) -> Sections:
            nodes, types = starts_of(request, at.space.schema)
            seen = until.of_fanout(request, at.space.schema, [edge_types_of(at.space.schema, hop.edge_types) for hop in head.hops])
            hops = [hop_of(at.space.schema, head, hop.edge_types, hop.count, h, seen[h]) for h, hop in enumerate(head.hops)]
            followed, columns = [edge_type for hop in hops for edge_type in hop.edge_types], along.wanted(at.space.schema, head)
            drawn = sample.fanout(restriction.by(at, EDGE, followed, head), hops, nodes, head.node_type, types)
            return along.fanout(at, columns, hops, nodes, head.node_type, types, drawn)

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleFanoutReply(version=version.version, digest=version.digest), sections)

    def random_walk(self, request: Frame, call: Call) -> Frame:
        """Walks from nodes."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            nodes, types = starts_of(request, at.space.schema)
            how = walking_of(at.space.schema, head)
            followed = [edge_type for step in how.steps for edge_type in step]
            return walk.walk(restriction.by(at, EDGE, followed, head), how, nodes, head.node_type, types)

        sections, version = self._answered(request, call, run)
        return Frame(wire.RandomWalkReply(version=version.version, digest=version.digest), sections)

    def sample_subgraph(self, request: Frame, call: Call) -> Frame:
        """Seeds with their neighbors and theirs, numbered."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            nodes, types = starts_of(request, at.space.schema)
            how = subgraph_of(at.space.schema, request)
            by = restriction.by(at, EDGE, [reach.edge_type for reach in head.reach], head)
            return along.subgraph(at, along.wanted(at.space.schema, head), subgraph.subgraph(by, how, nodes, head.node_type, types))

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleSubgraphReply(version=version.version, digest=version.digest), sections)

    # -- reads ----------------------------------------------------------------------------------------------------

    def neighbors(self, request: Frame, call: Call) -> Frame:
        """All neighbors of nodes."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            nodes, types = starts_of(request, at.space.schema)
            what = adjacent_of(at.space.schema, head)
            return read.neighbors(restriction.by(at, EDGE, what.edge_types, head), what, nodes, head.node_type, types)

        sections, version = self._at_version(request, call, run)
        return Frame(wire.NeighborsReply(version=version), sections)

    def degrees(self, request: Frame, call: Call) -> Frame:
        """How many edges nodes have, or what these weigh together."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            schema = at.space.schema
            nodes, types = starts_of(request, schema)
            edge_types, direction = edge_types_of(schema, head.edge_types), direction_of(schema, head.direction)
            by = restriction.by(at, EDGE, edge_types, head)
            if not head.weight:
                return read.degrees(by, edge_types, direction, nodes, head.node_type, types)
            return {"sums": read.measures(by, edge_types, direction, False, nodes, head.node_type, types)}

        sections, version = self._at_version(request, call, run)
        return Frame(wire.DegreesReply(version=version), sections)

    def node_features(self, request: Frame, call: Call) -> Frame:
        """Feature columns of nodes."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            check_types("node", at.space.schema, [head.type_id])
            return read.node_features(at, head.type_id, list(head.names), request.array("nodes", "int64"))

        sections, version = self._at_version(request, call, run)
        return Frame(wire.NodeFeaturesReply(version=version), sections)

    def edge_features(self, request: Frame, call: Call) -> Frame:
        """Feature columns of edges."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            check_types("edge", at.space.schema, [head.type_id])
            return read.edge_features(at, head.type_id, list(head.names), request.array("eids", "int64"))

        sections, version = self._at_version(request, call, run)
        return Frame(wire.EdgeFeaturesReply(version=version), sections)

    def scan_nodes(self, request: Frame, call: Call) -> Frame:
        """A run of one part's nodes."""
        head: Any = request.head

        def run(at: Sampling) -> tuple[Sections, int]:
            check_types("node", at.space.schema, [head.type_id])
            by = at.by(weights_of(NODE, at.space.schema, [head.type_id], head.weight))
            return read.scan_nodes(by, head.type_id, head.part, head.cursor, head.limit, list(head.names))

        (sections, cursor), version = self._at_version(request, call, run)
        return Frame(wire.ScanNodesReply(version=version, next_cursor=cursor), sections)

    def scan_edges(self, request: Frame, call: Call) -> Frame:
        """A run of one part's edges."""
        head: Any = request.head

        def run(at: Sampling) -> tuple[Sections, int]:
            check_types("edge", at.space.schema, [head.type_id])
            by = at.by(weights_of(EDGE, at.space.schema, [head.type_id], head.weight))
            return read.scan_edges(by, head.type_id, head.part, head.cursor, head.limit, list(head.names))

        (sections, cursor), version = self._at_version(request, call, run)
        return Frame(wire.ScanEdgesReply(version=version, next_cursor=cursor), sections)

    def nodes_at(self, request: Frame, call: Call) -> Frame:
        """Nodes by their place in a scan."""
        head: Any = request.head

        def run(at: Sampling) -> tuple[Sections, int]:
            check_types("node", at.space.schema, [head.type_id])
            return read.nodes_at(at, head.type_id, request.array("places", "int64"))

        (sections, count), version = self._at_version(request, call, run)
        return Frame(wire.NodesAtReply(version=version, count=count), sections)

    # -- versions -------------------------------------------------------------------------------------------------

    def _at_version(self, request: Frame, call: Call, run: Callable[[Sampling], T]) -> tuple[T, int]:
        """As `_answered`, and the version's number."""
        result, version = self._answered(request, call, run)
        return result, version.version

    def _answered(self, request: Frame, call: Call, run: Callable[[Sampling], T]) -> tuple[T, Version]:
        """Run a request at the version that it names, or at the current one: all of it, or all of it again.

        A storaged that does not hold the version answers Stale. A version that was published a moment ago is waited for;
        after that one that is named is NotFound, or Unavailable where metad still has it served.
        """
        head: Any = request.head

        def attempt(space: Space) -> tuple[T, Version]:
            version = self._version(space, head.version, call)
            price = price_of(head, sizes_of(request.arrays), schema=space.schema, counts=version.totals)
            if price is not None:
                check(price, self.limits)
            at = Sampling(space=space, version=version, fanout=self._fanout, call=call, conditions=self._conditions)
            try:
                return run(at), version
            except Stale:  # a storaged that lacks the version, or let go of what satisfied a condition
                self._conditions.forget(space.space_id, version.version)
                raise

        try:
            return self._caught_up(head.space, call, attempt, hopeless=lambda space: bool(head.version) and head.version not in space.versions)
        except Stale as error:
            if not head.version:
                raise
            if self._published(head.space, head.version, call):
                raise Unavailable(
                    f"version {head.version} of space {head.space!r} is served, but not yet by every storaged ({error.message}); try again"
                ) from error
            raise NotFound(f"version {head.version} of space {head.space!r} is no longer held; use another, or the current one") from error

    def _caught_up(self, name: str, call: Call, run: Callable[[Space], T], *, hopeless: Callable[[Space], bool] = lambda _: False) -> T:
        """Run with the newest routes; again while a storaged says Stale, for it may not have heard the news yet."""
        until = time.monotonic() + min(self._catch_up_s, call.remaining())
        pause = _FIRST_PAUSE_S
        while True:
            space = self.space_of(name, call)
            try:
                return run(space)
            except Stale:
                # By what is known now: the news may have come while it ran.
                if hopeless(self._news.routes.space(name)) or time.monotonic() + pause >= until:
                    raise
            self._news.wait_for(partial(_newer, before=space), pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def space_of(self, name: str, call: Call) -> Space:
        """A space by name. One that was made a moment ago, through another graphd perhaps, is waited for."""
        routes = self._news.routes
        if name not in routes.spaces and self._exists(name, call):
            self._news.wait_for(lambda routes: name in routes.spaces, min(self._catch_up_s, call.remaining()))
        return self._news.routes.space(name)

    def _version(self, space: Space, number: int, call: Call) -> Version:
        """A version that is served. One above the newest known may have been published a moment ago."""
        if number > space.current and self._published(space.name, number, call):
            self._news.wait_for(partial(_reached, before=space, number=number), min(self._catch_up_s, call.remaining()))
            space = self._news.routes.space(space.name)
        return space.at(number)


def _drawn(at: Sampling, element: int, head: Any) -> Sections:
    """A global draw."""
    what = draw_of(element, at.space.schema, head)
    return sample.draw(restriction.by(at, element, what.types, head), what)


def _newer(routes: Routes, *, before: Space) -> bool:
    now = routes.spaces.get(before.name)
    return now is None or now.current != before.current


def _reached(routes: Routes, *, before: Space, number: int) -> bool:
    now = routes.spaces.get(before.name)
    return now is None or now.current >= number
