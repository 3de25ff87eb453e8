"""A cluster with mutual TLS on every port serves the same results, to authenticated peers only."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.kit import cases
from tests.kit.certificates import Authority, serial_number
from tests.kit.cluster import LocalCluster
from tests.kit.endpoints import endpoints
from tests.kit.waiting import HANG_S

import asterism
import asterism.aio
from asterism import Graph, TlsOptions
from asterism.cli.exit_codes import ExitCode
from asterism_io import unix_sockets
from asterism_proto.errors import Unavailable

SEED = 20_26


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, tls=True) as running:
        cases.load(running.client(), "cases")
        yield running


def samples(graph: Graph) -> list[Any]:
    """Return samples with their features; equal services return equal bytes."""
    calls = cases.calls(graph)
    return [calls[name]() for name in ("statement", "fanout", "fanout with features")] + [
        graph.sample_nodes(40, "person", seed=SEED)
    ]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the digest of the samples of an embedded service, which has no sockets."""
    folder = cases.copy_built_graph(tmp_path_factory.mktemp("embedded"))
    with asterism.open(folder, mode="r", space="cases") as graph:
        return cases.digest(samples(graph))


@pytest.mark.parametrize("direct", [False, True])
def test_samples_have_the_same_bytes(cluster: LocalCluster, expected: str, direct: bool) -> None:
    client = cluster.client(direct=direct)
    assert cases.digest(samples(client.graph("cases"))) == expected
    if direct:
        assert client.traffic.direct > 0
        with pickle.loads(pickle.dumps(client.graph("cases"))) as copy:
            assert cases.digest(samples(copy)) == expected


def test_asynchronous_samples_have_the_same_bytes(cluster: LocalCluster) -> None:
    async def sample() -> Any:
        async with asterism.aio.connect(cluster.addresses, space="cases", tls=cluster.tls) as graph:
            return await graph.sample_nodes(40, "person", seed=SEED)

    graph = cluster.client().graph("cases")
    assert cases.digest(asyncio.run(sample())) == cases.digest(
        graph.sample_nodes(40, "person", seed=SEED)
    )


def test_every_daemon_is_online_and_its_pages_are_https(cluster: LocalCluster) -> None:
    assert len([host for host in cluster.client().hosts() if host.online]) == 3
    for name in cluster.daemons:
        assert cluster.get(name, "/status")["ready"]
        flags = cluster.get(name, "/flags")
        assert flags["tls_client_auth"] == "required"
        assert flags["tls_key"].endswith("daemon.key")
    with cluster["graphd-0"].open_url("/ui") as reply:
        assert b"<html" in reply.read().lower()


def test_the_self_test_calls_its_own_port(cluster: LocalCluster) -> None:
    with cluster["graphd-0"].open_url(
        "/verify", data=json.dumps({"space": "cases", "draws": 1000}).encode()
    ) as reply:
        assert "passed" in json.load(reply)


def test_a_client_learns_what_is_missing(cluster: LocalCluster, tmp_path: Path) -> None:
    assert cluster.tls is not None
    only_ca = TlsOptions(ca=cluster.tls.ca)
    other = Authority(tmp_path, "other")
    for tls, message in (
        (False, r"graphd at .* speaks TLS; connect with tls='ca\.pem', --tls-ca ca\.pem or"),
        (only_ca, r"graphd at .* demands a certificate of its clients; connect with tls=TlsOpt"),
        (other.file, r"graphd at .* shows a certificate that is not accepted"),
    ):
        with (
            asterism.connect(cluster.addresses, tls=tls, timeout_s=HANG_S) as client,
            pytest.raises(Unavailable, match=message),
        ):
            client.spaces()
        assert client.traffic.retries == 0


def test_a_client_with_tls_learns_that_a_port_is_plain(cluster: LocalCluster) -> None:
    with (
        endpoints() as plain,
        asterism.connect(plain.transport.address, tls=cluster.tls, timeout_s=HANG_S) as client,
        pytest.raises(Unavailable, match="does not speak TLS; connect without tls"),
    ):
        client.spaces()


@pytest.mark.parametrize("name", ["metad", "storaged-0", "graphd-0"])
def test_no_abstract_socket_leads_around_tls(cluster: LocalCluster, name: str) -> None:
    address = cluster[name].address
    assert unix_sockets.grpc_target(address) == address
    sockets = Path("/proc/net/unix").read_text()
    assert f"@asterism:{cluster[name].port}" not in sockets


def test_commands_and_the_console_take_tls(cluster: LocalCluster) -> None:
    assert cluster.tls is not None
    options = [
        *("--address", cluster.addresses, "--tls-ca", cluster.tls.ca),
        *("--tls-cert", cluster.tls.cert, "--tls-key", cluster.tls.key),
    ]
    listed = run_command("space", "list", "--json", *options)
    assert listed.returncode == ExitCode.DONE, listed.stderr
    assert "cases" in listed.stdout
    environment = {
        "ASTERISM_ADDRESS": cluster.addresses,
        "ASTERISM_TLS_CA": cluster.tls.ca,
        "ASTERISM_TLS_CERT": cluster.tls.cert,
        "ASTERISM_TLS_KEY": cluster.tls.key,
    }
    console = run_command("console", "cases", "-e", "SHOW SPACES", environment=environment)
    assert console.returncode == ExitCode.DONE, console.stderr
    assert "cases" in console.stdout
    plain = run_command("space", "list", "--address", cluster.addresses)
    assert plain.returncode == ExitCode.UNAVAILABLE
    assert "speaks TLS; connect with tls='ca.pem', --tls-ca ca.pem or ASTERISM_TLS_CA" in (
        plain.stderr
    )
    assert len(plain.stderr.strip().splitlines()) == 1


def run_command(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "asterism.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        env={**os.environ, **(environment or {})},  # noqa: TID251 - the child inherits it
    )


def test_a_renewed_certificate_needs_no_restart(cluster: LocalCluster) -> None:
    """Last test of the module: it renews the certificate of all daemons while they run."""
    graph = cluster.client(direct=True).graph("cases")
    before = cases.digest(samples(graph))
    files = cluster.authority.issue("daemon")
    renewed = serial_number(files.cert.read_bytes())
    for daemon in cluster.daemons.values():
        for port in (daemon.port, daemon.http_port):
            assert serial_shown(cluster, port) == renewed
    assert cases.digest(samples(graph)) == before  # on connections with the old certificate
    assert cases.digest(samples(cluster.client(direct=True).graph("cases"))) == before
    cluster["storaged-0"].stop()
    cluster.restart("storaged-0")  # graphd and metad reach it with the new certificates
    assert cases.digest(samples(cluster.client().graph("cases"))) == before


def serial_shown(cluster: LocalCluster, port: int) -> int:
    context = cluster.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", port), HANG_S) as connection,
        context.wrap_socket(connection, server_hostname="127.0.0.1") as wrapped,
    ):
        return serial_number(wrapped.getpeercert(binary_form=True) or b"")
