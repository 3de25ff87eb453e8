"""`asterism backup` and `asterism restore`."""

from __future__ import annotations

from typing import Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.jobs import job_progress

BACKUP_EXAMPLES = "Example: asterism backup shop s3://bucket/backups/shop-2026-11-21"
RESTORE_EXAMPLES = "Example: asterism restore /srv/backups/shop --as shop_of_yesterday"

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help=(
            "A folder, as a path or as fsspec names it, which every storaged can reach under "
            "this name."
        ),
    ),
]
TotalTimeout = Annotated[
    float, typer.Option("--within", min=0.1, metavar="SECONDS", help="How long to wait.")
]

DEFAULT_WAIT_S = 24 * 3600.0


def backup(
    context: typer.Context,
    space: Annotated[str, typer.Argument(metavar="SPACE", help="The space to keep.")],
    address: Address,
    *,
    at: Annotated[
        int | None, typer.Option("--at", min=1, metavar="VERSION", help="Keep this version.")
    ] = None,
    within: TotalTimeout = DEFAULT_WAIT_S,
) -> None:
    """Keep a version of a space, with all that is needed to build on from it, at an address.

    Every storaged writes its own parts. The same command goes on with a backup that was cut off;
    without its `backup.json`, which is written last, it is none."""
    session = command_context(context)
    with session.client() as client, job_progress(session.output) as on_progress:
        info = client.backup(space, address, version=at, timeout_s=within, on_progress=on_progress)
    session.output.result(
        info,
        lambda: (
            f"version {info.version} of [bold]{info.space}[/bold] is kept at {info.address}: "
            f"{info.files:,} files, {info.bytes:,} bytes"
        ),
    )


def restore(
    context: typer.Context,
    address: Address,
    *,
    name: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="NAME", help="What to call the space; default: as it was called."
        ),
    ] = None,
    within: TotalTimeout = DEFAULT_WAIT_S,
) -> None:
    """Make a space of a backup: the same version, digest and draws, on any number of storageds.

    Every file is held against its sha256. The same command goes on with a restore that was cut off.
    """
    session = command_context(context)
    with session.client(create=True) as client, job_progress(session.output) as on_progress:
        info = client.restore(address, name, timeout_s=within, on_progress=on_progress)
    session.output.result(
        info,
        lambda: (
            f"space [bold]{info.name}[/bold] is back at version {info.version}, in "
            f"{info.schema.parts} parts"
        ),
    )
