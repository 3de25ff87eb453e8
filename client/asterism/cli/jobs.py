"""`asterism job`: submit, list, show, stop, recover and wait for jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.output import Output, format_timestamp, table
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Client
    from asterism.records.samples import Job, TaskResult

app = typer.Typer(no_args_is_help=True, help="Jobs: what is built in the background.")

JobId = Annotated[int, typer.Argument(metavar="JOB", min=1, help="The job's number.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it has ended, with a progress bar.")]
TotalTimeout = Annotated[
    float, typer.Option("--within", min=0.1, metavar="SECONDS", help="How long to wait.")
]

DEFAULT_WAIT_S = 24 * 3600.0
JOB_COLUMNS = ("job", "space", "kind", "state", "rows", "version", "submitted (UTC)", "seconds")


@contextmanager
def job_progress(output: Output) -> Iterator[Callable[[Job], None]]:
    """Who shows a job's progress while the block runs."""
    with output.progress() as update:

        def on_progress(job: Job) -> None:
            phases = sorted(
                {task.phase for task in job.tasks if task.phase and task.state == "RUNNING"}
            )
            update(
                f"{job.kind} {job.space}",
                job.rows_done,
                job.rows_total or None,
                phase=" ".join(phases),
                rate=job.rows_per_s,
                left_s=job.eta_s,
            )

        yield on_progress


def wait_for_job(output: Output, client: Client, job_id: int, timeout_s: float) -> Job:
    """The job once it has ended, its progress shown meanwhile."""
    with job_progress(output) as on_progress:
        return client.wait(job_id, timeout_s=timeout_s, on_progress=on_progress)


def print_result(output: Output, job: Job) -> None:
    """Print a job as the command's result; exit with FAILED where it ended badly."""
    output.result(job, lambda: job_table(job))
    if job.state in ("FAILED", "STOPPED"):
        if job.cause and output.as_json:
            typer.echo(f"asterism: job {job.job_id} {job.state}: {job.cause}", err=True)
        raise typer.Exit(ExitCode.FAILED)


def _row(job: Job) -> tuple[object, ...]:
    seconds = (
        round((job.finished_ms - job.started_ms) / 1000, 1)
        if job.finished_ms and job.started_ms
        else "-"
    )
    return (
        job.job_id,
        job.space,
        job.kind,
        job.state,
        f"{job.rows_done:,}",
        job.version or "-",
        format_timestamp(job.submitted_ms),
        seconds,
    )


def jobs_table(jobs: list[Job]) -> RenderableType:
    """A line per job."""
    return table("jobs", JOB_COLUMNS, [_row(job) for job in jobs])


def job_table(job: Job) -> RenderableType:
    """One job and its tasks."""
    from rich.console import Group
    from rich.markup import escape

    tasks = [
        (
            t.task_id,
            t.host[:12],
            t.attempt,
            t.state,
            t.phase or "-",
            f"{t.rows_done:,} of {t.rows_total:,}",
            "; ".join(t.causes) or "-",
        )
        for t in job.tasks
    ]
    parts: list[RenderableType] = [
        jobs_table([job]),
        table("tasks", ("task", "host", "attempt", "state", "phase", "rows", "causes"), tasks),
    ]
    requested = [f"version {job.target_version}"] if job.target_version else []
    requested += [f"{key} {value}" for key, value in job.options.items()]
    if requested:
        parts.append(f"asked for: {escape(', '.join(requested))}")
    parts += [
        _task_result_table(task.host, task.result) for task in job.tasks if task.result is not None
    ]
    if job.state == "RUNNING" and job.rows_per_s:
        remaining = f", {job.eta_s:,.0f} s left" if job.eta_s else ""
        parts.append(
            f"{job.rows_done:,} of {job.rows_total:,} rows, {job.rows_per_s:,.0f} rows/s{remaining}"
        )
    if job.cause:
        parts.append(f"cause: {escape(job.cause)}")
    return Group(*parts)


AUDIT_COLUMNS = (
    "type",
    "rows",
    "positive",
    "weight",
    "table tv",
    "table rel",
    "alias rows",
    "row tv",
    "row rel",
)
EXPORT_COLUMNS = ("file", "rows", "bytes", "sha256")
BUILD_COLUMNS = ("part", "units linked", "units built", "bytes linked", "bytes built")


def _task_result_table(host: str, result: TaskResult) -> RenderableType:
    """What a task made."""
    from rich.markup import escape

    if result.audit:
        audit_rows = [
            (
                f"{a.element.lower()} {a.type_id}",
                a.count,
                a.positive,
                a.weight,
                a.table_tv,
                a.table_rel,
                a.alias_rows,
                a.row_tv,
                a.row_rel,
            )
            for a in result.audit
        ]
        return table(
            f"{host[:12]}: {result.files_read:,} files, {result.bytes_read:,} bytes read",
            AUDIT_COLUMNS,
            audit_rows,
        )
    if result.units:
        return table(
            f"{host[:12]}: what was built",
            BUILD_COLUMNS,
            [(u.part, u.linked, u.built, u.bytes_linked, u.bytes_built) for u in result.units],
        )
    if result.folder:
        rows = [(file.path, file.rows, file.bytes, file.sha256) for file in result.files]
        return table(f"{host[:12]}: {escape(result.folder)}", EXPORT_COLUMNS, rows)
    return f"{host[:12]}: {result.bytes_before:,} bytes before, {result.bytes_after:,} after"


