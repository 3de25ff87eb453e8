"""Arguments, options and option groups of the commands of `asterism sample`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.options import GraphVersion
from asterism.cli.sample.node_ids import parse_node_ids
from asterism.cli.shell_completion import (
    choices,
    complete_edge_types,
    complete_node_types,
    complete_weights,
)
from asterism.cli.typer_signatures import FormerName
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism import Graph

Nodes = Annotated[
    list[str],
    typer.Argument(
        metavar="NODE", help="Seed nodes: integers, or strings where the ids are strings."
    ),
]
Count = Annotated[int, typer.Option("-n", "--count", min=0, metavar="N", help="Number of samples.")]
TopK = Annotated[
    int, typer.Option("-k", min=1, metavar="N", help="Maximum number of results for each node.")
]
EdgeTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Edge type to follow. Repeatable. Default: all.",
        autocompletion=complete_edge_types,
    ),
]
SampledNodeTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Node type to sample from. Repeatable. Default: all.",
        autocompletion=complete_node_types,
    ),
]
SampledEdgeTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Edge type to sample from. Repeatable. Default: all.",
        autocompletion=complete_edge_types,
    ),
]
InducedTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--induced-type",
        metavar="TYPE",
        help="Edge type to return between the sampled nodes. Repeatable. Default: those followed.",
        autocompletion=complete_edge_types,
    ),
    FormerName("--among"),
]
Fanout = Annotated[
    str,
    typer.Option(
        metavar="N[,N...]",
        help="Neighbors to sample per node and edge type in each hop; -1 takes all.",
    ),
]
ExpandAllHops = Annotated[
    bool,
    typer.Option(
        "--expand-all-hops/--no-expand-all-hops",
        help="Expand every node reached so far in each hop (blocks of DGL), not only the previous "
        "frontier.",
    ),
]
Uniform = Annotated[bool, typer.Option("--uniform", help="Sample uniformly, ignoring weights.")]
Weight = Annotated[
    str,
    typer.Option(
        "--weight",
        metavar="NAME",
        help="Weight column, present in all selected types. Default: the weight of each type.",
        autocompletion=complete_weights,
    ),
]
ReturnedWeight = Annotated[
    str,
    typer.Option(
        "--weight",
        metavar="NAME",
        help="Weight column to return. Default: the weight of each type.",
        autocompletion=complete_weights,
    ),
]
Where = Annotated[
    str,
    typer.Option(
        "--where",
        metavar="FILTER",
        help="Use only elements that satisfy this filter, such as \"price > 3 and brand == 'a'\".",
    ),
]
Replace = Annotated[
    bool,
    typer.Option("--replace/--no-replace", help="Sample with replacement."),
    FormerName("--distinct", value=False),
]
"""Option of commands that sample with replacement by default."""
SubgraphReplace = Annotated[
    bool,
    typer.Option("--replace/--no-replace", help="Sample with replacement."),
    FormerName("--repeats", value=True),
]
"""Option of commands that sample without replacement by default."""
Probabilities = Annotated[
    bool,
    typer.Option(
        "--probabilities",
        help="Return the probability of each sample; without replacement, given the earlier ones.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Random seed; the same seed repeats the result. Default: random."
    ),
]
NodeType = Annotated[
    str | None,
    typer.Option(
        metavar="TYPE",
        help="Type of the seed nodes, required if the edge types do not determine it.",
        autocompletion=complete_node_types,
    ),
]
Direction = Annotated[
    str,
    typer.Option(
        metavar="out|in",
        help="Follow edges from source to destination (out), or back (in).",
        autocompletion=choices("out", "in"),
    ),
]
Batches = Annotated[int, typer.Option(min=1, metavar="N", help="Number of batches.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightOptions:
    """Filter and weight of the elements to sample from."""

    uniform: Uniform = False
    weight: Weight = ""
    where: Where = ""

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of a sampling call."""
        return {"weighted": not self.uniform, "weight": self.weight, "where": self.where}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraversalOptions:
    """Type of the seed nodes, and direction in which edges are followed."""

    node_type: NodeType = None
    direction: Direction = "out"

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of a sampling call."""
        return {"ntype": self.node_type, "direction": self.direction}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionOptions:
    """Edges that are as if they did not exist."""

    exclude_edge: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude-edge",
            metavar="[TYPE=]SRC,DST",
            help="Ignore all edges of TYPE from SRC to DST. Repeatable. TYPE is required if "
            "several types are followed.",
        ),
    ] = None
    reverse_type: Annotated[
        list[str] | None,
        typer.Option(
            "--reverse-type",
            metavar="TYPE=TYPE",
            help="With --exclude-edge: ignore the edges back, of the second type, too. Repeatable.",
        ),
    ] = None

    def arguments(self, graph: Graph) -> dict[str, Any]:
        """Return the keyword arguments of a sampling call."""
        reverse_types = dict(
            _split_option("--reverse-type", text, "TYPE=TYPE", "=")
            for text in self.reverse_type or ()
        )
        if reverse_types and not self.exclude_edge:
            raise InvalidRequest("--reverse-type: expected --exclude-edge too; add --exclude-edge")
        ends: dict[str, tuple[list[Any], list[Any]]] = {}
        for text in self.exclude_edge or ():
            edge_type, _, pair = text.rpartition("=")
            sources, targets = ends.setdefault(edge_type, ([], []))
            src, dst = _split_option("--exclude-edge", pair, "[TYPE=]SRC,DST", ",")
            sources += parse_node_ids(graph, [src])
            targets += parse_node_ids(graph, [dst])
        if not ends:
            return {}
        exclude: Any = ends
        if "" in ends:
            if len(ends) > 1:
                raise InvalidRequest(
                    f"--exclude-edge={(self.exclude_edge or [''])[0]!r}: expected a type with "
                    "every edge, or with none"
                )
            exclude = ends[""]
        return {"exclude": exclude, "reverse_types": reverse_types or None}


def _split_option(option: str, text: str, form: str, separator: str) -> tuple[str, str]:
    """Return the two sides of an option's value."""
    left, found, right = text.partition(separator)
    if not found or not left or not right:
        raise InvalidRequest(f"{option}={text!r}: expected {form}")
    return left, right


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCallOptions:
    """Random seed and version of a sample, and the switch to its explanation."""

    seed: Seed = None
    graph_version: GraphVersion = None
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Run the call and print its cost instead of its result: shares, requests, bytes.",
        ),
    ] = False

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of a sampling call."""
        return {"seed": self.seed, "version": self.graph_version}


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalOptions:
    """Temporal filter: the edges that are visible at a point in time."""

    seed_time: Annotated[
        str | None,
        typer.Option(
            "--seed-time",
            metavar="TIME",
            help="Use only edges with a timestamp of at most TIME, in the unit of the time column.",
        ),
        FormerName("--until"),
    ] = None
    strict: Annotated[
        bool,
        typer.Option("--strict", help="With --seed-time: exclude edges with timestamp TIME too."),
    ] = False
    strategy: Annotated[
        str,
        typer.Option(
            metavar="uniform|last",
            autocompletion=choices("uniform", "last"),
            help="With --seed-time: sample from the visible edges, or take the latest ones.",
        ),
        FormerName("--last", value="last"),
    ] = "uniform"

    def arguments(self, seed_nodes: int) -> dict[str, Any]:
        """Return the keyword arguments of a sampling call with this number of seed nodes."""
        if self.seed_time is None:
            if self.strict or self.strategy != "uniform":
                option = "--strict" if self.strict else f"--strategy={self.strategy!r}"
                raise InvalidRequest(f"{option}: expected --seed-time too; add --seed-time TIME")
            return {}
        try:
            is_integer = self.seed_time.lstrip("-").isdigit()
            time = int(self.seed_time) if is_integer else float(self.seed_time)
        except ValueError as error:
            raise InvalidRequest(
                f"--seed-time={self.seed_time!r}: expected a number, like the timestamps of the "
                "edges"
            ) from error
        return {
            "times": [time] * seed_nodes,
            "strict": self.strict,
            "strategy": self.strategy,
            "edge_times": True,
        }
