"""The `asterism` command.

`app` composes the commands and turns errors into exit codes (`exits`); each command is a module of
the name that one types. They ask `asterism`'s client only; what is heavy is imported by the command
that needs it, so that help is fast."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that `arguments` (by default the process's own) spell, and exit with its
    code.
    """
    from asterism.cli import app

    sys.exit(app.run(sys.argv[1:] if arguments is None else arguments))
