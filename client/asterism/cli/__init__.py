"""The `asterism` command: one module for each subcommand, composed by `app`.
Operations belong to the client; what is slow to import is imported by the commands that use it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from asterism.extras import MissingExtra, required


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command of `arguments` (by default those of the process), and exit with its code."""
    try:
        with required("cli", "the command"):
            from asterism.cli import app
    except MissingExtra as error:
        sys.exit(f"asterism: {error}")
    sys.exit(app.run(sys.argv[1:] if arguments is None else arguments))
