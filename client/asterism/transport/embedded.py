"""The service inside this process: what ``asterism.open`` and ``asterism.aio.open`` stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism.extras import required
from asterism.transport.grpc import ClientTransport


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedService:
    """A service that was started."""

    transport: ClientTransport
    stop: Callable[[], None]


def start_embedded(path: str | Path, mode: str, settings: Mapping[str, Any]) -> EmbeddedService:
    """Start a service on a folder, and give what carries calls to it; needs
    ``asterism-graph[server]``.
    """
    with required("server", "asterism.open"):
        from asterism_standalone.app import embed
        from asterism_standalone.transport import FolderTransport

    service = embed(Path(path), mode=mode, **settings)
    return EmbeddedService(
        transport=FolderTransport(Path(path), service.handlers, service.limits), stop=service.stop
    )
