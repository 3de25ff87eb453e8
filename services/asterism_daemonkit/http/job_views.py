"""Views of jobs: response and request models of the job routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Literal

from pydantic import Field

from asterism_daemonkit.http.models import HttpModel
from asterism_daemonkit.http.weight_stats_views import WeightStatsView
from asterism_model.elements import Element
from asterism_model.job_phases import describe_phase
from asterism_model.task_results import TaskResult
from asterism_proto.v1 import common_pb2 as common_pb

ElementName = Literal["node", "edge"]
StateName = Literal["QUEUE", "RUNNING", "FINISHED", "FAILED", "STOPPED"]

STATES: dict[StateName, common_pb.JobState] = {
    "QUEUE": common_pb.QUEUE,
    "RUNNING": common_pb.RUNNING,
    "FINISHED": common_pb.FINISHED,
    "FAILED": common_pb.FAILED,
    "STOPPED": common_pb.STOPPED,
}
"""States of a job by name."""
STATE_NAMES: Mapping[int, StateName] = {number: name for name, number in STATES.items()}


class TypeAuditView(HttpModel):
    """Audit result of one type, over the partitions of one storaged."""

    element: ElementName
    type_id: int
    count: int
    """Number of live rows."""
    positive: int
    """Number of rows with positive weight: the columns of its alias tables."""
    weight: float
    """Sum of the weights."""
    table_tv: float
    """Largest total variation between the distribution of a table and the weights."""
    table_rel: float
    """Largest relative error of one probability in a table."""
    alias_rows: int
    """Nodes with a rebuilt alias row of their own, over both directions."""
    row_tv: float
    """Largest total variation of an alias row."""
    row_rel: float
    """Largest relative error of one probability in an alias row."""
    underflow: int
    """Number of probabilities in tables below 2^-64."""


class ExportedFileView(HttpModel):
    """A table exported as a file."""

    path: str = Field(examples=["p00000-n0-weight.parquet"])
    """Path below the task's folder."""
    part: int
    element: ElementName
    type_id: int
    weight_name: str
    format: Literal["parquet", "csv"]
    rows: int
    bytes: int
    sha256: str


class PartUnitsView(HttpModel):
    """Units of a partition that a build linked from earlier versions, and those that it built."""

    part: int
    linked: int
    """Units linked; a unit is a piece of a partition with its own input."""
    built: int
    bytes_linked: int
    """Bytes of linked files, which are on disk once for all versions that share them."""
    bytes_built: int


class ResultView(HttpModel):
    """Result of a task. Fields of other job kinds are empty."""

    audit: list[TypeAuditView]
    files_read: int
    """Image files that an audit read completely."""
    bytes_read: int
    folder: str
    """Folder of exported tables: a path on the storaged's host, or the requested address."""
    files: list[ExportedFileView]
    """Exported files; empty in lists of jobs."""
    bytes_before: int
    """Size of the graph database before a compaction."""
    bytes_after: int
    units: list[PartUnitsView]
    """Units of each partition that was built; empty in lists of jobs."""


class TaskView(HttpModel):
    """The share of a job on one storaged."""

    task_id: int
    host: str
    """UUID of the storaged."""
    parts: list[int]
    attempt: int
    """Number of the latest attempt; 0 if there was none."""
    state: StateName
    phase: str
    """Current activity, as reported by the storaged."""
    activity: str = Field(examples=["alias table: write"])
    """Description of the phase."""
    rows_done: int
    rows_total: int
    """Rows to process; 0 while not known."""
    rows_per_s: float | None
    """Rate of the current attempt; null while not known."""
    eta_s: float | None
    """Seconds to its end at that rate; null while not known."""
    retry_at_ms: int
    """Earliest time of the next attempt of a waiting task; 0: at once."""
    causes: list[str]
    """Causes of all unsuccessful attempts."""
    started_ms: int
    finished_ms: int
    result: ResultView | None
    """Result of a finished task."""
    result_lines: list[str] = Field(examples=[["12 files in /data/exports/3"]])
    """The result as text. In lists of jobs, without numbers of files and units."""


class ProgressView(HttpModel):
    """Progress of a job."""

    rows_done: int
    rows_total: int
    fraction: float | None
    """Fraction done, 0 to 1; null while some task has not counted its rows."""
    rows_per_s: float | None
    """Sum of the rates of all running tasks; null if nothing runs."""
    eta_s: float | None
    """Seconds to the end if the slowest task keeps its rate; null if not known."""


class JobView(HttpModel):
    """A unit of work submitted to metad. Times are milliseconds since 1970; 0 = not yet."""

    job_id: int = Field(examples=[12])
    space: str = Field(examples=["papers"])
    space_id: int
    kind: str = Field(examples=["build"])
    options: dict[str, str]
    """Submitted options, with defaults filled in."""
    target_version: int
    """Version that the job reads; 0: none."""
    state: StateName
    ending: StateName | None
    """State that a RUNNING job is about to enter: STOPPED or FAILED."""
    watermark: int
    """Commit watermark: the space's last commit at submission. A build contains it."""
    cut: int = Field(deprecated=True)
    """Deprecated name of `watermark`; the next release drops it."""
    version: int
    """Version that the job published; 0: none."""
    cause: str
    """Why the job failed or was stopped."""
    submitted_ms: int
    started_ms: int
    finished_ms: int
    progress: ProgressView
    tasks: list[TaskView]
    weight_stats: list[WeightStatsView]
    """Weight statistics of the version that a build published, by type and weight name.

    Filled if a single job is requested, while its version is served."""
    hygiene: list[WeightStatsView] = Field(deprecated=True)
    """Deprecated name of `weight_stats`; the next release drops it."""


