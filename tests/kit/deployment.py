"""A metad, storageds and a graphd in this process.

Tests stop and start each of them, and replace metad's folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from asterism import Client
from asterism_daemonkit.rpc.call_context import Handler
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import Unavailable
from asterism_proto.methods import Method
from asterism_proto.transport import Content
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_standalone.embedded_transport import FolderTransport
from graphd.app import Graphd
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.settings import MetadSettings
from storaged.app import Storaged
from storaged.settings import StoragedSettings
from tests.kit.waiting import HANG_S, wait_until

WAIT_S = HANG_S
"""Longest wait in seconds, as a guard against hanging."""


class _SwitchedTransport(LocalTransport):
    """Transport to the daemon that ``find`` returns; Unavailable while there is none."""

    def __init__(self, find: Callable[[], dict[str, Handler]]) -> None:
        super().__init__({})
        self._find = find

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        self._handlers = self._find()
        if method.path not in self._handlers:
            raise Unavailable("nothing answers at this address")
        return super().call(method, request, timeout_s)


class Deployment:
    """Daemons on folders below one folder.

    Parameters
    ----------
    folder : Path
    storageds : int
    heartbeat_interval_s, poll_wait_s : float
        Settings of all daemons.
    settings : Any
        Further settings of the storageds.
    """

    def __init__(
        self,
        folder: Path,
        *,
        storageds: int = 2,
        heartbeat_interval_s: float = 0.1,
        poll_wait_s: float = 0.5,
        **settings: Any,
    ) -> None:
        self.folder, self._settings = folder, settings
        self._heartbeat_s, self._poll_s = heartbeat_interval_s, poll_wait_s
        self._handlers: dict[str, Handler] = {}
        self._to_metad = _SwitchedTransport(lambda: self._handlers)
        self.storageds: dict[str, Storaged] = {}
        self._names = [f"s{i}" for i in range(storageds)]
        self.metad: Metad | None = None
        self.start_metad()
        for name in self._names:
            self.start_storaged(name)
        self.graphd = Graphd(
            GraphdSettings(
                listen="127.0.0.1:0",
                http_listen="127.0.0.1:0",
                heartbeat_interval_s=self._heartbeat_s,
                poll_wait_s=self._poll_s,
                advertise="graphd:1",
            ),
            self._to_metad,
            lambda address, _: _SwitchedTransport(lambda: self._storaged_handlers(address)),
        )
        self.graphd.start()
        self.client = Client(FolderTransport(folder, self.graphd.handlers))
        self.wait_ready()

    # Daemons.

    @property
    def metad_folder(self) -> Path:
        """Folder of the metad."""
        return self.folder / "metad"

    def start_metad(self) -> Metad:
        """Start metad on its folder."""
        settings = MetadSettings(
            data=self.metad_folder,
            listen="127.0.0.1:0",
            http_listen="127.0.0.1:0",
            heartbeat_interval_s=self._heartbeat_s,
            lease_s=max(2.0, 5 * self._heartbeat_s),
            keep_versions=2,
        )
        self.metad = Metad(settings)
        self.metad.start()
        self._handlers.update(self.metad.handlers)
        return self.metad

    def stop_metad(self) -> None:
        """Stop metad; calls to it then fail as Unavailable."""
        assert self.metad is not None
        self._handlers.clear()
        self.metad.stop()
        self.metad = None

    def start_storaged(self, name: str) -> Storaged:
        """Start a storaged on its folder."""
        settings = StoragedSettings(
            data=self.folder / name,
            listen="127.0.0.1:0",
            http_listen="127.0.0.1:0",
            advertise=f"{name}:1",
            heartbeat_interval_s=self._heartbeat_s,
            poll_wait_s=self._poll_s,
            **{"quarantine_free_mib": 0, **self._settings},
        )
        self.storageds[name] = Storaged(settings, self._to_metad)
        self.storageds[name].start()
        return self.storageds[name]

    def _storaged_handlers(self, address: str) -> dict[str, Handler]:
        storaged = self.storageds.get(address.partition(":")[0])
        return storaged.handlers if storaged is not None else {}

    def wait_caught_up(self, name: str) -> None:
        """Wait until a storaged has followed the catalog to its newest revision."""
        wait_until(
            lambda: (
                self.storageds[name].status()["catalog"]["revision"]
                >= self.state().position.revision
            ),
            f"{name} has followed the catalog to its newest revision",
        )

    def stop_storaged(self, name: str) -> None:
        """Stop a storaged."""
        self.storageds.pop(name).stop()

    def stop(self) -> None:
        """Stop all daemons."""
        self.client.close()
        self.graphd.stop()
        for name in list(self.storageds):
            self.stop_storaged(name)
        if self.metad is not None:
            self.stop_metad()

    def wait_ready(self) -> None:
        """Wait until all running daemons are ready."""
        wait_until(lambda: not self._missing(), lambda: f"nothing is missing: {self._missing()}")

    def _missing(self) -> list[str]:
        assert self.metad is not None
        return [
            *self.metad.ready(),
            *self.graphd.ready(),
            *(problem for s in self.storageds.values() for problem in s.ready()),
        ]

    # Copies of metad's folder.

    def copy_catalog(self, name: str) -> None:
        """Copy metad's folder."""
        shutil.copytree(self.metad_folder, self.folder / name)

    def restore_catalog(self, name: str) -> None:
        """Stop metad, replace its folder by a copy, and start it again."""
        self.stop_metad()
        shutil.rmtree(self.metad_folder)
        shutil.copytree(self.folder / name, self.metad_folder)
        self.start_metad()

    # Calls of clients.

    def publish(self, space: str, *, first: int = 0, nodes: int = 30) -> int:
        """Write nodes to a space, which is created if needed, and publish them; return the
        version.
        """
        if space not in {info.name for info in self.client.spaces()}:
            self.client.create_space(space, {"parts": 2, "nodes": {"n": {"weighted": True}}})
        load = self.client.begin_load(space, source=f"nodes from {first}")
        load.write_nodes(0, "n", np.arange(first, first + nodes), weights=np.ones(nodes))
        load.commit()
        job = self.client.wait(self.client.submit_job(space).job_id, timeout_s=WAIT_S)
        assert job.state == "FINISHED", job.cause
        return job.version

    def version(self, space: str) -> int:
        """Return the version that sampling uses."""
        with Client(
            FolderTransport(self.folder, self.graphd.handlers)
        ) as client:  # a new client, which has seen no newer version
            return client.graph(space).sample_nodes(3, "n", seed=1).version

    def state(self) -> metad_pb.CatalogState:
        """Return the state of metad's catalog."""
        state: metad_pb.CatalogState = self.client.session.catalog(
            "describe_catalog", common_pb.Empty()
        )
        return state

    def adopt(self, cluster: str = "") -> metad_pb.CatalogState:
        """Adopt metad's catalog once all storageds have reported; return the state before."""
        wait_until(
            lambda: all(
                f.inventory_reported
                for f in self.state().followers_ahead
                if f.role == metad_pb.STORAGED
            ),
            "every storaged has reported its inventory",
        )
        state: metad_pb.CatalogState = self.client.session.catalog(
            "adopt_catalog", metad_pb.AdoptCatalogRequest(cluster=cluster)
        )
        return state

    # Content of the folders of storageds.

    def spaces(self, name: str) -> set[int]:
        """Return the ids of the spaces in a storaged's folder."""
        return {
            int(path.name)
            for path in (self.folder / name / "spaces").glob("*")
            if path.name.isdigit()
        }

    def builds(self, name: str, space_id: int) -> set[int]:
        """Return the ids of the builds in a space's folder."""
        return {
            int(path.name)
            for path in (self.folder / name / "spaces" / str(space_id) / "builds").glob("*")
            if path.name.isdigit()
        }

    def quarantined(self, name: str) -> list[str]:
        """Return the original locations of a storaged's quarantined folders."""
        return [entry["origin"] for entry in self.storageds[name].status()["quarantine"]]
