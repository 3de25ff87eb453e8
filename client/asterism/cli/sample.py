"""`asterism sample`: draw nodes, edges, neighbors and fanouts, and see how long it takes; the rarer
operators have modules of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli import hgt, labor, layers, negatives, pglbox, reads, walks
from asterism.cli.node_ids import parse_node_ids, present_nodes
from asterism.cli.output import table
from asterism.cli.sample_options import (
    MAX_SHOWN_ROWS,
    AsOfTime,
    Count,
    Direction,
    Distinct,
    Explain,
    LatestEdges,
    Nodes,
    NodeType,
    Probabilities,
    Seed,
    Space,
    StrictTime,
    Uniform,
    Version,
    Weight,
    Where,
    add_probability_column,
    format_nodes,
    run_sample_call,
    temporal_arguments,
    truncated_title,
    type_names,
)
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema

app = typer.Typer(
    no_args_is_help=True, help="Draws from a space's current version, or from a given one."
)


@app.command(
    epilog="Example: asterism sample nodes shop -n 1000 --type item --weight popular --json"
)
def nodes(
    context: typer.Context,
    space: Space,
    *,
    count: Count = 10,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--type", help="Of this node type (repeat for several). Default: all."),
    ] = None,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    distinct: Distinct = False,
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw nodes by weight."""

    def render(sample: Any, schema: Schema) -> RenderableType:
        names, columns = add_probability_column(("type", "node"), [sample.nodes], sample)
        return table(
            truncated_title("nodes", len(sample)),
            names,
            zip(type_names(schema, "node", sample.types[:MAX_SHOWN_ROWS]), *columns, strict=True),
        )

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_nodes(
            count,
            kinds or None,
            weighted=not uniform,
            weight=weight,
            where=where,
            replace=not distinct,
            probabilities=probabilities,
            seed=seed,
            version=at,
        )

    run_sample_call(context, space, call, render, explain=explain)


@app.command(
    epilog=(
        "Example: asterism sample edges shop -n 5 --type user:buys:item --where 'weight > 2' "
        "--probabilities"
    )
)
def edges(
    context: typer.Context,
    space: Space,
    *,
    count: Count = 10,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--type", help="Of this edge type (repeat for several). Default: all."),
    ] = None,
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    distinct: Distinct = False,
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw edges by weight."""

    def render(sample: Any, schema: Schema) -> RenderableType:
        sampled_columns = [sample.src, sample.dst, sample.edge_ids, sample.weights]
        names, columns = add_probability_column(
            ("type", "from", "to", "edge id", "weight"), sampled_columns, sample
        )
        return table(
            truncated_title("edges", len(sample)),
            names,
            zip(type_names(schema, "edge", sample.types[:MAX_SHOWN_ROWS]), *columns, strict=True),
        )

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_edges(
            count,
            kinds or None,
            weighted=not uniform,
            weight=weight,
            where=where,
            replace=not distinct,
            probabilities=probabilities,
            seed=seed,
            version=at,
        )

    run_sample_call(context, space, call, render, explain=explain)


@app.command(epilog="Example: asterism sample neighbors shop 17 23 --type user:buys:item -n 5")
def neighbors(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    kinds: Annotated[
        list[str], typer.Option("--type", help="Along this edge type (repeat for several).")
    ],
    count: Count = 10,
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    distinct: Distinct = False,
    until: AsOfTime = None,
    strict: StrictTime = False,
    last: LatestEdges = False,
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw neighbors of each given node."""

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = []
        for i, node in enumerate(nodes[:MAX_SHOWN_ROWS]):
            row_text = format_nodes(
                sample.nodes[i], None if sample.probabilities is None else sample.probabilities[i]
            )
            rows.append((node, row_text or "no neighbors"))
        return table(truncated_title("neighbors", len(nodes)), ("node", "drawn neighbors"), rows)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_neighbors(
            parse_node_ids(graph, nodes),
            kinds,
            count,
            ntype=node_type,
            direction=direction,
            weighted=not uniform,
            weight=weight,
            where=where,
            replace=not (distinct or last),
            probabilities=probabilities,
            **temporal_arguments(nodes, until, strict=strict, latest=last),
            seed=seed,
            version=at,
        )

    run_sample_call(context, space, call, render, explain=explain)


def parse_hop(text: str) -> tuple[list[str], int]:
    """The edge types and the count of ``TYPE[,TYPE...]=COUNT``."""
    names, equals, count = text.rpartition("=")
    if not equals or not names or not count.isdigit():
        raise InvalidRequest(
            f"--hop {text!r}: expected TYPE=COUNT, such as user:buys:item=5; several types "
            "with commas"
        )
    return names.split(","), int(count)


