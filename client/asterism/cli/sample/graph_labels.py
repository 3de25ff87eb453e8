"""`asterism sample labels`: labels of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from asterism.cli.options import Space
from asterism.cli.output import table
from asterism.cli.sample.calls import run_sample_call
from asterism.cli.sample.options import Count, SampleCallOptions

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema


def labels(
    context: typer.Context,
    space: Space,
    *,
    count: Count = 10,
    call_options: SampleCallOptions,
) -> None:
    """Sample labels of graphs uniformly."""

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_graph_labels(count, **call_options.arguments())

    def render(sample: Any, schema: Schema) -> RenderableType:
        return table(
            "labels of graphs",
            ("label",),
            [(label.decode("utf-8", "backslashreplace"),) for label in sample.labels],
        )

    run_sample_call(context, space, call, render, explain=call_options.explain)
