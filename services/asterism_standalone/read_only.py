"""Read-only service of a folder: graphd's handlers over published partition images.

It needs neither metad nor a database. Many processes may read a folder while one writes to it. A
reader serves the versions that were published when it opened. It locks the folder of each version,
and the writer removes only folders without a lock."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NoReturn

from asterism_daemonkit.daemon_identity import is_folder_open
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_model.partition_stats import totals_by_weight_name
from asterism_model.prices import DEFAULT_LIMITS, Limits
from asterism_model.schema import Schema
from asterism_proto.errors import AsterismError, Corrupt, InvalidRequest, NotFound, Stale
from asterism_proto.methods import ACCESS, CATALOG, GRAPH
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_standalone import published_versions_file
from graphd.api.service import GraphService
from graphd.query.deferred_service import DeferredQueryService
from graphd.routing.dispatch import Dispatcher, StoragedPool
from graphd.routing.routing_table import RoutingTable
from storaged.api.service import StoreService
from storaged.local_spaces import LocalSpaces
from storaged.paths import DataPaths
from storaged.pricing import with_price_checks
from storaged.sampling import LocalVersion
from storaged.store.huge_pages import fits_memory, image_bytes
from storaged.store.image import open_part

_LOCAL_HOST = "here"
_DEFAULT_TERM_S, _MAX_TERM_S = 60.0, 1e9
_OPEN_ATTEMPTS = 5
"""Attempts to open: a version may be removed meanwhile, and the file then has newer ones."""

_MAX_VERIFIED_BYTES = 1 << 30
"""Versions up to this many bytes are verified in full when opened after a clean stop.

