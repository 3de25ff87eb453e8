"""`asterism export`: partitions on disk, from a published version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from asterism.cli.session import session_of
from asterism_proto.errors import InvalidRequest

app = typer.Typer(no_args_is_help=True, help="Partitions that trainers load.")


@app.callback()
def formats() -> None:
    """Partitions that trainers load."""


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
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder to write to.")],
    parts: Annotated[int, typer.Option(min=1, help="How many partitions.")],
    assign: Annotated[str, typer.Option(metavar="random|metis|PATH", help="Which node goes to which partition.")] = "random",
    seed: Annotated[int, typer.Option(help="Of a random assignment.")] = 0,
    at: Annotated[int | None, typer.Option("--at", min=1, metavar="VERSION", help="Export this version.")] = None,
    graph_name: Annotated[str | None, typer.Option(help="The graph's name in the partition config. Default: the space's.")] = None,
) -> None:
    """Write partitions that DGL's distributed training loads."""
    session = session_of(context)
    assignment = _assignment(assign)
    from asterism import export

    with session.client() as client, session.output.progress() as tell:

        def show(progress: Any) -> None:
            tell(f"export {progress.phase}", progress.rows_done, progress.rows_total)

        report = export.dgl(client.graph(space), out, parts=parts, assign=assignment, seed=seed, version=at, graph_name=graph_name, progress=show)
    session.output.result(report, lambda: f"{parts} partitions of {space} are in {out}")
