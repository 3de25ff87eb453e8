"""Tests of certificates for development, with real handshakes."""

from __future__ import annotations

import ssl
import urllib.request
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S

from asterism_access.credentials.certificate_authority import (
    FILES,
    create_certificates,
    has_certificates,
)
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.server import HttpServer
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.tls import DaemonTls
from asterism_proto.errors import InvalidRequest


def test_daemons_and_clients_accept_the_certificate(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "certificates"
    create_certificates(folder, ["metad", "storaged-0.example.com", "10.0.0.7"], days=30)
    ca, cert, key = (str(folder / name) for name in ("ca.pem", "daemon.pem", "daemon.key"))
    server = HttpServer(
        address="127.0.0.1:0",
        daemon="metad",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("metad"),
        allowed_hosts=AllowedHosts(),
        tls=DaemonTls(cert=cert, key=key, ca=ca, client_auth=True),
    )
    port = server.start()
    context = ssl.create_default_context(cafile=ca)
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    context.load_cert_chain(cert, key)
    try:
        url = f"https://127.0.0.1:{port}/healthz"
        with urllib.request.urlopen(url, timeout=HANG_S, context=context) as reply:
            assert reply.read() == b"ok"
    finally:
        server.stop()


def test_only_the_owner_reads_keys_and_files_are_kept(tmp_path: Path) -> None:
    paths = create_certificates(tmp_path, [], days=1)
    assert [path.name for path in paths] == list(FILES)
    assert has_certificates(tmp_path)
    modes = {path.name: path.stat().st_mode & 0o777 for path in paths}
    assert (modes["ca.key"], modes["daemon.key"]) == (0o600, 0o600)
    before = [path.read_bytes() for path in paths]
    with pytest.raises(InvalidRequest, match=r"ca\.key: the file exists; choose another folder"):
        create_certificates(tmp_path, [], days=1)
    assert [path.read_bytes() for path in paths] == before
    paths[-1].unlink()
    assert not has_certificates(tmp_path)


@pytest.mark.parametrize("host", ["", "db:9669", "https://db", "a b", "-", "a..b", "x" * 64, "ü"])
def test_a_host_is_a_name_or_an_address(host: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"^host=.*: expected a host name or an IP address"):
        create_certificates(tmp_path, [host], days=1)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match="expected a folder that can be written"):
        create_certificates(tmp_path / "file" / "folder", [], days=1)
