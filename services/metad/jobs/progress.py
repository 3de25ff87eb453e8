"""Rates and remaining times of tasks and jobs, from task reports. Pure module."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from metad.model.jobs import Job, JobState, Task

_MIN_INTERVAL_MS = 200
"""Minimum distance of two rate measurements; closer reports are too noisy."""
_DECAY_MS = 5_000
"""Time constant of the exponential average of a rate, in milliseconds."""


def with_rate(task: Task, rows_done: int, now_ms: int) -> Task:
    """Return the task with its rate after a report of ``rows_done`` at ``now_ms``.

    The task's own ``rows_done`` stays unchanged."""
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
    """Return the task without a rate, for a task that is not running."""
    return replace(task, measured_ms=0, measured_rows=0, rows_per_s=0.0)


def task_eta_s(task: Task) -> float | None:
    """Return the seconds to the end of a task at its rate; None if not known."""
    if task.state is not JobState.RUNNING or task.rows_total <= 0 or task.rows_per_s <= 0:
        return None
    return max(task.rows_total - task.rows_done, 0) / task.rows_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """Progress of a job."""

    rows_done: int
    rows_total: int
    has_total: bool
    """True if every task has counted its rows, so that ``rows_total`` is complete."""
    rows_per_s: float | None
    """Sum of the rates of all running tasks; None if none has a rate."""
    eta_s: float | None
    """Seconds to the end if the slowest task keeps its rate; None if not known."""


def job_progress(job: Job) -> JobProgress:
    """Return the progress of ``job`` and its rate."""
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
