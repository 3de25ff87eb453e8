"""`asterism sample top`, `pagerank`, `all`, `degrees` and `graphs`: what nodes are joined to, and which make up a graph, without a draw."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.drawing import SHOWN, Along, Direction, Nodes, NodeType, Space, Uniform, Version, Where, in_a_row, read, rows_table, titled
from asterism.cli.naming import starts, there
from asterism.cli.output import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_proto.schema import Schema

Weight = Annotated[str, typer.Option("--weight", metavar="NAME", help="By the weights of this name, that all these types have. Default: their own.")]


def top(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: Along = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Edges of each node at most.")] = 10,
    node_type: NodeType = None,
    direction: Direction = "out",
    weight: Weight = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give the heaviest edges of each given node, heaviest first."""

    def ask(graph: Graph) -> Any:
        return graph.top_k_neighbors(
            starts(graph, nodes), kinds or None, k, ntype=node_type, direction=direction, weight=weight, where=where, edge_ids=True, version=at
        )

    def render(found: Any, schema: Schema) -> RenderableType:
        told = [_weighed(row, heavy) for row, heavy in zip(found.nodes, found.weights, strict=True)]
        return rows_table("heaviest neighbors", ("node", "neighbor (weight)"), nodes, told, len(nodes))

    read(context, space, ask, render)


def pagerank(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: Along = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Nodes for each at most.")] = 10,
    alpha: Annotated[float, typer.Option(help="The probability that a walk ends, before each step.")] = 0.15,
    epsilon: Annotated[float, typer.Option(help="How much a node may hold back, per unit of its edges' weight.")] = 1e-4,
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give the nodes at which random walks from each given node end most often: personalised PageRank."""

    def ask(graph: Graph) -> Any:
        return graph.personalized_pagerank(
            starts(graph, nodes),
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

    def render(found: Any, schema: Schema) -> RenderableType:
        told = [_weighed(row, scores) for row, scores in zip(found.nodes, found.scores, strict=True)]
        return rows_table("personalised PageRank", ("node", "node (score)"), nodes, told, len(nodes))

    read(context, space, ask, render)


def _weighed(nodes: Any, weights: Any) -> str:
    hit = there(nodes)
    return ", ".join(f"{node} ({heavy:.6g})" for node, heavy in zip(nodes[hit].tolist(), weights[hit].tolist(), strict=True)) or "no neighbors"


def everything(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: Along = None,
    sort: Annotated[
        str | None, typer.Option(metavar="id|weight", help="By id, or by weight, heaviest first. Default: edge type by edge type.")
    ] = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    weight: Weight = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give all neighbors of each given node."""

    def ask(graph: Graph) -> Any:
        return graph.neighbors(
            starts(graph, nodes), kinds or None, ntype=node_type, direction=direction, weight=weight, where=where, sort=sort, version=at
        )

    def render(found: Any, schema: Schema) -> RenderableType:
        told = [_weighed(found.nodes[a:b], found.weights[a:b]) for a, b in pairwise(found.indptr.tolist())]
        return rows_table("neighbors", ("node", "neighbor (weight)"), nodes, told, len(nodes))

    read(context, space, ask, render)


def degrees(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: Along = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    weight: Annotated[
        str | None, typer.Option("--weight", metavar="NAME", help="What edges weigh together by this name; weight: by their own. Default: how many.")
    ] = None,
    where: Where = "",
    at: Version = None,
) -> None:
    """Count the edges of each given node, type by type, or sum their weights."""

    def ask(graph: Graph) -> Any:
        types = kinds or [edge.name for edge in graph.schema.edge_types]
        counted = graph.degrees(starts(graph, nodes), types, ntype=node_type, direction=direction, weight=weight, where=where, version=at)
        return {"nodes": nodes, "types": types, "degrees": counted}

    def render(found: Any, schema: Schema) -> RenderableType:
        rows = [(node, *counts) for node, counts in zip(nodes[:SHOWN], found["degrees"].tolist(), strict=False)]
        return table(titled("degrees", len(nodes)), ("node", *found["types"]), rows)

    read(context, space, ask, render)


def graphs(
    context: typer.Context,
    space: Space,
    labels: Annotated[list[str], typer.Argument(metavar="LABEL...", help="Labels of graphs.")],
    *,
    at: Version = None,
) -> None:
    """Give the nodes of graphs within the graph."""

    def render(found: Any, schema: Schema) -> RenderableType:
        told = [in_a_row(found[row]) or "no node" for row in range(len(found))]
        return rows_table("graphs", ("label", "nodes"), labels, told, len(labels))

    read(context, space, lambda graph: graph.graph_nodes(labels, version=at), render)
