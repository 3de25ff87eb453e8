"""`asterism sample top`, `pagerank`, `all`, `degrees` and `graphs`.

These commands sample nothing: their results are deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.options import GraphVersion, Space
from asterism.cli.output import table
from asterism.cli.sample.calls import run_read_call
from asterism.cli.sample.node_ids import parse_node_ids, present_nodes
from asterism.cli.sample.options import (
    EdgeTypes,
    ExclusionOptions,
    Nodes,
    TopK,
    TraversalOptions,
    Weight,
    WeightOptions,
    Where,
)
from asterism.cli.sample.tables import (
    MAX_SHOWN_ROWS,
    format_nodes,
    rows_table,
    truncated_title,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema


def top(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    edge_types: EdgeTypes = None,
    k: TopK = 10,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weight: Weight = "",
    where: Where = "",
    graph_version: GraphVersion = None,
) -> None:
    """Return the heaviest edges of each given node, in descending order of weight."""

    def call(graph: Graph) -> Any:
        return graph.top_k_neighbors(
            parse_node_ids(graph, nodes),
            edge_types or None,
            k,
            **traversal.arguments(),
            **exclusion.arguments(graph),
            weight=weight,
            where=where,
            edge_ids=True,
            version=graph_version,
        )

    def render(result: Any, schema: Schema) -> RenderableType:
        rows = zip(result.nodes, result.weights, strict=True)
        return _neighbor_table("heaviest neighbors", "neighbor (weight)", nodes, rows)

    run_read_call(context, space, call, render)


def pagerank(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    edge_types: EdgeTypes = None,
    k: TopK = 10,
    alpha: Annotated[
        float, typer.Option(metavar="X", help="Probability that a walk ends before each step.")
    ] = 0.15,
    epsilon: Annotated[
        float,
        typer.Option(
            metavar="X", help="Residual that a node may keep, per unit of the weight of its edges."
        ),
    ] = 1e-4,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weights: WeightOptions,
    graph_version: GraphVersion = None,
) -> None:
    """Return the nodes of highest personalized PageRank for each given node.

    Random walks from the given node end at these nodes most often.
    """

    def call(graph: Graph) -> Any:
        return graph.personalized_pagerank(
            parse_node_ids(graph, nodes),
            edge_types or None,
            k,
            alpha=alpha,
            epsilon=epsilon,
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            version=graph_version,
        )

    def render(result: Any, schema: Schema) -> RenderableType:
        rows = zip(result.nodes, result.scores, strict=True)
        return _neighbor_table("personalized PageRank", "node (score)", nodes, rows)

    run_read_call(context, space, call, render)


def _neighbor_table(
    title: str, column: str, nodes: Nodes, rows: Iterable[tuple[Any, Any]]
) -> RenderableType:
    """Return a table of the neighbors of each given node, with one value per neighbor."""
    row_texts = [_format_weighted(neighbors, values) for neighbors, values in rows]
    return rows_table(title, ("node", column), nodes, row_texts, len(nodes))


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
    edge_types: EdgeTypes = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="id|weight",
            help="Order by id, or by descending weight. Default: the order of the edge types.",
        ),
    ] = None,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weight: Weight = "",
    where: Where = "",
    graph_version: GraphVersion = None,
) -> None:
    """Return all neighbors of each given node."""

    def call(graph: Graph) -> Any:
        return graph.neighbors(
            parse_node_ids(graph, nodes),
            edge_types or None,
            **traversal.arguments(),
            **exclusion.arguments(graph),
            weight=weight,
            where=where,
            sort=sort,
            version=graph_version,
        )

    def render(result: Any, schema: Schema) -> RenderableType:
        rows = (
            (result.nodes[a:b], result.weights[a:b]) for a, b in pairwise(result.indptr.tolist())
        )
        return _neighbor_table("neighbors", "neighbor (weight)", nodes, rows)

    run_read_call(context, space, call, render)


def degrees(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    edge_types: EdgeTypes = None,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight",
            metavar="NAME",
            help="Sum this weight column instead of counting edges; `weight` is that of each type.",
        ),
    ] = None,
    where: Where = "",
    graph_version: GraphVersion = None,
) -> None:
    """Count the edges of each given node, type by type, or sum their weights."""

    def call(graph: Graph) -> Any:
        types = edge_types or [edge.name for edge in graph.schema.edge_types]
        counts = graph.degrees(
            parse_node_ids(graph, nodes),
            types,
            **traversal.arguments(),
            **exclusion.arguments(graph),
            weight=weight,
            where=where,
            version=graph_version,
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
    labels: Annotated[list[str], typer.Argument(metavar="LABEL", help="Labels of graphs.")],
    *,
    graph_version: GraphVersion = None,
) -> None:
    """Return the nodes of graphs within the graph."""

    def call(graph: Graph) -> Any:
        return graph.graph_nodes(labels, version=graph_version)

    def render(result: Any, schema: Schema) -> RenderableType:
        row_texts = [format_nodes(result[row]) or "no nodes" for row in range(len(result))]
        return rows_table("graphs", ("label", "nodes"), labels, row_texts, len(labels))

    run_read_call(context, space, call, render)
