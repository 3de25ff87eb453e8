"""Transport to a service inside this process, for ``asterism.open``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism.extras import required
from asterism.local_paths import local_path
from asterism.transport.grpc import ClientTransport


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedService:
    """A running embedded service: its transport, and the function that stops it."""

    transport: ClientTransport
    stop: Callable[[], None]


def start_embedded(path: str | Path, mode: str, settings: Mapping[str, Any]) -> EmbeddedService:
    """Start a service on a folder.

    Needs ``asterism-graph[server]``.

    Parameters
    ----------
    path : str or Path
        Data folder; a leading ``~`` is the user's home folder.
    mode : {"w", "r+", "r"}
        Mode, as in ``asterism.open``.
    settings : dict of str to value
        Fields of ``asterism_standalone.settings.StandaloneSettings``.

    Returns
    -------
    EmbeddedService
        Transport and stop function of the service.

    Raises
    ------
    InvalidRequest
        If ``path`` names no folder.
    MissingExtra
        If the server's packages are not installed.
    """
    # The service works in the background, where a later os.chdir would change a relative path.
    folder = local_path("path", path).absolute()
    with required("server", "asterism.open"):
        from asterism_standalone.app import embed
        from asterism_standalone.embedded_transport import FolderTransport

    service = embed(folder, mode=mode, **settings)
    return EmbeddedService(
        transport=FolderTransport(folder, service.handlers, service.limits), stop=service.stop
    )


def preload(*, fork_tasks: bool) -> None:
    """Import the server's packages and, for a service that forks its tasks, what kernels need.

    Otherwise `start_embedded` does it.

    Raises
    ------
    MissingExtra
        If the server's packages are not installed.
    """
    with required("server", "asterism.open"):
        from asterism_standalone.app import preload_kernels

    if fork_tasks:
        preload_kernels()


def show_compilation(show: Callable[[str], bool]) -> None:
    """Show which kernels are being compiled for an embedded service.

    Parameters
    ----------
    show : callable
        Receives a line to show, or an empty string to remove it. It returns False if it cannot; the
        line is then written to standard error.

    Raises
    ------
    MissingExtra
        If the server's packages are not installed.
    """
    with required("server", "asterism.open"):
        from asterism_standalone.compile_report import REPORT

    REPORT.display = show