Every reader of a folder does so.
"""


class PublishedImages(LocalSpaces):
    """Images of published versions. There are no stores, so nothing is written."""

    def __init__(self, folders: DataPaths, reply: metad_pb.PollReply) -> None:
        super().__init__(folders)
        self._versions: dict[tuple[int, int], LocalVersion] = {}
        # A running writer has verified the versions that it serves. After an unclean stop, versions
        # of any size are verified.
        verify_limit_bytes = _MAX_VERIFIED_BYTES if folders.clean_marker.exists() else sys.maxsize
        verify_bytes = 0 if is_folder_open(folders.data) else verify_limit_bytes
        with ExitStack() as locks:
            for route in reply.spaces:
                schema = Schema.from_proto(route.space.schema)
                for manifest in route.versions:
                    locks.callback(
                        os.close, _lock_build(folders.build(route.space.space_id, manifest.job_id))
                    )
                    self._versions[route.space.space_id, manifest.version] = _open_version(
                        folders, route.space.space_id, schema, manifest, verify_bytes=verify_bytes
                    )
            self._locks = locks.pop_all()

    def close(self) -> None:
        """Release the locks, so that the writer can remove versions that it retires."""
        self._locks.close()

    def version(self, space_id: int, version: int, digest: str) -> LocalVersion:
        """Return a version to sample from; Stale if it was not published at opening time."""
        opened_version = self._versions.get((space_id, version))
        if opened_version is None or opened_version.digest != digest:
            raise Stale(
                f"version {version} of space {space_id} was not published when the folder was "
                "opened; open it again"
            )
        return opened_version


class ReadOnlyCatalog:
    """Read methods of the catalog, answered from the published file."""

    def __init__(self, reply: metad_pb.PollReply) -> None:
        self._routes = {route.space.name: route for route in reply.spaces}
        self._lock = threading.Lock()
        self._pins: dict[int, metad_pb.Pin] = {}
        self._last_pin = 0

    def list_spaces(self, request: common_pb.Empty, call: CallContext) -> metad_pb.SpaceList:
        """Return all spaces."""
        return metad_pb.SpaceList(spaces=[route.space for route in self._routes.values()])

    def describe_space(self, request: metad_pb.SpaceRequest, call: CallContext) -> common_pb.Space:
        """Return one space."""
        return self._route(request.space).space

    def list_versions(
        self, request: metad_pb.SpaceRequest, call: CallContext
    ) -> metad_pb.VersionList:
        """Return the versions of a space, newest first, without totals."""
        versions = []
        for manifest in reversed(self._route(request.space).versions):
            versions.append(common_pb.Manifest())
            versions[-1].CopyFrom(manifest)
            versions[-1].ClearField("totals")
        return metad_pb.VersionList(versions=versions)

    def get_manifest(
        self, request: metad_pb.ManifestRequest, call: CallContext
    ) -> common_pb.Manifest:
        """Return one version with its totals."""
        versions = {manifest.version: manifest for manifest in self._route(request.space).versions}
        selected = versions.get(request.version or max(versions, default=0))
        if selected is None:
            raise NotFound(
                f"version {request.version} of space {request.space!r} is not served; served "
                f"versions: {sorted(versions)}"
            )
        return selected

    def pin_version(self, request: metad_pb.PinVersionRequest, call: CallContext) -> metad_pb.Pin:
        """Create a lease on a version.

        All versions that were published at opening time stay until the folder is closed.
        """
        if not (request.term_s >= 0 and request.term_s < _MAX_TERM_S):
            raise InvalidRequest(f"term_s={request.term_s}: expected 0 to {_MAX_TERM_S:g}")
        manifest = self.get_manifest(
            metad_pb.ManifestRequest(space=request.space, version=request.version), call
        )
        now_ms, term_s = int(time.time() * 1000), request.term_s or _DEFAULT_TERM_S
        with self._lock:
            self._last_pin += 1
            pin = self._pins[self._last_pin] = metad_pb.Pin(
                pin_id=self._last_pin,
                space_id=manifest.space_id,
                space=request.space,
                version=manifest.version,
                owner=request.owner,
                term_s=term_s,
                created_ms=now_ms,
                expires_ms=now_ms + int(term_s * 1000),
            )
        return pin

    def renew_pin(self, request: metad_pb.PinRequest, call: CallContext) -> metad_pb.Pin:
        """Extend a lease by another term."""
        with self._lock:
            pin = self._pins.get(request.pin_id)
            if pin is None:
                raise NotFound(
                    f"pin {request.pin_id} does not exist: it was released; pin the version again"
                )
            pin.expires_ms = int(time.time() * 1000 + pin.term_s * 1000)
            return pin

    def release_pin(self, request: metad_pb.PinRequest, call: CallContext) -> common_pb.Empty:
        """End a lease."""
        with self._lock:
            self._pins.pop(request.pin_id, None)
        return common_pb.Empty()

    def list_pins(self, request: metad_pb.ListPinsRequest, call: CallContext) -> metad_pb.PinList:
        """Return the leases of this reader."""
        with self._lock:
            return metad_pb.PinList(
                pins=[pin for pin in self._pins.values() if request.space in ("", pin.space)]
            )

    def list_hosts(self, request: common_pb.Empty, call: CallContext) -> metad_pb.HostList:
        """Return no hosts: this process has no other daemons."""
        return metad_pb.HostList()

    def _route(self, name: str) -> metad_pb.SpaceRoute:
        route = self._routes.get(name)
        if route is None:
            raise NotFound(
                f"no space {name!r}; there are {', '.join(sorted(self._routes)) or 'none'}"
            )
        return route


class ReadOnlyService:
    """Service of a folder that is open for reading.

    Parameters
    ----------
    folder : Path
    limits : Limits
        Limits of a request.

    Raises
    ------
    NotFound
        If no writer has ever opened the folder.
    """

    def __init__(self, folder: Path, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        reply, images = _open_images(folder)
        self._images = images
        for route in reply.spaces:
            # All partitions are in this process, on whatever hosts the writer had them.
            for part in route.space.parts:
                part.hosts[:] = [_LOCAL_HOST]
        reply.storaged.add(uuid=_LOCAL_HOST, address=_LOCAL_HOST, online=True)
        routing, pool = (
            RoutingTable(),
            StoragedPool(
                lambda _: LocalTransport(
                    with_price_checks(StoreService(images).handlers, limits, images.version)
                )
            ),
        )
        pool.update_addresses({_LOCAL_HOST: _LOCAL_HOST})
        routing.apply_reply(reply)
        graph = GraphService(
            routing=routing,
            dispatcher=Dispatcher(pool),
            space_exists=lambda *_: False,
            is_published=lambda *_: False,
            committed_loads=partial(_refuse, folder),
            metad=LocalTransport({}),
            catch_up_s=0.0,  # routes never change
            limits=limits,
        )
        catalog = ReadOnlyCatalog(reply)
        refuse_handler: Handler = partial(_refuse, folder)
        self.handlers: dict[str, Handler] = {
            method.path: getattr(catalog, name, refuse_handler) for name, method in CATALOG.items()
        }
        self.handlers |= {method.path: refuse_handler for method in ACCESS.values()}
        query_service = DeferredQueryService(self.handlers, graph.versions.space_of)
        graph_handlers: dict[str, Handler] = {
            **graph.handlers,
            GRAPH["get_routes"].path: routing.get_routes,
            GRAPH["query"].path: query_service.query,
        }
        self.handlers |= graph_handlers
        self.handlers |= {
            GRAPH[name].path: refuse_handler for name in ("write", "write_once", "find_nodes")
        }

    def start(self) -> None:
        """No-op: kernels are compiled, or loaded, when they are first called."""

    def stop(self) -> None:
        """Release the folders of versions. Images close after their last use."""
        self._images.close()


def _open_images(folder: Path) -> tuple[metad_pb.PollReply, PublishedImages]:
    folders = DataPaths(folder / "storaged")
    for attempt in range(_OPEN_ATTEMPTS):
        reply = published_versions_file.read_published(folder)
        try:
            return reply, PublishedImages(folders, reply)
        except AsterismError:
            if (
                attempt + 1 == _OPEN_ATTEMPTS
                or published_versions_file.read_published(folder) == reply
            ):
                raise
    raise AssertionError("the last attempt returns or raises")


def _lock_build(build: Path) -> int:
    """Lock a build's folder, so that the writer does not move it aside.

    Raises NotFound if the folder is gone or is being removed.
    """
    try:
        lock_fd = os.open(build, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NotFound(f"{build}: {error.strerror}") from error
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if os.stat(build).st_ino != os.fstat(lock_fd).st_ino:
            raise NotFound(f"{build}: replaced by another build")
    except OSError as error:
        os.close(lock_fd)
        raise NotFound(f"{build}: {error.strerror}; it is being removed") from error
    except BaseException:
        os.close(lock_fd)
        raise
    return lock_fd


def _open_version(
    folders: DataPaths,
    space_id: int,
    schema: Schema,
    manifest: common_pb.Manifest,
    *,
    verify_bytes: int,
) -> LocalVersion:
    parts = folders.build(space_id, manifest.job_id) / "parts"
    images, large = (
        {},
        fits_memory(parts / f"p{image_digest.part:05d}" for image_digest in manifest.images),
    )
    verify = (
        image_bytes(parts / f"p{image_digest.part:05d}" for image_digest in manifest.images)
        <= verify_bytes
    )
    for image_digest in manifest.images:
        images[image_digest.part] = open_part(
            parts / f"p{image_digest.part:05d}",
            verify=verify,
            offsets=verify_bytes > 0,
            huge_pages=large,
        )
        if images[image_digest.part].digest != image_digest.digest:
            raise Corrupt(
                f"the image of part {image_digest.part} in {parts} does not match version "
                f"{manifest.version}"
            )
    totals, named_totals = totals_by_weight_name(manifest.totals)
    return LocalVersion(
        space_id=space_id,
        version=manifest.version,
        digest=manifest.digest,
        schema=schema,
        totals=totals,
        named_totals=named_totals,
        parts=images,
    )


def _refuse(folder: Path, *_: object) -> NoReturn:
    raise InvalidRequest(
        f"{folder} is open for reading; open it with mode 'w' to write or build, or send the "
        "call to the service that has it open"
    )
