"""What the routes of jobs answer with."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from pydantic import Field

from asterism_model.partition_stats import Element
from asterism_model.task_results import TaskResult
from metad.http.views import ApiModel
from metad.http.weight_stats_views import WeightStatsView
from metad.jobs.progress import job_progress, task_eta_s
from metad.model.job_kinds import redacted_options
from metad.model.jobs import Job, JobState, Task

ElementName = Literal["node", "edge"]
StateName = Literal["QUEUE", "RUNNING", "FINISHED", "FAILED", "STOPPED"]

_STATE_NAMES: dict[JobState, StateName] = {
    JobState.QUEUE: "QUEUE",
    JobState.RUNNING: "RUNNING",
    JobState.FINISHED: "FINISHED",
    JobState.FAILED: "FAILED",
    JobState.STOPPED: "STOPPED",
}


class TypeAuditView(ApiModel):
    """What an audit found of one type, over the parts of one storaged."""

    element: ElementName
    type_id: int
    count: int
    """Live rows."""
    positive: int
    """Rows of positive weight: columns of its tables."""
    weight: float
    """Their sum."""
    table_tv: float
    """Largest total variation between a table's law and the weights."""
    table_rel: float
    """Largest relative error of one of its shares."""
    alias_rows: int
    """Nodes whose own alias row was rebuilt, over both directions."""
    row_tv: float
    """Largest total variation of an alias row."""
    row_rel: float
    """Largest relative error of one of its shares."""
    underflow: int
    """Shares of tables below 2^-64."""


class ExportedFileView(ApiModel):
    """A table as a file."""

    path: str = Field(examples=["p00000-n0-weight.parquet"])
    """Below the task's folder."""
    part: int
    element: ElementName
    type_id: int
    weight_name: str
    format: Literal["parquet", "csv"]
    rows: int
    bytes: int
    sha256: str


class PartUnitsView(ApiModel):
    """How much of a part a build linked from versions before, and how much it made."""

    part: int
    linked: int
    """Units: pieces of a part with an input of their own."""
    built: int
    bytes_linked: int
    """Of files: on disk once, whatever versions share them."""
    bytes_built: int


class ResultView(ApiModel):
    """What a task made, by the kind of its job; what another kind makes is empty."""

    audit: list[TypeAuditView]
    files_read: int
    """By an audit: files of images, every byte of them."""
    bytes_read: int
    folder: str
    """Of exported tables: a path on the storaged's host, or the address that was asked for."""
    files: list[ExportedFileView]
    """Empty in lists of jobs."""
    bytes_before: int
    """Of the graph database, before a compaction."""
    bytes_after: int
    units: list[PartUnitsView]
    """Of each part that was built; empty in lists of jobs."""


class TaskView(ApiModel):
    """A job's share on one storaged."""

    task_id: int
    host: str
    """uuid of the storaged."""
    parts: list[int]
    attempt: int
    """Number of the latest order; 0: none yet."""
    state: StateName
    phase: str
    """What the storaged says that it is doing."""
    rows_done: int
    rows_total: int
    """0 while it is not known."""
    rows_per_s: float | None
    """Of the attempt under way; null while it is not known."""
    eta_s: float | None
    """Seconds to its end at that rate; null while it is not known."""
    retry_at_ms: int
    """Of a waiting task: not ordered before; 0: at once."""
    causes: list[str]
    """Of every attempt that came to nothing."""
    started_ms: int
    finished_ms: int
    result: ResultView | None
    """Of a finished task."""


class ProgressView(ApiModel):
    """How far a job is."""

    rows_done: int
    rows_total: int
    fraction: float | None
    """0 to 1; null while some task has not counted its rows."""
    rows_per_s: float | None
    """Of all running tasks together; null where nothing runs."""
    eta_s: float | None
    """Seconds to the end, if the slowest task goes on as it did; null where that can not be
    told.
    """


