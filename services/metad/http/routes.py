"""Routes under ``/api/v1``: each calls one operation of `metad.service`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from asterism_model.schema import Schema
from asterism_proto.errors import NotFound
from metad.http.job_views import JobPageView, JobView, NewJob, StateName, job_view
from metad.http.views import (
    HostView,
    NewSpace,
    Problem,
    SpaceView,
    VersionView,
    host_view,
    space_view,
    version_view,
)
from metad.http.weight_stats_views import WeightStatsView, weight_stats_views
from metad.model.jobs import Job, JobState
from metad.service import CatalogService

JobNumber = Annotated[str, Path(description="The job's id.", examples=["12"])]
SpaceName = Annotated[str, Path(description="The space's name.", examples=["papers"])]
VersionNumber = Annotated[str, Path(description="The version's number.", examples=["3"])]
_REFUSALS = {
    400: {"model": Problem, "description": "It cannot succeed as written."},
    404: {"model": Problem, "description": "What it names is not there."},
    409: {"model": Problem, "description": "It is in conflict with what is there, or too early."},
    422: {"model": Problem, "description": "A value is not of its type or out of its range."},
}


def router(service: CatalogService) -> APIRouter:
    """Return the routes of jobs, spaces, versions and hosts."""
    api = APIRouter(
        prefix="/api/v1", responses={status: _REFUSALS[status] for status in (404, 422)}
    )
    api.include_router(_job_routes(service))
    api.include_router(_space_routes(service))

    @api.get("/hosts", tags=["hosts"])
    def list_hosts() -> list[HostView]:
        """Return every daemon that sends heartbeats, storageds first."""
        return [host_view(host, parts) for host, parts in service.hosts()]

    return api


def _job_routes(service: CatalogService) -> APIRouter:
    api = APIRouter(tags=["jobs"])

    @api.get("/jobs")
    def list_jobs(
        space: Annotated[str, Query(description="Only jobs of this space.")] = "",
        state: Annotated[
            list[StateName] | None, Query(description="Only jobs in one of these states.")
        ] = None,
        kind: Annotated[
            list[str] | None, Query(description="Only jobs of one of these kinds.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000, description="How many at most.")] = 50,
        before: Annotated[
            int, Query(ge=0, description="Only jobs with a smaller id; 0: from the newest.")
        ] = 0,
    ) -> JobPageView:
        """Return a page of jobs, newest first."""
        page = service.jobs(
            space=space,
            states=[JobState[name] for name in state or ()],
            kinds=kind or (),
            limit=limit,
            before=before,
        )
        return JobPageView(
            jobs=[job_view(job, files=False) for job in page.jobs],
            next_before=page.next_before,
            total=page.total,
        )

    @api.get("/jobs/{job_id}")
    def get_job(job_id: JobNumber) -> JobView:
        """Return one job with its tasks and progress.

        For a build, the reply includes the weight statistics of the version that it published."""
        job = service.job(_parse_id("job", job_id))
        return job_view(job, weight_stats=_published_weight_stats(service, job))

    @api.post(
        "/jobs", status_code=202, responses={status: _REFUSALS[status] for status in (400, 409)}
    )
    def submit_job(new: NewJob) -> JobView:
        """Submit a job on the committed and published data of a space.

        If an identical job is in flight, that job is returned."""
        return job_view(
            service.submit_job(new.space, new.kind, options=new.options, version=new.version)
        )

    @api.post("/jobs/{job_id}/stop", status_code=202, responses={409: _REFUSALS[409]})
    def stop_job(job_id: JobNumber) -> JobView:
        """Stop a job. It is STOPPED once every host confirmed or lost its lease."""
        return job_view(service.stop_job(_parse_id("job", job_id)))

    @api.post("/jobs/{job_id}/recover", status_code=202, responses={409: _REFUSALS[409]})
    def recover_job(job_id: JobNumber) -> JobView:
        """Resume a failed or stopped job with the same input."""
        return job_view(service.recover_job(_parse_id("job", job_id)))

    return api


def _space_routes(service: CatalogService) -> APIRouter:
    api = APIRouter(tags=["spaces"])

    @api.get("/spaces")
    def list_spaces() -> list[SpaceView]:
        """Return all spaces, by id."""
        return [space_view(*entry) for entry in service.describe_spaces()]

    @api.get("/spaces/{name}")
    def get_space(name: SpaceName) -> SpaceView:
        """Return one space: schema, partitions, current version and its totals."""
        return space_view(*service.describe_spaces(name)[0])

    @api.post(
        "/spaces", status_code=201, responses={status: _REFUSALS[status] for status in (400, 409)}
    )
    def create_space(new: NewSpace) -> SpaceView:
        """Create a space; its partitions are assigned to the storageds that are online."""
        space = service.create_space(
            new.name, Schema.from_dict(new.schema_), if_not_exists=new.if_not_exists
        )
        return space_view(*service.describe_spaces(space.name)[0])

    @api.delete("/spaces/{name}", status_code=204)
    def drop_space(
        name: SpaceName,
        if_exists: Annotated[
            bool, Query(description="Whether it is fine that there is no such space.")
        ] = False,
    ) -> None:
        """Delete a space with everything in it: loads, versions, data. Its jobs are stopped."""
        service.drop_space(name, if_exists=if_exists)

    @api.get("/spaces/{name}/versions")
    def list_versions(name: SpaceName) -> list[VersionView]:
        """Return the served versions of a space, newest first, with their pins."""
        space = service.space(name)
        pins = service.pins(name)
        return [version_view(space, manifest, pins) for manifest in service.versions(name)]

    @api.get("/spaces/{name}/versions/{version}")
    def get_version(name: SpaceName, version: VersionNumber) -> VersionView:
        """Return one version."""
        space = service.space(name)
        return version_view(
            space,
            service.manifest(name, _parse_id("version", version, minimum=1)),
            service.pins(name),
        )

    @api.get("/spaces/{name}/versions/{version}/hygiene")
    def get_hygiene(name: SpaceName, version: VersionNumber) -> list[WeightStatsView]:
        """Return weight statistics of a version, by type and weight name.

        They cover invalid values, effective sample size, largest share and error bound."""
        manifest = service.manifest(name, _parse_id("version", version, minimum=1))
        return weight_stats_views(service.space(name).schema, manifest.totals)

    return api


def _published_weight_stats(service: CatalogService, job: Job) -> list[WeightStatsView]:
    """Return weight statistics of the version that a job published; empty once it is gone."""
    try:
        return (
            weight_stats_views(
                service.space(job.space).schema, service.manifest(job.space, job.version).totals
            )
            if job.version
            else []
        )
    except NotFound:
        return []


def _parse_id(label: str, text: str, *, minimum: int = 0) -> int:
    """Return the id in a path; NotFound if it is not a number."""
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) < minimum:
        raise NotFound(f"{label} {text!r} does not exist: its id is a number from 1")
    return int(text)
