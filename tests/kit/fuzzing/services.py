"""The services of a small cluster in one process, and the requests that its storageds are sent.

Everything is real (RocksDB, builds, images, handlers) but the network: calls go from handler to handler. `Services` records what each
storaged is asked, so that a campaign can start from requests that graphd really sends.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import asterism
from asterism_proto.arrays import Frame, decode, encode
from asterism_proto.methods import STORE, Method
from daemonkit.calls import Call, Content, Handler, LocalTransport
from graphd.app import Graphd
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.settings import MetadSettings
from storaged.app import Storaged
from storaged.settings import StoragedSettings

_NOWHERE = "127.0.0.1:0"
_READY_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A request that a storaged was sent."""

    host: int
    method: str
    head: Any
    arrays: dict[str, NDArray[Any]]

    @property
    def name(self) -> str:
        """Return the name of the method."""
        return self.method

    @property
    def described(self) -> str:
        """Return the method and the host."""
        return f"{self.method} of host {self.host}"


def received(method: Method, content: Content) -> Content:
    """A request as a server decodes it: arrays are read-only views of its bytes."""
    return decode(encode(content), type(content.head)) if isinstance(content, Frame) else content


class _Recording(LocalTransport):
    def __init__(self, host: int, handlers: Mapping[str, Handler], into: list[Recorded]) -> None:
        super().__init__(handlers)
        self._host, self._into = host, into
        self._names = {method.path: name for name, method in STORE.items()}

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        if isinstance(request, Frame):
            self._into.append(Recorded(host=self._host, method=self._names[method.path], head=request.head, arrays=dict(request.arrays)))
        return super().call(method, received(method, request), timeout_s)


class Services:
    """One metad, some storageds and a graphd.

    Parameters
    ----------
    folder : Path
    storageds : int
    """

    def __init__(self, folder: Path, storageds: int) -> None:
        self.recorded: list[Recorded] = []
        self._metad = Metad(MetadSettings(data=folder / "metad", listen=_NOWHERE, http_listen=_NOWHERE))
        to_metad = LocalTransport(self._metad.handlers)
        names = [f"host:{1 + number}" for number in range(storageds)]
        self.storageds = [
            Storaged(
                StoragedSettings(
                    data=folder / f"storaged-{number}", listen=_NOWHERE, http_listen=_NOWHERE, advertise=name, heartbeat_interval_s=0.2, poll_wait_s=1
                ),
                to_metad,
            )
            for number, name in enumerate(names)
        ]
        hosts = {name: _Recording(number, self.storageds[number].handlers, self.recorded) for number, name in enumerate(names)}
        self._graphd = Graphd(
            GraphdSettings(listen=_NOWHERE, http_listen=_NOWHERE, advertise="graphd:1", heartbeat_interval_s=0.2, poll_wait_s=1),
            to_metad,
            lambda address, _: hosts[address],
        )
        self.client = asterism.Client(LocalTransport(self._graphd.handlers), timeout_s=_READY_S)

    def start(self) -> None:
        """Start all, and wait until they answer."""
        for service in (self._metad, *self.storageds, self._graphd):
            service.start()
        until = time.monotonic() + _READY_S
        while missing := [*self._metad.ready(), *(word for each in self.storageds for word in each.ready()), *self._graphd.ready()]:
            assert time.monotonic() < until, missing
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop all."""
        self.client.close()
        for service in (self._graphd, *self.storageds, self._metad):
            service.stop()

    def answer(self, host: int, method: str, content: Content, timeout_s: float = 30.0) -> Content:
        """What a storaged answers, as its own server would ask it."""
        return self.storageds[host].handlers[STORE[method].path](received(STORE[method], content), Call.within(timeout_s))


@contextlib.contextmanager
def services(folder: Path, storageds: int) -> Iterator[Services]:
    """Services that run until the block ends."""
    made = Services(folder, storageds)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def distinct(recorded: list[Recorded], most: int) -> list[Recorded]:
    """Up to ``most`` requests of each method and host, as different as their heads and sections are."""
    found: dict[tuple[int, str], dict[str, Recorded]] = {}
    for one in recorded:
        kinds = found.setdefault((one.host, one.method), {})
        fields = sorted(described.name for described, _ in one.head.ListFields())
        where = one.head.at.where.text if one.head.DESCRIPTOR.fields_by_name.get("at") is not None else ""
        kinds.setdefault(f"{fields} {sorted(one.arrays)} {where} {getattr(one.head, 'weight', '')}", one)
    return [one for kinds in found.values() for one in _spread(list(kinds.values()), most)]


def _spread(of: list[Recorded], most: int) -> list[Recorded]:
    return of if len(of) <= most else [of[int(at)] for at in np.linspace(0, len(of) - 1, most)]
