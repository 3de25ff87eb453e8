"""What the commands of `asterism sample` have in common: their options, how a graph is asked, how
answers are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.context import command_context
from asterism.cli.node_ids import present_nodes, with_string_ids
from asterism.cli.output import table
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Explanation, Graph
    from asterism_model.schema import Schema

MAX_SHOWN_ROWS = 20

Space = Annotated[str, typer.Argument(metavar="SPACE", help="The space to draw from.")]
Nodes = Annotated[
    list[str],
    typer.Argument(metavar="NODE...", help="Where to start: ids, or strings in a space of these."),
]
Count = Annotated[int, typer.Option("-n", "--count", min=0, help="How many to draw.")]
EdgeTypes = Annotated[
    list[str] | None,
    typer.Option("--type", help="Along this edge type (repeat for several). Default: all."),
]
Uniform = Annotated[
    bool, typer.Option("--uniform", help="Every one the same chance, whatever its weight.")
]
Weight = Annotated[
    str,
    typer.Option(
        "--weight",
        metavar="NAME",
        help="Draw by the weights of this name, that all these types have. Default: their own.",
    ),
]
Where = Annotated[
    str,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only of what satisfies this, as \"price > 3 and brand == 'a'\".",
    ),
]
Distinct = Annotated[bool, typer.Option("--distinct", help="None twice: draw without replacement.")]
Probabilities = Annotated[
    bool,
    typer.Option(
        "--probabilities",
        help="The probability of each draw too; without replacement, given the earlier ones.",
    ),
]
AsOfTime = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help="As of this time: later edges are not seen, by the time that their type declares.",
    ),
]
StrictTime = Annotated[
    bool,
    typer.Option("--strict", help="With --until: edges of that time itself are not seen either."),
]
LatestEdges = Annotated[
    bool, typer.Option("--last", help="With --until: the latest edges instead of a draw.")
]
Seed = Annotated[
    int | None, typer.Option(help="Repeat a draw: the same seed gives the same answer.")
]
Version = Annotated[
    int | None, typer.Option("--at", min=1, metavar="VERSION", help="Draw from this version.")
]
NodeType = Annotated[
    str | None,
    typer.Option(
        help="The type of the nodes that one starts from, where the edge types do not say."
    ),
]
Direction = Annotated[str, typer.Option(metavar="out|in", help="Along the edges, or against them.")]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Make the call, and tell what it takes instead: shares, who is asked for what, bytes.",
    ),
]


def temporal_arguments(
    nodes: list[str], as_of: str | None, *, strict: bool, latest: bool
) -> dict[str, Any]:
    """What a sampling call is told of times: the same for all nodes, whose edges come with theirs;
    nothing without ``as_of``.
    """
    if as_of is None:
        if strict or latest:
            raise InvalidRequest(
                f"{'--strict' if strict else '--last'} without --until: say until when"
            )
        return {}
    try:
        time = int(as_of) if as_of.lstrip("-").isdigit() else float(as_of)
    except ValueError as error:
        raise InvalidRequest(
            f"--until {as_of!r}: expected a number, as the times of edges are"
        ) from error
    return {
        "times": [time] * len(nodes),
        "strict": strict,
        "strategy": "last" if latest else "uniform",
        "edge_times": True,
    }


def run_sample_call(
    context: typer.Context,
    space: str,
    call: Callable[[Graph, Any], Any],
    render: Callable[[Any, Schema], RenderableType],
    *,
    explain: bool = False,
) -> None:
    """Ask a space's graph for a sample, or for an account of it, and print that with the seed that
    repeats it.

    ``call`` gets the graph, and what to make the sampling call of: the graph itself, or the one
    that explains it."""
    session = command_context(context)
    with session.client(allow_read_only=True) as client:
        graph = client.graph(space)
        schema = graph.schema
        started = time.perf_counter()
        sample = call(graph, graph.explain if explain else graph)
        milliseconds = (time.perf_counter() - started) * 1000
        sample = sample if explain else with_string_ids(graph, sample)
    session.output.result(
        sample, lambda: _render_explanation(sample, schema) if explain else render(sample, schema)
    )
    session.output.print_note(
        f"[dim]{milliseconds:.1f} ms, version {sample.version}, --seed {sample.seed} repeats "
        "it[/dim]"
    )


def run_read_call(
    context: typer.Context,
    space: str,
    call: Callable[[Graph], Any],
    render: Callable[[Any, Schema], RenderableType],
) -> None:
    """Ask a space's graph for what takes no draw, and print it."""
    session = command_context(context)
    with session.client(allow_read_only=True) as client:
        graph = client.graph(space)
        schema, result = graph.schema, with_string_ids(graph, call(graph))
    session.output.result(result, lambda: render(result, schema))


