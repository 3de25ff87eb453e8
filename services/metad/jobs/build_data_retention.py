"""Retention of the data that jobs leave on storageds.

Pure module; the time is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from asterism_model.storage_removals import RemovalKind, RemovalRequest
from metad.model.catalog import Manifest, PendingRemoval
from metad.model.ids import SpaceId
from metad.model.jobs import Job, JobState


def recoverable_jobs(
    jobs: Iterable[Job],
    current_manifests: Mapping[SpaceId, Manifest | None],
    *,
    now_ms: int,
    keep_ms: int,
) -> list[Job]:
    """Return the jobs that may resume from their leftovers, which storageds therefore keep.

    Parameters
    ----------
    jobs : iterable of Job
    current_manifests : mapping
        Every existing space -> the manifest of its current version.
    now_ms : int
        Current time, in milliseconds since 1970.
    keep_ms : int
        Milliseconds after its end during which a failed or stopped job can resume.

    Returns
    -------
    list of Job
    """
    return [
        job
        for job in jobs
        if job.space_id in current_manifests
        and _is_recoverable(job, current_manifests[job.space_id], now_ms - keep_ms)
    ]


def _is_recoverable(job: Job, current: Manifest | None, since_ms: int) -> bool:
    if job.state is JobState.FINISHED or all(task.attempt == 0 for task in job.tasks):
        return False  # finished, or never started
    # A job that is not over keeps its data even between two attempts, when no host has an
    # assignment.
    return not job.state.is_final or (
        job.finished_ms > since_ms and not _is_superseded(job, current)
    )


def _is_superseded(job: Job, current: Manifest | None) -> bool:
    """Return whether a newer commit was published, or the same one after the job's end."""
    if current is None or current.watermark != job.watermark:
        return current is not None and current.watermark > job.watermark
    return current.created_ms >= job.finished_ms


def leftover_removals(job: Job, *, now_ms: int) -> list[PendingRemoval]:
    """Return requests to remove the leftovers of an ended job, except a version it published."""
    hosts = tuple(sorted({task.host for task in job.tasks if task.attempt}))
    kinds = (RemovalKind.LEFTOVERS,) if job.version else (RemovalKind.BUILD, RemovalKind.LEFTOVERS)
    return [
        PendingRemoval(
            request=RemovalRequest(
                kind=kind,
                space_id=job.space_id,
                job_id=job.job_id,
                reason=f"job {job.job_id} of space {job.space} has ended ({job.state.name})",
            ),
            hosts=hosts,
            created_ms=now_ms,
        )
        for kind in kinds
        if hosts
    ]
