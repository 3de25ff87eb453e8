"""`asterism metad`: recovery of the catalog that daemons follow."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.confirmation import is_confirmed
from asterism.cli.context import command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.help_text import examples
from asterism.cli.output import table
from asterism.cli.tables import sections
from asterism_proto.errors import NotReady
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Client

_REPORT_TIMEOUT_S = 20.0
"""Seconds that storageds may take to report their inventories."""

app = typer.Typer(
    no_args_is_help=True,
    help="Recover the catalog of metad.",
    epilog=examples("asterism metad adopt --dry-run"),
)


def catalog_document(state: metad_pb.CatalogState) -> dict[str, Any]:
    """Return a catalog's state as a JSON document."""
    return {
        "cluster": state.cluster,
        "history": state.position.history,
        "revision": state.position.revision,
        "fault": state.fault,
        "ahead": [
            {
                "host": f.uuid,
                "role": metad_pb.Role.Name(f.role),
                "cluster": f.cluster,
                "history": f.followed_position.history,
                "revision": f.followed_position.revision,
                "reported": f.inventory_reported,
            }
            for f in state.followers_ahead
        ],
        "unknown": [
            {
                "host": u.host,
                "space_id": u.space_id,
                "space": u.space,
                "bytes": u.bytes,
                "job": u.job_id,
                "version": u.version,
                "loads": list(u.loads),
            }
            for u in state.unknown_data
        ],
        "open_loads": list(state.open_loads),
        "jobs": list(state.jobs),
    }


@app.command(
    short_help="Make daemons follow a restored catalog.",
    epilog=examples(
        "asterism metad adopt --dry-run",
        "asterism metad adopt --yes",
    ),
)
def adopt(
    context: typer.Context,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be given up.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    without_offline: Annotated[
        bool,
        typer.Option(
            "--without-offline",
            help="Adopt although storageds are offline and have not reported what they have. They "
            "follow when they are back.",
        ),
    ] = False,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help=(
                "Adopt the daemons of this cluster, after metad's data folder was lost and "
                "replaced by an empty one."
            ),
        ),
    ] = "",
) -> None:
    """Make daemons follow metad's catalog after it was restored from an older copy.

    The command first lists the data on storageds that this catalog does not contain. It then moves
    this data to quarantine, abandons open loads, and stops unfinished jobs. It refuses while a
    storaged has not reported what it has."""
    command = command_context(context)
    with command.client(adopting=True) as client:
        state, offline = _wait_for_reports(client, may_miss=dry_run or without_offline)
        will_adopt = bool(state.followers_ahead) and not dry_run
        if will_adopt:
            check_reports(state, offline, without_offline=without_offline)
        if will_adopt and not yes:
            if not command.output.as_json and sys.stdin.isatty():
                command.output.result(None, lambda: _render_state(state, offline, done=False))
            if not is_confirmed(command.output, "Give this up?"):
                command.output.print_note("nothing is given up")
                raise typer.Exit(ExitCode.FAILED)
        if will_adopt:
            state = client.session.catalog(
                "adopt_catalog", metad_pb.AdoptCatalogRequest(cluster=cluster)
            )
    command.output.result(
        {"adopted": will_adopt, **catalog_document(state), "offline": offline},
        lambda: _render_state(state, offline, done=will_adopt),
    )


def _wait_for_reports(client: Client, *, may_miss: bool) -> tuple[metad_pb.CatalogState, list[str]]:
    """Return the state of the catalog, and the addresses of the storageds that are offline.

    Waits up to ``_REPORT_TIMEOUT_S`` for the reports of storageds that are ahead, and for those
    that are offline unless they may be missing.
    """
    deadline = time.monotonic() + _REPORT_TIMEOUT_S
    while True:
        state: metad_pb.CatalogState = client.session.catalog("describe_catalog", common_pb.Empty())
        offline = sorted(
            host.address for host in client.hosts() if host.role == "STORAGED" and not host.online
        )
        complete = not _unreported(state) and (may_miss or not offline)
        if not state.followers_ahead or complete or time.monotonic() > deadline:
            return state, offline
        time.sleep(0.2)


def _unreported(state: metad_pb.CatalogState) -> list[str]:
    """Return the hosts of storageds that are ahead and have not reported what they have."""
    return sorted(
        f.uuid
        for f in state.followers_ahead
        if f.role == metad_pb.STORAGED and not f.inventory_reported
    )


def check_reports(
    state: metad_pb.CatalogState, offline: Sequence[str], *, without_offline: bool
) -> None:
    """Raise NotReady while storageds have not reported what an adoption would give up."""
    if unreported := _unreported(state):
        raise NotReady(
            f"storageds={', '.join(unreported)}: expected reports of what they have, and there are "
            f"none after {_REPORT_TIMEOUT_S:g} s; look at their logs, and run the command again"
        )
    if offline and not without_offline:
        raise NotReady(
            f"storageds={', '.join(offline)}: expected reports of what they have, but they are "
            "offline; start them, or adopt without them with --without-offline"
        )


def _render_state(
    state: metad_pb.CatalogState, offline: Sequence[str], *, done: bool
) -> RenderableType:
    if not state.followers_ahead:
        return (
            f"nothing to adopt: all daemons follow the catalog (revision {state.position.revision})"
        )
    ahead_rows = [
        (
            metad_pb.Role.Name(f.role).lower(),
            f.uuid,
            f.followed_position.revision,
            f.cluster or state.cluster,
            f.inventory_reported,
        )
        for f in state.followers_ahead
    ]
    unknown_rows = [
        (
            u.host,
            u.space or u.space_id,
            _describe_unknown(u),
            f"{u.bytes / 2**20:,.1f} MiB" if u.bytes else "-",
        )
        for u in state.unknown_data
    ]
    verb = "were" if done else "would be"
    consequences = (
        f"data listed above: {verb} moved to quarantine; open loads: {len(state.open_loads)} "
        f"{verb} abandoned; jobs: {len(state.jobs)} {verb} stopped"
    )
    return sections(
        f"the catalog is at revision {state.position.revision}",
        table(
            "daemons that followed another catalog",
            ("daemon", "host", "revision followed", "cluster", "reported"),
            ahead_rows,
            optional=("cluster",),
        ),
        table(
            "data that this catalog does not contain",
            ("host", "space", "what", "size"),
            unknown_rows,
        ),
        consequences,
        *([f"offline, not reported: {', '.join(offline)}"] if offline else ()),
    )


def _describe_unknown(unknown_data: metad_pb.UnknownData) -> str:
    if unknown_data.loads:
        return f"loads {', '.join(map(str, unknown_data.loads[:10]))}" + (
            " and more" if len(unknown_data.loads) > 10 else ""
        )
    if not unknown_data.job_id:
        return "the whole space"
    return (
        f"version {unknown_data.version}"
        if unknown_data.version
        else f"the output of job {unknown_data.job_id}"
    )