def _parse_options(pairs: list[str] | None) -> dict[str, str]:
    """Options as ``KEY=VALUE`` words."""
    options = {}
    for pair in pairs or ():
        key, separator, value = pair.partition("=")
        if not (key and separator):
            raise InvalidRequest(f"--option {pair!r}: expected KEY=VALUE, as format=csv")
        options[key] = value
    return options


@app.command(
    epilog="Examples: asterism job submit shop --wait | asterism job submit shop --kind audit "
    "--at 3 --wait | "
    "asterism job submit shop --kind export-tables --option format=csv --option "
    "to=s3://bucket/tables"
)
def submit(
    context: typer.Context,
    space: Annotated[str, typer.Argument(metavar="SPACE", help="The space to work on.")],
    *,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="What to do: build, index, audit, export-tables or compact."
        ),
    ] = "build",
    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            min=1,
            metavar="VERSION",
            help="What an audit or an export reads. Default: the current one.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help=(
                "Of export-tables: format=parquet, csv or csv,parquet; to=ADDRESS. Of "
                "builds: link=no. Of index: see `asterism job index`."
            ),
        ),
    ] = None,
    wait: Wait = False,
    within: TotalTimeout = DEFAULT_WAIT_S,
) -> None:
    """Ask for a job: by default a build, which publishes what is loaded as a new version.

    An audit reads a version again and holds it against its checksums, weights and totals.
    export-tables writes its alias tables to files. compact gives the disk space of overwritten and
    deleted blocks back. A build shares what did not change with the versions before; with link=no
    it makes everything anew, as after an audit that found files damaged."""
    options = _parse_options(option)
    session = command_context(context)
    with session.client() as client:
        job = client.submit_job(space, kind=kind, options=options, version=at or 0)
        if wait:
            job = wait_for_job(session.output, client, job.job_id, within)
    print_result(session.output, job)


@app.command(
    epilog=(
        "Examples: asterism job index shop item price --wait | asterism job index shop item "
        "brand --kind hash"
    )
)
def index(
    context: typer.Context,
    space: Annotated[str, typer.Argument(metavar="SPACE", help="The space to work on.")],
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="A node type, or an edge type.")],
    on: Annotated[
        str,
        typer.Argument(
            metavar="COLUMN",
            help=(
                "A column, as conditions write it: price, size[2], id, weight. Of edges "
                "weight, id, src, dst, or what the schema declares."
            ),
        ),
    ],
    *,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="range (numbers, by value) or hash (equality, of texts too)."
        ),
    ] = "range",
    drop: Annotated[bool, typer.Option("--drop", help="Publish a version without it.")] = False,
    wait: Wait = False,
    within: TotalTimeout = DEFAULT_WAIT_S,
) -> None:
    """Publish a version with one more index, for draws under conditions on its column.

    It is a build of what is committed: what did not change is shared with the version before. Later
    builds keep the index."""
    session = command_context(context)
    with session.client() as client:
        options = {"type": type_name, "on": on, "kind": kind, **({"drop": "yes"} if drop else {})}
        job = client.submit_job(space, kind="index", options=options)
        if wait:
            job = wait_for_job(session.output, client, job.job_id, within)
    print_result(session.output, job)


@app.command("list", epilog="Example: asterism job list --space shop --state RUNNING --state QUEUE")
def list_jobs(
    context: typer.Context,
    *,
    space: Annotated[str | None, typer.Option(help="Only of this space.")] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Only in this state: QUEUE, RUNNING, FINISHED, FAILED, STOPPED. Repeat for several."
            )
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 50,
    before: Annotated[
        int, typer.Option(min=0, metavar="JOB", help="Only jobs before this one: the next page.")
    ] = 0,
) -> None:
    """List jobs, the newest first."""
    session = command_context(context)
    with session.client() as client:
        jobs = list(
            client.jobs(
                space, tuple(name.upper() for name in state or ()), limit=limit, before=before
            )
        )
    session.output.result(jobs, lambda: jobs_table(jobs))


@app.command(epilog="Example: asterism job show 7")
def show(context: typer.Context, job: JobId) -> None:
    """Show a job and its tasks."""
    session = command_context(context)
    with session.client() as client:
        job_info = client.job(job)
    session.output.result(job_info, lambda: job_table(job_info))


@app.command(epilog="Example: asterism job stop 7")
def stop(context: typer.Context, job: JobId) -> None:
    """Stop a job; `recover` goes on with it."""
    session = command_context(context)
    with session.client() as client:
        job_info = client.stop_job(job)
    session.output.result(job_info, lambda: job_table(job_info))


@app.command(epilog="Example: asterism job recover 7 --wait")
def recover(
    context: typer.Context, job: JobId, *, wait: Wait = False, within: TotalTimeout = DEFAULT_WAIT_S
) -> None:
    """Go on with a job that failed or was stopped, from its last checkpoint."""
    session = command_context(context)
    with session.client() as client:
        job_info = client.recover_job(job)
        if wait:
            job_info = wait_for_job(session.output, client, job, within)
    print_result(session.output, job_info) if wait else session.output.result(
        job_info, lambda: job_table(job_info)
    )


@app.command(epilog="Example: asterism job wait 7 --within 600")
def wait(context: typer.Context, job: JobId, *, within: TotalTimeout = DEFAULT_WAIT_S) -> None:
    """Wait until a job has ended; exit code 1 where it did not finish."""
    session = command_context(context)
    with session.client() as client:
        job_info = wait_for_job(session.output, client, job, within)
    print_result(session.output, job_info)
