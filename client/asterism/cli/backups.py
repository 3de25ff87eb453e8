"""`asterism backup` and `asterism restore`."""

from __future__ import annotations

from typing import Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.help_text import examples
from asterism.cli.interruption import advice_on_interrupt
from asterism.cli.job_waits import job_progress
from asterism.cli.options import DEFAULT_TOTAL_TIMEOUT_S, GraphVersion, Space, TotalTimeout
from asterism.cli.typer_signatures import FormerName, expand_option_groups

BACKUP_EXAMPLES = examples("asterism backup shop s3://bucket/backups/shop-2026-11-21")
RESTORE_EXAMPLES = examples("asterism restore /srv/backups/shop --name shop_of_yesterday")

_RESUME = (
    "interrupted; the storageds continue with their part: run the same command again to wait for "
    "them and to finish"
)

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help="Folder of the backup: a path or an fsspec address that every storaged can reach "
        "under this name.",
    ),
]


@expand_option_groups
def backup(
    context: typer.Context,
    space: Space,
    address: Address,
    *,
    graph_version: GraphVersion = None,
    total_timeout: TotalTimeout = DEFAULT_TOTAL_TIMEOUT_S,
) -> None:
    """Back up a version of a space, with everything that later builds need.

    Every storaged writes the partitions that it owns. To continue an interrupted backup, run the
    command again. `backup.json` is written last: a folder without it is not a backup."""
    command = command_context(context)
    with (
        command.client() as client,
        advice_on_interrupt(lambda: _RESUME),
        job_progress(command, client) as on_progress,
    ):
        info = client.backup(
            space,
            address,
            version=graph_version,
            timeout_s=total_timeout,
            on_progress=on_progress,
        )
    command.output.result(
        info,
        lambda: (
            f"version {info.version} of {info.space} is backed up to {info.address}: "
            f"{info.files:,} files, {info.bytes:,} bytes"
        ),
    )


@expand_option_groups
def restore(
    context: typer.Context,
    address: Address,
    *,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="SPACE", help="Name of the restored space. Default: its name in the backup."
        ),
        FormerName("--as"),
    ] = None,
    total_timeout: TotalTimeout = DEFAULT_TOTAL_TIMEOUT_S,
) -> None:
    """Restore a space from a backup: the same version, digest and samples.

    The number of storageds may differ from that at the time of the backup. The sha256 of every file
    is verified. To continue an interrupted restore, run the command again.
    """
    command = command_context(context)
    with (
        command.client(create=True) as client,
        advice_on_interrupt(lambda: _RESUME),
        job_progress(command, client) as on_progress,
    ):
        info = client.restore(address, name, timeout_s=total_timeout, on_progress=on_progress)
    command.output.result(
        info,
        lambda: (
            f"space {info.name} is restored at version {info.version}, with "
            f"{info.schema.parts} parts"
        ),
    )
