"""`asterism sample pglbox`: the batches that a configuration of PGLBox's describes."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.drawing import SHOWN, Seed, Space, Version, in_a_row, read, titled
from asterism.cli.output import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_proto.schema import Schema

EXAMPLES = (
    "Examples: asterism load shop lightgcn.yaml --create --build, then asterism sample pglbox shop lightgcn.yaml --seed 1; "
    "asterism sample pglbox shop lightgcn.yaml --infer --batches 3 --json"
)


def pglbox(
    context: typer.Context,
    space: Space,
    config: Annotated[Path, typer.Argument(metavar="CONFIG", exists=True, dir_okay=False, help="The YAML file that the space was loaded from.")],
    *,
    infer: Annotated[bool, typer.Option("--infer", help="The batches of inference, not of training.")] = False,
    batches: Annotated[int, typer.Option(min=1, help="How many.")] = 1,
    seed: Seed = None,
    at: Version = None,
) -> None:
    """Draw the first batches of what a configuration of PGLBox's describes: pairs of walks, or nodes to infer."""

    def ask(graph: Graph) -> Any:
        from asterism.pglbox import PGLBox

        box = PGLBox(graph if at is None else graph.at(at), config, seed=seed)
        return list(islice(box.infer() if infer else box.train(), batches))

    def render(found: Any, schema: Schema) -> RenderableType:
        if infer:
            rows = [(batch.ntype, node) for batch in found for node in batch.ids[:SHOWN].tolist()]
            return table(titled("nodes", sum(map(len, found))), ("type", "node"), rows[:SHOWN])
        pairs = [
            (batch.metapath, *pair, in_a_row(batch.negatives[i]) if batch.negatives is not None else "-")
            for batch in found
            for i, pair in enumerate(batch.pairs[:SHOWN].tolist())
        ]
        return table(titled("pairs", sum(map(len, found))), ("metapath", "node", "near", "negatives"), pairs[:SHOWN])

    read(context, space, ask, render)
