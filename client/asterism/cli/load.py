"""`asterism load`: files into a space, with progress, and a build afterwards."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import CommandContext, command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.jobs import DEFAULT_WAIT_S, wait_for_job
from asterism_proto.errors import InvalidRequest

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
    """What a bad row does to a load."""

    FAIL = "fail"
    SKIP = "skip"


class Direction(StrEnum):
    """Which adjacency a space keeps."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


def load(
    context: typer.Context,
    space: Annotated[str, typer.Argument(metavar="SPACE", help="The space to fill.")],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            exists=True,
            help=(
                "A folder with DGL's metadata.json, Euler's graph.json, a YAML file of "
                "schema and files, or PGLBox's."
            ),
        ),
    ],
    *,
    create: Annotated[
        bool,
        typer.Option(
            "--create", help="Make the space from the source's schema, if it is not there."
        ),
    ] = False,
    parts: Annotated[
        int | None, typer.Option(min=1, help="With --create: the number of parts.")
    ] = None,
    direction: Annotated[
        Direction | None, typer.Option(help="With --create: which adjacency is kept.")
    ] = None,
    build: Annotated[
        bool, typer.Option("--build", help="Build and publish a version afterwards.")
    ] = False,
    on_bad_rows: Annotated[
        BadRowPolicy,
        typer.Option(help="Refuse the load at the first bad row, or count it and go on."),
    ] = BadRowPolicy.FAIL,
    rejects: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help=(
                "With --on-bad-rows skip: a CSV file that lists the bad rows. Default: "
                "SPACE.rejects.csv."
            ),
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Go on with a load of this source that was cut off, or give it up.")
    ] = True,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Load these files even if the space has them: edges are there once more.",
        ),
    ] = False,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE=FEATURE",
            help="For a DGL folder: the feature that is a type's weight. Repeat for more types.",
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW",
            help="For a DGL folder or Euler's JSON: another name for a feature. Repeat for more.",
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="For a schema file or PGLBox's: the folder that its file names start from.",
        ),
    ] = None,
    chunk_rows: Annotated[
        int, typer.Option(min=1, max=1 << 24, help="Rows that are in memory at a time.")
    ] = 262144,
) -> None:
    """Load files into a space; nothing is visible until a build has published it."""
    session = command_context(context)
    if (parts is not None or direction is not None) and not create:
        raise typer.BadParameter("--parts and --direction shape a new space: say --create too")
    if rejects is not None and on_bad_rows is BadRowPolicy.FAIL:
        raise typer.BadParameter("--rejects is written with --on-bad-rows skip only")
    weights, new_names = _parse_pairs("--weight", weight), _parse_pairs("--rename", rename)
    from asterism import ingest

    with session.client(create=create) as client:
        if create:
            schema = ingest.schema_of(source, weights=weights, rename=new_names, root=root)
            schema = dataclasses.replace(
                schema,
                parts=parts or schema.parts,
                direction=direction.value if direction else schema.direction,
            )
            client.create_space(space, schema, if_not_exists=True)
        with session.output.progress() as update:

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
                again=again,
            )
        job = _build_version(session, client, space) if build else None
    session.output.result(
        {"load": report, "job": job} if build else report,
        lambda: _render_report(space, report, job),
    )
    if job is not None and job.state != "FINISHED":
        raise typer.Exit(ExitCode.FAILED)


def _parse_pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """``A=B`` texts as a mapping."""
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InvalidRequest(f"{option} {text!r}: expected two names with = between")
        pairs[name] = value
    return pairs


def _build_version(session: CommandContext, client: Client, space: str) -> Job:
    job = client.submit_job(space, kind="build")
    return wait_for_job(session.output, client, job.job_id, DEFAULT_WAIT_S)


def _load_summary(report: LoadReport) -> str:
    rows = report.nodes + report.edges
    rate = rows / report.seconds if report.seconds else 0.0
    rejected = f"; {report.rejected:,} bad rows are in {report.rejects}" if report.rejected else ""
    return (
        f"loaded {report.nodes:,} nodes and {report.edges:,} edges in {report.seconds:.1f} s "
        f"({rate:,.0f} rows/s){rejected}"
    )


def _render_report(space: str, report: LoadReport, job: Job | None) -> RenderableType:
    summary = (
        f"already loaded as commit {report.commit}; --again loads it once more"
        if report.already
        else _load_summary(report)
    )
    if job is None:
        return f"{summary}; `asterism job submit {space} --wait` makes it visible"
    if job.state == "FINISHED":
        return f"{summary}; version {job.version} is published"
    return f"{summary}; the build {job.job_id} {job.state}: {job.cause}"
