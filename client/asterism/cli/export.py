"""`asterism export`: partitions on disk, from a published version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.export_options import (
    Assign,
    BalanceBy,
    BalanceEdges,
    BalanceNtypes,
    Fanout,
    Homogeneous,
    Imbalance,
    Objective,
    Parts,
    Passes,
    Sample,
    SampleType,
    Seed,
    Space,
    Version,
    Weight,
    parse_balance,
    parse_fanout,
    parse_method,
)
from asterism.cli.output import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.export import AssignmentReport, DispatchReport, ExportReport, VerifyReport
from asterism_proto.errors import InvalidRequest

app = typer.Typer(no_args_is_help=True, help="Partitions that trainers load.")


@app.callback()
def formats() -> None:
    """Partitions that trainers load."""


@app.command(
    epilog="Examples: asterism export dgl --space shop --parts 4 --assign metis --out "
    "partitions/\n\n"
    "asterism export dgl --space shop --parts 4 --assign fennel --passes 5 --balance-by "
    "item=split --out 's3://bucket/shop/{part}'\n\n"
    "asterism export dgl --space shop --parts 4 --num-trainers-per-machine 2 --out "
    "'sftp://{host}/data/shop' --ip-config ip_config.txt"
)
def dgl(
    context: typer.Context,
    *,
    space: Space,
    out: Annotated[
        str,
        typer.Option(
            metavar="FOLDER|ADDRESS",
            help=(
                "Where to write to: a folder, or an address as s3://bucket/shop, with {part} "
                "or {host} if need be."
            ),
        ),
    ],
    parts: Parts,
    assign: Assign = "random",
    seed: Seed = 0,
    at: Version = None,
    graph_name: Annotated[
        str | None,
        typer.Option(help="The graph's name in the partition config. Default: the space's."),
    ] = None,
    halo_hops: Annotated[
        int, typer.Option(min=1, help="How far beyond its own nodes a part knows the in-edges.")
    ] = 1,
    homogeneous: Homogeneous = False,
    sample: Sample = None,
    fanout: Fanout = "",
    ntype: SampleType = None,
    weight: Weight = "weight",
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format", metavar="coo|csr|csc", help="What graph.dgl holds. May be repeated."
        ),
    ] = None,
    trainers: Annotated[
        int,
        typer.Option(
            "--num-trainers-per-machine", min=1, help="Share each partition among so many trainers."
        ),
    ] = 1,
    balance_ntypes: BalanceNtypes = True,
    balance_by: BalanceBy = None,
    balance_edges: BalanceEdges = False,
    objective: Objective = "cut",
    imbalance: Imbalance = 0.03,
    passes: Passes = 1,
    ip_config: Annotated[
        Path | None, typer.Option(help="DGL's file of machines, one a line, for {host} in --out.")
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace what is there; begin an unfinished export anew."),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with an export that was cut off, or begin; keep it where it fails.",
        ),
    ] = False,
    memory_limit: Annotated[
        int, typer.Option(min=64, metavar="MIB", help="What the arrays of each process may take.")
    ] = 1024,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes of this machine. Default: its cores, if there is much to do."
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:PORT", help="The scheduler of a Dask cluster that does it instead."
        ),
    ] = None,
    scratch: Annotated[
        Path | None,
        typer.Option(
            help="For what is unfinished: seen by all workers. Default: beside the output."
        ),
    ] = None,
) -> None:
    """Write partitions that DGL's distributed training loads."""
    session = command_context(context)
    method, balance, hops = (
        parse_method(assign),
        parse_balance(balance_ntypes, balance_by),
        parse_fanout(fanout),
    )
    if sample is None and (hops or ntype is not None):
        raise InvalidRequest("--fanout and --type are of a sample: say --sample too")
    from asterism import export

    with session.client(allow_read_only=True) as client, session.output.progress() as update:
        graph = client.graph(space)
        report = export.dgl(
            graph
            if sample is None
            else export.sampled(graph, sample, hops, ntype=ntype, seed=seed),
            out,
            parts=parts,
            assign=method,
            seed=seed,
            version=at,
            graph_name=graph_name,
            halo_hops=halo_hops,
            homogeneous=homogeneous,
            weight=weight or None,
            formats=formats or ("coo",),
            num_trainers_per_machine=trainers,
            balance_ntypes=balance,
            balance_edges=balance_edges,
            objective=objective,
            imbalance=imbalance,
            passes=passes,
            ip_config=ip_config,
            overwrite=overwrite,
            resume=resume,
            memory_limit_mib=memory_limit,
            workers=workers,
            dask=dask,
            scratch=scratch,
            progress=lambda phase, done, total: update(f"export {phase}", done, total),
        )
    session.output.result(report, lambda: _render_export(report))


