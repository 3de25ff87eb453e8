"""`asterism console`: run statements at a prompt or from scripts.

A script is a file, an option of the command line, or standard input.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.console import scripts
from asterism.cli.console.history import history_path
from asterism.cli.console.results import Format
from asterism.cli.console.session import LANGUAGES, Console, QuitConsole
from asterism.cli.context import DEFAULT_ADDRESS, CommandContext, command_context
from asterism.cli.exit_codes import ExitCode, exit_code_of
from asterism.cli.help_text import examples
from asterism_proto.errors import AsterismError, InvalidRequest

if TYPE_CHECKING:
    from asterism import Client

LineSource = Callable[[], Iterable[str]]
_STDIN = Path("-")
EXAMPLES = examples(
    "asterism console shop",
    "asterism console -e 'SHOW SPACES'",
    "asterism console shop -f nightly.ngql --format csv > out.csv",
    "asterism console --path data/ < file.ngql",
)


def console(
    context: typer.Context,
    space: Annotated[
        str | None, typer.Argument(metavar="SPACE", help="Graph space to use at the start.")
    ] = None,
    *,
    execute: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--execute",
            metavar="STATEMENTS",
            help="Run these statements, and exit. Repeatable.",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "-f",
            "--file",
            metavar="FILE",
            help="Run the statements of a file, and exit; - is standard input. Repeatable.",
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            metavar="table|csv|json|tsv",
            help="Output format. Default: table; json with --json.",
        ),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="Continue after a statement that fails; exit with the code of the first failure.",
        ),
    ] = False,
    language: Annotated[
        str, typer.Option(metavar="|".join(LANGUAGES), help="Language of the statements.")
    ] = LANGUAGES[0],
    timing: Annotated[
        bool | None,
        typer.Option(
            "--timing/--no-timing",
            help="Print rows, time, version and seed after each result. Default: at a prompt only.",
        ),
    ] = None,
    no_history: Annotated[
        bool, typer.Option("--no-history", help="Do not save the typed statements.")
    ] = False,
    state_home: Annotated[
        Path | None, typer.Option(metavar="FOLDER", envvar="XDG_STATE_HOME", hidden=True)
    ] = None,
) -> None:
    """Run statements: at a prompt, or from a file, the command line or standard input.

    At a prompt a statement ends with ; and may take several lines; :help lists the commands. A
    script stops at the first statement that fails, and prints its file and line."""
    session = command_context(context)
    if language not in LANGUAGES:
        raise InvalidRequest(f"--language={language!r}: expected {' or '.join(LANGUAGES)}")
    for_terminal = not execute and not files and sys.stdin.isatty() and sys.stdout.isatty()
    result_format = form or (Format.JSON if session.output.as_json else Format.TABLE)
    with session.client(allow_read_only=True) as client:
        statement_console = Console(
            client=client,
            out=sys.stdout,
            result_format=result_format,
            for_terminal=for_terminal,
            timing=for_terminal if timing is None else timing,
            language=language,
            run_file=scripts.run_file,
            as_json=session.output.as_json,
        )
        if space is not None:
            statement_console.space = client.describe(space).name
        session.output.end_activity()
        if for_terminal:
            _prompt(
                statement_console, client, session, None if no_history else history_path(state_home)
            )
            return
        code = _run_scripts(statement_console, _scripts(execute or [], files or []), keep_going)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def _prompt(
    statement_console: Console, client: Client, session: CommandContext, history_file: Path | None
) -> None:
    try:
        from asterism.cli.console.prompt import run_prompt
    except ModuleNotFoundError as error:
        raise InvalidRequest(
            f"the prompt needs {error.name}: pip install 'asterism-graph[cli]'; statements are "
            "also taken with -e, -f and from a pipe"
        ) from error
    with session.output.activity("waiting for the service"):
        client.spaces()  # fail before the prompt if the service is unreachable
    location = str(session.path) if session.path is not None else session.address or DEFAULT_ADDRESS
    run_prompt(
        statement_console,
        history_file,
        f"Asterism at {location}. Statements end with ;  :help  :quit",
    )


def _scripts(execute: list[str], files: list[Path]) -> list[tuple[str, LineSource]]:
    """Return the names and lines of the scripts, starting with ``-e`` statements."""
    scripts_to_run: list[tuple[str, LineSource]] = [
        ("-e", partial(text.splitlines, True)) for text in execute
    ]
    script_files = files if execute or files else [_STDIN]
    return scripts_to_run + [
        ("<stdin>", _stdin) if file == _STDIN else (str(file), partial(scripts.read_lines, file))
        for file in script_files
    ]


def _stdin() -> Iterator[str]:
    try:
        yield from sys.stdin
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"standard input: not a text of {error.encoding}: byte {error.object[error.start]:#x}"
        ) from error


def _run_scripts(
    statement_console: Console, scripts_to_run: list[tuple[str, LineSource]], keep_going: bool
) -> ExitCode:
    """Run scripts in order; return the exit code of the first error."""
    first: AsterismError | None = None
    try:
        for name, lines in scripts_to_run:
            failed = scripts.run_script(statement_console, lines(), name, keep_going=keep_going)
            first = first or failed
    except QuitConsole:
        pass
    except scripts.ScriptError as failed:
        statement_console.out.flush()
        scripts.report_script_error(statement_console, failed)
        return exit_code_of(failed.error)
    return exit_code_of(first) if first is not None else ExitCode.DONE
