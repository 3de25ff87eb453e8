"""Commit of a load, repeated until the outcome is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import cast

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.errors import Deadline, Unavailable
from asterism_proto.methods import CATALOG
from asterism_proto.transport import Transport
from asterism_proto.v1 import metad_pb2 as metad_pb

_PAUSE_S = 0.1


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
