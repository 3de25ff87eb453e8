"""Desired state of a daemon, composed as one reply for each poll. Called by `metad.catalog_api`."""

from __future__ import annotations

from collections.abc import Callable

from asterism_model.indexes import indexes_to_proto
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.catalog.catalog import Catalog
from metad.catalog.spaces import parts_of_host
from metad.change_feed import ChangeFeed
from metad.follower_positions import FollowerStatus
from metad.jobs.driver import Driver
from metad.membership import ClusterMembership
from metad.model.catalog import Manifest, Space
from metad.model.hosts import DaemonRole
from metad.model.ids import HostId
from metad.model.job_kinds import find_kind
from metad.model.jobs import Job
from metad.wire import access, hosts
from metad.wire import catalog as wire


class DesiredStateBuilder:
    """Builder of poll replies from the catalog, the cluster and the jobs.

    Parameters
    ----------
    change_feed, catalog, cluster, driver
        Sources of the desired state.
    recoverable_jobs : callable
        Returns the jobs that storageds must keep leftovers of.
    """

    def __init__(
        self,
        *,
        change_feed: ChangeFeed,
        catalog: Catalog,
        cluster: ClusterMembership,
        driver: Driver,
        recoverable_jobs: Callable[[], list[Job]],
    ) -> None:
        self._change_feed = change_feed
        self._catalog = catalog
        self._cluster = cluster
        self._driver = driver
        self._recoverable_jobs = recoverable_jobs
        self._manifest_messages: dict[tuple[int, int], common_pb.Manifest] = {}
        """Cached manifest messages by (space, version).

        A manifest never changes and may carry many totals."""
        self._access_message: tuple[int, metad_pb.AccessState] | None = None
        """Cache: the number of changes of the access records, with their message."""

    def reply(self, role: DaemonRole, uuid: HostId, status: FollowerStatus) -> metad_pb.PollReply:
        """Return the desired state of one daemon at one revision.

        A daemon that is ahead of the catalog gets the position only."""
        with self._change_feed.lock:
            self._evict_manifests()
            reply = metad_pb.PollReply(
                revision=self._change_feed.revision,
                cluster=self._catalog.cluster,
                position=hosts.position_to_proto(self._catalog.history.position),
                contains_position=status is not FollowerStatus.AHEAD,
                adopted=status is FollowerStatus.GIVEN_UP,
            )
            if status is FollowerStatus.AHEAD:
                return reply
            reply.access.CopyFrom(self.access_state())
            if role is DaemonRole.STORAGED:
                self._add_storaged_state(reply, uuid)
            else:
                self._add_graphd_state(reply)
            return reply

    def access_state(self) -> metad_pb.AccessState:
        """Return the API keys, grants and limits.

        The message is shared and does not change: after a change, another one is returned. The lock
        is taken after a change only, because every authentication reads the state."""
        records, cached = self._catalog.access, self._access_message
        if cached is not None and cached[0] == records.changes:
            return cached[1]
        with self._change_feed.lock:
            cached = self._access_message
            if cached is None or cached[0] != records.changes:
                cached = self._access_message = (
                    records.changes,
                    access.access_state_to_proto(
                        records.api_keys(), records.grants(), records.limits()
                    ),
                )
            return cached[1]

    def _add_storaged_state(self, reply: metad_pb.PollReply, uuid: HostId) -> None:
        for space in self._catalog.spaces.all():
            if parts_of_host(space, uuid):
                self._add_route(reply, space)
                reply.open_loads.extend(self._catalog.loads.open_in_space(space.space_id))
                reply.abandoned_loads.extend(self._catalog.loads.unpurged_in_space(space.space_id))
        for job in self._recoverable_jobs():
            if any(task.host == uuid for task in job.tasks):
                reply.retained_jobs.add(space_id=job.space_id, job_id=job.job_id)
        reply.removals.extend(
            removal.request.to_proto() for removal in self._catalog.removals.of_host(uuid)
        )
        for job, task in self._driver.assigned_tasks(uuid):
            loads = self._catalog.loads.committed_up_to(job.space_id, job.watermark)
            reply.task_assignments.add(
                task_id=task.task_id,
                job_id=job.job_id,
                attempt=task.attempt,
                kind=job.kind,
                space_id=job.space_id,
                parts=task.parts,
                watermark=job.watermark,
                loads=[load_id for _, load_id in loads],
                commits=[commit for commit, _ in loads],
                options=dict(job.options),
                version=job.target_version,
                manifest=self._restored_manifest(job),
                indexes=indexes_to_proto(job.indexes),
            )

    def _add_graphd_state(self, reply: metad_pb.PollReply) -> None:
        for space in self._catalog.spaces.all():
            self._add_route(reply, space)
        for host in self._cluster.hosts.values():
            if host.role is DaemonRole.STORAGED:
                reply.storaged.append(hosts.host_to_proto(host))
        reply.ended_sessions.extend(
            access.ended_session_to_proto(session) for session in self._catalog.ended_sessions.all()
        )

    def _add_route(self, reply: metad_pb.PollReply, space: Space) -> None:
        route = reply.spaces.add(space=wire.space_to_proto(space))
        route.versions.extend(
            self._manifest_message(manifest)
            for manifest in self._catalog.versions.served_versions(space.space_id)
        )

    def _restored_manifest(self, job: Job) -> common_pb.Manifest | None:
        """Return the manifest that a restore job reproduces; None for other jobs."""
        manifest = (
            self._catalog.restores.awaited_manifest(job.space_id)
            if find_kind(job.kind).restores
            else None
        )
        return wire.manifest_to_proto(manifest) if manifest is not None else None

    def _manifest_message(self, manifest: Manifest) -> common_pb.Manifest:
        key = (manifest.space_id, manifest.version)
        if key not in self._manifest_messages:
            self._manifest_messages[key] = wire.manifest_to_proto(manifest)
        return self._manifest_messages[key]

    def _evict_manifests(self) -> None:
        served = {
            (space.space_id, m.version)
            for space in self._catalog.spaces.all()
            for m in self._catalog.versions.served_versions(space.space_id)
        }
        for key in self._manifest_messages.keys() - served:
            del self._manifest_messages[key]
