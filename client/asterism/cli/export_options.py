"""Options of `asterism export`, and the methods and balances that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.option_values import parse_integers
from asterism.cli.shell_completion import complete_spaces
from asterism.local_paths import local_path
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism import Graph
    from asterism.export.partitioning.assignment_methods import Balance

METHODS = ("random", "hash", "metis", "ldg", "fennel")

Space = Annotated[
    str,
    typer.Option(metavar="SPACE", help="Graph space to export.", autocompletion=complete_spaces),
]
Out = Annotated[str, typer.Option(metavar="FOLDER|ADDRESS", help="Folder or address to write to.")]
PartAddresses = Annotated[
    str,
    typer.Option(
        metavar="FOLDER|ADDRESS",
        help="Folder or address to write to, such as s3://bucket/shop; {part} and {host} are "
        "replaced for each part.",
    ),
]
IpConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="File of machines in the format of DGL, one per line, for {host}."
    ),
]
Parts = Annotated[int, typer.Option(metavar="N", min=1, help="Number of partitions.")]
Assign = Annotated[
    str,
    typer.Option(
        metavar="random|hash|metis|ldg|fennel|FOLDER",
        help="Method that assigns nodes to partitions: random, by id, with few cut edges (metis in "
        "memory; ldg and fennel streaming), or from the <ntype>.txt files of a folder.",
    ),
]
Seed = Annotated[
    int, typer.Option(metavar="N", help="Random seed of the assignment and of --sample.")
]
Homogeneous = Annotated[
    bool,
    typer.Option(
        "--homogeneous", help="Write a graph of one node type and one edge type, without types."
    ),
]
Weight = Annotated[
    str,
    typer.Option(metavar="NAME", help="Name of the feature for weights; '' leaves weights out."),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue an interrupted export, or start one; keep unfinished files on failure.",
    ),
]
MemoryLimit = Annotated[
    int,
    typer.Option(min=64, metavar="MIB", help="MiB that the arrays of each process may take."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceOptions:
    """Balance of the partitions, and parameters of the assignment methods."""

    balance_ntypes: Annotated[
        bool,
        typer.Option(
            "--balance-ntypes/--no-balance-ntypes", help="Balance each node type separately."
        ),
    ] = True
    balance_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE=FEATURE|TYPE=FILE.npy",
            help="Balance the nodes of each value of a feature, or of an array. Repeatable.",
        ),
    ] = None
    balance_edges: Annotated[
        bool, typer.Option("--balance-edges", help="Balance in-degrees too.")
    ] = False
    objective: Annotated[
        str,
        typer.Option(
            metavar="cut|vol",
            help="Objective of metis: minimal edge cut, or minimal communication volume.",
        ),
    ] = "cut"
    imbalance: Annotated[
        float,
        typer.Option(
            metavar="FRACTION", help="Fraction by which a partition may exceed the average size."
        ),
    ] = 0.03
    passes: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Passes of ldg and fennel over the nodes; more passes cut fewer edges.",
        ),
    ] = 1

    def arguments(self) -> dict[str, Any]:
        """Return the values as keyword arguments of an export."""
        return {
            "balance_ntypes": parse_balance(self.balance_ntypes, self.balance_by),
            "balance_edges": self.balance_edges,
            "objective": self.objective,
            "imbalance": self.imbalance,
            "passes": self.passes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledGraphOptions:
    """The sample of a graph that is exported instead of the whole graph."""

    sample: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="SEEDS",
            help="Export a sample: the neighborhood of this number of nodes, sampled by weight.",
        ),
    ] = None
    fanout: Annotated[
        str,
        typer.Option(
            metavar="N[,N...]",
            help="With --sample: in-neighbors of each hop, sampled by weight; -1 takes all.",
        ),
    ] = ""
    node_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="With --sample: type of the seed nodes."),
    ] = None

    def parse_fanout(self) -> list[int]:
        """Return the fanout of each hop; raise InvalidRequest if there is no sample."""
        if self.sample is None and (self.fanout or self.node_type is not None):
            option = "--fanout" if self.fanout else "--type"
            value = self.fanout or self.node_type
            raise InvalidRequest(f"{option}={value!r}: expected --sample too; add --sample SEEDS")
        return parse_integers("--fanout", self.fanout, minimum=-1) if self.fanout else []

    def apply(self, graph: Graph, fanouts: list[int], *, seed: int) -> Any:
        """Return the graph to export: a sample of `graph`, or itself."""
        from asterism import export

        if self.sample is None:
            return graph
        return export.sampled(graph, self.sample, fanouts, ntype=self.node_type, seed=seed)


def parse_method(text: str) -> str | Path:
    """Return the assignment method that ``--assign`` names, or its folder."""
    if text in METHODS:
        return text
    folder = local_path("--assign", text)
    if not folder.is_dir():
        raise InvalidRequest(
            f"--assign={text!r}: expected {', '.join(METHODS)}, or a folder of assignments"
        )
    return folder


def parse_balance(by_type: bool, by_value: Sequence[str] | None) -> Balance:
    """Return the balance that ``--balance-ntypes`` and ``--balance-by`` describe together."""
    if not by_value:
        return by_type
    if not by_type:
        raise InvalidRequest(
            f"--balance-by={by_value[0]!r}: expected either --no-balance-ntypes or --balance-by, "
            "found both; remove one"
        )
    balance: dict[str, Any] = {}
    for option in by_value:
        kind, separator, value = option.partition("=")
        if not separator or not kind or not value:
            raise InvalidRequest(
                f"--balance-by={option!r}: expected TYPE=FEATURE or TYPE=FILE.npy; for example "
                "item=split"
            )
        balance[kind] = _load_array(value) if value.endswith(".npy") else value
    return balance


def _load_array(path: str) -> Any:
    import numpy as np

    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"--balance-by={path!r}: expected a .npy file of integers ({error})"
        ) from error
