"""Messages of wrong usage, without the wording of the libraries that parse the command line."""

from __future__ import annotations

import re
from typing import Any

_NUMBERS = re.compile(r"Input should be a valid (integer|number)\b.*")
_BOUND = re.compile(r"Input should be ((?:greater|less) .*)")
_CHOICES = re.compile(r"(?:Value error, )?'[^']*' is not one of (.*)")


def usage_message(error: Any, command_path: str) -> str:
    """Return the message of a usage error, with the command that explains the usage.

    Parameters
    ----------
    error : click.UsageError
        The error, of click or of the copy of click inside typer.
    command_path : str
        The command, if the error does not know it.
    """
    message = _wrong_value(error) or error.format_message().rstrip(".")
    path = getattr(getattr(error, "ctx", None), "command_path", None) or command_path
    if message.endswith("?"):
        return f"{message} See `{path} --help`"
    return f"{message}; see `{path} --help`"


def _wrong_value(error: Any) -> str:
    """Return the message for a value that typer's validation refuses; empty for other errors."""
    problems = getattr(error.__cause__, "errors", None)
    parameter = getattr(error, "param", None)
    if problems is None or parameter is None:
        return ""
    problem = problems()[0]
    if number := _NUMBERS.fullmatch(problem["msg"]):
        expected = "an integer" if number[1] == "integer" else "a number"
    elif bound := _BOUND.fullmatch(problem["msg"]):
        expected = f"a value {bound[1]}"
    elif choices := _CHOICES.fullmatch(problem["msg"]):
        expected = f"one of {choices[1]}"
    else:
        return ""
    return f"{_name(parameter)}={problem['input']!r}: expected {expected}"


def _name(parameter: Any) -> str:
    """Return an option, or the name of an argument as help texts write it."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    metavar = parameter.metavar or ""
    is_word = metavar.isidentifier() and metavar.isupper()
    return metavar if is_word else str(parameter.name)
