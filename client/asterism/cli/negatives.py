"""`asterism sample like`, `negatives` and `labels`.

Nodes of the same type as given ones, negative samples, and labels of graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.node_ids import parse_node_ids
from asterism.cli.option_groups import FormerName
from asterism.cli.option_values import parse_nodes
from asterism.cli.options import Space
from asterism.cli.output import table
from asterism.cli.sample_calls import Render, run_sample_call
from asterism.cli.sample_options import (
    Count,
    Nodes,
    NodeType,
    Probabilities,
    SampleCallOptions,
    SampledNodeTypes,
    WeightOptions,
)
from asterism.cli.sample_tables import format_nodes, rows_table
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
    weights: WeightOptions,
    on_unknown: Annotated[
        str,
        typer.Option(
            metavar="error|none",
            help="Fail on a node that does not exist, or return no samples for it.",
        ),
        FormerName("--unknown"),
    ] = "error",
    probabilities: Probabilities = False,
    call_options: SampleCallOptions,
) -> None:
    """Sample nodes of the same type as each given node, from the whole graph."""

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_nodes_like(
            parse_node_ids(graph, nodes),
            count,
            ntype=node_type,
            unknown=on_unknown,
            probabilities=probabilities,
            **weights.arguments(),
            **call_options.arguments(),
        )

    render = _render_rows("nodes of the same type", nodes)
    run_sample_call(context, space, call, render, explain=call_options.explain)


def parse_pairs(texts: list[str]) -> list[list[str]]:
    """Return rows that contain a source, or a source and its positive."""
    rows = [parse_nodes("pair", text) for text in texts]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) > 2:
        raise InvalidRequest(
            f"pairs={' '.join(texts)!r}: expected only sources, such as 17 23, or only pairs, such "
            "as 17,3 23,40"
        )
    return rows


def negatives(
    context: typer.Context,
    space: Space,
    pairs: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC[,DST]...",
            help="Sources, or pairs of a source and a positive, which is not sampled.",
        ),
    ],
    *,
    count: Count = 5,
    node_types: SampledNodeTypes = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="TYPE",
            help="Exclude the neighbors of the source along this edge type. Repeatable.",
        ),
        FormerName("--but"),
    ] = None,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared", help="Share one row between all pairs, without the positives of any."
        ),
    ] = False,
    weights: WeightOptions,
    probabilities: Probabilities = False,
    call_options: SampleCallOptions,
) -> None:
    """Sample nodes that are not among the positives of each pair."""
    parsed_pairs = parse_pairs(pairs)

    def call(graph: Graph, sampler: Any) -> Any:
        rows = [parse_node_ids(graph, row) for row in parsed_pairs]
        anchors = [row[0] for row in rows] if len(rows[0]) == 1 else rows
        return sampler.sample_negatives(
            anchors,
            count,
            node_types or None,
            shared=shared,
            exclude_edges=exclude or None,
            probabilities=probabilities,
            **weights.arguments(),
            **call_options.arguments(),
        )

    render = _render_rows("negatives", ["all"] if shared else pairs)
    run_sample_call(context, space, call, render, explain=call_options.explain)


def _render_rows(title: str, sources: list[str]) -> Render:
    def render(sample: Any, schema: Schema) -> RenderableType:
        row_texts = [
            format_nodes(row, None if sample.probabilities is None else sample.probabilities[i])
            or "none"
            for i, row in enumerate(sample.nodes)
        ]
        return rows_table(title, ("source", "samples"), sources, row_texts, len(row_texts))

    return render


def labels(
    context: typer.Context,
    space: Space,
    *,
    count: Count = 10,
    call_options: SampleCallOptions,
) -> None:
    """Sample labels of graphs uniformly."""

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_graph_labels(count, **call_options.arguments())

    def render(sample: Any, schema: Schema) -> RenderableType:
        return table(
            "labels of graphs",
            ("label",),
            [(label.decode("utf-8", "backslashreplace"),) for label in sample.labels],
        )

    run_sample_call(context, space, call, render, explain=call_options.explain)