@app.command(
    epilog=(
        "Example: asterism export assignment --space shop --parts 4 --assign metis --out assigned/"
    )
)
def assignment(
    context: typer.Context,
    *,
    space: Space,
    out: Annotated[str, typer.Option(metavar="FOLDER|ADDRESS", help="Where to write to.")],
    parts: Parts,
    assign: Assign = "metis",
    seed: Seed = 0,
    at: Version = None,
    homogeneous: Homogeneous = False,
    weight: Weight = "weight",
    balance_ntypes: BalanceNtypes = True,
    balance_by: BalanceBy = None,
    balance_edges: BalanceEdges = False,
    objective: Objective = "cut",
    imbalance: Imbalance = 0.03,
    passes: Passes = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
) -> None:
    """Write which partition each node goes to, for `export dgl --assign`, for DGL's own tools, and
    for batches of clusters.
    """
    session = command_context(context)
    method, balance = parse_method(assign), parse_balance(balance_ntypes, balance_by)
    from asterism import export

    with session.client(allow_read_only=True) as client, session.output.progress() as update:
        report = export.assignment(
            client.graph(space),
            out,
            parts=parts,
            assign=method,
            seed=seed,
            version=at,
            homogeneous=homogeneous,
            weight=weight or None,
            balance_ntypes=balance,
            balance_edges=balance_edges,
            objective=objective,
            imbalance=imbalance,
            passes=passes,
            overwrite=overwrite,
            progress=lambda phase, done, total: update(f"assignment {phase}", done, total),
        )
    session.output.result(report, lambda: _render_assignment(report))


@app.command(
    epilog=(
        "Example: asterism export dispatch partitions/ 'sftp://{host}/data/shop' --ip-config "
        "ip_config.txt"
    )
)
def dispatch(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FOLDER|ADDRESS", help="A finished export.")],
    to: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="Where each part goes, with {part}, {host} or both in it."
        ),
    ],
    *,
    ip_config: Annotated[
        Path | None, typer.Option(help="DGL's file of machines, one a line, for {host}.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another export.")] = False,
) -> None:
    """Bring each part of an export to its machine. Said again, it goes on where it stopped."""
    session = command_context(context)
    from asterism import export

    with session.output.progress() as update:
        report = export.dispatch(
            source,
            to,
            ip_config=ip_config,
            overwrite=overwrite,
            progress=lambda phase, done, total: update(f"dispatch {phase}", done, total),
        )
    session.output.result(report, lambda: _render_dispatch(report))


@app.command(epilog="Example: asterism export chunks --space shop --out chunks/")
def chunks(
    context: typer.Context,
    *,
    space: Space,
    out: Annotated[str, typer.Option(metavar="FOLDER|ADDRESS", help="Where to write to.")],
    chunk_rows: Annotated[int, typer.Option(min=1, help="Nodes or edges of a file at most.")] = 1
    << 22,
    edges: Annotated[
        str, typer.Option(metavar="csv|parquet|numpy", help="The format of edges.")
    ] = "csv",
    at: Version = None,
    weight: Weight = "weight",
    sample: Sample = None,
    fanout: Fanout = "",
    ntype: SampleType = None,
    seed: Seed = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an export that was cut off, or begin.")
    ] = False,
    memory_limit: Annotated[
        int, typer.Option(min=64, metavar="MIB", help="What arrays may take.")
    ] = 1024,
) -> None:
    """Write DGL's chunked graph format, for DGL's own pipeline and for `asterism load`."""
    session, hops = command_context(context), parse_fanout(fanout)
    if sample is None and (hops or ntype is not None):
        raise InvalidRequest("--fanout and --type are of a sample: say --sample too")
    from asterism import export

    with session.client(allow_read_only=True) as client, session.output.progress() as update:
        graph = client.graph(space)
        report = export.chunks(
            graph
            if sample is None
            else export.sampled(graph, sample, hops, ntype=ntype, seed=seed),
            out,
            chunk_rows=chunk_rows,
            edges=edges,
            version=at,
            weight=weight or None,
            overwrite=overwrite,
            resume=resume,
            memory_limit_mib=memory_limit,
            progress=lambda phase, done, total: update(f"export {phase}", done, total),
        )
    summary = (
        f"version {report.version} is in {report.out}: {report.nodes:,} nodes, "
        f"{report.edges:,} edges, {report.files} files ({report.seconds:.1f} s)"
    )
    session.output.result(
        report, lambda: "\n".join((summary, *(f"note: {text}" for text in report.warnings)))
    )


