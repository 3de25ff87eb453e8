"""`asterism sample walk`, `pinsage` and `pairs`: random walks and their summaries.

A summary is the nodes visited most often, or skip-gram pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.option_values import parse_step
from asterism.cli.options import GraphVersion, Space
from asterism.cli.sample.calls import run_read_call, run_sample_call
from asterism.cli.sample.node_ids import parse_node_ids, present_nodes
from asterism.cli.sample.options import (
    Batches,
    Count,
    ExclusionOptions,
    Nodes,
    SampleCallOptions,
    Seed,
    TraversalOptions,
    WeightOptions,
)
from asterism.cli.sample.tables import (
    MAX_SHOWN_ROWS,
    format_nodes,
    pairs_table,
    rows_table,
)
from asterism.cli.typer_signatures import FormerName
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema

FirstStep = Annotated[
    str,
    typer.Option(
        metavar="independent|distinct",
        help="Sample the first steps of the walks of a node with replacement, or without.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """The edge types of each step of a walk."""

    step: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE[,TYPE...]",
            help="Edge types of a step; * is all. Repeat per step. Default: all in every step.",
        ),
    ] = None
    metapath: Annotated[
        str | None,
        typer.Option(
            metavar="METAPATH",
            help="The steps in the notation of PGLBox: user2buys2item-item2bought_by2user.",
        ),
    ] = None

    def require_one_form(self) -> None:
        """Raise InvalidRequest if both options specify the steps."""
        if self.step and self.metapath is not None:
            raise InvalidRequest(
                f"--step={self.step[0]!r}: expected either --step or --metapath, found both; "
                f"remove --metapath={self.metapath!r}"
            )

    def steps(self, graph: Graph) -> Any:
        """Return the edge types of the steps, or None if the options do not name any."""
        if self.metapath is None:
            return [parse_step(text) for text in self.step] if self.step else None
        metapaths = graph.metapaths(self.metapath)
        if len(metapaths) != 1:
            raise InvalidRequest(
                f"--metapath={self.metapath!r}: expected one metapath, found {len(metapaths)}; "
                "run the command for each, or use `asterism sample pairs`"
            )
        return metapaths[0]


def walk(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    step_options: StepOptions,
    length: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Steps of a walk. Default: the number of named steps."
        ),
    ] = None,
    walks: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Walks from each node.")
    ] = None,
    first_step: Annotated[FirstStep, FormerName("--distinct", value="distinct")] = "independent",
    p: Annotated[
        float,
        typer.Option(
            "-p",
            metavar="X",
            help="Return parameter of node2vec: a step back has 1 / p times its weight.",
        ),
    ] = 1.0,
    q: Annotated[
        float,
        typer.Option(
            "-q",
            metavar="X",
            help="In-out parameter of node2vec: a step to a node that is not adjacent to the "
            "previous one has 1 / q times its weight.",
        ),
    ] = 1.0,
    restart: Annotated[
        float,
        typer.Option(metavar="X", help="Probability that a step returns to the start instead."),
    ] = 0.0,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weights: WeightOptions,
    call_options: SampleCallOptions,
) -> None:
    """Sample random walks from each given node."""
    step_options.require_one_form()

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.random_walk(
            parse_node_ids(graph, nodes),
            step_options.steps(graph),
            length,
            p=p,
            q=q,
            restart=restart,
            walks=walks,
            first_step=first_step,
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            **call_options.arguments(),
        )

    def render(sample: Any, schema: Schema) -> RenderableType:
        paths = [
            format_nodes(nodes_of_walk[1:]).replace(",", " >") for nodes_of_walk in sample.nodes
        ]
        return rows_table(
            "walks",
            ("start", "path"),
            sample.nodes[:, 0].tolist(),
            [path or "no neighbors" for path in paths],
            len(sample),
        )

    run_sample_call(context, space, call, render, explain=call_options.explain)


def pinsage(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    step_options: StepOptions,
    count: Count = 10,
    walks: Annotated[int, typer.Option(metavar="N", min=1, help="Walks from each node.")] = 100,
    traversals: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Maximum number of times that a walk runs through all steps."
        ),
    ] = 2,
    termination: Annotated[
        float,
        typer.Option(
            metavar="X", help="Probability that a walk ends before each traversal after the first."
        ),
    ] = 0.5,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weights: WeightOptions,
    call_options: SampleCallOptions,
) -> None:
    """Return the PinSAGE neighbors of each given node.

    These are the nodes that short random walks from it visit most often.
    """
    step_options.require_one_form()

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_pinsage(
            parse_node_ids(graph, nodes),
            step_options.steps(graph),
            count,
            walks=walks,
            traversals=traversals,
            termination=termination,
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            **call_options.arguments(),
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
                or "no neighbors"
            )
        return rows_table("visits", ("start", "node (visits)"), nodes, row_texts, len(nodes))

    run_sample_call(context, space, call, render, explain=call_options.explain)


def pairs(
    context: typer.Context,
    space: Space,
    metapaths: Annotated[
        str,
        typer.Argument(
            metavar="METAPATHS",
            help="In the notation of PGLBox: user2buys2item-item2bought_by2user;item2near2item.",
        ),
    ],
    *,
    length: Annotated[int, typer.Option(metavar="N", min=1, help="Steps of a walk.")] = 8,
    walks: Annotated[int, typer.Option(metavar="N", min=1, help="Walks from each node.")] = 1,
    window: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Size of the context window, in steps to each side."),
    ] = 1,
    negatives: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Negative samples per pair, of the type of its second node."
        ),
    ] = 0,
    exclude_pairs: Annotated[
        str,
        typer.Option(metavar="PAIRS", help="Pairs of types to leave out: user2item;item2item."),
        FormerName("--excluded"),
    ] = "",
    batch_size: Annotated[
        int, typer.Option(metavar="N", min=1, help="Start nodes of a batch.")
    ] = 1024,
    batches: Batches = 1,
    first_step: Annotated[FirstStep, FormerName("--independent", value="independent")] = "distinct",
    weights: WeightOptions,
    seed: Seed = None,
    graph_version: GraphVersion = None,
) -> None:
    """Sample the first batches of an epoch of skip-gram pairs of random walks."""

    def call(graph: Graph) -> Any:
        batches_of_pairs = graph.walk_pairs(
            metapaths,
            length,
            walks=walks,
            window=window,
            batch_size=batch_size,
            first_step=first_step,
            negatives=negatives,
            excluded=exclude_pairs,
            seed=seed,
            version=graph_version,
            **weights.arguments(),
        )
        return list(islice(batches_of_pairs, batches))

    def render(result: Any, schema: Schema) -> RenderableType:
        return pairs_table(result)

    run_read_call(context, space, call, render)
