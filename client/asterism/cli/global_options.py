"""Global options, which are accepted before or after the name of a command."""

from __future__ import annotations

from collections.abc import Sequence

OPTIONS_WITH_VALUE = frozenset(
    {
        "--address",
        "--api-key-file",
        "--path",
        "--timeout",
        "--tls-ca",
        "--tls-cert",
        "--tls-key",
        "--tls-server-name",
    }
)
FLAGS = frozenset({"--json"})


def hoist_global_options(arguments: Sequence[str]) -> list[str]:
    """Return `arguments` with the global options first, in their order.

    Arguments after ``--`` are not options and stay where they are.
    """
    global_options: list[str] = []
    rest: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            rest += [argument, *remaining]
        elif argument in FLAGS or (
            argument.partition("=")[0] in OPTIONS_WITH_VALUE and "=" in argument
        ):
            global_options.append(argument)
        elif argument in OPTIONS_WITH_VALUE:
            global_options += [
                argument,
                *(value for value in [next(remaining, None)] if value is not None),
            ]
        else:
            rest.append(argument)
    return global_options + rest


def is_json_requested(arguments: Sequence[str]) -> bool:
    """Return whether the global options, which are the first arguments, contain ``--json``."""
    remaining = iter(arguments)
    for argument in remaining:
        if argument in FLAGS:
            return True
        if argument in OPTIONS_WITH_VALUE:
            next(remaining, None)
        elif argument.partition("=")[0] not in OPTIONS_WITH_VALUE:
            return False
    return False
