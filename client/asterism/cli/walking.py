"""`asterism sample walk`, `pairs` and `subgraph`: random walks, the skip-gram pairs that they make, neighborhoods numbered for models."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.drawing import (
    SHOWN,
    Along,
    Direction,
    Explain,
    Nodes,
    NodeType,
    Seed,
    Space,
    Uniform,
    Version,
    Weight,
    Where,
    draw,
    in_a_row,
    read,
    rows_table,
    split_types,
    titled,
    whole_numbers,
)
from asterism.cli.output import table
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_proto.schema import Schema

Length = Annotated[int | None, typer.Option(min=0, help="Steps of a walk. Default: as many as are named.")]


def _metapath(graph: Graph, text: str) -> Any:
    found = graph.metapaths(text)
    if len(found) != 1:
        raise InvalidRequest(f"--metapath {text!r}: {len(found)} metapaths; walk one at a time, or ask for pairs")
    return found[0]


def walk(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    step: Annotated[
        list[str] | None, typer.Option(metavar="TYPE[,TYPE...]", help="A step: its edge types, * for all. Repeat for more. Default: all, always.")
    ] = None,
    metapath: Annotated[str | None, typer.Option(help="The steps as PGLBox writes them: user2buys2item-item2bought_by2user.")] = None,
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
    if step and metapath is not None:
        raise InvalidRequest(f"both --metapath {metapath!r} and --step {step[0]!r}; say the steps in one way")

    def ask(graph: Graph, asked: Any) -> Any:
        steps: Any = [split_types(text) for text in step] if step else None
        if metapath is not None:
            steps = _metapath(graph, metapath)
        return asked.random_walk(
            nodes,
            steps,
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
    disjoint: Annotated[bool, typer.Option("--disjoint", help="A tree of its own for every node.")] = False,
    every: Annotated[
        bool, typer.Option("--every", help="Nodes are gone on from in every hop behind that which met them, as in DGL's blocks.")
    ] = False,
    repeats: Annotated[bool, typer.Option("--repeats", help="A neighbor may come twice: draw with replacement.")] = False,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw the neighborhood of the given nodes as one subgraph, numbered from 0 by type."""
    fanouts = whole_numbers("--fanout", fanout, least=-1)

    def ask(graph: Graph, asked: Any) -> Any:
        return asked.sample_subgraph(
            nodes,
            fanouts,
            kinds or None,
            ntype=node_type,
            weighted=not uniform,
            weight=weight,
            where=where,
            replace=repeats,
            direction=direction,
            disjoint=disjoint,
            expand="every" if every else "first",
            seed=seed,
            version=at,
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        counted = [(name, "nodes", *counts) for name, counts in sample.num_sampled_nodes.items()]
        counted += [(name, "edges", "", *counts) for name, counts in sample.num_sampled_edges.items()]
        return table("subgraph", ("type", "what", "given", *(f"hop {h + 1}" for h in range(len(fanouts)))), counted)

    draw(context, space, ask, render, explain=explain)
