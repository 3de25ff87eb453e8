"""`asterism serve`: the whole service in one process, its doors open."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from asterism.cli.session import session_of

EXAMPLES = "Example: asterism serve data/ --listen 0.0.0.0:9669 --http-listen 0.0.0.0:19669"


def serve(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="PATH", file_okay=False, help="The folder that holds everything; made where it is not there.")],
    *,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="The gRPC door; port 0 takes a free one.")] = "127.0.0.1:9669",
    http_listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The HTTP door: web pages, health, metrics, spaces, jobs.")
    ] = "127.0.0.1:19669",
    http_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A further name by which the HTTP door may be called (.NAME: all below it; *: any); may be repeated."),
    ] = None,
) -> None:
    """Serve a folder until SIGTERM or Ctrl-C: metad, storaged and graphd in one process."""
    output = session_of(context).output
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    from standalone import app as standalone

    service = standalone.Standalone(path)
    try:
        service.start()
        doors = service.open_ports(listen=listen, http_listen=http_listen, http_names=http_name or ())
        output.result(
            {"path": str(path), "address": doors.address, "http_address": doors.http_address},
            lambda: f"Asterism serves {path}\n  gRPC  {doors.address}\n  pages http://{doors.http_address}/ui\n  stop  Ctrl-C",
        )
        stop.wait()
        output.remark("stopping")
    finally:
        service.stop()
