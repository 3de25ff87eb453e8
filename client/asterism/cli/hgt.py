"""`asterism sample hgt`: nodes drawn layer by layer, so many of each type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.node_ids import parse_node_ids
from asterism.cli.output import table
from asterism.cli.sample_options import (
    Direction,
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
    parse_integers,
    run_sample_call,
)
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema


def parse_counts(options: list[str]) -> list[int] | dict[str, list[int]]:
    """What ``--count`` says: numbers for all node types, or for each type that is named."""
    if len(options) == 1 and "=" not in options[0]:
        return parse_integers("--count", options[0], minimum=0)
    counts_by_type: dict[str, list[int]] = {}
    for option in options:
        name, equals, numbers = option.rpartition("=")
        if not equals or not name or name in counts_by_type:
            raise InvalidRequest(
                f"--count {option!r}: expected TYPE=N[,N...], each type once, or N[,N...] by "
                "itself for all types"
            )
        counts_by_type[name] = parse_integers("--count", numbers, minimum=0)
    return counts_by_type


def hgt(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    count: Annotated[
        list[str],
        typer.Option(
            metavar="[TYPE=]N[,N...]",
            help=(
                "Nodes to draw, layer by layer: of each node type, or of this one (repeat "
                "for others)."
            ),
        ),
    ],
    kinds: EdgeTypes = None,
    among: Annotated[
        list[str] | None,
        typer.Option(
            "--among",
            metavar="TYPE",
            help="Give edges of this type among the nodes. Default: those followed.",
        ),
    ] = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw whole layers of nodes around the given ones, so many of each type, with all edges among
    them (HGT).
    """
    counts = parse_counts(count)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_hgt(
            parse_node_ids(graph, nodes),
            counts,
            kinds or None,
            among=among or None,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            direction=direction,
            seed=seed,
            version=at,
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
            ("type", "given", *(f"layer {layer + 1}" for layer in range(layers)), "in all"),
            rows,
        )

    run_sample_call(context, space, call, render, explain=explain)
