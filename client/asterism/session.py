"""What a client's objects share: the transport, the schemas seen, and the newest version seen of each space."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from asterism.catalog import SpaceInfo
from asterism.transport import Transport
from asterism.versions import VersionInfo
from asterism.waiting import THREADS, Waits
from asterism_proto.arrays import Frame
from asterism_proto.errors import AsterismError, Deadline, NotFound, NotReady, Stale
from asterism_proto.graph_prices import price_of, sizes_of
from asterism_proto.methods import CATALOG, GRAPH
from asterism_proto.prices import check_reply
from asterism_proto.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import metad_pb2 as meta

_CATCH_UP_S = 5.0
"""How long a graphd may take to learn of a version that another one has answered with."""


_GLANCE_S = 1.0
"""What showing a graph may take to ask how much it holds."""


class Stoppable(Protocol):
    """Something that runs until it is stopped."""

    def stop(self) -> None:
        """Run no more."""


_open: WeakSet[Session] = WeakSet()


def _in_child() -> None:
    """A forked child has none of its parent's threads: what they held of locks is free."""
    for session in list(_open):
        session._lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


class Session:
    """One connection's shared state; thread-safe."""

    def __init__(self, transport: Transport, timeout_s: float, waits: Waits = THREADS) -> None:
        self.transport = transport
        self.timeout_s = timeout_s
        self.waits = waits
        self._lock = threading.Lock()
        self._schemas: dict[str, Schema] = {}
        self._newest: dict[str, int] = {}
        self._manifests: dict[str, VersionInfo] = {}
        self.leases: WeakSet[Stoppable] = WeakSet()
        """Whoever calls by itself: told when the session closes."""
        _open.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"transport": self.transport, "timeout_s": self.timeout_s, "waits": self.waits, "schemas": self._schemas, "newest": self._newest}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["transport"], state["timeout_s"], state["waits"])  # type: ignore[misc]  # the lock stays behind
        self._schemas, self._newest = dict(state["schemas"]), dict(state["newest"])

    def catalog(self, name: str, request: Message) -> Any:
        """A call to the catalog: the reply's message."""
        return self.transport.call(CATALOG[name], request, self.timeout_s)

    def graph(self, name: str, head: Message, arrays: Mapping[str, NDArray[Any]] | None = None) -> Frame:
        """Call the graph service; versions that are seen are not tracked.

        Raises
        ------
        InvalidRequest
            Before it is sent, where its reply is certain to be larger than a message, whatever the limits of the service are.
        """
        price = price_of(head, sizes_of(arrays or {}))
        if price is not None:
            check_reply(price)
        reply = self.transport.call(GRAPH[name], Frame(head, arrays or {}), self.timeout_s)
        assert isinstance(reply, Frame)
        return reply

    def read(self, name: str, head: Any, arrays: Mapping[str, NDArray[Any]] | None = None) -> Frame:
        """A call that reads a version: when none is pinned, never an older one than this session has seen.

        Raises
        ------
        Stale
            Where the graphd that answers does not catch up within 5 s.
        """
        space: str = head.space
        pinned = bool(head.version)
        floor = 0 if pinned else self._newest.get(space, 0)
        until = time.monotonic() + min(_CATCH_UP_S, self.timeout_s)
        while True:
            try:
                reply = self.graph(name, head, arrays)
                answered: int = reply.head.version  # type: ignore[attr-defined]  # every reading reply has one
            except NotReady:
                if not floor:
                    raise
                answered = 0
            if pinned or answered >= floor:
                break
            if time.monotonic() >= until:
                raise Stale(f"space {space!r}: graphd answers version {answered}, this client has seen {floor}; it lags behind, try again")
            self.waits.sleep(0.02)
        if not pinned:
            self.seen(space, answered)
        return reply

    def seen(self, space: str, version: int) -> None:
        """Note a version that later requests must not fall behind."""
        with self._lock:
            self._newest[space] = max(version, self._newest.get(space, 0))

    def newest(self) -> dict[str, int]:
        """The newest version seen of each space."""
        with self._lock:
            return dict(self._newest)

    def forget(self, space: str) -> None:
        """Drop what is known of a space that was dropped or made anew."""
        with self._lock:
            self._schemas.pop(space, None)
            self._newest.pop(space, None)

    def learn(self, info: SpaceInfo) -> SpaceInfo:
        """Keep a space's schema."""
        self.know(info.name, info.schema)
        return info

    def know(self, space: str, schema: Schema) -> None:
        """Keep the schema of a space."""
        with self._lock:
            self._schemas[space] = schema

    def schema(self, space: str, *, fresh: bool = False) -> Schema:
        """A space's schema, asked for once."""
        known = None if fresh else self._schemas.get(space)
        if known is None:
            known = self.learn(SpaceInfo.from_proto(self.catalog("describe_space", meta.SpaceRequest(space=space)))).schema
        return known

    def node_type(self, space: str, name: str) -> tuple[int, NodeType]:
        """A node type by name, with its id; NotFound says which there are."""
        try:
            schema = self.schema(space)
            at = schema.node_type_id(name)
        except NotFound:
            schema = self.schema(space, fresh=True)
            at = schema.node_type_id(name)
        return at, schema.node_types[at]

    def edge_type(self, space: str, name: str) -> tuple[int, EdgeType]:
        """An edge type by its triple or relation, with its id; NotFound says which there are."""
        try:
            schema = self.schema(space)
            at = schema.edge_type_id(name)
        except NotFound:
            schema = self.schema(space, fresh=True)
            at = schema.edge_type_id(name)
        return at, schema.edge_types[at]

    def edge_type_ids(self, space: str, names: Sequence[str]) -> list[int]:
        """Ids of edge types, every one where none is named."""
        return [self.edge_type(space, name)[0] for name in names] or list(range(len(self.schema(space).edge_types)))

    def knows(self, space: str) -> bool:
        """Whether a space's schema was learned."""
        return space in self._schemas

    def glance(self, space: str, version: int) -> VersionInfo | None:
        """What a version holds, for showing it: as it was last seen where it can not be asked for in a moment; None: not known."""
        last = self._manifests.get(space)
        if last is not None and version == last.version:
            return last
        if self.waits.may_block():
            request = meta.ManifestRequest(space=space, version=version)
            with contextlib.suppress(AsterismError):
                return self.manifest(self.transport.call(CATALOG["get_manifest"], request, min(_GLANCE_S, self.timeout_s)), space)
        return last if last is not None and not version else None

    def manifest(self, message: Any, space: str) -> VersionInfo:
        """A version's manifest, which is kept for showing it."""
        info = VersionInfo.from_proto(message)
        self._manifests[space] = info
        return info

    def close(self) -> None:
        """Close the transport."""
        for lease in list(self.leases):
            lease.stop()
        self.transport.close()


def left(deadline: float) -> float:
    """Seconds until ``deadline`` on the monotonic clock; Deadline when there are none."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise Deadline("the time given is up; ask with a longer timeout_s")
    return remaining


def edge_types_of(nodes: NDArray[np.int64], types: NDArray[np.int32] | None, wanted: Sequence[int]) -> NDArray[np.int32]:
    """The edge type of each neighbor: a reply leaves them out where there was only one to choose from."""
    if types is not None:
        return types
    return np.where(nodes >= 0, np.int32(wanted[0] if wanted else -1), np.int32(-1))
