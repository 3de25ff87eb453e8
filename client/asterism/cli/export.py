"""`asterism export`: partitions of a published version, for other systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.export_options import (
    Assign,
    BalanceOptions,
    Homogeneous,
    IpConfig,
    MemoryLimit,
    Out,
    PartAddresses,
    Parts,
    Resume,
    SampledGraphOptions,
    Seed,
    Space,
    Weight,
    parse_method,
)
from asterism.cli.help_text import examples
from asterism.cli.interruption import advice_on_interrupt
from asterism.cli.options import GraphVersion, Overwrite
from asterism.cli.output import table
from asterism.cli.tables import sections
from asterism.cli.typer_signatures import FormerName, expand_option_groups

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.export import AssignmentReport, DispatchReport, ExportReport, VerifyReport

app = typer.Typer(
    no_args_is_help=True,
    help="Write partitions of a graph that trainers load.",
    epilog=examples(
        "asterism export dgl --space shop --parts 4 --out partitions/",
        "asterism export verify partitions/",
    ),
)


@app.callback()
def formats() -> None:
    """Write partitions of a graph that trainers load."""


def resume_advice(resume: bool) -> str:
    """Return how to resume an interrupted export."""
    if resume:
        return "interrupted; run the same command again to continue"
    return (
        "interrupted; the unfinished files are removed; with --resume they are kept, and the same "
        "command continues"
    )


@app.command(
    epilog=examples(
        "asterism export dgl --space shop --parts 4 --assign metis --out partitions/",
        "asterism export dgl --space shop --parts 4 --assign fennel --passes 5 "
        "--balance-by item=split --out 's3://bucket/shop/{part}'",
        "asterism export dgl --space shop --parts 4 --num-trainers-per-machine 2 --out "
        "'sftp://{host}/data/shop' --ip-config ip_config.txt",
    )
)
@expand_option_groups
def dgl(
    context: typer.Context,
    *,
    space: Space,
    out: PartAddresses,
    parts: Parts,
    assign: Assign = "random",
    seed: Seed = 0,
    graph_version: GraphVersion = None,
    graph_name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the graph in the partition config. Default: that of the space.",
        ),
    ] = None,
    halo_hops: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Hops of in-edges around the nodes of a part that it has."
        ),
    ] = 1,
    homogeneous: Homogeneous = False,
    sampled: SampledGraphOptions,
    weight: Weight = "weight",
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="coo|csr|csc",
            help="Sparse format in graph.dgl. Repeatable. Default: coo.",
        ),
    ] = None,
    trainers: Annotated[
        int,
        typer.Option(
            "--num-trainers-per-machine",
            metavar="N",
            min=1,
            help="Number of trainers that share each partition.",
        ),
    ] = 1,
    balance: BalanceOptions,
    ip_config: IpConfig = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    memory_limit: MemoryLimit = 1024,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Worker processes on this machine. Default: its cores, or one for a small graph.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:PORT", help="Scheduler of a Dask cluster to run on instead."
        ),
    ] = None,
    scratch: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for unfinished files, visible to all workers. Default: beside the output.",
        ),
    ] = None,
) -> None:
    """Write partitions that DGL's distributed training loads."""
    command = command_context(context)
    method, balance_arguments = parse_method(assign), balance.arguments()
    fanouts = sampled.parse_fanout()
    from asterism import export

    with (
        command.client(allow_read_only=True) as client,
        advice_on_interrupt(lambda: resume_advice(resume)),
        command.output.progress() as update,
    ):
        report = export.dgl(
            sampled.apply(client.graph(space), fanouts, seed=seed),
            out,
            parts=parts,
            assign=method,
            seed=seed,
            version=graph_version,
            graph_name=graph_name,
            halo_hops=halo_hops,
            homogeneous=homogeneous,
            weight=weight or None,
            formats=formats or ("coo",),
            num_trainers_per_machine=trainers,
            **balance_arguments,
            ip_config=ip_config,
            overwrite=overwrite,
            resume=resume,
            memory_limit_mib=memory_limit,
            workers=workers,
            dask=dask,
            scratch=scratch,
            progress=lambda phase, done, total: update(f"export {phase}", done, total),
        )
    command.output.result(report, lambda: _render_export(report))


@app.command(
    epilog=examples(
        "asterism export assignment --space shop --parts 4 --assign metis --out assigned/",
    )
)
@expand_option_groups
def assignment(
    context: typer.Context,
    *,
    space: Space,
    out: Out,
    parts: Parts,
    assign: Assign = "metis",
    seed: Seed = 0,
    graph_version: GraphVersion = None,
    homogeneous: Homogeneous = False,
    weight: Weight = "weight",
    balance: BalanceOptions,
    overwrite: Overwrite = False,
) -> None:
    """Write the partition of each node to files.

    `export dgl --assign`, the tools of DGL and batches of clusters read these files.
    """
    command = command_context(context)
    method, balance_arguments = parse_method(assign), balance.arguments()
    from asterism import export

    with command.client(allow_read_only=True) as client, command.output.progress() as update:
        report = export.assignment(
            client.graph(space),
            out,
            parts=parts,
            assign=method,
            seed=seed,
            version=graph_version,
            homogeneous=homogeneous,
            weight=weight or None,
            **balance_arguments,
            overwrite=overwrite,
            progress=lambda phase, done, total: update(f"assignment {phase}", done, total),
        )
    command.output.result(report, lambda: _render_assignment(report))