class JobView(ApiModel):
    """Work asked of metad. Times are milliseconds since 1970, 0 = not yet."""

    job_id: int = Field(examples=[12])
    space: str = Field(examples=["papers"])
    space_id: int
    kind: str = Field(examples=["build"])
    options: dict[str, str]
    """As submitted, defaults filled in."""
    target_version: int
    """The version that it reads; 0: none."""
    state: StateName
    ending: StateName | None
    """What a RUNNING job is on its way to: STOPPED or FAILED."""
    cut: int
    """The space's last commit when it was submitted: what a build shows."""
    version: int
    """What it published; 0: nothing."""
    cause: str
    """Why it failed or was stopped."""
    submitted_ms: int
    started_ms: int
    finished_ms: int
    progress: ProgressView
    tasks: list[TaskView]
    hygiene: list[WeightStatsView]
    """Of a finished build, asked for by itself: what the weights of its version are like, by type
    and name, while it is served.
    """


class JobPageView(ApiModel):
    """Some jobs, newest first."""

    jobs: list[JobView]
    next_before: int
    """`before` of the next page; 0: there are no more."""
    total: int
    """Jobs that were asked for, on all pages."""


class NewJob(ApiModel):
    """A job to submit."""

    space: str = Field(min_length=1, max_length=128, examples=["papers"])
    kind: str = Field(
        default="build",
        max_length=32,
        examples=["build", "index", "audit", "export-tables", "compact"],
    )
    options: dict[str, str] = Field(default_factory=dict, examples=[{"format": "csv"}])
    """By kind; `export-tables` knows `format` (parquet, csv or both) and `to` (an allowed address),
    `index` `type`, `on`, `kind` and `drop`.
    """
    version: int = Field(default=0, ge=0, lt=1 << 64)
    """For kinds that read a version; 0: the current one."""


def job_view(
    job: Job, *, files: bool = True, weight_stats: list[WeightStatsView] | None = None
) -> JobView:
    """A job as it is shown; in lists without the names of what it exported."""
    return JobView(
        job_id=job.job_id,
        space=job.space,
        space_id=job.space_id,
        kind=job.kind,
        options=redacted_options(job.options),
        target_version=job.target_version,
        state=_STATE_NAMES[job.state],
        ending=_STATE_NAMES[job.ending] if job.ending else None,
        cut=job.cut,
        version=job.version,
        cause=job.cause,
        submitted_ms=job.submitted_ms,
        started_ms=job.started_ms,
        finished_ms=job.finished_ms,
        progress=_progress(job),
        tasks=[_task_view(task, files=files) for task in job.tasks],
        hygiene=weight_stats or [],
    )


def _task_view(task: Task, *, files: bool) -> TaskView:
    return TaskView(
        task_id=task.task_id,
        host=task.host,
        parts=list(task.parts),
        attempt=task.attempt,
        state=_STATE_NAMES[task.state],
        phase=task.phase,
        rows_done=task.rows_done,
        rows_total=task.rows_total,
        rows_per_s=task.rows_per_s or None,
        eta_s=task_eta_s(task),
        retry_at_ms=task.retry_at_ms if task.state is JobState.QUEUE else 0,
        causes=list(task.causes),
        started_ms=task.started_ms,
        finished_ms=task.finished_ms,
        result=_result_view(task.outcome.result, files=files)
        if task.outcome is not None and task.outcome.result != TaskResult()
        else None,
    )


def _progress(job: Job) -> ProgressView:
    progress = job_progress(job)
    return ProgressView(
        rows_done=progress.rows_done,
        rows_total=progress.rows_total,
        fraction=min(progress.rows_done / progress.rows_total, 1.0)
        if progress.has_total and progress.rows_total
        else None,
        rows_per_s=progress.rows_per_s,
        eta_s=progress.eta_s,
    )


def _element(element: Element) -> ElementName:
    return "node" if element is Element.NODE else "edge"


def _result_view(result: TaskResult, *, files: bool) -> ResultView:
    return ResultView(
        audit=[
            TypeAuditView(**{**asdict(audit), "element": _element(audit.element)})
            for audit in result.audit
        ],
        files_read=result.files_read,
        bytes_read=result.bytes_read,
        folder=result.folder,
        files=[
            ExportedFileView(**{**asdict(file), "element": _element(file.element)})
            for file in result.files
        ]
        if files
        else [],
        bytes_before=result.bytes_before,
        bytes_after=result.bytes_after,
        units=[PartUnitsView(**asdict(units)) for units in result.units] if files else [],
    )
