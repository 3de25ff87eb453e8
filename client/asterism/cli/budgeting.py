"""`asterism sample hgt`: nodes drawn layer by layer, so many of each type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.drawing import Along, Direction, Explain, Nodes, NodeType, Seed, Space, Uniform, Version, Weight, Where, draw, whole_numbers
from asterism.cli.naming import starts
from asterism.cli.output import table
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_proto.schema import Schema


def counts_of(words: list[str]) -> list[int] | dict[str, list[int]]:
    """What ``--count`` says: numbers for all node types, or for each type that is named."""
    if len(words) == 1 and "=" not in words[0]:
        return whole_numbers("--count", words[0], least=0)
    found: dict[str, list[int]] = {}
    for word in words:
        name, equals, numbers = word.rpartition("=")
        if not equals or not name or name in found:
            raise InvalidRequest(f"--count {word!r}: expected TYPE=N[,N...], each type once, or N[,N...] by itself for all types")
        found[name] = whole_numbers("--count", numbers, least=0)
    return found


def hgt(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    count: Annotated[
        list[str],
        typer.Option(metavar="[TYPE=]N[,N...]", help="Nodes to draw, layer by layer: of each node type, or of this one (repeat for others)."),
    ],
    kinds: Along = None,
    among: Annotated[
        list[str] | None, typer.Option("--among", metavar="TYPE", help="Give edges of this type among the nodes. Default: those followed.")
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
    """Draw whole layers of nodes around the given ones, so many of each type, with all edges among them (HGT)."""
    counts = counts_of(count)

    def ask(graph: Graph, asked: Any) -> Any:
        return asked.sample_hgt(
            starts(graph, nodes),
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
        counted = [(name, *drawn, sum(drawn)) for name, drawn in sample.num_sampled_nodes.items()]
        counted += [(name, *[""] * (layers + 1), sum(drawn)) for name, drawn in sample.num_sampled_edges.items()]
        return table("layers", ("type", "given", *(f"layer {layer + 1}" for layer in range(layers)), "in all"), counted)

    draw(context, space, ask, render, explain=explain)
