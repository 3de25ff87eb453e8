"""`asterism status`: hosts, spaces, and readiness of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from asterism.cli.context import command_context
from asterism.cli.exit_codes import ExitCode
from asterism.cli.help_text import examples
from asterism.cli.output import format_timestamp, table
from asterism.cli.spaces import spaces_table
from asterism.cli.tables import sections
from asterism_model import readiness
from asterism_model.readiness import HostPresence
from asterism_proto.v1 import common_pb2 as common_pb

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asterism.records.samples import Host, SpaceInfo

EXAMPLES = examples(
    "until asterism status; do sleep 1; done",
    before="Exits with 4 if a part has no host online.",
)


def readiness_problems(hosts: list[Host], spaces: list[SpaceInfo]) -> list[str]:
    """Return why partitions are unavailable; an empty list means the service is ready."""
    presences = [
        HostPresence(
            uuid=host.uuid,
            role=host.role.lower(),
            address=host.address,
            online=host.online,
            parts=host.parts,
        )
        for host in hosts
    ]
    return readiness.readiness_problems(presences, {space.name: space.hosts for space in spaces})


def status(context: typer.Context) -> None:
    """Show hosts, spaces and their versions; exit with 4 if a partition has no host online."""
    command = command_context(context)
    with command.client(allow_read_only=True) as client:
        hosts, spaces = list(client.hosts()), list(client.spaces())
        fault = client.session.catalog("describe_catalog", common_pb.Empty()).fault if hosts else ""
    problems = [*([fault] if fault else []), *readiness_problems(hosts, spaces)]
    command.output.result(
        {"ready": not problems, "missing": problems, "hosts": hosts, "spaces": spaces},
        lambda: _render_status(hosts, spaces, problems),
    )
    if problems:
        raise typer.Exit(ExitCode.UNAVAILABLE)


def display_address(host: Host) -> str:
    """Return the address of a daemon for people."""
    return "in this process" if host.address.endswith(":0") else host.address


def _render_status(
    hosts: list[Host], spaces: list[SpaceInfo], problems: list[str]
) -> RenderableType:
    rows = [
        (
            h.role.lower(),
            display_address(h),
            "online" if h.online else "offline",
            h.parts,
            f"{h.free_bytes / 2**30:,.1f} GiB" if h.free_bytes else "-",
            format_timestamp(h.last_heartbeat_ms),
        )
        for h in sorted(hosts, key=lambda h: (h.role, h.address))
    ]
    from rich.text import Text

    readiness = (
        Text.assemble(("not ready", "red"), ": ", "; ".join(problems))
        if problems
        else Text("ready", style="green")
    )
    return sections(
        table(
            "hosts",
            ("daemon", "address", "state", "parts", "free", "last heartbeat (UTC)"),
            rows,
            optional=("free", "parts"),
        ),
        spaces_table(spaces),
        readiness,
    )
