"""Whom the pages ask: metad's catalog, and, for how weights are spread, the hosts of a space; what can not change is kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from google.protobuf.message import Message

from asterism_proto.errors import Busy, NotFound
from asterism_proto.methods import CATALOG
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as meta
from daemonkit.calls import Call, Transport
from graphd.read import Spread
from graphd.route import Version

M = TypeVar("M", bound=Message)
T = TypeVar("T")

ASK_S = 10.0
"""How long metad may take."""
SPREAD_S = 60.0
"""How long hosts may take to read the weights of a type."""
_MANIFESTS, _SPREADS = 64, 64
"""That are kept."""

SpreadOf = Callable[[str, int, int, int, str, Call], tuple[Spread, Version]]
"""(space, version, element, type id, weight name, call) -> how weights are spread: `graphd.operators`."""


class Kept(Generic[T]):
    """The last things that were asked for, by key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._items: OrderedDict[object, T] = OrderedDict()

    def get(self, key: object, make: Callable[[], T]) -> T:
        """What is kept under ``key``, made where it is not."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        made = make()
        with self._lock:
            self._items[key] = made
            while len(self._items) > self._most:
                self._items.popitem(last=False)
        return made


class Source:
    """What there is to show.

    Parameters
    ----------
    metad : Transport
    spread_of : callable
        Reads how the weights of a type are spread.
    """

    def __init__(self, metad: Transport, spread_of: SpreadOf) -> None:
        self._metad = metad
        self._spread_of = spread_of
        self._manifests: Kept[pb.Manifest] = Kept(_MANIFESTS)
        self._spreads: Kept[Spread] = Kept(_SPREADS)
        self._reading = threading.Lock()

    def hosts(self) -> list[meta.Host]:
        """Every daemon that beats, storageds first."""
        return list(self._ask("list_hosts", pb.Empty(), meta.HostList).hosts)

    def spaces(self) -> list[pb.Space]:
        """All spaces, by id."""
        return list(self._ask("list_spaces", pb.Empty(), meta.SpaceList).spaces)

    def space(self, name: str) -> pb.Space:
        """A space; NotFound where there is none of that name."""
        return self._ask("describe_space", meta.SpaceRequest(space=name), pb.Space)

    def versions(self, name: str) -> list[pb.Manifest]:
        """The versions of a space that are served, newest first, without totals."""
        return list(self._ask("list_versions", meta.SpaceRequest(space=name), meta.VersionList).versions)

    def pins(self, name: str) -> list[meta.Pin]:
        """The leases on versions of a space."""
        return list(self._ask("list_pins", meta.ListPinsRequest(space=name), meta.PinList).pins)

    def manifest(self, space: pb.Space, version: int) -> pb.Manifest:
        """A version with its totals; 0 is the current one. A published version does not change: it is asked for once.

        Raises
        ------
        NotFound
            Where it is not served, or nothing was published yet.
        """
        number = version or space.version
        if not number:
            raise NotFound(f"space {space.name!r} has no published version; submit a build")
        request = meta.ManifestRequest(space=space.name, version=number)
        return self._manifests.get((space.space_id, number), lambda: self._ask("get_manifest", request, pb.Manifest))

    def jobs(self, request: meta.ListJobsRequest) -> meta.JobList:
        """A page of jobs, newest first."""
        return self._ask("list_jobs", request, meta.JobList)

    def job(self, job_id: int) -> pb.Job:
        """A job with its tasks."""
        return self._ask("get_job", meta.JobRequest(job_id=job_id), pb.Job)

    def submit(self, request: meta.SubmitJobRequest) -> pb.Job:
        """A job that was asked for, or the identical one in flight."""
        return self._ask("submit_job", request, pb.Job)

    def stop(self, job_id: int) -> pb.Job:
        """A job on its way to its end."""
        return self._ask("stop_job", meta.JobRequest(job_id=job_id), pb.Job)

    def recover(self, job_id: int) -> pb.Job:
        """A job under way again."""
        return self._ask("recover_job", meta.JobRequest(job_id=job_id), pb.Job)

    def spread(self, space: pb.Space, manifest: pb.Manifest, element: int, type_id: int, weight: str) -> Spread:
        """How the weights of a type are spread; read from images once per version, one type at a time."""

        def read() -> Spread:
            if not self._reading.acquire(blocking=False):
                raise Busy("the weights of another type are being read; this door reads one at a time, try again in a moment")
            try:
                return self._spread_of(space.name, manifest.version, element, type_id, weight, Call.within(SPREAD_S))[0]
            finally:
                self._reading.release()

        return self._spreads.get((manifest.digest, element, type_id, weight), read)

    def _ask(self, name: str, request: Message, kind: type[M]) -> M:
        return cast(M, self._metad.call(CATALOG[name], request, ASK_S))


def schema_of(space: pb.Space) -> Schema:
    """Its schema as a record."""
    return Schema.from_proto(space.schema)
