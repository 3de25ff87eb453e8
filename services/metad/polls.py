"""What a daemon should know and do: the whole desired state, as one reply. Called by `metad.api` for each poll."""

from __future__ import annotations

from collections.abc import Callable

from asterism_proto.indexes import indexes_to_proto
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad import wire, wire_history
from metad.board import Board
from metad.catalog.catalog import Catalog
from metad.catalog.model import Manifest, Space
from metad.catalog.spaces import held_parts
from metad.cluster import Cluster, Role
from metad.followers import Standing
from metad.ids import HostId
from metad.jobs.driver import Driver
from metad.jobs.kinds import kind_of
from metad.jobs.model import Job


class Polls:
    """Composes replies from the catalog, the cluster and the jobs.

    Parameters
    ----------
    board, catalog, cluster, driver
        What is told.
    kept_jobs : callable
        The jobs whose leftovers stay.
    """

    def __init__(self, *, board: Board, catalog: Catalog, cluster: Cluster, driver: Driver, kept_jobs: Callable[[], list[Job]]) -> None:
        self._board = board
        self._catalog = catalog
        self._cluster = cluster
        self._driver = driver
        self._kept_jobs = kept_jobs
        self._messages: dict[tuple[int, int], pb.Manifest] = {}
        """Manifests as messages, by (space, version): a manifest never changes and may carry many totals."""

    def reply(self, role: Role, uuid: HostId, standing: Standing) -> mpb.PollReply:
        """The desired state of one daemon, at one revision; nothing of it for one that is ahead of the catalog."""
        with self._board.lock:
            self._tidy()
            reply = mpb.PollReply(
                revision=self._board.revision,
                cluster=self._catalog.cluster,
                position=wire_history.position_to(self._catalog.history.position),
                continues=standing is not Standing.AHEAD,
                adopted=standing is Standing.GIVEN_UP,
            )
            if standing is Standing.AHEAD:
                return reply
            if role is Role.STORAGED:
                self._for_storaged(reply, uuid)
            else:
                self._for_graphd(reply)
            return reply

    def _for_storaged(self, reply: mpb.PollReply, uuid: HostId) -> None:
        for space in self._catalog.spaces.all():
            if held_parts(space, uuid):
                self._add_route(reply, space)
                reply.open_loads.extend(self._catalog.loads.open_of(space.space_id))
                reply.abandoned_loads.extend(self._catalog.loads.abandoned_of(space.space_id))
        for job in self._kept_jobs():
            if any(task.host == uuid for task in job.tasks):
                reply.kept_jobs.add(space_id=job.space_id, job_id=job.job_id)
        reply.removals.extend(wire_history.removal_to(removal) for removal in self._catalog.removals.of(uuid))
        for job, task in self._driver.orders(uuid):
            loads = self._catalog.loads.committed_up_to(job.space_id, job.cut)
            reply.orders.add(
                task_id=task.task_id,
                job_id=job.job_id,
                attempt=task.attempt,
                kind=job.kind,
                space_id=job.space_id,
                parts=task.parts,
                cut=job.cut,
                loads=[load_id for _, load_id in loads],
                commits=[commit for commit, _ in loads],
                options=dict(job.options),
                version=job.target_version,
                manifest=self._manifest(job),
                indexes=indexes_to_proto(job.indexes),
            )

    def _for_graphd(self, reply: mpb.PollReply) -> None:
        for space in self._catalog.spaces.all():
            self._add_route(reply, space)
        for host in self._cluster.hosts.values():
            if host.role is Role.STORAGED:
                reply.storaged.append(wire.host_to(host))

    def _add_route(self, reply: mpb.PollReply, space: Space) -> None:
        route = reply.spaces.add(space=wire.space_to(space))
        route.versions.extend(self._message(manifest) for manifest in self._catalog.versions.served(space.space_id))

    def _manifest(self, job: Job) -> pb.Manifest | None:
        """What a restore is to bring back; of other jobs none."""
        awaited = self._catalog.restores.awaited(job.space_id) if kind_of(job.kind).restores else None
        return wire.manifest_to(awaited) if awaited is not None else None

    def _message(self, manifest: Manifest) -> pb.Manifest:
        key = (manifest.space_id, manifest.version)
        if key not in self._messages:
            self._messages[key] = wire.manifest_to(manifest)
        return self._messages[key]

    def _tidy(self) -> None:
        served = {(space.space_id, m.version) for space in self._catalog.spaces.all() for m in self._catalog.versions.served(space.space_id)}
        for key in self._messages.keys() - served:
            del self._messages[key]
