"""Which jobs may still go on with what they left on their storageds; a quiet room that is told the
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from asterism_model.removals import RemovalKind, RemovalRequest
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
    """The jobs whose leftovers stay.

    Parameters
    ----------
    jobs : iterable of Job
    current_manifests : mapping
        Every space there is -> the manifest of its current version.
    now_ms, keep_ms : int
        The time, and how long what failed or was stopped may be recovered from where it was.
    """
    return [
        job
        for job in jobs
        if job.space_id in current_manifests
        and _is_recoverable(job, current_manifests[job.space_id], now_ms - keep_ms)
    ]


def _is_recoverable(job: Job, current: Manifest | None, since_ms: int) -> bool:
    if job.state is JobState.FINISHED or all(task.attempt == 0 for task in job.tasks):
        return False  # it is done, or it never began
    # A job that is not over is kept throughout: between two attempts nothing is ordered of a host.
    return not job.state.is_final or (
        job.finished_ms > since_ms and not _is_superseded(job, current)
    )


def _is_superseded(job: Job, current: Manifest | None) -> bool:
    """Whether something newer was published, or the same after the job's end."""
    if current is None or current.cut != job.cut:
        return current is not None and current.cut > job.cut
    return current.created_ms >= job.finished_ms


def leftover_removals(job: Job, *, now_ms: int) -> list[PendingRemoval]:
    """Return the orders to remove what a job that is over left on its storageds, but for a build
    that it published.
    """
    hosts = tuple(sorted({task.host for task in job.tasks if task.attempt}))
    kinds = (RemovalKind.LEFTOVERS,) if job.version else (RemovalKind.BUILD, RemovalKind.LEFTOVERS)
    return [
        PendingRemoval(
            request=RemovalRequest(
                kind=kind,
                space_id=job.space_id,
                job_id=job.job_id,
                reason=f"job {job.job_id} of space {job.space} is over ({job.state.name})",
            ),
            hosts=hosts,
            created_ms=now_ms,
        )
        for kind in kinds
        if hosts
    ]
