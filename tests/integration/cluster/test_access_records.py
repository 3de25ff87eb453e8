"""Tests of API keys, grants and limits through real servers: metad, and a graphd before it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.metad import SCHEMA, generate_api_key
from tests.kit.waiting import HANG_S, wait_until

from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.methods import ACCESS, CATALOG, HEARTBEATS
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_standalone.app import Standalone, embed
from graphd.app import Graphd
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.settings import MetadSettings


def start_metad(folder: Path) -> Metad:
    """Return a running metad with open ports."""
    metad = Metad(
        MetadSettings(data=folder, listen="127.0.0.1:0", http_listen="127.0.0.1:0", stop_grace_s=1),
        generate_api_key=generate_api_key,
    )
    metad.start()
    metad.open_ports()
    return metad


class Cluster:
    """A metad and a graphd, each with a gRPC port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metad = start_metad(folder)
        self._to_metad = RemoteTransport(f"127.0.0.1:{self.metad.grpc_port}", role="metad")
        self.graphd = Graphd(
            GraphdSettings(
                listen="127.0.0.1:0",
                http_listen="127.0.0.1:0",
                stop_grace_s=1,
                heartbeat_interval_s=0.2,
                poll_wait_s=30,
                catch_up_s=HANG_S,
            ),
            self._to_metad,
            lambda *_: self._to_metad,
            compile_ahead=False,
        )
        self.graphd.start()
        self.graphd.open_ports()
        self.transport = RemoteTransport(f"127.0.0.1:{self.graphd.grpc_port}", role="graphd")
        wait_until(lambda: not self.graphd.ready(), "graphd is ready")

    def call(self, name: str, request: Any) -> Any:
        """Call a method of the Access service at graphd."""
        return self.transport.call(ACCESS[name], request, HANG_S)

    def close(self) -> None:
        """Stop everything."""
        self.transport.close()
        self.graphd.stop()
        self._to_metad.close()
        self.metad.stop()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "metad")
    yield cluster
    cluster.close()


def polled_access(metad: Metad) -> metad_pb.AccessState:
    """Return the access state that metad sends to graphds."""
    transport = RemoteTransport(f"127.0.0.1:{metad.grpc_port}", role="metad")
    try:
        request = metad_pb.PollRequest(role=metad_pb.GRAPHD, uuid="g9")
        reply = transport.call(HEARTBEATS["poll"], request, HANG_S)
        assert isinstance(reply, metad_pb.PollReply)
        return reply.access
    finally:
        transport.close()


def test_a_graphd_forwards_access_calls_and_follows_them(cluster: Cluster) -> None:
    created = cluster.call(
        "create_api_key", metad_pb.CreateApiKeyRequest(principal="alice", description="laptop")
    )
    followed = cluster.graphd.access
    (key,) = followed.state().keys
    assert created.secret.startswith(f"ak_{key.key_id}_")
    assert (key.principal, len(key.secret_hash)) == ("alice", 32)
    assert (created.key.secret_hash, created.key.description) == (b"", "laptop")
    assert list(cluster.call("list_api_keys", metad_pb.ListApiKeysRequest()).keys) == [created.key]
    grant = metad_pb.RoleGrant(principal="alice", space="*", role=metad_pb.ADMIN)
    assert cluster.call("grant_role", grant) == grant
    assert list(followed.state().grants) == [grant]
    limits = metad_pb.AccessLimits(principal="*", space="*", pins=3)
    assert cluster.call("set_access_limits", limits) == limits
    assert list(followed.state().limits) == [limits]
    listing = metad_pb.ListGrantsRequest()
    assert list(cluster.call("list_grants", listing).grants) == [grant]
    assert list(cluster.call("list_access_limits", listing).limits) == [limits]
    cluster.call("revoke_api_key", metad_pb.RevokeApiKeyRequest(key_id=key.key_id))
    assert followed.state().keys[0].revoked_ms
    revoked = metad_pb.RevokeRoleRequest(principal="alice", space="*")
    assert "asterism access bootstrap" in cluster.call("revoke_role", revoked).notice
    assert not followed.state().grants
    with pytest.raises(NotFound, match="'nowhere' does not exist"):
        cluster.call(
            "grant_role",
            metad_pb.RoleGrant(principal="alice", space="nowhere", role=metad_pb.READER),
        )


def test_access_records_survive_a_kill_and_a_restart(tmp_path: Path) -> None:
    metad = start_metad(tmp_path / "metad")
    try:
        transport = RemoteTransport(f"127.0.0.1:{metad.grpc_port}", role="metad")
        transport.call(ACCESS["create_api_key"], metad_pb.CreateApiKeyRequest(principal="a"), 60)
        grant = metad_pb.RoleGrant(principal="a", space="*", role=metad_pb.ADMIN)
        transport.call(ACCESS["grant_role"], grant, 60)
        limits = metad_pb.AccessLimits(principal="a", space="*", jobs=1)
        transport.call(ACCESS["set_access_limits"], limits, 60)
        transport.close()
        state = polled_access(metad)
        assert len(state.keys) == len(state.grants) == len(state.limits) == 1
        shutil.copytree(tmp_path / "metad", tmp_path / "killed")  # as a kill would leave it
    finally:
        metad.stop()
    for folder in ("metad", "killed"):
        metad = start_metad(tmp_path / folder)
        try:
            assert polled_access(metad) == state
        finally:
            metad.stop()


def test_a_service_in_one_process_has_the_access_service(tmp_path: Path) -> None:
    service = Standalone(tmp_path, compile_ahead=False)
    service.start()
    try:
        endpoints = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        transport = RemoteTransport(endpoints.address)
        space = metad_pb.CreateSpaceRequest(name="graph", schema=SCHEMA.to_proto())
        transport.call(CATALOG["create_space"], space, HANG_S)
        grant = metad_pb.RoleGrant(principal="alice", space="graph", role=metad_pb.READER)
        assert transport.call(ACCESS["grant_role"], grant, HANG_S) == grant
        listed = transport.call(ACCESS["list_grants"], metad_pb.ListGrantsRequest(), HANG_S)
        assert isinstance(listed, metad_pb.RoleGrantList)
        assert list(listed.grants) == [grant]
        transport.close()
    finally:
        service.stop()
    assert b"alice" not in (tmp_path / "published.bin").read_bytes()
    reader = embed(tmp_path, mode="r")
    try:
        with pytest.raises(InvalidRequest, match="is open for reading"):
            LocalTransport(reader.handlers).call(ACCESS["grant_role"], grant, HANG_S)
    finally:
        reader.stop()
