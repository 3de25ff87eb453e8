"""How fast tasks go and how long they will take, from their reports; a quiet room."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from metad.model.jobs import Job, JobState, Task

_MIN_INTERVAL_MS = 200
"""Reports that are closer to each other say nothing about a rate."""
_DECAY_MS = 5_000
"""A rate forgets what is longer ago, exponentially."""


def with_rate(task: Task, rows_done: int, now_ms: int) -> Task:
    """The task with its rate after a report of ``rows_done`` at ``now_ms``; its rows are not
    touched.
    """
    elapsed = now_ms - task.measured_ms
    if task.measured_ms == 0 or elapsed < 0 or rows_done < task.measured_rows:
        return replace(task, measured_ms=now_ms, measured_rows=rows_done, rows_per_s=0.0)
    if elapsed < _MIN_INTERVAL_MS:
        return task
    rate = (rows_done - task.measured_rows) * 1000 / elapsed
    if task.rows_per_s > 0:
        decay = math.exp(-elapsed / _DECAY_MS)
        rate = decay * task.rows_per_s + (1 - decay) * rate
    return replace(task, measured_ms=now_ms, measured_rows=rows_done, rows_per_s=rate)


def without_rate(task: Task) -> Task:
    """The task without a rate: nothing of it is under way."""
    return replace(task, measured_ms=0, measured_rows=0, rows_per_s=0.0)


def task_eta_s(task: Task) -> float | None:
    """Seconds to the end of a task at its rate; None where that can not be told."""
    if task.state is not JobState.RUNNING or task.rows_total <= 0 or task.rows_per_s <= 0:
        return None
    return max(task.rows_total - task.rows_done, 0) / task.rows_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """How far a job is."""

    rows_done: int
    rows_total: int
    has_total: bool
    """Every task has counted its rows: ``rows_total`` is all of them."""
    rows_per_s: float | None
    """Of all running tasks together; None where none has a rate."""
    eta_s: float | None
    """Seconds to the end if the slowest task goes on as it does; None where that can not be
    told.
    """


def job_progress(job: Job) -> JobProgress:
    """How far ``job`` is, and how fast it goes."""
    running = [task for task in job.tasks if task.state is JobState.RUNNING]
    unfinished = [task for task in job.tasks if task.state is not JobState.FINISHED]
    counted = all(task.rows_total > 0 or task.state is JobState.FINISHED for task in job.tasks)
    etas = [eta for task in running if (eta := task_eta_s(task)) is not None]
    rate = sum(task.rows_per_s for task in running)
    return JobProgress(
        rows_done=sum(task.rows_done for task in job.tasks),
        rows_total=sum(task.rows_total for task in job.tasks),
        has_total=counted,
        rows_per_s=rate if rate > 0 else None,
        eta_s=max(etas) if counted and etas and len(etas) == len(unfinished) else None,
    )
