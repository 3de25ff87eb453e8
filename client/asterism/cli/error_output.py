"""Errors of the command on standard error: a line, or one JSON document with ``--json``."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from asterism.cli.exit_codes import ExitCode
from asterism_proto.errors import SourceLocation


def print_error(
    message: str,
    *,
    name: str,
    code: ExitCode,
    place: SourceLocation | None = None,
    as_json: bool,
) -> None:
    """Print an error on standard error.

    Parameters
    ----------
    message : str
        Description of the error, with the remedy.
    name : str
        Class of the error, such as ``NotFound``.
    code : ExitCode
        Exit code of the command.
    place : SourceLocation, optional
        Location of the error in a statement or filter.
    as_json : bool
        Print a JSON document instead of a line.
    """
    text = " ".join(message.split())
    if not as_json:
        print(f"asterism: {text}", file=sys.stderr, flush=True)
        return
    document: dict[str, Any] = {"error": name, "message": text, "exit_code": int(code)}
    print(
        json.dumps(document | (asdict(place) if place is not None else {})),
        file=sys.stderr,
        flush=True,
    )
