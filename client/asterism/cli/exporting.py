"""`asterism export`: partitions on disk, from a published version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.exits import ExitCode
from asterism.cli.output import table
from asterism.cli.session import session_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.export import ExportReport, Verified
from asterism_proto.errors import InvalidRequest

app = typer.Typer(no_args_is_help=True, help="Partitions that trainers load.")


@app.callback()
def formats() -> None:
    """Partitions that trainers load."""


def _fanout(text: str) -> list[int]:
    try:
        return [int(hop) for hop in text.split(",")] if text else []
    except ValueError as error:
        raise InvalidRequest(f"--fanout {text!r}: expected whole numbers with commas, as 10,5") from error


def _assignment(text: str) -> str | Path:
    if text in ("random", "metis"):
        return text
    if not Path(text).exists():
        raise InvalidRequest(f"--assign {text!r}: expected random, metis, or a file or folder with assignments")
    return Path(text)


@app.command(epilog="Example: asterism export dgl --space shop --parts 4 --assign metis --out partitions/")
def dgl(
    context: typer.Context,
    *,
    space: Annotated[str, typer.Option(help="The space to export.")],
    out: Annotated[str, typer.Option(metavar="FOLDER|ADDRESS", help="Where to write to, a folder or an address as s3://bucket/shop.")],
    parts: Annotated[int, typer.Option(min=1, help="How many partitions.")],
    assign: Annotated[str, typer.Option(metavar="random|metis|PATH", help="Which node goes to which partition.")] = "random",
    seed: Annotated[int, typer.Option(help="Of the assignment and of a sample.")] = 0,
    at: Annotated[int | None, typer.Option("--at", min=1, metavar="VERSION", help="Export this version.")] = None,
    graph_name: Annotated[str | None, typer.Option(help="The graph's name in the partition config. Default: the space's.")] = None,
    halo_hops: Annotated[int, typer.Option(min=1, help="How far beyond its own nodes a part knows the in-edges.")] = 1,
    homogeneous: Annotated[bool, typer.Option("--homogeneous", help="Write a graph of one node and one edge type without types.")] = False,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="SEEDS", help="Export a sample: from so many nodes, drawn by weight with --seed.")
    ] = None,
    fanout: Annotated[str, typer.Option(metavar="N,N,...", help="Of the sample: in-neighbors of each hop, by weight; -1 is all.")] = "",
    ntype: Annotated[str | None, typer.Option("--type", help="Of the sample: the type of the first nodes.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there; begin an unfinished export anew.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an export that was cut off, or begin; keep it where it fails.")] = False,
    memory_limit: Annotated[int, typer.Option(min=64, metavar="MIB", help="What the arrays of each process may take.")] = 1024,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes of this machine. Default: its cores, if there is much to do.")] = None,
    dask: Annotated[str | None, typer.Option(metavar="tcp://HOST:PORT", help="The scheduler of a Dask cluster that does it instead.")] = None,
    scratch: Annotated[Path | None, typer.Option(help="For what is unfinished: seen by all workers. Default: beside the output.")] = None,
) -> None:
    """Write partitions that DGL's distributed training loads."""
    session = session_of(context)
    assignment, hops = _assignment(assign), _fanout(fanout)
    if sample is None and (hops or ntype is not None):
        raise InvalidRequest("--fanout and --type are of a sample: say --sample too")
    from asterism import export

    with session.client(reading=True) as client, session.output.progress() as tell:
        graph = client.graph(space)
        report = export.dgl(
            graph if sample is None else export.sampled(graph, sample, hops, ntype=ntype, seed=seed),
            out,
            parts=parts,
            assign=assignment,
            seed=seed,
            version=at,
            graph_name=graph_name,
            halo_hops=halo_hops,
            homogeneous=homogeneous,
            overwrite=overwrite,
            resume=resume,
            memory_limit_mib=memory_limit,
            workers=workers,
            dask=dask,
            scratch=scratch,
            progress=lambda phase, done, total: tell(f"export {phase}", done, total),
        )
    session.output.result(report, lambda: _report(report))


@app.command(epilog="Example: asterism export verify partitions/")
def verify(
    context: typer.Context,
    out: Annotated[str, typer.Argument(metavar="FOLDER|ADDRESS", help="Where the export is.")],
) -> None:
    """Read an export again: every node and edge once, HALOs, ids, features, checksums."""
    session = session_of(context)
    from asterism import export

    with session.output.progress() as tell:
        found = export.verify(out, progress=lambda phase, done, total: tell(f"verify {phase}", done, total))
    session.output.result(found, lambda: _found(found))
    if not found.ok:
        raise typer.Exit(ExitCode.FAILED)


def _found(found: Verified) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    told = f"{found.out}: version {found.version}, {found.parts} parts, {found.nodes:,} nodes, {found.edges:,} edges, {found.files} files"
    if found.ok:
        return Text(f"{told}: all is there, once, and as it was read")
    return Group(Text(f"{told}: DAMAGED; export it again"), *(Text(f"  {problem}") for problem in found.problems))


def _report(report: ExportReport) -> RenderableType:
    from rich.console import Group

    rows = [(p.part, sum(p.nodes.values()), sum(p.edges.values()), p.halo_nodes, p.outer_edges) for p in report.parts]
    told = f"version {report.version} is in {report.out} ({report.seconds:.1f} s); {report.edge_cut:,} edges are cut; DGL loads {report.config}"
    return Group(
        table("partitions", ("part", "nodes", "edges", "halo nodes", "outer edges"), rows), told, *(f"note: {text}" for text in report.warnings)
    )
