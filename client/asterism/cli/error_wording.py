"""Messages of the Python API in the words of the command: its options for names of arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Spellings = Mapping[str, tuple[str, str]]
"""Option and its negative form by argument name; "" if there is no such form."""

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "--address": ("addresses",),
    "--count": ("n",),
    "--edge-format": ("edges",),
    "--expires-days": ("expires_s",),
    "--exclude": ("exclude_edges",),
    "--exclude-edge": ("exclude",),
    "--fanout": ("fanouts",),
    "--force": ("again",),
    "--format": ("formats",),
    "--graph-version": ("version",),
    "--hop": ("hops",),
    "--induced-type": ("among",),
    "--memory-limit": ("memory_limit_mib",),
    "--node-type": ("ntype",),
    "--on-unknown": ("on_unknown", "unknown"),
    "--reverse-type": ("reverse_types",),
    "--seed-time": ("times",),
    "--timeout": ("timeout_s",),
    "--total-timeout": ("timeout_s",),
    "--type": ("etype", "etypes", "edge_types", "ntypes", "node_types"),
    "--weight": ("weights",),
}
"""Arguments of each option that has another name; a later option has precedence."""
_NEGATIONS: Mapping[str, str] = {"weighted": "--uniform"}
"""Flags that mean that an argument is False."""
_ASSIGNMENT = re.compile(
    r"(?<![\w.`'\"-])(?P<name>[a-z][a-z0-9_]*)=(?P<value>'[^']*'|\"[^\"]*\"|[^\s,;:)]+)"
)
_BARE_NAME = re.compile(r"(?<![\w.\"'-])(?P<name>[a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?![\w=(.\"'])")


def option_spellings(command: Any, group: Any = None) -> Spellings:
    """Return the options of a command by the argument name that they stand for.

    Parameters
    ----------
    command : click.Command
        The command.
    group : click.Command, optional
        The program, with the global options.
    """
    spellings: dict[str, tuple[str, str]] = {}
    for parameter in [*(group.params if group is not None else ()), *command.params]:
        if parameter.param_type_name == "argument":  # a value alone, without an option
            spellings.pop(parameter.name, None)
            continue
        if getattr(parameter, "hidden", False):
            continue
        option = max(parameter.opts, key=len)
        negative = max(parameter.secondary_opts, key=len, default="")
        spellings[option.strip("-").replace("-", "_")] = (option, negative)
        for alias in _ALIASES.get(option, ()):
            spellings[alias] = (option, negative)
    for name, option in _NEGATIONS.items():
        if option.strip("-") in spellings:
            spellings[name] = ("", option)
    return spellings


def in_options(message: str, spellings: Spellings) -> str:
    """Return a message with options in the place of the arguments of the Python API.

    ``on_bad_rows='skip'`` becomes ``--on-bad-rows skip``, ``overwrite=True`` ``--overwrite`` and
    ``resume=False`` ``no --resume``. At the start of a message, where the wrong value stands, the
    form ``--option=value`` stays.
    """

    def assignment(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        option, negative = spellings.get(name, ("", ""))
        if value == "False" and negative:
            return negative
        if not option:
            return match[0]
        if value in ("True", "None"):  # None: the option is missing
            return option
        if value == "False":
            return f"no {option}"
        return f"{option}={value}" if match.start() == 0 else f"{option} {value.strip(_QUOTES)}"

    def bare(match: re.Match[str]) -> str:
        option, _ = spellings.get(match["name"], ("", ""))
        return option or match[0]

    return _BARE_NAME.sub(bare, _ASSIGNMENT.sub(assignment, message))


_QUOTES = "'\""
