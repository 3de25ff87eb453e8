"""Arguments and options that commands of several families take."""

from __future__ import annotations

from typing import Annotated

import typer

from asterism.cli.shell_completion import complete_spaces, complete_versions
from asterism.cli.typer_signatures import FormerName

DEFAULT_TOTAL_TIMEOUT_S = 24 * 3600.0

Space = Annotated[
    str,
    typer.Argument(
        metavar="SPACE", help="Name of the graph space.", autocompletion=complete_spaces
    ),
]
GraphVersion = Annotated[
    int | None,
    typer.Option(
        "--graph-version",
        min=1,
        metavar="VERSION",
        help="Version of the graph to read. Default: the current one.",
        autocompletion=complete_versions,
    ),
    FormerName("--at"),
]
TotalTimeout = Annotated[
    float,
    typer.Option(
        "--total-timeout",
        min=0.1,
        metavar="SECONDS",
        help="Seconds that the whole operation may take; --timeout limits a single call.",
    ),
    FormerName("--within"),
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait until the job has ended, and show its progress.")
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace what is there, or restart an unfinished export."),
]
