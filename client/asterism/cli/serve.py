"""`asterism serve`: the whole service in one process, its doors open."""

from __future__ import annotations

import ipaddress
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from asterism.cli.context import command_context

EXAMPLES = "Example: asterism serve data/ --listen 0.0.0.0:9669 --http-listen 0.0.0.0:19669"


def serve(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            file_okay=False,
            help="The folder that holds everything; made where it is not there.",
        ),
    ],
    *,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The gRPC door; port 0 takes a free one.")
    ] = "127.0.0.1:9669",
    http_listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="The HTTP door: web pages, health, metrics, spaces, jobs."
        ),
    ] = "127.0.0.1:19669",
    http_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=(
                "A further name by which the HTTP door may be called (.NAME: all below it; "
                "*: any); may be repeated."
            ),
        ),
    ] = None,
    allow_address: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A folder that jobs may read and write (file:///srv/exports, "
            "s3://bucket/prefix; *: any); may be repeated. Otherwise local folders "
            "while both ports listen on the loopback interface and no --http-name is given, "
            "and none else.",
        ),
    ] = None,
) -> None:
    """Serve a folder until SIGTERM or Ctrl-C: metad, storaged and graphd in one process."""
    output = command_context(context).output
    stop = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    from asterism_standalone import app as standalone
    from asterism_standalone.settings import StandaloneSettings

    allowed = allowed_addresses(
        allow_address or (), listen=listen, http_listen=http_listen, http_names=http_name or ()
    )
    service = standalone.Standalone(path, StandaloneSettings(allowed_addresses=allowed))
    try:
        service.start()
        ports = service.open_ports(
            listen=listen, http_listen=http_listen, http_names=http_name or ()
        )
        output.result(
            {"path": str(path), "address": ports.address, "http_address": ports.http_address},
            lambda: (
                f"Asterism serves {path}\n  gRPC  {ports.address}\n  pages "
                f"http://{ports.http_address}/ui\n  stop  Ctrl-C"
            ),
        )
        stop.wait()
        output.print_note("stopping")
    finally:
        service.stop()


def allowed_addresses(
    addresses: Sequence[str], *, listen: str, http_listen: str, http_names: Sequence[str]
) -> str:
    """Return the setting ``allowed_addresses`` of a served folder.

    Only processes of this host can connect to a loopback interface. They may name local folders
    unless the option says otherwise; a further name of the HTTP port means that others come through
    a proxy."""
    local = not http_names and _is_loopback(listen) and _is_loopback(http_listen)
    return ",".join(addresses) if addresses else "file:///" if local else ""


def _is_loopback(address: str) -> bool:
    """Return whether only processes of this host can connect to ``host:port``."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
