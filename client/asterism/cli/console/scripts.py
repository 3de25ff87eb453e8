"""Scripts: statements from files, run in order until one fails."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from asterism.cli.console.session import Console
from asterism.cli.console.tokens import ScriptStatement, StatementSplitter
from asterism_proto.errors import AsterismError, InvalidRequest


class ScriptError(Exception):
    """Failure of a statement of a script, with its location.

    Parameters
    ----------
    error : AsterismError
        Error of the statement.
    message : str
        Message with file and line.
    """

    def __init__(self, error: AsterismError, message: str) -> None:
        super().__init__(message)
        self.error = error


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file; raise InvalidRequest if it is not valid UTF-8."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from file
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"{path}: not a text of UTF-8: byte {error.object[error.start]:#x}"
        ) from error


def iter_statements(lines: Iterable[str]) -> Iterator[ScriptStatement]:
    """Yield the statements of lines, each as soon as it ends."""
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
        Console that runs them.
    lines : iterable of str
        Lines with their line endings.
    name : str
        Name of the script in messages.
    keep_going : bool
        Continue after a statement that fails.

    Returns
    -------
    AsterismError or None
        The first error, with ``keep_going``.

    Raises
    ------
    ScriptError
        At the first error, without ``keep_going``.
    QuitConsole
        If a statement leaves the console.
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
    """Run the statements of a file in a console, until one fails."""
    run_script(console, read_lines(path), str(path))


def located_message(error: AsterismError, name: str, statement: ScriptStatement) -> str:
    """Return the message of an error, prefixed with its file and line."""
    if error.place is None:
        return f"{name}:{statement.line}: {error.message}"
    message = error.message.removeprefix(f"line {error.place.line}, column {error.place.column}: ")
    return f"{name}:{statement.line + error.place.line - 1}: column {error.place.column}: {message}"
