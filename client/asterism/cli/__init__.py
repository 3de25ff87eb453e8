"""Command line of Asterism: one module per subcommand, composed by `app`.
Operations belong to the client. Each command imports its slow dependencies itself."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from asterism.cli.activity import ActivityLine
from asterism.extras import MissingExtra, required
from asterism_io.fast_exit import skip_last_collections

_COLLECTION_THRESHOLD = 200_000
"""New objects between two garbage collections.

Modules are made of objects that last: with Python's threshold of 700, collections while a command
starts take 0.2 s of a core.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments of the command. Default: the arguments of the process.
    """
    # gRPC would print its own lines beside the message of the command.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # noqa: TID251 - gRPC's, read at its import
    skip_last_collections()
    gc.set_threshold(_COLLECTION_THRESHOLD)
    try:
        with ActivityLine("starting"), required("cli", "the command"):
            from asterism.cli import app
    except MissingExtra as error:
        sys.exit(f"asterism: {error}")
    sys.exit(app.run(sys.argv[1:] if arguments is None else arguments))
