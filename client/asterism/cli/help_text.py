"""Help texts of commands."""

from __future__ import annotations

import re
from typing import Any


def examples(*command_lines: str, before: str = "") -> str:
    """Return the end of a help text: a sentence, and examples that can be copied line by line."""
    # click wraps paragraphs, except those that begin with a line of \b.
    lines = ["Example:" if len(command_lines) == 1 else "Examples:"]
    lines += [f"  {line}" for line in command_lines]
    paragraph = "\n".join(["\b", *lines])
    return f"{before}\n\n{paragraph}" if before else paragraph


def simplify_parameters(command: Any) -> None:
    """Leave Python types and ranges such as ``x>=0`` out of the help of a command and its group.

    Options have words for their values; errors state ranges. A required argument has no braces.
    Typer has no setting for these.
    """
    for subcommand in getattr(command, "commands", {}).values():
        simplify_parameters(subcommand)
    for parameter in command.params:
        if hasattr(parameter, "_get_number_range_help_str"):
            parameter._get_number_range_help_str = lambda: None
        if parameter.param_type_name == "argument" and hasattr(parameter, "display_type_rich"):
            parameter.display_type_rich = lambda ctx: None
        if parameter.param_type_name == "argument" and hasattr(parameter, "_usage_display_name"):
            usage = _usage_name(parameter._usage_display_name())
            parameter._usage_display_name = lambda name=usage: name


def _usage_name(name: str) -> str:
    """Return the name of an argument in a usage line, without braces around a required one."""
    required = re.fullmatch(r"\{(.*)\}(?:\.\.\.)?", name)
    if required is None:
        return name
    repeated = name.endswith("...") and not required[1].endswith("...")
    return f"{required[1]}..." if repeated else required[1]
