"""Local files and folders that callers name: one rule for every entry.

A leading ``~`` is the user's home folder; what names no file or folder is refused. Patterns and
addresses of other protocols have modules of their own."""

from __future__ import annotations

import os
from pathlib import Path

from asterism_proto.errors import InvalidRequest


def local_path(argument: str, value: object, *, kind: str = "folder") -> Path:
    """Return the path that a caller passed, with a leading ``~`` expanded.

    Parameters
    ----------
    argument : str
        Name of the argument, for messages.
    value : object
        What the caller passed.
    kind : {"folder", "file"}, default "folder"
        What the argument names, for messages.

    Raises
    ------
    InvalidRequest
        If ``value`` names no file or folder.
    """
    if not isinstance(value, str | os.PathLike):
        raise InvalidRequest(f"{argument}={value!r:.200}: expected a {kind}, as a string or a Path")
    text = os.fspath(value)
    if not isinstance(text, str) or "\0" in text:
        raise InvalidRequest(
            f"{argument}={text!r:.200}: expected a {kind}, as a string without NUL"
        )
    if not text:
        remedy = "; '.' is the current one" if kind == "folder" else ""
        raise InvalidRequest(f"{argument}='': expected a {kind}{remedy}")
    return Path(os.path.expanduser(text))