def type_names(schema: Schema, element: str, ids: Any) -> list[str]:
    """The names of type ids, a dash for none."""
    kinds = schema.node_types if element == "node" else schema.edge_types
    return [kinds[i].name if i >= 0 else "-" for i in ids.tolist()]


def add_probability_column(
    names: tuple[str, ...], columns: list[Any], sample: Any
) -> tuple[tuple[str, ...], list[list[Any]]]:
    """A table's head and its first columns of cells, with probabilities where there are any."""
    if sample.probabilities is not None:
        names, columns = (*names, "probability"), [*columns, sample.probabilities]
    return names, [column[:MAX_SHOWN_ROWS].tolist() for column in columns]


def format_nodes(nodes: Any, probabilities: Any = None) -> str:
    """Nodes, each with the probability of its draw where that is known; without those that are
    none.
    """
    present = present_nodes(nodes)
    if probabilities is None:
        return ", ".join(map(str, nodes[present].tolist()))
    return ", ".join(
        f"{node} ({p:.4g})"
        for node, p in zip(nodes[present].tolist(), probabilities[present].tolist(), strict=True)
    )


def truncated_title(title: str, total: int) -> str:
    """A table's title, which says where more was drawn than it shows."""
    return (
        title if total <= MAX_SHOWN_ROWS else f"{title} (the first {MAX_SHOWN_ROWS} of {total:,})"
    )


def rows_table(
    title: str, names: tuple[str, str], firsts: Iterable[object], rows: Iterable[str], total: int
) -> RenderableType:
    """A table of what each of some nodes, or labels, or walks has."""
    return table(
        truncated_title(title, total),
        names,
        [
            pair
            for _, pair in zip(range(MAX_SHOWN_ROWS), zip(firsts, rows, strict=False), strict=False)
        ],
    )


def split_types(text: str) -> list[str] | None:
    """The edge types of a step, with commas between; None, which is all, of ``*``."""
    names = text.split(",")
    if not all(names):
        raise InvalidRequest(
            f"--step {text!r}: expected an edge type, several with commas, or * for all"
        )
    return None if names == ["*"] else names


def parse_nodes(option: str, text: str) -> list[str]:
    """Nodes with commas between."""
    nodes = text.split(",")
    if not all(nodes):
        raise InvalidRequest(f"{option} {text!r}: expected nodes with commas between")
    return nodes


def parse_integers(option: str, text: str, *, minimum: int) -> list[int]:
    """Numbers with commas between."""
    try:
        integers = [int(item) for item in text.split(",")]
    except ValueError:
        integers = []
    if not integers or min(integers) < minimum:
        raise InvalidRequest(
            f"{option} {text!r}: expected whole numbers from {minimum} on, with commas between"
        )
    return integers


def _render_explanation(explanation: Explanation, schema: Schema) -> RenderableType:
    """Where draws fall, and who is asked."""
    from rich.console import Group

    kinds = schema.node_types if explanation.method == "sample_nodes" else schema.edge_types
    shares = [
        (
            kinds[share.type_id].name,
            "all" if share.part is None else share.part,
            share.share,
            "-" if share.expected is None else f"{share.expected:,.6g}",
            share.drawn,
        )
        for share in explanation.shares[:MAX_SHOWN_ROWS]
    ]
    requests = [
        (
            entry.round + 1,
            entry.method,
            entry.address or "here",
            entry.rows,
            entry.sent,
            entry.received,
        )
        for entry in explanation.asked[:MAX_SHOWN_ROWS]
    ]
    title = (
        f"asked of storageds: {explanation.rounds} rounds, {explanation.bytes:,} bytes; "
        f"{explanation.reply_bytes:,} bytes to the client"
    )
    tables = [
        table(
            truncated_title(title, len(explanation.asked)),
            ("round", "what", "of", "rows", "bytes sent", "received"),
            requests,
        )
    ]
    if shares:
        tables.insert(
            0,
            table(
                truncated_title("where draws fall", len(explanation.shares)),
                ("type", "part", "share", "expected", "drawn"),
                shares,
            ),
        )
    lines = [f"condition: {explanation.condition}"] if explanation.condition else []
    if explanation.price is not None:
        price, bound = explanation.price, "" if explanation.price.exact else "at most "
        lines.append(
            f"price: {price.formula}: {bound}{price.rows:,} rows, {price.bytes:,} bytes, "
            f"{price.scratch:,} bytes of scratch, {price.steps:,} steps"
        )
        lines += [
            f"limit: {entry.setting} {entry.value:,} of {entry.limit:,} ({entry.share:.2%})"
            for entry in price.limits
        ]
    return Group(*tables, *lines)
