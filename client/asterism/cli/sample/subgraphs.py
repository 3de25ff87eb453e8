"""`asterism sample subgraph`, `ego`, `induced` and `labor`: subgraphs around nodes.

The nodes of a subgraph are numbered from 0 within each type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.option_values import parse_integers
from asterism.cli.options import GraphVersion, Space
from asterism.cli.output import table
from asterism.cli.sample.calls import run_read_call, run_sample_call
from asterism.cli.sample.node_ids import parse_node_ids
from asterism.cli.sample.options import (
    EdgeTypes,
    ExclusionOptions,
    ExpandAllHops,
    Fanout,
    InducedTypes,
    Nodes,
    ReturnedWeight,
    SampleCallOptions,
    SubgraphReplace,
    TemporalOptions,
    TraversalOptions,
    WeightOptions,
    Where,
)
from asterism.cli.sample.tables import MAX_SHOWN_ROWS, hops_table, truncated_title
from asterism.cli.typer_signatures import FormerName

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema


def subgraph(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    fanout: Fanout,
    edge_types: EdgeTypes = None,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    disjoint: Annotated[
        bool,
        typer.Option(
            "--disjoint", help="Sample a separate tree for every node; implied by --seed-time."
        ),
    ] = False,
    expand_all_hops: Annotated[ExpandAllHops, FormerName("--every", value=True)] = False,
    replace: SubgraphReplace = False,
    weights: WeightOptions,
    temporal: TemporalOptions,
    call_options: SampleCallOptions,
) -> None:
    """Sample the k-hop neighborhood of the given nodes as one subgraph."""
    fanouts = parse_integers("--fanout", fanout, minimum=-1)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_subgraph(
            parse_node_ids(graph, nodes),
            fanouts,
            edge_types or None,
            replace=replace,
            disjoint=disjoint or temporal.seed_time is not None,
            expand=_expand(expand_all_hops),
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            **temporal.arguments(len(nodes)),
            **call_options.arguments(),
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        return hops_table("subgraph", sample, len(fanouts))

    run_sample_call(context, space, call, render, explain=call_options.explain)


def ego(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    fanout: Fanout,
    edge_types: EdgeTypes = None,
    induced_types: InducedTypes = None,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    union: Annotated[
        bool,
        typer.Option(
            "--union", help="Return one subgraph of the union of all nodes, not one per node."
        ),
        FormerName("--merged", value=True),
    ] = False,
    expand_all_hops: Annotated[ExpandAllHops, FormerName("--every", value=True)] = False,
    replace: SubgraphReplace = False,
    weights: WeightOptions,
    call_options: SampleCallOptions,
) -> None:
    """Sample nodes around each given node, with all edges between them (ShaDow)."""
    fanouts = parse_integers("--fanout", fanout, minimum=-1)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_ego_subgraphs(
            parse_node_ids(graph, nodes),
            fanouts,
            edge_types or None,
            among=induced_types or None,
            replace=replace,
            disjoint=not union,
            expand=_expand(expand_all_hops),
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            **call_options.arguments(),
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = [(name, "nodes", *counts) for name, counts in sample.num_sampled_nodes.items()]
        rows += [(name, "edges", *counts) for name, counts in sample.num_sampled_edges.items()]
        return table("ego subgraphs", ("type", "element", "count"), rows)

    run_sample_call(context, space, call, render, explain=call_options.explain)


def _expand(all_hops: bool) -> str:
    return "every" if all_hops else "first"


def induced(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    edge_types: EdgeTypes = None,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weight: ReturnedWeight = "",
    where: Where = "",
    graph_version: GraphVersion = None,
) -> None:
    """Return all edges between the given nodes."""

    def call(graph: Graph) -> Any:
        return graph.induced_subgraph(
            parse_node_ids(graph, nodes),
            edge_types or None,
            weight=weight,
            where=where,
            weights=True,
            version=graph_version,
            **traversal.arguments(),
            **exclusion.arguments(graph),
        )

    def render(result: Any, schema: Schema) -> RenderableType:
        cells = []
        for name in result.row:
            src, _, dst = name.split(":")
            columns = (
                result.nodes[src][result.row[name]],
                result.nodes[dst][result.col[name]],
                result.edge_ids[name],
                result.weights[name],
            )
            cells += [
                (name, *cell)
                for cell in zip(
                    *(column[:MAX_SHOWN_ROWS].tolist() for column in columns), strict=True
                )
            ]
        title = truncated_title("edges", sum(len(column) for column in result.row.values()))
        return table(
            title, ("type", "source", "destination", "edge id", "weight"), cells[:MAX_SHOWN_ROWS]
        )

    run_read_call(context, space, call, render)


def labor(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    fanout: Annotated[
        str,
        typer.Option(
            metavar="N[,N...]",
            help="Expected number of neighbors per node and edge type in each hop; -1 takes all.",
        ),
    ],
    edge_types: EdgeTypes = None,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    importance: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=-1,
            max=100,
            help="Importance sampling steps, which favor shared neighbors; -1 repeats them until "
            "convergence.",
        ),
    ] = 0,
    layer_dependency: Annotated[
        bool,
        typer.Option(
            "--layer-dependency", help="Use the same random variate of a node in all hops (DGL)."
        ),
        FormerName("--same", value=True),
    ] = False,
    expand_all_hops: Annotated[ExpandAllHops, FormerName("--first", value=False)] = True,
    weights: WeightOptions,
    call_options: SampleCallOptions,
) -> None:
    """Sample the k-hop neighborhood of the given nodes by layer-neighbor sampling (LABOR).

    For the same fanout, LABOR samples fewer distinct nodes.
    """
    fanouts = parse_integers("--fanout", fanout, minimum=-1)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_labor(
            parse_node_ids(graph, nodes),
            fanouts,
            edge_types or None,
            importance=importance,
            layer_dependency=layer_dependency,
            expand=_expand(expand_all_hops),
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            **call_options.arguments(),
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        return hops_table("labor", sample, len(fanouts))

    run_sample_call(context, space, call, render, explain=call_options.explain)
