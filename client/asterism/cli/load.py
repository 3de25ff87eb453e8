"""`asterism load`: load files into a space, with progress, and build a version of it."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import CommandContext, command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.jobs import wait_for_job
from asterism.cli.option_groups import FormerName, expand_option_groups
from asterism.cli.option_values import parse_assignments
from asterism.cli.options import DEFAULT_TOTAL_TIMEOUT_S, Space

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Client
    from asterism.ingest import LoadProgress, LoadReport
    from asterism.records.samples import Job

EXAMPLES = (
    "Examples: asterism load shop data/metadata.json --create --build; asterism load shop "
    "shop.yaml --on-bad-rows skip --rejects bad.csv; "
    "asterism load molecules graph.json --create; asterism load shop lightgcn.yaml --create --build"
)


class BadRowPolicy(StrEnum):
    """Policy of a load for invalid rows."""

    FAIL = "fail"
    SKIP = "skip"


class Direction(StrEnum):
    """Adjacency that a space stores."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


@expand_option_groups
def load(
    context: typer.Context,
    space: Space,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            exists=True,
            help="DGL's metadata.json or its folder, Euler's graph.json, a YAML file with schema "
            "and files, or a PGLBox configuration.",
        ),
    ],
    *,
    create: Annotated[
        bool,
        typer.Option(
            "--create", help="Create the space from the schema of the source, if it is missing."
        ),
    ] = False,
    parts: Annotated[
        int | None, typer.Option(min=1, help="With --create: number of parts.")
    ] = None,
    direction: Annotated[
        Direction | None, typer.Option(help="With --create: adjacency to store.")
    ] = None,
    build: Annotated[
        bool, typer.Option("--build", help="Build and publish a version after the load.")
    ] = False,
    on_bad_rows: Annotated[
        BadRowPolicy,
        typer.Option(help="Fail the load at the first invalid row, or count it and continue."),
    ] = BadRowPolicy.FAIL,
    rejects: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="With --on-bad-rows skip: CSV file for the invalid rows. Default: "
            "SPACE.rejects.csv.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Continue an interrupted load of this source, or abandon it.")
    ] = True,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Load the files even if the space already has them; edges are then duplicated.",
        ),
        FormerName("--again", value=True),
    ] = False,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE=FEATURE",
            help="Of a DGL folder: feature with the weight of a type. Repeatable.",
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW",
            help="Of a DGL folder or Euler's JSON: new name of a feature. Repeatable.",
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Of a schema file or a PGLBox configuration: folder that contains its files.",
        ),
    ] = None,
    chunk_rows: Annotated[
        int, typer.Option(min=1, max=1 << 24, help="Rows in memory at a time.")
    ] = 262144,
) -> None:
    """Load files into a space. A build then publishes them as a version."""
    command = command_context(context)
    if (parts is not None or direction is not None) and not create:
        option = f"--parts={parts}" if parts is not None else f"--direction={direction}"
        raise typer.BadParameter(f"{option}: expected --create too; add --create")
    if rejects is not None and on_bad_rows is BadRowPolicy.FAIL:
        raise typer.BadParameter(
            f"--rejects={str(rejects)!r}: expected --on-bad-rows skip too; add --on-bad-rows skip"
        )
    weights = parse_assignments("--weight", weight, form="TYPE=FEATURE", example="item=price")
    new_names = parse_assignments("--rename", rename, form="OLD=NEW", example="feat=vector")
    from asterism import ingest

    with command.client(create=create) as client:
        if create:
            schema = ingest.schema_of(source, weights=weights, rename=new_names, root=root)
            schema = dataclasses.replace(
                schema,
                parts=parts or schema.parts,
                direction=direction.value if direction else schema.direction,
            )
            client.create_space(space, schema, if_not_exists=True)
        with command.output.progress() as update:

            def on_progress(progress: LoadProgress) -> None:
                update(
                    f"load {space}", progress.rows_done, progress.rows_total, phase=progress.phase
                )

            report = ingest.load(
                client,
                space,
                source,
                progress=on_progress,
                on_bad_rows=on_bad_rows.value,
                rejects=rejects,
                resume=resume,
                chunk_rows=chunk_rows,
                weights=weights,
                rename=new_names,
                root=root,
                again=force,
            )
        job = _build_version(command, client, space) if build else None
    command.output.result(
        {"load": report, "job": job} if build else report,
        lambda: _render_report(space, report, job),
    )
    if job is not None and job.state != "FINISHED":
        raise typer.Exit(ExitCode.FAILED)


def _build_version(command: CommandContext, client: Client, space: str) -> Job:
    job = client.submit_job(space, kind="build")
    return wait_for_job(command.output, client, job.job_id, DEFAULT_TOTAL_TIMEOUT_S)


def _load_summary(report: LoadReport) -> str:
    rows = report.nodes + report.edges
    rate = rows / report.seconds if report.seconds else 0.0
    rejected = (
        f"; {report.rejected:,} invalid rows are in {report.rejects}" if report.rejected else ""
    )
    return (
        f"loaded {report.nodes:,} nodes and {report.edges:,} edges in {report.seconds:.1f} s "
        f"({rate:,.0f} rows/s){rejected}"
    )


def _render_report(space: str, report: LoadReport, job: Job | None) -> RenderableType:
    summary = (
        f"already loaded as commit {report.commit}; --force loads it again"
        if report.already
        else _load_summary(report)
    )
    if job is None:
        return f"{summary}; `asterism job submit {space} --wait` makes it visible"
    if job.state == "FINISHED":
        return f"{summary}; version {job.version} is published"
    return f"{summary}; the build {job.job_id} {job.state}: {job.cause}"
