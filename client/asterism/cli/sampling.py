"""`asterism sample`: draw nodes, edges, neighbors and fanouts, and see how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from asterism.cli.output import table
from asterism.cli.session import session_of
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_proto.schema import Schema

Sample = TypeVar("Sample")

app = typer.Typer(no_args_is_help=True, help="Draws from a space's current version, or from a given one.")

SHOWN = 20

Space = Annotated[str, typer.Argument(metavar="SPACE", help="The space to draw from.")]
Nodes = Annotated[list[int], typer.Argument(metavar="NODE...", help="Where to start.")]
Count = Annotated[int, typer.Option("-n", "--count", min=0, help="How many to draw.")]
Uniform = Annotated[bool, typer.Option("--uniform", help="Every one the same chance, whatever its weight.")]
Weight = Annotated[
    str, typer.Option("--weight", metavar="NAME", help="Draw by the weights of this name, that all these types have. Default: their own.")
]
Distinct = Annotated[bool, typer.Option("--distinct", help="None twice: draw without replacement.")]
Probabilities = Annotated[
    bool, typer.Option("--probabilities", help="The probability of each draw too; without replacement, given the earlier ones.")
]
Seed = Annotated[int | None, typer.Option(help="Repeat a draw: the same seed gives the same answer.")]
Version = Annotated[int | None, typer.Option("--at", min=1, metavar="VERSION", help="Draw from this version.")]
NodeType = Annotated[str | None, typer.Option(help="The type of the nodes that one starts from, where the edge types do not say.")]
Direction = Annotated[str, typer.Option(metavar="out|in", help="Along the edges, or against them.")]


def _draw(context: typer.Context, space: str, ask: Callable[[Graph], Sample], render: Callable[[Sample, Schema], RenderableType]) -> None:
    session = session_of(context)
    with session.client(reading=True) as client:
        graph = client.graph(space)
        schema = graph.schema
        started = time.perf_counter()
        sample: Any = ask(graph)
        milliseconds = (time.perf_counter() - started) * 1000
    session.output.result(sample, lambda: render(sample, schema))
    session.output.remark(f"[dim]{milliseconds:.1f} ms, version {sample.version}, --seed {sample.seed} repeats it[/dim]")


def _names(schema: Schema, element: str, ids: Any) -> list[str]:
    kinds = schema.node_types if element == "node" else schema.edge_types
    return [kinds[i].name if i >= 0 else "-" for i in ids.tolist()]


def _columns(names: tuple[str, ...], columns: list[Any], sample: Any) -> tuple[tuple[str, ...], list[list[Any]]]:
    """A table's head and its first columns of cells, with probabilities where there are any."""
    if sample.probabilities is not None:
        names, columns = (*names, "probability"), [*columns, sample.probabilities]
    return names, [column[:SHOWN].tolist() for column in columns]


def _nodes_shown(nodes: Any, probabilities: Any) -> list[str]:
    """Nodes, each with the probability of its draw where that is known."""
    if probabilities is None:
        return [str(node) for node in nodes.tolist()]
    return [f"{node} ({p:.4g})" for node, p in zip(nodes.tolist(), probabilities.tolist(), strict=True)]


def _shown(title: str, total: int) -> str:
    return title if total <= SHOWN else f"{title} (the first {SHOWN} of {total:,})"


@app.command(epilog="Example: asterism sample nodes shop -n 1000 --type item --weight popular --json")
def nodes(
    context: typer.Context,
    space: Space,
    *,
    count: Count = 10,
    type_names: Annotated[list[str] | None, typer.Option("--type", help="Of this node type (repeat for several). Default: all.")] = None,
    uniform: Uniform = False,
    weight: Weight = "",
    distinct: Distinct = False,
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
) -> None:
    """Draw nodes by weight."""

    def render(sample: Any, schema: Schema) -> RenderableType:
        names, columns = _columns(("type", "node"), [sample.nodes], sample)
        return table(_shown("nodes", len(sample)), names, zip(_names(schema, "node", sample.types[:SHOWN]), *columns, strict=True))

    def ask(graph: Graph) -> Any:
        return graph.sample_nodes(
            count, type_names or None, weighted=not uniform, weight=weight, replace=not distinct, probabilities=probabilities, seed=seed, version=at
        )

    _draw(context, space, ask, render)


