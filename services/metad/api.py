"""What metad is asked over gRPC: handlers by the names of the contract, each a translation around one verb.

A handler is ``(message, call) -> message``; `metad.app` serves them, and in-process callers use them as they are.
"""

from __future__ import annotations

import time

from asterism_proto.errors import Conflict, InvalidRequest
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from daemonkit.calls import Call
from metad import wire, wire_backups, wire_history, wire_jobs
from metad.attendance import Attendance
from metad.board import Board
from metad.catalog.catalog import Catalog
from metad.catalog.history import Highest
from metad.cluster import Cluster
from metad.followers import Follower, Followers, Standing
from metad.ids import HostId
from metad.polls import Polls
from metad.service import Service

_LONGEST_WAIT_S = 60.0
_REPLY_S = 0.1
"""What a parked poll leaves of its caller's time for the way back."""


class CatalogApi:
    """`asterism.v1.Catalog`."""

    def __init__(self, service: Service, followers: Followers) -> None:
        self._service = service
        self._followers = followers

    def create_space(self, request: mpb.CreateSpaceRequest, call: Call) -> pb.Space:
        """A new space."""
        schema = Schema.from_proto(request.schema)
        return wire.space_to(self._service.create_space(request.name, schema, if_not_exists=request.if_not_exists))

    def describe_space(self, request: mpb.SpaceRequest, call: Call) -> pb.Space:
        """One space."""
        return wire.space_to(self._service.space(request.space))

    def list_spaces(self, request: pb.Empty, call: Call) -> mpb.SpaceList:
        """All spaces."""
        return mpb.SpaceList(spaces=[wire.space_to(space) for space in self._service.spaces()])

    def drop_space(self, request: mpb.DropSpaceRequest, call: Call) -> pb.Empty:
        """The end of a space."""
        self._service.drop_space(request.space, if_exists=request.if_exists)
        return pb.Empty()

    def export_space(self, request: mpb.ExportSpaceRequest, call: Call) -> mpb.SpaceRecord:
        """What a backup keeps of the catalog."""
        return wire_backups.record_to(self._service.export_space(request.space, request.version))

    def import_space(self, request: mpb.ImportSpaceRequest, call: Call) -> pb.Space:
        """A space that waits for its data."""
        return wire.space_to(self._service.import_space(request.name, wire_backups.record_of(request.record), address=request.address))

    def describe_catalog(self, request: pb.Empty, call: Call) -> mpb.CatalogState:
        """Return the catalog's position and the daemons that followed a newer one."""
        return wire_history.state_to(self._followers.state())

    def adopt_catalog(self, request: mpb.AdoptCatalogRequest, call: Call) -> mpb.CatalogState:
        """Have daemons follow this catalog; gives the state as it was before."""
        return wire_history.state_to(self._followers.adopt(request.cluster))

    def begin_load(self, request: mpb.BeginLoadRequest, call: Call) -> mpb.Load:
        """A new load, or the one to resume."""
        chunks = [wire.new_chunk_of(chunk) for chunk in request.chunks]
        return wire.load_to(*self._service.begin_load(request.space, source=request.source, resume_key=request.resume_key, chunks=chunks))

    def register_chunks(self, request: mpb.RegisterChunksRequest, call: Call) -> mpb.RegisterChunksReply:
        """Chunks with their bases."""
        chunks = [wire.new_chunk_of(chunk) for chunk in request.chunks]
        registered = self._service.register_chunks(request.load_id, chunks, request.written)
        return mpb.RegisterChunksReply(chunks=[wire.chunk_to(chunk) for chunk in registered])

    def commit_load(self, request: mpb.CommitLoadRequest, call: Call) -> mpb.Load:
        """A load's place in the order of writes."""
        load, unsealed, number = self._service.commit_load(
            request.load_id,
            rejected=request.rejected,
            written=request.written,
            settled=request.settled,
            deletes=request.deletes,
            seals=[wire.seal_of(seal) for seal in request.seals],
        )
        reply = wire.load_to(load)
        if reply.state == mpb.OPEN:
            reply.unsealed.extend(unsealed)
            reply.seal = number
        return reply

    def abandon_load(self, request: mpb.LoadRequest, call: Call) -> mpb.Load:
        """The end of a load."""
        return wire.load_to(self._service.abandon_load(request.load_id))

    def get_load(self, request: mpb.LoadRequest, call: Call) -> mpb.Load:
        """A load with its chunks."""
        return wire.load_to(*self._service.load(request.load_id))

    def list_commits(self, request: mpb.ListCommitsRequest, call: Call) -> mpb.CommitList:
        """The committed loads of a space after a commit."""
        pairs = self._service.commits(request.space, after=request.after)
        return mpb.CommitList(loads=[load_id for _, load_id in pairs], commits=[commit for commit, _ in pairs])

    def submit_job(self, request: mpb.SubmitJobRequest, call: Call) -> pb.Job:
        """A new job, or the identical one in flight."""
        return wire_jobs.job_to(self._service.submit(request.space, request.kind, options=dict(request.options), version=request.version))

    def get_job(self, request: mpb.JobRequest, call: Call) -> pb.Job:
        """One job."""
        return wire_jobs.job_to(self._service.job(request.job_id))

    def list_jobs(self, request: mpb.ListJobsRequest, call: Call) -> mpb.JobList:
        """A page of jobs."""
        page = self._service.jobs(
            space=request.space, states=wire_jobs.states_of(request.states), kinds=request.kinds, limit=request.limit, before=request.before
        )
        return mpb.JobList(jobs=[wire_jobs.job_to(job, files=False) for job in page.jobs], next_before=page.next_before, total=page.total)

    def stop_job(self, request: mpb.JobRequest, call: Call) -> pb.Job:
        """A job on its way to its end."""
        return wire_jobs.job_to(self._service.stop_job(request.job_id))

    def recover_job(self, request: mpb.JobRequest, call: Call) -> pb.Job:
        """A job under way again."""
        return wire_jobs.job_to(self._service.recover_job(request.job_id))

    def list_hosts(self, request: pb.Empty, call: Call) -> mpb.HostList:
        """Every daemon."""
        return mpb.HostList(hosts=[wire.host_to(host, parts=parts) for host, parts in self._service.hosts()])

    def list_versions(self, request: mpb.SpaceRequest, call: Call) -> mpb.VersionList:
        """The versions of a space."""
        return mpb.VersionList(versions=[wire.manifest_to(manifest, totals=False) for manifest in self._service.versions(request.space)])

    def get_manifest(self, request: mpb.ManifestRequest, call: Call) -> pb.Manifest:
        """One version with all its totals."""
        return wire.manifest_to(self._service.manifest(request.space, request.version))

    def pin_version(self, request: mpb.PinVersionRequest, call: Call) -> mpb.Pin:
        """A lease on a version."""
        return wire.pin_to(self._service.pin(request.space, request.version, term_s=request.term_s, owner=request.owner))

    def renew_pin(self, request: mpb.PinRequest, call: Call) -> mpb.Pin:
        """A lease for another term."""
        return wire.pin_to(self._service.renew_pin(request.pin_id))

    def release_pin(self, request: mpb.PinRequest, call: Call) -> pb.Empty:
        """The end of a lease."""
        self._service.release_pin(request.pin_id)
        return pb.Empty()

    def list_pins(self, request: mpb.ListPinsRequest, call: Call) -> mpb.PinList:
        """The leases that there are."""
        return mpb.PinList(pins=[wire.pin_to(pin) for pin in self._service.pins(request.space)])


