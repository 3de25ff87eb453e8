"""`asterism status`: who is there, and what can be drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from asterism.cli.exits import ExitCode
from asterism.cli.output import moment, table
from asterism.cli.session import session_of
from asterism.cli.spaces import spaces_table
from asterism_proto.v1 import common_pb2 as pb

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.records import Host, SpaceInfo

EXAMPLES = "Exit code 4 while something is missing. Example: until asterism status; do sleep 1; done"


def missing(hosts: list[Host], spaces: list[SpaceInfo]) -> list[str]:
    """What keeps the service from answering for all its spaces; empty when it is ready."""
    if not hosts:  # a folder that is read only: its reader holds every part itself
        return []
    online = {host.uuid for host in hosts if host.online}
    lacks = [f"{host.role.lower()} {host.address} is offline" for host in hosts if not host.online and host.parts]
    for space in spaces:
        dark = sum(1 for holders in space.hosts if not online & set(holders))
        if dark:
            lacks.append(f"space {space.name}: {dark} of {len(space.hosts)} parts have no host online")
    return lacks


def status(context: typer.Context) -> None:
    """Show hosts, spaces and their versions; exit code 4 while a part has no host."""
    session = session_of(context)
    with session.client(reading=True) as client:
        hosts, spaces = list(client.hosts()), list(client.spaces())
        fault = client.session.catalog("describe_catalog", pb.Empty()).fault if hosts else ""
    lacks = [*([fault] if fault else []), *missing(hosts, spaces)]
    session.output.result({"ready": not lacks, "missing": lacks, "hosts": hosts, "spaces": spaces}, lambda: _page(hosts, spaces, lacks))
    if lacks:
        raise typer.Exit(ExitCode.NOT_NOW)


def _page(hosts: list[Host], spaces: list[SpaceInfo], lacks: list[str]) -> RenderableType:
    from rich.console import Group

    rows = [
        (
            h.role.lower(),
            "in this process" if h.address.endswith(":0") else h.address,
            "online" if h.online else "offline",
            h.parts,
            f"{h.free_bytes / 2**30:,.1f} GiB",
            moment(h.last_beat_ms),
        )
        for h in sorted(hosts, key=lambda h: (h.role, h.address))
    ]
    word = "[green]ready[/green]" if not lacks else "[red]not ready[/red]: " + "; ".join(lacks)
    return Group(table("hosts", ("daemon", "address", "state", "parts", "free", "last beat (UTC)"), rows), spaces_table(spaces), word)
