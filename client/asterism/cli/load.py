"""`asterism load`: load files into a space, with progress, and build a version of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import CommandContext, command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.help_text import examples
from asterism.cli.interruption import advice_on_interrupt
from asterism.cli.job_waits import wait_for_job
from asterism.cli.lean_imports import (
    NUMBA_EXTRAS,
    import_arrow_without_pandas,
    packages_hidden,
)
from asterism.cli.option_values import parse_assignments
from asterism.cli.options import DEFAULT_TOTAL_TIMEOUT_S, Space
from asterism.cli.schema_difference import another_schema
from asterism.cli.schema_files import check_source_has_files
from asterism.cli.typer_signatures import FormerName, expand_option_groups
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Client
    from asterism.ingest import LoadProgress, LoadReport
    from asterism.records.samples import Job
    from asterism_model.schema import Schema

EXAMPLES = examples(
    "asterism load shop data/metadata.json --create --build",
    "asterism load shop shop.yaml --on-bad-rows skip --rejects bad.csv",
    "asterism load molecules graph.json --create",
    "asterism load shop lightgcn.yaml --create --build",
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
        int | None, typer.Option(metavar="N", min=1, help="With --create: number of parts.")
    ] = None,
    direction: Annotated[
        Direction | None,
        typer.Option(
            metavar="out|in|both",
            help="With --create: edges to store: outgoing, incoming, or both (PyG and DGL).",
        ),
    ] = None,
    build: Annotated[
        bool, typer.Option("--build", help="Build and publish a version after the load.")
    ] = False,
    on_bad_rows: Annotated[
        BadRowPolicy,
        typer.Option(
            metavar="fail|skip",
            help="Fail the load at the first invalid row, or count it and continue.",
        ),
    ] = BadRowPolicy.FAIL,
    rejects: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
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
            help="DGL folders only: feature with the weight of a type. Repeatable.",
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW",
            help="DGL folders and Euler's JSON only: new name for a feature. Repeatable.",
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Schema files and PGLBox configurations only: folder that contains the files.",
        ),
    ] = None,
    total_timeout: Annotated[
        float,
        typer.Option(
            "--total-timeout",
            min=0.1,
            metavar="SECONDS",
            help="With --build: seconds that the build may take.",
        ),
    ] = DEFAULT_TOTAL_TIMEOUT_S,
    chunk_rows: Annotated[
        int, typer.Option(metavar="N", min=1, max=1 << 24, help="Rows in memory at a time.")
    ] = 262144,
) -> None:
    """Load files into a space; --build then publishes them as a version.

    To continue an interrupted load, run the same command again."""
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
    with command.output.activity(f"reading {source}"):
        import_arrow_without_pandas()
        check_source_has_files(space, source)
        with packages_hidden(*NUMBA_EXTRAS):
            from asterism import ingest

        schema = (
            ingest.schema_of(source, weights=weights, rename=new_names, root=root)
            if create
            else None
        )
    if schema is not None:
        schema = dataclasses.replace(
            schema,
            parts=parts or schema.parts,
            direction=direction.value if direction else schema.direction,
        )
    with command.client(create=create, fork_tasks=True) as client:
        created = schema is not None and create_space(client, space, schema)
        with (
            drop_space_on_failure(client, space, created=created),
            advice_on_interrupt(lambda: _RESUME),
            command.output.progress() as update,
        ):

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
        job = _build_version(command, client, space, total_timeout) if build else None
    command.output.result(
        {"load": report, "job": job} if build else report,
        lambda: _render_report(command, space, report, job),
    )
    if job is not None and job.state != "FINISHED":
        raise typer.Exit(ExitCode.FAILED)


_RESUME = (
    "interrupted; what was loaded is kept: run the same command again to continue, or with "
    "--no-resume to start over"
)


def create_space(client: Client, space: str, schema: Schema) -> bool:
    """Create a space unless it exists with this schema; return whether it is new.

    Raises
    ------
    Conflict
        If it exists with another schema; the message lists the differences.
    """
    existing = {info.name: info for info in client.spaces()}.get(space)
    if existing is not None and existing.schema != schema:
        raise another_schema(space, existing.schema, schema)
    client.create_space(space, schema, if_not_exists=True)
    return existing is None


@contextmanager
def drop_space_on_failure(client: Client, space: str, *, created: bool) -> Iterator[None]:
    """Drop the space of a load that cannot succeed, if the command has created it.

    A load that another attempt may continue keeps its space.
    """
    try:
        yield
    except (InvalidRequest, NotFound, Conflict, Corrupt, OSError):
        if created:
            client.drop_space(space, if_exists=True)
        raise


def _build_version(
    command: CommandContext, client: Client, space: str, total_timeout: float
) -> Job:
    job = client.submit_job(space, kind="build")
    return wait_for_job(command, client, job.job_id, total_timeout)


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


def _render_report(
    command: CommandContext, space: str, report: LoadReport, job: Job | None
) -> RenderableType:
    summary = (
        f"already loaded as commit {report.commit}; --force loads it again"
        if report.already
        else _load_summary(report)
    )
    summary = "\n".join([*(f"note: {note}" for note in report.notes), summary])
    if job is None:
        build = command.command_line(f"job submit {space} --wait")
        return f"{summary}; `{build}` publishes it"
    if job.state == "FINISHED":
        return f"{summary}; version {job.version} is published"
    return f"{summary}; the build {job.job_id} {job.state}: {job.cause}"
