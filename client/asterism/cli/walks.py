"""`asterism sample walk`, `pinsage`, `pairs` and `subgraph`: random walks, what they visit most,
the skip-gram pairs that they make, neighborhoods numbered for models."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.node_ids import parse_node_ids, present_nodes
from asterism.cli.output import table
from asterism.cli.sample_options import (
    MAX_SHOWN_ROWS,
    AsOfTime,
    Count,
    Direction,
    EdgeTypes,
    Explain,
    LatestEdges,
    Nodes,
    NodeType,
    Seed,
    Space,
    StrictTime,
    Uniform,
    Version,
    Weight,
    Where,
    format_nodes,
    parse_integers,
    rows_table,
    run_read_call,
    run_sample_call,
    split_types,
    temporal_arguments,
    truncated_title,
)
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema

Step = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TYPE[,TYPE...]",
        help="A step: its edge types, * for all. Repeat for more. Default: all, always.",
    ),
]
MetapathOption = Annotated[
    str | None,
    typer.Option(
        "--metapath", help="The steps as PGLBox writes them: user2buys2item-item2bought_by2user."
    ),
]
Length = Annotated[
    int | None, typer.Option(min=0, help="Steps of a walk. Default: as many as are named.")
]


def _metapath(graph: Graph, text: str) -> Any:
    metapaths = graph.metapaths(text)
    if len(metapaths) != 1:
        raise InvalidRequest(
            f"--metapath {text!r}: {len(metapaths)} metapaths; walk one at a time, or ask for pairs"
        )
    return metapaths[0]


def _require_one_form(step: list[str] | None, metapath: str | None) -> None:
    if step and metapath is not None:
        raise InvalidRequest(
            f"both --metapath {metapath!r} and --step {step[0]!r}; say the steps in one way"
        )


def _steps(graph: Graph, step: list[str] | None, metapath: str | None) -> Any:
    return (
        _metapath(graph, metapath)
        if metapath is not None
        else [split_types(text) for text in step]
        if step
        else None
    )


def walk(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    step: Step = None,
    metapath: MetapathOption = None,
    length: Length = None,
    walks: Annotated[int | None, typer.Option(min=1, help="Walks from each node.")] = None,
    different: Annotated[
        bool,
        typer.Option("--distinct", help="First steps of a node's walks go to different neighbors."),
    ] = False,
    p: Annotated[
        float,
        typer.Option("-p", help="A step back is 1 / p times as likely as its weight makes it."),
    ] = 1.0,
    q: Annotated[
        float,
        typer.Option(
            "-q",
            help=(
                "A step away from the node before, to one not joined to it, is 1 / q times "
                "as likely."
            ),
        ),
    ] = 1.0,
    restart: Annotated[
        float, typer.Option(help="The probability that a step leads back to the start.")
    ] = 0.0,
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Walk from each given node."""
    _require_one_form(step, metapath)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.random_walk(
            parse_node_ids(graph, nodes),
            _steps(graph, step, metapath),
            length,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            p=p,
            q=q,
            restart=restart,
            direction=direction,
            walks=walks,
            first_step="distinct" if different else "independent",
            seed=seed,
            version=at,
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        steps = [
            format_nodes(nodes_of_walk[1:]).replace(",", " >") for nodes_of_walk in sample.nodes
        ]
        return rows_table(
            "walks",
            ("from", "by way of"),
            sample.nodes[:, 0].tolist(),
            [row or "nowhere" for row in steps],
            len(sample),
        )

    run_sample_call(context, space, call, render, explain=explain)


def pinsage(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    step: Step = None,
    metapath: MetapathOption = None,
    count: Count = 10,
    walks: Annotated[int, typer.Option(min=1, help="Walks from each node.")] = 100,
    traversals: Annotated[
        int, typer.Option(min=1, help="How often a walk goes over all steps, at most.")
    ] = 2,
    termination: Annotated[
        float,
        typer.Option(
            help="The probability that a walk ends before a traversal, any but its first."
        ),
    ] = 0.5,
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Give the nodes that short walks from each given node visit most, as PinSAGE has its
    neighbors.
    """
    _require_one_form(step, metapath)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_pinsage(
            parse_node_ids(graph, nodes),
            _steps(graph, step, metapath),
            count,
            walks=walks,
            traversals=traversals,
            termination=termination,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            direction=direction,
            seed=seed,
            version=at,
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        row_texts = []
        for row, counts in zip(
            sample.nodes[:MAX_SHOWN_ROWS], sample.counts[:MAX_SHOWN_ROWS], strict=True
        ):
            present = present_nodes(row)
            row_texts.append(
                ", ".join(
                    f"{node} ({n})"
                    for node, n in zip(row[present].tolist(), counts[present].tolist(), strict=True)
                )
                or "nowhere"
            )
        return rows_table("visits", ("from", "node (visits)"), nodes, row_texts, len(nodes))

    run_sample_call(context, space, call, render, explain=explain)


def pairs(
    context: typer.Context,
    space: Space,
    metapaths: Annotated[
        str,
        typer.Argument(
            metavar="METAPATHS",
            help="As PGLBox writes them: user2buys2item-item2bought_by2user;item2near2item.",
        ),
    ],
    *,
    length: Annotated[int, typer.Option(min=1, help="Steps of a walk.")] = 8,
    walks: Annotated[int, typer.Option(min=1, help="Walks from each node.")] = 1,
    window: Annotated[
        int, typer.Option(min=1, help="Places before and behind a node that pair with it.")
    ] = 1,
    negatives: Annotated[
        int,
        typer.Option(min=0, help="Nodes drawn beside each pair, of the type of its second one."),
    ] = 0,
    excluded: Annotated[
        str, typer.Option(help="Pairs of types to leave out: user2item;item2item.")
    ] = "",
    batch_size: Annotated[
        int, typer.Option(min=1, help="Nodes that the walks of a batch start from.")
    ] = 1024,
    batches: Annotated[int, typer.Option(min=1, help="How many batches of the epoch.")] = 1,
    independent: Annotated[
        bool,
        typer.Option(
            "--independent", help="First steps of a node's walks may go to the same neighbor."
        ),
    ] = False,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
) -> None:
    """Draw the first batches of an epoch of skip-gram pairs of walks."""

    def call(graph: Graph) -> Any:
        batches_of_pairs = graph.walk_pairs(
            metapaths,
            length,
            walks=walks,
            window=window,
            batch_size=batch_size,
            first_step="independent" if independent else "distinct",
            weighted=not uniform,
            weight=weight,
            where=where,
            negatives=negatives,
            excluded=excluded,
            seed=seed,
            version=at,
        )
        return list(islice(batches_of_pairs, batches))

    def render(result: Any, schema: Schema) -> RenderableType:
        rows = [
            (
                batch.metapath,
                *pair.tolist(),
                format_nodes(batch.negatives[i]) if batch.negatives is not None else "-",
            )
            for batch in result
            for i, pair in enumerate(batch.pairs[:MAX_SHOWN_ROWS])
        ]
        return table(
            truncated_title("pairs", sum(map(len, result))),
            ("metapath", "node", "near", "negatives"),
            rows[:MAX_SHOWN_ROWS],
        )

    run_read_call(context, space, call, render)


def subgraph(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    fanout: Annotated[
        str,
        typer.Option(
            metavar="N[,N...]", help="Neighbors of each node and edge type, hop by hop; -1 is all."
        ),
    ],
    kinds: EdgeTypes = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    disjoint: Annotated[
        bool,
        typer.Option("--disjoint", help="A tree of its own for every node; always with --until."),
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--every",
            help=(
                "Nodes are gone on from in every hop behind that which met them, as in DGL's "
                "blocks."
            ),
        ),
    ] = False,
    repeats: Annotated[
        bool, typer.Option("--repeats", help="A neighbor may come twice: draw with replacement.")
    ] = False,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    until: AsOfTime = None,
    strict: StrictTime = False,
    last: LatestEdges = False,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw the neighborhood of the given nodes as one subgraph, numbered from 0 by type."""
    fanouts = parse_integers("--fanout", fanout, minimum=-1)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_subgraph(
            parse_node_ids(graph, nodes),
            fanouts,
            kinds or None,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            replace=repeats,
            direction=direction,
            disjoint=disjoint or until is not None,
            **temporal_arguments(nodes, until, strict=strict, latest=last),
            expand="every" if every else "first",
            seed=seed,
            version=at,
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = [(name, "nodes", *counts) for name, counts in sample.num_sampled_nodes.items()]
        rows += [(name, "edges", "", *counts) for name, counts in sample.num_sampled_edges.items()]
        return table(
            "subgraph",
            ("type", "what", "given", *(f"hop {h + 1}" for h in range(len(fanouts)))),
            rows,
        )

    run_sample_call(context, space, call, render, explain=explain)


def ego(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    fanout: Annotated[
        str,
        typer.Option(
            metavar="N[,N...]", help="Neighbors of each node and edge type, hop by hop; -1 is all."
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
    merged: Annotated[
        bool, typer.Option("--merged", help="One subgraph of all nodes, not one around each.")
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--every",
            help="Nodes are gone on from in every hop behind that which met them, as DGL does.",
        ),
    ] = False,
    repeats: Annotated[
        bool, typer.Option("--repeats", help="A neighbor may come twice: draw with replacement.")
    ] = False,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw nodes around each given one, with all edges among them (ShaDow)."""
    fanouts = parse_integers("--fanout", fanout, minimum=-1)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_ego_subgraphs(
            parse_node_ids(graph, nodes),
            fanouts,
            kinds or None,
            among=among or None,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            replace=repeats,
            direction=direction,
            disjoint=not merged,
            expand="every" if every else "first",
            seed=seed,
            version=at,
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = [(name, "nodes", *counts) for name, counts in sample.num_sampled_nodes.items()]
        rows += [(name, "edges", *counts) for name, counts in sample.num_sampled_edges.items()]
        return table("ego subgraphs", ("type", "what", "how many"), rows)

    run_sample_call(context, space, call, render, explain=explain)


def induced(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: EdgeTypes = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    weight: Annotated[
        str,
        typer.Option(
            "--weight",
            metavar="NAME",
            help="Give the weights of this name. Default: the edges' own.",
        ),
    ] = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give all edges among the given nodes."""

    def call(graph: Graph) -> Any:
        return graph.induced_subgraph(
            parse_node_ids(graph, nodes),
            kinds or None,
            ntype=node_type,
            weight=weight,
            where=where,
            direction=direction,
            weights=True,
            version=at,
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
