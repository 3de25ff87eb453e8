"""`asterism sample layer` and `adjacency`: one layer for a whole batch, and its edges.

A layer is sampled from the neighbors of all nodes of the batch. `adjacency` returns the edges
between two lists of nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.option_values import parse_nodes
from asterism.cli.options import GraphVersion, Space
from asterism.cli.output import table
from asterism.cli.sample.calls import run_read_call, run_sample_call
from asterism.cli.sample.node_ids import parse_node_ids
from asterism.cli.sample.options import (
    Count,
    Direction,
    EdgeTypes,
    ExclusionOptions,
    Nodes,
    Replace,
    ReturnedWeight,
    SampleCallOptions,
    TraversalOptions,
    WeightOptions,
    Where,
)
from asterism.cli.sample.tables import (
    MAX_SHOWN_ROWS,
    add_probability_column,
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
    edge_types: EdgeTypes = None,
    count: Count = 10,
    measure: Annotated[
        str,
        typer.Option(
            metavar="sum|sqrt|squares",
            help="Weight of a neighbor, from the weights of the edges to it: their sum, its root, "
            "or the sum of squares over the given nodes (LADIES).",
        ),
    ] = "sum",
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weights: WeightOptions,
    replace: Replace = True,
    call_options: SampleCallOptions,
) -> None:
    """Sample the nodes of a layer from the neighbors of all given nodes."""

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_layer(
            parse_node_ids(graph, nodes),
            edge_types or None,
            count,
            measure=measure,
            replace=replace,
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            **call_options.arguments(),
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        names, columns = add_probability_column(("type", "node"), [sample.nodes], sample)
        title = f"layer with {len(sample.adjacency.rows):,} incoming edges"
        return table(
            truncated_title(title, len(sample.nodes)),
            names,
            zip(type_names(schema, "node", sample.types[:MAX_SHOWN_ROWS]), *columns, strict=True),
        )

    run_sample_call(context, space, call, render, explain=call_options.explain)


def adjacency(
    context: typer.Context,
    space: Space,
    *,
    rows: Annotated[str, typer.Option(metavar="NODE[,NODE...]", help="Nodes where edges start.")],
    cols: Annotated[str, typer.Option(metavar="NODE[,NODE...]", help="Nodes where edges end.")],
    edge_types: EdgeTypes = None,
    row_type: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE", help="Type of the rows, required if the edge types do not determine it."
        ),
    ] = None,
    col_type: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Type of the columns, required if the edge types do not determine it.",
        ),
    ] = None,
    direction: Direction = "out",
    weight: ReturnedWeight = "",
    where: Where = "",
    graph_version: GraphVersion = None,
) -> None:
    """Return the edges from one list of nodes to another."""
    row_nodes, col_nodes = parse_nodes("--rows", rows), parse_nodes("--cols", cols)

    def call(graph: Graph) -> Any:
        return graph.adjacency(
            parse_node_ids(graph, row_nodes),
            parse_node_ids(graph, col_nodes),
            edge_types or None,
            row_type=row_type,
            col_type=col_type,
            direction=direction,
            weight=weight,
            where=where,
            edge_ids=True,
            version=graph_version,
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
