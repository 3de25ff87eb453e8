"""Tests of TLS on the ports of a daemon: both RPC endpoints and HTTP, over real sockets."""

from __future__ import annotations

import datetime
import http.client
import logging
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.kit.certificates import Authority, Certificate, serial_number
from tests.kit.endpoints import METHOD, Endpoints, echo, endpoints, request
from tests.kit.waiting import HANG_S, wait_until

from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.server import HttpServer
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc import grpc_client
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import TcpTransport
from asterism_daemonkit.tls import DaemonTls
from asterism_io.client_tls import TlsClient, TlsMismatch, speaks_tls
from asterism_io.tls_options import TlsOptions
from asterism_io.unix_sockets import grpc_target
from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.framing import Frame
from asterism_proto.transport import Transport
from asterism_proto.v1 import storaged_pb2 as storaged_pb

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon with mutual TLS on three ports."""

    authority: Authority
    files: Certificate
    tls: DaemonTls
    rpc: Endpoints
    http_port: int

    @property
    def ports(self) -> dict[str, int]:
        return {
            "grpc": int(self.rpc.transport.address.rpartition(":")[2]),
            "binary": self.rpc.stream.port,
            "http": self.http_port,
        }


@contextmanager
def http_server(tls: DaemonTls | None) -> Iterator[int]:
    server = HttpServer(
        address="127.0.0.1:0",
        daemon="metad",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("metad"),
        allowed_hosts=AllowedHosts(),
        tls=tls,
    )
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def daemon(authority: Authority) -> Iterator[Daemon]:
    files = authority.issue("daemon")
    tls = DaemonTls(
        cert=str(files.cert), key=str(files.key), ca=str(authority.file), client_auth=True
    )
    with endpoints(tls=tls) as rpc, http_server(tls) as port:
        yield Daemon(authority, files, tls, rpc, port)


def client_of(authority: Authority, files: Certificate | None = None) -> TlsClient:
    return TlsClient(
        TlsOptions(
            ca=str(authority.file),
            cert=str(files.cert) if files else "",
            key=str(files.key) if files else "",
        )
    )


def transport_to(daemon: Daemon, tls: TlsClient | None) -> TcpTransport:
    address = daemon.rpc.transport.address
    return TcpTransport(address, RemoteTransport(address, tls=tls), tls=tls)


def error_of(daemon: Daemon, tls: TlsClient | None) -> TlsMismatch:
    """Return the error of a call over gRPC, with which a transport begins."""
    transport = transport_to(daemon, tls)
    try:
        return mismatch_of(transport)
    finally:
        transport.close()


def ids_from(transport: Transport, *values: int) -> list[int]:
    """Return the ids that a daemon echoes; a busy machine may need several attempts to connect."""

    def reply() -> Frame | None:
        try:
            frame = transport.call(METHOD, request(*values), HANG_S)
        except TlsMismatch as error:
            pytest.fail(error.message)
        assert isinstance(frame, Frame)
        return frame

    frame = wait_until(reply, "the daemon replies", ignored=Unavailable)
    assert frame is not None
    return [int(value) for value in frame.arrays["ids"]]


def mismatch_of(transport: Transport) -> TlsMismatch:
    """Return the error of calls; on a busy machine, an attempt to connect may time out first."""

    def mismatch() -> TlsMismatch | None:
        try:
            transport.call(METHOD, request(1), HANG_S)
        except TlsMismatch as error:
            return error
        return None

    found = wait_until(mismatch, "TLS is named as the reason", ignored=Unavailable)
    assert found is not None
    return found


def get(port: int, path: str, context: ssl.SSLContext, host: str = "127.0.0.1") -> bytes:
    connection = http.client.HTTPSConnection(host, port, timeout=HANG_S, context=context)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        assert reply.status == 200
        return reply.read()
    finally:
        connection.close()


def context_of(authority: Authority, files: Certificate | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.file))
    if files is not None:
        context.load_cert_chain(files.cert, files.key)
    return context


def serial_shown(port: int, authority: Authority, files: Certificate) -> int:
    """Return the serial number of the certificate that a port shows in a new handshake."""
    context = context_of(authority, files)
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", port), HANG_S) as connection,
        context.wrap_socket(connection, server_hostname="127.0.0.1") as wrapped,
    ):
        return serial_number(wrapped.getpeercert(binary_form=True) or b"")


def test_arrays_round_trip_encrypted(daemon: Daemon) -> None:
    assert ids_from(daemon.rpc.transport, 1) == [1]
    daemon.rpc.transports_used.clear()
    for size in (0, 1, 3000, 2_000_000):
        ids = np.arange(size)
        reply = daemon.rpc.transport.call(
            METHOD,
            Frame(storaged_pb.ReadDegreesRequest(), {"ids": ids, "first": ids[:7], "all": ids}),
            HANG_S,
        )
        assert isinstance(reply, Frame)
        assert [np.array_equal(reply.arrays[name], ids) for name in ("ids", "all")] == [True, True]
        assert np.array_equal(reply.arrays["first"], ids[:7])
    assert set(daemon.rpc.transports_used) == {"stream"}


def test_calls_over_grpc_are_encrypted(daemon: Daemon) -> None:
    with_tls = RemoteTransport(daemon.rpc.transport.address, tls=daemon.tls.client)
    try:
        assert ids_from(with_tls, 1, 2) == [1, 2]
    finally:
        with_tls.close()


def test_pages_are_served_encrypted(daemon: Daemon) -> None:
    context = context_of(daemon.authority, daemon.files)
    for host in ("127.0.0.1", "localhost"):
        assert get(daemon.http_port, "/healthz", context, host) == b"ok"


@pytest.mark.parametrize("port", ["grpc", "binary", "http"])
def test_a_port_with_tls_accepts_nothing_plain(daemon: Daemon, port: str) -> None:
    address = ("127.0.0.1", daemon.ports[port])
    with socket.create_connection(address, HANG_S) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        reply = b""
        try:
            while received := connection.recv(4096):
                reply += received
        except ConnectionResetError:
            pass
    assert b"ok" not in reply
    assert b"HTTP/1.1" not in reply
    assert len(reply) < 16  # at most an alert of TLS


@pytest.mark.parametrize("port", ["grpc", "binary", "http"])
@pytest.mark.parametrize("shown", ["none", "foreign", "expired"])
def test_a_client_needs_a_certificate_of_the_authority(
    daemon: Daemon, tmp_path: Path, port: str, shown: str
) -> None:
    files = {
        "none": lambda: None,
        "foreign": lambda: Authority(tmp_path, "foreign").issue("client"),
        "expired": lambda: daemon.authority.issue("expired", starts=-9 * DAY, ends=-DAY),
    }[shown]()
    context = context_of(daemon.authority, files)
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection(("127.0.0.1", daemon.ports[port]), HANG_S) as connection:
        try:
            with context.wrap_socket(connection, server_hostname="127.0.0.1") as wrapped:
                wrapped.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
                assert wrapped.recv(1) == b""
        except OSError:  # an alert, or a reset
            pass


def test_the_abstract_sockets_are_not_opened(daemon: Daemon) -> None:
    assert daemon.rpc.stream.socket_name == ""
    address = daemon.rpc.transport.address
    assert grpc_target(address) == address


def test_a_caller_learns_why_tls_fails(daemon: Daemon, tmp_path: Path) -> None:
    peer = daemon.rpc.transport.address
    foreign = Authority(tmp_path, "foreign")
    assert error_of(daemon, None).message == (
        f"{peer} speaks TLS; set tls_cert, tls_key and tls_ca of this daemon"
    )
    assert error_of(daemon, client_of(daemon.authority)).message == (
        f"{peer} demands a certificate of its clients; set tls_cert and tls_key of this daemon"
    )
    assert error_of(daemon, client_of(foreign, daemon.files)).message.startswith(
        f"{peer} shows a certificate that is not accepted ("
    )
    assert error_of(daemon, client_of(daemon.authority, foreign.issue("client"))).message == (
        f"{peer} refuses the certificate of this client; check its authority and dates"
    )


def test_tls_to_a_plain_port_says_so(daemon: Daemon) -> None:
    with endpoints() as plain:
        transport = RemoteTransport(plain.transport.address, tls=daemon.tls.client)
        message = mismatch_of(transport).message
        transport.close()
        assert message == (
            f"{plain.transport.address} does not speak TLS; {grpc_client._TLS_REMEDIES.disable}"
        )
        assert not speaks_tls(plain.transport.address)


def test_host_names_are_verified_unless_named(authority: Authority) -> None:
    files = authority.issue("elsewhere", names=["elsewhere.example"])
    cert, key, ca = str(files.cert), str(files.key), str(authority.file)
    with endpoints(tls=DaemonTls(cert=cert, key=key, ca=ca)) as server:
        assert "is not valid for '127.0.0.1'" in mismatch_of(server.transport).message
        address = server.transport.address
        for tls in (
            DaemonTls(cert=cert, key=key, ca=ca, server_name="elsewhere.example").client,
            TlsClient(DaemonTls(cert=cert, key=key, ca=ca).own_options()),
        ):
            transport = TcpTransport(address, RemoteTransport(address, tls=tls), tls=tls)
            assert ids_from(transport, 5) == [5]
            transport.close()
    assert "stream" in server.transports_used


@pytest.mark.parametrize("port", ["grpc", "binary", "http"])
def test_a_silent_handshake_delays_no_other_caller(daemon: Daemon, port: str) -> None:
    with socket.create_connection(("127.0.0.1", daemon.ports[port]), HANG_S) as silent:
        assert serial_shown(daemon.ports[port], daemon.authority, daemon.files)
        silent.sendall(b"\x16\x03\x01")  # the start of a record, and no more
        assert ids_from(daemon.rpc.transport, 1, 2) == [1, 2]
        assert get(daemon.http_port, "/healthz", context_of(daemon.authority, daemon.files)) == (
            b"ok"
        )


def test_a_caller_that_hangs_up_is_noticed(daemon: Daemon) -> None:
    seen = threading.Event()

    def respond(frame: Frame, call: CallContext) -> Frame:
        if frame.arrays["ids"].size == 3:
            wait_until(lambda: not call.is_active(), "the caller has hung up")
            seen.set()
        return echo(frame, call)

    with endpoints(respond, tls=daemon.tls) as server:
        assert ids_from(server.transport, 1) == [1]  # and is not taken for gone
        pending = server.transport.start(METHOD, request(1, 2, 3), HANG_S)
        pending.abandon()
        assert seen.wait(HANG_S)


def test_a_renewed_certificate_is_shown_at_once(authority: Authority) -> None:
    files = authority.issue("renewed")
    tls = DaemonTls(
        cert=str(files.cert), key=str(files.key), ca=str(authority.file), client_auth=True
    )
    with endpoints(tls=tls) as rpc, http_server(tls) as http_port:
        ports = [int(rpc.transport.address.rpartition(":")[2]), rpc.stream.port, http_port]
        old = serial_number(files.cert.read_bytes())
        assert [serial_shown(port, authority, files) for port in ports] == [old] * 3
        assert ids_from(rpc.transport, 1) == [1]
        kept = http.client.HTTPSConnection(
            "127.0.0.1", http_port, timeout=HANG_S, context=context_of(authority, files)
        )
        kept.request("GET", "/healthz")
        assert kept.getresponse().read() == b"ok"
        authority.issue("renewed")
        new = serial_number(files.cert.read_bytes())
        assert [serial_shown(port, authority, files) for port in ports] == [new] * 3
        kept.request("GET", "/healthz")  # on the connection with the old certificate
        assert kept.getresponse().read() == b"ok"
        kept.close()
        assert ids_from(rpc.transport, 2) == [2]
        wait_until(lambda: rpc.connections() == 1, "only the kept connection is open")
        wait_until(lambda: tls.client.version() == 1, "the client has the new certificate too")
        direct = RemoteTransport(rpc.transport.address, tls=tls.client)
        assert ids_from(direct, 1) == [1]
        direct.close()


def test_a_broken_new_certificate_keeps_the_old(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.issue("broken")
    tls = DaemonTls(cert=str(files.cert), key=str(files.key), ca=str(authority.file))
    with http_server(tls) as port, caplog.at_level(logging.WARNING):
        old = serial_number(files.cert.read_bytes())
        files.cert.write_text("no certificate")
        for _ in range(3):
            with (
                socket.create_connection(("127.0.0.1", port), HANG_S) as connection,
                context_of(authority).wrap_socket(
                    connection, server_hostname="127.0.0.1"
                ) as wrapped,
            ):
                assert serial_number(wrapped.getpeercert(binary_form=True) or b"") == old
        assert [record.message for record in caplog.records] == ["certificates_not_reloaded"]
        assert "expected a certificate in PEM form" in vars(caplog.records[0])["reason"]


def test_a_transport_calls_with_a_renewed_certificate(authority: Authority, daemon: Daemon) -> None:
    files = authority.issue("caller")
    transport = RemoteTransport(daemon.rpc.transport.address, tls=client_of(authority, files))
    assert ids_from(transport, 1) == [1]
    first = transport._channel
    authority.issue("caller")

    def has_new_channel() -> bool:
        assert ids_from(transport, 1) == [1]
        return transport._channel is not first

    wait_until(has_new_channel, "the transport has a channel with the new certificate")
    transport.close()


def test_a_key_that_others_can_read_is_a_warning(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.issue("readable")
    with caplog.at_level(logging.WARNING):
        DaemonTls(cert=str(files.cert), key=str(files.key))
        assert not caplog.records
        files.key.chmod(0o644)
        DaemonTls(cert=str(files.cert), key=str(files.key))
    assert [record.message for record in caplog.records] == ["key_readable_by_others"]


def test_a_certificate_of_one_purpose_is_no_identity(authority: Authority) -> None:
    files = authority.issue("server-only", usages=["server"])
    cert, key, ca = str(files.cert), str(files.key), str(authority.file)
    DaemonTls(cert=cert, key=key, ca=ca)
    with pytest.raises(InvalidRequest, match=r"tls_cert=.*needs clientAuth"):
        DaemonTls(cert=cert, key=key, ca=ca, client_auth=True)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the command `openssl` is missing")
@pytest.mark.parametrize("port", ["grpc", "binary", "http"])
def test_openssl_agrees_on_versions_and_ciphers(daemon: Daemon, port: str) -> None:
    def handshake(*options: str) -> tuple[bool, str]:
        result = subprocess.run(
            [
                *("openssl", "s_client", "-connect", f"127.0.0.1:{daemon.ports[port]}"),
                *("-CAfile", str(daemon.authority.file), "-verify_return_error", "-brief"),
                *("-cert", str(daemon.files.cert), "-key", str(daemon.files.key)),
                *("-alpn", "h2,http/1.1", "-verify_ip", "127.0.0.1"),
                *options,
            ],
            input=b"",
            capture_output=True,
            timeout=HANG_S,
        )
        text = (result.stdout + result.stderr).decode(errors="replace")
        return result.returncode == 0 and "CONNECTION ESTABLISHED" in text, text

    for options, version in (
        ((), "Protocol version: TLSv1.3"),
        (("-tls1_2",), "Protocol version: TLSv1.2"),
        (("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"), "AES128-GCM"),
    ):
        established, text = handshake(*options)
        assert established, text
        assert version in text
        assert "Verification: OK" in text
    # Security level 0: openssl itself would not offer the old versions otherwise.
    for refused in (
        ("-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"),
        ("-tls1", "-cipher", "DEFAULT@SECLEVEL=0"),
        ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"),
        ("-tls1_2", "-cipher", "AES128-GCM-SHA256"),
        ("-tls1_2", "-cipher", "NULL-SHA256:@SECLEVEL=0"),
    ):
        established, text = handshake(*refused)
        assert not established, (refused, text)
