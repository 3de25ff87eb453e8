"""Composition of the commands.

Also maps each error to one line on stderr and an exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

import asterism
from asterism.cli import (
    access,
    backups,
    certificates,
    export,
    help_text,
    jobs,
    load,
    metad,
    serve,
    shell_completion,
    spaces,
    status,
    verify,
    warm,
)
from asterism.cli.activity import ActivityLine
from asterism.cli.console import command as consoling
from asterism.cli.context import DEFAULT_ADDRESS, CommandContext
from asterism.cli.error_output import print_error
from asterism.cli.error_wording import in_options, option_spellings
from asterism.cli.exit_codes import ExitCode, exit_code_of
from asterism.cli.global_options import (
    check_folder,
    command_word,
    hoist_global_options,
    is_json_requested,
)
from asterism.cli.interruption import CommandInterrupted
from asterism.cli.output import Output
from asterism.cli.sample import commands
from asterism.cli.usage_errors import usage_message
from asterism.extras import MissingExtra
from asterism.transport.credentials import ENVIRONMENT as KEY_VARIABLES
from asterism.transport.credentials import CredentialFile
from asterism.transport.tls import ENVIRONMENT as TLS_VARIABLES
from asterism.transport.tls import tls_from
from asterism_proto.errors import AsterismError

EPILOG = (
    "The options above may also follow a command.\n\n"
    "Exit codes: 0 success, 1 failed, 2 wrong usage, 3 not found, 4 temporarily unavailable "
    "(not ready, unreachable, busy), 5 conflict, 6 timeout, 7 corrupt data, 8 not permitted, 130 "
    "interrupted.\n\n"
    + help_text.examples(
        "asterism serve data/",
        "asterism load shop data/metadata.json --create --build",
        "asterism sample nodes shop -n 5",
        "asterism console shop",
    )
)

# Plain help: rich would draw boxes, name the type of each flag, and wrap options into towers.
app = typer.Typer(
    name="asterism",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EPILOG,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
app.command("serve", short_help="Run the whole service in one process.", epilog=serve.EXAMPLES)(
    serve.serve
)
app.add_typer(spaces.app, name="space")
app.command(
    "console", short_help="Run statements at a prompt, or from scripts.", epilog=consoling.EXAMPLES
)(consoling.console)
app.command(
    "load", short_help="Load files into a space, and build a version.", epilog=load.EXAMPLES
)(load.load)
app.add_typer(jobs.app, name="job")
app.add_typer(commands.app, name="sample")
app.add_typer(export.app, name="export")
app.command(
    "verify", short_help="Test samples of a version against its weights.", epilog=verify.EXAMPLES
)(verify.verify)
app.command("backup", short_help="Back up a version of a space.", epilog=backups.BACKUP_EXAMPLES)(
    backups.backup
)
app.command(
    "restore", short_help="Restore a space from a backup.", epilog=backups.RESTORE_EXAMPLES
)(backups.restore)
app.add_typer(access.app, name="access")
app.add_typer(certificates.app, name="certificates")
app.add_typer(metad.app, name="metad")
app.command("status", short_help="Show hosts, spaces and readiness.", epilog=status.EXAMPLES)(
    status.status
)
app.command(
    "completion",
    short_help="Print the completion script of a shell.",
    epilog=shell_completion.EXAMPLES,
)(shell_completion.completion)
app.command("warm", short_help="Compile the kernels for this machine.", epilog=warm.EXAMPLES)(
    warm.warm
)


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
    tls_ca: Annotated[
        str | None,
        typer.Option(
            envvar=TLS_VARIABLES["ca"],
            metavar="FILE|system",
            help="Connect with TLS, and trust the certificate authorities in this file, or those "
            "of this system.",
        ),
    ] = None,
    tls_cert: Annotated[
        str | None,
        typer.Option(
            envvar=TLS_VARIABLES["cert"],
            metavar="FILE",
            help="Certificate to show to the service.",
        ),
    ] = None,
    tls_key: Annotated[
        str | None,
        typer.Option(
            envvar=TLS_VARIABLES["key"], metavar="FILE", help="Private key of the certificate."
        ),
    ] = None,
    tls_server_name: Annotated[
        str | None,
        typer.Option(
            envvar=TLS_VARIABLES["server_name"],
            metavar="NAME",
            help="Name in the service's certificate. Default: the host of the address.",
        ),
    ] = None,
    api_key_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File with the API key or token of every call. Else the environment variable "
            f"{KEY_VARIABLES['key']} has it, or {KEY_VARIABLES['file']} names the file.",
        ),
    ] = None,
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
    tls = {"ca": tls_ca, "cert": tls_cert, "key": tls_key, "server_name": tls_server_name}
    sources = {field: context.get_parameter_source(f"tls_{field}") for field in tls}
    context.obj = CommandContext(
        address=address,
        path=path,
        timeout_s=timeout,
        output=Output(as_json=as_json),
        tls=tls_from(tls),
        api_key=None if api_key_file is None else CredentialFile(api_key_file),
        tls_arguments=tls_from(
            {
                field: value
                for field, value in tls.items()
                if (source := sources[field]) is not None and source.name == "COMMANDLINE"
            }
        ),
    )


def run(arguments: Sequence[str]) -> ExitCode:
    """Run one command; print an error on stderr, and return the exit code."""
    words = hoist_global_options(arguments)
    as_json = is_json_requested(words)
    with ActivityLine("starting"):
        program = _build_program(command_word(words))
    for parameter in program.params:  # typer's own way to `asterism completion`
        if parameter.name in ("install_completion", "show_completion"):
            parameter.hidden = True
    shell_completion.prepare_request(os.environ)  # noqa: TID251 - the request of a shell
    try:
        check_folder(words)
        code = program.main(args=words, prog_name="asterism", standalone_mode=False)
        sys.stdout.flush()
        if code == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        return ExitCode(code) if isinstance(code, int) else ExitCode.DONE
    except AsterismError as error:
        message = in_options(error.message, option_spellings(_command_of(program, words), program))
        exit_code, name = exit_code_of(error), type(error).__name__
        print_error(message, name=name, code=exit_code, place=error.place, as_json=as_json)
        return exit_code
    except MissingExtra as error:
        return _fail(str(error), "MissingExtra", ExitCode.FAILED, as_json=as_json)
    except CommandInterrupted as error:
        return _fail(str(error), "Interrupted", ExitCode.INTERRUPTED, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", "Interrupted", ExitCode.INTERRUPTED, as_json=as_json)
    except BrokenPipeError:
        sys.stdout = None  # the reader closed the pipe: a flush at exit would fail
        return ExitCode.DONE
    except OSError as error:
        message = f"{error.filename or 'the system'}: {error.strerror or error}"
        return _fail(message, type(error).__name__, ExitCode.FAILED, as_json=as_json)
    except Exception as error:
        # Usage errors may be classes of click or of the copy of click inside typer. Only their
        # method identifies both.
        format_message = getattr(error, "format_message", None)
        if format_message is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help
            print(format_message())
            return ExitCode.USAGE
        message = usage_message(error, " ".join(["asterism", *_path_of(program, words)]))
        return _fail(message, "UsageError", ExitCode.USAGE, as_json=as_json)


def _build_program(name: str) -> Any:
    """Return the command line with only the command of a name; with all if there is none.

    Typer takes 0.1 s of a core for all of them."""
    commands, groups = app.registered_commands, app.registered_groups
    one_command = [command for command in commands if command.name == name]
    one_group = [group for group in groups if group.name == name]
    try:
        if one_command or one_group:
            app.registered_commands, app.registered_groups = one_command, one_group
        program: Any = typer.main.get_command(app)
    finally:
        app.registered_commands, app.registered_groups = commands, groups
    help_text.simplify_parameters(program)
    return program


def _fail(message: str, name: str, code: ExitCode, *, as_json: bool) -> ExitCode:
    print_error(message, name=name, code=code, as_json=as_json)
    return code


def _command_of(program: Any, words: Sequence[str]) -> Any:
    """Return the command that the words name, or the last group on the way to it."""
    command = program
    for word in _path_of(program, words):
        command = command.commands[word]
    return command


def _path_of(program: Any, words: Sequence[str]) -> list[str]:
    """Return the words that name a command or groups on the way to it."""
    command, path = program, []
    for word in words:
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
            path.append(word)
    return path
