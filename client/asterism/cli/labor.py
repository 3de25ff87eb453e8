"""`asterism sample labor`: neighborhoods whose nodes share neighbors."""

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

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema


def labor(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    fanout: Annotated[
        str,
        typer.Option(
            metavar="N[,N...]",
            help="Neighbors to expect of each node and edge type, hop by hop; -1 is all.",
        ),
    ],
    kinds: EdgeTypes = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    importance: Annotated[
        int,
        typer.Option(
            min=-1,
            max=100,
            help="Steps that make shared neighbors more probable; -1: as many as it takes.",
        ),
    ] = 0,
    same: Annotated[
        bool, typer.Option("--same", help="One variate of a neighbor for all hops.")
    ] = False,
    first: Annotated[
        bool,
        typer.Option(
            "--first", help="Nodes are gone on from in the hop behind that which met them only."
        ),
    ] = False,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw the neighborhood of the given nodes by layer-neighbor sampling: fewer different nodes
    for the same fanout.
    """
    fanouts = parse_integers("--fanout", fanout, minimum=-1)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_labor(
            parse_node_ids(graph, nodes),
            fanouts,
            kinds or None,
            importance=importance,
            layer_dependency=same,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            direction=direction,
            expand="first" if first else "every",
            seed=seed,
            version=at,
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = [(name, "nodes", *counts) for name, counts in sample.num_sampled_nodes.items()]
        rows += [(name, "edges", "", *counts) for name, counts in sample.num_sampled_edges.items()]
        return table(
            "labor", ("type", "what", "given", *(f"hop {h + 1}" for h in range(len(fanouts)))), rows
        )

    run_sample_call(context, space, call, render, explain=explain)
