"""`asterism sample pglbox`: the batches that a PGLBox configuration describes."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.help_text import examples
from asterism.cli.options import GraphVersion, Space
from asterism.cli.output import table
from asterism.cli.sample.calls import run_read_call
from asterism.cli.sample.options import Batches, Seed
from asterism.cli.sample.tables import MAX_SHOWN_ROWS, pairs_table, truncated_title

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema

EXAMPLES = examples(
    "asterism load shop lightgcn.yaml --create --build",
    "asterism sample pglbox shop lightgcn.yaml --seed 1",
    "asterism sample pglbox shop lightgcn.yaml --infer --batches 3 --json",
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
            help="YAML configuration that the space was loaded from.",
        ),
    ],
    *,
    infer: Annotated[
        bool, typer.Option("--infer", help="Return the batches of inference, not of training.")
    ] = False,
    batches: Batches = 1,
    seed: Seed = None,
    graph_version: GraphVersion = None,
) -> None:
    """Sample the first batches that a PGLBox configuration describes.

    Batches of training contain pairs from walks; batches of inference contain nodes.
    """

    def call(graph: Graph) -> Any:
        from asterism.pglbox import PGLBox

        pglbox_graph = PGLBox(
            graph if graph_version is None else graph.at(graph_version), config, seed=seed
        )
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
        return pairs_table(result)

    run_read_call(context, space, call, render)
