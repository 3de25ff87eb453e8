"""What metad tells: each poll's reply becomes a new snapshot of routes, and whoever waits for one is woken, or asks for the reply itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import numpy as np

from asterism_proto.arrays import Frame
from asterism_proto.errors import NotReady
from asterism_proto.prices import DEFAULT_LIMITS, Limits
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import graphd_pb2 as wire
from asterism_proto.v1 import metad_pb2 as meta
from daemonkit.calls import Call
from graphd.route import Routes, Space, Version
from graphd.totals import OWN_WEIGHTS, Total, Totals


class News:
    """The newest routes. Snapshots are immutable and swapped whole; a request keeps the one that it began with.

    Parameters
    ----------
    limits : Limits
        Of a request, for clients that call storageds themselves.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = wire.RequestLimits(rows=limits.rows, memory_bytes=limits.memory, steps=limits.steps)
        self._changed = threading.Condition()
        self._routes = Routes()
        self._told: meta.PollReply | None = None

    @property
    def routes(self) -> Routes:
        """The newest snapshot."""
        return self._routes

    @property
    def revision(self) -> int:
        """Metad's, of its last reply; 0 before the first one."""
        return self._told.revision if self._told is not None else 0

    @property
    def heard(self) -> bool:
        """Whether metad has told anything yet."""
        return self._told is not None

    def apply(self, reply: meta.PollReply) -> Routes:
        """Take over a poll's reply; versions that were known already keep their records, with the shares made from them."""
        with self._changed:
            self._routes = routes_of(reply, self._routes)
            self._told = reply
            self._changed.notify_all()
            return self._routes

    def wait_for(self, wanted: Callable[[Routes], bool], timeout_s: float) -> bool:
        """Wait until the newest snapshot is as wanted; False where it is not by then."""
        with self._changed:
            return self._changed.wait_for(lambda: wanted(self._routes), timeout_s)

    def get_routes(self, request: Frame, call: Call) -> Frame:
        """What metad told last, for who asks storageds itself: a handler of the Graph service."""
        told = self._told
        if told is None:
            raise NotReady("metad has not answered this graphd yet; ask again")
        known = request.head.known_revision == told.revision  # type: ignore[attr-defined]  # the method's own head
        return Frame(wire.GetRoutesReply(revision=told.revision, told=None if known else told, limits=self._limits))

    def versions(self) -> list[tuple[int, int]]:
        """(space id, newest version) of every space that has one: what this graphd has seen."""
        return [(space.space_id, space.current) for space in self._routes.spaces.values() if space.current]


def routes_of(reply: meta.PollReply, before: Routes) -> Routes:
    """A snapshot of routes out of metad's words."""
    known = {(space.space_id, number): version for space in before.spaces.values() for number, version in space.versions.items()}
    return Routes(
        revision=reply.revision,
        spaces={route.space.name: _space(route, known) for route in reply.spaces},
        addresses={host.uuid: host.address for host in reply.storaged},
    )


def _space(route: meta.SpaceRoute, known: Mapping[tuple[int, int], Version]) -> Space:
    preferred = [part.hosts[0] if part.hosts else "" for part in route.space.parts]
    hosts = tuple(sorted(set(preferred)))
    versions = {}
    for manifest in route.versions:
        kept = known.get((route.space.space_id, manifest.version))
        versions[manifest.version] = kept if kept is not None and kept.digest == manifest.digest else _version(manifest, len(preferred))
    return Space(
        space_id=route.space.space_id,
        name=route.space.name,
        schema=Schema.from_proto(route.space.schema),
        hosts=hosts,
        host_of_part=np.array([hosts.index(uuid) for uuid in preferred], np.int32),
        versions=versions,
        current=max(versions, default=0),
    )


def _version(manifest: pb.Manifest, parts: int) -> Version:
    by_share: dict[tuple[int, int, int], Total] = {}
    named: dict[str, dict[tuple[int, int, int], Total]] = {}
    for total in manifest.totals:
        of = by_share if total.weight_name in OWN_WEIGHTS else named.setdefault(total.weight_name, {})
        of[int(total.element), total.type_id, total.part] = Total(count=total.count, positive=total.positive, weight=total.weight)
    return Version(version=manifest.version, digest=manifest.digest, totals=Totals(parts=parts, by_share=by_share, named=named))