@app.command(epilog="Example: asterism export pyg partitions/ pyg/")
def pyg(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FOLDER", help="A finished export for DGL.")],
    out: Annotated[str, typer.Argument(metavar="FOLDER|ADDRESS", help="Where to write to.")],
    *,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where it was cut off, or begin.")
    ] = False,
) -> None:
    """Write the partition layout of torch_geometric.distributed from an export for DGL."""
    session = command_context(context)
    from asterism import export

    with session.output.progress() as update:
        report = export.pyg(
            source,
            out,
            overwrite=overwrite,
            resume=resume,
            progress=lambda phase, done, total: update(f"pyg {phase}", done, total),
        )
    summary = (
        f"{report.parts} parts of version {report.version} are in {report.out}: "
        f"{report.files} files ({report.seconds:.1f} s)"
    )
    session.output.result(report, lambda: summary)


@app.command(
    epilog=(
        "Examples: asterism export verify partitions/\n\nasterism export verify "
        "'sftp://{host}/data/shop' --ip-config ip_config.txt"
    )
)
def verify(
    context: typer.Context,
    out: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|ADDRESS",
            help=(
                "Where the export is, or one machine's parts; with {part} or {host}: where all are."
            ),
        ),
    ],
    *,
    ip_config: Annotated[
        Path | None, typer.Option(help="DGL's file of machines, one a line, for {host}.")
    ] = None,
) -> None:
    """Read an export again: every node and edge once, HALOs, ids, features, checksums."""
    session = command_context(context)
    from asterism import export

    with session.output.progress() as update:
        report = export.verify(
            out,
            ip_config=ip_config,
            progress=lambda phase, done, total: update(f"verify {phase}", done, total),
        )
    session.output.result(report, lambda: _render_verification(report))
    if not report.ok:
        raise typer.Exit(ExitCode.FAILED)


def _render_verification(report: VerifyReport) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    summary = (
        f"{report.out}: version {report.version}, {report.parts} parts, {report.nodes:,} "
        f"nodes, {report.edges:,} edges, {report.files} files"
    )
    if report.ok and len(report.verified) < report.parts:
        part_list = ", ".join(map(str, report.verified))
        return Text(
            f"{summary}: of part(s) {part_list} all is there, and as it was written; how "
            "parts fit each other shows where all are"
        )
    if report.ok:
        return Text(f"{summary}: all is there, once, and as it was read")
    return Group(
        Text(f"{summary}: DAMAGED; export it again"),
        *(Text(f"  {problem}") for problem in report.problems),
    )


def _render_assignment(report: AssignmentReport) -> RenderableType:
    from rich.console import Group

    parts = range(max(map(len, report.nodes.values())))
    return Group(
        table(
            "assignment",
            ("part", *report.nodes),
            [(part, *(counts[part] for counts in report.nodes.values())) for part in parts],
        ),
        (
            f"by {report.assign} for version {report.version}, in {report.out} "
            f"({report.seconds:.1f} s)"
        ),
        *(f"note: {text}" for text in report.warnings),
    )


def _render_dispatch(report: DispatchReport) -> RenderableType:
    from rich.console import Group

    rows = [
        (
            each.address,
            " ".join(map(str, each.parts)),
            each.files,
            each.bytes,
            "copied" if each.copied else "was there",
        )
        for each in report.places
    ]
    return Group(
        table("places", ("address", "parts", "files", "bytes", ""), rows),
        *(f"note: {text}" for text in report.warnings),
    )


def _render_export(report: ExportReport) -> RenderableType:
    from rich.console import Group

    rows = [
        (p.part, sum(p.nodes.values()), sum(p.edges.values()), p.halo_nodes, p.outer_edges)
        for p in report.parts
    ]
    summary = (
        f"version {report.version} is in {report.out} ({report.seconds:.1f} s); "
        f"{report.edge_cut:,} edges are cut; DGL loads {report.config}"
    )
    return Group(
        table("partitions", ("part", "nodes", "edges", "halo nodes", "outer edges"), rows),
        summary,
        *(f"note: {text}" for text in report.warnings),
    )
