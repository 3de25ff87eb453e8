"""gRPC handlers of metad, named as in the service contract; each translates one call.

A handler is ``(message, call) -> message``. `metad.app` serves the handlers, and callers in the
same process call them directly."""

from __future__ import annotations

from asterism_access.roles import EVERY_SPACE, Role
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.schema import Schema
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.catalog_service import CatalogService
from metad.follower_positions import Followers
from metad.wire import catalog as wire
from metad.wire import hosts, jobs


class CatalogApi:
    """Handlers of `asterism.v1.Catalog`."""

    def __init__(self, service: CatalogService, followers: Followers) -> None:
        self._service = service
        self._followers = followers

    def create_space(
        self, request: metad_pb.CreateSpaceRequest, call: CallContext
    ) -> common_pb.Space:
        """Create a space."""
        schema = Schema.from_proto(request.schema)
        return wire.space_to_proto(
            self._service.create_space(request.name, schema, if_not_exists=request.if_not_exists)
        )

    def describe_space(self, request: metad_pb.SpaceRequest, call: CallContext) -> common_pb.Space:
        """Return one space."""
        return wire.space_to_proto(self._service.space(request.space))

    def list_spaces(self, request: common_pb.Empty, call: CallContext) -> metad_pb.SpaceList:
        """Return all spaces."""
        return metad_pb.SpaceList(
            spaces=[wire.space_to_proto(space) for space in self._service.spaces()]
        )

    def drop_space(self, request: metad_pb.DropSpaceRequest, call: CallContext) -> common_pb.Empty:
        """Delete a space."""
        self._service.drop_space(request.space, if_exists=request.if_exists)
        return common_pb.Empty()

    def export_space(
        self, request: metad_pb.ExportSpaceRequest, call: CallContext
    ) -> metad_pb.SpaceRecord:
        """Return the catalog record that a backup of a space keeps."""
        return wire.space_record_to_proto(
            self._service.export_space(request.space, request.version)
        )

    def import_space(
        self, request: metad_pb.ImportSpaceRequest, call: CallContext
    ) -> common_pb.Space:
        """Create a space from a record; it waits for its data."""
        return wire.space_to_proto(
            self._service.import_space(
                request.name,
                wire.space_record_from_proto(request.record),
                address=request.address,
            )
        )

    def describe_catalog(
        self, request: common_pb.Empty, call: CallContext
    ) -> metad_pb.CatalogState:
        """Return the catalog's position and the daemons that followed a newer one."""
        return hosts.catalog_state_to_proto(self._followers.state())

    def adopt_catalog(
        self, request: metad_pb.AdoptCatalogRequest, call: CallContext
    ) -> metad_pb.CatalogState:
        """Have daemons follow this catalog; return its state before the adoption."""
        return hosts.catalog_state_to_proto(self._followers.adopt(request.cluster))

    def begin_load(self, request: metad_pb.BeginLoadRequest, call: CallContext) -> metad_pb.Load:
        """Begin a load, or return the one to resume."""
        chunks = [wire.new_chunk_from_proto(chunk) for chunk in request.chunks]
        return wire.load_to_proto(
            *self._service.begin_load(
                request.space, source=request.source, resume_key=request.resume_key, chunks=chunks
            )
        )

    def register_chunks(
        self, request: metad_pb.RegisterChunksRequest, call: CallContext
    ) -> metad_pb.RegisterChunksReply:
        """Register chunks and acknowledgements; return the chunks with their edge id bases."""
        chunks = [wire.new_chunk_from_proto(chunk) for chunk in request.chunks]
        registered = self._service.register_chunks(request.load_id, chunks, request.written)
        return metad_pb.RegisterChunksReply(
            chunks=[wire.chunk_to_proto(chunk) for chunk in registered]
        )

    def commit_load(self, request: metad_pb.CommitLoadRequest, call: CallContext) -> metad_pb.Load:
        """Commit a load, or return the hosts to seal first."""
        load, unsealed, seal_number = self._service.commit_load(
            request.load_id,
            rejected=request.rejected,
            written=request.written,
            resolved_commit=request.resolved_commit,
            deletes=request.deletes,
            seals=[wire.seal_from_proto(seal) for seal in request.seals],
        )
        reply = wire.load_to_proto(load)
        if reply.state == metad_pb.OPEN:
            reply.unsealed_hosts.extend(unsealed)
            reply.seal_number = seal_number
        return reply

    def abandon_load(self, request: metad_pb.LoadRequest, call: CallContext) -> metad_pb.Load:
        """Abandon a load."""
        return wire.load_to_proto(self._service.abandon_load(request.load_id))

    def get_load(self, request: metad_pb.LoadRequest, call: CallContext) -> metad_pb.Load:
        """Return a load with its chunks."""
        return wire.load_to_proto(*self._service.load(request.load_id))

    def list_commits(
        self, request: metad_pb.ListCommitsRequest, call: CallContext
    ) -> metad_pb.CommitList:
        """Return the committed loads of a space after a commit."""
        pairs = self._service.commits(request.space, after=request.after)
        return metad_pb.CommitList(
            loads=[load_id for _, load_id in pairs], commits=[commit for commit, _ in pairs]
        )

    def submit_job(self, request: metad_pb.SubmitJobRequest, call: CallContext) -> common_pb.Job:
        """Submit a job, or return the identical one in flight."""
        return jobs.job_to_proto(
            self._service.submit_job(
                request.space,
                request.kind,
                options=dict(request.options),
                version=request.version,
                principal=call.principal,
            )
        )

    def get_job(self, request: metad_pb.JobRequest, call: CallContext) -> common_pb.Job:
        """Return one job."""
        return jobs.job_to_proto(self._service.job(request.job_id))

    def list_jobs(self, request: metad_pb.ListJobsRequest, call: CallContext) -> metad_pb.JobList:
        """Return a page of jobs."""
        page = self._service.jobs(
            space=request.space,
            states=jobs.states_from_proto(request.states),
            kinds=request.kinds,
            limit=request.limit,
            before=request.before,
            include_dropped=call.principal.has_role(EVERY_SPACE, Role.READER),
        )
        return metad_pb.JobList(
            jobs=[jobs.job_to_proto(job, files=False) for job in page.jobs],
            next_before=page.next_before,
            total=page.total,
        )

    def stop_job(self, request: metad_pb.JobRequest, call: CallContext) -> common_pb.Job:
        """Request that a job stop."""
        return jobs.job_to_proto(self._service.stop_job(request.job_id))

    def recover_job(self, request: metad_pb.JobRequest, call: CallContext) -> common_pb.Job:
        """Resume a failed or stopped job."""
        return jobs.job_to_proto(
            self._service.recover_job(request.job_id, principal=call.principal)
        )

    def list_hosts(self, request: common_pb.Empty, call: CallContext) -> metad_pb.HostList:
        """Return all daemons."""
        return metad_pb.HostList(
            hosts=[
                hosts.listed_host_to_proto(host, parts=parts)
                for host, parts in self._service.hosts()
            ]
        )

    def list_versions(
        self, request: metad_pb.SpaceRequest, call: CallContext
    ) -> metad_pb.VersionList:
        """Return the versions of a space."""
        return metad_pb.VersionList(
            versions=[
                wire.manifest_to_proto(manifest, totals=False)
                for manifest in self._service.versions(request.space)
            ]
        )

    def get_manifest(
        self, request: metad_pb.ManifestRequest, call: CallContext
    ) -> common_pb.Manifest:
        """Return one version with all its totals."""
        return wire.manifest_to_proto(self._service.manifest(request.space, request.version))

    def pin_version(self, request: metad_pb.PinVersionRequest, call: CallContext) -> metad_pb.Pin:
        """Pin a version."""
        return wire.pin_to_proto(
            self._service.pin(
                request.space,
                request.version,
                term_s=request.term_s,
                owner=request.owner,
                principal=call.principal,
            )
        )

    def renew_pin(self, request: metad_pb.PinRequest, call: CallContext) -> metad_pb.Pin:
        """Renew a pin for another term."""
        return wire.pin_to_proto(self._service.renew_pin(request.pin_id))

    def release_pin(self, request: metad_pb.PinRequest, call: CallContext) -> common_pb.Empty:
        """Release a pin."""
        self._service.release_pin(request.pin_id)
        return common_pb.Empty()

    def list_pins(self, request: metad_pb.ListPinsRequest, call: CallContext) -> metad_pb.PinList:
        """Return the pins of a space, or all."""
        return metad_pb.PinList(
            pins=[wire.pin_to_proto(pin) for pin in self._service.pins(request.space)]
        )