@app.command(epilog="Example: asterism sample edges shop -n 5 --type user:buys:item --probabilities")
def edges(
    context: typer.Context,
    space: Space,
    *,
    count: Count = 10,
    type_names: Annotated[list[str] | None, typer.Option("--type", help="Of this edge type (repeat for several). Default: all.")] = None,
    uniform: Uniform = False,
    weight: Weight = "",
    distinct: Distinct = False,
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
) -> None:
    """Draw edges by weight."""

    def render(sample: Any, schema: Schema) -> RenderableType:
        drawn = [sample.src, sample.dst, sample.edge_ids, sample.weights]
        names, columns = _columns(("type", "from", "to", "edge id", "weight"), drawn, sample)
        return table(_shown("edges", len(sample)), names, zip(_names(schema, "edge", sample.types[:SHOWN]), *columns, strict=True))

    def ask(graph: Graph) -> Any:
        return graph.sample_edges(
            count, type_names or None, weighted=not uniform, weight=weight, replace=not distinct, probabilities=probabilities, seed=seed, version=at
        )

    _draw(context, space, ask, render)


@app.command(epilog="Example: asterism sample neighbors shop 17 23 --type user:buys:item -n 5")
def neighbors(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    type_names: Annotated[list[str], typer.Option("--type", help="Along this edge type (repeat for several).")],
    count: Count = 10,
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    distinct: Distinct = False,
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
) -> None:
    """Draw neighbors of each given node."""

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = []
        for i, node in enumerate(nodes[:SHOWN]):
            hit = sample.mask[i]
            drawn = _nodes_shown(sample.nodes[i][hit], None if sample.probabilities is None else sample.probabilities[i][hit])
            rows.append((node, ", ".join(drawn) or "no neighbors"))
        return table(_shown("neighbors", len(nodes)), ("node", "drawn neighbors"), rows)

    def ask(graph: Graph) -> Any:
        return graph.sample_neighbors(
            nodes,
            type_names,
            count,
            ntype=node_type,
            direction=direction,
            weighted=not uniform,
            weight=weight,
            replace=not distinct,
            probabilities=probabilities,
            seed=seed,
            version=at,
        )

    _draw(context, space, ask, render)


def parse_hop(text: str) -> tuple[list[str], int]:
    """The edge types and the count of ``TYPE[,TYPE...]=COUNT``."""
    names, equals, count = text.rpartition("=")
    if not equals or not names or not count.isdigit():
        raise InvalidRequest(f"--hop {text!r}: expected TYPE=COUNT, such as user:buys:item=5; several types with commas")
    return names.split(","), int(count)


@app.command(epilog="Example: asterism sample fanout shop 17 23 --hop user:buys:item=5 --hop item:bought_by:user=3")
def fanout(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    hop: Annotated[list[str], typer.Option(metavar="TYPE=COUNT", help="A hop: edge types, with commas, and how many to draw. Repeat for more.")],
    node_type: NodeType = None,
    direction: Direction = "out",
    uniform: Uniform = False,
    weight: Weight = "",
    distinct: Distinct = False,
    probabilities: Probabilities = False,
    seed: Seed = None,
    at: Version = None,
) -> None:
    """Draw neighbors of neighbors, hop after hop."""
    hops = [parse_hop(text) for text in hop]

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = []
        for i, h in enumerate(sample.hops):
            first = _nodes_shown(h.nodes[:10], None if h.probabilities is None else h.probabilities[:10])
            rows.append((i + 1, hop[i], len(h), int((h.nodes >= 0).sum()), ", ".join(first)))
        return table("hops", ("hop", "drawn", "places", "filled", "the first ones"), rows)

    def ask(graph: Graph) -> Any:
        metapath, counts = [names for names, _ in hops], [count for _, count in hops]
        return graph.sample_fanout(
            nodes,
            metapath,
            counts,
            ntype=node_type,
            direction=direction,
            weighted=not uniform,
            weight=weight,
            replace=not distinct,
            probabilities=probabilities,
            seed=seed,
            version=at,
        )

    _draw(context, space, ask, render)
