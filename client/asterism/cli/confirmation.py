"""Confirmation of commands that remove data."""

from __future__ import annotations

import sys

from asterism.cli.output import Output
from asterism_proto.errors import InvalidRequest


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
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:  # Ctrl-D: end the line of the question
        print(file=sys.stderr)
    return answer.strip().lower() in ("y", "yes")