class JobPageView(HttpModel):
    """A page of jobs, newest first."""

    jobs: list[JobView]
    next_before: int
    """`before` of the next page; 0: there are no more."""
    total: int
    """Number of matching jobs on all pages."""


class NewJob(HttpModel):
    """A job to submit."""

    space: str = Field(min_length=1, max_length=128, examples=["papers"])
    kind: str = Field(
        default="build",
        max_length=32,
        examples=["build", "index", "audit", "export-tables", "compact"],
    )
    options: dict[str, str] = Field(default_factory=dict, examples=[{"format": "csv"}])
    """Options by kind.

    `export-tables` takes `format` (parquet, csv or both) and `to` (an allowed address); `index`
    takes `type`, `on`, `kind` and `drop`."""
    version: int = Field(default=0, ge=0, lt=1 << 64)
    """Version to read, for kinds that read one; 0: the current one."""


def job_view(job: common_pb.Job, weight_stats: list[WeightStatsView] | None = None) -> JobView:
    """Return the view of a job, with the weight statistics of the version that it published."""
    return JobView(
        job_id=job.job_id,
        space=job.space,
        space_id=job.space_id,
        kind=job.kind,
        options=dict(job.options),
        target_version=job.target_version,
        state=STATE_NAMES[job.state],
        ending=STATE_NAMES.get(job.ending),
        watermark=job.watermark,
        cut=job.watermark,
        version=job.version,
        cause=job.cause,
        submitted_ms=job.submitted_ms,
        started_ms=job.started_ms,
        finished_ms=job.finished_ms,
        progress=_progress(job),
        tasks=[task_view(task) for task in job.tasks],
        weight_stats=weight_stats or [],
        hygiene=weight_stats or [],
    )


def task_view(task: common_pb.Task, *, with_lists: bool = True) -> TaskView:
    """Return the view of a task.

    Parameters
    ----------
    with_lists : bool
        List the files and the units of its result; otherwise these lists are empty.
    """
    result = TaskResult.from_proto(task.result) if task.HasField("result") else None
    return TaskView(
        task_id=task.task_id,
        host=task.host,
        parts=list(task.parts),
        attempt=task.attempt,
        state=STATE_NAMES[task.state],
        phase=task.phase,
        activity=describe_phase(task.phase),
        rows_done=task.rows_done,
        rows_total=task.rows_total,
        rows_per_s=task.rows_per_s or None,
        eta_s=task.eta_s or None,
        retry_at_ms=task.retry_at_ms,
        causes=list(task.causes),
        started_ms=task.started_ms,
        finished_ms=task.finished_ms,
        result=None if result is None else _result_view(result, with_lists=with_lists),
        result_lines=[] if result is None else _result_lines(result),
    )


def _progress(job: common_pb.Job) -> ProgressView:
    has_total = all(task.rows_total > 0 or task.state == common_pb.FINISHED for task in job.tasks)
    return ProgressView(
        rows_done=job.rows_done,
        rows_total=job.rows_total,
        fraction=min(job.rows_done / job.rows_total, 1.0) if has_total and job.rows_total else None,
        rows_per_s=job.rows_per_s or None,
        eta_s=job.eta_s or None,
    )


def _element(element: Element) -> ElementName:
    return "node" if element is Element.NODE else "edge"


def _result_view(result: TaskResult, *, with_lists: bool) -> ResultView:
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
            for file in (result.files if with_lists else ())
        ],
        bytes_before=result.bytes_before,
        bytes_after=result.bytes_after,
        units=[PartUnitsView(**asdict(units)) for units in (result.units if with_lists else ())],
    )


def _result_lines(result: TaskResult) -> list[str]:
    """Return a text for each result of a task."""
    lines = []
    if result.units:
        linked, built = (
            sum(unit.linked for unit in result.units),
            sum(unit.built for unit in result.units),
        )
        bytes_linked, bytes_built = (
            sum(unit.bytes_linked for unit in result.units),
            sum(unit.bytes_built for unit in result.units),
        )
        lines.append(
            f"{built:,} units built ({bytes_built:,} bytes), {linked:,} reused from earlier "
            f"versions ({bytes_linked:,} bytes)"
        )
    if result.files_read:
        worst = max((audit.table_tv for audit in result.audit), default=0.0)
        lines.append(
            f"{result.files_read:,} files read ({result.bytes_read:,} bytes), all checksums "
            f"match; largest error of an alias table: {worst:.3g}"
        )
    if result.folder:
        count = f"{len(result.files):,} " if result.files else ""
        lines.append(f"{count}files in {result.folder}")
    if result.bytes_before:
        lines.append(f"{result.bytes_before:,} bytes before, {result.bytes_after:,} after")
    return lines
