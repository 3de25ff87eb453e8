"""State shared by a client's objects: transport, schemas, and newest versions seen."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast
from weakref import WeakSet

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from asterism.records.catalog import SpaceInfo
from asterism.records.versions import VersionInfo
from asterism.transport.fork_hooks import FORK_GUARD
from asterism.transport.grpc import ClientClosed, ClientTransport
from asterism.transport.waiters import THREAD_WAITER, Waiter
from asterism_model.graph_prices import price_request, section_sizes
from asterism_model.prices import check_reply
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import AsterismError, Deadline, NotFound, NotReady, Stale
from asterism_proto.framing import Frame
from asterism_proto.methods import ACCESS, CATALOG, GRAPH
from asterism_proto.v1 import metad_pb2 as metad_pb

_CATCH_UP_S = 5.0
"""Seconds for a graphd to learn of a version that another graphd has already served."""


_MANIFEST_TIMEOUT_S = 1.0
"""Timeout in seconds for reading a manifest to display a graph."""


class BackgroundActivity(Protocol):
    """Background activity that can be stopped."""

    def stop(self) -> None:
        """Stop the activity."""


class VersionRequest(Protocol):
    """Fields that every request for a version has."""

    space: str
    version: int


class VersionReply(Protocol):
    """Fields that every reply read at a version has."""

    version: int


class Session:
    """Shared state of one connection. Thread-safe."""

    def __init__(
        self, transport: ClientTransport, timeout_s: float, waiter: Waiter = THREAD_WAITER
    ) -> None:
        self.transport = transport
        self.timeout_s = timeout_s
        self.waiter = waiter
        self._lock = threading.Lock()
        self._schemas: dict[str, Schema] = {}
        self._newest: dict[str, int] = {}
        self._manifests: dict[str, VersionInfo] = {}
        self._closed = False
        self.leases: WeakSet[BackgroundActivity] = WeakSet()
        """Leases with a renewal thread; they are stopped when the session closes."""
        FORK_GUARD.add_lock_owner(self)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "transport": self.transport,
            "timeout_s": self.timeout_s,
            "waits": self.waiter,
            "schemas": self._schemas,
            "newest": self._newest,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A lock cannot be pickled; the copy creates its own.
        self.__init__(state["transport"], state["timeout_s"], state["waits"])  # type: ignore[misc]
        self._schemas, self._newest = dict(state["schemas"]), dict(state["newest"])

    def renew_lock(self) -> None:
        """Replace the lock in a forked child."""
        self._lock = threading.Lock()

    def catalog(self, name: str, request: Message) -> Any:
        """Call the catalog and return the reply message."""
        self._require_open()
        return self.transport.call(CATALOG[name], request, self.timeout_s)

    def access(self, name: str, request: Message) -> Any:
        """Call the service of access control and return the reply message."""
        self._require_open()
        return self.transport.call(ACCESS[name], request, self.timeout_s)

    def graph(
        self, name: str, head: Message, arrays: Mapping[str, NDArray[Any]] | None = None
    ) -> Frame[Message]:
        """Call the graph service without tracking versions.

        Parameters
        ----------
        name : str
            Name of the method.
        head : Message
            Head of the request.
        arrays : dict of str to ndarray, optional
            Sections of the request.

        Returns
        -------
        Frame
            Head and sections of the reply.

        Raises
        ------
        InvalidRequest
            If the reply is certain to exceed the maximum message size. Over gRPC, nothing is sent
            then.
        ClientClosed
            If the session is closed.
        """
        self._require_open()
        if self.transport.prices_requests:
            price = price_request(head, section_sizes(arrays or {}))
            if price is not None:
                check_reply(price)
        reply = self.transport.call(GRAPH[name], Frame(head, arrays or {}), self.timeout_s)
        assert isinstance(reply, Frame)
        return reply

    def read(
        self,
        name: str,
        head: VersionRequest,
        arrays: Mapping[str, NDArray[Any]] | None = None,
    ) -> Frame[VersionReply]:
        """Call a method that reads a version.

        Unless the request names a version, the reply is never older than one that this session has
        seen.

        Parameters
        ----------
        name : str
            Name of the method.
        head : VersionRequest
            Head of the request; version 0 is the current one.
        arrays : dict of str to ndarray, optional
            Sections of the request.

        Returns
        -------
        Frame
            Head and sections of the reply.

        Raises
        ------
        Stale
            If the graphd does not catch up within 5 s, or within the session's timeout if that is
            shorter.
        """
        space = head.space
        pinned = bool(head.version)
        floor = 0 if pinned else self._newest.get(space, 0)
        deadline = time.monotonic() + min(_CATCH_UP_S, self.timeout_s)
        while True:
            try:
                reply = cast("Frame[VersionReply]", self.graph(name, cast(Message, head), arrays))
                reply_version = reply.head.version
            except NotReady:
                if not floor:
                    raise
                reply_version = 0
            if pinned or reply_version >= floor:
                break
            if time.monotonic() >= deadline:
                raise Stale(
                    f"space {space!r}: expected version {floor} or newer, which this client has "
                    f"read before; graphd is still at {reply_version}, try again"
                )
            self.waiter.sleep(0.02)
        if not pinned:
            self.note_version(space, reply_version)
        return reply

    def note_version(self, space: str, version: int) -> None:
        """Record the lower bound of the versions of later replies."""
        with self._lock:
            self._newest[space] = max(version, self._newest.get(space, 0))

    def newest_versions(self) -> dict[str, int]:
        """Return the newest version seen of each space."""
        with self._lock:
            return dict(self._newest)

    def forget(self, space: str) -> None:
        """Drop cached state of a space that was dropped or recreated."""
        with self._lock:
            self._schemas.pop(space, None)
            self._newest.pop(space, None)

    def store_space(self, info: SpaceInfo) -> SpaceInfo:
        """Cache the schema of a space and return the space."""
        self.store_schema(info.name, info.schema)
        return info

    def store_schema(self, space: str, schema: Schema) -> None:
        """Cache the schema of a space."""
        with self._lock:
            self._schemas[space] = schema

    def schema(self, space: str, *, fresh: bool = False) -> Schema:
        """Return a space's schema, cached unless ``fresh``."""
        cached = None if fresh else self._schemas.get(space)
        if cached is None:
            cached = self.store_space(
                SpaceInfo.from_proto(
                    self.catalog("describe_space", metad_pb.SpaceRequest(space=space))
                )
            ).schema
        return cached

    def node_type(self, space: str, name: str) -> tuple[int, NodeType]:
        """Return a node type and its id by name; NotFound lists the existing types."""
        try:
            schema = self.schema(space)
            type_id = schema.node_type_id(name)
        except NotFound:
            schema = self.schema(space, fresh=True)
            type_id = schema.node_type_id(name)
        return type_id, schema.node_types[type_id]

    def edge_type(self, space: str, name: str) -> tuple[int, EdgeType]:
        """Return an edge type and its id by triple or relation; NotFound lists the types."""
        try:
            schema = self.schema(space)
            type_id = schema.edge_type_id(name)
        except NotFound:
            schema = self.schema(space, fresh=True)
            type_id = schema.edge_type_id(name)
        return type_id, schema.edge_types[type_id]

    def edge_type_ids(self, space: str, names: Sequence[str]) -> list[int]:
        """Return the ids of edge types; of all types if no name is given."""
        return [self.edge_type(space, name)[0] for name in names] or list(
            range(len(self.schema(space).edge_types))
        )

    def has_schema(self, space: str) -> bool:
        """Return True if the schema of a space is cached."""
        return space in self._schemas

    def cached_manifest(self, space: str, version: int) -> VersionInfo | None:
        """Return the description of a version for display.

        Falls back to the last one seen if metad does not reply in a moment; None if there is none.
        """
        cached = self._manifests.get(space)
        if cached is not None and version == cached.version:
            return cached
        if self.waiter.may_block():
            request = metad_pb.ManifestRequest(space=space, version=version)
            with contextlib.suppress(AsterismError):
                return self.manifest(
                    self.transport.call(
                        CATALOG["get_manifest"], request, min(_MANIFEST_TIMEOUT_S, self.timeout_s)
                    ),
                    space,
                )
        return cached if cached is not None and not version else None

    def manifest(self, message: Any, space: str) -> VersionInfo:
        """Decode a manifest, and cache it for display."""
        info = VersionInfo.from_proto(message)
        self._manifests[space] = info
        return info

    def _require_open(self) -> None:
        if self._closed:
            raise ClientClosed

    def close(self) -> None:
        """Stop the leases and close the transport; later calls raise ClientClosed."""
        self._closed = True
        for lease in list(self.leases):
            lease.stop()
        self.transport.close()


def seconds_left(deadline: float) -> float:
    """Return the seconds until a monotonic ``deadline``, or raise Deadline."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise Deadline("timeout_s: expired before the call ended; pass a longer timeout_s")
    return remaining


def fill_edge_types(
    nodes: NDArray[np.int64], types: NDArray[np.int32] | None, edge_types: Sequence[int]
) -> NDArray[np.int32]:
    """Return the edge type of each neighbor.

    A reply leaves the types out if the request has only one edge type.
    """
    if types is not None:
        return types
    return np.where(nodes >= 0, np.int32(edge_types[0] if edge_types else -1), np.int32(-1))
