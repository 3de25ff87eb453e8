"""A folder's reader: graphd's rooms over the images of what was published, without metad and without a database.

Many processes may read a folder while one writes it. A reader serves the versions that were published when it opened;
it locks the folder of each, and the writer removes only folders that nobody has locked.
"""

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

from asterism_proto.errors import AsterismError, Corrupt, InvalidRequest, NotFound, Stale
from asterism_proto.methods import CATALOG, GRAPH, STORE
from asterism_proto.prices import DEFAULT_LIMITS, Limits
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as meta
from daemonkit.calls import Call, Handler, LocalTransport, handlers_of
from daemonkit.identity import is_open
from graphd.api import GraphApi
from graphd.fanout import Fanout, Hosts
from graphd.news import News
from graphd.statements.door import Statements
from graphd.warm import warm
from standalone import published
from storaged.api import StoreApi
from storaged.draw import Share, Version, by_name
from storaged.folders import Folders
from storaged.holdings import Holdings
from storaged.pricing import priced
from storaged.store.image import open_part
from storaged.store.pages import fit, image_bytes

_HERE = "here"
_TERM_S, _LONGEST_TERM_S = 60.0, 1e9
_OPEN_ATTEMPTS = 5
"""A version may be removed between reading of it and opening it; then there is a newer word."""

_VERIFIED_BYTES = 1 << 30
"""Versions up to this size are checked whole as they are opened after a clean stop; every reader of a folder does so."""


class Images(Holdings):
    """The images of published versions: no stores, so that nothing is written."""

    def __init__(self, folders: Folders, published: meta.PollReply) -> None:
        super().__init__(folders)
        self._opened: dict[tuple[int, int], Version] = {}
        # A running writer has verified what it serves; what an unclean stop left behind is not verified.
        unopened = _VERIFIED_BYTES if folders.clean.exists() else sys.maxsize
        verify_bytes = 0 if is_open(folders.data) else unopened
        with ExitStack() as locks:
            for route in published.spaces:
                schema = Schema.from_proto(route.space.schema)
                for manifest in route.versions:
                    locks.callback(os.close, _locked(folders.build(route.space.space_id, manifest.job_id)))
                    self._opened[route.space.space_id, manifest.version] = _opened(
                        folders, route.space.space_id, schema, manifest, verify_bytes=verify_bytes
                    )
            self._locks = locks.pop_all()

    def close(self) -> None:
        """Let the writer remove what it retires."""
        self._locks.close()

    def version(self, space_id: int, version: int, digest: str) -> Version:
        """A version to draw from; Stale where it was not published when the folder was opened."""
        found = self._opened.get((space_id, version))
        if found is None or found.digest != digest:
            raise Stale(f"version {version} of space {space_id} is not among those that were published when the folder was opened")
        return found


