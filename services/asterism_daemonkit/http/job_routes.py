"""Routes of jobs, ``/api/v1/jobs``, of metad and of graphd, which passes calls on to metad."""

from __future__ import annotations

from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Query
from google.protobuf.message import Message

from asterism_daemonkit.http.job_views import (
    STATES,
    JobPageView,
    JobView,
    NewJob,
    StateName,
    job_view,
)
from asterism_daemonkit.http.models import refusals
from asterism_daemonkit.http.weight_stats_views import WeightStatsView, weight_stats_views
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import Schema
from asterism_proto.errors import NotFound
from asterism_proto.methods import CATALOG
from asterism_proto.transport import Transport
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

M = TypeVar("M", bound=Message)

TIMEOUT_S = 10.0
"""Deadline of a call to metad, in seconds."""
JobNumber = Annotated[str, Path(description="The job's id.", examples=["12"])]
_INVALID = {400: "The request cannot succeed as written."}
_CONFLICT = {409: "The request conflicts with what exists, or is too early."}
_UNAVAILABLE = {503: "metad does not respond.", 504: "The deadline has passed."}


def job_router(catalog: Transport) -> APIRouter:
    """Return the routes of jobs.

    Parameters
    ----------
    catalog : Transport
        Carries calls of the Catalog service.
    """
    api = APIRouter(
        prefix="/api/v1",
        tags=["jobs"],
        responses=refusals(
            {
                404: "A job, space or version does not exist.",
                422: "A value is not of its type or out of its range.",
                **_UNAVAILABLE,
            }
        ),
    )

    def call(name: str, request: Message, kind: type[M]) -> M:
        reply = catalog.call(CATALOG[name], request, TIMEOUT_S)
        assert isinstance(reply, kind)
        return reply

    def published_weight_stats(job: common_pb.Job) -> list[WeightStatsView]:
        """Return weight statistics of the version that a job published; empty once it is gone."""
        if not job.version:
            return []
        try:
            space = call("describe_space", metad_pb.SpaceRequest(space=job.space), common_pb.Space)
            manifest = call(
                "get_manifest",
                metad_pb.ManifestRequest(space=job.space, version=job.version),
                common_pb.Manifest,
            )
        except NotFound:
            return []
        if space.space_id != job.space_id:  # a later space of the same name
            return []
        return weight_stats_views(
            Schema.from_proto(space.schema), list(map(PartitionStats.from_proto, manifest.totals))
        )

    @api.get("/jobs")
    def list_jobs(
        space: Annotated[str, Query(description="Only jobs of this space.")] = "",
        state: Annotated[
            list[StateName] | None, Query(description="Only jobs in one of these states.")
        ] = None,
        kind: Annotated[
            list[str] | None, Query(description="Only jobs of one of these kinds.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of jobs.")] = 50,
        before: Annotated[
            int,
            Query(ge=0, lt=1 << 63, description="Only jobs with a smaller id; 0: from the newest."),
        ] = 0,
    ) -> JobPageView:
        """Return a page of jobs, newest first."""
        page = call(
            "list_jobs",
            metad_pb.ListJobsRequest(
                space=space,
                states=[STATES[name] for name in state or ()],
                kinds=kind or (),
                limit=limit,
                before=before,
            ),
            metad_pb.JobList,
        )
        return JobPageView(
            jobs=[job_view(job) for job in page.jobs],
            next_before=page.next_before,
            total=page.total,
        )

    @api.get("/jobs/{job_id}")
    def get_job(job_id: JobNumber) -> JobView:
        """Return one job with its tasks and progress.

        For a build, the reply includes the weight statistics of the version that it published."""
        job = call("get_job", _job_request(job_id), common_pb.Job)
        return job_view(job, published_weight_stats(job))

    @api.post("/jobs", status_code=202, responses=refusals(_INVALID | _CONFLICT))
    def submit_job(new: NewJob) -> JobView:
        """Submit a job on the committed and published data of a space.

        If an identical job is in flight, that job is returned."""
        return job_view(
            call(
                "submit_job",
                metad_pb.SubmitJobRequest(
                    space=new.space, kind=new.kind, options=new.options, version=new.version
                ),
                common_pb.Job,
            )
        )

    @api.post("/jobs/{job_id}/stop", status_code=202, responses=refusals(_CONFLICT))
    def stop_job(job_id: JobNumber) -> JobView:
        """Stop a job. It is STOPPED once every host confirmed or lost its lease."""
        return job_view(call("stop_job", _job_request(job_id), common_pb.Job))

    @api.post("/jobs/{job_id}/recover", status_code=202, responses=refusals(_CONFLICT))
    def recover_job(job_id: JobNumber) -> JobView:
        """Resume a failed or stopped job with the same input."""
        return job_view(call("recover_job", _job_request(job_id), common_pb.Job))

    return api


def _job_request(job_id: str) -> metad_pb.JobRequest:
    return metad_pb.JobRequest(job_id=parse_id("job", job_id))


def parse_id(label: str, text: str, *, minimum: int = 0) -> int:
    """Return the id in a path; NotFound if it is not a number."""
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) < minimum:
        raise NotFound(f"{label} {text!r} does not exist: expected an integer, 1 or more")
    return int(text)
