"""`asterism sample layer` and `adjacency`: layers drawn as a whole, and the edges between two lists
of nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.node_ids import parse_node_ids
from asterism.cli.output import table
from asterism.cli.sample_options import (
    MAX_SHOWN_ROWS,
    Count,
    Direction,
    Distinct,
    EdgeTypes,
    Explain,
    Nodes,
    NodeType,
    Seed,
    Space,
    Uniform,
    Version,
    Weight,
    Where,
    add_probability_column,
    parse_nodes,
    run_read_call,
    run_sample_call,
    truncated_title,
    type_names,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema


def layer(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: EdgeTypes = None,
    count: Count = 10,
    measure: Annotated[
        str,
        typer.Option(
            metavar="sum|sqrt|squares",
            help=(
                "What a neighbor counts, of the weights of the edges to it; squares: as "
                "LADIES has it."
            ),
        ),
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

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_layer(
            parse_node_ids(graph, nodes),
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
        names, columns = add_probability_column(("type", "node"), [sample.nodes], sample)
        title = f"a layer, {len(sample.adjacency.rows):,} edges lead to it"
        return table(
            truncated_title(title, len(sample.nodes)),
            names,
            zip(type_names(schema, "node", sample.types[:MAX_SHOWN_ROWS]), *columns, strict=True),
        )

    run_sample_call(context, space, call, render, explain=explain)


def adjacency(
    context: typer.Context,
    space: Space,
    *,
    rows: Annotated[str, typer.Option(metavar="NODE[,NODE...]", help="Where edges begin.")],
    cols: Annotated[str, typer.Option(metavar="NODE[,NODE...]", help="Where they end.")],
    kinds: EdgeTypes = None,
    row_type: Annotated[
        str | None, typer.Option(help="The type of the rows, where the edge types do not say.")
    ] = None,
    col_type: Annotated[
        str | None, typer.Option(help="The type of the cols, where the edge types do not say.")
    ] = None,
    direction: Direction = "out",
    weight: Annotated[
        str,
        typer.Option(
            "--weight",
            metavar="NAME",
            help="Give the weights of this name. Default: the edges' own.",
        ),
    ] = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give the edges from some nodes to others."""
    row_nodes, col_nodes = parse_nodes("--rows", rows), parse_nodes("--cols", cols)

    def call(graph: Graph) -> Any:
        return graph.adjacency(
            parse_node_ids(graph, row_nodes),
            parse_node_ids(graph, col_nodes),
            kinds or None,
            row_type=row_type,
            col_type=col_type,
            direction=direction,
            weight=weight,
            where=where,
            edge_ids=True,
            version=at,
        )

    def render(result: Any, schema: Schema) -> RenderableType:
        cells = [
            (name, row_nodes[row], col_nodes[col], eid, edge_weight)
            for name, row, col, eid, edge_weight in zip(
                type_names(schema, "edge", result.types[:MAX_SHOWN_ROWS]),
                *(
                    column[:MAX_SHOWN_ROWS].tolist()
                    for column in (result.rows, result.cols, result.edge_ids, result.weights)
                ),
                strict=True,
            )
        ]
        return table(
            truncated_title("edges", len(result.rows)),
            ("type", "row", "col", "edge id", "weight"),
            cells,
        )

    run_read_call(context, space, call, render)
