"""Routing updates: each poll reply of metad becomes a new snapshot of routes.

Threads can wait for a snapshot, and clients can request the reply itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import numpy as np

from asterism_daemonkit.rpc.call_context import CallContext, waiting
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
    """The newest routes. Snapshots are immutable and replaced as a whole.

    A request keeps the snapshot that it started with.

    Parameters
    ----------
    limits : Limits
        Limits of a request, for clients that call storageds directly.
    lists_names : bool
        False if callers may not see all spaces, so that errors list no names of others.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, lists_names: bool = True) -> None:
        self._limits = graphd_pb.RequestLimits(
            rows=limits.rows, memory_bytes=limits.memory, steps=limits.steps
        )
        self._changed = threading.Condition()
        self._routes = Routes(lists_names=lists_names)
        self._reply: metad_pb.PollReply | None = None

    @property
    def routes(self) -> Routes:
        """The newest snapshot."""
        return self._routes

    @property
    def revision(self) -> int:
        """Revision of metad's last reply; 0 before the first one."""
        return self._reply.revision if self._reply is not None else 0

    @property
    def has_reply(self) -> bool:
        """True once metad has replied."""
        return self._reply is not None

    def apply_reply(self, reply: metad_pb.PollReply) -> Routes:
        """Apply a poll reply; known versions keep their records and computed shares.

        The access state is removed from the reply: clients receive the reply from `get_routes`,
        and must not see keys and grants."""
        reply.ClearField("access")
        with self._changed:
            self._routes = build_routes(reply, self._routes)
            self._reply = reply
            self._changed.notify_all()
            return self._routes

    def wait_for(self, predicate: Callable[[Routes], bool], timeout_s: float) -> bool:
        """Wait until the newest snapshot satisfies the predicate; return False on timeout."""
        with waiting(), self._changed:
            return self._changed.wait_for(lambda: predicate(self._routes), timeout_s)

    def get_routes(
        self, request: Frame[graphd_pb.GetRoutesRequest], call: CallContext
    ) -> Frame[graphd_pb.GetRoutesReply]:
        """Return metad's last reply to a client that calls storageds; Graph service handler."""
        reply = self._reply
        if reply is None:
            raise NotReady("no reply from metad yet; try again")
        is_unchanged = request.head.known_revision == reply.revision
        return Frame(
            graphd_pb.GetRoutesReply(
                revision=reply.revision,
                desired_state=None if is_unchanged else reply,
                limits=self._limits,
            )
        )

    def newest_versions(self) -> list[tuple[int, int]]:
        """Return (space id, newest version) of every space that has one on this graphd."""
        return [
            (space.space_id, space.current_version)
            for space in self._routes.spaces.values()
            if space.current_version
        ]


def build_routes(reply: metad_pb.PollReply, previous: Routes) -> Routes:
    """Build a snapshot of routes from a poll reply."""
    known_versions = {
        (space.space_id, number): version
        for space in previous.spaces.values()
        for number, version in space.versions.items()
    }
    return Routes(
        lists_names=previous.lists_names,
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
