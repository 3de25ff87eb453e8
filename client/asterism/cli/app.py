"""Composition of the commands.

Also maps each error to one line on stderr and an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import asterism
from asterism.cli import (
    backups,
    export,
    jobs,
    load,
    metad,
    sample,
    serve,
    spaces,
    status,
    verify,
    warm,
)
from asterism.cli.console import command as consoling
from asterism.cli.context import DEFAULT_ADDRESS, CommandContext
from asterism.cli.exit_codes import ExitCode, exit_code_of
from asterism.cli.global_options import hoist_global_options
from asterism.cli.output import Output
from asterism.extras import MissingExtra
from asterism_proto.errors import AsterismError

EPILOG = (
    "Exit codes: 0 success, 1 failed, 2 wrong usage, 3 not found, 4 temporarily unavailable "
    "(not ready, unreachable, busy), 5 conflict, 6 timeout, "
    "7 corrupt data. The options above may also follow a command."
)

app = typer.Typer(
    name="asterism",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=EPILOG,
)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.add_typer(spaces.app, name="space")
app.command("console", epilog=consoling.EXAMPLES)(consoling.console)
app.command("load", epilog=load.EXAMPLES)(load.load)
app.add_typer(jobs.app, name="job")
app.add_typer(sample.app, name="sample")
app.add_typer(export.app, name="export")
app.command("verify", epilog=verify.EXAMPLES)(verify.verify)
app.command("backup", epilog=backups.BACKUP_EXAMPLES)(backups.backup)
app.command("restore", epilog=backups.RESTORE_EXAMPLES)(backups.restore)
app.add_typer(metad.app, name="metad")
app.command("status", epilog=status.EXAMPLES)(status.status)
app.command("warm", epilog=warm.EXAMPLES)(warm.warm)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"asterism {asterism.__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    *,
    address: Annotated[
        str | None,
        typer.Option(
            envvar="ASTERISM_ADDRESS",
            metavar="HOST:PORT",
            help=f"Address of graphd, several separated by commas. Default: {DEFAULT_ADDRESS}.",
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Use the graph in this folder in this process, without a server."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON document on stdout, and nothing else."),
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="Seconds that one call may take.")
    ] = 30.0,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Sample from graphs that are larger than memory."""
    # An explicit folder takes precedence over an address from the environment.
    source = context.get_parameter_source("address")
    if path is not None and source is not None and source.name == "ENVIRONMENT":
        address = None
    context.obj = CommandContext(
        address=address, path=path, timeout_s=timeout, output=Output(as_json=as_json)
    )


def _print_error(message: str) -> None:
    print("asterism: " + " ".join(message.split()), file=sys.stderr)


def run(arguments: Sequence[str]) -> ExitCode:
    """Run one command; print an error as one line on stderr, and return the exit code."""
    try:
        code = app(hoist_global_options(arguments), prog_name="asterism", standalone_mode=False)
        sys.stdout.flush()
        return ExitCode(code) if isinstance(code, int) else ExitCode.DONE
    except AsterismError as error:
        _print_error(error.message)
        return exit_code_of(error)
    except MissingExtra as error:
        _print_error(str(error))
        return ExitCode.FAILED
    except (KeyboardInterrupt, typer.Abort):
        _print_error("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # the reader closed the pipe: a flush at exit would fail
        return ExitCode.DONE
    except OSError as error:
        _print_error(f"{error.filename or 'the system'}: {error.strerror or error}")
        return ExitCode.FAILED
    except Exception as error:
        # Usage errors may be classes of click or of the copy of click inside typer. Only their
        # method identifies both.
        format_message = getattr(error, "format_message", None)
        if format_message is None:
            raise
        command = getattr(getattr(error, "ctx", None), "command_path", None) or "asterism"
        if type(error).__name__ != "NoArgsIsHelpError":  # the help has been printed
            _print_error(f"{format_message().rstrip('.')}; see `{command} --help`")
        return ExitCode.USAGE