class BeatsApi:
    """`asterism.v1.Beats`."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        service: Service,
        board: Board,
        cluster: Cluster,
        attendance: Attendance,
        followers: Followers,
        polls: Polls,
        lease_s: float,
    ) -> None:
        self._catalog = catalog
        self._followers = followers
        self._service = service
        self._board = board
        self._cluster = cluster
        self._attendance = attendance
        self._polls = polls
        self._lease_s = lease_s

    def beat(self, request: mpb.BeatRequest, call: Call) -> mpb.BeatReply:
        """A daemon's word, taken."""
        word, follower = wire.word_of(request), wire_history.follower_of(request)
        self._check_cluster(follower)
        revision = self._attendance.beat(word, [wire_jobs.report_of(report) for report in request.tasks], follower, request.removed)
        return mpb.BeatReply(revision=revision, lease_s=self._lease_s, position=wire_history.position_to(self._catalog.history.position))

    def poll(self, request: mpb.PollRequest, call: Call) -> mpb.PollReply:
        """The desired state, once it is another than the known one or the wait is over."""
        role = wire.role_of(request.role)
        uuid = HostId(request.uuid)
        if not uuid:
            raise InvalidRequest("a poll without a uuid: every daemon has one, kept in its folder")
        follower = Follower(uuid=uuid, role=role, cluster=request.cluster, position=wire_history.position_of(request.followed), highest=Highest())
        self._check_cluster(follower)
        self._cluster.check(uuid, role, request.incarnation, request.start)
        until = min(time.monotonic() + min(max(request.wait_s, 0.0), _LONGEST_WAIT_S), call.deadline - _REPLY_S)
        if request.known_revision:
            self._board.wait_other(request.known_revision, until, call.is_active, call.on_end)
            self._cluster.check(uuid, role, request.incarnation, request.start)
        with self._board.lock:
            standing = Standing.AHEAD if self._followers.is_ahead(uuid) else self._followers.judge(follower.position, follower.highest)
            if standing is Standing.AHEAD and not self._followers.is_ahead(uuid):
                self._followers.heard(follower)  # its next heartbeat may be a while away
            return self._polls.reply(role, uuid, standing)

    def find_dead_loads(self, request: mpb.LoadsHeld, call: Call) -> mpb.DeadLoads:
        """The loads of which a storaged may remove what it holds."""
        self._check_asker(request.uuid, request.cluster)
        if self._followers.is_ahead(HostId(request.uuid)):
            return mpb.DeadLoads()
        return mpb.DeadLoads(loads=self._service.dead_loads(request.space_id, request.loads))

    def admit_load(self, request: mpb.AdmitLoadRequest, call: Call) -> mpb.AdmitLoadReply:
        """Whether a storaged may write blocks of a load."""
        self._check_asker(request.uuid, request.cluster)
        number, first, chunk = self._service.admit_load(request.load_id, space_id=request.space_id, host=HostId(request.uuid), chunk=request.chunk)
        return mpb.AdmitLoadReply(number=number, first=first, chunk=wire.chunk_to(chunk))

    def list_fingerprints(self, request: mpb.ListFingerprintsRequest, call: Call) -> mpb.FingerprintList:
        """What committed loads wrote, for whoever is about to read it."""
        self._check_asker(request.uuid, request.cluster)
        loads, next_after = self._service.fingerprints(request.space_id, after=request.after, cut=request.cut)
        parts = frozenset(request.parts)
        return mpb.FingerprintList(loads=[wire.fingerprint_to(load, parts) for load in loads], next_after=next_after)

    def report_inventory(self, request: mpb.Inventory, call: Call) -> pb.Empty:
        """Take what a storaged holds that does not follow this catalog, or is about to."""
        if not request.uuid:
            raise InvalidRequest("uuid='': expected the uuid of a storaged")
        self._followers.report(wire_history.reporter_of(request), wire_history.inventory_of(request))
        return pb.Empty()

    def _check_asker(self, uuid: str, cluster: str) -> None:
        if cluster and cluster != self._catalog.cluster:
            raise Conflict(f"host {uuid} belongs to the cluster {cluster}, this metad's catalog to {self._catalog.cluster}")

    def _check_cluster(self, follower: Follower) -> None:
        """Refuse a daemon with another cluster's data: it would be dealt parts here, and lose what it holds."""
        if follower.cluster and follower.cluster != self._catalog.cluster:
            self._followers.heard(follower)
            raise Conflict(f"host {follower.uuid} belongs to the cluster {follower.cluster}, this metad's catalog to {self._catalog.cluster}")
