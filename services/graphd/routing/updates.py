"""What metad tells: each poll's reply becomes a new snapshot of routes, and whoever waits for one
is woken, or asks for the reply itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import numpy as np

from asterism_daemonkit.calls import CallContext
from asterism_model.partition_stats import totals_by_weight_name
from asterism_model.prices import DEFAULT_LIMITS, Limits
from asterism_model.schema import Schema
from asterism_proto.errors import NotReady
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.routing.routes import Routes, ServedVersion, SpaceRoute
from graphd.routing.totals import VersionTotals


class RoutingTable:
    """The newest routes. Snapshots are immutable and swapped whole; a request keeps the one that it
    began with.

    Parameters
    ----------
    limits : Limits
        Of a request, for clients that call storageds themselves.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = graphd_pb.RequestLimits(
            rows=limits.rows, memory_bytes=limits.memory, steps=limits.steps
        )
        self._changed = threading.Condition()
        self._routes = Routes()
        self._reply: metad_pb.PollReply | None = None

    @property
    def routes(self) -> Routes:
        """The newest snapshot."""
        return self._routes

    @property
    def revision(self) -> int:
        """Metad's, of its last reply; 0 before the first one."""
        return self._reply.revision if self._reply is not None else 0

    @property
    def has_reply(self) -> bool:
        """Whether metad has told anything yet."""
        return self._reply is not None

    def apply_reply(self, reply: metad_pb.PollReply) -> Routes:
        """Take over a poll's reply; versions that were known already keep their records, with the
        shares made from them.
        """
        with self._changed:
            self._routes = build_routes(reply, self._routes)
            self._reply = reply
            self._changed.notify_all()
            return self._routes

    def wait_for(self, predicate: Callable[[Routes], bool], timeout_s: float) -> bool:
        """Wait until the newest snapshot is as wanted; False where it is not by then."""
        with self._changed:
            return self._changed.wait_for(lambda: predicate(self._routes), timeout_s)

    def get_routes(
        self, request: Frame[graphd_pb.GetRoutesRequest], call: CallContext
    ) -> Frame[graphd_pb.GetRoutesReply]:
        """What metad told last, for who asks storageds itself: a handler of the Graph service."""
        reply = self._reply
        if reply is None:
            raise NotReady("metad has not answered this graphd yet; ask again")
        is_unchanged = request.head.known_revision == reply.revision
        return Frame(
            graphd_pb.GetRoutesReply(
                revision=reply.revision,
                desired_state=None if is_unchanged else reply,
                limits=self._limits,
            )
        )

    def newest_versions(self) -> list[tuple[int, int]]:
        """(space id, newest version) of every space that has one: what this graphd has seen."""
        return [
            (space.space_id, space.current_version)
            for space in self._routes.spaces.values()
            if space.current_version
        ]


def build_routes(reply: metad_pb.PollReply, previous: Routes) -> Routes:
    """A snapshot of routes out of metad's words."""
    known_versions = {
        (space.space_id, number): version
        for space in previous.spaces.values()
        for number, version in space.versions.items()
    }
    return Routes(
        revision=reply.revision,
        spaces={route.space.name: _build_space(route, known_versions) for route in reply.spaces},
        addresses={host.uuid: host.address for host in reply.storaged},
    )


def _build_space(
    route: metad_pb.SpaceRoute, known_versions: Mapping[tuple[int, int], ServedVersion]
) -> SpaceRoute:
    preferred_hosts = [part.hosts[0] if part.hosts else "" for part in route.space.parts]
    hosts = tuple(sorted(set(preferred_hosts)))
    versions = {}
    for manifest in route.versions:
        known_version = known_versions.get((route.space.space_id, manifest.version))
        versions[manifest.version] = (
            known_version
            if known_version is not None and known_version.digest == manifest.digest
            else _build_version(manifest, len(preferred_hosts))
        )
    return SpaceRoute(
        space_id=route.space.space_id,
        name=route.space.name,
        schema=Schema.from_proto(route.space.schema),
        hosts=hosts,
        host_of_part=np.array([hosts.index(uuid) for uuid in preferred_hosts], np.int32),
        versions=versions,
        current_version=max(versions, default=0),
    )


def _build_version(manifest: common_pb.Manifest, parts: int) -> ServedVersion:
    part_totals, by_weight_name = totals_by_weight_name(manifest.totals)
    return ServedVersion(
        version=manifest.version,
        digest=manifest.digest,
        totals=VersionTotals(parts=parts, part_totals=part_totals, by_weight_name=by_weight_name),
    )
