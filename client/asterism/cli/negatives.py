"""`asterism sample like`, `negatives` and `labels`: nodes of the types of others, nodes that are
not some others, labels of graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.node_ids import parse_node_ids
from asterism.cli.output import table
from asterism.cli.sample_options import (
    Count,
    Explain,
    Nodes,
    NodeType,
    Probabilities,
    Seed,
    Space,
    Uniform,
    Version,
    Weight,
    Where,
    format_nodes,
    parse_nodes,
    rows_table,
    run_sample_call,
)
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema


def like(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    count: Count = 10,
    node_type: NodeType = None,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    unknown: Annotated[
        str,
        typer.Option(
            metavar="error|none",
            help="Whether a node that is not there is refused, or has none like it.",
        ),
    ] = "error",
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw nodes of the type of each given node, from the whole graph."""

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_nodes_like(
            parse_node_ids(graph, nodes),
            count,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            unknown=unknown,
            probabilities=probabilities,
            seed=seed,
            version=at,
        )

    run_sample_call(context, space, call, _render_rows("nodes like others", nodes), explain=explain)


def parse_pairs(texts: list[str]) -> list[list[str]]:
    """Sources, or pairs of a source and its positive with a comma between: all of them the same."""
    rows = [parse_nodes("pair", text) for text in texts]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) > 2:
        raise InvalidRequest(
            f"{' '.join(texts)}: expected sources such as 17 23, or pairs such as 17,3 23,40"
        )
    return rows


def negatives(
    context: typer.Context,
    space: Space,
    pairs: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC[,DST]...",
            help="Sources, or pairs: the second one is a positive, which is not drawn.",
        ),
    ],
    *,
    count: Count = 5,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--type", help="Of this node type (repeat for several). Default: all."),
    ] = None,
    but: Annotated[
        list[str] | None,
        typer.Option(
            "--but", help="No neighbor of the source along this edge type (repeat for several)."
        ),
    ] = None,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared", help="One row for all pairs, which leaves out the positives of each."
        ),
    ] = False,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw nodes that are not among the positives of each pair."""
    parsed_pairs = parse_pairs(pairs)

    def call(graph: Graph, sampler: Any) -> Any:
        rows = [parse_node_ids(graph, row) for row in parsed_pairs]
        anchors = [row[0] for row in rows] if len(rows[0]) == 1 else rows
        return sampler.sample_negatives(
            anchors,
            count,
            kinds or None,
            weighted=not uniform,
            weight=weight,
            where=where,
            shared=shared,
            exclude_edges=but or None,
            probabilities=probabilities,
            seed=seed,
            version=at,
        )

    run_sample_call(
        context,
        space,
        call,
        _render_rows("negatives", ["all"] if shared else pairs),
        explain=explain,
    )


def _render_rows(title: str, firsts: list[Any]) -> Any:
    def render(sample: Any, schema: Schema) -> RenderableType:
        row_texts = [
            format_nodes(row, None if sample.probabilities is None else sample.probabilities[i])
            for i, row in enumerate(sample.nodes)
        ]
        return rows_table(
            title, ("of", "drawn"), firsts, [row or "none" for row in row_texts], len(row_texts)
        )

    return render


def labels(
    context: typer.Context,
    space: Space,
    *,
    count: Count = 10,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw labels of graphs, each alike."""

    def render(sample: Any, schema: Schema) -> RenderableType:
        return table(
            "labels of graphs",
            ("label",),
            [(label.decode("utf-8", "backslashreplace"),) for label in sample.labels],
        )

    run_sample_call(
        context,
        space,
        lambda graph, sampler: sampler.sample_graph_labels(count, seed=seed, version=at),
        render,
        explain=explain,
    )
