"""`asterism sample negatives`: nodes that are not among the positives of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.option_values import parse_nodes
from asterism.cli.options import Space
from asterism.cli.sample.calls import run_sample_call
from asterism.cli.sample.node_ids import parse_node_ids
from asterism.cli.sample.options import (
    Count,
    Probabilities,
    SampleCallOptions,
    SampledNodeTypes,
    WeightOptions,
)
from asterism.cli.sample.tables import row_renderer
from asterism.cli.typer_signatures import FormerName
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism import Graph


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

    render = row_renderer("negatives", ["all"] if shared else pairs)
    run_sample_call(context, space, call, render, explain=call_options.explain)
