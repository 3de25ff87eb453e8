"""Committed loads of a space.

Every lookup calls metad, but requests only the commits since the last reply.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import cast

from asterism_daemonkit.call_context import CallContext
from asterism_proto.errors import Deadline, Unavailable
from asterism_proto.methods import CATALOG
from asterism_proto.transport import Transport
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.routing.routes import SpaceRoute

_PAUSE_S = 0.1


class CommitLog:
    """Committed loads of every space, in commit order."""

    def __init__(self, metad: Transport) -> None:
        self._metad = metad
        self._lock = threading.Lock()
        self._known: dict[int, tuple[tuple[int, ...], int]] = {}
        """Space id -> (its loads, number of the last commit)."""

    def clear(self) -> None:
        """Drop all known commits: a metad that was just started may have another catalog."""
        with self._lock:
            self._known = {}

    def committed_loads(self, space: SpaceRoute, call: CallContext) -> tuple[tuple[int, ...], int]:
        """Return the committed loads of a space and the number of the last commit."""
        loads, last_commit = self._known.get(space.space_id, ((), 0))
        request = metad_pb.ListCommitsRequest(space=space.name, after=last_commit)
        reply = cast(
            metad_pb.CommitList,
            self._metad.call(CATALOG["list_commits"], request, call.remaining()),
        )
        if reply.loads:
            loads, last_commit = loads + tuple(reply.loads), reply.commits[-1]
            with self._lock:
                if last_commit > self._known.get(space.space_id, ((), 0))[1]:
                    self._known[space.space_id] = loads, last_commit
        return loads, last_commit


class LoadCommitter:
    """Commit loads: seal the hosts that wrote one, then commit it with their fingerprints.

    Parameters
    ----------
    metad : Transport
    resolve_revivals : callable
        ``(space, load id, call)``: sends every partition the deleted nodes that the load revives,
        like `graphd.api.writes.WriteHandlers.resolve_revivals`.
    seal : callable
        ``(space, load id, hosts, number, call)``: seals a load on some hosts, like
        `graphd.api.writes.WriteHandlers.seal`.
    """

    def __init__(
        self,
        metad: Transport,
        *,
        resolve_revivals: Callable[[str, int, CallContext], tuple[int, bool]],
        seal: Callable[[str, int, Collection[str], int, CallContext], list[metad_pb.HostSeal]],
    ) -> None:
        self._metad, self._resolve_revivals, self._seal = metad, resolve_revivals, seal

    def commit(
        self,
        request: metad_pb.CommitLoadRequest,
        call: CallContext,
        *,
        revivals_resolved: bool,
        hosts: Collection[str] = (),
        send_commit: Callable[[metad_pb.CommitLoadRequest], metad_pb.Load] | None = None,
    ) -> metad_pb.Load:
        """Commit a load once everything that was written to it is known.

        metad keeps the load open while a host may still write to it, or if nodes were deleted
        meanwhile. In that case this method seals the hosts, resolves revivals and tries again.

        Parameters
        ----------
        request : CommitLoadRequest
            Request with its space set.
        call : CallContext
        revivals_resolved : bool
            True if revivals are already resolved, or if there are none.
        hosts : collection of str
            Hosts that are known to have written to the load. They are sealed at once, up to their
            last admissions.
        send_commit : callable, optional
            Sends the commit to metad; by default one call without retries.
        """
        seals: dict[str, metad_pb.HostSeal] = {}
        number = 0
        while True:
            if not revivals_resolved:
                request.resolved_commit, request.deletes = self._resolve_revivals(
                    request.space, request.load_id, call
                )
            if hosts:
                seals.update(
                    (seal.host, seal) for seal in self._seal_hosts(request, hosts, number, call)
                )
            del request.seals[:]
            request.seals.extend(seals.values())
            load = self._commit(request, call) if send_commit is None else send_commit(request)
            if load.state != metad_pb.OPEN:
                return load
            # If every host is sealed, nodes were deleted meanwhile.
            hosts, number, revivals_resolved = (
                load.unsealed_hosts,
                load.seal_number,
                bool(load.unsealed_hosts),
            )

    def _seal_hosts(
        self,
        request: metad_pb.CommitLoadRequest,
        hosts: Collection[str],
        number: int,
        call: CallContext,
    ) -> list[metad_pb.HostSeal]:
        """Return the seals of hosts; retry an unreachable host until the deadline."""
        while True:
            try:
                return self._seal(request.space, request.load_id, hosts, number, call)
            except Deadline:
                raise
            except Unavailable:
                time.sleep(min(_PAUSE_S, call.remaining()))

    def _commit(self, request: metad_pb.CommitLoadRequest, call: CallContext) -> metad_pb.Load:
        return cast(
            metad_pb.Load, self._metad.call(CATALOG["commit_load"], request, call.remaining())
        )
