"""Handlers of the service Heartbeats, for daemons."""

from __future__ import annotations

import time

from asterism_daemonkit import recent_logs
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.errors import Conflict, InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.access_service import AccessService
from metad.catalog.catalog import Catalog
from metad.catalog_service import CatalogService
from metad.change_feed import ChangeFeed
from metad.desired_state import DesiredStateBuilder
from metad.follower_positions import Followers, FollowerStatus
from metad.host_registry import HostRegistry
from metad.membership import ClusterMembership
from metad.model.hosts import Follower, HighestIds
from metad.model.ids import HostId
from metad.wire import access, hosts, jobs
from metad.wire import catalog as wire

_MAX_WAIT_S = 60.0
_REPLY_MARGIN_S = 0.1
"""Seconds of its caller's deadline that a parked poll leaves for the reply."""


class HeartbeatsApi:
    """Handlers of `asterism.v1.Heartbeats`."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        service: CatalogService,
        access_service: AccessService,
        change_feed: ChangeFeed,
        cluster: ClusterMembership,
        host_registry: HostRegistry,
        followers: Followers,
        desired_state: DesiredStateBuilder,
        lease_s: float,
    ) -> None:
        self._catalog = catalog
        self._followers = followers
        self._service = service
        self._access_service = access_service
        self._change_feed = change_feed
        self._cluster = cluster
        self._host_registry = host_registry
        self._desired_state = desired_state
        self._lease_s = lease_s

    def list_log_records(
        self, request: common_pb.ListLogRecordsRequest, call: CallContext
    ) -> common_pb.LogRecordList:
        """Return the newest records of metad's log."""
        return recent_logs.list_log_records(request, call)

    def heartbeat(
        self, request: metad_pb.HeartbeatRequest, call: CallContext
    ) -> metad_pb.HeartbeatReply:
        """Record a heartbeat."""
        heartbeat, follower = (
            hosts.heartbeat_from_proto(request),
            hosts.follower_from_proto(request),
        )
        self._check_cluster(follower)
        revision = self._host_registry.record_heartbeat(
            heartbeat,
            [jobs.task_report_from_proto(report) for report in request.tasks],
            follower,
            request.completed_removals,
        )
        return metad_pb.HeartbeatReply(
            revision=revision,
            lease_s=self._lease_s,
            position=hosts.position_to_proto(self._catalog.history.position),
        )

    def poll(self, request: metad_pb.PollRequest, call: CallContext) -> metad_pb.PollReply:
        """Return the desired state once it differs from the known one, or when the wait is over."""
        role = hosts.role_from_proto(request.role)
        uuid = HostId(request.uuid)
        if not uuid:
            raise InvalidRequest("uuid='': expected the uuid of the daemon that polls")
        follower = Follower(
            uuid=uuid,
            role=role,
            cluster=request.cluster,
            position=hosts.position_from_proto(request.followed_position),
            highest=HighestIds(),
        )
        self._check_cluster(follower)
        self._cluster.check_sender(uuid, role, request.incarnation, request.start_id)
        deadline = min(
            time.monotonic() + min(max(request.wait_s, 0.0), _MAX_WAIT_S),
            call.deadline - _REPLY_MARGIN_S,
        )
        position = follower.position
        if request.known_revision and (position is None or self._followers.is_current(position)):
            self._change_feed.wait_for_change(
                request.known_revision, deadline, call.is_active, call.on_end
            )
            self._cluster.check_sender(uuid, role, request.incarnation, request.start_id)
        with self._change_feed.lock:
            status = (
                FollowerStatus.AHEAD
                if self._followers.is_ahead(uuid)
                else self._followers.status_of(follower.position, follower.highest)
            )
            if status is FollowerStatus.AHEAD and not self._followers.is_ahead(uuid):
                self._followers.record_follower(follower)  # its next heartbeat may be a while away
            return self._desired_state.reply(role, uuid, status)

    def find_dead_loads(
        self, request: metad_pb.FindDeadLoadsRequest, call: CallContext
    ) -> metad_pb.FindDeadLoadsReply:
        """Return the loads that a storaged may remove."""
        self._check_caller(request.uuid, request.cluster)
        if self._followers.is_ahead(HostId(request.uuid)):
            return metad_pb.FindDeadLoadsReply()
        return metad_pb.FindDeadLoadsReply(
            loads=self._service.dead_loads(request.space_id, request.loads)
        )

    def admit_load(
        self, request: metad_pb.AdmitLoadRequest, call: CallContext
    ) -> metad_pb.AdmitLoadReply:
        """Admit a storaged to write blocks of a load."""
        self._check_caller(request.uuid, request.cluster)
        admission, is_first, chunk = self._service.admit_load(
            request.load_id,
            space_id=request.space_id,
            host=HostId(request.uuid),
            chunk=request.chunk,
        )
        return metad_pb.AdmitLoadReply(
            number=admission, first_admission=is_first, chunk=wire.chunk_to_proto(chunk)
        )

    def list_fingerprints(
        self, request: metad_pb.ListFingerprintsRequest, call: CallContext
    ) -> metad_pb.FingerprintList:
        """Return fingerprints of the committed loads that the caller is about to read."""
        self._check_caller(request.uuid, request.cluster)
        loads, next_after = self._service.fingerprints(
            request.space_id, after=request.after, watermark=request.watermark
        )
        parts = frozenset(request.parts)
        return metad_pb.FingerprintList(
            loads=[wire.fingerprint_to_proto(load, parts) for load in loads], next_after=next_after
        )

    def report_inventory(self, request: metad_pb.Inventory, call: CallContext) -> common_pb.Empty:
        """Record the inventory of a storaged that does not follow this catalog, or is about to."""
        if not request.uuid:
            raise InvalidRequest("uuid='': expected the uuid of a storaged")
        self._followers.record_inventory(
            hosts.reporter_from_proto(request), hosts.inventory_from_proto(request)
        )
        return common_pb.Empty()

    def end_session(self, request: metad_pb.EndedSession, call: CallContext) -> common_pb.Empty:
        """Make a sign-out of the web pages of one graphd known to all."""
        self._access_service.end_session(access.ended_session_from_proto(request))
        return common_pb.Empty()

    def _check_caller(self, uuid: str, cluster: str) -> None:
        if cluster and cluster != self._catalog.cluster:
            raise Conflict(
                f"host {uuid} belongs to cluster {cluster}: expected {self._catalog.cluster}, "
                "the cluster of this metad's catalog"
            )

    def _check_cluster(self, follower: Follower) -> None:
        """Refuse a daemon that holds data of another cluster.

        It would be assigned partitions here, and lose the data that it holds."""
        if follower.cluster and follower.cluster != self._catalog.cluster:
            self._followers.record_follower(follower)
            raise Conflict(
                f"host {follower.uuid} belongs to cluster {follower.cluster}: expected "
                f"{self._catalog.cluster}, the cluster of this metad's catalog"
            )