class Catalog:
    """The reading half of the catalog, answered from what was published."""

    def __init__(self, published: meta.PollReply) -> None:
        self._routes = {route.space.name: route for route in published.spaces}
        self._lock = threading.Lock()
        self._pins: dict[int, meta.Pin] = {}
        self._last_pin = 0

    def list_spaces(self, request: pb.Empty, call: Call) -> meta.SpaceList:
        """All spaces."""
        return meta.SpaceList(spaces=[route.space for route in self._routes.values()])

    def describe_space(self, request: meta.SpaceRequest, call: Call) -> pb.Space:
        """One space."""
        return self._route(request.space).space

    def list_versions(self, request: meta.SpaceRequest, call: Call) -> meta.VersionList:
        """Its versions, newest first, without totals."""
        versions = []
        for manifest in reversed(self._route(request.space).versions):
            versions.append(pb.Manifest())
            versions[-1].CopyFrom(manifest)
            versions[-1].ClearField("totals")
        return meta.VersionList(versions=versions)

    def get_manifest(self, request: meta.ManifestRequest, call: Call) -> pb.Manifest:
        """One version with its totals."""
        versions = {manifest.version: manifest for manifest in self._route(request.space).versions}
        found = versions.get(request.version or max(versions, default=0))
        if found is None:
            raise NotFound(f"version {request.version} of space {request.space!r} is not held; those that are: {sorted(versions)}")
        return found

    def pin_version(self, request: meta.PinVersionRequest, call: Call) -> meta.Pin:
        """A lease on a version: all that were published when the folder was opened stay until it is closed."""
        if not (request.term_s >= 0 and request.term_s < _LONGEST_TERM_S):
            raise InvalidRequest(f"a pin's term of {request.term_s} s: expected 0 to {_LONGEST_TERM_S:g} s")
        manifest = self.get_manifest(meta.ManifestRequest(space=request.space, version=request.version), call)
        now_ms, term_s = int(time.time() * 1000), request.term_s or _TERM_S
        with self._lock:
            self._last_pin += 1
            pin = self._pins[self._last_pin] = meta.Pin(
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

    def renew_pin(self, request: meta.PinRequest, call: Call) -> meta.Pin:
        """A lease for another term."""
        with self._lock:
            pin = self._pins.get(request.pin_id)
            if pin is None:
                raise NotFound(f"pin {request.pin_id} is not there: it was released; pin again")
            pin.expires_ms = int(time.time() * 1000 + pin.term_s * 1000)
            return pin

    def release_pin(self, request: meta.PinRequest, call: Call) -> pb.Empty:
        """The end of a lease."""
        with self._lock:
            self._pins.pop(request.pin_id, None)
        return pb.Empty()

    def list_pins(self, request: meta.ListPinsRequest, call: Call) -> meta.PinList:
        """The leases of this reader."""
        with self._lock:
            return meta.PinList(pins=[pin for pin in self._pins.values() if request.space in ("", pin.space)])

    def list_hosts(self, request: pb.Empty, call: Call) -> meta.HostList:
        """Nobody else is here."""
        return meta.HostList()

    def _route(self, name: str) -> meta.SpaceRoute:
        found = self._routes.get(name)
        if found is None:
            raise NotFound(f"no space {name!r}; there are {', '.join(sorted(self._routes)) or 'none'}")
        return found


class Reader:
    """A folder, opened for reading.

    Parameters
    ----------
    folder : Path
    limits : Limits
        The largest request that is answered.

    Raises
    ------
    NotFound
        Where nobody ever wrote it.
    """

    def __init__(self, folder: Path, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        word, images = _open(folder)
        self._images = images
        for route in word.spaces:
            # Whatever hosts the writer knew: all parts are here.
            for part in route.space.parts:
                part.hosts[:] = [_HERE]
        word.storaged.add(uuid=_HERE, address=_HERE, online=True)
        news, hosts = News(), Hosts(lambda _: LocalTransport(priced(handlers_of(STORE, StoreApi(images)), limits, images.version)))
        hosts.know({_HERE: _HERE})
        news.apply(word)
        graph = GraphApi(
            news=news,
            fanout=Fanout(hosts),
            exists=lambda *_: False,
            published=lambda *_: False,
            committed=partial(_refuse, folder),
            metad=LocalTransport({}),
            catch_up_s=0.0,  # there is no news
            limits=limits,
        )
        catalog = Catalog(word)
        refused: Handler = partial(_refuse, folder)
        self.handlers: dict[str, Handler] = {method.path: getattr(catalog, name, refused) for name, method in CATALOG.items()}
        self.handlers |= handlers_of(GRAPH, graph, news, Statements(self.handlers, graph.space_of))
        self.handlers |= {GRAPH[name].path: refused for name in ("write", "write_once", "find_nodes")}

    def start(self) -> None:
        """Compile what graphd's rooms call."""
        warm()

    def stop(self) -> None:
        """Nothing runs; the folders of versions may go, and images go with their last user."""
        self._images.close()


def _open(folder: Path) -> tuple[meta.PollReply, Images]:
    folders = Folders(folder / "storaged")
    for attempt in range(_OPEN_ATTEMPTS):
        word = published.read(folder)
        try:
            return word, Images(folders, word)
        except AsterismError:
            if attempt + 1 == _OPEN_ATTEMPTS or published.read(folder) == word:
                raise
    raise AssertionError("the last attempt returns or raises")


def _locked(build: Path) -> int:
    """Hold a build's folder: the writer moves none aside that is held. NotFound where it is gone, or going."""
    try:
        lock = os.open(build, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NotFound(f"{build}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if os.stat(build).st_ino != os.fstat(lock).st_ino:
            raise NotFound(f"{build}: another one has taken its place")
    except OSError as error:
        os.close(lock)
        raise NotFound(f"{build}: {error.strerror}; it is being removed") from error
    except BaseException:
        os.close(lock)
        raise
    return lock


def _opened(folders: Folders, space_id: int, schema: Schema, manifest: pb.Manifest, *, verify_bytes: int) -> Version:
    parts = folders.build(space_id, manifest.job_id) / "parts"
    images, large = {}, fit(parts / f"p{sealed.part:05d}" for sealed in manifest.images)
    verify = image_bytes(parts / f"p{sealed.part:05d}" for sealed in manifest.images) <= verify_bytes
    for sealed in manifest.images:
        images[sealed.part] = open_part(parts / f"p{sealed.part:05d}", verify=verify, offsets=verify_bytes > 0, large=large)
        if images[sealed.part].digest != sealed.digest:
            raise Corrupt(f"the image of part {sealed.part} in {parts} is not the one that version {manifest.version} was sealed with")
    totals, named = by_name(
        (t.weight_name, (t.element, t.type_id, t.part), Share(count=t.count, positive=t.positive, weight=t.weight)) for t in manifest.totals
    )
    return Version(
        space_id=space_id,
        version=manifest.version,
        digest=manifest.digest,
        schema=schema,
        totals=totals,
        named=named,
        parts=images,
    )


def _refuse(folder: Path, *_: object) -> NoReturn:
    raise InvalidRequest(f"{folder} was opened for reading; open it with mode 'w' to write or build, or ask the service that has it open")
