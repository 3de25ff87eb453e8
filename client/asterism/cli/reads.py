"""`asterism sample top`, `pagerank`, `all`, `degrees` and `graphs`: what nodes are joined to, and
which make up a graph, without a draw.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.node_ids import parse_node_ids, present_nodes
from asterism.cli.output import table
from asterism.cli.sample_options import (
    MAX_SHOWN_ROWS,
    Direction,
    EdgeTypes,
    Nodes,
    NodeType,
    Space,
    Uniform,
    Version,
    Where,
    format_nodes,
    rows_table,
    run_read_call,
    truncated_title,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema

Weight = Annotated[
    str,
    typer.Option(
        "--weight",
        metavar="NAME",
        help="By the weights of this name, that all these types have. Default: their own.",
    ),
]


def top(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: EdgeTypes = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Edges of each node at most.")] = 10,
    node_type: NodeType = None,
    direction: Direction = "out",
    weight: Weight = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give the heaviest edges of each given node, heaviest first."""

    def call(graph: Graph) -> Any:
        return graph.top_k_neighbors(
            parse_node_ids(graph, nodes),
            kinds or None,
            k,
            ntype=node_type,
            direction=direction,
            weight=weight,
            where=where,
            edge_ids=True,
            version=at,
        )

    def render(result: Any, schema: Schema) -> RenderableType:
        row_texts = [
            _format_weighted(row, edge_weights)
            for row, edge_weights in zip(result.nodes, result.weights, strict=True)
        ]
        return rows_table(
            "heaviest neighbors", ("node", "neighbor (weight)"), nodes, row_texts, len(nodes)
        )

    run_read_call(context, space, call, render)


def pagerank(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: EdgeTypes = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Nodes for each at most.")] = 10,
    alpha: Annotated[
        float, typer.Option(help="The probability that a walk ends, before each step.")
    ] = 0.15,
    epsilon: Annotated[
        float, typer.Option(help="How much a node may hold back, per unit of its edges' weight.")
    ] = 1e-4,
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give the nodes at which random walks from each given node end most often: personalised
    PageRank.
    """

    def call(graph: Graph) -> Any:
        return graph.personalized_pagerank(
            parse_node_ids(graph, nodes),
            kinds or None,
            k,
            alpha=alpha,
            epsilon=epsilon,
            ntype=node_type,
            direction=direction,
            weighted=not uniform,
            weight=weight,
            where=where,
            version=at,
        )

    def render(result: Any, schema: Schema) -> RenderableType:
        row_texts = [
            _format_weighted(row, scores)
            for row, scores in zip(result.nodes, result.scores, strict=True)
        ]
        return rows_table(
            "personalised PageRank", ("node", "node (score)"), nodes, row_texts, len(nodes)
        )

    run_read_call(context, space, call, render)


def _format_weighted(nodes: Any, weights: Any) -> str:
    present = present_nodes(nodes)
    return (
        ", ".join(
            f"{node} ({edge_weight:.6g})"
            for node, edge_weight in zip(
                nodes[present].tolist(), weights[present].tolist(), strict=True
            )
        )
        or "no neighbors"
    )


def all_neighbors(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: EdgeTypes = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="id|weight",
            help="By id, or by weight, heaviest first. Default: edge type by edge type.",
        ),
    ] = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    weight: Weight = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give all neighbors of each given node."""

    def call(graph: Graph) -> Any:
        return graph.neighbors(
            parse_node_ids(graph, nodes),
            kinds or None,
            ntype=node_type,
            direction=direction,
            weight=weight,
            where=where,
            sort=sort,
            version=at,
        )

    def render(result: Any, schema: Schema) -> RenderableType:
        row_texts = [
            _format_weighted(result.nodes[a:b], result.weights[a:b])
            for a, b in pairwise(result.indptr.tolist())
        ]
        return rows_table("neighbors", ("node", "neighbor (weight)"), nodes, row_texts, len(nodes))

    run_read_call(context, space, call, render)


def degrees(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: EdgeTypes = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight",
            metavar="NAME",
            help="What edges weigh together by this name; weight: by their own. Default: how many.",
        ),
    ] = None,
    where: Where = "",
    at: Version = None,
) -> None:
    """Count the edges of each given node, type by type, or sum their weights."""

    def call(graph: Graph) -> Any:
        types = kinds or [edge.name for edge in graph.schema.edge_types]
        counts = graph.degrees(
            parse_node_ids(graph, nodes),
            types,
            ntype=node_type,
            direction=direction,
            weight=weight,
            where=where,
            version=at,
        )
        return {"nodes": nodes, "types": types, "degrees": counts}

    def render(result: Any, schema: Schema) -> RenderableType:
        rows = [
            (node, *counts)
            for node, counts in zip(
                nodes[:MAX_SHOWN_ROWS], result["degrees"].tolist(), strict=False
            )
        ]
        return table(truncated_title("degrees", len(nodes)), ("node", *result["types"]), rows)

    run_read_call(context, space, call, render)


def graphs(
    context: typer.Context,
    space: Space,
    labels: Annotated[list[str], typer.Argument(metavar="LABEL...", help="Labels of graphs.")],
    *,
    at: Version = None,
) -> None:
    """Give the nodes of graphs within the graph."""

    def render(result: Any, schema: Schema) -> RenderableType:
        row_texts = [format_nodes(result[row]) or "no node" for row in range(len(result))]
        return rows_table("graphs", ("label", "nodes"), labels, row_texts, len(labels))

    run_read_call(context, space, lambda graph: graph.graph_nodes(labels, version=at), render)
