"""Whom the pages ask: metad's catalog, and, for how weights are spread, the hosts of a space; what
can not change is kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from google.protobuf.message import Message

from asterism_daemonkit.calls import CallContext
from asterism_model.schema import Schema
from asterism_proto.errors import Busy, NotFound
from asterism_proto.methods import CATALOG
from asterism_proto.transport import Transport
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.operators.reads import WeightHistogram
from graphd.routing.routes import ServedVersion

M = TypeVar("M", bound=Message)
T = TypeVar("T")

METAD_TIMEOUT_S = 10.0
"""How long metad may take."""
HISTOGRAM_TIMEOUT_S = 60.0
"""How long hosts may take to read the weights of a type."""
_MAX_MANIFESTS, _MAX_HISTOGRAMS = 64, 64
"""That are kept."""

ReadHistogram = Callable[
    [str, int, int, int, str, CallContext], tuple[WeightHistogram, ServedVersion]
]
"""(space, version, element, type id, weight name, call) -> how weights are spread:
`graphd.api.service`.
"""


class LruCache(Generic[T]):
    """The last things that were asked for, by key."""

    def __init__(self, max_items: int) -> None:
        self._max_items = max_items
        self._lock = threading.Lock()
        self._items: OrderedDict[object, T] = OrderedDict()

    def get(self, key: object, create: Callable[[], T]) -> T:
        """What is kept under ``key``, made where it is not."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        item = create()
        with self._lock:
            self._items[key] = item
            while len(self._items) > self._max_items:
                self._items.popitem(last=False)
        return item


class PageData:
    """What there is to show.

    Parameters
    ----------
    metad : Transport
    read_histogram : callable
        Reads how the weights of a type are spread.
    """

    def __init__(self, metad: Transport, read_histogram: ReadHistogram) -> None:
        self._metad = metad
        self._read_histogram = read_histogram
        self._manifests: LruCache[common_pb.Manifest] = LruCache(_MAX_MANIFESTS)
        self._histograms: LruCache[WeightHistogram] = LruCache(_MAX_HISTOGRAMS)
        self._reading = threading.Lock()

    def hosts(self) -> list[metad_pb.Host]:
        """Every daemon that beats, storageds first."""
        return list(self._call_metad("list_hosts", common_pb.Empty(), metad_pb.HostList).hosts)

    def spaces(self) -> list[common_pb.Space]:
        """All spaces, by id."""
        return list(self._call_metad("list_spaces", common_pb.Empty(), metad_pb.SpaceList).spaces)

    def space(self, name: str) -> common_pb.Space:
        """A space; NotFound where there is none of that name."""
        return self._call_metad(
            "describe_space", metad_pb.SpaceRequest(space=name), common_pb.Space
        )

    def versions(self, name: str) -> list[common_pb.Manifest]:
        """The versions of a space that are served, newest first, without totals."""
        return list(
            self._call_metad(
                "list_versions", metad_pb.SpaceRequest(space=name), metad_pb.VersionList
            ).versions
        )

    def pins(self, name: str) -> list[metad_pb.Pin]:
        """The leases on versions of a space."""
        return list(
            self._call_metad(
                "list_pins", metad_pb.ListPinsRequest(space=name), metad_pb.PinList
            ).pins
        )

    def manifest(self, space: common_pb.Space, version: int) -> common_pb.Manifest:
        """A version with its totals; 0 is the current one. A published version does not change: it
        is asked for once.

        Raises
        ------
        NotFound
            Where it is not served, or nothing was published yet.
        """
        number = version or space.version
        if not number:
            raise NotFound(f"space {space.name!r} has no published version; submit a build")
        request = metad_pb.ManifestRequest(space=space.name, version=number)
        return self._manifests.get(
            (space.space_id, number),
            lambda: self._call_metad("get_manifest", request, common_pb.Manifest),
        )

    def jobs(self, request: metad_pb.ListJobsRequest) -> metad_pb.JobList:
        """A page of jobs, newest first."""
        return self._call_metad("list_jobs", request, metad_pb.JobList)

    def job(self, job_id: int) -> common_pb.Job:
        """A job with its tasks."""
        return self._call_metad("get_job", metad_pb.JobRequest(job_id=job_id), common_pb.Job)

    def submit_job(self, request: metad_pb.SubmitJobRequest) -> common_pb.Job:
        """A job that was asked for, or the identical one in flight."""
        return self._call_metad("submit_job", request, common_pb.Job)

    def stop_job(self, job_id: int) -> common_pb.Job:
        """A job on its way to its end."""
        return self._call_metad("stop_job", metad_pb.JobRequest(job_id=job_id), common_pb.Job)

    def recover_job(self, job_id: int) -> common_pb.Job:
        """A job under way again."""
        return self._call_metad("recover_job", metad_pb.JobRequest(job_id=job_id), common_pb.Job)

    def histogram(
        self,
        space: common_pb.Space,
        manifest: common_pb.Manifest,
        element: int,
        type_id: int,
        weight: str,
    ) -> WeightHistogram:
        """How the weights of a type are spread; read from images once per version, one type at a
        time.
        """

        def read() -> WeightHistogram:
            if not self._reading.acquire(blocking=False):
                raise Busy(
                    "the weights of another type are being read; this door reads one at a "
                    "time, try again in a moment"
                )
            try:
                return self._read_histogram(
                    space.name,
                    manifest.version,
                    element,
                    type_id,
                    weight,
                    CallContext.with_timeout(HISTOGRAM_TIMEOUT_S),
                )[0]
            finally:
                self._reading.release()

        return self._histograms.get((manifest.digest, element, type_id, weight), read)

    def _call_metad(self, name: str, request: Message, reply_type: type[M]) -> M:
        return cast(M, self._metad.call(CATALOG[name], request, METAD_TIMEOUT_S))


def schema_of(space: common_pb.Space) -> Schema:
    """Its schema as a record."""
    return Schema.from_proto(space.schema)
