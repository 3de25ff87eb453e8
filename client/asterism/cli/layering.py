"""`asterism sample layer` and `adjacency`: layers drawn as a whole, and the edges between two lists of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.drawing import (
    SHOWN,
    Along,
    Count,
    Direction,
    Distinct,
    Explain,
    Nodes,
    NodeType,
    Seed,
    Space,
    Uniform,
    Version,
    Weight,
    Where,
    draw,
    read,
    titled,
    type_names,
    with_probabilities,
    words,
)
from asterism.cli.naming import starts
from asterism.cli.output import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_proto.schema import Schema


def layer(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: Along = None,
    count: Count = 10,
    measure: Annotated[
        str, typer.Option(metavar="sum|sqrt|squares", help="What a neighbor counts, of the weights of the edges to it; squares: as LADIES has it.")
    ] = "sum",
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    distinct: Distinct = False,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw the nodes of a layer from the neighbors of all given nodes."""

    def ask(graph: Graph, asked: Any) -> Any:
        return asked.sample_layer(
            starts(graph, nodes),
            kinds or None,
            count,
            measure=measure,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            replace=not distinct,
            direction=direction,
            seed=seed,
            version=at,
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        names, columns = with_probabilities(("type", "node"), [sample.nodes], sample)
        title = f"a layer, {len(sample.adjacency.rows):,} edges lead to it"
        return table(titled(title, len(sample.nodes)), names, zip(type_names(schema, "node", sample.types[:SHOWN]), *columns, strict=True))

    draw(context, space, ask, render, explain=explain)


def adjacency(
    context: typer.Context,
    space: Space,
    *,
    rows: Annotated[str, typer.Option(metavar="NODE[,NODE...]", help="Where edges begin.")],
    cols: Annotated[str, typer.Option(metavar="NODE[,NODE...]", help="Where they end.")],
    kinds: Along = None,
    row_type: Annotated[str | None, typer.Option(help="The type of the rows, where the edge types do not say.")] = None,
    col_type: Annotated[str | None, typer.Option(help="The type of the cols, where the edge types do not say.")] = None,
    direction: Direction = "out",
    weight: Annotated[str, typer.Option("--weight", metavar="NAME", help="Give the weights of this name. Default: the edges' own.")] = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give the edges from some nodes to others."""
    near, far = words("--rows", rows), words("--cols", cols)

    def ask(graph: Graph) -> Any:
        return graph.adjacency(
            starts(graph, near),
            starts(graph, far),
            kinds or None,
            row_type=row_type,
            col_type=col_type,
            direction=direction,
            weight=weight,
            where=where,
            edge_ids=True,
            version=at,
        )

    def render(found: Any, schema: Schema) -> RenderableType:
        cells = [
            (name, near[row], far[col], eid, heavy)
            for name, row, col, eid, heavy in zip(
                type_names(schema, "edge", found.types[:SHOWN]),
                *(column[:SHOWN].tolist() for column in (found.rows, found.cols, found.edge_ids, found.weights)),
                strict=True,
            )
        ]
        return table(titled("edges", len(found.rows)), ("type", "row", "col", "edge id", "weight"), cells)

    read(context, space, ask, render)
