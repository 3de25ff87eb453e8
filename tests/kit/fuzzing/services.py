"""Services of a small cluster in one process, with a record of requests to its storageds.

Everything is real (RocksDB, builds, images, handlers) but the network: calls go from handler to
handler. `Services` records the requests to each storaged, so that a campaign can start from those
that graphd really sends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import asterism
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.framing import Frame, decode, encode
from asterism_proto.methods import STORE, Method
from asterism_proto.transport import Content
from graphd.app import Graphd
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.settings import MetadSettings
from storaged.app import Storaged
from storaged.settings import StoragedSettings
from tests.kit.waiting import wait_until

_ANY_PORT = "127.0.0.1:0"
_READY_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A request to a storaged."""

    host: int
    method: str
    head: Any
    arrays: dict[str, NDArray[Any]]

    @property
    def name(self) -> str:
        """Return the name of the method."""
        return self.method

    @property
    def description(self) -> str:
        """Return the method and the host."""
        return f"{self.method} of host {self.host}"


def decode_request(method: Method, content: Content) -> Content:
    """Return a request as decoded by a server: arrays are read-only views of its bytes."""
    return decode(encode(content), type(content.head)) if isinstance(content, Frame) else content


class _RecordingTransport(LocalTransport):
    def __init__(
        self, host: int, handlers: Mapping[str, Handler], recorded: list[RecordedCall]
    ) -> None:
        super().__init__(handlers)
        self._host, self._recorded = host, recorded
        self._names = {method.path: name for name, method in STORE.items()}

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        if isinstance(request, Frame):
            self._recorded.append(
                RecordedCall(
                    host=self._host,
                    method=self._names[method.path],
                    head=request.head,
                    arrays=dict(request.arrays),
                )
            )
        return super().call(method, decode_request(method, request), timeout_s)


class Services:
    """One metad, some storageds and a graphd.

    Parameters
    ----------
    folder : Path
    storageds : int
    """

    def __init__(self, folder: Path, storageds: int) -> None:
        self.recorded: list[RecordedCall] = []
        self._metad = Metad(
            MetadSettings(data=folder / "metad", listen=_ANY_PORT, http_listen=_ANY_PORT)
        )
        to_metad = LocalTransport(self._metad.handlers)
        names = [f"host:{1 + index}" for index in range(storageds)]
        self.storageds = [
            Storaged(
                StoragedSettings(
                    data=folder / f"storaged-{index}",
                    listen=_ANY_PORT,
                    http_listen=_ANY_PORT,
                    advertise=name,
                    heartbeat_interval_s=0.2,
                    poll_wait_s=1,
                ),
                to_metad,
            )
            for index, name in enumerate(names)
        ]
        hosts = {
            name: _RecordingTransport(index, self.storageds[index].handlers, self.recorded)
            for index, name in enumerate(names)
        }
        self._graphd = Graphd(
            GraphdSettings(
                listen=_ANY_PORT,
                http_listen=_ANY_PORT,
                advertise="graphd:1",
                heartbeat_interval_s=0.2,
                poll_wait_s=1,
            ),
            to_metad,
            lambda address, _: hosts[address],
        )
        self.client = asterism.Client(LocalTransport(self._graphd.handlers), timeout_s=_READY_S)

    def start(self) -> None:
        """Start all services, and wait until they are ready."""
        for service in (self._metad, *self.storageds, self._graphd):
            service.start()
        wait_until(lambda: not self._missing(), lambda: f"nothing is missing: {self._missing()}")

    def _missing(self) -> list[str]:
        return [
            *self._metad.ready(),
            *(problem for each in self.storageds for problem in each.ready()),
            *self._graphd.ready(),
        ]

    def stop(self) -> None:
        """Stop all services."""
        self.client.close()
        for service in (self._graphd, *self.storageds, self._metad):
            service.stop()

    def call_storaged(
        self, host: int, method: str, content: Content, timeout_s: float = 30.0
    ) -> Content:
        """Call a method of a storaged like its server does, and return the reply."""
        return self.storageds[host].handlers[STORE[method].path](
            decode_request(STORE[method], content), CallContext.with_timeout(timeout_s)
        )


@contextlib.contextmanager
def services(folder: Path, storageds: int) -> Iterator[Services]:
    """Run services until the block ends."""
    running = Services(folder, storageds)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def select_distinct(recorded: list[RecordedCall], limit: int) -> list[RecordedCall]:
    """Return up to ``limit`` distinct requests of each method and host, by heads and sections."""
    by_method: dict[tuple[int, str], dict[str, RecordedCall]] = {}
    for request in recorded:
        kinds = by_method.setdefault((request.host, request.method), {})
        fields = sorted(field.name for field, _ in request.head.ListFields())
        filter_text = (
            request.head.version_ref.where.expression
            if request.head.DESCRIPTOR.fields_by_name.get("version_ref") is not None
            else ""
        )
        kinds.setdefault(
            (
                f"{fields} {sorted(request.arrays)} {filter_text} "
                f"{getattr(request.head, 'weight', '')}"
            ),
            request,
        )
    return [
        request
        for kinds in by_method.values()
        for request in _spread_evenly(list(kinds.values()), limit)
    ]


def _spread_evenly(requests: list[RecordedCall], limit: int) -> list[RecordedCall]:
    return (
        requests
        if len(requests) <= limit
        else [requests[int(index)] for index in np.linspace(0, len(requests) - 1, limit)]
    )
