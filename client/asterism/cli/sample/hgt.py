"""`asterism sample hgt`: nodes sampled layer by layer, a fixed number of each type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.option_values import parse_integers
from asterism.cli.options import Space
from asterism.cli.output import table
from asterism.cli.sample.calls import run_sample_call
from asterism.cli.sample.node_ids import parse_node_ids
from asterism.cli.sample.options import (
    EdgeTypes,
    ExclusionOptions,
    InducedTypes,
    Nodes,
    SampleCallOptions,
    TraversalOptions,
    WeightOptions,
)
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema


def parse_counts(options: list[str]) -> list[int] | dict[str, list[int]]:
    """Return the numbers of nodes of each layer: one list for all node types, or one per type."""
    if len(options) == 1 and "=" not in options[0]:
        return parse_integers("--count", options[0], minimum=0)
    counts_by_type: dict[str, list[int]] = {}
    for option in options:
        name, equals, numbers = option.rpartition("=")
        if not equals or not name or name in counts_by_type:
            raise InvalidRequest(
                f"--count={option!r}: expected TYPE=N[,N...], each type once, or one N[,N...] for "
                "all types; for example user=64,64"
            )
        counts_by_type[name] = parse_integers("--count", numbers, minimum=0)
    return counts_by_type


def hgt(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    counts: Annotated[
        list[str],
        typer.Option(
            "--count",
            metavar="[TYPE=]N[,N...]",
            help="Number of nodes in each layer: of each node type, or of this one. Repeat per "
            "type.",
        ),
    ],
    edge_types: EdgeTypes = None,
    induced_types: InducedTypes = None,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weights: WeightOptions,
    call_options: SampleCallOptions,
) -> None:
    """Sample layers of nodes around the given ones, a fixed number of each type (HGT).

    The result contains all edges between the sampled nodes.
    """
    parsed_counts = parse_counts(counts)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_hgt(
            parse_node_ids(graph, nodes),
            parsed_counts,
            edge_types or None,
            among=induced_types or None,
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            **call_options.arguments(),
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        layers = len(next(iter(sample.num_sampled_nodes.values()))) - 1
        rows = [
            (name, *layer_counts, sum(layer_counts))
            for name, layer_counts in sample.num_sampled_nodes.items()
        ]
        rows += [
            (name, *[""] * (layers + 1), sum(layer_counts))
            for name, layer_counts in sample.num_sampled_edges.items()
        ]
        return table(
            "layers",
            ("type", "seeds", *(f"layer {layer + 1}" for layer in range(layers)), "total"),
            rows,
        )

    run_sample_call(context, space, call, render, explain=call_options.explain)
