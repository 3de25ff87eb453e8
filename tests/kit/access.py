"""A metad, a storaged and a graphd with access control, in this process and on ports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from asterism import Client
from asterism_access.credentials.cluster_key import ClusterKey, create_key_file
from asterism_access.principals import Principal, PrincipalKind
from asterism_access.roles import Role
from asterism_daemonkit.access_control import AccessControl
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import TcpTransport
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.methods import ACCESS, CATALOG
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.app import Graphd
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.settings import MetadSettings
from storaged.app import Storaged
from storaged.settings import StoragedSettings
from tests.kit.waiting import HANG_S, wait_until

SPACES = ("shop", "bank")


def principal(name: str, **roles: Role) -> Principal:
    """Return a principal with an API key and some roles."""
    return Principal(name=name, kind=PrincipalKind.API_KEY, roles=roles)


class KeyedTransport(RemoteTransport):
    """Transport of a client to a graphd, with credentials."""

    prices_requests = False
    piece_bytes = LocalTransport.piece_bytes


class AccessCluster:
    """The daemons of a small cluster with access control, which call each other over gRPC.

    It has the spaces `SPACES`, each with one published version of ten nodes.

    Parameters
    ----------
    folder : Path
    settings : mapping, optional
        Further settings of all daemons.
    """

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        self.folder, self._more_settings = folder, settings or {}
        create_key_file(folder / "cluster.key")
        self.key = ClusterKey(str(folder / "cluster.key"))
        self.metad = Metad(
            MetadSettings(**self._settings(folder / "metad")),
            access_control=AccessControl(self.key, None, "metad"),
        )
        self.metad.start()
        self.metad.open_ports()
        self.metad_address = f"127.0.0.1:{self.metad.grpc_port}"
        self.storaged = Storaged(
            StoragedSettings(
                **self._settings(folder / "storaged"),
                metad=self.metad_address,
                quarantine_free_mib=0,
            ),
            self._to_metad("storaged"),
            compile_ahead=False,
            access_control=AccessControl(self.key, None, "storaged"),
        )
        self.storaged.open_ports()
        self.storaged.start()
        self.graphd = self.new_graphd("graphd")
        self.graphd.start()
        self.graphd.open_ports()
        self.address = f"127.0.0.1:{self.graphd.grpc_port}"
        self.http_url = f"http://127.0.0.1:{self.graphd.http_port}"
        wait_until(lambda: not self._missing(), lambda: f"nothing is missing: {self._missing()}")
        self.client = Client(LocalTransport(self.graphd.handlers), timeout_s=HANG_S)
        for name in SPACES:
            self.publish(name)

    def new_graphd(self, name: str) -> Graphd:
        """Return another graphd, which is not started. Its caller stops it."""
        control = AccessControl(self.key, None, "graphd")
        return Graphd(
            GraphdSettings(**self._settings(self.folder / name), metad=self.metad_address),
            self._to_metad("graphd"),
            lambda address, tally: TcpTransport(
                address,
                RemoteTransport(address, tally, role="storaged", credentials=control.ticket),
                tally,
                credentials=control.ticket,
            ),
            compile_ahead=False,
            access_control=control,
        )

    def stop(self) -> None:
        """Stop the daemons."""
        self.client.close()
        self.graphd.stop()
        self.storaged.stop()
        self.metad.stop()

    def connect(self, credential: str | None) -> Client:
        """Return a client of the graphd over gRPC."""
        credentials = None if credential is None else lambda: credential
        return Client(KeyedTransport(self.address, credentials=credentials), timeout_s=HANG_S)

    def root(self) -> str:
        """Return a ticket of an administrator of the cluster."""
        return self.key.root_ticket(HANG_S)

    def create_key(self, name: str, **roles: Role) -> str:
        """Return a new API key of a principal with some roles."""
        with_access = LocalTransport(self.graphd.handlers)
        for space, role in roles.items():
            grant = metad_pb.RoleGrant(principal=name, space=space, role=int(role))
            with_access.call(ACCESS["grant_role"], grant, HANG_S)
        request = metad_pb.CreateApiKeyRequest(principal=name)
        reply = with_access.call(ACCESS["create_api_key"], request, HANG_S)
        assert isinstance(reply, metad_pb.CreateApiKeyReply)
        return reply.secret

    def space_id(self, name: str) -> int:
        """Return the id of a space."""
        reply = LocalTransport(self.metad.handlers).call(
            CATALOG["describe_space"], metad_pb.SpaceRequest(space=name), HANG_S
        )
        assert isinstance(reply, common_pb.Space)
        return reply.space_id

    def handlers(self) -> Mapping[str, Mapping[str, Handler]]:
        """Return the handlers of each daemon by method path."""
        return {
            "graphd": self.graphd.handlers,
            "metad": self.metad.handlers,
            "storaged": self.storaged.handlers,
        }

    def _to_metad(self, role: str) -> RemoteTransport:
        return RemoteTransport(
            self.metad_address, role="metad", credentials=lambda: self.key.daemon_ticket(role)
        )

    def _settings(self, folder: Path) -> dict[str, object]:
        return {
            "data": folder,
            "listen": "127.0.0.1:0",
            "http_listen": "127.0.0.1:0",
            "heartbeat_interval_s": 0.1,
            "poll_wait_s": 0.5,
            "audit_file": str(folder.parent / f"{folder.name}.jsonl"),
            **self._more_settings,
        }

    def _missing(self) -> list[str]:
        return [*self.metad.ready(), *self.storaged.ready(), *self.graphd.ready()]

    def publish(self, space: str) -> None:
        """Create a space with one version of ten nodes."""
        self.client.create_space(space, {"parts": 1, "nodes": {"n": {"weighted": True}}})
        load = self.client.begin_load(space, source="ten nodes")
        load.write_nodes(0, "n", np.arange(10), weights=np.ones(10))
        load.commit()
        job = self.client.wait(self.client.submit_job(space).job_id, timeout_s=HANG_S)
        assert job.state == "FINISHED", job.cause


def call_as(caller: Principal) -> CallContext:
    """Return the context of a call of a principal."""
    return CallContext.with_timeout(HANG_S, caller)
