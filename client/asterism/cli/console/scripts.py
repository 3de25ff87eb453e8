"""Statements from files: run in their order, until one fails."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from asterism.cli.console.running import Console
from asterism.cli.console.scanning import Splitter, Statement
from asterism_proto.errors import AsterismError, InvalidRequest


class ScriptFailed(Exception):
    """A statement of a script failed, and what was said of it names its place.

    Parameters
    ----------
    error : AsterismError
        How it failed.
    message : str
        With the file and the line.
    """

    def __init__(self, error: AsterismError, message: str) -> None:
        super().__init__(message)
        self.error = error


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a file of UTF-8; InvalidRequest where it is none."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from file
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path}: not a text of UTF-8: byte {error.object[error.start]:#x}") from error


def statements_of(lines: Iterable[str]) -> Iterator[Statement]:
    """The statements of lines, each as soon as it ends."""
    splitter = Splitter()
    for line in lines:
        yield from splitter.feed(line)
    yield from splitter.end()


def run(console: Console, lines: Iterable[str], name: str, *, keep_going: bool = False) -> AsterismError | None:
    """Run statements until one fails.

    Parameters
    ----------
    console : Console
        What runs them.
    lines : iterable of str
        With the signs that end them.
    name : str
        What they are called in messages.
    keep_going : bool
        Whether those after one that failed are run too.

    Returns
    -------
    AsterismError or None
        The first error, where it went on after one.

    Raises
    ------
    ScriptFailed
        At the first error, otherwise.
    Quit
        Where a statement says so.
    """
    first: AsterismError | None = None
    for statement in statements_of(lines):
        try:
            console.run(statement.text)
        except (AsterismError, ScriptFailed) as error:
            failed = error if isinstance(error, ScriptFailed) else ScriptFailed(error, placed(error, name, statement))
            if not keep_going:
                raise failed from error
            console.out.flush()
            print(f"asterism: {failed}", file=sys.stderr)
            first = first or failed.error
    return first


def source(console: Console, path: Path) -> None:
    """Run a file's statements in a console, until one fails."""
    run(console, lines_of(path), str(path))


def placed(error: AsterismError, name: str, statement: Statement) -> str:
    """What an error says, behind the file and the line that it is about."""
    if error.place is None:
        return f"{name}:{statement.line}: {error.message}"
    said = error.message.removeprefix(f"line {error.place.line}, column {error.place.column}: ")
    return f"{name}:{statement.line + error.place.line - 1}: column {error.place.column}: {said}"
