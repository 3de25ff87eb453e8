"""Statements from files: run in their order, until one fails."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from asterism.cli.console.session import Console
from asterism.cli.console.tokens import ScriptStatement, StatementSplitter
from asterism_proto.errors import AsterismError, InvalidRequest


class ScriptError(Exception):
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


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file of UTF-8; InvalidRequest where it is none."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from file
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"{path}: not a text of UTF-8: byte {error.object[error.start]:#x}"
        ) from error


def iter_statements(lines: Iterable[str]) -> Iterator[ScriptStatement]:
    """The statements of lines, each as soon as it ends."""
    splitter = StatementSplitter()
    for line in lines:
        yield from splitter.feed(line)
    yield from splitter.finish()


def run_script(
    console: Console, lines: Iterable[str], name: str, *, keep_going: bool = False
) -> AsterismError | None:
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
    ScriptError
        At the first error, otherwise.
    QuitConsole
        Where a statement says so.
    """
    first: AsterismError | None = None
    for statement in iter_statements(lines):
        try:
            console.run(statement.text)
        except (AsterismError, ScriptError) as error:
            failed = (
                error
                if isinstance(error, ScriptError)
                else ScriptError(error, located_message(error, name, statement))
            )
            if not keep_going:
                raise failed from error
            console.out.flush()
            print(f"asterism: {failed}", file=sys.stderr)
            first = first or failed.error
    return first


def run_file(console: Console, path: Path) -> None:
    """Run a file's statements in a console, until one fails."""
    run_script(console, read_lines(path), str(path))


def located_message(error: AsterismError, name: str, statement: ScriptStatement) -> str:
    """What an error says, behind the file and the line that it is about."""
    if error.place is None:
        return f"{name}:{statement.line}: {error.message}"
    message = error.message.removeprefix(f"line {error.place.line}, column {error.place.column}: ")
    return f"{name}:{statement.line + error.place.line - 1}: column {error.place.column}: {message}"
