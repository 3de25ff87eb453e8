"""Global options, which are accepted before or after the name of a command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from asterism_proto.errors import InvalidRequest

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


def command_word(arguments: Sequence[str]) -> str:
    """Return the word after the global options, which are the first arguments, or ``""``.

    It names the command, if the arguments are valid."""
    remaining = iter(arguments)
    for argument in remaining:
        if argument in OPTIONS_WITH_VALUE:
            next(remaining, None)
        elif argument not in FLAGS and argument.partition("=")[0] not in OPTIONS_WITH_VALUE:
            return argument
    return ""


def is_json_requested(arguments: Sequence[str]) -> bool:
    """Return whether the global options, which are the first arguments, contain ``--json``."""
    return any(option in FLAGS for option, _ in _iter_options(arguments))


def check_folder(arguments: Sequence[str]) -> None:
    """Raise InvalidRequest if the folder of ``--path`` is empty.

    As a `pathlib.Path`, an empty string is the current folder.
    """
    if ("--path", "") in _iter_options(arguments):
        raise InvalidRequest("--path='': expected a folder; '.' is the current one")


def _iter_options(arguments: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the global options, which are the first arguments, with their values."""
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        if argument in FLAGS:
            yield argument, None
        elif argument in OPTIONS_WITH_VALUE:
            yield argument, next(remaining, None)
        elif name in OPTIONS_WITH_VALUE and equals:
            yield name, value
        else:
            return
