"""Scripts: statements from files, run in order until one fails."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from asterism.cli.console.session import Console, suggestion
from asterism.cli.console.tokens import ScriptStatement, StatementSplitter
from asterism.cli.error_output import print_error
from asterism.cli.exit_codes import exit_code_of
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
            report_script_error(console, failed)
            first = first or failed.error
    return first


def report_script_error(console: Console, failed: ScriptError) -> None:
    """Print the failure of a statement of a script on standard error."""
    if console.as_json:
        error = failed.error
        print_error(
            str(failed),
            name=type(error).__name__,
            code=exit_code_of(error),
            place=error.place,
            as_json=True,
        )
    else:
        print(f"asterism: {failed}", file=sys.stderr)


def run_file(console: Console, path: Path) -> None:
    """Run the statements of a file in a console, until one fails."""
    run_script(console, read_lines(path), str(path))


def located_message(error: AsterismError, name: str, statement: ScriptStatement) -> str:
    """Return the message of an error, prefixed with its file and line."""
    if error.place is None:
        return f"{name}:{statement.line}: {error.message}"
    place = error.place
    message = error.message.removeprefix(f"line {place.line}, column {place.column}: ")
    column = place.column + (statement.column - 1 if place.line == 1 else 0)
    meant = suggestion(statement.text, place)
    hint = f"; did you mean {meant}?" if meant else ""
    first, newline, excerpt = message.partition("\n")
    at = f"{name}:{statement.line + place.line - 1}: column {column}"
    return f"{at}: {first}{hint}{newline}{excerpt}"
