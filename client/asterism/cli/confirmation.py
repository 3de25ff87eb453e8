"""Confirmation of commands that remove data."""

from __future__ import annotations

import select
import sys

from asterism.cli.output import Output
from asterism_proto.errors import InvalidRequest

_POLL_S = 0.5


def is_confirmed(output: Output, question: str) -> bool:
    """Ask a question at the terminal and return whether the user said yes.

    Raises
    ------
    InvalidRequest
        If no terminal can answer.
    """
    if output.as_json or not sys.stdin.isatty():
        raise InvalidRequest(
            "--yes: expected this option, because there is no terminal to ask at; add --yes"
        )
    output.end_activity()
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    # A signal that arrives just before a read would have no effect until its end.
    while not select.select([sys.stdin], [], [], _POLL_S)[0]:
        pass
    answer = sys.stdin.readline()
    if not answer:  # Ctrl-D: end the line of the question
        print(file=sys.stderr)
    return answer.strip().lower() in ("y", "yes")
