"""`asterism console`: statements at a prompt, from a file, from the command line or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.console import scripts
from asterism.cli.console.history import file_of
from asterism.cli.console.rendering import Format
from asterism.cli.console.running import LANGUAGES, Console, Quit
from asterism.cli.exits import ExitCode, code_of
from asterism.cli.session import DEFAULT_ADDRESS, Session, session_of
from asterism_proto.errors import AsterismError, InvalidRequest

if TYPE_CHECKING:
    from asterism import Client

Lines = Callable[[], Iterable[str]]
_STDIN = Path("-")
EXAMPLES = (
    "Examples: asterism console shop; asterism console -e 'SHOW SPACES'; asterism console shop -f nightly.ngql --format csv > out.csv; "
    "asterism console --path data/ < file.ngql"
)


def console(
    context: typer.Context,
    space: Annotated[str | None, typer.Argument(metavar="SPACE", help="What the first statements are about.")] = None,
    *,
    execute: Annotated[list[str] | None, typer.Option("-e", "--execute", metavar="STATEMENTS", help="Run these, and end.")] = None,
    files: Annotated[
        list[Path] | None, typer.Option("-f", "--file", metavar="FILE", help="Run a file's statements, and end; - is standard input.")
    ] = None,
    form: Annotated[Format | None, typer.Option("--format", help="How results are printed. Default: table; json with --json.")] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Go on after a statement that fails; the exit code is that of the first.")] = False,
    language: Annotated[str, typer.Option(metavar="|".join(LANGUAGES), help="What statements are in.")] = LANGUAGES[0],
    timing: Annotated[bool | None, typer.Option("--timing/--no-timing", help="Tell rows, time, version and seed. Default: at a prompt.")] = None,
    no_history: Annotated[bool, typer.Option("--no-history", help="Remember nothing of what is typed.")] = False,
    state_home: Annotated[Path | None, typer.Option(envvar="XDG_STATE_HOME", hidden=True)] = None,
) -> None:
    """Ask statements: at a prompt, or from a file, the command line or standard input.

    At a prompt a statement ends with ; and may take several lines; :help says what else there is. A script stops at the first statement
    that fails, and says its file and line.
    """
    session = session_of(context)
    if language not in LANGUAGES:
        raise InvalidRequest(f"--language {language}: expected {' or '.join(LANGUAGES)}")
    people = not execute and not files and sys.stdin.isatty() and sys.stdout.isatty()
    told = form or (Format.JSON if session.output.as_json else Format.TABLE)
    with session.client(reading=True) as client:
        asked = Console(
            client=client,
            out=sys.stdout,
            form=told,
            people=people,
            timing=people if timing is None else timing,
            language=language,
            read=scripts.source,
        )
        if space is not None:
            asked.space = client.describe(space).name
        if people:
            _prompt(asked, client, session, None if no_history else file_of(state_home))
            return
        code = _run(asked, _scripts(execute or [], files or []), keep_going)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def _prompt(asked: Console, client: Client, session: Session, kept: Path | None) -> None:
    try:
        from asterism.cli.console.prompting import interact
    except ModuleNotFoundError as error:
        raise InvalidRequest(
            f"the prompt needs {error.name}: pip install 'asterism[cli]'; statements are also taken with -e, -f and from a pipe"
        ) from error
    client.spaces()  # who can not be reached is told of before anything is typed
    where = str(session.path) if session.path is not None else session.address or DEFAULT_ADDRESS
    interact(asked, kept, f"Asterism at {where}. Statements end with ;  :help  :quit")


def _scripts(execute: list[str], files: list[Path]) -> list[tuple[str, Lines]]:
    """Names of what is run, and its lines: what the command line says first."""
    found: list[tuple[str, Lines]] = [("-e", partial(text.splitlines, True)) for text in execute]
    read = files if execute or files else [_STDIN]
    return found + [("<stdin>", _stdin) if file == _STDIN else (str(file), partial(scripts.lines_of, file)) for file in read]


def _stdin() -> Iterator[str]:
    try:
        yield from sys.stdin
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"standard input: not a text of {error.encoding}: byte {error.object[error.start]:#x}") from error


def _run(asked: Console, found: list[tuple[str, Lines]], keep_going: bool) -> ExitCode:
    """Run scripts one after the other; the exit code of the first error."""
    first: AsterismError | None = None
    try:
        for name, lines in found:
            failed = scripts.run(asked, lines(), name, keep_going=keep_going)
            first = first or failed
    except Quit:
        pass
    except scripts.ScriptFailed as failed:
        asked.out.flush()
        print(f"asterism: {failed}", file=sys.stderr)
        return code_of(failed.error)
    return code_of(first) if first is not None else ExitCode.DONE
