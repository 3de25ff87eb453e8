"""`asterism metad`: recovery of the catalog that daemons follow."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.context import command_context
from asterism.cli.output import table
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism import Client

_REPORT_TIMEOUT_S = 20.0
"""Seconds that storageds may take to report their inventories."""

app = typer.Typer(no_args_is_help=True, help="The catalog of metad, as daemons follow it.")


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


@app.command(epilog="Example: asterism metad adopt --dry-run; asterism metad adopt --yes")
def adopt(
    context: typer.Context,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be given up.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
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
    this data to quarantine, abandons open loads, and stops unfinished jobs."""
    command = command_context(context)
    with command.client(adopting=True) as client:
        state = _wait_for_reports(client)
        will_adopt = bool(state.followers_ahead) and not dry_run
        if will_adopt and not yes:
            if command.output.as_json or not sys.stdin.isatty():
                raise InvalidRequest(
                    "--yes: expected this option, because no terminal can confirm; list what "
                    "would be given up with --dry-run first"
                )
            command.output.result(None, lambda: _render_state(state, done=False))
            typer.confirm("Give this up?", abort=True)
        if will_adopt:
            state = client.session.catalog(
                "adopt_catalog", metad_pb.AdoptCatalogRequest(cluster=cluster)
            )
    command.output.result(
        {"adopted": will_adopt, **catalog_document(state)},
        lambda: _render_state(state, done=will_adopt),
    )


def _wait_for_reports(client: Client) -> metad_pb.CatalogState:
    """Return the state of the catalog after all storageds that are ahead have reported.

    After ``_REPORT_TIMEOUT_S`` return it without the missing reports.
    """
    deadline = time.monotonic() + _REPORT_TIMEOUT_S
    while True:
        state: metad_pb.CatalogState = client.session.catalog("describe_catalog", common_pb.Empty())
        if (
            all(f.inventory_reported for f in state.followers_ahead if f.role == metad_pb.STORAGED)
            or time.monotonic() > deadline
        ):
            return state
        time.sleep(0.2)


def _render_state(state: metad_pb.CatalogState, *, done: bool) -> RenderableType:
    from rich.console import Group

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
    return Group(
        f"the catalog is at revision {state.position.revision}",
        table(
            "daemons that followed another catalog",
            ("daemon", "host", "revision followed", "cluster", "reported"),
            ahead_rows,
        ),
        table(
            "data that this catalog does not contain",
            ("host", "space", "what", "size"),
            unknown_rows,
        ),
        consequences,
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