@app.command(
    short_help="Copy each partition of an export to its machine.",
    epilog=examples(
        "asterism export dispatch partitions/ 'sftp://{host}/data/shop' --ip-config ip_config.txt",
    ),
)
def dispatch(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FOLDER|ADDRESS", help="A finished export.")],
    destination: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="Address of each part, with {part}, {host} or both in it."
        ),
    ],
    *,
    ip_config: IpConfig = None,
    overwrite: Overwrite = False,
) -> None:
    """Copy each partition of an export to its machine; run again to continue."""
    command = command_context(context)
    from asterism import export

    with (
        advice_on_interrupt(lambda: "interrupted; run the same command again to continue"),
        command.output.progress() as update,
    ):
        report = export.dispatch(
            source,
            destination,
            ip_config=ip_config,
            overwrite=overwrite,
            progress=lambda phase, done, total: update(f"dispatch {phase}", done, total),
        )
    command.output.result(report, lambda: _render_dispatch(report))


@app.command(
    short_help="Write DGL's chunked graph format.",
    epilog=examples(
        "asterism export chunks --space shop --out chunks/",
    ),
)
@expand_option_groups
def chunks(
    context: typer.Context,
    *,
    space: Space,
    out: Out,
    chunk_rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of nodes or edges of a file.")
    ] = 1 << 22,
    edge_format: Annotated[
        str,
        typer.Option(metavar="csv|parquet|numpy", help="File format of edges."),
        FormerName("--edges"),
    ] = "csv",
    graph_version: GraphVersion = None,
    weight: Weight = "weight",
    sampled: SampledGraphOptions,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    resume: Resume = False,
    memory_limit: MemoryLimit = 1024,
) -> None:
    """Write DGL's chunked graph format, for DGL's own pipeline and for `asterism load`."""
    command, fanouts = command_context(context), sampled.parse_fanout()
    from asterism import export

    with (
        command.client(allow_read_only=True) as client,
        advice_on_interrupt(lambda: resume_advice(resume)),
        command.output.progress() as update,
    ):
        report = export.chunks(
            sampled.apply(client.graph(space), fanouts, seed=seed),
            out,
            chunk_rows=chunk_rows,
            edges=edge_format,
            version=graph_version,
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
    command.output.result(
        report, lambda: "\n".join((summary, *(f"note: {text}" for text in report.warnings)))
    )


@app.command(
    short_help="Write partitions for torch_geometric.distributed.",
    epilog=examples(
        "asterism export pyg partitions/ pyg/",
    ),
)
def pyg(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FOLDER", help="A finished export for DGL.")],
    out: Annotated[
        str, typer.Argument(metavar="FOLDER|ADDRESS", help="Folder or address to write to.")
    ],
    *,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Write the partition layout of torch_geometric.distributed from an export for DGL."""
    command = command_context(context)
    from asterism import export

    with advice_on_interrupt(lambda: resume_advice(resume)), command.output.progress() as update:
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
    command.output.result(report, lambda: summary)


@app.command(
    short_help="Verify that an export is complete and unchanged.",
    epilog=examples(
        "asterism export verify partitions/",
        "asterism export verify 'sftp://{host}/data/shop' --ip-config ip_config.txt",
    ),
)
def verify(
    context: typer.Context,
    out: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|ADDRESS",
            help="An export, or the parts on one machine; with {part} or {host}: those of all.",
        ),
    ],
    *,
    ip_config: IpConfig = None,
) -> None:
    """Verify an export: every node and edge once, halo nodes, ids, features, checksums."""
    command = command_context(context)
    from asterism import export

    with command.output.progress() as update:
        report = export.verify(
            out,
            ip_config=ip_config,
            progress=lambda phase, done, total: update(f"verify {phase}", done, total),
        )
    command.output.result(report, lambda: _render_verification(report))
    if not report.ok:
        raise typer.Exit(ExitCode.FAILED)


def _render_verification(report: VerifyReport) -> RenderableType:
    from rich.text import Text

    summary = (
        f"{report.out}: version {report.version}, {report.parts} parts, {report.nodes:,} "
        f"nodes, {report.edges:,} edges, {report.files} files"
    )
    if report.ok and len(report.verified) < report.parts:
        part_list = ", ".join(map(str, report.verified))
        return Text(
            f"{summary}: part(s) {part_list} are complete and unchanged; whether the parts fit "
            "together is verified where all of them are"
        )
    if report.ok:
        return Text(f"{summary}: complete and unchanged")
    return sections(
        Text(f"{summary}: DAMAGED; export it again"),
        *(Text(f"  {problem}") for problem in report.problems),
    )


def _render_assignment(report: AssignmentReport) -> RenderableType:
    parts = range(max(map(len, report.nodes.values())))
    return sections(
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
    rows = [
        (
            each.address,
            " ".join(map(str, each.parts)),
            each.files,
            each.bytes,
            "copied" if each.copied else "unchanged",
        )
        for each in report.places
    ]
    return sections(
        table("destinations", ("address", "parts", "files", "bytes", ""), rows),
        *(f"note: {text}" for text in report.warnings),
    )


def _render_export(report: ExportReport) -> RenderableType:
    rows = [
        (p.part, sum(p.nodes.values()), sum(p.edges.values()), p.halo_nodes, p.outer_edges)
        for p in report.parts
    ]
    summary = (
        f"version {report.version} is in {report.out} ({report.seconds:.1f} s); "
        f"{report.edge_cut:,} edges are cut; DGL loads {report.config}"
    )
    return sections(
        table("partitions", ("part", "nodes", "edges", "halo nodes", "outer edges"), rows),
        summary,
        *(f"note: {text}" for text in report.warnings),
    )
