"""The options of commands that assign nodes to partitions, and what their words mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism.export.assignment_methods import Balance

METHODS = ("random", "hash", "metis", "ldg", "fennel")

Space = Annotated[str, typer.Option(help="The space to export.")]
Parts = Annotated[int, typer.Option(min=1, help="How many partitions.")]
Assign = Annotated[
    str,
    typer.Option(
        metavar="random|hash|metis|ldg|fennel|FOLDER",
        help=(
            "Which node goes where: by chance, by id, so that few edges are cut (in memory "
            "or streaming), or as <ntype>.txt files say."
        ),
    ),
]
Seed = Annotated[int, typer.Option(help="Of the assignment and of a sample.")]
Version = Annotated[
    int | None, typer.Option("--at", min=1, metavar="VERSION", help="Export this version.")
]
Homogeneous = Annotated[
    bool,
    typer.Option(
        "--homogeneous", help="Write a graph of one node and one edge type without types."
    ),
]
Weight = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="The feature that weights are written as; '' leaves them out."
    ),
]
BalanceNtypes = Annotated[
    bool,
    typer.Option(
        "--balance-ntypes/--no-balance-ntypes", help="Spread each node type evenly by itself."
    ),
]
BalanceBy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TYPE=FEATURE|TYPE=FILE.npy",
        help=(
            "Spread the nodes of each value of a feature, or of an array, evenly. May be repeated."
        ),
    ),
]
BalanceEdges = Annotated[
    bool, typer.Option("--balance-edges", help="Spread the in-degrees evenly too.")
]
Objective = Annotated[
    str,
    typer.Option(
        metavar="cut|vol", help="Of METIS: fewest edges between partitions, or least traffic."
    ),
]
Imbalance = Annotated[
    float, typer.Option(metavar="SHARE", help="By which a partition may be larger than the others.")
]
Passes = Annotated[
    int,
    typer.Option(
        min=1, help="How often ldg and fennel go over the nodes; a few passes cut fewer edges."
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="SEEDS",
        help="Export a sample: from so many nodes, drawn by weight with --seed.",
    ),
]
Fanout = Annotated[
    str,
    typer.Option(
        metavar="N,N,...", help="Of the sample: in-neighbors of each hop, by weight; -1 is all."
    ),
]
SampleType = Annotated[
    str | None, typer.Option("--type", help="Of the sample: the type of the first nodes.")
]


def parse_fanout(text: str) -> list[int]:
    """What ``--fanout`` lists."""
    try:
        return [int(hop) for hop in text.split(",")] if text else []
    except ValueError as error:
        raise InvalidRequest(
            f"--fanout {text!r}: expected whole numbers with commas, as 10,5"
        ) from error


def parse_method(text: str) -> str | Path:
    """What ``--assign`` names."""
    if text in METHODS:
        return text
    if not Path(text).is_dir():
        raise InvalidRequest(
            f"--assign {text!r}: expected {', '.join(METHODS)}, or a folder of assignments"
        )
    return Path(text)


def parse_balance(by_type: bool, by_value: Sequence[str] | None) -> Balance:
    """What ``--balance-ntypes`` and ``--balance-by`` ask for together."""
    if not by_value:
        return by_type
    if not by_type:
        raise InvalidRequest(
            f"--no-balance-ntypes and --balance-by {by_value[0]!r}: expected one of them"
        )
    balance: dict[str, Any] = {}
    for option in by_value:
        kind, separator, value = option.partition("=")
        if not separator or not kind or not value:
            raise InvalidRequest(
                f"--balance-by {option!r}: expected TYPE=FEATURE or TYPE=FILE.npy, as item=split"
            )
        balance[kind] = _load_array(value) if value.endswith(".npy") else value
    return balance


def _load_array(path: str) -> Any:
    import numpy as np

    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"--balance-by {path!r}: expected a .npy file of whole numbers ({error})"
        ) from error