@app.command(
    epilog=(
        "Example: asterism sample fanout shop 17 23 --hop user:buys:item=5 --hop "
        "item:bought_by:user=3"
    )
)
def fanout(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    hop: Annotated[
        list[str],
        typer.Option(
            metavar="TYPE=COUNT",
            help="A hop: edge types, with commas, and how many to draw. Repeat for more.",
        ),
    ],
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    where: Where = "",
    distinct: Distinct = False,
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
    explain: Explain = False,
) -> None:
    """Draw neighbors of neighbors, hop after hop."""
    hops = [parse_hop(text) for text in hop]

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = []
        for i, h in enumerate(sample.hops):
            first = format_nodes(
                h.nodes[:10], None if h.probabilities is None else h.probabilities[:10]
            )
            rows.append((i + 1, hop[i], len(h), int(present_nodes(h.nodes).sum()), first))
        return table("hops", ("hop", "drawn", "places", "filled", "the first ones"), rows)

    def call(graph: Graph, sampler: Any) -> Any:
        metapath, counts = [names for names, _ in hops], [count for _, count in hops]
        return sampler.sample_fanout(
            parse_node_ids(graph, nodes),
            metapath,
            counts,
            ntype=node_type,
            direction=direction,
            weighted=not uniform,
            weight=weight,
            where=where,
            replace=not distinct,
            probabilities=probabilities,
            seed=seed,
            version=at,
        )

    run_sample_call(context, space, call, render, explain=explain)


for _name, _command, _examples in (
    ("like", negatives.like, "Example: asterism sample like shop 17 23 --node-type item -n 5"),
    (
        "negatives",
        negatives.negatives,
        "Example: asterism sample negatives shop 17,3 23,40 -n 5 --type item --but user:buys:item",
    ),
    ("labels", negatives.labels, "Example: asterism sample labels molecules -n 32"),
    (
        "walk",
        walks.walk,
        (
            'Example: asterism sample walk shop 17 --metapath "user2buys2item-item2bought_by2user" '
            "--length 24 --walks 10"
        ),
    ),
    (
        "pinsage",
        walks.pinsage,
        (
            "Example: asterism sample pinsage shop 17 --metapath "
            '"item2bought_by2user-user2buys2item" -n 10 --walks 200 --uniform'
        ),
    ),
    (
        "pairs",
        walks.pairs,
        (
            'Example: asterism sample pairs shop "user2follows2user" --length 8 --window 3 '
            "--negatives 2 --json"
        ),
    ),
    ("pglbox", pglbox.pglbox, pglbox.EXAMPLES),
    (
        "subgraph",
        walks.subgraph,
        (
            "Example: asterism sample subgraph shop 17 23 --fanout 15,10 --type "
            "user:follows:user --direction in"
        ),
    ),
    (
        "ego",
        walks.ego,
        (
            "Example: asterism sample ego shop 17 23 --fanout 10,5 --type user:follows:user "
            "--direction in"
        ),
    ),
    (
        "induced",
        walks.induced,
        "Example: asterism sample induced shop 17 23 31 --type user:follows:user",
    ),
    (
        "labor",
        labor.labor,
        (
            "Example: asterism sample labor shop 17 23 --fanout 15,10 --type user:follows:user "
            "--direction in --importance 1"
        ),
    ),
    (
        "hgt",
        hgt.hgt,
        (
            "Example: asterism sample hgt shop 17 23 --node-type user --count user=64,64 --count "
            "item=64,64"
        ),
    ),
    (
        "layer",
        layers.layer,
        (
            "Example: asterism sample layer shop 17 23 31 --type user:buys:item -n 64 --measure "
            "squares --distinct"
        ),
    ),
    (
        "adjacency",
        layers.adjacency,
        "Example: asterism sample adjacency shop --rows 17,23 --cols 3,40,41 --type user:buys:item",
    ),
    ("top", reads.top, "Example: asterism sample top shop 17 23 --type user:buys:item -k 3"),
    (
        "pagerank",
        reads.pagerank,
        (
            "Example: asterism sample pagerank shop 17 23 --type user:follows:user -k 32 "
            "--epsilon 1e-5"
        ),
    ),
    (
        "all",
        reads.all_neighbors,
        "Example: asterism sample all shop 17 --type user:buys:item --sort weight",
    ),
    (
        "degrees",
        reads.degrees,
        "Example: asterism sample degrees shop 17 23 --type user:buys:item --weight weight",
    ),
    ("graphs", reads.graphs, "Example: asterism sample graphs molecules benzene toluene"),
):
    app.command(_name, epilog=_examples)(_command)
