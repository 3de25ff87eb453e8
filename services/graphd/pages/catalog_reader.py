"""Data access of the pages: metad's catalog, and weight histograms from storageds.

Immutable data is cached.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from google.protobuf.message import Message

from asterism_daemonkit.recent_logs import RECENT_RECORDS
from asterism_daemonkit.rpc.call_context import CallContext, current_principal
from asterism_model.schema import Schema
from asterism_proto.errors import Busy, Forbidden, NotFound
from asterism_proto.methods import CATALOG, HEARTBEATS, STORE
from asterism_proto.transport import Transport
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.operators.reads import WeightHistogram
from graphd.routing.routes import ServedVersion

M = TypeVar("M", bound=Message)
T = TypeVar("T")

METAD = "metad"
"""Name of metad among the daemons that return their log."""
METAD_TIMEOUT_S = 10.0
"""Deadline of a call to metad in seconds."""
HISTOGRAM_TIMEOUT_S = 60.0
"""Seconds that hosts may take to read the weights of a type."""
_MAX_MANIFESTS, _MAX_HISTOGRAMS = 64, 64
"""Maximum number of cached manifests and histograms."""

ReadHistogram = Callable[
    [str, int, int, int, str, CallContext], tuple[WeightHistogram, ServedVersion]
]
"""(space, version, element, type id, weight name, call) -> weight histogram, as in
`graphd.api.service`.
"""


class LruCache(Generic[T]):
    """Cache of the most recently used items."""

    def __init__(self, max_items: int) -> None:
        self._max_items = max_items
        self._lock = threading.Lock()
        self._items: OrderedDict[object, T] = OrderedDict()

    def get(self, key: object, create: Callable[[], T]) -> T:
        """Return the item under ``key``; create it if it is absent."""
        item = self.find(key)
        if item is None:
            item = create()
            self.store(key, item)
        return item

    def find(self, key: object) -> T | None:
        """Return the item under ``key``; None if it is absent."""
        with self._lock:
            if key not in self._items:
                return None
            self._items.move_to_end(key)
            return self._items[key]

    def store(self, key: object, item: T) -> None:
        """Store an item; drop the least recently used one if there are too many."""
        with self._lock:
            self._items[key] = item
            while len(self._items) > self._max_items:
                self._items.popitem(last=False)


class PageData:
    """Data that the pages show.

    Parameters
    ----------
    metad : Transport
    read_histogram : callable
        Reads the weight histogram of a type.
    storaged : callable
        Returns the transport to a storaged by uuid.
    catalog : Transport, optional
        Carries the calls of the Catalog service with the rights of the caller of a route. Default:
        they go to metad with those of this process.
    may_read_logs : callable, optional
        Returns whether the caller of a route may read the logs of daemons. Default: every caller.
    """

    def __init__(
        self,
        metad: Transport,
        read_histogram: ReadHistogram,
        storaged: Callable[[str], Transport],
        *,
        catalog: Transport | None = None,
        may_read_logs: Callable[[], bool] = lambda: True,
    ) -> None:
        self._metad = metad
        self._catalog = metad if catalog is None else catalog
        self.may_read_logs = may_read_logs
        self._read_histogram = read_histogram
        self._storaged = storaged
        self._manifests: LruCache[common_pb.Manifest] = LruCache(_MAX_MANIFESTS)
        self._histograms: LruCache[WeightHistogram] = LruCache(_MAX_HISTOGRAMS)
        self._reading = threading.Condition()
        self._key_being_read: object = None
        """Key of the histogram that a call is reading; None if there is none."""

    def hosts(self) -> list[metad_pb.Host]:
        """Return every daemon that sends heartbeats, storageds first."""
        return list(self._call_metad("list_hosts", common_pb.Empty(), metad_pb.HostList).hosts)

    def spaces(self) -> list[common_pb.Space]:
        """Return all spaces, by id."""
        return list(self._call_metad("list_spaces", common_pb.Empty(), metad_pb.SpaceList).spaces)

    def space(self, name: str) -> common_pb.Space:
        """Return a space; raise NotFound if it does not exist."""
        return self._call_metad(
            "describe_space", metad_pb.SpaceRequest(space=name), common_pb.Space
        )

    def versions(self, name: str) -> list[common_pb.Manifest]:
        """Return the served versions of a space, newest first, without totals."""
        return list(
            self._call_metad(
                "list_versions", metad_pb.SpaceRequest(space=name), metad_pb.VersionList
            ).versions
        )

    def pins(self, name: str) -> list[metad_pb.Pin]:
        """Return the leases on versions of a space."""
        return list(
            self._call_metad(
                "list_pins", metad_pb.ListPinsRequest(space=name), metad_pb.PinList
            ).pins
        )

    def manifest(self, space: common_pb.Space, version: int) -> common_pb.Manifest:
        """Return a version with its totals; 0 is the current one.

        Published versions are immutable, so each is requested once.

        Raises
        ------
        NotFound
            If the version is not served, or nothing is published yet.
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
        """Return a page of jobs, newest first."""
        return self._call_metad("list_jobs", request, metad_pb.JobList)

    def job(self, job_id: int) -> common_pb.Job:
        """Return a job with its tasks."""
        return self._call_metad("get_job", metad_pb.JobRequest(job_id=job_id), common_pb.Job)

    def submit_job(self, request: metad_pb.SubmitJobRequest) -> common_pb.Job:
        """Submit a job; return it, or an identical job that is already in progress."""
        return self._call_metad("submit_job", request, common_pb.Job)

    def stop_job(self, job_id: int) -> common_pb.Job:
        """Stop a job; return it."""
        return self._call_metad("stop_job", metad_pb.JobRequest(job_id=job_id), common_pb.Job)

    def recover_job(self, job_id: int) -> common_pb.Job:
        """Resume a failed or stopped job; return it."""
        return self._call_metad("recover_job", metad_pb.JobRequest(job_id=job_id), common_pb.Job)

    def catalog_fault(self) -> str:
        """Return why daemons do not follow metad's catalog; empty if they do."""
        reply = self._metad.call(CATALOG["describe_catalog"], common_pb.Empty(), METAD_TIMEOUT_S)
        return cast(metad_pb.CatalogState, reply).fault

    def log_records(self, daemon: str, limit: int = 0) -> list[common_pb.LogRecord]:
        """Return the newest log records of a daemon, newest first.

        Parameters
        ----------
        daemon : str
            Empty for this process, ``metad``, or the uuid of a storaged.
        limit : int, default 0
            Maximum number of records; 0: all that are kept.

        Raises
        ------
        Forbidden
            If the caller of the route may not read logs.
        """
        if not self.may_read_logs():
            raise Forbidden(
                "logs: expected an administrator of the cluster; ask one for the role admin in '*'"
            )
        if not daemon:
            return RECENT_RECORDS.newest(limit)
        request = common_pb.ListLogRecordsRequest(limit=limit)
        reply = (
            self._metad.call(HEARTBEATS["list_log_records"], request, METAD_TIMEOUT_S)
            if daemon == METAD
            else self._storaged(daemon).call(STORE["list_log_records"], request, METAD_TIMEOUT_S)
        )
        return list(cast(common_pb.LogRecordList, reply).records)

    def histogram(
        self,
        space: common_pb.Space,
        manifest: common_pb.Manifest,
        element: int,
        type_id: int,
        weight: str,
    ) -> WeightHistogram:
        """Return the weight histogram of a type.

        It is read from images once per version, one type at a time. Concurrent calls for the same
        type wait for the one that reads it.

        Raises
        ------
        Busy
            If another type is being read.
        """
        key = (manifest.digest, element, type_id, weight)
        histogram = self._histograms.find(key)
        if histogram is not None:
            return histogram
        self._start_reading(key)
        try:
            histogram = self._histograms.find(key)  # read while this call waited
            if histogram is None:
                histogram = self._read_histogram(
                    space.name,
                    manifest.version,
                    element,
                    type_id,
                    weight,
                    CallContext.with_timeout(HISTOGRAM_TIMEOUT_S, current_principal()),
                )[0]
                self._histograms.store(key, histogram)
            return histogram
        finally:
            with self._reading:
                self._key_being_read = None
                self._reading.notify_all()

    def _start_reading(self, key: object) -> None:
        """Begin to read a histogram, after waiting for a call that reads the same one."""
        with self._reading:
            if self._key_being_read not in (None, key):
                raise Busy(
                    "the weight histogram of another type is being read, and a graphd reads one "
                    "at a time; try again in a moment"
                )
            if not self._reading.wait_for(
                lambda: self._key_being_read is None, HISTOGRAM_TIMEOUT_S
            ):
                raise Busy("this weight histogram is still being read; try again in a moment")
            self._key_being_read = key

    def _call_metad(self, name: str, request: Message, reply_type: type[M]) -> M:
        return cast(M, self._catalog.call(CATALOG[name], request, METAD_TIMEOUT_S))


def schema_of(space: common_pb.Space) -> Schema:
    """Return the schema of a space."""
    return Schema.from_proto(space.schema)
