"""Run calls of `asterism sample` on the graph of a space, and print their results."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from asterism.cli.context import command_context
from asterism.cli.sample.node_ids import with_string_ids
from asterism.cli.sample.tables import Render, explanation_tables

if TYPE_CHECKING:
    from asterism import Graph


def run_sample_call(
    context: typer.Context,
    space: str,
    call: Callable[[Graph, Any], Any],
    render: Render,
    *,
    explain: bool = False,
) -> None:
    """Run a sampling call and print the sample, or its explanation.

    A note states the seed that repeats the sample. ``call`` receives the graph, and the object that
    has the sampling methods: the graph, or its ``explain``.
    """
    command = command_context(context)
    with command.client(allow_read_only=True) as client:
        graph = client.graph(space)
        schema = graph.schema
        started = time.perf_counter()
        sample = call(graph, graph.explain if explain else graph)
        milliseconds = (time.perf_counter() - started) * 1000
        sample = sample if explain else with_string_ids(graph, sample)
    command.output.result(
        sample, lambda: explanation_tables(sample, schema) if explain else render(sample, schema)
    )
    command.output.print_note(
        f"{milliseconds:.1f} ms, version {sample.version}, --seed {sample.seed} repeats it",
        dim=True,
    )


def run_read_call(
    context: typer.Context, space: str, call: Callable[[Graph], Any], render: Render
) -> None:
    """Run a call that samples nothing or has no explanation, and print its result."""
    command = command_context(context)
    with command.client(allow_read_only=True) as client:
        graph = client.graph(space)
        schema, result = graph.schema, with_string_ids(graph, call(graph))
    command.output.result(result, lambda: render(result, schema))
