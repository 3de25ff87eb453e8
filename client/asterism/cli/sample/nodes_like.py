"""`asterism sample like`: nodes of the same type as given ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.options import Space
from asterism.cli.sample.calls import run_sample_call
from asterism.cli.sample.node_ids import parse_node_ids
from asterism.cli.sample.options import (
    Count,
    Nodes,
    NodeType,
    Probabilities,
    SampleCallOptions,
    WeightOptions,
)
from asterism.cli.sample.tables import row_renderer
from asterism.cli.typer_signatures import FormerName

if TYPE_CHECKING:
    from asterism import Graph


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

    render = row_renderer("nodes of the same type", nodes)
    run_sample_call(context, space, call, render, explain=call_options.explain)
