"""`asterism sample pglbox`: the batches that a configuration of PGLBox's describes."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.output import table
from asterism.cli.sample_options import (
    MAX_SHOWN_ROWS,
    Seed,
    Space,
    Version,
    format_nodes,
    run_read_call,
    truncated_title,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema

EXAMPLES = (
    "Examples: asterism load shop lightgcn.yaml --create --build, then asterism sample "
    "pglbox shop lightgcn.yaml --seed 1; "
    "asterism sample pglbox shop lightgcn.yaml --infer --batches 3 --json"
)


def pglbox(
    context: typer.Context,
    space: Space,
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG",
            exists=True,
            dir_okay=False,
            help="The YAML file that the space was loaded from.",
        ),
    ],
    *,
    infer: Annotated[
        bool, typer.Option("--infer", help="The batches of inference, not of training.")
    ] = False,
    batches: Annotated[int, typer.Option(min=1, help="How many.")] = 1,
    seed: Seed = None,
    at: Version = None,
) -> None:
    """Draw the first batches of what a configuration of PGLBox's describes: pairs of walks, or
    nodes to infer.
    """

    def call(graph: Graph) -> Any:
        from asterism.pglbox import PGLBox

        pglbox_graph = PGLBox(graph if at is None else graph.at(at), config, seed=seed)
        return list(islice(pglbox_graph.infer() if infer else pglbox_graph.train(), batches))

    def render(result: Any, schema: Schema) -> RenderableType:
        if infer:
            rows = [
                (batch.ntype, node)
                for batch in result
                for node in batch.ids[:MAX_SHOWN_ROWS].tolist()
            ]
            return table(
                truncated_title("nodes", sum(map(len, result))),
                ("type", "node"),
                rows[:MAX_SHOWN_ROWS],
            )
        pairs = [
            (
                batch.metapath,
                *pair,
                format_nodes(batch.negatives[i]) if batch.negatives is not None else "-",
            )
            for batch in result
            for i, pair in enumerate(batch.pairs[:MAX_SHOWN_ROWS].tolist())
        ]
        return table(
            truncated_title("pairs", sum(map(len, result))),
            ("metapath", "node", "near", "negatives"),
            pairs[:MAX_SHOWN_ROWS],
        )

    run_read_call(context, space, call, render)
