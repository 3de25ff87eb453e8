"""`asterism sample`: the group of commands.

Contains the commands that sample nodes, edges, neighbors and fanouts; other modules define the
rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.help_text import examples
from asterism.cli.options import Space
from asterism.cli.output import table
from asterism.cli.sample import (
    graph_labels,
    hgt,
    layers,
    negatives,
    neighbor_queries,
    nodes_like,
    pglbox,
    subgraphs,
    walks,
)
from asterism.cli.sample.calls import run_sample_call
from asterism.cli.sample.node_ids import parse_node_ids, present_nodes
from asterism.cli.sample.options import (
    Count,
    EdgeTypes,
    ExclusionOptions,
    Nodes,
    Probabilities,
    Replace,
    SampleCallOptions,
    SampledEdgeTypes,
    SampledNodeTypes,
    TemporalOptions,
    TraversalOptions,
    WeightOptions,
)
from asterism.cli.sample.tables import (
    MAX_SHOWN_ROWS,
    add_probability_column,
    format_nodes,
    truncated_title,
    type_names,
)
from asterism.cli.typer_signatures import expand_option_groups
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Graph
    from asterism_model.schema import Schema

app = typer.Typer(
    no_args_is_help=True,
    help="Sample from a version of a space.",
    epilog=examples(
        "asterism sample nodes shop -n 5 --seed 7", "asterism sample neighbors shop 17 23 -n 5"
    ),
)


@app.command(
    epilog=examples("asterism sample nodes shop -n 1000 --type item --weight popular --json")
)
@expand_option_groups
def nodes(
    context: typer.Context,
    space: Space,
    *,
    count: Count = 10,
    node_types: SampledNodeTypes = None,
    weights: WeightOptions,
    replace: Replace = True,
    probabilities: Probabilities = False,
    call_options: SampleCallOptions,
) -> None:
    """Sample nodes by weight."""

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
            node_types or None,
            **weights.arguments(),
            replace=replace,
            probabilities=probabilities,
            **call_options.arguments(),
        )

    run_sample_call(context, space, call, render, explain=call_options.explain)


@app.command(
    epilog=examples(
        "asterism sample edges shop -n 5 --type user:buys:item --where 'weight > 2' --probabilities"
    )
)
@expand_option_groups
def edges(
    context: typer.Context,
    space: Space,
    *,
    count: Count = 10,
    edge_types: SampledEdgeTypes = None,
    weights: WeightOptions,
    replace: Replace = True,
    probabilities: Probabilities = False,
    call_options: SampleCallOptions,
) -> None:
    """Sample edges by weight."""

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
            edge_types or None,
            **weights.arguments(),
            replace=replace,
            probabilities=probabilities,
            **call_options.arguments(),
        )

    run_sample_call(context, space, call, render, explain=call_options.explain)


@app.command(epilog=examples("asterism sample neighbors shop 17 23 --type user:buys:item -n 5"))
@expand_option_groups
def neighbors(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    edge_types: EdgeTypes = None,
    count: Count = 10,
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weights: WeightOptions,
    replace: Replace = True,
    temporal: TemporalOptions,
    probabilities: Probabilities = False,
    call_options: SampleCallOptions,
) -> None:
    """Sample neighbors of each given node."""

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = []
        for i, node in enumerate(nodes[:MAX_SHOWN_ROWS]):
            row_text = format_nodes(
                sample.nodes[i], None if sample.probabilities is None else sample.probabilities[i]
            )
            rows.append((node, row_text or "no neighbors"))
        return table(truncated_title("neighbors", len(nodes)), ("node", "neighbors"), rows)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_neighbors(
            parse_node_ids(graph, nodes),
            edge_types or None,
            count,
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            replace=replace and temporal.strategy != "last",
            probabilities=probabilities,
            **temporal.arguments(len(nodes)),
            **call_options.arguments(),
        )

    run_sample_call(context, space, call, render, explain=call_options.explain)


def parse_hop(text: str) -> tuple[list[str], int]:
    """Return the edge types and the count of ``TYPE[,TYPE...]=COUNT``."""
    names, equals, count = text.rpartition("=")
    if not equals or not names or not count.isdigit():
        raise InvalidRequest(
            f"--hop={text!r}: expected TYPE[,TYPE...]=COUNT; for example user:buys:item=5"
        )
    return names.split(","), int(count)


@app.command(
    epilog=examples(
        "asterism sample fanout shop 17 23 --hop user:buys:item=5 --hop item:bought_by:user=3"
    )
)
@expand_option_groups
def fanout(
    context: typer.Context,
    space: Space,
    nodes: Nodes,
    *,
    hops: Annotated[
        list[str],
        typer.Option(
            "--hop",
            metavar="TYPE[,TYPE...]=COUNT",
            help="Edge types of a hop, and the number of neighbors to sample. Repeat per hop.",
        ),
    ],
    traversal: TraversalOptions,
    exclusion: ExclusionOptions,
    weights: WeightOptions,
    replace: Replace = True,
    probabilities: Probabilities = False,
    call_options: SampleCallOptions,
) -> None:
    """Sample neighbors of neighbors, hop by hop."""
    parsed_hops = [parse_hop(text) for text in hops]

    def render(sample: Any, schema: Schema) -> RenderableType:
        rows = []
        for i, hop in enumerate(sample.hops):
            first_nodes = format_nodes(
                hop.nodes[:10], None if hop.probabilities is None else hop.probabilities[:10]
            )
            present = int(present_nodes(hop.nodes).sum())
            rows.append((i + 1, hops[i], len(hop), present, first_nodes))
        return table("hops", ("hop", "sampled", "slots", "filled", "first nodes"), rows)

    def call(graph: Graph, sampler: Any) -> Any:
        return sampler.sample_fanout(
            parse_node_ids(graph, nodes),
            [edge_types for edge_types, _ in parsed_hops],
            [count for _, count in parsed_hops],
            **traversal.arguments(),
            **exclusion.arguments(graph),
            **weights.arguments(),
            replace=replace,
            probabilities=probabilities,
            **call_options.arguments(),
        )

    run_sample_call(context, space, call, render, explain=call_options.explain)


_SHORT_HELP = {
    "like": "Sample nodes of the types of the given nodes.",
    "pairs": "Sample skip-gram pairs of random walks.",
    "subgraph": "Sample the k-hop neighborhood of the given nodes.",
    "ego": "Sample an ego subgraph (ShaDow) around each given node.",
    "labor": "Sample a k-hop neighborhood by LABOR.",
    "hgt": "Sample layers of fixed sizes around the given nodes (HGT).",
    "layer": "Sample one layer for all given nodes (LADIES, FastGCN).",
    "top": "Return the heaviest edges of each given node.",
    "pagerank": "Return nodes by personalized PageRank.",
    "degrees": "Count the edges of each given node.",
}
"""Lines of the list of commands, where the first line of the help is longer."""

for _name, _command, _example in (
    ("like", nodes_like.like, "asterism sample like shop 17 23 --node-type item -n 5"),
    (
        "negatives",
        negatives.negatives,
        ("asterism sample negatives shop 17,3 23,40 -n 5 --type item --exclude user:buys:item"),
    ),
    ("labels", graph_labels.labels, "asterism sample labels molecules -n 32"),
    (
        "walk",
        walks.walk,
        (
            'asterism sample walk shop 17 --metapath "user2buys2item-item2bought_by2user" '
            "--length 24 --walks 10"
        ),
    ),
    (
        "pinsage",
        walks.pinsage,
        (
            "asterism sample pinsage shop 17 --metapath "
            '"item2bought_by2user-user2buys2item" -n 10 --walks 200 --uniform'
        ),
    ),
    (
        "pairs",
        walks.pairs,
        (
            'asterism sample pairs shop "user2follows2user" --length 8 --window 3 '
            "--negatives 2 --json"
        ),
    ),
    (
        "subgraph",
        subgraphs.subgraph,
        (
            "asterism sample subgraph shop 17 23 --fanout 15,10 --type "
            "user:follows:user --direction in"
        ),
    ),
    (
        "ego",
        subgraphs.ego,
        ("asterism sample ego shop 17 23 --fanout 10,5 --type user:follows:user --direction in"),
    ),
    (
        "induced",
        subgraphs.induced,
        "asterism sample induced shop 17 23 31 --type user:follows:user",
    ),
    (
        "labor",
        subgraphs.labor,
        (
            "asterism sample labor shop 17 23 --fanout 15,10 --type user:follows:user "
            "--direction in --importance 1"
        ),
    ),
    (
        "hgt",
        hgt.hgt,
        ("asterism sample hgt shop 17 23 --node-type user --count user=64,64 --count item=64,64"),
    ),
    (
        "layer",
        layers.layer,
        (
            "asterism sample layer shop 17 23 31 --type user:buys:item -n 64 --measure "
            "squares --no-replace"
        ),
    ),
    (
        "adjacency",
        layers.adjacency,
        "asterism sample adjacency shop --rows 17,23 --cols 3,40,41 --type user:buys:item",
    ),
    ("top", neighbor_queries.top, "asterism sample top shop 17 23 --type user:buys:item -k 3"),
    (
        "pagerank",
        neighbor_queries.pagerank,
        ("asterism sample pagerank shop 17 23 --type user:follows:user -k 32 --epsilon 1e-5"),
    ),
    (
        "all",
        neighbor_queries.all_neighbors,
        "asterism sample all shop 17 --type user:buys:item --sort weight",
    ),
    (
        "degrees",
        neighbor_queries.degrees,
        "asterism sample degrees shop 17 23 --type user:buys:item --weight weight",
    ),
    ("graphs", neighbor_queries.graphs, "asterism sample graphs molecules benzene toluene"),
):
    app.command(_name, short_help=_SHORT_HELP.get(_name), epilog=examples(_example))(
        expand_option_groups(_command)
    )
app.command("pglbox", epilog=pglbox.EXAMPLES)(expand_option_groups(pglbox.pglbox))
