"""`asterism certificates`: an authority and a certificate for development."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.help_text import examples
from asterism.extras import required

DAYS = 365
"""Default number of days for which a certificate is valid."""

EXAMPLES = examples(
    "asterism certificates create certificates/",
    "asterism certificates create certificates/ --host db-0 --host 10.0.0.7",
)

app = typer.Typer(
    no_args_is_help=True, help="Create certificates for development.", epilog=EXAMPLES
)


@app.callback()
def group() -> None:
    """Create certificates for development."""


@app.command(
    short_help="Create an authority and a certificate.",
    epilog=EXAMPLES,
)
def create(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of the files; created if missing.")
    ],
    *,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name or IP address of a daemon, besides those of this machine's loopback "
            "interface. Repeatable.",
        ),
    ] = None,
    days: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", min=1, max=3650, help="Days for which the certificate is valid."
        ),
    ] = DAYS,
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="Keep the files if the folder has all of them.")
    ] = False,
) -> None:
    """Create an authority (ca.pem, ca.key) and a certificate of daemons (daemon.pem, daemon.key).

    All daemons of a cluster can use the one certificate, and clients trust ca.pem. Use an
    authority of your own for anything but development."""
    command = command_context(context)
    with required("certificates", "asterism certificates create"):
        from asterism_access.credentials.certificate_authority import (
            create_certificates,
            has_certificates,
        )

    is_kept = if_missing and has_certificates(folder)
    if not is_kept:
        create_certificates(folder, host or (), days)
    command.output.result(
        {"folder": str(folder), "created": not is_kept},
        lambda: (
            f"{folder} has certificates already"
            if is_kept
            else f"created {folder}: daemons take daemon.pem and daemon.key, clients ca.pem; keep "
            "ca.key secret"
        ),
    )
