"""`asterism sample walk`, `pinsage`, `pairs` and `subgraph`: random walks, what they visit most, the skip-gram pairs that they make, neighborhoods
numbered for models."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.drawing import (
    SHOWN,
    Along,
    Count,
    Direction,
    Explain,
    Last,
    Nodes,
    NodeType,
    Seed,
    Space,
    Strict,
    Uniform,
    Until,
    Version,
    Weight,
    Where,
    draw,
    in_a_row,
    read,
    rows_table,
    seen,
    split_types,
    titled,
    whole_numbers,
)
from asterism.cli.naming import starts, there
from asterism.cli.output import table
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_proto.schema import Schema

Step = Annotated[
    list[str] | None, typer.Option(metavar="TYPE[,TYPE...]", help="A step: its edge types, * for all. Repeat for more. Default: all, always.")
]
AsPath = Annotated[str | None, typer.Option("--metapath", help="The steps as PGLBox writes them: user2buys2item-item2bought_by2user.")]
Length = Annotated[int | None, typer.Option(min=0, help="Steps of a walk. Default: as many as are named.")]


def _metapath(graph: Graph, text: str) -> Any:
    found = graph.metapaths(text)
    if len(found) != 1:
        raise InvalidRequest(f"--metapath {text!r}: {len(found)} metapaths; walk one at a time, or ask for pairs")
    return found[0]


def _refuse_both(step: list[str] | None, metapath: str | None) -> None:
    if step and metapath is not None:
        raise InvalidRequest(f"both --metapath {metapath!r} and --step {step[0]!r}; say the steps in one way")


def _steps(graph: Graph, step: list[str] | None, metapath: str | None) -> Any:
    return _metapath(graph, metapath) if metapath is not None else [split_types(text) for text in step] if step else None


def walk(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    step: Step = None,
    metapath: AsPath = None,
    length: Length = None,
    walks: Annotated[int | None, typer.Option(min=1, help="Walks from each node.")] = None,
    different: Annotated[bool, typer.Option("--distinct", help="First steps of a node's walks go to different neighbors.")] = False,
    p: Annotated[float, typer.Option("-p", help="A step back is 1 / p times as likely as its weight makes it.")] = 1.0,
    q: Annotated[float, typer.Option("-q", help="A step away from the node before, to one not joined to it, is 1 / q times as likely.")] = 1.0,
    restart: Annotated[float, typer.Option(help="The probability that a step leads back to the start.")] = 0.0,
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
    _refuse_both(step, metapath)

    def ask(graph: Graph, asked: Any) -> Any:
        return asked.random_walk(
            starts(graph, nodes),
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
        steps = [in_a_row(walked[1:]).replace(",", " >") for walked in sample.nodes]
        return rows_table("walks", ("from", "by way of"), sample.nodes[:, 0].tolist(), [row or "nowhere" for row in steps], len(sample))

    draw(context, space, ask, render, explain=explain)


def pinsage(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    step: Step = None,
    metapath: AsPath = None,
    count: Count = 10,
    walks: Annotated[int, typer.Option(min=1, help="Walks from each node.")] = 100,
    traversals: Annotated[int, typer.Option(min=1, help="How often a walk goes over all steps, at most.")] = 2,
    termination: Annotated[float, typer.Option(help="The probability that a walk ends before a traversal, any but its first.")] = 0.5,
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Give the nodes that short walks from each given node visit most, as PinSAGE has its neighbors."""
    _refuse_both(step, metapath)

    def ask(graph: Graph, asked: Any) -> Any:
        return asked.sample_pinsage(
            starts(graph, nodes),
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
        told = []
        for row, counts in zip(sample.nodes[:SHOWN], sample.counts[:SHOWN], strict=True):
            hit = there(row)
            told.append(", ".join(f"{node} ({n})" for node, n in zip(row[hit].tolist(), counts[hit].tolist(), strict=True)) or "nowhere")
        return rows_table("visits", ("from", "node (visits)"), nodes, told, len(nodes))

    draw(context, space, ask, render, explain=explain)


def pairs(
    context: typer.Context,
    space: Space,
    metapaths: Annotated[str, typer.Argument(metavar="METAPATHS", help="As PGLBox writes them: user2buys2item-item2bought_by2user;item2near2item.")],
    *,
    length: Annotated[int, typer.Option(min=1, help="Steps of a walk.")] = 8,
    walks: Annotated[int, typer.Option(min=1, help="Walks from each node.")] = 1,
    window: Annotated[int, typer.Option(min=1, help="Places before and behind a node that pair with it.")] = 1,
    negatives: Annotated[int, typer.Option(min=0, help="Nodes drawn beside each pair, of the type of its second one.")] = 0,
    excluded: Annotated[str, typer.Option(help="Pairs of types to leave out: user2item;item2item.")] = "",
    batch_size: Annotated[int, typer.Option(min=1, help="Nodes that the walks of a batch start from.")] = 1024,
    batches: Annotated[int, typer.Option(min=1, help="How many batches of the epoch.")] = 1,
    independent: Annotated[bool, typer.Option("--independent", help="First steps of a node's walks may go to the same neighbor.")] = False,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
) -> None:
    """Draw the first batches of an epoch of skip-gram pairs of walks."""

    def ask(graph: Graph) -> Any:
        passes = graph.walk_pairs(
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
        return list(islice(passes, batches))

    def render(found: Any, schema: Schema) -> RenderableType:
        rows = [
            (batch.metapath, *pair.tolist(), in_a_row(batch.negatives[i]) if batch.negatives is not None else "-")
            for batch in found
            for i, pair in enumerate(batch.pairs[:SHOWN])
        ]
        return table(titled("pairs", sum(map(len, found))), ("metapath", "node", "near", "negatives"), rows[:SHOWN])

    read(context, space, ask, render)


def subgraph(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    fanout: Annotated[str, typer.Option(metavar="N[,N...]", help="Neighbors of each node and edge type, hop by hop; -1 is all.")],
    kinds: Along = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    disjoint: Annotated[bool, typer.Option("--disjoint", help="A tree of its own for every node; always with --until.")] = False,
    every: Annotated[
        bool, typer.Option("--every", help="Nodes are gone on from in every hop behind that which met them, as in DGL's blocks.")
    ] = False,
    repeats: Annotated[bool, typer.Option("--repeats", help="A neighbor may come twice: draw with replacement.")] = False,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    until: Until = None,
    strict: Strict = False,
    last: Last = False,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw the neighborhood of the given nodes as one subgraph, numbered from 0 by type."""
    fanouts = whole_numbers("--fanout", fanout, least=-1)

    def ask(graph: Graph, asked: Any) -> Any:
        return asked.sample_subgraph(
            starts(graph, nodes),
            fanouts,
            kinds or None,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            replace=repeats,
            direction=direction,
            disjoint=disjoint or until is not None,
            **seen(nodes, until, strict=strict, last=last),
            expand="every" if every else "first",
            seed=seed,
            version=at,
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        counted = [(name, "nodes", *counts) for name, counts in sample.num_sampled_nodes.items()]
        counted += [(name, "edges", "", *counts) for name, counts in sample.num_sampled_edges.items()]
        return table("subgraph", ("type", "what", "given", *(f"hop {h + 1}" for h in range(len(fanouts)))), counted)

    draw(context, space, ask, render, explain=explain)


def ego(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    fanout: Annotated[str, typer.Option(metavar="N[,N...]", help="Neighbors of each node and edge type, hop by hop; -1 is all.")],
    kinds: Along = None,
    among: Annotated[
        list[str] | None, typer.Option("--among", metavar="TYPE", help="Give edges of this type among the nodes. Default: those followed.")
    ] = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    merged: Annotated[bool, typer.Option("--merged", help="One subgraph of all nodes, not one around each.")] = False,
    every: Annotated[bool, typer.Option("--every", help="Nodes are gone on from in every hop behind that which met them, as DGL does.")] = False,
    repeats: Annotated[bool, typer.Option("--repeats", help="A neighbor may come twice: draw with replacement.")] = False,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw nodes around each given one, with all edges among them (ShaDow)."""
    fanouts = whole_numbers("--fanout", fanout, least=-1)

    def ask(graph: Graph, asked: Any) -> Any:
        return asked.sample_ego_subgraphs(
            starts(graph, nodes),
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
        counted = [(name, "nodes", *counts) for name, counts in sample.num_sampled_nodes.items()]
        counted += [(name, "edges", *counts) for name, counts in sample.num_sampled_edges.items()]
        return table("ego subgraphs", ("type", "what", "how many"), counted)

    draw(context, space, ask, render, explain=explain)


def induced(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: Along = None,
    node_type: NodeType = None,
    direction: Direction = "out",
    weight: Annotated[str, typer.Option("--weight", metavar="NAME", help="Give the weights of this name. Default: the edges' own.")] = "",
    where: Where = "",
    at: Version = None,
) -> None:
    """Give all edges among the given nodes."""

    def ask(graph: Graph) -> Any:
        return graph.induced_subgraph(
            starts(graph, nodes), kinds or None, ntype=node_type, weight=weight, where=where, direction=direction, weights=True, version=at
        )

    def render(found: Any, schema: Schema) -> RenderableType:
        cells = []
        for name in found.row:
            src, _, dst = name.split(":")
            columns = found.nodes[src][found.row[name]], found.nodes[dst][found.col[name]], found.edge_ids[name], found.weights[name]
            cells += [(name, *cell) for cell in zip(*(column[:SHOWN].tolist() for column in columns), strict=True)]
        title = titled("edges", sum(len(column) for column in found.row.values()))
        return table(title, ("type", "source", "destination", "edge id", "weight"), cells[:SHOWN])

    read(context, space, ask, render)
