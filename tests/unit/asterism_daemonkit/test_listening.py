"""Tests of opening a port, and of the message if that fails."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.server import HttpServer
from asterism_daemonkit.listening import listen
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.grpc_server import GrpcServer
from asterism_daemonkit.rpc.tcp_server import TcpServer
from asterism_proto.errors import InvalidRequest, Unavailable


def test_free_port_is_opened() -> None:
    with closing(listen("127.0.0.1:0")) as listener:
        assert listener.getsockname()[1] > 0


@pytest.mark.parametrize(
    "server",
    [
        lambda address: GrpcServer(address=address, services={}),
        lambda address: HttpServer(
            address=address,
            daemon="toy",
            status=dict,
            ready=list,
            flags={},
            metrics=Metrics("toy"),
            allowed_hosts=AllowedHosts(()),
        ),
        lambda address: TcpServer(address=address, methods={}, handlers={}, workers=1, queue=1),
    ],
    ids=["grpc", "http", "tcp"],
)
def test_taken_port_is_refused_alike_by_all_servers(
    server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with closing(listen("127.0.0.1:0")) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(Unavailable) as raised:
            server(address).start()
    assert raised.value.message == (
        f"cannot listen on {address}: another process listens on this port; stop it, or choose "
        "another port"
    )
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("192.0.2.1:0", "this host has no such address"),
        ("no such name:0", "host name not found"),
    ],
)
def test_address_of_another_host_is_refused(address: str, reason: str) -> None:
    with pytest.raises(Unavailable, match=f"cannot listen on {address}: {reason}"):
        listen(address)


def test_malformed_address_is_invalid() -> None:
    with pytest.raises(InvalidRequest, match="expected host:port"):
        listen("localhost")
