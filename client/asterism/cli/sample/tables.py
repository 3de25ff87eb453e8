"""Tables of `asterism sample` for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from asterism.cli.output import table
from asterism.cli.sample.node_ids import present_nodes
from asterism.cli.tables import sections

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Explanation
    from asterism_model.schema import Schema

MAX_SHOWN_ROWS = 20
Render = Callable[[Any, "Schema"], "RenderableType"]


def type_names(schema: Schema, element: str, ids: Any) -> list[str]:
    """Return the names of type ids, with a dash for -1."""
    types = schema.node_types if element == "node" else schema.edge_types
    return [types[i].name if i >= 0 else "-" for i in ids.tolist()]


def add_probability_column(
    names: tuple[str, ...], columns: list[Any], sample: Any
) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Return the header and first cells of each column, with probabilities if any."""
    if sample.probabilities is not None:
        names, columns = (*names, "probability"), [*columns, sample.probabilities]
    return names, [column[:MAX_SHOWN_ROWS].tolist() for column in columns]


def format_nodes(nodes: Any, probabilities: Any = None) -> str:
    """Return the present nodes as text, each with its probability if given."""
    present = present_nodes(nodes)
    if probabilities is None:
        return ", ".join(map(str, nodes[present].tolist()))
    return ", ".join(
        f"{node} ({p:.4g})"
        for node, p in zip(nodes[present].tolist(), probabilities[present].tolist(), strict=True)
    )


def truncated_title(title: str, total: int) -> str:
    """Return the title of a table, with the total if the table does not show all rows."""
    return (
        title if total <= MAX_SHOWN_ROWS else f"{title} (the first {MAX_SHOWN_ROWS} of {total:,})"
    )


def rows_table(
    title: str, names: tuple[str, str], firsts: Iterable[object], rows: Iterable[str], total: int
) -> RenderableType:
    """Return a table of two columns: a node, label or walk, and its row."""
    return table(
        truncated_title(title, total),
        names,
        [
            pair
            for _, pair in zip(range(MAX_SHOWN_ROWS), zip(firsts, rows, strict=False), strict=False)
        ],
    )


def row_renderer(title: str, sources: list[str]) -> Render:
    """Return a function that shows samples with a row of nodes for each source."""

    def render(sample: Any, schema: Schema) -> RenderableType:
        row_texts = [
            format_nodes(row, None if sample.probabilities is None else sample.probabilities[i])
            or "none"
            for i, row in enumerate(sample.nodes)
        ]
        return rows_table(title, ("source", "samples"), sources, row_texts, len(row_texts))

    return render


def hops_table(title: str, sample: Any, hops: int) -> RenderableType:
    """Return a table of the nodes and edges of a subgraph, by type and hop."""
    rows = [(name, "nodes", *counts) for name, counts in sample.num_sampled_nodes.items()]
    rows += [(name, "edges", "", *counts) for name, counts in sample.num_sampled_edges.items()]
    columns = ("type", "element", "seeds", *(f"hop {hop + 1}" for hop in range(hops)))
    return table(title, columns, rows)


def pairs_table(batches: Any) -> RenderableType:
    """Return a table of the pairs in batches of walks, with their negatives."""
    rows = [
        (
            batch.metapath,
            *pair,
            format_nodes(batch.negatives[i]) if batch.negatives is not None else "-",
        )
        for batch in batches
        for i, pair in enumerate(batch.pairs[:MAX_SHOWN_ROWS].tolist())
    ]
    return table(
        truncated_title("pairs", sum(map(len, batches))),
        ("metapath", "node", "context", "negatives"),
        rows[:MAX_SHOWN_ROWS],
    )


def explanation_tables(explanation: Explanation, schema: Schema) -> RenderableType:
    """Return the tables of an explanation: shares of the types, requests, price and limits."""
    types = schema.node_types if explanation.method == "sample_nodes" else schema.edge_types
    shares = [
        (
            types[share.type_id].name,
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
            entry.bytes_sent,
            entry.bytes_received,
        )
        for entry in explanation.storage_requests[:MAX_SHOWN_ROWS]
    ]
    title = (
        f"requests to storageds: {explanation.rounds} rounds, {explanation.bytes:,} bytes; "
        f"{explanation.reply_bytes:,} bytes to the client"
    )
    tables = [
        table(
            truncated_title(title, len(explanation.storage_requests)),
            ("round", "method", "address", "rows", "bytes sent", "received"),
            requests,
        )
    ]
    if shares:
        tables.insert(
            0,
            table(
                truncated_title("shares of the samples", len(explanation.shares)),
                ("type", "part", "share", "expected", "sampled"),
                shares,
            ),
        )
    lines = [f"filter: {explanation.filter_plan}"] if explanation.filter_plan else []
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
    return sections(*tables, *lines)
