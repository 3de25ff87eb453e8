"""`asterism job`: submit, list, show, stop, recover and await jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.error_output import print_error
from asterism.cli.exit_codes import ExitCode
from asterism.cli.help_text import examples
from asterism.cli.job_waits import wait_for_job
from asterism.cli.option_values import parse_assignments
from asterism.cli.options import (
    DEFAULT_TOTAL_TIMEOUT_S,
    GraphVersion,
    Space,
    TotalTimeout,
    Wait,
)
from asterism.cli.output import Output, format_timestamp, table
from asterism.cli.shell_completion import (
    choices,
    complete_jobs,
    complete_spaces,
    complete_types,
)
from asterism.cli.status import display_address
from asterism.cli.tables import sections
from asterism.cli.typer_signatures import expand_option_groups
from asterism_model.job_phases import describe_phase
from asterism_proto.errors import AsterismError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Client
    from asterism.records.samples import Job, TaskResult

app = typer.Typer(
    no_args_is_help=True,
    help="Manage background jobs: builds, audits, exports and others.",
    epilog=examples("asterism job submit shop --wait", "asterism job list --state RUNNING"),
)

JobId = Annotated[
    int,
    typer.Argument(metavar="JOB", min=1, help="Id of the job.", autocompletion=complete_jobs),
]
JOB_COLUMNS = ("job", "space", "kind", "state", "rows", "version", "submitted (UTC)", "seconds")


def print_result(output: Output, job: Job, addresses: Mapping[str, str]) -> None:
    """Print a job as the result of the command; exit with FAILED if it failed or was stopped."""
    output.result(job, lambda: job_table(job, addresses))
    if job.state in ("FAILED", "STOPPED"):
        if job.cause and output.as_json:
            print_error(
                f"job {job.job_id} {job.state}: {job.cause}",
                name=f"Job{job.state.title()}",
                code=ExitCode.FAILED,
                as_json=True,
            )
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
    """Return a table with a row per job."""
    return table("jobs", JOB_COLUMNS, [_row(job) for job in jobs], optional=("seconds", "rows"))


def host_addresses(client: Client, output: Output) -> dict[str, str]:
    """Return the addresses of daemons by their uuids; empty for JSON, or if they are not known."""
    try:
        return {} if output.as_json else {h.uuid: display_address(h) for h in client.hosts()}
    except AsterismError:
        return {}


def job_table(job: Job, addresses: Mapping[str, str]) -> RenderableType:
    """Return the tables of a job and its tasks, with hosts by their addresses."""
    hosts = {task.host: addresses.get(task.host, task.host[:12]) for task in job.tasks}
    tasks = [
        (
            t.task_id,
            hosts[t.host],
            t.attempt,
            t.state,
            describe_phase(t.phase) or "-",
            f"{t.rows_done:,} of {t.rows_total:,}",
        )
        for t in job.tasks
    ]
    parts: list[RenderableType] = [
        jobs_table([job]),
        table("tasks", ("task", "host", "attempt", "state", "phase", "rows"), tasks),
        *(f"task {t.task_id}: {cause}" for t in job.tasks for cause in t.causes),
    ]
    requested = [f"version {job.target_version}"] if job.target_version else []
    requested += [f"{key} {value}" for key, value in job.options.items()]
    if requested:
        parts.append(f"requested: {', '.join(requested)}")
    parts += [
        _task_result_table(hosts[task.host], task.result)
        for task in job.tasks
        if task.result is not None
    ]
    if job.state == "RUNNING" and job.rows_per_s:
        remaining = f", {job.eta_s:,.0f} s left" if job.eta_s else ""
        parts.append(
            f"{job.rows_done:,} of {job.rows_total:,} rows, {job.rows_per_s:,.0f} rows/s{remaining}"
        )
    if job.cause:
        parts.append(f"cause: {job.cause}")
    return sections(*parts)


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
    """Return the table of what a task produced."""
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
            f"{host}: {result.files_read:,} files, {result.bytes_read:,} bytes read",
            AUDIT_COLUMNS,
            audit_rows,
            optional=("row rel", "table rel", "alias rows"),
        )
    if result.units:
        return table(
            f"{host}: built units",
            BUILD_COLUMNS,
            [
                (u.part, u.linked, u.built, f"{u.bytes_linked:,}", f"{u.bytes_built:,}")
                for u in result.units
            ],
        )
    if result.folder:
        rows = [
            (file.path, f"{file.rows:,}", f"{file.bytes:,}", file.sha256) for file in result.files
        ]
        return table(f"{host}: {result.folder}", EXPORT_COLUMNS, rows, optional=("sha256",))
    return f"{host}: {result.bytes_before:,} bytes before, {result.bytes_after:,} after"


@app.command(
    short_help="Submit a job: by default a build.",
    epilog=examples(
        "asterism job submit shop --wait",
        "asterism job submit shop --kind audit --graph-version 3 --wait",
        "asterism job submit shop --kind export-tables --option format=csv "
        "--option to=s3://bucket/tables",
    ),
)
@expand_option_groups
def submit(
    context: typer.Context,
    space: Space,
    *,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Kind: build, index, audit, export-tables or compact.",
            autocompletion=choices("build", "index", "audit", "export-tables", "compact"),
        ),
    ] = "build",
    graph_version: GraphVersion = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="Option of the job. For export-tables: format=parquet, csv or csv,parquet; "
            "to=ADDRESS. For builds: link=no. For index: see `asterism job index`. Repeatable.",
        ),
    ] = None,
    wait: Wait = False,
    total_timeout: TotalTimeout = DEFAULT_TOTAL_TIMEOUT_S,
) -> None:
    """Submit a job: by default a build, which publishes the loaded data as a new version.

    An audit reads a version again and verifies its checksums, weights and totals. export-tables
    writes its alias tables to files. compact frees the disk space of overwritten and deleted
    blocks. A build shares unchanged data with earlier versions; with link=no it rebuilds
    everything, for example after an audit that found damaged files."""
    job_options = parse_assignments(
        "--option", options, form="KEY=VALUE", example="format=csv", allow_empty=True
    )
    if kind == "index" and not job_options:
        raise typer.BadParameter(
            "--kind=index: expected the column to index; use `asterism job index SPACE TYPE COLUMN`"
        )
    command = command_context(context)
    with command.client(fork_tasks=True) as client:
        job = client.submit_job(space, kind=kind, options=job_options, version=graph_version or 0)
        if wait:
            job = wait_for_job(command, client, job.job_id, total_timeout)
        addresses = host_addresses(client, command.output)
    print_result(command.output, job, addresses)


@app.command(
    short_help="Add an index to a space, or remove one.",
    epilog=examples(
        "asterism job index shop item price --wait",
        "asterism job index shop item brand --kind hash",
    ),
)
@expand_option_groups
def index(
    context: typer.Context,
    space: Space,
    type_name: Annotated[
        str,
        typer.Argument(
            metavar="TYPE", help="Node type or edge type.", autocompletion=complete_types
        ),
    ],
    column: Annotated[
        str,
        typer.Argument(
            metavar="COLUMN",
            help="Column in the notation of filters: price, size[2], id, weight. For edges: "
            "weight, id, src, dst, or a column that the schema declares.",
        ),
    ],
    *,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Kind of index: range (numbers, by value) or hash (equality, also of strings).",
        ),
    ] = "range",
    drop: Annotated[
        bool, typer.Option("--drop", help="Remove the index: publish a version without it.")
    ] = False,
    wait: Wait = False,
    total_timeout: TotalTimeout = DEFAULT_TOTAL_TIMEOUT_S,
) -> None:
    """Publish a version with one more index, for sampling with filters on its column.

    The job is a build of the committed data, and shares unchanged data with the previous version.
    Later builds keep the index."""
    command = command_context(context)
    with command.client() as client:
        options = {"type": type_name, "on": column, "kind": kind}
        if drop:
            options["drop"] = "yes"
        job = client.submit_job(space, kind="index", options=options)
        if wait:
            job = wait_for_job(command, client, job.job_id, total_timeout)
        addresses = host_addresses(client, command.output)
    print_result(command.output, job, addresses)


@app.command(
    "list", epilog=examples("asterism job list --space shop --state RUNNING --state QUEUE")
)
def list_jobs(
    context: typer.Context,
    *,
    space: Annotated[
        str | None,
        typer.Option(
            metavar="SPACE", help="List only jobs of this space.", autocompletion=complete_spaces
        ),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE",
            autocompletion=choices("QUEUE", "RUNNING", "FINISHED", "FAILED", "STOPPED"),
            help="List only jobs in this state: QUEUE, RUNNING, FINISHED, FAILED, STOPPED. "
            "Repeatable.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Maximum number of jobs.")
    ] = 50,
    before: Annotated[
        int,
        typer.Option(min=0, metavar="JOB", help="List only jobs older than this one (next page)."),
    ] = 0,
) -> None:
    """List jobs, newest first."""
    command = command_context(context)
    with command.client() as client:
        jobs = list(
            client.jobs(
                space, tuple(name.upper() for name in state or ()), limit=limit, before=before
            )
        )
    command.output.result(jobs, lambda: jobs_table(jobs))


@app.command(epilog=examples("asterism job show 7"))
def show(context: typer.Context, job: JobId) -> None:
    """Show a job and its tasks."""
    command = command_context(context)
    with command.client() as client:
        job_info = client.job(job)
        addresses = host_addresses(client, command.output)
    command.output.result(job_info, lambda: job_table(job_info, addresses))


@app.command(epilog=examples("asterism job stop 7"))
def stop(context: typer.Context, job: JobId) -> None:
    """Stop a job; `recover` continues it."""
    command = command_context(context)
    with command.client() as client:
        job_info = client.stop_job(job)
        addresses = host_addresses(client, command.output)
    command.output.result(job_info, lambda: job_table(job_info, addresses))


@app.command(epilog=examples("asterism job recover 7 --wait"))
@expand_option_groups
def recover(
    context: typer.Context,
    job: JobId,
    *,
    wait: Wait = False,
    total_timeout: TotalTimeout = DEFAULT_TOTAL_TIMEOUT_S,
) -> None:
    """Continue a failed or stopped job from its last checkpoint."""
    command = command_context(context)
    with command.client() as client:
        job_info = client.recover_job(job)
        if wait:
            job_info = wait_for_job(command, client, job, total_timeout)
        addresses = host_addresses(client, command.output)
    print_result(command.output, job_info, addresses) if wait else command.output.result(
        job_info, lambda: job_table(job_info, addresses)
    )


@app.command(
    short_help="Wait until a job has ended.",
    epilog=examples("asterism job wait 7 --total-timeout 600"),
)
@expand_option_groups
def wait(
    context: typer.Context, job: JobId, *, total_timeout: TotalTimeout = DEFAULT_TOTAL_TIMEOUT_S
) -> None:
    """Wait until a job has ended; exit with 1 if it failed or was stopped."""
    command = command_context(context)
    with command.client() as client:
        job_info = wait_for_job(command, client, job, total_timeout)
        addresses = host_addresses(client, command.output)
    print_result(command.output, job_info, addresses)
